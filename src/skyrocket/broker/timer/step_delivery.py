"""Delivers what waits for steps that are over, in their order.

The chain of a step is read from its end; then its cancels are looked up; then its messages are put from the beginning,
one group after the other. What is parked for the step in the meantime is read and put at its end. Steps with few
messages are opened together and share a group: after hours without the broker many thousands are over.
"""

import contextlib
import logging
from array import array
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from enum import Enum
from typing import Final, NamedTuple

from skyrocket.broker.rules.special_services import Puts
from skyrocket.broker.timer.parked_message import Cancelled, cancels_in, delivered, is_cancelled, properties_of
from skyrocket.broker.timer.timer_counts import TimerCountTable, TimerTotals
from skyrocket.broker.timer.waiting_steps import WaitingSteps
from skyrocket.clock import Clock
from skyrocket.errors import DataError
from skyrocket.format.properties import find_property
from skyrocket.format.property_bytes import REAL_TOPIC
from skyrocket.format.timer_log import MAGIC_DELETE, MAGIC_ROLL, NO_POSITION, TimerUnit
from skyrocket.store.commit_log import PutMessage
from skyrocket.store.message_store import MessageStore
from skyrocket.store.results import NEVER_TAKEN, PutStatus
from skyrocket.store.timer.timer_files import TimerFiles

_logger = logging.getLogger(__name__)

# Of one step of work, so that the event loop is not held up.
CHAIN_GROUP: Final = 4096
GROUP_MESSAGES: Final = 128
GROUP_BYTES: Final = 1 << 20
RETRY_SECONDS: Final = 0.1  # after a message was not taken

_SAME_FAILURE_SECONDS: Final = 60.0


@dataclass(slots=True, eq=False)
class _Step:
    """A step that is being delivered; its chain is read from its end, and delivered from its beginning."""

    time_ms: int
    unread: int  # where the chain is to be followed next; NO_POSITION when all is read
    last: int  # the end of the chain as far as it is known
    known: int = NO_POSITION  # everything up to this position was read before
    # Both with the newest first.
    positions: "array[int]" = field(default_factory=lambda: array("q"))
    magics: bytearray = field(default_factory=bytearray)
    cancelled: set[Cancelled] = field(default_factory=set)
    cancels_read: int = 0  # how many of `magics` were searched for cancels
    delivered_ahead: set[int] = field(default_factory=set)  # behind one that was not taken


class _Fate(Enum):
    """What became of a message whose step is over."""

    TAKEN = "taken"
    NOT_TAKEN = "not taken"
    CANCEL = "cancel"
    CANCELLED = "cancelled"
    DROPPED = "dropped"


class _Passed(NamedTuple):
    step: _Step
    left: int  # units of the step that come after it
    unit: TimerUnit
    topic: str
    fate: _Fate
    message: PutMessage | None = None  # to be put


class StepDelivery:
    """Delivers the messages of steps whose time has come."""

    def __init__(
        self,
        store: MessageStore,
        files: TimerFiles,
        steps: WaitingSteps,
        counts: TimerCountTable,
        totals: TimerTotals,
        clock: Clock,
    ) -> None:
        self.rests_until = 0.0  # monotonic: a message was not taken
        self._store = store
        self._files = files
        self._steps = steps
        self._counts = counts
        self._totals = totals
        self._clock = clock
        self._open: list[_Step] = []  # soonest first
        self._expected = 0  # messages that wait for them, as the wheel counts
        # Steps that were delivered in part: before which position of the timer log. More than one only after the clock
        # was set back, or when something is parked for steps that are being delivered.
        self._begun: dict[int, int] = {}
        self._silent_until = 0.0

    @property
    def open_ms(self) -> int | None:
        """The time of the first step that is being delivered."""
        return self._open[0].time_ms if self._open else None

    @property
    def has_room(self) -> bool:
        """Whether one more step should be opened: those that are open do not make a whole group."""
        return self._expected < GROUP_MESSAGES

    @property
    def begun(self) -> tuple[tuple[int, int], ...]:
        """Steps that were delivered in part, each with the position of the timer log before which it was."""
        return tuple(sorted(self._begun.items()))

    def resume(self, begun: Iterable[tuple[int, int]]) -> None:
        """Know how far it had come when the broker stopped."""
        self._begun = dict(begun)

    def open(self, time_ms: int) -> None:
        """Begin with a step; it lies behind those that are open."""
        assert not self._open or self._open[-1].time_ms < time_ms
        slot = self._files.wheel.slot(time_ms)
        self._open.append(_Step(time_ms, slot.last_position, slot.last_position))
        self._expected += max(slot.messages, 1)

    def advance(self, now_ms: int) -> Puts[int]:
        """Do a bounded part of the open steps; 0 when nothing could be done."""
        if not self._open:
            return 0
        return self._read_chains() or self._read_cancels() or (yield from self._deliver_group(now_ms))

    def _read_chains(self) -> int:
        """Find the units of the open steps; how many were looked for, found or not."""
        left = CHAIN_GROUP
        for step in self._open:
            if step.unread != NO_POSITION:
                before = len(step.positions)
                step.unread = self._files.log.walk_back(step.unread, step.known, left, step.positions, step.magics)
                left -= max(len(step.positions) - before, 1)
                if left <= 0:
                    break
        return CHAIN_GROUP - left

    def _read_cancels(self) -> int:
        """Remember which messages are not to be delivered; how many of the units read since the last time were seen."""
        read = seen = 0
        for step in self._open:
            magics = step.magics
            while step.cancels_read < len(magics) and read < GROUP_MESSAGES:
                number = step.cancels_read
                if magics[number] & (MAGIC_DELETE | MAGIC_ROLL) == MAGIC_DELETE:
                    read += 1
                    unit = self._files.log.unit(step.positions[number])
                    record = self._store.by_physical_offset(unit.physical_offset)
                    if record is not None:
                        with contextlib.suppress(DataError):  # reported when its turn comes
                            step.cancelled.add(cancels_in(record))
                step.cancels_read += 1
                seen += 1
        return seen

    def _deliver_group(self, now_ms: int) -> Puts[int]:
        """Put the next messages, of as many steps as make a group, and close the steps that have no more."""
        passed: list[_Passed] = []
        group: list[PutMessage] = []
        reached: list[tuple[_Step, int]] = []  # how many units of a step come after this group
        size = 0
        for step in self._open:
            if len(passed) >= GROUP_MESSAGES or size >= GROUP_BYTES:
                break
            before = self._begun.get(step.time_ms, 0)
            left = len(step.positions)
            while left and len(passed) < GROUP_MESSAGES and size < GROUP_BYTES:
                left -= 1
                position = step.positions[left]
                if position >= before and position not in step.delivered_ahead:
                    unit = self._files.log.unit(position)
                    each = self._fate_of(step, unit, left, now_ms)
                    passed.append(each)
                    if each.message is not None:
                        group.append(each.message)
                        size += unit.record_size
            reached.append((step, left))
        statuses = iter([result.status for result in (yield group)] if group else [])
        failed = self._account(passed, statuses)
        done = 0
        for step, left in reached:
            if failed is not None and failed.step is step:
                done += self._pass(step, failed.left + 1)
                break
            done += self._pass(step, left)
        # The last step stays open until what was put is dispatched: when nothing is open any more, all can be read.
        return done + self._close_delivered(self._open[:-1] if group else self._open)

    def _account(self, passed: Sequence[_Passed], statuses: Iterator[PutStatus]) -> _Passed | None:
        """Count what became of messages; the first that was not taken, which is tried again."""
        failed: _Passed | None = None
        totals = self._totals
        changes: Counter[str] = Counter()
        puts = 0
        for each in passed:
            fate = each.fate if each.message is None else self._fate_of_put(each, next(statuses), failed is not None)
            if fate is _Fate.TAKEN:
                puts += 1
                totals.rolled += each.unit.rolls
                totals.delivered += not each.unit.rolls
                if failed is not None:  # never twice: it is passed over when its turn comes
                    each.step.delivered_ahead.add(each.step.positions[each.left])
            elif failed is not None:
                continue  # its turn comes again
            elif fate is _Fate.NOT_TAKEN:
                failed = each
                self.rests_until = self._clock.monotonic() + RETRY_SECONDS
                continue
            totals.cancelled += fate is _Fate.CANCELLED
            totals.dropped += fate is _Fate.DROPPED
            changes[each.topic] += 1 if each.unit.deletes else -1
        self._counts.add_all(changes)
        return failed

    def _pass(self, step: _Step, left: int) -> int:
        """Go on behind what was delivered; how many units that were."""
        done = len(step.positions) - left
        if done:
            self._begun[step.time_ms] = step.positions[left] + 1
            del step.positions[left:]
            del step.magics[left:]
            step.cancels_read = len(step.magics)
        return done

    def _close_delivered(self, among: Sequence[_Step]) -> int:
        """Let go of steps that have no more messages; how many were looked at."""
        delivered_steps = [step for step in among if not step.positions]
        for step in delivered_steps:
            slot = self._files.wheel.slot(step.time_ms)
            if slot.last_position != step.last:  # something was parked for it while it was delivered
                step.known, step.unread, step.last = step.last, slot.last_position, slot.last_position
                continue
            self._files.take_out(step.time_ms)
            self._steps.finished(step.time_ms)
            self._begun.pop(step.time_ms, None)
            self._open.remove(step)
        if not self._open:
            self._expected = 0
            if self._steps.first_ms is None:
                self._counts.none_waits()
        return len(delivered_steps)

    def _fate_of(self, step: _Step, unit: TimerUnit, left: int, now_ms: int) -> _Passed:
        """What becomes of a message whose step is over."""
        record = self._store.by_physical_offset(unit.physical_offset)
        topic = ""
        try:
            if record is None:
                raise DataError(f"the log has no record at {unit.physical_offset}")
            properties = properties_of(record)
            topic = (find_property(properties, REAL_TOPIC) or b"").decode("utf-8", "replace")
            if unit.deletes and not unit.rolls:
                return _Passed(step, left, unit, topic, _Fate.CANCEL)
            if step.cancelled and not unit.rolls and is_cancelled(properties, step.cancelled):
                return _Passed(step, left, unit, topic, _Fate.CANCELLED)
            return _Passed(step, left, unit, topic, _Fate.TAKEN, delivered(record, unit, now_ms))
        except DataError as error:
            _logger.error("a timer message cannot be delivered time=%d reason=%s", step.time_ms, error)
            return _Passed(step, left, unit, topic, _Fate.DROPPED)

    def _fate_of_put(self, each: _Passed, status: PutStatus, waits_anyhow: bool) -> _Fate:
        if status is PutStatus.PUT_OK:
            return _Fate.TAKEN
        if status not in NEVER_TAKEN:
            if not waits_anyhow:
                self._complain(each.topic, status)
            return _Fate.NOT_TAKEN
        if not waits_anyhow:
            _logger.error("a timer message is refused for ever topic=%s status=%s", each.topic, status.value)
        return _Fate.DROPPED

    def _complain(self, topic: str, status: PutStatus) -> None:
        now = self._clock.monotonic()
        if now >= self._silent_until:
            self._silent_until = now + _SAME_FAILURE_SECONDS
            _logger.error("a timer message was not taken, it waits topic=%s status=%s", topic, status.value)
