"""Puts the messages of rmq_sys_wheel_timer on the wheel, in their order."""

import contextlib
import itertools
import logging
from collections import Counter
from collections.abc import Sequence
from operator import add
from typing import Final, NamedTuple

import numpy as np
from numpy.typing import NDArray

from skyrocket.broker.timer.parked_message import TimerRequest, properties_of, timer_request_of, usual_requests
from skyrocket.broker.timer.rolled_copies import RolledCopies
from skyrocket.broker.timer.timer_counts import TimerCountTable, TimerTotals
from skyrocket.broker.timer.waiting_steps import WaitingSteps
from skyrocket.config.sections import StoreConfig
from skyrocket.errors import DataError
from skyrocket.format.dtypes import Int64s
from skyrocket.format.java_hash import java_hash
from skyrocket.format.queue_entry import ENTRY, ENTRY_DTYPE, PREFILL_SIZE
from skyrocket.format.timer_wheel import WHEEL_SLOTS, parkings, roll_window_slots
from skyrocket.model.topic import TIMER_TOPIC
from skyrocket.store.consume_queue import ConsumeQueue
from skyrocket.store.message_store import MessageStore
from skyrocket.store.timer.timer_files import ParkedMessages, TimerFiles

_logger = logging.getLogger(__name__)

PARK_GROUP: Final = 512  # of one step, so that the event loop is not held up

_READ_AT_ONCE: Final = 1 << 20  # bytes of the log: larger groups are read one by one, and not their bodies
_MOST_HASHES: Final = 10_000


class _Asked(NamedTuple):
    """What entries of the timer's queue ask for, as columns."""

    rows: Sequence[int]  # which entries these are
    due_ms: Sequence[int]
    topics: Sequence[bytes]
    cancels: Sequence[bool]  # which of them cancel another; empty: none
    unreadable: Sequence[tuple[int, DataError]]  # the rows of others, and why


class TimerParking:
    """Follows the timer's queue from `next_offset` on."""

    def __init__(
        self,
        store: MessageStore,
        files: TimerFiles,
        steps: WaitingSteps,
        counts: TimerCountTable,
        totals: TimerTotals,
        config: StoreConfig,
    ) -> None:
        self.next_offset = 0  # everything before it is parked
        self.is_blocked = False  # the next message needs a slot of which older ones have not been delivered
        self._store = store
        self._files = files
        self._steps = steps
        self._counts = counts
        self._totals = totals
        self._precision_ms = config.timer_precision_ms
        self._window = roll_window_slots(config.timer_roll_window)
        self._hashes: dict[bytes, int] = {}
        self._passed_offset = self._passed_ms = 0  # of `pass_over`
        self._copies = RolledCopies()  # before this offset of the queue
        self._copies_end = 0

    @property
    def queue(self) -> ConsumeQueue | None:
        queue = self._store.queues.get(TIMER_TOPIC, 0)
        assert queue is None or isinstance(queue, ConsumeQueue), "the timer's topic is not a batch topic"
        return queue

    @property
    def end(self) -> int:
        """Where the queue ends."""
        queue = self.queue
        return 0 if queue is None else queue.max_offset

    @property
    def unparked(self) -> int:
        """Messages that were sent and are not on the wheel yet."""
        return max(self.end - self.next_offset, 0)

    def go_on_at(self, offset: int) -> None:
        """Begin where the queue has entries: its begin may have expired, its end may have been lost in a crash."""
        queue = self.queue
        low, high = (0, 0) if queue is None else (queue.min_offset, queue.max_offset)
        self.next_offset = min(max(offset, low), high)
        if self.next_offset != offset:
            _logger.warning("the timer continues elsewhere offset=%d instead_of=%d", self.next_offset, offset)

    def pass_over(self, before_offset: int, due_before_ms: int) -> None:
        """The first part of the queue was parked by another broker, which has delivered what was due before a time."""
        queue = self.queue
        if not before_offset or queue is None:
            return
        self._passed_offset, self._passed_ms = before_offset, due_before_ms
        offset = queue.min_offset
        self._copies_end = queue.max_offset
        while offset < self._copies_end:
            for physical_offset, size, _ in ENTRY.iter_unpack(queue.read(offset, PARK_GROUP)):
                offset += 1
                record = self._store.commit_log.slice(physical_offset, size) if size != PREFILL_SIZE else None
                if record is not None:
                    with contextlib.suppress(DataError):  # reported when it is parked
                        self._copies.note(properties_of(record))

    def park_group(self, now_ms: int) -> int:
        """Put the next messages of the queue on the wheel; how many entries were passed."""
        self.is_blocked = False
        queue = self.queue
        if queue is None or self.next_offset >= queue.max_offset:
            return 0
        if self.next_offset < queue.min_offset:
            _logger.warning("timer messages are gone from=%d to=%d", self.next_offset, queue.min_offset)
            self.next_offset = queue.min_offset
        first = self.next_offset
        entries = np.frombuffer(queue.read(first, PARK_GROUP), ENTRY_DTYPE)
        asked = self._asked(first, entries["physical_offset"].tolist(), entries["size"].tolist())
        done = len(entries)
        if asked.rows:
            group = self._parked(asked, entries, now_ms - now_ms % self._precision_ms)
            count = len(group.slot_times_ms)
            if count < len(asked.rows):
                done = asked.rows[count]
            self._park(group, asked)
        for row, error in asked.unreadable:
            if row < done:
                self._totals.dropped += 1
                _logger.error("a message of the timer cannot be read offset=%d reason=%s", first + row, error)
        self.next_offset = first + done
        return done

    def _park(self, group: ParkedMessages, asked: _Asked) -> None:
        count = len(group.slot_times_ms)
        if not count:
            return
        self._steps.add_all(self._files.park(group))
        self._totals.parked += count
        changes = Counter(asked.topics[:count])
        for topic in itertools.compress(asked.topics[:count], asked.cancels):
            changes[topic] -= 2  # it was counted as one that waits, and counts against one
        self._counts.add_all({topic.decode("utf-8", "replace"): change for topic, change in changes.items()})

    def _asked(self, first: int, physical_offsets: list[int], sizes: list[int]) -> _Asked:
        """What entries of the queue from an offset on ask for."""
        if first >= self._copies_end and sum(sizes) <= _READ_AT_ONCE:
            usual = self._usual(physical_offsets, sizes)
            if usual is not None:
                return _Asked(range(len(sizes)), *usual, (), ())
        wishes = [*map(self._wish, itertools.count(first), physical_offsets, sizes)]
        found = [(row, wish) for row, wish in enumerate(wishes) if isinstance(wish, TimerRequest)]
        return _Asked(
            [row for row, _ in found],
            [wish.due_ms for _, wish in found],
            [wish.real_topic for _, wish in found],
            [wish.cancels is not None for _, wish in found],
            [(row, wish) for row, wish in enumerate(wishes) if isinstance(wish, DataError)],
        )

    def _usual(self, physical_offsets: list[int], sizes: list[int]) -> tuple[list[int], list[bytes]] | None:
        """When and for which topics, from all records at once; None when they are not all as usual and in one file."""
        begin = min(physical_offsets)
        span = self._store.commit_log.slice(begin, max(map(add, physical_offsets, sizes)) - begin)
        if span is None:
            return None
        pairs = zip(physical_offsets, sizes, strict=True)
        records = b"".join([span[offset - begin : offset - begin + size] for offset, size in pairs])
        return usual_requests(records, list(itertools.accumulate(sizes)))

    def _wish(self, offset: int, physical_offset: int, size: int) -> TimerRequest | DataError | None:
        """What one entry asks for; None: nothing is to be parked."""
        if size == PREFILL_SIZE:
            return None
        record = self._store.commit_log.slice(physical_offset, size)
        if record is None:
            return DataError(f"the log has no record at {physical_offset}")
        try:
            wish = timer_request_of(record)
            return None if offset < self._copies_end and self._is_passed(wish, offset, record) else wish
        except DataError as error:
            return error

    def _is_passed(self, wish: TimerRequest, offset: int, record: memoryview) -> bool:
        """Whether another broker has delivered a timer, or rolled it."""
        if offset < self._passed_offset and wish.due_ms < self._passed_ms:
            return True
        return self._copies.has_newer(properties_of(record))

    def _parked(self, asked: _Asked, entries: NDArray[np.void], write_time_ms: int) -> ParkedMessages:
        """Where messages go, up to the first that has to wait for a slot."""
        due_ms = np.array(asked.due_ms, dtype=np.int64)
        due_ms -= due_ms % self._precision_ms
        slot_times_ms, rolls = parkings(due_ms, write_time_ms, self._window, self._precision_ms)
        hash_of = {topic: self._hash_of(topic) for topic in set(asked.topics)}
        cancels = np.zeros(len(due_ms), np.bool_)
        if asked.cancels:
            cancels[:] = asked.cancels
        group = ParkedMessages(
            slot_times_ms,
            np.minimum(slot_times_ms, write_time_ms),
            entries["physical_offset"][asked.rows],
            entries["size"][asked.rows],
            np.array([hash_of[topic] for topic in asked.topics], dtype=np.int64),
            rolls,
            cancels,
        )
        count = self._free_slots(slot_times_ms)
        self.is_blocked = count < len(due_ms)
        return group.first_ones(count) if self.is_blocked else group

    def _free_slots(self, slot_times_ms: Int64s) -> int:
        """How many messages can be parked before one needs a slot of which older ones have not been delivered.

        Days after its time a message may still wait, when the broker was down: it goes first.
        """
        stored_ms = self._files.wheel.stored_times_ms(slot_times_ms)
        count = len(slot_times_ms)
        others = np.flatnonzero(stored_ms != slot_times_ms)
        if self._steps.has_any_of(stored_ms[others].tolist()):
            count = next(row for row in others.tolist() if int(stored_ms[row]) in self._steps)
        turn_ms = WHEEL_SLOTS * self._precision_ms
        if count and int(slot_times_ms.max() - slot_times_ms.min()) >= turn_ms:  # or an older one of this very group
            spans = np.maximum.accumulate(slot_times_ms) - np.minimum.accumulate(slot_times_ms)
            count = min(count, int(np.argmax(spans >= turn_ms)))
        return count

    def _hash_of(self, topic: bytes) -> int:
        topic_hash = self._hashes.get(topic)
        if topic_hash is None:
            if len(self._hashes) >= _MOST_HASHES:
                self._hashes.clear()
            topic_hash = self._hashes[topic] = java_hash(topic.decode("utf-8", "replace")) if topic else 0
        return topic_hash
