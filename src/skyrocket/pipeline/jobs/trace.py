"""`skyrocket pipeline trace`: how long messages take, from the events that clients leave in the trace topic.

    sent ──▶ stored ──▶ a handler begins ──▶ it ends
    └ send ─┘└── wait ──┘└───── handle ─────┘            └────────── end to end: until the first success ──────────┘

A trace does not tell when a broker stored the message. With the messages themselves (their store times) it is exact;
without them the moment in which the producer had its answer stands for it. Clocks of hosts differ: a stage that comes
out negative is shown as it is.

A finding is a slow consumer, a hot key, a skewed queue, or a trace that cannot be read.
"""

import math
import statistics
from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final

import pyarrow as pa
import pyarrow.compute as pc
from pyspark.sql import Window
from pyspark.sql import functions as fn

from skyrocket.client import NoRoute, blocking
from skyrocket.errors import ConfigError
from skyrocket.model.topic import DLQ_PREFIX, RETRY_PREFIX
from skyrocket.pipeline.jobs.tables import PERCENTILES, floats, percentiles, skewed, table
from skyrocket.pipeline.jobs.trace_events import CALL_BEGAN, CALL_ENDED, DAMAGED, SENT, events
from skyrocket.pipeline.report import Plot, Report
from skyrocket.pipeline.report.words import counted

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

    from skyrocket.client import ClientSettings

TRACE_COLUMNS: Final = ("body", "bornHost")
MESSAGE_COLUMNS: Final = ("topic", "brokerName", "queueId", "uniqKey", "storeTimestamp")
STAGES: Final = {"send": "sendMs", "wait": "waitMs", "handle": "handleMs", "end to end": "endToEndMs"}
LATENCY_BY: Final = {
    "latency_by_topic": ("topic",),
    "latency_by_group": ("topic", "group"),
    "latency_by_client": ("group", "client"),
    "latency_over_time": ("minute",),
}
_COLUMNS: Final = ("topic", "group", "client", "minute")
UNKNOWN: Final = "(not traced)"


@dataclass(frozen=True)
class TraceLimits:
    """From where on something is a finding."""

    slow_factor: float = 3.0  # a client's p90 against the p90 of the other clients of its group
    slow_ms: float = 10.0  # and at least so long
    hot_share: float = 0.2  # of a topic's sends with one key
    hot_count: int = 100
    skew_factor: float = 2.0  # a queue against the mean of its topic
    skew_count: int = 100
    most_keys: int = 20

    def __post_init__(self) -> None:
        if self.slow_factor < 1 or self.skew_factor < 1:
            raise ConfigError("the factors for slow consumers and skewed queues are at least 1")


def check_traced(cluster: "ClientSettings", trace_topic: str) -> None:
    """Raises ConfigError where no client has left a trace: nobody should create the topic by hand because of that."""
    with blocking.Admin(client=cluster) as admin:
        try:
            admin.queues(trace_topic)
        except NoRoute as error:
            raise ConfigError(
                f"there is no topic {trace_topic}, so no client has left traces here: switch them on in clients "
                "(ClientSettings(…, trace=True)), or say by --trace-topic where they are"
            ) from error


# ── events → sends, calls, journeys ──────────────────────────────────────────────────────────────────────────────────


def sends(told: "DataFrame") -> "DataFrame":
    """A row per message that was sent: the first event of each id, because a repeated send is the same message."""
    of_sends = told.where(fn.col("kind") == SENT)
    return of_sends.groupBy("messageId").agg(
        fn.min_by("topic", "timeMs").alias("topic"),
        fn.min_by("keys", "timeMs").alias("keys"),
        fn.min_by("storeHost", "timeMs").alias("storeHost"),
        fn.min("timeMs").alias("sentMs"),
        fn.min(fn.col("timeMs") + fn.col("costMs")).alias("answeredMs"),
    )


def calls(told: "DataFrame") -> "DataFrame":
    """A row per message and call of a handler; `endedMs` is null while it runs, or when its end was not told."""
    began = told.where(fn.col("kind") == CALL_BEGAN).select(
        "requestId", "messageId", "group", "clientHost", "retryTimes", fn.col("timeMs").alias("beganMs")
    )
    ended = told.where(fn.col("kind") == CALL_ENDED).select(
        "requestId", "messageId", "succeeded", "outcome", "costMs", fn.col("timeMs").alias("toldMs")
    )
    both = began.dropDuplicates(["requestId", "messageId"]).join(
        ended.dropDuplicates(["requestId", "messageId"]), ["requestId", "messageId"], "left"
    )
    # RocketMQ: older clients tell no time at the end, only the share of the call.
    return both.withColumn("endedMs", fn.coalesce("toldMs", fn.col("beganMs") + fn.col("costMs"))).drop(
        "toldMs", "costMs"
    )


def store_times(messages: "DataFrame") -> "DataFrame":
    """Rows of topics → when each id was first stored; retries and dead letters are later lives of a message."""
    first_lives = ~fn.col("topic").startswith(RETRY_PREFIX) & ~fn.col("topic").startswith(DLQ_PREFIX)
    stored = messages.where(first_lives & fn.col("uniqKey").isNotNull())
    return stored.groupBy(fn.col("uniqKey").alias("messageId")).agg(
        fn.min(fn.unix_millis("storeTimestamp")).alias("storedMs")
    )


def journeys(sent: "DataFrame", called: "DataFrame", stored: "DataFrame | None" = None) -> "DataFrame":
    """A row per message and consumer group (group is null where nobody was called), with the stages in ms.

    `wait` ends with the first call, `handle` is the call that succeeded (else the last), `end to end` needs a success.
    """
    times = sent.withColumn("storedMs", fn.col("answeredMs")) if stored is None else _with_store_times(sent, stored)
    first_success = fn.min(fn.when(fn.col("succeeded"), fn.struct("endedMs", "beganMs", "clientHost")))
    last = fn.max(fn.struct("beganMs", "endedMs", "clientHost"))
    handled = called.groupBy("messageId", "group").agg(
        fn.min("beganMs").alias("firstMs"),
        fn.count("*").alias("calls"),
        fn.max("retryTimes").alias("retryTimes"),
        fn.coalesce(fn.max("succeeded"), fn.lit(False)).alias("succeeded"),
        first_success.alias("success"),
        last.alias("last"),
    )
    joined = times.join(handled, "messageId", "full")
    final_end = fn.coalesce("success.endedMs", "last.endedMs")
    final_begin = fn.coalesce("success.beganMs", "last.beganMs")
    return joined.select(
        "messageId",
        fn.coalesce("topic", fn.lit(UNKNOWN)).alias("topic"),
        "group",
        fn.coalesce("success.clientHost", "last.clientHost").alias("client"),
        "sentMs",
        "calls",
        "retryTimes",
        "succeeded",
        (fn.col("storedMs") - fn.col("sentMs")).alias("sendMs"),
        (fn.col("firstMs") - fn.col("storedMs")).alias("waitMs"),
        (final_end - final_begin).alias("handleMs"),
        (fn.col("success.endedMs") - fn.col("sentMs")).alias("endToEndMs"),
    )


def _with_store_times(sent: "DataFrame", stored: "DataFrame") -> "DataFrame":
    return sent.join(stored, "messageId", "left").withColumn("storedMs", fn.coalesce("storedMs", "answeredMs"))


# ── journeys → what is shown ─────────────────────────────────────────────────────────────────────────────────────────


def latency(travelled: "DataFrame") -> "DataFrame":
    """Percentiles of each stage, in one pass over all the ways of LATENCY_BY; `latency_table` takes one of them."""
    # A message with three groups has three journeys but was sent once, and whatever its groups did.
    first = fn.row_number().over(Window.partitionBy("messageId").orderBy("group")) == 1
    minute = fn.timestamp_millis(fn.floor(fn.col("sentMs") / 60_000) * 60_000)
    rows = travelled.withColumn("sendMs", fn.when(first, fn.col("sendMs"))).withColumn("minute", minute)
    pairs = fn.create_map(*(part for name, column in STAGES.items() for part in (fn.lit(name), fn.col(column))))
    long = rows.select(*_COLUMNS, fn.explode(pairs).alias("stage", "ms")).where(fn.col("ms").isNotNull())
    sets = [[fn.col("stage"), *map(fn.col, by)] for by in LATENCY_BY.values()]
    grouped = long.groupingSets(sets, "stage", *_COLUMNS)
    return grouped.agg(*(fn.grouping(name).alias(f"no_{name}") for name in _COLUMNS), *percentiles("ms"))


def latency_table(found: pa.Table, by: Sequence[str]) -> pa.Table:
    """One of the ways of LATENCY_BY out of what `latency` found."""
    keep = pc.is_in(found["stage"], pa.array(STAGES if by == ("topic",) else [*STAGES][1:]))
    for name in _COLUMNS:
        keep = pc.and_(keep, pc.equal(found[f"no_{name}"], int(name not in by)))
        if name in by:
            keep = pc.and_(keep, pc.is_valid(found[name]))  # nobody was called, or the send was not traced
    rows = found.filter(keep)
    order = pc.index_in(rows["stage"], pa.array(STAGES))
    ordered = rows.append_column("order", order).sort_by(
        [*((name, "ascending") for name in by), ("order", "ascending")]
    )
    return ordered.select([*by, "stage", "count", *PERCENTILES, "max"])


def retries(called: "DataFrame") -> "DataFrame":
    """Per group: how often handlers failed, and what never succeeded in the time that was looked at."""
    of_message = called.groupBy("group", "messageId").agg(
        fn.count("*").alias("calls"),
        fn.sum(fn.when(fn.col("succeeded"), 0).otherwise(1)).alias("failed"),
        fn.coalesce(fn.max("succeeded"), fn.lit(False)).alias("succeeded"),
        fn.max("retryTimes").alias("retryTimes"),
    )
    return (
        of_message.groupBy("group")
        .agg(
            fn.count("*").alias("messages"),
            fn.sum("calls").alias("calls"),
            fn.sum("failed").alias("failedCalls"),
            fn.sum((fn.col("calls") > 1).cast("long")).alias("calledAgain"),
            fn.sum((~fn.col("succeeded")).cast("long")).alias("neverSucceeded"),
            fn.max("retryTimes").alias("mostRetries"),
        )
        .orderBy(fn.desc("failedCalls"), "group")
    )


def handling(called: "DataFrame") -> "DataFrame":
    """Per group and client: how often it was called, and the p90 of its calls in ms."""
    took = called.select(
        "group", fn.col("clientHost").alias("client"), (fn.col("endedMs") - fn.col("beganMs")).alias("ms")
    )
    by_client = took.where(fn.col("ms").isNotNull()).groupBy("group", "client")
    return by_client.agg(fn.count("*").alias("calls"), fn.percentile("ms", fn.lit(0.9)).alias("p90"))


def slow_consumers(clients: pa.Table, limits: TraceLimits) -> pa.Table:
    """Of `handling`, those that take much longer than the others of their group; one alone is compared with nobody."""
    rows: list[dict[str, Any]] = clients.to_pylist()
    slow = []
    for row in rows:
        others = [each["p90"] for each in rows if each["group"] == row["group"] and each is not row]
        usual = statistics.median(others) if others else math.inf
        if row["p90"] >= limits.slow_ms and row["p90"] > usual * limits.slow_factor:
            slow.append({**row, "othersP90": usual})
    schema = clients.schema.append(pa.field("othersP90", pa.float64()))
    return pa.Table.from_pylist(sorted(slow, key=lambda row: -row["p90"]), schema=schema)


def hot_keys(sent: "DataFrame", limits: TraceLimits) -> "DataFrame":
    """The most frequent keys of each topic, with their share of its messages; `isHot` marks those over the limits."""
    words = sent.select("topic", fn.explode(fn.split(fn.trim("keys"), r"\s+")).alias("key")).where(fn.col("key") != "")
    totals = sent.groupBy("topic").agg(fn.count("*").alias("messages"))
    counted = words.groupBy("topic", "key").agg(fn.count("*").alias("count")).where(fn.col("count") > 1)
    shares = counted.join(totals, "topic").withColumn("share", fn.col("count") / fn.col("messages"))
    is_hot = (fn.col("share") >= limits.hot_share) & (fn.col("count") >= limits.hot_count)
    ordered = shares.withColumn("isHot", is_hot).orderBy(fn.desc("isHot"), fn.desc("count"), "topic", "key")
    return ordered.select("topic", "key", "count", "share", "isHot").limit(limits.most_keys)


def queue_counts(messages: "DataFrame") -> "DataFrame":
    """How many messages each queue of each topic got."""
    return messages.groupBy("topic", "brokerName", "queueId").agg(fn.count("*").alias("count"))


# ── the sentence ─────────────────────────────────────────────────────────────────────────────────────────────────────


def run(
    traces: "DataFrame",
    messages: "DataFrame | None" = None,
    limits: TraceLimits | None = None,
) -> Report:
    """From rows of a trace topic, and (for exact store times and queues) the rows of the topics that were traced."""
    limits = limits or TraceLimits()
    told = events(traces).cache()
    sent, called = sends(told).cache(), calls(told).cache()
    travelled = journeys(sent, called, None if messages is None else store_times(messages)).cache()
    try:
        found = table(latency(travelled))
        tables = {
            **{name: latency_table(found, by) for name, by in LATENCY_BY.items()},
            "retries": table(retries(called)),
            "slow_consumers": slow_consumers(table(handling(called)), limits),
            "hot_keys": table(hot_keys(sent, limits)),
        }
        if messages is not None:
            queues = skewed(
                queue_counts(messages), ["topic"], "count", factor=limits.skew_factor, least=limits.skew_count
            )
            tables["queue_skew"] = table(queues)
        tables["damaged_traces"] = table(told.where(fn.col("kind") == DAMAGED).select("clientHost", "reason"))
    finally:
        for cached in (travelled, sent, called, told):
            cached.unpersist()
    return report_of(tables, exact=messages is not None)


def report_of(tables: dict[str, pa.Table], *, exact: bool) -> Report:
    """The same report, whoever made the tables; `exact`: the messages were read too."""
    hot = sum(tables["hot_keys"]["isHot"].to_pylist())
    skew = tables["queue_skew"].num_rows if exact else 0
    counts = {
        "slow consumers": tables["slow_consumers"].num_rows,
        "hot keys": hot,
        "skewed queues": skew,
        "unreadable traces": tables["damaged_traces"].num_rows,
    }
    notes = [
        "times are milliseconds; send: until stored, wait: until the first call, handle: the call that succeeded",
        "store times are the brokers'"
        if exact
        else "store times are the producers' answers: read the topics as well for the brokers' own, and for queue skew",
        "findings: " + ", ".join(counted(count, name.removesuffix("s"), name) for name, count in counts.items()),
    ]
    return Report("Message traces", tables, _plots(tables), sum(counts.values()), notes, {"counts": counts})


def _plots(tables: dict[str, pa.Table]) -> list[Plot]:
    rows = [row for row in tables["latency_by_group"].to_pylist() if row["stage"] == "end to end"]
    names = [f"{row['group']} ← {row['topic']}" for row in rows]
    minutes = [row for row in tables["latency_over_time"].to_pylist() if row["stage"] == "end to end"]
    return [
        Plot(
            "End to end by group",
            "bar",
            names,
            {name: floats([row[name] for row in rows]) for name in PERCENTILES},
            "ms",
        ),
        Plot(
            "End to end by minute of sending",
            "line",
            [f"{row['minute']:%H:%M}" for row in minutes],
            {name: floats([row[name] for row in minutes]) for name in ("p50", "p99")},
            "ms",
        ),
    ]
