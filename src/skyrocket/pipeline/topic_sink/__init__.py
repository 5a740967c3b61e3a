"""format("rocketmq") to write to: DataFrames and streams into topics (docs/guides/spark-source-and-sink.md, Writing).

input_columns, settings     what may be given, checked before anything is sent
rows, requests, spreading   Arrow columns ▸ batch requests
identity, stored_ids        which row a message is, and what is there already
queue_senders, timed_rows   sending
batch_records, settlement   what survives a crash; equal rows
task, writers               one partition; the whole write
outbox, publishing          exactly-once: tasks put rows aside, the driver sends them when it has decided
"""

from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

__all__ = ["by_sharding_key", "with_message_id"]

_COORDINATES: Final = ("topic", "brokerName", "queueId", "queueOffset")


def by_sharding_key(frame: "DataFrame", column: str = "shardingKey", partitions: int | None = None) -> "DataFrame":
    """All rows of a key in one Spark partition: only then does the sink keep their order.

    Spark's shuffle keeps no order itself: where rows of a key come from several partitions, sort after it
    (`sortWithinPartitions`).
    """
    return frame.repartition(column) if partitions is None else frame.repartition(partitions, column)


def with_message_id(frame: "DataFrame", name: str = "messageId") -> "DataFrame":
    """A column that says where each row was read, for rows of format("rocketmq"): apply it before anything else."""
    from pyspark.sql import functions

    lacking = [column for column in _COORDINATES if column not in frame.columns]
    if lacking:
        raise ValueError(
            f"rows have no {', '.join(lacking)}: with_message_id takes rows as format('rocketmq') reads them"
        )
    return frame.withColumn(name, functions.concat_ws("/", *_COORDINATES))
