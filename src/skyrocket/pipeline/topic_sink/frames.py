"""DataFrame → DataFrame steps before a write: rows of one key together, and an id from where a row was read."""

from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

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
