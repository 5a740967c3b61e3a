"""Topics with messages, and the topic source without Spark: planned and read in this process."""

from collections.abc import Iterable, Sequence
from typing import Any

from pyspark.sql.datasource import InputPartition

from skyrocket.client import Message
from skyrocket.pipeline.schema import spark_schema
from skyrocket.pipeline.topic_source.batch import TopicReader
from skyrocket.pipeline.topic_source.stream_reader import TopicStreamReader
from skyrocket.testing import LocalCluster


def filled(mq: LocalCluster, topic: str, count: int, first: int = 0, size: int = 0) -> None:
    """Messages b"0", b"1" … with tag even or odd, key k0, k1 …, and a property n."""
    with mq.producer() as producer:
        for number in range(first, first + count):
            producer.send(
                Message(
                    topic,
                    str(number).encode().ljust(size),
                    tags="odd" if number % 2 else "even",
                    keys=[f"k{number}", "all"],
                    properties={"n": str(number)},
                )
            )


def options_for(mq: LocalCluster, **options: object) -> dict[str, str]:
    """As Spark hands them over."""
    return {"namesrvaddr": mq.name_server_address, **{name.lower(): str(value) for name, value in options.items()}}


def batch_reader(mq: LocalCluster, columns: Iterable[str] | None = None, **options: object) -> TopicReader:
    """A batch over topics."""
    form: Any = options.get("properties", "map")
    return TopicReader(options_for(mq, **options), spark_schema(columns, form))


def stream_reader(mq: LocalCluster, columns: Iterable[str] | None = None, **options: object) -> TopicStreamReader:
    """A stream over topics; begins at the earliest message unless told otherwise."""
    given = {"startingOffsets": "earliest", "pollTimeoutMs": 100, **options}
    return TopicStreamReader(options_for(mq, **given), spark_schema(columns))


def rows_of(reader: TopicReader | TopicStreamReader, partitions: Sequence[InputPartition]) -> list[dict[str, Any]]:
    """All rows, in the order in which tasks give them."""
    return [row for part in partitions for batch in reader.read(part) for row in batch.to_pylist()]


def read_all(mq: LocalCluster, columns: Iterable[str] | None = None, **options: object) -> list[dict[str, Any]]:
    """The rows of a batch."""
    reader = batch_reader(mq, columns, **options)
    return rows_of(reader, reader.partitions())


def numbers(rows: Iterable[dict[str, Any]]) -> list[int]:
    """Which messages of `filled` these are, sorted."""
    return sorted(int(row["body"]) for row in rows)
