"""Parks messages: wheel, timer log and checkpoint together, as they were after any stop.

    park ──▶ timer log (at once, in the page cache) ──▶ wheel (in memory)
    snapshot ──▶ write:  commit log on disk, then timer log, wheel, checkpoint; each before the next

So nothing on disk points to what the disk does not have. After a kill the wheel is behind the timer log, and the units
that it lacks are linked again; after a power cut the timer log may also be behind its queue, and the messages that it
lacks are parked again by the owner, from `queue_offset` on.
"""

import itertools
import logging
from collections.abc import Callable
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from skyrocket.errors import CorruptFile, DataError
from skyrocket.format.dtypes import Bools, Int64s
from skyrocket.format.timer_checkpoint import SIZE, TimerCheckpoint, decode_timer_checkpoint, encode_timer_checkpoint
from skyrocket.format.timer_log import (
    MAGIC_DEFAULT,
    MAGIC_DELETE,
    MAGIC_ROLL,
    NO_POSITION,
    UNIT_DTYPE,
    UNIT_SIZE,
    TimerUnit,
)
from skyrocket.format.timer_wheel import WHEEL_SLOTS, Slot
from skyrocket.store.disk import Disk
from skyrocket.store.layout import StorePaths
from skyrocket.store.timer.unit_log import ScannedUnits, TimerLog
from skyrocket.store.timer.wheel import Chains, Page, Wheel

log = logging.getLogger(__name__)

_LOOKED_AT = 8


class ParkedMessages(NamedTuple):
    """Messages of the commit log and the slots that they go to, as columns."""

    slot_times_ms: Int64s
    write_times_ms: Int64s
    physical_offsets: Int64s
    record_sizes: Int64s
    topic_hashes: Int64s
    rolls: Bools
    cancels: Bools

    def first_ones(self, count: int) -> "ParkedMessages":
        """Only so many."""
        return ParkedMessages(
            self.slot_times_ms[:count],
            self.write_times_ms[:count],
            self.physical_offsets[:count],
            self.record_sizes[:count],
            self.topic_hashes[:count],
            self.rolls[:count],
            self.cancels[:count],
        )


class Snapshot(NamedTuple):
    """What `write` brings to disk."""

    pages: list[Page]
    log_end: int
    checkpoint: TimerCheckpoint


class Recovered(NamedTuple):
    """Where the owner goes on."""

    checkpoint: TimerCheckpoint
    slot_times_ms: list[int]  # of slots in use, soonest first
    last_record: int | None  # physical offset of the message that was parked last
    since_checkpoint: list[TimerUnit]  # parked after the checkpoint was written
    log_is_whole: bool  # False: units that the checkpoint knows are gone


class TimerFiles:
    """Opened once, changed by one owner; `write` may run in another thread, one at a time."""

    def __init__(self, disk: Disk, paths: StorePaths, precision_ms: int, log_file_size: int) -> None:
        self.wheel = Wheel(disk, paths.timer_wheel, precision_ms)
        self.log = TimerLog(disk, paths.timer_log, log_file_size)
        self.checkpoint = TimerCheckpoint()
        self._disk = disk
        self._paths = paths

    # ── life ─────────────────────────────────────────────────────────────────────────────────────────────────────────

    def open(self, commit_log_end: int) -> Recovered:
        """Take up what is there; units of messages behind the end of the commit log are dropped. Raises CorruptFile."""
        self._disk.make_directory(self._paths.config)
        checkpoint = self.checkpoint = self._load_checkpoint()
        self.log.load()
        has_wheel = self.wheel.load()
        flushed = checkpoint.log_flushed_position
        units = self._valid_tail(flushed, commit_log_end)
        new = units.behind(flushed)  # the wheel on disk knows all before it
        if has_wheel:
            known = units.upto(len(units.positions) - len(new.positions))
            self._check_precision(known.due_from(self.wheel.step_of(checkpoint.last_read_time_ms)))
        read_ms = checkpoint.last_read_time_ms
        times = self._link(new)
        lacks_wheel = not has_wheel and self.log.end > self.log.start
        if lacks_wheel or self.wheel.newest_unit(read_ms) >= self.log.end:
            self._build_wheel(read_ms)
        return Recovered(
            checkpoint,
            sorted({*self.wheel.waiting_times(read_ms), *times}),
            int(units.table["physical_offset"][-1]) if len(units.positions) else None,
            [self.log.unit(int(position)) for position in new.positions],
            self.log.end >= flushed,
        )

    def close(self) -> None:
        self.log.close()

    def _load_checkpoint(self) -> TimerCheckpoint:
        try:
            page = self._disk.read_file(self._paths.timer_checkpoint)
        except FileNotFoundError:
            return TimerCheckpoint()
        try:
            return decode_timer_checkpoint(page) if page else TimerCheckpoint()
        except DataError as error:
            raise CorruptFile(
                self._paths.timer_checkpoint,
                str(error),
                "Move it away: timers that are in the log are then delivered again",
            ) from error

    def _valid_tail(self, flushed: int, commit_log_end: int) -> ScannedUnits:
        """The units from the file before the flushed position on; the log is cut behind the last good one."""
        begin = max(flushed - 1 - self.log.file_size, 0)
        begin = max(begin - begin % self.log.file_size, self.log.start)
        units = self.log.scan(begin)
        ends = units.table["physical_offset"].astype(np.int64) + units.table["record_size"]
        lost = np.flatnonzero((units.table["physical_offset"] < 0) | (ends > commit_log_end))
        if len(lost):
            log.warning("timer units of lost messages dropped count=%d", len(units.positions) - int(lost[0]))
            units = units.upto(int(lost[0]))
        end = int(units.positions[-1]) + UNIT_SIZE if len(units.positions) else begin
        self.log.truncate(end)
        return units

    def _build_wheel(self, read_ms: int) -> None:
        log.warning("the timer wheel is built again from the timer log path=%s", self._paths.timer_wheel)
        self.wheel.clear_from(read_ms)
        units = self.log.scan(0)
        self._link(units.due_from(self.wheel.step_of(read_ms)))

    def _link(self, units: ScannedUnits) -> list[int]:
        """Let slots point to units that they do not know yet; the times of these slots."""
        times = units.slot_times_ms
        times -= times % self.wheel.precision_ms
        order = np.argsort(times, kind="stable")
        firsts = np.flatnonzero(np.diff(times[order], prepend=-1))
        linked: list[int] = []
        for first, behind in itertools.pairwise([*firsts, len(order)]):
            members = order[first:behind]
            slot = self.wheel.slot(int(times[members[0]]))
            members = members[units.positions[members] > slot.last_position]
            linked.append(slot.time_ms)
            if not len(members):
                continue
            cancels = int(np.count_nonzero(units.table["magic"][members] & MAGIC_DELETE))
            first_position = int(units.positions[members[0]]) if slot.is_empty else slot.first_position
            messages = slot.messages + len(members) - 2 * cancels
            self.wheel.put(Slot(slot.time_ms, first_position, int(units.positions[members[-1]]), messages))
        return linked

    def _check_precision(self, units: ScannedUnits) -> None:
        """Raises CorruptFile when the wheel does not turn in the steps of units that it knows and that still wait."""
        for time_ms in units.slot_times_ms[-_LOOKED_AT:]:
            wanted_ms = self.wheel.step_of(int(time_ms))
            if self.wheel.stored(wanted_ms).time_ms < wanted_ms:  # a later one is of a later round
                raise CorruptFile(
                    self._paths.timer_wheel,
                    f"has no slot for a timer of {wanted_ms}: is timerPrecisionMs another than it was?",
                    "Set it back, or move the file away: it is built again from the timer log",
                )

    # ── parking ──────────────────────────────────────────────────────────────────────────────────────────────────────

    def park(self, messages: ParkedMessages) -> list[int]:
        """Add messages to their slots; the times of slots that were empty before. Raises OSError, then nothing is.

        They lie within one turn of the wheel, so that no two slots have the same place.
        """
        steps = messages.slot_times_ms // self.wheel.precision_ms
        order = np.argsort(steps, kind="stable")  # what goes to one slot is a run of it, in the order of arrival
        in_order = steps[order]
        begins = np.ones(len(order) + 1, np.bool_)
        np.not_equal(in_order[1:], in_order[:-1], out=begins[1:-1])
        bounds = np.flatnonzero(begins)
        starts = bounds[:-1]
        slots = in_order[starts]
        assert int(slots[-1] - slots[0]) < WHEEL_SLOTS, "two slots have the same place"
        before = self.wheel.chains(slots)
        positions = self.log.next_places(len(order))
        places = positions[order]
        previous = np.empty_like(places)
        previous[order[1:]] = places[:-1]
        previous[order[starts]] = before.last_positions
        self.log.append(positions, _units(messages, previous))
        counts = np.add.reduceat(np.where(messages.cancels[order], -1, 1), starts)
        is_new = before.last_positions == NO_POSITION
        firsts = np.where(before.first_positions == NO_POSITION, places[starts], before.first_positions)
        lasts = places[bounds[1:] - 1]
        self.wheel.put_chains(slots, Chains(firsts, lasts, before.messages + counts))
        opened: list[int] = (slots[is_new] * self.wheel.precision_ms).tolist()
        return opened

    def take_out(self, time_ms: int) -> None:
        """A slot was delivered: it is empty, for whoever comes too late."""
        self.wheel.put(Slot(self.wheel.step_of(time_ms)))

    # ── saving ───────────────────────────────────────────────────────────────────────────────────────────────────────

    @property
    def is_dirty(self) -> bool:
        """Whether the files on disk do not say the same."""
        return self.wheel.is_dirty or self.log.end != self.checkpoint.log_flushed_position

    def snapshot(
        self, last_read_time_ms: int, begun: tuple[tuple[int, int], ...], queue_offset: int, now_ms: int
    ) -> Snapshot:
        """What is true now; the owner calls this between two steps of its work."""
        version = self.checkpoint.data_version
        checkpoint = TimerCheckpoint(last_read_time_ms, self.log.end, queue_offset, queue_offset, version, begun)
        if checkpoint != self.checkpoint:
            checkpoint = checkpoint._replace(data_version=version.next(now_ms))
        return Snapshot(self.wheel.take_dirty(), self.log.end, checkpoint)

    def write(self, snapshot: Snapshot, flush_commit_log: Callable[[], object]) -> None:
        """Bring a snapshot to disk; raises OSError. `flush_commit_log` has everything on disk that was put before."""
        flush_commit_log()
        self.log.sync(snapshot.log_end)
        if snapshot.pages:
            self.wheel.write(snapshot.pages)
        fd = self._disk.create(self._paths.timer_checkpoint, SIZE)
        try:
            self._disk.write_at(fd, encode_timer_checkpoint(snapshot.checkpoint), 0)
            self._disk.sync(fd)
        finally:
            self._disk.close(fd)
        self.checkpoint = snapshot.checkpoint

    def failed(self, snapshot: Snapshot) -> None:
        """A snapshot could not be written: its pages are part of the next."""
        self.wheel.keep_dirty(snapshot.pages)


def _units(messages: ParkedMessages, previous: Int64s) -> NDArray[np.void]:
    """The units of messages, each with the position of the one before it in its slot."""
    units = np.zeros(len(previous), UNIT_DTYPE)
    units["size"] = UNIT_SIZE
    units["previous"] = previous
    units["magic"] = MAGIC_DEFAULT | messages.rolls * MAGIC_ROLL | messages.cancels * MAGIC_DELETE
    units["write_time_ms"] = messages.write_times_ms
    units["delay_ms"] = messages.slot_times_ms - messages.write_times_ms
    units["physical_offset"] = messages.physical_offsets
    units["record_size"] = messages.record_sizes
    units["topic_hash"] = messages.topic_hashes
    return units
