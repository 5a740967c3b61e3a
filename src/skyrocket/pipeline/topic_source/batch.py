"""spark.read.format("rocketmq"): what the queues hold between two positions.

Spark plans once for the life of a DataFrame: `endingOffsets=latest` is the end at its first use. Load again to see
more.
"""

from collections.abc import Iterator, Mapping, Sequence

import pyarrow as pa
from pyspark.sql.datasource import DataSourceReader, InputPartition
from pyspark.sql.types import StructType

from skyrocket.pipeline.schema import wanted_schema
from skyrocket.pipeline.topic_source.connection import run
from skyrocket.pipeline.topic_source.loss import beyond_the_end, clamped, decide, losses_of
from skyrocket.pipeline.topic_source.positions import EARLIEST, LATEST, resolved
from skyrocket.pipeline.topic_source.queues import BrokersAway, Queues
from skyrocket.pipeline.topic_source.reading import RangesPartition, read_ranges
from skyrocket.pipeline.topic_source.settings import TopicSettings, read_settings
from skyrocket.pipeline.topic_source.splits import ranges_of, tasks_of


class TopicReader(DataSourceReader):
    """A batch over topics."""

    def __init__(self, options: Mapping[str, str], schema: StructType) -> None:
        self._settings = read_settings(options, streaming=False)
        self._schema = wanted_schema(schema, self._settings.properties)

    def partitions(self) -> Sequence[InputPartition]:
        """One per task; raises what is wrong with topics, offsets or brokers."""
        return run(_planned(self._settings))

    def read(self, partition: InputPartition) -> Iterator[pa.RecordBatch]:
        """The rows of one task, as Arrow batches."""
        assert isinstance(partition, RangesPartition)
        return read_ranges(self._settings, self._schema, partition.ranges)


async def _planned(settings: TopicSettings) -> list[InputPartition]:
    queues = Queues(settings)
    seen = await queues.look()
    if seen.away:
        raise BrokersAway(str(settings.subscribed), seen.away, settings.transport.retry_interval_ms / 1000)
    start = await resolved(settings.start, seen.bounds, queues, unnamed=EARLIEST)
    end = await resolved(settings.end, seen.bounds, queues, unnamed=LATEST)
    losses = losses_of(start, seen.bounds) + beyond_the_end(end, seen.bounds)
    decide(losses, fails=settings.fail_on_data_loss)
    ranges = ranges_of(clamped(start, seen.bounds), clamped(end, seen.bounds))
    tasks = tasks_of(ranges, settings.least_tasks, settings.most_records)
    # Spark takes an empty list for one partition of its own.
    return [RangesPartition(task) for task in tasks] or [RangesPartition()]
