"""Delta and Iceberg tables as sinks: Spark's tasks write Parquet files, the driver lists them in one commit.

The commit also notes which batch of which query it was. A batch that comes again after it was committed finds that
note, and adds nothing: each row is in the table once. Files of a batch that was never committed belong to no table;
the tools that clean such tables (VACUUM, removal of orphan files) delete them.
"""

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Final, Protocol

from skyrocket.errors import SkyrocketError
from skyrocket.pipeline.table_sink.batch_files import BatchFile, written_files
from skyrocket.pipeline.table_sink.batches import BatchId

if TYPE_CHECKING:
    from pyspark.sql import DataFrame
    from pyspark.sql.types import StructType

_QUERY_ID: Final = "sql.streaming.queryId"


class TableSink(Protocol):
    """A table that files can be added to."""

    @property
    def directory(self) -> str:
        """Where files of the table lie."""

    @property
    def keeps_columns(self) -> bool:
        """Whether files hold the columns that they are parted by."""

    def holds(self, batch: BatchId) -> bool:
        """Whether the batch, or a later one of its query, was committed."""

    def add(self, files: Sequence[BatchFile], schema: "StructType", batch: BatchId | None) -> None:
        """List the files in one commit, together with the batch that they are."""


def append_batch(
    kind: str, options: Mapping[str, str], partition_by: Sequence[str], rows: "DataFrame", number: int
) -> None:
    """One micro-batch of a query, for `foreachBatch`: a batch that is in the table is not written again."""
    # The query's id is kept by its checkpoint: who begins with a new one begins anew with batch 0, which is no repeat.
    query = rows.sparkSession.sparkContext.getLocalProperty(_QUERY_ID)
    if query is None:
        raise SkyrocketError(f"Spark does not say which query batch {number} belongs to: it cannot be written once")
    _append(_sink(kind, options, partition_by), rows, partition_by, BatchId(query, number))


def append_rows(kind: str, options: Mapping[str, str], partition_by: Sequence[str], rows: "DataFrame") -> None:
    """All rows of a frame that has an end; written again when it is called again."""
    _append(_sink(kind, options, partition_by), rows, partition_by, None)


def _sink(kind: str, options: Mapping[str, str], partition_by: Sequence[str]) -> TableSink:
    """Each needs a package of its own, so the other one's is not asked for."""
    if kind == "delta":
        from skyrocket.pipeline.table_sink.delta import DeltaSink

        return DeltaSink(options, partition_by)
    from skyrocket.pipeline.table_sink.iceberg import IcebergSink

    return IcebergSink(options, partition_by)


def _append(sink: TableSink, rows: "DataFrame", partition_by: Sequence[str], batch: BatchId | None) -> None:
    if batch is not None and sink.holds(batch):
        return
    files = written_files(rows, sink.directory, partition_by, keeps_columns=sink.keeps_columns)
    if not files:
        return
    try:
        sink.add(files, rows.schema, batch)
    except SkyrocketError:
        raise
    except Exception as error:  # of packages that raise whatever they like
        said = " ".join(str(error).split())
        raise SkyrocketError(f"the table in {sink.directory} cannot be written: {said}") from error
