"""The two tables that `lag` takes, samples and messages, read in this process."""

from collections.abc import Mapping, Sequence
from functools import cached_property
from pathlib import Path

import pyarrow as pa
from pyspark.sql.datasource import InputPartition

from skyrocket.columns.schema import arrow_schema
from skyrocket.pipeline.jobs.inputs import Store
from skyrocket.pipeline.jobs.lag.inputs import consumed_in, stand_options
from skyrocket.pipeline.jobs.lag.job import MESSAGE_COLUMNS
from skyrocket.pipeline.jobs.local.lag import store_samples
from skyrocket.pipeline.jobs.local.reading import Amount, LocalRead, messages_of, read_all
from skyrocket.pipeline.schema import spark_schema
from skyrocket.pipeline.topic_source.batch import TopicReader


class ClusterRead:
    """Samples were taken; the messages at which groups stood are read from the brokers."""

    def __init__(self, options: Mapping[str, str], samples: pa.Table) -> None:
        self._samples = samples
        self._options = stand_options(options, samples)

    @cached_property
    def amount(self) -> Amount:
        """How many messages are read."""
        return messages_of(self._planned[1] if self._planned is not None else [])

    def tables(self) -> tuple[pa.Table, pa.Table]:
        """Samples and messages."""
        schema = arrow_schema(MESSAGE_COLUMNS)
        return self._samples, schema.empty_table() if self._planned is None else read_all(*self._planned, schema)

    @cached_property
    def _planned(self) -> tuple[TopicReader, Sequence[InputPartition]] | None:
        if self._options is None:
            return None
        reader = TopicReader(self._options, spark_schema(MESSAGE_COLUMNS))
        return reader, reader.partitions()


class StoreRead:
    """Committed offsets come from the broker's file, queues and times from the log; raises ConfigError."""

    def __init__(self, store: Path, groups: Sequence[str], topics: Sequence[str]) -> None:
        self._committed = consumed_in(store, groups, topics)
        self._read = LocalRead(Store(store), sorted({each.topic for each in self._committed}), MESSAGE_COLUMNS)

    @property
    def amount(self) -> Amount:
        """How much log is read."""
        return self._read.amount

    def tables(self) -> tuple[pa.Table, pa.Table]:
        """Samples and messages."""
        rows = self._read.table()
        return store_samples(self._committed, rows), rows
