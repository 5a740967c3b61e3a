"""Puts the messages of rmq_sys_wheel_timer on the wheel, in their order."""

import contextlib
import logging
from collections import Counter
from typing import Final

from skyrocket.broker.timer.parked_message import TimerRequest, properties_of, timer_request_of
from skyrocket.broker.timer.rolled_copies import RolledCopies
from skyrocket.broker.timer.timer_counts import TimerCountTable, TimerTotals
from skyrocket.broker.timer.waiting_steps import WaitingSteps
from skyrocket.config.sections import StoreConfig
from skyrocket.errors import DataError
from skyrocket.format.java_hash import java_hash
from skyrocket.format.queue_entry import ENTRY, PREFILL_SIZE
from skyrocket.format.timer_wheel import parking, roll_window_slots
from skyrocket.model.topic import TIMER_TOPIC
from skyrocket.store.consume_queue import ConsumeQueue
from skyrocket.store.message_store import MessageStore
from skyrocket.store.timer.timer_files import ParkedMessage, TimerFiles

_logger = logging.getLogger(__name__)

PARK_GROUP: Final = 512  # of one step, so that the event loop is not held up

_MOST_HASHES: Final = 10_000


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
        write_time_ms = now_ms - now_ms % self._precision_ms
        group: list[ParkedMessage] = []
        changes: Counter[bytes] = Counter()
        offset = self.next_offset
        for physical_offset, size, _ in ENTRY.iter_unpack(queue.read(offset, PARK_GROUP)):
            if size != PREFILL_SIZE:
                wish = self._wish(offset, physical_offset, size)
                if wish is not None and not (
                    offset < self._copies_end and self._is_passed(wish, offset, physical_offset, size)
                ):
                    parked = self._parked(wish, write_time_ms, physical_offset, size)
                    if self.is_blocked:
                        break
                    group.append(parked)
                    changes[wish.real_topic] += 1 if wish.cancels is None else -1
            offset += 1
        done, self.next_offset = offset - self.next_offset, offset
        if group:
            try:
                opened = self._files.park(group)
            except BaseException:
                self.next_offset -= done
                raise
            for time_ms in opened:
                self._steps.add(time_ms)
            self._totals.parked += len(group)
            self._counts.add_all({topic.decode("utf-8", "replace"): change for topic, change in changes.items()})
        return done

    def _wish(self, offset: int, physical_offset: int, size: int) -> TimerRequest | None:
        record = self._store.commit_log.slice(physical_offset, size)
        try:
            if record is None:
                raise DataError(f"the log has no record at {physical_offset}")
            return timer_request_of(record)
        except DataError as error:
            self._totals.dropped += 1
            _logger.error("a message of the timer cannot be read offset=%d reason=%s", offset, error)
            return None

    def _is_passed(self, wish: TimerRequest, offset: int, physical_offset: int, size: int) -> bool:
        """Whether another broker has delivered a timer, or rolled it."""
        if offset < self._passed_offset and wish.due_ms < self._passed_ms:
            return True
        record = self._store.commit_log.slice(physical_offset, size)
        return record is not None and self._copies.has_newer(properties_of(record))

    def _parked(self, wish: TimerRequest, write_time_ms: int, physical_offset: int, size: int) -> ParkedMessage:
        due_ms = wish.due_ms - wish.due_ms % self._precision_ms
        slot_time_ms, rolls = parking(due_ms, write_time_ms, self._window, self._precision_ms)
        if slot_time_ms not in self._steps:
            stored_ms = self._files.wheel.stored_time_ms(slot_time_ms)
            # Days after its time a message may still wait, when the broker was down: it goes first.
            self.is_blocked = stored_ms != slot_time_ms and stored_ms in self._steps
        topic = wish.real_topic
        topic_hash = self._hashes.get(topic)
        if topic_hash is None:
            if len(self._hashes) >= _MOST_HASHES:
                self._hashes.clear()
            topic_hash = self._hashes[topic] = java_hash(topic.decode("utf-8", "replace")) if topic else 0
        written_ms = min(write_time_ms, slot_time_ms)
        return slot_time_ms, written_ms, physical_offset, size, topic_hash, rolls, wish.cancels is not None
