"""The messages of a job as an Arrow table: planned first, so that one knows how much there is, then read.

The readers are those of format("rocketmq") and format("rocketmq-commitlog"), which need Spark for nothing but to be
called by it.
"""

from collections.abc import Iterable, Sequence
from functools import cached_property
from pathlib import Path
from typing import Any, Final, NamedTuple

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.dataset as ds
from pyspark.sql.datasource import DataSourceReader, InputPartition

from skyrocket.columns.schema import arrow_schema
from skyrocket.pipeline.commit_log.data_source import CommitLogReader
from skyrocket.pipeline.commit_log.log_files import find_log_files
from skyrocket.pipeline.commit_log.settings import read_settings
from skyrocket.pipeline.file_systems import file_system
from skyrocket.pipeline.jobs.inputs import (
    ALWAYS,
    Archive,
    Input,
    Store,
    Topics,
    Window,
    archive_files,
    refuse_missing,
    store_options,
    topic_options,
)
from skyrocket.pipeline.schema import spark_schema
from skyrocket.pipeline.topic_source.batch import TopicReader
from skyrocket.pipeline.topic_source.reading import RangesPartition

# What one process reads and computes sooner than a JVM is there to begin, on the slowest machine that we know.
MOST_MESSAGES: Final = 500_000
MOST_LOG_BYTES: Final = 512 << 20
MOST_ARCHIVE_BYTES: Final = 64 << 20


class Amount(NamedTuple):
    """How much is to be read."""

    size: int
    unit: str
    most: int

    @property
    def is_small(self) -> bool:
        return self.size <= self.most

    def with_more(self, others: "Iterable[Amount]") -> "Amount":
        """Of one input, for rows of other topics too. A log is read twice then."""
        return self._replace(size=self.size + sum(each.size for each in others))

    def __str__(self) -> str:
        if self.unit.startswith("bytes"):
            return f"{self.size / 1e6:,.1f} MB{self.unit.removeprefix('bytes')}"
        return f"{self.size:,} {self.unit if self.size != 1 else self.unit.removesuffix('s')}"


class LocalRead:
    """Rows of some topics, given as names or as one regular expression; only these columns."""

    def __init__(
        self, source: Input, topics: Sequence[str] | str, columns: Sequence[str], window: Window = ALWAYS
    ) -> None:
        self._source = source
        self._topics = topics
        self._columns = list(columns)
        self._window = window

    @cached_property
    def amount(self) -> Amount:
        """How much it would be; raises what reading raises."""
        if isinstance(self._source, Topics):
            _, partitions = self._planned
            return messages_of(partitions)
        if isinstance(self._source, Store):
            self._planned  # noqa: B018 - raises for what is no store
            return log_amount(self._source.directory)
        files = archive_files(self._source, self._topics, self._window)
        loose = Path(self._source.directory).rglob("*.parquet") if files is None else ()
        size = sum(each.size for each in files or ()) + sum(each.stat().st_size for each in loose)
        return Amount(size, "bytes of Parquet", MOST_ARCHIVE_BYTES)

    def table(self) -> pa.Table:
        """All rows; raises what reading raises."""
        if isinstance(self._source, Archive):
            rows = self._archived(self._source)
        else:
            reader, partitions = self._planned
            rows = read_all(reader, partitions, arrow_schema(self._needed))
        if not isinstance(self._source, Topics):
            rows = rows.filter(self._is_wanted(rows))
        return rows.select(self._columns)

    @property
    def _needed(self) -> list[str]:
        """A cluster has chosen by topic and time when it answers; rows of files are compared here."""
        if isinstance(self._source, Topics):
            return self._columns
        return list(dict.fromkeys([*self._columns, "topic", "storeTimestamp"]))

    @cached_property
    def _planned(self) -> tuple[DataSourceReader, Sequence[InputPartition]]:
        reader: DataSourceReader
        if isinstance(self._source, Topics):
            options = topic_options(self._source, self._topics, self._window)
            reader = TopicReader(options, spark_schema(self._needed))
        else:
            assert isinstance(self._source, Store)
            settings = read_settings(store_options(self._source, self._topics, self._window))
            reader = CommitLogReader(settings, arrow_schema(self._needed))
        return reader, reader.partitions()

    def _archived(self, source: Archive) -> pa.Table:
        files = archive_files(source, self._topics, self._window)
        if files is not None and not files:
            return arrow_schema(self._needed).empty_table()
        held: Any
        if files is None:
            held = ds.dataset(source.directory, format="parquet", partitioning="hive")
        else:
            system, root = file_system(str(source.directory))
            held = ds.dataset(
                [f"{root.rstrip('/')}/{each.path}" for each in files], format="parquet", filesystem=system
            )
        refuse_missing(source, self._needed, held.schema.names)
        return held.to_table(self._needed).cast(arrow_schema(self._needed))

    def _is_wanted(self, rows: pa.Table) -> Any:
        if isinstance(self._topics, str):
            chosen = pc.match_substring_regex(rows["topic"], f"^(?:{self._topics})$")
        else:
            chosen = pc.is_in(rows["topic"], pa.array(self._topics, pa.string()))
        stored_ms = pc.cast(rows["storeTimestamp"], pa.timestamp("ms", "UTC"), safe=False).cast(pa.int64())
        if self._window.since_ms is not None:
            chosen = pc.and_(chosen, pc.greater_equal(stored_ms, self._window.since_ms))
        if self._window.until_ms is not None:
            chosen = pc.and_(chosen, pc.less(stored_ms, self._window.until_ms))
        return chosen


def read_all(reader: DataSourceReader, partitions: Iterable[InputPartition], schema: pa.Schema) -> pa.Table:
    """What the tasks of a reader would read."""
    return pa.Table.from_batches(_batches(reader, partitions), schema)


def _batches(reader: DataSourceReader, partitions: Iterable[InputPartition]) -> "Iterable[pa.RecordBatch]":
    for partition in partitions:
        for batch in reader.read(partition):
            assert isinstance(batch, pa.RecordBatch), "our readers give no rows one by one"
            yield batch


def messages_of(partitions: Iterable[InputPartition]) -> Amount:
    """What the tasks of a topic reader would read together."""
    ranges = (each for part in partitions if isinstance(part, RangesPartition) for each in part.ranges)
    return Amount(sum(each.end - each.begin for each in ranges), "messages", MOST_MESSAGES)


def log_amount(store: Path) -> Amount:
    """What a log takes on disk: the file that is written is as long as the others, and mostly a hole."""
    files = (Path(each.path).stat() for each in find_log_files(str(store)))
    size = sum(min(each.st_size, each.st_blocks * 512) for each in files)
    return Amount(size, "bytes of log", MOST_LOG_BYTES)
