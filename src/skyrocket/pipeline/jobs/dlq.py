"""`skyrocket pipeline dlq`: dead letters by cause, with samples, and the list that `replay` takes. Never deletes.

Our consumers write down why they gave up (`SKY_DLQ_…` properties). Dead letters of other clients have no cause: they
are grouped by the topic they came from and by how often they were tried.

A finding is a dead letter.
"""

import re
from collections.abc import Sequence
from typing import TYPE_CHECKING, Final

import pyarrow as pa
from pyspark.sql import functions as fn

from skyrocket.client import NotFound, blocking
from skyrocket.client.consumer.dead_letter_cause import ERROR, HOST, MESSAGE, TRACE
from skyrocket.errors import ConfigError
from skyrocket.model.property_names import RETRY_TOPIC
from skyrocket.model.topic import DLQ_PREFIX
from skyrocket.pipeline.jobs.tables import best_of, table
from skyrocket.pipeline.report import Plot, Report

if TYPE_CHECKING:
    from pyspark.sql import Column, DataFrame

    from skyrocket.client import ClientSettings

MESSAGE_COLUMNS: Final = (
    *("topic", "brokerName", "queueId", "queueOffset", "msgId", "uniqKey", "keys", "tags"),
    *("storeTimestamp", "reconsumeTimes", "body", "properties"),
)
PLACE: Final = ("topic", "brokerName", "queueId", "queueOffset")  # what `replay --list` reads
DLQ_ORIGIN_TOPIC: Final = "DLQ_ORIGIN_TOPIC"
CAUSE: Final = ["group", "originTopic", "cause"]
BODY_CHARACTERS: Final = 200
CAUSE_CHARACTERS: Final = 120
MOST_LETTERS: Final = 1_000_000
FIRST_LINE: Final = r"^\s*([^\r\n]*)"
IDENTIFIERS: Final = r"\b[0-9a-fA-F]*\d[0-9a-fA-F]{7,}\b"
_MOST_BARS: Final = 15


def dead_letter_topics(groups: Sequence[str]) -> list[str] | str:
    """The topics of these groups, or a pattern for those of all."""
    return [DLQ_PREFIX + group for group in groups] if groups else f"{DLQ_PREFIX}.+"


def topics_in_cluster(cluster: "ClientSettings", groups: Sequence[str]) -> str:
    """A pattern, because a group has no topic before its first dead letter; raises ConfigError if nobody knows it."""
    if not groups:
        return f"{DLQ_PREFIX}.+"
    with blocking.Admin(client=cluster) as admin:
        for group in groups:
            try:
                admin.dead_letters(group, most=1)
            except NotFound as error:
                raise ConfigError(str(error)) from error
    return f"{DLQ_PREFIX}(?:{'|'.join(map(re.escape, groups))})"


def letters(rows: "DataFrame") -> "DataFrame":
    """Rows of dead-letter topics → group, origin, cause and what else one wants to know about each."""
    properties = fn.col("properties")
    error = properties[ERROR]
    return rows.where(fn.col("topic").startswith(DLQ_PREFIX)).select(
        fn.substring("topic", len(DLQ_PREFIX) + 1, 1 << 15).alias("group"),
        fn.coalesce(properties[RETRY_TOPIC], properties[DLQ_ORIGIN_TOPIC], fn.lit("(unknown)")).alias("originTopic"),
        fn.coalesce(_cause(error, properties[MESSAGE]), _tried(fn.col("reconsumeTimes"))).alias("cause"),
        error.alias("error"),
        properties[MESSAGE].alias("errorMessage"),
        properties[HOST].alias("host"),
        properties[TRACE].alias("traceback"),
        fn.coalesce("uniqKey", "msgId").alias("messageId"),
        "keys",
        "tags",
        "reconsumeTimes",
        fn.col("storeTimestamp").alias("died"),
        "body",
        *PLACE,
    )


def _cause(error: "Column", message: "Column") -> "Column":
    """Type and first line of the text, in which what differs from letter to letter is left open."""
    first_line = fn.regexp_extract(fn.coalesce(message, fn.lit("")), FIRST_LINE, 1)
    identifiers = fn.regexp_replace(first_line, IDENTIFIERS, "#")
    alike = fn.substring(fn.regexp_replace(identifiers, r"\d+", "#"), 1, CAUSE_CHARACTERS)
    return fn.when(error.isNotNull(), fn.concat_ws(": ", error, fn.when(alike != "", alike)))


def _tried(times: "Column") -> "Column":
    count = fn.coalesce(times, fn.lit(0))
    word = fn.when(count == 1, " time").otherwise(" times")
    return fn.concat(fn.lit("no cause written, tried "), count.cast("string"), word)


def causes(dead: "DataFrame") -> "DataFrame":
    """Per group, origin and cause: how many, since when, on which hosts; most frequent first."""
    return (
        dead.groupBy(*CAUSE)
        .agg(
            fn.count("*").alias("letters"),
            fn.min("died").alias("first"),
            fn.max("died").alias("last"),
            fn.max("reconsumeTimes").alias("mostRetries"),
            fn.sort_array(fn.collect_set("host")).alias("hosts"),
        )
        .orderBy(fn.desc("letters"), *CAUSE)
    )


def samples(dead: "DataFrame", most: int) -> "DataFrame":
    """The newest letters of each cause, with the beginning of their bodies."""
    newest = best_of(dead, CAUSE, fn.desc("died"), fn.desc("queueOffset"), most=most)
    # Bodies may be any bytes: what is not text is shown, not an error.
    text = fn.substring(fn.try_validate_utf8(fn.col("body").cast("string")), 1, BODY_CHARACTERS)
    shown = fn.coalesce(text, fn.substring(fn.hex("body"), 1, BODY_CHARACTERS))
    columns = ("messageId", "keys", "died", "errorMessage", "traceback")
    return newest.select(*CAUSE, *columns, shown.alias("body")).orderBy(*CAUSE, fn.desc("died"))


def replay_list(dead: "DataFrame") -> "DataFrame":
    """Where each letter is, with its cause: the whole or a part of it is what `replay --list` sends again."""
    return dead.select(*PLACE, "messageId", *CAUSE, "died").orderBy(*PLACE)


def by_hour(dead: "DataFrame") -> "DataFrame":
    """How many died per hour and group."""
    hour = fn.date_trunc("hour", "died").alias("hour")
    return dead.groupBy(hour, "group").agg(fn.count("*").alias("letters")).orderBy("hour", "group")


def run(rows: "DataFrame", sample: int = 3) -> Report:
    """From rows of dead-letter topics."""
    dead = letters(rows).cache()
    try:
        tables = {
            "causes": table(causes(dead)),
            "samples": table(samples(dead, sample)),
            "by_hour": table(by_hour(dead)),
            "letters": table(replay_list(dead), most=MOST_LETTERS),
        }
    finally:
        dead.unpersist()
    return report_of(tables)


def report_of(tables: dict[str, pa.Table]) -> Report:
    """The same report, whoever made the tables."""
    count = sum(tables["causes"]["letters"].to_pylist())
    notes = ["nothing was deleted or moved; `skyrocket pipeline replay --dlq GROUP --list letters.parquet` sends again"]
    if tables["letters"].num_rows < count:
        notes.append(f"letters.parquet has the first {tables['letters'].num_rows:,} of {count:,}: narrow it by --since")
    return Report("Dead letters", tables, [_plot(tables["causes"])], count, notes, {"letters": count})


def _without_module(cause: str) -> str:
    """`shop.stock.OutOfStock: …` as people call it."""
    kind, colon, text = cause.partition(":")
    return kind.rpartition(".")[2] + colon + text


def _plot(found: pa.Table) -> Plot:
    rows = found.slice(0, _MOST_BARS).to_pylist()
    names = [f"{row['group']}: {_without_module(row['cause'])}" for row in rows]
    return Plot("Dead letters by cause", "bar", names, {"letters": [float(row["letters"]) for row in rows]}, "letters")
