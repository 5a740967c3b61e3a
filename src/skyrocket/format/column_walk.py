"""The records of a buffer, many at once: the chain of their sizes, and what stands where the chain breaks.

Sizes are followed one by one, as they must be; that is not what decoding waits for. Everything else about a record is
checked for many at once (`record_columns.examine`). Where the chain breaks, the next record is found by its magic
(`record_search`).
"""

from collections.abc import Iterator
from dataclasses import dataclass
from itertools import repeat
from struct import Struct
from struct import error as struct_error
from typing import NamedTuple

import numpy as np

from skyrocket.errors import CorruptRecord
from skyrocket.format import record
from skyrocket.format.dtypes import Int64s
from skyrocket.format.record import Buffer, WalkEnd
from skyrocket.format.record_columns import Parts, examine
from skyrocket.format.record_search import find_record, is_record

_SIZE = Struct(">i")
_CACHE_LINE = 64
_NEAR_BYTES = 1 << 18
_PHYSICAL_OFFSET = Struct(">q")

BATCH_RECORDS = 8192  # more does not stay in the cache between the walk and the decoding
BATCH_BYTES = 8 << 20


class Damage(NamedTuple):
    """A region of a buffer that holds no record; its end is the next record, or the end of the buffer."""

    position: int
    length: int
    cause: str


class Positions(NamedTuple):
    """Where the records of a range begin, and what stands between them that is not a record."""

    positions: Int64s
    damage: list[Damage]
    end: WalkEnd
    stop: int  # where the walk stopped


@dataclass(slots=True)
class ColumnWalk:
    """Follows records through a range of a buffer, batch by batch; afterwards says where and why it stopped.

    A record belongs to the range in which it starts. `base_offset` None: a pull answer, whose records lie elsewhere in
    the log; there is no way to find a record behind damage then, and the rest of the buffer is lost.
    """

    buffer: Buffer
    begin: int
    limit: int
    base_offset: int | None
    batch_records: int = BATCH_RECORDS
    batch_bytes: int = BATCH_BYTES
    end: WalkEnd = WalkEnd.LIMIT
    stop: int = 0

    def __iter__(self) -> Iterator[Parts | Damage]:
        buffer, position = self.buffer, self.begin
        # Damage right behind the last record of the range is reported here: the reader of the next range searches its
        # first record, and would pass over it in silence.
        while position < self.limit or not self._is_met_by_next_range(position):
            parts, position = intact_run(
                buffer, position, self.limit, self.base_offset, self.batch_records, self.batch_bytes
            )
            if len(parts):
                yield parts
                continue
            self.end, cause = why(buffer, position, self.base_offset)
            if self.end is WalkEnd.BLANK:
                break
            found = self._next_record(position + 1)
            if found is None and self.end is WalkEnd.ZERO:
                break
            behind = len(buffer) if found is None else found
            yield Damage(position, behind - position, cause)
            position = behind
            self.end = WalkEnd.LIMIT
        self.stop = position

    def _is_met_by_next_range(self, position: int) -> bool:
        if self.base_offset is None or position >= len(self.buffer):
            return True
        return is_record(self.buffer, position, self.base_offset)

    def _next_record(self, position: int) -> int | None:
        if self.base_offset is None:
            return None
        return find_record(self.buffer, position, len(self.buffer), self.base_offset)


def record_positions(buffer: Buffer, begin: int, end: int, base_offset: int | None) -> Positions:
    """All records that start in [begin, end); `begin` must be the start of one (see `find_record`)."""
    walk = ColumnWalk(buffer, begin, end, base_offset)
    found: list[Int64s] = [np.empty(0, dtype=np.int64)]
    damage: list[Damage] = []
    for item in walk:
        if isinstance(item, Damage):
            damage.append(item)
        else:
            found.append(item.positions)
    return Positions(np.concatenate(found), damage, walk.end, walk.stop)


def intact_run(
    buffer: Buffer, position: int, limit: int, base_offset: int | None, most: int, most_bytes: int
) -> tuple[Parts, int]:
    """Whole records back to back from a position on, up to the first that is none, and where that would begin."""
    starts, following = _follow_sizes(buffer, position, limit, most, most_bytes)
    parts = examine(buffer, starts, base_offset)
    if not parts.fits.all():
        good = int(np.argmin(parts.fits))
        following = int(starts[good])
        parts = examine(buffer, starts[:good], base_offset)
    return parts, following


def why(buffer: Buffer, position: int, base_offset: int | None) -> tuple[WalkEnd, str]:
    """What stands at a position where no record does: a blank, nothing, or damage and its cause."""
    if position + 4 <= len(buffer) and buffer[position : position + 4] == b"\0\0\0\0":
        return WalkEnd.ZERO, "zeros where a record belongs"
    if len(buffer) - position < record.SMALLEST_RECORD and base_offset is None:
        return WalkEnd.DAMAGED, f"only {len(buffer) - position} bytes left"
    if base_offset is None:
        physical_offset = _PHYSICAL_OFFSET.unpack_from(buffer, position + record.PHYSICAL_OFFSET_AT)[0]
    else:
        physical_offset = base_offset + position
    try:
        head = record.read_head(buffer, position, physical_offset)
    except CorruptRecord as damage:
        return WalkEnd.DAMAGED, damage.reason
    assert head is None, f"the record at byte {position} passes one check and fails the other"
    return WalkEnd.BLANK, ""


def _follow_sizes(buffer: Buffer, position: int, limit: int, most: int, most_bytes: int) -> tuple[Int64s, int]:
    """Where records back to back from a position begin, by their sizes alone, and where the next one would."""
    last = min(limit, len(buffer) - record.SMALLEST_RECORD + 1, position + most_bytes)
    near = position  # up to here the bytes are in the processor's cache
    starts: list[int] = []
    append, unpack = starts.append, _SIZE.unpack_from
    try:
        for _ in repeat(None, most):  # a wrong size may lead anywhere, or stay: it is found afterwards
            if position >= near:
                if position >= last:
                    break
                near = _bring_near(buffer, position, last)
            append(position)
            position += unpack(buffer, position)[0]
    except struct_error:
        position = -1
    chain = np.array([*starts, position], dtype=np.int64)
    too_small = np.diff(chain) < record.SMALLEST_RECORD
    if too_small.any():
        chain = chain[: int(np.argmax(too_small)) + 1]
    elif position > len(buffer):  # only the last of them can pass the end
        chain = chain[:-1]
    return chain[:-1], int(chain[-1])


def _bring_near(buffer: Buffer, begin: int, limit: int) -> int:
    """Load the next piece into the cache: the chain waits for each of its sizes, this does not wait."""
    piece = min(limit - begin, _NEAR_BYTES)
    np.frombuffer(buffer, np.uint8, piece, begin)[::_CACHE_LINE].max()
    return begin + piece
