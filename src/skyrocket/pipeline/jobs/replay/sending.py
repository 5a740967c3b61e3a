"""Round after round: a job of Spark each, whose tasks hold each portion back until its time (`sendAfter`)."""

from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING, Any, Final

from pyspark.sql import functions as fn

from skyrocket.clock import Clock
from skyrocket.model.message_queue import MessageQueue
from skyrocket.pipeline.jobs.replay.progress import ReplayProgress
from skyrocket.pipeline.jobs.replay.rounds import Portion, Sending
from skyrocket.pipeline.jobs.replay.steps import PLACE, QUEUE

if TYPE_CHECKING:
    from pyspark.sql import Column, DataFrame, SparkSession

_QUEUE: Final = [f"from_{name}" for name in QUEUE]
_QUEUE_DDL: Final = "from_topic string, from_brokerName string, from_queueId int"


def send(
    spark: "SparkSession",
    rows: "DataFrame",
    left: Mapping[MessageQueue, int],
    progress: ReplayProgress,
    sending: Sending,
    clock: Clock,
    wait: Callable[[float], None],
) -> None:
    """Send numbered rows, as many of each queue as are left."""
    rows = rows.cache()
    due = clock.monotonic()
    records = str(progress.path.parent / f"{progress.path.stem}.sink")
    try:
        begun = _begun(rows, spark, progress.under_way)
        if progress.under_way and not begun:  # what it had is gone from the source
            progress.advance(progress.under_way, 0)
        for portions in sending.rounds(left, begun):
            wait(max(0.0, due - clock.monotonic()))
            of_now = of_round(rows, spark, portions, sending)
            if not progress.under_way:
                progress.begin(_ends(of_now))
            _write(of_now, sending.options, progress.round_name, records)
            # After the last portion, not after the first was due: time lost by a slow round is not made up by a burst.
            due = clock.monotonic() + sending.every_s
            count = sum(end - begin for portion in portions for begin, end in portion.values())
            progress.advance(progress.under_way, count)
    finally:
        rows.unpersist()


def of_round(rows: "DataFrame", spark: "SparkSession", portions: Sequence[Portion], sending: Sending) -> "DataFrame":
    """The numbered rows of one round; `sendAfter` is the time of each one's portion, in ms since the round began."""
    queues: dict[MessageQueue, list[Any]] = {}
    for place, portion in enumerate(portions):
        for queue, (begin, end) in portion.items():
            queues.setdefault(queue, [*queue, begin, []])[-1].append((end, sending.time_ms(place)))
    schema = f"{_QUEUE_DDL}, _begin bigint, _portions array<struct<end: bigint, after: bigint>>"
    joined = rows.join(fn.broadcast(spark.createDataFrame(list(queues.values()), schema)), _QUEUE)
    number = fn.col("_number")
    last = fn.element_at("_portions", -1)["end"]
    first_behind = fn.filter("_portions", lambda portion: number < portion["end"])[0]
    inside = joined.where((number >= fn.col("_begin")) & (number < last))
    return inside.withColumn("sendAfter", first_behind["after"]).drop("_begin", "_portions")


def _begun(rows: "DataFrame", spark: "SparkSession", ends: Mapping[MessageQueue, int]) -> dict[MessageQueue, int]:
    """How many rows of each queue are before the end of a round."""
    if not ends:
        return {}
    table = spark.createDataFrame([(*queue, end) for queue, end in ends.items()], f"{_QUEUE_DDL}, _end bigint")
    return _of_queues(rows.join(fn.broadcast(table), _QUEUE).where("from_queueOffset < _end"), fn.count("*"))


def _ends(rows: "DataFrame") -> dict[MessageQueue, int]:
    return _of_queues(rows, fn.max("from_queueOffset") + 1)


def _of_queues(rows: "DataFrame", number: "Column") -> dict[MessageQueue, int]:
    found = rows.groupBy(*_QUEUE).agg(number).collect()
    return {MessageQueue(row[0], row[1], row[2]): row[3] for row in found}


def _write(rows: "DataFrame", options: Mapping[str, str], round_name: str, records: str) -> None:
    order = [f"from_{name}" for name in PLACE]
    by_queue = rows.repartition(*(fn.col(name) for name in order[:3])).sortWithinPartitions("sendAfter", *order)
    columns = ("topic", "body", "keys", "tags", "shardingKey", "properties", "messageId", "sendAfter")
    writer = by_queue.select(*columns).write.format("rocketmq").mode("append").options(**options)
    writer.option("jobId", round_name).option("checkpointLocation", records).save()
