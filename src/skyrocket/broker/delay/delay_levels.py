"""Delivers delayed messages when their time has come.

    SCHEDULE_TOPIC_XXXX, queue = level - 1         every entry says when its message is due; the first is due first
        ▼  fire_due: one group of the level that has waited longest
    the real topic and queue                       by one put_group
        ▼  the log is forced to disk
    delayOffset.json                               every `flushDelayOffsetInterval`

One task serves all levels. It sleeps until the next message is due, but looks every 100 ms: for new messages, and
because a clock may be moved while it sleeps. What the file says is delivered is on disk, so nothing is lost by a kill
or a power cut; what was delivered after the last save is delivered again.

On a slave that acts as master a message that no other master takes, perhaps because only its own set has the topic,
does not hold up those behind it: it is tried again, and the offset that the master hears of stays before it.
"""

import asyncio
import logging
import math
from collections import deque
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Final, NamedTuple

from skyrocket.broker.delay.delay_offsets import DelayOffsetTable
from skyrocket.broker.rules.special_services import Puts, SpecialServices, put_elsewhere, put_here
from skyrocket.broker.rules.stored_copy import real_queue, stored_copy
from skyrocket.clock import ServiceClock
from skyrocket.errors import DataError, StoreError
from skyrocket.format.queue_entry import ENTRY, PREFILL_SIZE
from skyrocket.model.topic import SCHEDULE_TOPIC
from skyrocket.store.commit_log import PutMessage
from skyrocket.store.consume_queue import ConsumeQueue
from skyrocket.store.message_store import MessageStore
from skyrocket.store.results import NEVER_TAKEN, PutResult

_logger = logging.getLogger(__name__)

FIRST_LOOK_SECONDS: Final = 1.0
LOOK_SECONDS: Final = 0.1  # at least so often; a message that is due is late by no more than this and its backlog
GROUP_MESSAGES: Final = 256  # of one step, so that the event loop is not held up
GROUP_BYTES: Final = 1 << 20
RETRY_SECONDS: Final = 0.1  # after a message was not taken
HELD_SECONDS: Final = 1.0  # until one that other masters do not take is tried again
MOST_AHEAD: Final = 10_000  # so far behind such a one others are delivered
REST_SECONDS: Final = 10.0  # after an error that nobody expected

_HALF_TOPICS: Final = frozenset({"RMQ_SYS_TRANS_HALF_TOPIC", "RMQ_SYS_ROCKSDB_TRANS_HALF_TOPIC"})
_SAME_FAILURE_SECONDS: Final = 60.0
_MAX_UNSETTLED: Final = 64


class LevelProgress(NamedTuple):
    """What operators see of a level."""

    level: int
    next_offset: int
    max_offset: int
    delivered: int  # since the start
    dropped: int  # since the start: halves of transactions, and what could not be read

    @property
    def pending(self) -> int:
        return self.max_offset - self.next_offset


@dataclass(slots=True)
class _Level:
    """One level: its queue is read from `next_offset` on."""

    number: int
    delay_ms: int | None  # None: the setting knows it no more, but messages are there
    next_offset: int = 0
    safe_offset: int = 0  # everything before it is delivered, and that is on disk
    # Groups that may be in the page cache alone: where they end in the queue, and what of the log must be on disk.
    unsettled: deque[tuple[int, int]] = field(default_factory=deque)
    delivered_ahead: set[int] = field(default_factory=set)  # behind one that was not taken
    held: dict[int, float] = field(default_factory=dict)  # not taken by other masters: when to try again, monotonic
    rests_until: float = 0.0  # monotonic
    silent_until: float = 0.0
    known_offset: int = -1  # whose time of delivery is `known_due_ms`
    known_due_ms: int = 0
    delivered: int = 0
    dropped: int = 0

    def is_due(self, due_ms: int, now_ms: int) -> bool:
        # Later than a message put now would be: the clock or the setting was changed. RocketMQ: deliver it.
        return due_ms <= now_ms or (self.delay_ms is not None and due_ms > now_ms + self.delay_ms)

    def settle(self, flushed_offset: int) -> None:
        while self.unsettled and self.unsettled[0][1] <= flushed_offset:
            self.safe_offset = self.unsettled.popleft()[0]

    def passed(self, next_offset: int, log_end: int) -> None:
        """Everything before an offset is done as soon as the log is on disk up to an end."""
        self.next_offset = next_offset
        self.delivered_ahead = {offset for offset in self.delivered_ahead if offset >= next_offset}
        if self.unsettled:
            log_end = max(log_end, self.unsettled[-1][1])
            if len(self.unsettled) >= _MAX_UNSETTLED:
                self.unsettled.pop()
        self.unsettled.append((next_offset, log_end))


class DelayLevels:
    """Delivers delayed messages when their level's time has passed."""

    def __init__(
        self,
        store: MessageStore,
        offsets: DelayOffsetTable,
        clock: ServiceClock,
        delays_ms: Sequence[int],
        *,
        save_seconds: float = 10.0,
    ) -> None:
        self._store = store
        self._offsets = offsets
        self._clock = clock
        self._delays_ms = tuple(delays_ms)
        self._save_seconds = save_seconds
        self._levels: list[_Level] = []
        self._begins_at = 0.0  # monotonic
        self._is_elsewhere = False  # messages go to other brokers: this one acts as master

    # ── life ─────────────────────────────────────────────────────────────────────────────────────────────────────────

    def load(self) -> None:
        """Take up the work where it was left; the store must be open. Raises CorruptFile."""
        self._offsets.load()
        self._take_up()

    def _take_up(self) -> None:
        self._begins_at = self._clock.monotonic() + FIRST_LOOK_SECONDS
        delays: dict[int, int | None] = dict(enumerate(self._delays_ms, 1))
        for queue in self._store.queues:
            if queue.topic == SCHEDULE_TOPIC and queue.queue_id + 1 not in delays:
                # RocketMQ leaves these where they are for ever.
                delays[queue.queue_id + 1] = None
        self._levels = [_Level(number, delay_ms) for number, delay_ms in delays.items()]
        for level in self._levels:
            level.next_offset = level.safe_offset = self._offsets[level.number]
            self._correct(level, self._queue(level))

    async def run(self) -> None:
        """Deliver until cancelled; begins a second after the start, so that consumers are there again."""
        while (seconds := self._begins_at - self._clock.monotonic()) > 0:
            await self._clock.sleep_until(self._clock.now_ms() + math.ceil(seconds * 1000), LOOK_SECONDS)
        while True:
            now_ms = self._clock.now_ms()
            if self.fire_due(now_ms):
                await asyncio.sleep(0)
                continue
            await self._clock.sleep_until(self.next_due_ms(now_ms), LOOK_SECONDS)

    async def run_acting(self, special: SpecialServices) -> None:
        """Deliver to other brokers whenever this one acts as master, until cancelled."""
        while True:
            others = await special.begin()
            with special.at_work():
                self._is_elsewhere = True  # a slave delivers in no other way
                self._take_up()
                while special.acts:
                    now_ms = self._clock.now_ms()
                    if not await put_elsewhere(self._firing(now_ms), others):
                        await self._clock.sleep_until(self.next_due_ms(now_ms), LOOK_SECONDS)
                    self.settle()

    async def run_saves(self) -> None:
        """Save how far delivery has come, until cancelled."""
        while True:
            await self._clock.sleep(self._save_seconds)
            self.settle()
            await self._offsets.save_beside()

    def save(self) -> None:
        """Force to disk what was delivered and save how far it has come; for a broker that stops."""
        if any(level.unsettled for level in self._levels):
            self._store.flush()
        self.settle()
        if self._offsets.dirty:
            try:
                self._offsets.save()
            except OSError as error:
                _logger.error("delay offsets could not be saved reason=%s", error)

    def settle(self) -> None:
        """Let the table say what has been delivered and is on disk by now."""
        flushed = self._store.commit_log.flushed_offset
        for level in self._levels:
            level.settle(flushed)
        known = {level.number: level.safe_offset for level in self._levels if level.safe_offset or level.next_offset}
        self._offsets.advance(known)

    # ── delivery ─────────────────────────────────────────────────────────────────────────────────────────────────────

    def fire_due(self, now_ms: int) -> int:
        """Deliver one group of the level that has waited longest; how many entries were passed, 0: nothing is due."""
        return put_here(self._firing(now_ms), self._store.intake.put_group)

    def _firing(self, now_ms: int) -> Puts[int]:
        waiting = [(due_ms, level) for level in self._levels if (due_ms := self._due_ms(level)) is not None]
        due = [(due_ms, level.number, level) for due_ms, level in waiting if level.is_due(due_ms, now_ms)]
        if not due:
            return 0
        level = min(due)[2]
        try:
            return (yield from self._deliver(level, now_ms))
        except (StoreError, DataError):
            _logger.exception("a delay level failed level=%d offset=%d", level.number, level.next_offset)
            level.rests_until = self._clock.monotonic() + REST_SECONDS
            return 0

    def next_due_ms(self, now_ms: int) -> int | None:
        """When to look again at the latest; None when no message waits."""
        waiting = [(due_ms, level) for level in self._levels if (due_ms := self._due_ms(level)) is not None]
        return min((now_ms if level.is_due(due_ms, now_ms) else due_ms for due_ms, level in waiting), default=None)

    def progress(self) -> list[LevelProgress]:
        """The state of every level, for operators and metrics."""
        return [
            LevelProgress(
                level.number,
                level.next_offset,
                max(self._end(level), level.next_offset),
                level.delivered,
                level.dropped,
            )
            for level in self._levels
        ]

    def _queue(self, level: _Level) -> ConsumeQueue | None:
        queue = self._store.queues.get(SCHEDULE_TOPIC, level.number - 1)
        assert queue is None or isinstance(queue, ConsumeQueue), "the delay topic is not a batch topic"
        return queue

    def _end(self, level: _Level) -> int:
        queue = self._queue(level)
        return 0 if queue is None else queue.max_offset

    def _due_ms(self, level: _Level) -> int | None:
        """When the next message of a level is due; None when there is none, or the level rests."""
        if level.rests_until and self._clock.monotonic() < level.rests_until:
            return None
        queue = self._queue(level)
        if queue is None:
            return None
        if not queue.min_offset <= level.next_offset <= queue.max_offset:
            self._correct(level, queue)
        if level.next_offset >= queue.max_offset:
            return None
        if level.known_offset != level.next_offset:
            entry = queue.entry(level.next_offset)
            level.known_offset = level.next_offset
            level.known_due_ms = 0 if entry is None or entry.size == PREFILL_SIZE else entry.tags_code
        return level.known_due_ms

    def _correct(self, level: _Level, queue: ConsumeQueue | None) -> None:
        """Go on where the queue has entries: its begin may have expired, its end may have been lost in a crash."""
        low, high = (0, 0) if queue is None else (queue.min_offset, queue.max_offset)
        found = min(max(level.next_offset, low), high)
        if found != level.next_offset:
            _logger.warning(
                "delay level continues elsewhere level=%d offset=%d instead_of=%d",
                level.number,
                found,
                level.next_offset,
            )
            level.passed(found, 0)
            level.settle(0)

    def _deliver(self, level: _Level, now_ms: int) -> Puts[int]:
        queue = self._queue(level)
        assert queue is not None
        begin = offset = level.next_offset
        group: list[PutMessage] = []
        places: list[int] = []
        size = 0
        now = self._clock.monotonic()
        data = queue.read(begin, min(MOST_AHEAD if level.held else GROUP_MESSAGES, queue.max_offset - begin))
        for physical_offset, record_size, due_ms in ENTRY.iter_unpack(data):
            is_done = record_size == PREFILL_SIZE or offset in level.delivered_ahead
            if not is_done and level.held.get(offset, now) <= now:
                is_full = len(group) >= GROUP_MESSAGES or (group and size + record_size > GROUP_BYTES)
                if is_full or not level.is_due(due_ms, now_ms):
                    break
                message = self._to_deliver(level, offset, physical_offset)
                if message is not None:
                    group.append(message)
                    places.append(offset)
                    size += record_size
            offset += 1
        if not data:
            raise StoreError(f"the queue of delay level {level.number} has no entry {begin}")
        results = (yield group) if group else []
        return self._account(level, begin, offset, places, results)

    def _account(self, level: _Level, begin: int, end: int, places: Sequence[int], results: Sequence[PutResult]) -> int:
        """Go on behind what was taken, or never will be; what was not is tried again."""
        refused = [number for number, result in enumerate(results) if result.status in NEVER_TAKEN]
        for number in refused:
            self._drop(level, places[number], f"{results[number].status.value} {results[number].remark}")
        failed = [number for number, result in enumerate(results) if not (result.ok or number in refused)]
        taken = [number for number, result in enumerate(results) if result.ok or number in refused]
        level.delivered += len(taken) - len(refused)
        now = self._clock.monotonic()
        for number in taken:
            level.held.pop(places[number], None)
        if failed:
            self._complain(level, places[failed[0]], results[failed[0]])
            if self._is_elsewhere:
                level.held.update(dict.fromkeys((places[number] for number in failed), now + HELD_SECONDS))
            else:
                end = places[failed[0]]
        end = min(level.held, default=end)
        # Never twice: what was taken behind it is passed over when its turn comes.
        level.delivered_ahead.update(places[number] for number in taken if places[number] > end)
        goes_on = bool(taken) and self._is_elsewhere
        if (failed or level.held) and not goes_on:
            level.rests_until = now + RETRY_SECONDS
        if end > begin:
            log_end = max((result.end_offset for result in results if result.ok), default=0)
            level.passed(end, log_end)
        level.settle(self._store.commit_log.flushed_offset)
        return max(end - begin, len(taken) if goes_on else 0)

    def _complain(self, level: _Level, offset: int, result: PutResult) -> None:
        now = self._clock.monotonic()
        if now >= level.silent_until:
            level.silent_until = now + _SAME_FAILURE_SECONDS
            _logger.error(
                "a delayed message was not taken, it waits level=%d offset=%d status=%s reason=%s",
                level.number,
                offset,
                result.status.value,
                result.remark,
            )

    def _to_deliver(self, level: _Level, offset: int, physical_offset: int) -> PutMessage | None:
        """The message as it goes to its real queue; None when there is nothing to deliver."""
        record = self._store.by_physical_offset(physical_offset)
        try:
            if record is None:
                raise DataError(f"the log has no record at {physical_offset}")
            message, store_host = stored_copy(record)
            message.store_host = store_host
            message.topic, message.queue_id = real_queue(message.properties)
            if message.topic in _HALF_TOPICS:
                raise DataError("it is the half of a transaction, and those cannot be delayed")
            return message
        except DataError as error:
            self._drop(level, offset, error)
            return None

    def _drop(self, level: _Level, offset: int, reason: object) -> None:
        level.dropped += 1
        _logger.error(
            "a delayed message cannot be delivered level=%d offset=%d reason=%s", level.number, offset, reason
        )
