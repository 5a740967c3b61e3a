"""What Spark sees of format("rocketmq-commitlog"): schema, partitions, reading.

Everything here is pickled between processes: settings and splits only, no open files.
"""

from collections.abc import Iterator, Sequence

import pyarrow as pa
from pyspark.sql.datasource import DataSource, DataSourceReader, InputPartition
from pyspark.sql.pandas.types import from_arrow_schema
from pyspark.sql.types import StructType

from skyrocket.columns.schema import arrow_schema
from skyrocket.errors import ConfigError
from skyrocket.pipeline.commit_log.damage import DAMAGE_SCHEMA
from skyrocket.pipeline.commit_log.log_files import find_log_files, first_store_timestamp
from skyrocket.pipeline.commit_log.reading import SplitReader
from skyrocket.pipeline.commit_log.settings import FORMAT, CommitLogSettings, read_settings
from skyrocket.pipeline.commit_log.splits import Split, gaps, plan, within_times
from skyrocket.pipeline.schema import wanted_schema
from skyrocket.pipeline.task_process import spare_loaded_objects


class SplitPartition(InputPartition):
    """One task: one split, None when there is nothing to read."""

    def __init__(self, split: Split | None) -> None:
        super().__init__(split)
        self.split = split


class CommitLogReader(DataSourceReader):
    """Plans on the driver, reads in the tasks."""

    def __init__(self, settings: CommitLogSettings, wanted: pa.Schema) -> None:
        self.settings = settings
        self.wanted = wanted

    def partitions(self) -> Sequence[InputPartition]:
        """The splits of all stores; files are looked at here once, and the list stays with the DataFrame."""
        splits = plan_splits(self.settings)
        # Spark takes an empty list for "one partition without a value".
        return [SplitPartition(split) for split in splits] or [SplitPartition(None)]

    def read(self, partition: InputPartition) -> Iterator[pa.RecordBatch]:
        """The batches of one split."""
        assert isinstance(partition, SplitPartition)
        if partition.split is None:
            return iter(())
        return self._rows(partition.split)

    def _rows(self, split: Split) -> Iterator[pa.RecordBatch]:
        reader = SplitReader(split, self.settings, self.wanted)
        try:
            yield from reader.damaged_regions() if self.settings.damage_view else reader.messages()
        finally:
            spare_loaded_objects()


class CommitLogDataSource(DataSource):
    """The log of a store as a table."""

    @classmethod
    def name(cls) -> str:
        """What stands in format(…)."""
        return FORMAT

    def schema(self) -> StructType:
        """The row schema of messages, or of damaged regions."""
        settings = read_settings(self.options)
        return from_arrow_schema(DAMAGE_SCHEMA if settings.damage_view else arrow_schema(None, settings.properties))

    def reader(self, schema: StructType) -> DataSourceReader:
        """For spark.read; a schema with fewer columns is read faster."""
        settings = read_settings(self.options)
        if settings.damage_view:
            return CommitLogReader(settings, _damage_columns(schema))
        return CommitLogReader(settings, wanted_schema(schema, settings.properties))


def plan_splits(settings: CommitLogSettings) -> list[Split]:
    """The splits of all paths."""
    splits: list[Split] = []
    for path, broker_name in zip(settings.paths, settings.broker_names, strict=True):
        files = find_log_files(path)
        chosen = within_times(files, settings.bounds, first_store_timestamp)
        splits += plan(chosen, gaps(files, broker_name), settings.bounds, settings.split_bytes, broker_name)
    return splits


def _damage_columns(schema: StructType) -> pa.Schema:
    unknown = [name for name in schema.names if name not in DAMAGE_SCHEMA.names]
    if unknown:
        known = ", ".join(DAMAGE_SCHEMA.names)
        raise ConfigError(f"the view damage has no column {unknown[0]!r}; it has: {known}")
    return pa.schema([DAMAGE_SCHEMA.field(name) for name in schema.names])
