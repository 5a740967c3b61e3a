"""The timer log on disk: units are appended in groups, and read by their position.

Units are written with `pwrite`, not through the map: a full disk is then an error of the group, which leaves the log as
it was. They are read through maps.
"""

from array import array
from struct import Struct
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from skyrocket.errors import DataError
from skyrocket.format.dtypes import Int64s
from skyrocket.format.timer_log import (
    MAGIC_BITS,
    MAGIC_DEFAULT,
    NO_POSITION,
    UNIT_DTYPE,
    UNIT_SIZE,
    TimerUnit,
    decode_unit,
    encode_blank,
    needs_blank,
    place_of_next,
    units_per_file,
)
from skyrocket.store.disk import Disk
from skyrocket.store.mapped_file_queue import MappedFile, MappedFileQueue

_MAPPED_FILES = 8
_CHAIN = Struct(">iqi")  # size, previous, magic: the beginning of a unit


class ScannedUnits(NamedTuple):
    """Units of the log in order, as columns."""

    positions: NDArray[np.int64]
    table: NDArray[np.void]

    @property
    def slot_times_ms(self) -> NDArray[np.int64]:
        times: NDArray[np.int64] = self.table["write_time_ms"].astype(np.int64) + self.table["delay_ms"]
        return times

    def upto(self, count: int) -> "ScannedUnits":
        """The first ones."""
        return ScannedUnits(self.positions[:count], self.table[:count])

    def behind(self, position: int) -> "ScannedUnits":
        """Those from a position on."""
        chosen = self.positions >= position
        return ScannedUnits(self.positions[chosen], self.table[chosen])

    def due_from(self, time_ms: int) -> "ScannedUnits":
        """Those that wait for a time or a later one."""
        chosen = self.slot_times_ms >= time_ms
        return ScannedUnits(self.positions[chosen], self.table[chosen])


class TimerLog:
    """Appends and reads units; `end` is the position behind the last one."""

    def __init__(self, disk: Disk, directory: str, file_size: int) -> None:
        self.file_size = file_size
        self.end = 0
        self._disk = disk
        self._files = MappedFileQueue(disk, directory, file_size, _MAPPED_FILES)
        self._reached: MappedFile | None = None  # the file that was read last
        self._synced = 0  # everything before it is on disk
        self._new_names = False

    # ── life ─────────────────────────────────────────────────────────────────────────────────────────────────────────

    def load(self) -> None:
        """Find the files; `truncate` then says where the log ends. Raises CorruptFile."""
        self._files.load()
        self.end = self._files.end_offset

    def close(self) -> None:
        self._reached = None
        self._files.close()

    @property
    def start(self) -> int:
        """Position of the oldest unit."""
        return self._files.min_offset

    def truncate(self, end: int) -> None:
        """Let the log end here; what stood behind is gone."""
        self._reached = None
        self._files.truncate(end)
        self._files.pin_last()
        self.end = self._synced = end

    def drop_before(self, position: int) -> int:
        """Delete files, but not the newest, whose units all stand before a position; returns how many."""
        dropped = 0
        while len(starts := self._files.starts) > 1 and starts[0] + self.file_size <= position:
            if self._reached is not None and self._reached.start_offset == starts[0]:
                self._reached = None
            self._files.drop_file(starts[0])
            dropped += 1
        return dropped

    # ── writing ──────────────────────────────────────────────────────────────────────────────────────────────────────

    def next_places(self, count: int) -> Int64s:
        """The positions of the units that come next."""
        first = place_of_next(self.end, self.file_size)
        capacity, inside = units_per_file(self.file_size), first % self.file_size
        if inside // UNIT_SIZE + count <= capacity:
            return np.arange(first, first + count * UNIT_SIZE, UNIT_SIZE, dtype=np.int64)
        numbers = np.arange(count, dtype=np.int64) + inside // UNIT_SIZE
        places: Int64s = first - inside + numbers // capacity * self.file_size + numbers % capacity * UNIT_SIZE
        return places

    def append(self, positions: Int64s, units: NDArray[np.void]) -> None:
        """Write units to their places, the next ones; raises OSError, then the log is as it was."""
        first = 0
        while first < len(positions):
            position = int(positions[first])
            file_start = position - position % self.file_size
            behind = int(np.searchsorted(positions, file_start + self.file_size))
            file = self._files.find(file_start)
            if file is None:
                file = self._roll(file_start)
            self._disk.write_at(file.fd, units[first:behind].tobytes(), position - file_start)
            first = behind
        if len(positions):
            self.end = int(positions[-1]) + UNIT_SIZE

    def _roll(self, file_start: int) -> MappedFile:
        before = self._files.find(file_start - 1) if file_start else None
        if before is not None:
            # Behind the last unit that is written there, which may not be the log's end yet.
            inside = units_per_file(self.file_size) * UNIT_SIZE
            assert needs_blank(self.file_size - inside)
            self._disk.write_at(before.fd, encode_blank(self.file_size - inside), inside)
        file = self._files.append_file(file_start)
        self._new_names = True
        return file

    def sync(self, end: int) -> None:
        """Force the units before a position to disk; from any one thread."""
        if self._new_names:
            self._new_names = False
            self._disk.sync_directory(self._files.directory)
        position = self._synced - self._synced % self.file_size
        while position < end:
            file = self._files.find(position)
            if file is not None:  # deleted files need no sync
                file.sync()
            position += self.file_size
        self._synced = max(self._synced, end)

    # ── reading ──────────────────────────────────────────────────────────────────────────────────────────────────────

    def unit(self, position: int) -> TimerUnit:
        """The unit at a position; raises DataError where there is none."""
        file = self._file(position)
        unit = decode_unit(file.view, position - file.start_offset)
        if unit is None:
            raise DataError(f"the timer log has no unit at {position}")
        return unit

    def last_unit_of_oldest_file(self) -> TimerUnit | None:
        """Of a file that is full; None when only the newest is left."""
        if self.end <= self.start + self.file_size:
            return None
        return self.unit(self.start + (units_per_file(self.file_size) - 1) * UNIT_SIZE)

    def _file(self, position: int) -> MappedFile:
        file = self._reached
        if file is None or not file.start_offset <= position < file.start_offset + self.file_size:
            file = self._files.find(position) if 0 <= position < self.end else None
            if file is None:
                raise DataError(f"the timer log, from {self.start} to {self.end}, does not reach position {position}")
            self._reached = file
        return file

    def walk_back(self, position: int, stop_at: int, at_most: int, positions: "array[int]", magics: bytearray) -> int:
        """Follow a chain from a unit to the ones before it, down to one that is known; where to go on, or NO_POSITION.

        Adds what it passes to `positions` and `magics`. A chain ends where the log begins: older units have left it.
        """
        unpack = _CHAIN.unpack_from
        start = max(self.start, stop_at + 1)
        while position != NO_POSITION and position >= start and at_most > 0:
            file = self._file(position)
            size, previous, magic = unpack(file.view, position - file.start_offset)
            if size != UNIT_SIZE or magic | MAGIC_BITS != MAGIC_BITS or previous >= position:
                raise DataError(f"the timer log has no unit at {position}")
            positions.append(position)
            magics.append(magic)
            position = previous
            at_most -= 1
        return position if position >= start else NO_POSITION

    def scan(self, position: int) -> ScannedUnits:
        """All units from the file of a position on, up to the first place where there is none."""
        tables: list[NDArray[np.void]] = []
        places: list[NDArray[np.int64]] = []
        for start in self._files.starts:
            if start + self.file_size <= position:
                continue
            file = self._files.find(start)
            assert file is not None
            capacity = units_per_file(self.file_size)
            table = np.frombuffer(file.view, UNIT_DTYPE, count=capacity)
            magic = table["magic"]
            valid = (table["size"] == UNIT_SIZE) & (magic & ~MAGIC_BITS == 0) & (magic & MAGIC_DEFAULT != 0)
            count = capacity if valid.all() else int(np.argmin(valid))
            tables.append(table[:count].copy())
            places.append(start + UNIT_SIZE * np.arange(count, dtype=np.int64))
            if count < capacity:
                break
        if not tables:
            return ScannedUnits(np.empty(0, np.int64), np.empty(0, UNIT_DTYPE))
        return ScannedUnits(np.concatenate(places), np.concatenate(tables))
