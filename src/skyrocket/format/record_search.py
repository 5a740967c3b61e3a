"""Records found by their magic, where no chain of sizes leads to them: behind damage, or in the middle of a file.

A record stores its own physical offset, so a magic counts only where the offset beside it is the place where it stands.
"""

import re
from collections.abc import Iterator
from struct import Struct

from skyrocket.errors import CorruptRecord
from skyrocket.format.record import (
    BLANK,
    MAGIC_BLANK,
    MAGIC_V1,
    MAGIC_V2,
    PHYSICAL_OFFSET_AT,
    Buffer,
    field_offset,
    read_head,
)


def _pattern(*magics: int) -> re.Pattern[bytes]:
    return re.compile(b"|".join(re.escape(Struct(">i").pack(magic)) for magic in magics))


_RECORD = _pattern(MAGIC_V1, MAGIC_V2)
_RECORD_OR_BLANK = _pattern(MAGIC_V1, MAGIC_V2, MAGIC_BLANK)
_MAGIC_AT = field_offset("magic")
_PHYSICAL_OFFSET = Struct(">q")
_PIECE = 1 << 20
_ZEROS = bytes(_PIECE + 3)


def possible_records(
    buffer: Buffer, begin: int, end: int, base_offset: int, *, blank_end: int | None = None
) -> Iterator[int]:
    """Positions in [begin, end) where a magic and the record's own physical offset stand; the rest is not looked at.

    `base_offset` is the physical offset of the buffer's first byte. With `blank_end` a blank that ends there counts.
    """
    view = memoryview(buffer)
    pattern = _RECORD if blank_end is None else _RECORD_OR_BLANK
    for piece in range(begin, end, _PIECE):
        piece_end = min(piece + _PIECE, end)
        text = bytes(view[piece + _MAGIC_AT : piece_end + _MAGIC_AT + 3])  # searched twice as fast as a view
        if _ZEROS.startswith(text):
            continue  # the unwritten end of a log, of which a gigabyte is passed in a blink
        for found in pattern.finditer(text):
            at = piece + found.start()
            size, magic = BLANK.unpack_from(view, at)
            if (magic == MAGIC_BLANK and at + size == blank_end) or _names_itself(view, at, base_offset):
                yield at


def _names_itself(view: memoryview, position: int, base_offset: int) -> bool:
    at = position + PHYSICAL_OFFSET_AT
    return (
        len(view) - at >= _PHYSICAL_OFFSET.size and _PHYSICAL_OFFSET.unpack_from(view, at)[0] == base_offset + position
    )


def is_record(buffer: Buffer, position: int, base_offset: int) -> bool:
    """Whether a whole record stands at a position, and at its own physical offset."""
    try:
        return read_head(buffer, position, base_offset + position) is not None
    except CorruptRecord:
        return False


def find_record(buffer: Buffer, begin: int, end: int, base_offset: int) -> int | None:
    """The first position in [begin, end) where a whole record stands at its own physical offset."""
    found = possible_records(buffer, begin, end, base_offset)
    return next((at for at in found if is_record(buffer, at, base_offset)), None)
