"""How fast this machine and Spark are without us: ready Arrow batches from two Python tasks into the JVM.

Nothing is read or decoded, so its distance from the design's figure is the machine's, and the other lines can be judged
by it.
"""

from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING

import pyarrow as pa
from pyspark.sql.datasource import DataSource, DataSourceReader, InputPartition
from pyspark.sql.types import StructType

from bench.pipeline.logs import LogShape
from bench.pipeline.measure import Rate, best_of

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

_BATCH = 8192
_TASKS = 2


class ReadyBatches(DataSourceReader):
    """The same batch again and again."""

    def __init__(self, rows: int, size: int) -> None:
        self._rows, self._size = rows, size

    def partitions(self) -> list[InputPartition]:
        return [InputPartition(number) for number in range(_TASKS)]

    def read(self, partition: InputPartition) -> Iterator[pa.RecordBatch]:
        batch = pa.record_batch({"body": pa.array([b"x" * self._size] * _BATCH, pa.binary())})
        for _ in range(self._rows // _TASKS // _BATCH):
            yield batch


class ReadySource(DataSource):
    """format("bench-ready")."""

    @classmethod
    def name(cls) -> str:
        return "bench-ready"

    def schema(self) -> str:
        return "body binary"

    def reader(self, schema: StructType) -> DataSourceReader:
        return ReadyBatches(int(self.options["rows"]), int(self.options["size"]))


def transport(spark: "SparkSession", store: Path, shape: LogShape, log_bytes: int, times: int) -> list[Rate]:
    """Four million rows, so that starting the job does not count."""
    rows = 4_000_000 // (_TASKS * _BATCH) * _TASKS * _BATCH
    spark.dataSource.register(ReadySource)
    reader = spark.read.format("bench-ready").option("rows", str(rows)).option("size", str(shape.body_bytes))

    def to_nowhere() -> None:
        reader.load().write.format("noop").mode("overwrite").save()

    to_nowhere()  # warm
    small = shape.body_bytes <= 256
    seconds = best_of(times, to_nowhere)
    return [Rate("control: ready batches → noop", rows, rows * shape.body_bytes, seconds, 3.0 if small else 1.0)]
