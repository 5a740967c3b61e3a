"""From messages to what the sink takes: DataFrame → DataFrame."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

from pyspark.sql import Window as SqlWindow
from pyspark.sql import functions as fn

from skyrocket.client.consumer.dead_letter_cause import CAUSE_PROPERTIES
from skyrocket.model import property_names as names
from skyrocket.model.message_queue import MessageQueue

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

REPLAY_FROM: Final = "REPLAY_FROM"
REPLAY_ID: Final = "REPLAY_ID"
MESSAGE_COLUMNS: Final = (
    *("topic", "brokerName", "queueId", "queueOffset", "msgId", "uniqKey", "keys", "tags", "storeTimestamp"),
    *("body", "properties"),
)
PLACE: Final = ["topic", "brokerName", "queueId", "queueOffset"]
QUEUE: Final = ["topic", "brokerName", "queueId"]
# Of an earlier life, or of the system: the new message gets its own.
_NOT_KEPT: Final = sorted({*names.RESERVED, *CAUSE_PROPERTIES, names.SHARDING_KEY, REPLAY_FROM, REPLAY_ID})
_DLQ_ORIGIN_TOPIC: Final = "DLQ_ORIGIN_TOPIC"


@dataclass(frozen=True)
class Choice:
    """Which messages; what is not given does not matter. Times are the input's business."""

    keys: Sequence[str] = ()
    tags: Sequence[str] = ()


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
        # What was sent by a replay is not an original; sending it into its own topic would never end.
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


def remaining(rows: "DataFrame", spark: "SparkSession", next_offsets: Mapping[MessageQueue, int]) -> "DataFrame":
    """Without what earlier runs have sent."""
    if not next_offsets:
        return rows
    done = spark.createDataFrame(
        [(*queue, offset) for queue, offset in next_offsets.items()],
        "from_topic string, from_brokerName string, from_queueId int, nextOffset bigint",
    )
    joined = rows.join(fn.broadcast(done), [f"from_{name}" for name in QUEUE], "left")
    return joined.where(fn.col("from_queueOffset") >= fn.coalesce("nextOffset", fn.lit(0))).drop("nextOffset")


def numbered(rows: "DataFrame") -> "DataFrame":
    """With the number of each message among those of its queue that are sent, from 0."""
    window = SqlWindow.partitionBy(*(f"from_{name}" for name in QUEUE)).orderBy("from_queueOffset")
    return rows.where(fn.col("refused").isNull()).withColumn("_number", fn.row_number().over(window) - 1)


def counts(rows: "DataFrame") -> "DataFrame":
    """What a run would send, per target, source and queue."""
    by = [fn.col("topic").alias("to"), *(fn.col(f"from_{name}").alias(name) for name in QUEUE)]
    return (
        rows.groupBy(*by)
        .agg(
            fn.sum(fn.col("refused").isNull().cast("long")).alias("messages"),
            fn.sum(fn.length("body")).alias("bodyBytes"),
            fn.min("storeTimestamp").alias("firstStored"),
            fn.max("storeTimestamp").alias("lastStored"),
        )
        .orderBy("to", *QUEUE)
    )


def refusals(rows: "DataFrame") -> "DataFrame":
    """Messages that were chosen and cannot be sent, with the reason."""
    places = [fn.col(f"from_{name}").alias(name) for name in PLACE]
    return rows.where(fn.col("refused").isNotNull()).select(*places, fn.col("refused").alias("reason")).orderBy(*PLACE)
