"""spark.readStream.format("rocketmq"): offsets, planning and progress, in a process of its own beside the driver.

    latestOffset(start) ──▶ [wait for news] ──▶ limits ──▶ end ──▶ partitions(start, end) ──▶ tasks

Spark asks latestOffset with the end of a batch only when that batch is finished: that is when the group's progress is
told to the brokers. (`commit` comes one batch late, and never for the last one.)
"""

import asyncio
import logging
import time
from collections.abc import Iterator, Mapping, Sequence
from typing import Any, Final

import pyarrow as pa
from pyspark.sql.datasource import DataSourceStreamReader, InputPartition
from pyspark.sql.streaming.datasource import (
    ReadAllAvailable,
    ReadLimit,
    ReadMaxBytes,
    ReadMaxRows,
    SupportsTriggerAvailableNow,
)
from pyspark.sql.types import StructType

from skyrocket.client.consumer.queue_ranges import QueueRange
from skyrocket.errors import SkyrocketError
from skyrocket.model.message_queue import MessageQueue
from skyrocket.pipeline.options import OptionError
from skyrocket.pipeline.schema import wanted_schema
from skyrocket.pipeline.topic_source.connection import run
from skyrocket.pipeline.topic_source.initial_offsets import remembered
from skyrocket.pipeline.topic_source.loss import Loss, clamped, decide, losses_of
from skyrocket.pipeline.topic_source.offsets import Bounds, Offsets, flat, nested
from skyrocket.pipeline.topic_source.positions import EARLIEST, resolved
from skyrocket.pipeline.topic_source.queues import BrokersAway, Queues, Seen
from skyrocket.pipeline.topic_source.reading import RangesPartition, read_ranges
from skyrocket.pipeline.topic_source.settings import TopicSettings, read_settings
from skyrocket.pipeline.topic_source.splits import backlog, capped, heads, limited, ranges_of, started, tasks_of

_logger = logging.getLogger(__name__)

_FIRST_PAUSE: Final = 0.01
_LONGEST_PAUSE: Final = 0.1


class TopicStreamReader(DataSourceStreamReader, SupportsTriggerAvailableNow):
    """A stream over topics. Spark sends a copy of it to the tasks, which use `read` alone."""

    def __init__(self, options: Mapping[str, str], schema: StructType) -> None:
        self._settings = read_settings(options, streaming=True)
        self._schema = wanted_schema(schema, self._settings.properties)
        _check_start(self._settings)
        self._queues = Queues(self._settings)
        self._initial: Offsets | None = None
        self._target: Offsets | None = None  # of an AvailableNow run
        self._available_now = False
        self._latest: Offsets = {}
        self._committed: Offsets = {}
        self._away_since: float | None = None
        self._batch_ended = time.monotonic()

    # ── offsets ──────────────────────────────────────────────────────────────────────────────────────────────────────

    def initialOffset(self) -> dict[str, Any]:  # noqa: N802
        """Where the stream begins: equal at every call, also after a crash."""
        if self._initial is None:
            location = self._settings.initial_offsets
            self._initial = remembered(location, self._resolve) if location else self._resolve()
        return nested(self._initial)

    def _resolve(self) -> Offsets:
        return run(_resolved_start(self._settings, self._queues))

    def prepareForTriggerAvailableNow(self) -> None:  # noqa: N802
        """The goal is taken at the first look, which knows the offsets of before."""
        self._available_now = True

    def getDefaultReadLimit(self) -> ReadLimit:  # noqa: N802
        """How much a batch may read, as the options say."""
        limits = self._settings.limits
        if limits.most is not None:
            return ReadMaxRows(limits.most)
        return ReadAllAvailable() if limits.most_bytes is None else ReadMaxBytes(limits.most_bytes)

    def latestOffset(self, start: dict[str, Any], limit: ReadLimit) -> dict[str, Any]:  # noqa: N802
        """The end of the next batch; `start` itself when there is nothing to read."""
        return nested(run(self._latest_offset(flat(start), limit)))

    def reportLatestOffset(self) -> dict[str, Any] | None:  # noqa: N802
        """What the last look has seen."""
        return nested(self._latest) if self._latest else None

    async def _latest_offset(self, before: Offsets, limit: ReadLimit) -> Offsets:
        await self._commit_progress(before)
        seen, start, end = await self._news(before)
        if self._available_now:
            if self._target is None:
                self._target = dict(end)
            end = capped(end, self._target)
        elif not isinstance(limit, ReadAllAvailable) and self._holds_back(backlog(start, end)):
            return before
        if backlog(start, end) == 0:
            return self._unmoved(before, seen)
        self._batch_ended = time.monotonic()
        return before | await self._limited(start, end, limit)

    def _unmoved(self, before: Offsets, seen: Seen) -> Offsets:
        """Nothing to read; a queue that was cut (and may be: failOnDataLoss=false) goes on at its new end."""
        return {
            queue: min(offset, seen.bounds[queue].high) if queue in seen.bounds else offset
            for queue, offset in before.items()
        }

    async def _news(self, before: Offsets) -> tuple[Seen, Offsets, Offsets]:
        """Look until there is something to read, at most `pollTimeoutMs`."""
        deadline = time.monotonic() + (0 if self._available_now else self._settings.transport.poll_ms / 1000)
        pause = _FIRST_PAUSE
        while True:
            seen = await self._queues.look(list(before))
            self._judge(seen, before)
            start = started(before, seen.bounds)
            end = heads(start, seen.bounds)
            self._latest = end
            is_goal = self._available_now and self._target is None
            if is_goal and seen.away:  # what an absent broker has is a part of the goal: `_judge` limits the wait
                await asyncio.sleep(_LONGEST_PAUSE)
                continue
            if backlog(start, end) > 0 or time.monotonic() >= deadline:
                return seen, start, end
            await asyncio.sleep(pause)
            pause = min(pause * 2, _LONGEST_PAUSE)

    def _judge(self, seen: Seen, before: Offsets) -> None:
        """Raise for what must not be passed over."""
        fails = self._settings.fail_on_data_loss
        decide(losses_of(before, seen.bounds), fails=fails)
        deleted = [
            Loss(QueueRange(queue, offset, offset), "its broker has the topic no more")
            for queue, offset in sorted(before.items())
            if queue.topic in seen.gone
        ]
        decide(deleted, fails=fails)
        if not seen.away:
            self._away_since = None
            return
        now = time.monotonic()
        if self._away_since is None:
            self._away_since = now
            _logger.warning("brokers do not answer, going on without them brokers=%s", ", ".join(sorted(seen.away)))
        if (now - self._away_since) * 1000 >= self._settings.transport.absence_ms:
            raise BrokersAway(str(self._settings.subscribed), seen.away, now - self._away_since)

    def _holds_back(self, waiting: int) -> bool:
        limits = self._settings.limits
        if limits.least is None or waiting >= limits.least:
            return False
        return (time.monotonic() - self._batch_ended) * 1000 < limits.longest_delay_ms

    async def _limited(self, start: Offsets, end: Offsets, limit: ReadLimit) -> Offsets:
        if isinstance(limit, ReadAllAvailable):
            return end
        limits = self._settings.limits
        if limits.most is not None:
            end = limited(start, end, limits.most)
        if limits.most_bytes is not None:
            mean = await self._queues.mean_record_bytes(start, end)
            end = limited(start, end, max(int(limits.most_bytes / mean), 1))
        return end

    async def _commit_progress(self, finished: Offsets) -> None:
        if not self._settings.commits or (self._initial is not None and finished == self._initial):
            return
        news = {queue: offset for queue, offset in finished.items() if self._committed.get(queue) != offset}
        if not news:
            return
        try:
            await self._queues.commit(news)
        except SkyrocketError as error:  # lag is shown too high for a while; the checkpoint is what counts
            _logger.warning("progress was not told group=%s reason=%s", self._settings.group, error)
            return
        self._committed.update(news)

    # ── batches ──────────────────────────────────────────────────────────────────────────────────────────────────────

    def partitions(self, start: dict[str, Any], end: dict[str, Any]) -> Sequence[InputPartition]:
        """One per task; also for a batch that was begun before a crash."""
        return run(self._planned(flat(start), flat(end)))

    async def _planned(self, start: Offsets, end: Offsets) -> list[InputPartition]:
        settings = self._settings
        bounds = await self._bounds_for(start, end)
        begin = started(start, {queue: bounds[queue] for queue in end if queue in bounds})
        moving = {queue: offset for queue, offset in begin.items() if end.get(queue, offset) > offset}
        decide(losses_of(moving, bounds), fails=settings.fail_on_data_loss)
        ranges = ranges_of(clamped(moving, bounds), end)
        tasks = tasks_of(ranges, settings.least_tasks, settings.most_records)
        return [RangesPartition(task) for task in tasks] or [RangesPartition()]

    async def _bounds_for(self, start: Offsets, end: Offsets) -> dict[MessageQueue, Bounds]:
        """Of every queue that is to be read; a broker that is away is waited for, as long as is allowed."""
        needed = {queue for queue, offset in end.items() if offset > start.get(queue, -1)}
        began = time.monotonic()
        while True:
            seen = await self._queues.look(list(end))
            missing = needed - set(seen.bounds)
            if not missing:
                return seen.bounds
            deleted = [
                Loss(QueueRange(queue, start.get(queue, 0), end[queue]), "its broker has it no more")
                for queue in sorted(missing)
                if queue.topic in seen.gone
            ]
            if deleted:
                decide(deleted, fails=self._settings.fail_on_data_loss)
                return seen.bounds | {queue: Bounds(end[queue], end[queue]) for queue in missing}
            waited = time.monotonic() - began
            if waited * 1000 >= self._settings.transport.absence_ms:
                absent = seen.away or {queue.broker_name: SkyrocketError("not in the route") for queue in missing}
                raise BrokersAway(str(self._settings.subscribed), absent, waited)
            await asyncio.sleep(_LONGEST_PAUSE)

    def read(self, partition: InputPartition) -> Iterator[pa.RecordBatch]:
        """The rows of one task, as Arrow batches."""
        assert isinstance(partition, RangesPartition)
        return read_ranges(self._settings, self._schema, partition.ranges)

    def commit(self, end: dict[str, Any]) -> None:
        """Told by latestOffset instead, which comes earlier."""

    def stop(self) -> None:
        """Nothing to do: Spark calls it only after an error."""


def _check_start(settings: TopicSettings) -> None:
    if settings.start.is_fixed or settings.initial_offsets:
        return
    raise OptionError(
        f'option "{settings.start.option}" is {settings.start.kind.value}, which is another place each time it is '
        "asked: after a crash in the first batch messages would be lost. Use skyrocket.pipeline.read_stream(spark, "
        'checkpoint=…), which remembers it, or give .option("initialOffsetsLocation", "<checkpoint>/rocketmq.json"), '
        "or begin at earliest or at offsets"
    )


async def _resolved_start(settings: TopicSettings, queues: Queues) -> Offsets:
    began = time.monotonic()
    while True:
        seen = await queues.look()
        if not seen.away:
            break
        waited = time.monotonic() - began
        if waited * 1000 >= settings.transport.absence_ms:
            raise BrokersAway(str(settings.subscribed), seen.away, waited)
        await asyncio.sleep(_LONGEST_PAUSE)
    start = await resolved(settings.start, seen.bounds, queues, unnamed=EARLIEST)
    decide(losses_of(start, seen.bounds), fails=settings.fail_on_data_loss)
    return clamped(start, seen.bounds)
