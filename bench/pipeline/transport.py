"""How fast this machine and Spark are without us: ready Arrow batches from two Python tasks into the JVM.

Nothing is read or decoded, so its distance from the design's figure is the machine's, and the other lines can be judged
by it: with bodies alone, as the design measured it, and with all columns of a message, above which no source can come.
"""

from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING

import pyarrow as pa
from pyspark.sql.datasource import DataSource, DataSourceReader, InputPartition
from pyspark.sql.types import StructType

from bench.pipeline.logs import LogShape
from bench.pipeline.measure import Rate, best_of
from skyrocket.columns import decode_parts
from skyrocket.columns.schema import arrow_schema
from skyrocket.format.column_walk import ColumnWalk
from skyrocket.format.record_columns import Parts
from skyrocket.pipeline.commit_log.log_files import mapped
from skyrocket.pipeline.schema import spark_schema, wanted_schema

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

_TASKS = 2


class ReadyBatches(DataSourceReader):
    """The first batch of a log again and again."""

    def __init__(self, log_file: str, rows: int, wanted: pa.Schema) -> None:
        self._log_file, self._rows, self._wanted = log_file, rows, wanted

    def partitions(self) -> list[InputPartition]:
        return [InputPartition(number) for number in range(_TASKS)]

    def read(self, partition: InputPartition) -> Iterator[pa.RecordBatch]:
        with mapped(self._log_file) as buffer:
            parts = next(iter(ColumnWalk(buffer, 0, len(buffer), 0)))
            assert isinstance(parts, Parts)
            batch = decode_parts(buffer, parts, self._wanted, "a")
        left = self._rows // _TASKS
        while left > 0:
            piece = batch.slice(0, left)
            left -= piece.num_rows
            yield piece


class ReadySource(DataSource):
    """format("bench-ready")."""

    @classmethod
    def name(cls) -> str:
        return "bench-ready"

    def schema(self) -> StructType:
        return spark_schema()

    def reader(self, schema: StructType) -> DataSourceReader:
        return ReadyBatches(self.options["path"], int(self.options["rows"]), wanted_schema(schema))


def transport(spark: "SparkSession", store: Path, shape: LogShape, log_bytes: int, times: int) -> list[Rate]:
    """As many rows as the log has."""
    rows = shape.messages // _TASKS * _TASKS
    small = shape.body_bytes <= 256
    spark.dataSource.register(ReadySource)
    log_file = sorted((store / "commitlog").iterdir())[0]

    def to_nowhere(names: list[str]) -> None:
        reader = spark.read.format("bench-ready").option("rows", str(rows)).schema(spark_schema(names))
        reader.load(str(log_file)).write.format("noop").mode("overwrite").save()

    def rate(what: str, names: list[str], log_bytes: int, design: float | None) -> Rate:
        to_nowhere(names)  # warm
        return Rate(what, rows, log_bytes, best_of(times, lambda: to_nowhere(names)), design)

    return [
        rate("control: ready bodies → noop", ["body"], rows * shape.body_bytes, 3.0 if small else 1.0),
        rate("control: ready rows of all columns → noop", arrow_schema().names, log_bytes, None),
    ]
