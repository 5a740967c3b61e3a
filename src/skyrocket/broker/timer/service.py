"""Delivers messages that wait for a time of their own.

    rmq_sys_wheel_timer, queue 0        where senders' messages are parked: whole, in the order of arrival
        ▼  fire_due: one group          every message becomes a unit of the timer log, chained to the slot of its step
    timerlog, timerwheel
        ▼  when the step is over        its messages one group after the other; cancelled ones are left out
    the real topic and queue            or rmq_sys_wheel_timer again, when the time is beyond the roll window
        ▼  every `timerFlushIntervalMs`, after the log was forced to disk
    config/timercheck, timermetrics

A step is opened only when everything that was put before it was over has been chained: so a cancel that was confirmed
is in time. Nothing is delivered early; what is due is late by one step (`timerPrecisionMs`), 100 ms and its backlog.
Nothing is lost by a kill or a power cut; what was delivered after the last save is then delivered again.
"""

import asyncio
import errno
import logging
from array import array
from collections import Counter
from collections.abc import Callable, Iterable, Sequence
from typing import Final, NamedTuple

from skyrocket.broker.rules.special_services import Puts, put_here
from skyrocket.broker.timer.parked_message import TimerRequest, timer_request_of
from skyrocket.broker.timer.parking import TimerParking
from skyrocket.broker.timer.step_delivery import StepDelivery
from skyrocket.broker.timer.timer_counts import TimerCountTable, TimerTotals
from skyrocket.broker.timer.waiting_steps import WaitingSteps
from skyrocket.clock import ServiceClock
from skyrocket.config.sections import StoreConfig
from skyrocket.errors import DataError, StoreError
from skyrocket.format.record import QUEUE_OFFSET_AT, decode_record
from skyrocket.format.timer_log import NO_POSITION, TimerUnit
from skyrocket.model import property_names as names
from skyrocket.store.message_store import MessageStore
from skyrocket.store.timer.timer_files import Recovered, Snapshot, TimerFiles

_logger = logging.getLogger(__name__)

LOOK_SECONDS: Final = 0.1  # at least so often
REST_SECONDS: Final = 10.0  # after an error that nobody expected

_PIN_SECONDS: Final = 10.0
_CLEAN_SECONDS: Final = 30.0


class PendingTimer(NamedTuple):
    """A message that waits, for operators."""

    due_ms: int  # it is delivered in the step that begins here
    topic: str
    queue_id: int
    unique_key: str
    keys: str
    physical_offset: int
    rolls: bool  # this slot is only a stop on its way
    cancels: bool  # it is the word that another one is not to be delivered


class TimerCursor(NamedTuple):
    """Where a list of pending messages goes on: in a step, at a unit of the timer log or (NO_POSITION) its newest."""

    step_ms: int = 0
    position: int = NO_POSITION


class TimerService:
    """Parks timers on the wheel, and delivers them step by step."""

    def __init__(
        self,
        store: MessageStore,
        files: TimerFiles,
        counts: TimerCountTable,
        clock: ServiceClock,
        config: StoreConfig,
    ) -> None:
        self.totals = TimerTotals()
        self.parked_per_second = self.delivered_per_second = 0.0
        self._store = store
        self._files = files
        self._counts = counts
        self._clock = clock
        self._config = config
        self._precision_ms = config.timer_precision_ms
        self._save_seconds = config.timer_flush_interval_ms / 1000
        self._take_up(())
        self._must_dispatch: int | None = None  # physical offset, before the next step may be opened
        self._must_park: int | None = None  # and then this queue offset
        self._asked_ms = 0  # the time at which that was found out
        self._rests_until = 0.0  # monotonic
        self._loaded = False

    def _take_up(self, times_ms: Iterable[int]) -> None:
        store, files, counts = self._store, self._files, self._counts
        self._steps = WaitingSteps(times_ms)
        self._parking = TimerParking(store, files, self._steps, counts, self.totals, self._config)
        self._delivery = StepDelivery(store, files, self._steps, counts, self.totals, self._clock)

    # ── life ─────────────────────────────────────────────────────────────────────────────────────────────────────────

    def load(self) -> None:
        """Take up the work where it was left; the store must be open. Raises CorruptFile."""
        self._counts.load()
        found = self._files.open(self._store.commit_log.readable_offset)
        self._take_up(found.slot_times_ms)
        self._delivery.resume(each for each in found.checkpoint.begun if each[0] in self._steps)
        self._parking.go_on_at(self._first_offset(found))
        if not found.checkpoint.queue_offset:  # this broker has parked nothing: it may have been a slave
            self._parking.pass_over(found.checkpoint.master_queue_offset, found.checkpoint.last_read_time_ms)
        self._count_again(found.since_checkpoint)
        if self._steps.first_ms is None:
            self._counts.none_waits()  # a backup that was taken instead of the lost file is older
        self._loaded = True
        self.pin()

    def delivered_elsewhere(self, parked_before: int, due_before_ms: int) -> None:
        """A slave has parked the queue before an offset, and delivered what was due before a time, in our absence.

        Where it had parked less than this broker nothing is passed over: it would not be known who delivered what.
        """
        next_offset = self._parking.next_offset
        if parked_before < next_offset:
            return
        begun, steps = self._delivery.begun, self._steps.in_order()
        delivered = [time_ms for time_ms in steps if time_ms < due_before_ms]
        for time_ms in delivered:
            self._count_delivered(time_ms)
            self._files.take_out(time_ms)
        self._take_up(steps[len(delivered) :])
        self._delivery.resume(each for each in begun if each[0] in self._steps)
        self._parking.go_on_at(next_offset)
        self._parking.pass_over(parked_before, due_before_ms)
        if self._steps.first_ms is None:
            self._counts.none_waits()
        _logger.info("a slave has delivered timers before=%d steps=%d", due_before_ms, len(delivered))

    def _count_delivered(self, time_ms: int) -> None:
        positions, magics = array("q"), bytearray()
        slot, log = self._files.wheel.slot(time_ms), self._files.log
        log.walk_back(slot.last_position, NO_POSITION, max(slot.messages, 1), positions, magics)
        self._counts.add_all({topic: -count for topic, count in self._counted(map(log.unit, positions)).items()})

    def _counted(self, units: Iterable[TimerUnit]) -> Counter[str]:
        """How many messages of each topic wait by these units; cancels count against them."""
        counted: Counter[str] = Counter()
        for unit in units:
            record = self._store.by_physical_offset(unit.physical_offset)
            if record is not None:
                try:
                    counted[_topic_name(timer_request_of(record))] += -1 if unit.deletes else 1
                except DataError:
                    continue  # reported when its time has come
        return counted

    def _first_offset(self, found: Recovered) -> int:
        """The first message of the queue that is not parked."""
        behind_last = 0
        if found.last_record is not None:
            record = self._store.by_physical_offset(found.last_record)
            if record is not None:
                behind_last = int.from_bytes(record[QUEUE_OFFSET_AT : QUEUE_OFFSET_AT + 8], "big") + 1
        # Messages behind the last unit may have been passed over; but a log that has lost units knows better.
        return max(found.checkpoint.queue_offset, behind_last) if found.log_is_whole else behind_last

    def _count_again(self, units: Sequence[TimerUnit]) -> None:
        """What came after the last save is not in the saved numbers."""
        self._counts.add_all(self._counted(units))

    async def run(self) -> None:
        """Deliver until cancelled."""
        while True:
            if self.fire_due(self._clock.now_ms()) and self._has_more_to_do:
                await asyncio.sleep(0)
                continue
            # Senders wake nobody: what they put until the next look is parked as one group, which costs far less.
            await self._clock.sleep_until(self.next_due_ms(), LOOK_SECONDS)

    async def run_saves(self) -> None:
        """Save how far it has come, and let go of what is not needed any more, until cancelled."""
        next_pin = next_cleaning = 0.0
        before, parked, delivered_count = self._clock.monotonic(), 0, 0
        while True:
            await self._clock.sleep(self._save_seconds)
            seconds = max(self._clock.monotonic() - before, 0.001)
            self.parked_per_second = round((self.totals.parked - parked) / seconds, 1)
            self.delivered_per_second = round((self.totals.delivered - delivered_count) / seconds, 1)
            before, parked, delivered_count = before + seconds, self.totals.parked, self.totals.delivered
            if self._counts.dirty or self._has_changed():
                await self._save_beside()
            now = self._clock.monotonic()
            if now >= next_pin:
                next_pin = now + _PIN_SECONDS
                self.pin()
            if now >= next_cleaning:
                next_cleaning = now + _CLEAN_SECONDS
                self.clean()

    async def _save_beside(self) -> None:
        snapshot, save_counts = self._snapshot(), self._counts.begin_save()
        writing = asyncio.ensure_future(asyncio.to_thread(self._write, snapshot, save_counts))
        try:
            await asyncio.shield(writing)
        except asyncio.CancelledError:
            await asyncio.wait((writing,))  # the thread goes on: the last save must not meet it
            self._after_writing(writing, snapshot)
            raise
        except OSError:
            pass
        self._after_writing(writing, snapshot)

    def _after_writing(self, writing: "asyncio.Future[None]", snapshot: Snapshot) -> None:
        error = writing.exception()
        if error is not None:
            self._files.failed(snapshot)
            _logger.error("the timer's files could not be saved reason=%s", error)

    def save(self) -> None:
        """Save how far it has come; for a broker that stops."""
        if not self._loaded:
            return
        snapshot = self._snapshot()
        try:
            self._write(snapshot, self._counts.begin_save())
        except OSError as error:
            self._files.failed(snapshot)
            _logger.error("the timer's files could not be saved reason=%s", error)

    def close(self) -> None:
        """Save, and let the files go."""
        self.save()
        self._files.close()

    def _has_changed(self) -> bool:
        saved = self._files.checkpoint
        moved = (saved.queue_offset, saved.begun) != (self._parking.next_offset, self._delivery.begun)
        return moved or self._files.is_dirty

    def _snapshot(self) -> Snapshot:
        return self._files.snapshot(
            self.read_time_ms, self._delivery.begun, self._parking.next_offset, self._clock.now_ms()
        )

    def _write(self, snapshot: Snapshot, save_counts: Callable[[], None]) -> None:
        log_end = self._store.commit_log.written_offset  # at least what was put before the snapshot

        def flush_log() -> None:
            if self._store.commit_log.flushed_offset < log_end and not self._store.flush():
                raise OSError(errno.EIO, "the commit log could not be forced to disk")

        self._files.write(snapshot, flush_log)
        save_counts()

    # ── what is known ────────────────────────────────────────────────────────────────────────────────────────────────

    @property
    def read_time_ms(self) -> int:
        """Everything that was parked for an earlier step has been delivered."""
        now_ms = self._clock.now_ms()
        known = (self._steps.first_ms, self._delivery.open_ms, now_ms - now_ms % self._precision_ms)
        return min(time_ms for time_ms in known if time_ms is not None)

    @property
    def parked_offset(self) -> int:
        """Everything before it in the timer's queue is on the wheel."""
        return self._parking.next_offset

    def waiting_at(self, time_ms: int) -> int:
        """How many messages wait for the step of a time."""
        return self._files.wheel.slot(time_ms).messages

    @property
    def unparked(self) -> int:
        """Messages that were sent and are not on the wheel yet."""
        return self._parking.unparked

    @property
    def _has_more_to_do(self) -> bool:
        return self._delivery.open_ms is not None or self.unparked > 0

    def next_due_ms(self) -> int | None:
        """When to look again at the latest; None when no message waits."""
        if self._rests:
            return None
        if self._has_more_to_do:
            return self._clock.now_ms()
        first_ms = self._steps.first_ms
        return None if first_ms is None else first_ms + self._precision_ms

    @property
    def _rests(self) -> bool:
        return self._clock.monotonic() < max(self._rests_until, self._delivery.rests_until)

    def pending(self, from_ms: int = 0, limit: int = 1000) -> list[PendingTimer]:
        """Messages that wait, soonest first; those that have not been parked yet are left out."""
        found: list[PendingTimer] = []
        for time_ms in self._steps.in_order():
            if time_ms + self._precision_ms <= from_ms:
                continue
            positions, magics = array("q"), bytearray()
            self._files.log.walk_back(
                self._files.wheel.slot(time_ms).last_position, NO_POSITION, limit, positions, magics
            )
            for position in reversed(positions):
                if len(found) >= limit:
                    return found
                pending = self._pending(self._files.log.unit(position))
                if pending is not None:
                    found.append(pending)
        return found

    def pending_page(self, place: TimerCursor, most: int) -> tuple[list[PendingTimer], TimerCursor | None]:
        """A page of them from a place on, step by step, the newest of a step first; and the place of the next page.

        Raises DataError for a place that was never told.
        """
        found: list[PendingTimer] = []
        left = most
        steps = self._steps.soonest(place.step_ms, most + 1)
        for time_ms in steps:
            if left == 0:
                return found, TimerCursor(time_ms)
            goes_on = time_ms == place.step_ms and place.position != NO_POSITION
            begin = place.position if goes_on else self._files.wheel.slot(time_ms).last_position
            positions, magics = array("q"), bytearray()
            rest = self._files.log.walk_back(begin, NO_POSITION, left, positions, magics)
            left -= len(positions)
            listed = (self._pending(self._files.log.unit(position)) for position in positions)
            found += [pending for pending in listed if pending is not None]
            if rest != NO_POSITION:
                return found, TimerCursor(time_ms, rest)
        return found, TimerCursor(steps[-1] + 1) if len(steps) > most else None

    def _pending(self, unit: TimerUnit) -> PendingTimer | None:
        record = self._store.by_physical_offset(unit.physical_offset)
        if record is None:
            return None
        message = decode_record(record)
        properties = message.properties
        queue_id = properties.get("REAL_QID", "0")
        return PendingTimer(
            timer_request_of(record).due_ms,
            properties.get(names.REAL_TOPIC, ""),
            int(queue_id) if queue_id.isdigit() else 0,
            properties.get(names.UNIQUE_KEY, ""),
            properties.get("KEYS", ""),
            unit.physical_offset,
            unit.rolls,
            unit.deletes,
        )

    # ── retention ────────────────────────────────────────────────────────────────────────────────────────────────────

    def pin(self) -> None:
        """Keep the commit log from the oldest message on that waits."""
        wanted: list[int] = []
        oldest = self._oldest_unit()
        if oldest is not None:
            wanted.append(self._files.log.unit(max(oldest, self._files.log.start)).physical_offset)
        queue = self._parking.queue
        entry = queue.entry(self._parking.next_offset) if queue is not None else None
        if entry is not None:
            wanted.append(entry.physical_offset)
        self._store.cleaner.oldest_wanted = min(wanted, default=None)

    def clean(self) -> int:
        """Delete files of the timer log of which no unit is needed; returns how many."""
        log, first = self._files.log, self._store.commit_log.min_offset
        oldest = self._oldest_unit()
        dropped = 0
        while (last := log.last_unit_of_oldest_file()) is not None:
            # RocketMQ: they go with the messages that they point to.
            if last.physical_offset >= first or (oldest is not None and oldest < log.start + log.file_size):
                break
            dropped += log.drop_before(log.start + log.file_size)
        return dropped

    def _oldest_unit(self) -> int | None:
        """The lowest position of the timer log that is still needed."""
        times = [time_ms for time_ms in (self._steps.first_ms, self._delivery.open_ms) if time_ms is not None]
        return self._files.wheel.oldest_unit(min(times)) if times else None

    # ── the work ─────────────────────────────────────────────────────────────────────────────────────────────────────

    def fire_due(self, now_ms: int) -> int:
        """Do a bounded part of what there is to do; 0 when there is nothing."""
        return put_here(self.firing(now_ms), self._store.intake.put_group)

    def firing(self, now_ms: int) -> Puts[int]:
        """The same, wherever it is put."""
        if self._rests:
            return 0
        try:
            done = self._parking.park_group(now_ms)
            if self._delivery.open_ms is None:
                self._open_steps(now_ms)
            return done + (yield from self._delivery.advance(now_ms))
        except (StoreError, DataError, OSError):
            _logger.exception("the timer failed offset=%d time=%d", self._parking.next_offset, self.read_time_ms)
            self._rests_until = self._clock.monotonic() + REST_SECONDS
            return 0

    def _open_steps(self, now_ms: int) -> None:
        """Begin with the first steps that are over, when all that may concern them is on the wheel."""
        if not self._is_over(now_ms) or not self._has_caught_up(now_ms):
            return
        self._must_dispatch = self._must_park = None
        # What is over by now, but was not when it was first asked, may be concerned by something that is not parked.
        while self._delivery.has_room and self._is_over(min(self._asked_ms, now_ms)):
            self._delivery.open(self._steps.take_up())

    def _is_over(self, now_ms: int) -> bool:
        """Whether the first step that waits is."""
        first_ms = self._steps.first_ms
        return first_ms is not None and first_ms + self._precision_ms <= now_ms

    def _has_caught_up(self, now_ms: int) -> bool:
        """Whether what had been put when this was first asked is on the wheel."""
        store = self._store
        if self._must_dispatch is None:
            self._must_dispatch, self._asked_ms = store.commit_log.written_offset, now_ms
        # Nothing pends of what a slave has copied, whose last record may never be whole.
        will_go_on = bool(store.commit_log.pending) or store.queues_waited
        if store.dispatcher.dispatched_offset < self._must_dispatch and will_go_on:
            return False
        if self._must_park is None:
            self._must_park = self._parking.end
        return self._parking.next_offset >= self._must_park or self._parking.is_blocked


def _topic_name(wish: TimerRequest) -> str:
    return wish.real_topic.decode("utf-8", "replace")
