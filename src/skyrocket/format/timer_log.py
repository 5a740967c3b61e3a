"""The timer log: one unit of 52 bytes for each parked message, chained backwards per slot of the wheel.

    SIZE 4 = 52 | PREVIOUS 8 | MAGIC 4 | WRITE TIME 8 | DELAY 4 | PHYSICAL OFFSET 8 | RECORD SIZE 4 |
    TOPIC HASH 4 | RESERVED 8

A file ends with a blank: bytes left 4 | 0 8 | MAGIC_BLANK 4. It may be exactly as long as a unit, so the magic tells
them apart, not the size.
"""

from collections.abc import Iterator
from enum import Enum
from struct import Struct
from typing import NamedTuple

from skyrocket.format.dtypes import dtype_of

Buffer = bytes | bytearray | memoryview

UNIT = Struct(">iqiqiqiiq")
UNIT_SIZE = UNIT.size
BLANK = Struct(">iqi")
BLANK_SIZE = BLANK.size
NO_POSITION = -1
MAGIC_BLANK = -875286124
MAGIC_DEFAULT = 1
MAGIC_ROLL = 2  # park again instead of delivering
MAGIC_DELETE = 4  # cancels another message of the same slot
MAGIC_BITS = 0xF

_I32 = Struct(">i")
_MAGIC_AT = 12


class TimerUnit(NamedTuple):
    """A parked message; `previous` is the log position of the unit before it in the same slot, or NO_POSITION."""

    previous: int
    magic: int
    write_time_ms: int
    delay_ms: int
    physical_offset: int
    record_size: int
    topic_hash: int = 0
    reserved: int = 0

    @property
    def slot_time_ms(self) -> int:
        """The wheel time at which it is due, or is parked again."""
        return self.write_time_ms + self.delay_ms

    @property
    def rolls(self) -> bool:
        return self.magic & MAGIC_ROLL != 0

    @property
    def deletes(self) -> bool:
        return self.magic & MAGIC_DELETE != 0


UNIT_DTYPE = dtype_of(UNIT, ("size", *TimerUnit._fields))


class TimerLogEnd(Enum):
    """Why a walk stopped."""

    LIMIT = "limit"  # exactly at the end of what may be read
    BLANK = "blank"  # the next unit is in the next file
    ZERO = "zero"  # nothing was written here
    DAMAGED = "damaged"


def decode_unit(buffer: Buffer, position: int = 0) -> TimerUnit | None:
    """The unit at a position; None where there is no whole and valid one."""
    if not 0 <= position <= len(buffer) - UNIT_SIZE:
        return None
    size, *fields = UNIT.unpack_from(buffer, position)
    unit = TimerUnit._make(fields)
    return unit if size == UNIT_SIZE and unit.magic | MAGIC_BITS == MAGIC_BITS else None


def encode_blank(bytes_left: int) -> bytes:
    """The head of the blank that fills the rest of a file."""
    return BLANK.pack(bytes_left, 0, MAGIC_BLANK)


def needs_blank(bytes_left: int) -> bool:
    """Whether the next unit begins a new file: behind every unit there must be room for a blank."""
    return bytes_left < UNIT_SIZE + BLANK_SIZE


def units_per_file(file_size: int) -> int:
    """How many units a full file holds."""
    return (file_size - BLANK_SIZE) // UNIT_SIZE


def place_of_next(end: int, file_size: int) -> int:
    """Where the unit goes that follows an end of the log: there, or at the start of the next file."""
    inside = end % file_size
    return end - inside + file_size if needs_blank(file_size - inside) else end


class TimerLogWalk:
    """Iterates the units of one file's buffer with their positions in it, then says where and why it stopped."""

    def __init__(self, buffer: Buffer, position: int = 0, limit: int | None = None) -> None:
        self.position = position
        self.end = TimerLogEnd.LIMIT
        self._view = memoryview(buffer)[: len(buffer) if limit is None else limit]

    def __iter__(self) -> Iterator[tuple[int, TimerUnit]]:
        while self.position < len(self._view):
            unit = None if _is_blank(self._view, self.position) else decode_unit(self._view, self.position)
            if unit is None:
                self.end = _why(self._view, self.position)
                return
            yield self.position, unit
            self.position += UNIT_SIZE
        self.end = TimerLogEnd.LIMIT


def _is_blank(view: memoryview, position: int) -> bool:
    room = position + BLANK_SIZE <= len(view)
    return room and _I32.unpack_from(view, position + _MAGIC_AT)[0] == MAGIC_BLANK


def _why(view: memoryview, position: int) -> TimerLogEnd:
    if _is_blank(view, position):
        return TimerLogEnd.BLANK
    return TimerLogEnd.DAMAGED if any(view[position : position + UNIT_SIZE]) else TimerLogEnd.ZERO
