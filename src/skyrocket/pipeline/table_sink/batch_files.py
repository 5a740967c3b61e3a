"""A batch as Parquet files, written by Spark's tasks into a directory of its own: nobody reads them before a commit."""

import contextlib
import shutil
import uuid
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Final
from urllib.parse import unquote

import pyarrow.parquet as pq

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

_NULL: Final = "__HIVE_DEFAULT_PARTITION__"
_TIMESTAMPS: Final = "spark.sql.parquet.outputTimestampType"
_FOLDER: Final = "skyrocket_partition_"
"""Before a number: a column that is written as directories alone."""


@dataclass(frozen=True)
class BatchFile:
    path: Path
    rows: int
    size: int
    partition: Mapping[str, str | None]  # values of the columns that its directories name


def location_of(path: Path) -> str:
    """As Hadoop and Iceberg read it: nothing is escaped, nor is an escape undone: a blank would become %20 for good."""
    return f"file://{path.absolute()}"


def written_files(
    rows: "DataFrame", directory: str, partition_by: Sequence[str], *, keeps_columns: bool = False
) -> list[BatchFile]:
    """Write these rows; the files that hold any. `keeps_columns`: files hold the columns that they are parted by."""
    if keeps_columns and partition_by:
        rows, partition_by = _with_folders(rows, partition_by)
    # A new name for each attempt: one that is believed dead and still commits must find its own files.
    home = Path(directory) / "batches" / uuid.uuid4().hex
    try:
        with _readable_timestamps(rows.sparkSession):
            writer = rows.write.mode("error")
            (writer.partitionBy(*partition_by) if partition_by else writer).parquet(location_of(home))
    except BaseException:
        # Not later: a commit that fails may have been written all the same, and its files are needed then.
        shutil.rmtree(home, ignore_errors=True)
        raise
    return [each for path in sorted(home.rglob("*.parquet")) if (each := _file(home, path)).rows]


def _with_folders(rows: "DataFrame", columns: Sequence[str]) -> "tuple[DataFrame, list[str]]":
    """Spark leaves a column that it parts by out of the files: so a text of it is what parts them."""
    from pyspark.sql import functions as fn
    from pyspark.sql.types import TimestampType

    texts = {}
    for number, name in enumerate(columns):
        value = rows[f"`{name}`"]
        # A local time comes twice when clocks are set back; and a directory for "" would be the one for NULL.
        exact = fn.unix_micros(value) if isinstance(rows.schema[name].dataType, TimestampType) else value
        texts[f"{_FOLDER}{number}"] = fn.concat(fn.lit("="), exact.cast("string"))
    return rows.withColumns(texts), list(texts)


@contextlib.contextmanager
def _readable_timestamps(spark: "SparkSession") -> Iterator[None]:
    """Spark's usual INT96 has no unit and no statistics; tables want microseconds."""
    before = spark.conf.get(_TIMESTAMPS)
    spark.conf.set(_TIMESTAMPS, "TIMESTAMP_MICROS")
    try:
        yield
    finally:
        spark.conf.set(_TIMESTAMPS, before or "INT96")


def _file(home: Path, path: Path) -> BatchFile:
    folders = [folder.partition("=") for folder in path.relative_to(home).parts[:-1]]
    partition = {unquote(name): None if value == _NULL else unquote(value) for name, _, value in folders}
    return BatchFile(path, pq.read_metadata(path).num_rows, path.stat().st_size, partition)
