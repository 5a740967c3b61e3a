"""`skyrocket pipeline replay`: send messages again, chosen by time, key, tag, group or list, at a bounded rate.

    rows of a topic, store or archive ─▶ chosen ─▶ remaining ─▶ outgoing ─▶ rounds of at most `rate` messages a second
                                                      ▲                        │
                                                      └── progress file ◀──────┘ after each round

What is sent has the body, keys, tags, sharding key and the application's properties of the original, and says where it
comes from: REPLAY_FROM is topic/broker/queue/offset, REPLAY_ID the original's message id. The message id is a new one,
made of that place, so that a round which is sent again after a crash is recognised (docs/spark-source-and-sink.md).
Delays are not waited for again. The originals stay where they are.

A finding is a message that was chosen and cannot be sent again.
"""

import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Final

from pyspark.sql import Window as SqlWindow
from pyspark.sql import functions as fn
from pyspark.sql.types import IntegerType, LongType, StringType, StructField, StructType

from skyrocket.client.dead_letter_cause import CAUSE_PROPERTIES
from skyrocket.clock import Clock, SystemClock
from skyrocket.errors import ConfigError
from skyrocket.model import property_names as names
from skyrocket.model.topic import DLQ_PREFIX, RETRY_PREFIX, is_system_topic
from skyrocket.pipeline.jobs.replay_progress import Queue, ReplayProgress
from skyrocket.pipeline.jobs.tables import table
from skyrocket.pipeline.report import Plot, Report

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

REPLAY_FROM: Final = "REPLAY_FROM"
REPLAY_ID: Final = "REPLAY_ID"
MESSAGE_COLUMNS: Final = (
    *("topic", "brokerName", "queueId", "queueOffset", "msgId", "uniqKey", "keys", "tags", "storeTimestamp"),
    *("body", "properties"),
)
PLACE: Final = ["topic", "brokerName", "queueId", "queueOffset"]
_QUEUE: Final = ["topic", "brokerName", "queueId"]
# Of an earlier life, or of the system: the new message gets its own.
_NOT_KEPT: Final = sorted({*names.RESERVED, *CAUSE_PROPERTIES, names.SHARDING_KEY, REPLAY_FROM, REPLAY_ID})
_DLQ_ORIGIN_TOPIC: Final = "DLQ_ORIGIN_TOPIC"


@dataclass(frozen=True)
class Choice:
    """Which messages; what is not given does not matter. Times are the input's business."""

    keys: Sequence[str] = ()
    tags: Sequence[str] = ()


# ── steps ────────────────────────────────────────────────────────────────────────────────────────────────────────────


def chosen(messages: "DataFrame", choice: Choice, listed: "DataFrame | None" = None) -> "DataFrame":
    """Messages with one of the keys and one of the tags that are (if a list of places is given) on the list."""
    condition = fn.lit(True)
    if choice.keys:
        words = fn.split(fn.coalesce("keys", fn.lit("")), " ")
        condition = condition & fn.arrays_overlap(words, fn.array(*map(fn.lit, choice.keys)))
    if choice.tags:
        condition = condition & fn.col("tags").isin(list(choice.tags))
    rows = messages.where(condition)
    return rows if listed is None else rows.join(listed.select(*PLACE).distinct(), PLACE, "left_semi")


def unconsumed(spark: "SparkSession", messages: "DataFrame", offsets: Mapping[tuple[str, int], int]) -> "DataFrame":
    """Messages at or behind a group's offsets, by topic and queue id; queues without an offset are left out."""
    rows = [(topic, queue_id, offset) for (topic, queue_id), offset in offsets.items()]
    schema = "topic string, queueId int, committed bigint"
    joined = messages.join(fn.broadcast(spark.createDataFrame(rows, schema)), ["topic", "queueId"])
    return joined.where(fn.col("queueOffset") >= fn.col("committed")).drop("committed")


def outgoing(messages: "DataFrame", to: str | None) -> "DataFrame":
    """What the sink takes, beside the place it came from; without `to` a dead letter goes where it came from.

    `refused` says why a row cannot be sent.
    """
    # A table that somebody else wrote may lack the broker: without a value its rows would match no queue of ours.
    messages = messages.withColumn("brokerName", fn.coalesce("brokerName", fn.lit("")))
    properties = fn.coalesce("properties", fn.create_map().cast("map<string,string>"))
    origin = fn.coalesce(properties[names.RETRY_TOPIC], properties[_DLQ_ORIGIN_TOPIC])
    target = fn.lit(to) if to is not None else origin
    place = fn.concat_ws("/", *PLACE)
    kept = fn.map_filter(
        properties, lambda name, value: ~name.isin(_NOT_KEPT) & (fn.trim(value) != "") & (fn.trim(name) != "")
    )
    marks = fn.create_map(
        fn.lit(REPLAY_FROM), place, fn.lit(REPLAY_ID), fn.coalesce("uniqKey", "msgId", fn.lit("unknown"))
    )
    refused = (
        fn.when(target.isNull(), "it does not say which topic it came from: give --to")
        .when(fn.coalesce(fn.length("body"), fn.lit(0)) == 0, "it has no body, which brokers refuse")
        # What was sent by a replay is no original; sending it into its own topic would never end.
        .when((target == fn.col("topic")) & properties[REPLAY_FROM].isNotNull(), "it is itself the copy of a replay")
    )
    return messages.select(
        *(fn.col(name).alias(f"from_{name}") for name in PLACE),
        "storeTimestamp",
        refused.alias("refused"),
        target.alias("topic"),
        "body",
        fn.nullif(fn.trim("keys"), fn.lit("")).alias("keys"),
        fn.nullif(fn.trim("tags"), fn.lit("")).alias("tags"),
        fn.nullif(properties[names.SHARDING_KEY], fn.lit("")).alias("shardingKey"),
        fn.map_concat(kept, marks).alias("properties"),
        place.alias("messageId"),
    )


def remaining(rows: "DataFrame", spark: "SparkSession", next_offsets: Mapping[Queue, int]) -> "DataFrame":
    """Without what earlier runs have sent."""
    if not next_offsets:
        return rows
    done = spark.createDataFrame(
        [(*queue, offset) for queue, offset in next_offsets.items()],
        "from_topic string, from_brokerName string, from_queueId int, nextOffset bigint",
    )
    joined = rows.join(fn.broadcast(done), [f"from_{name}" for name in _QUEUE], "left")
    return joined.where(fn.col("from_queueOffset") >= fn.coalesce("nextOffset", fn.lit(0))).drop("nextOffset")


def numbered(rows: "DataFrame") -> "DataFrame":
    """With the number of each message among those of its queue that are sent, from 0."""
    window = SqlWindow.partitionBy(*(f"from_{name}" for name in _QUEUE)).orderBy("from_queueOffset")
    return rows.where(fn.col("refused").isNull()).withColumn("_number", fn.row_number().over(window) - 1)


def counts(rows: "DataFrame") -> "DataFrame":
    """What a run would send, per target, source and queue."""
    by = [fn.col("topic").alias("to"), *(fn.col(f"from_{name}").alias(name) for name in _QUEUE)]
    return (
        rows.groupBy(*by)
        .agg(
            fn.sum(fn.col("refused").isNull().cast("long")).alias("messages"),
            fn.sum(fn.length("body")).alias("bodyBytes"),
            fn.min("storeTimestamp").alias("firstStored"),
            fn.max("storeTimestamp").alias("lastStored"),
        )
        .orderBy("to", *_QUEUE)
    )


def refusals(rows: "DataFrame") -> "DataFrame":
    """Messages that were chosen and cannot be sent, with the reason."""
    places = [fn.col(f"from_{name}").alias(name) for name in PLACE]
    return rows.where(fn.col("refused").isNotNull()).select(*places, fn.col("refused").alias("reason")).orderBy(*PLACE)


def rounds(left: Mapping[Queue, int], most: int) -> Iterator[dict[Queue, tuple[int, int]]]:
    """Cut the numbers 0 … n-1 of each queue into rounds of at most `most` messages; queues advance side by side.

    A queue that has little left gives its share to the others, so that the rate is used to the end.
    """
    assert most >= 1
    done = dict.fromkeys(left, 0)
    while open_queues := sorted(
        (queue for queue in left if done[queue] < left[queue]), key=lambda q: left[q] - done[q]
    ):
        room, cut = most, {}
        for place, queue in enumerate(open_queues):
            # Rounded up for the shortest queues: with more queues than messages the first ones begin.
            share = -(-room // (len(open_queues) - place))
            take = min(share, left[queue] - done[queue], room)
            if take:
                cut[queue] = (done[queue], done[queue] + take)
                done[queue] += take
                room -= take
        yield cut


def of_round(rows: "DataFrame", spark: "SparkSession", cut: Mapping[Queue, tuple[int, int]]) -> "DataFrame":
    """The numbered rows of one round, each queue in its order."""
    schema = StructType(
        [
            StructField("from_topic", StringType()),
            StructField("from_brokerName", StringType()),
            StructField("from_queueId", IntegerType()),
            StructField("_begin", LongType()),
            StructField("_end", LongType()),
        ]
    )
    ranges = spark.createDataFrame([(*queue, *bounds) for queue, bounds in cut.items()], schema)
    joined = rows.join(fn.broadcast(ranges), [f"from_{name}" for name in _QUEUE])
    inside = (fn.col("_number") >= fn.col("_begin")) & (fn.col("_number") < fn.col("_end"))
    return joined.where(inside).drop("_begin", "_end")


def checked_target(to: str | None) -> None:
    """Raises ConfigError for a topic that applications do not send to."""
    if to is not None and (is_system_topic(to) or to.startswith((RETRY_PREFIX, DLQ_PREFIX))):
        raise ConfigError(f"--to {to} is a topic of the system: choose one of your own")


# ── the sentence ─────────────────────────────────────────────────────────────────────────────────────────────────────


@dataclass(frozen=True)
class Sending:
    """How the sink is told to send."""

    options: Mapping[str, str]  # of format("rocketmq"): which cluster
    rate: float  # messages per second
    round_s: float = 1.0

    def __post_init__(self) -> None:
        if self.rate <= 0 or self.round_s <= 0:
            raise ConfigError("--rate is a number of messages per second, more than 0")

    @property
    def per_round(self) -> int:
        return max(1, int(self.rate * self.round_s))


def run(
    spark: "SparkSession",
    messages: "DataFrame",
    to: str | None,
    progress: ReplayProgress,
    sending: Sending | None,
    clock: Clock | None = None,
    wait: Callable[[float], None] = time.sleep,
) -> Report:
    """Send what earlier runs have not sent; without `sending` only count it (a dry run)."""
    checked_target(to)
    rows = remaining(outgoing(messages, to), spark, progress.next_offsets).cache()
    try:
        tables = {"messages": table(counts(rows)), "refused": table(refusals(rows))}
        planned = sum(tables["messages"]["messages"].to_pylist())
        if sending is not None and planned:
            _send(spark, numbered(rows), _left(tables["messages"].to_pylist()), progress, sending, clock, wait)
    finally:
        rows.unpersist()
    verb = "would be sent (dry run: nothing was)" if sending is None else "sent"
    notes = [f"{planned:,} messages {verb}; {progress.sent:,} in all runs of this replay", f"progress: {progress.path}"]
    facts = {"planned": planned, "sentInAllRuns": progress.sent, "dryRun": sending is None}
    found = tables["messages"].to_pylist()
    names_of_queues = [f"{row['topic']} {row['brokerName']}:{row['queueId']}" for row in found]
    series = {"messages": [float(row["messages"]) for row in found]}
    plots = [Plot("Messages by queue", "bar", names_of_queues, series, "messages")]
    return Report("Replay", tables, plots, tables["refused"].num_rows, notes, facts)


def _left(rows: list[dict[str, object]]) -> dict[Queue, int]:
    left: dict[Queue, int] = {}
    for row in rows:
        queue = Queue(str(row["topic"]), str(row["brokerName"]), int(str(row["queueId"])))
        left[queue] = left.get(queue, 0) + int(str(row["messages"]))
    return left


def _send(
    spark: "SparkSession",
    rows: "DataFrame",
    left: Mapping[Queue, int],
    progress: ReplayProgress,
    sending: Sending,
    clock: Clock | None,
    wait: Callable[[float], None],
) -> None:
    clock = clock or SystemClock()
    rows = rows.cache()
    due = clock.monotonic()
    records = str(progress.path.parent / f"{progress.path.stem}.sink")
    try:
        for cut in rounds(left, sending.per_round):
            wait(max(0.0, due - clock.monotonic()))
            # From now on, not from when it was due: time lost by a slow round is not made up by a burst.
            due = clock.monotonic() + sending.round_s
            of_now = of_round(rows, spark, cut)
            _write(of_now, sending.options, progress.round_name, records)
            count = sum(end - begin for begin, end in cut.values())
            progress.advance(_ends(of_now), count)
    finally:
        rows.unpersist()


def _ends(rows: "DataFrame") -> dict[Queue, int]:
    queues = [f"from_{name}" for name in _QUEUE]
    found = rows.groupBy(*queues).agg((fn.max("from_queueOffset") + 1).alias("end")).collect()
    return {Queue(row[0], row[1], row[2]): row[3] for row in found}


def _write(rows: "DataFrame", options: Mapping[str, str], round_name: str, records: str) -> None:
    order = [f"from_{name}" for name in PLACE]
    by_queue = rows.repartition(*(fn.col(name) for name in order[:3])).sortWithinPartitions(*order)
    columns = ("topic", "body", "keys", "tags", "shardingKey", "properties", "messageId")
    writer = by_queue.select(*columns).write.format("rocketmq").mode("append").options(**options)
    writer.option("jobId", round_name).option("checkpointLocation", records).save()


def read_list(spark: "SparkSession", path: Path) -> "DataFrame":
    """Places from a Parquet file, as the job `dlq` writes it; raises ConfigError."""
    if not path.exists():
        raise ConfigError(f"--list {path} does not exist: the job dlq writes it with --out as letters.parquet")
    listed = spark.read.parquet(str(path))
    missing = [name for name in PLACE if name not in listed.columns]
    if missing:
        raise ConfigError(f"--list {path} has no column {', '.join(missing)}: it needs {', '.join(PLACE)}")
    return listed
