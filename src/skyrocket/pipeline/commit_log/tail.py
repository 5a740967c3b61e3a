"""The end of the newest file: is a broken record torn, damaged, or being written right now?

A broker copies a record into its mapped file from front to back, and behind it the file is zero. So what stands at the
end of the newest file and is not a whole record is *unfinished*, and not damage, when

- no record follows it anywhere in the file,
- everything behind the size that it claims is zero, and
- its last byte is zero, or its head is not complete: the copy has not come that far.

A crash in the middle of a write leaves the same picture; recovery cuts it off, and it was never acknowledged as
flushed. A record whose end is there and whose middle is wrong is damage. To be sure that it was not seen half-written,
it is looked at a second time a moment later: an append takes microseconds.
"""

import time

import numpy as np

from skyrocket.errors import CorruptRecord
from skyrocket.format import record
from skyrocket.format.record import BLANK, Buffer, read_head

SECOND_LOOK_S = 0.2


def is_unfinished(buffer: Buffer, position: int) -> bool:
    """Whether the bytes at the end of the newest file look like a record whose copy has not come to its end."""
    data = np.frombuffer(buffer, dtype=np.uint8)
    rest = data[position:]
    if len(rest) < BLANK.size:
        return True
    if not rest[BLANK.size :].any():
        return True  # size and magic have come at most, and perhaps not whole
    size, magic = BLANK.unpack_from(buffer, position)
    if size < record.SMALLEST_RECORD or size > len(rest):
        return False
    if magic not in (record.MAGIC_V1, record.MAGIC_V2):
        return False
    return not rest[size - 1 :].any()


def became_whole(buffer: Buffer, position: int, base_offset: int) -> bool:
    """Whether a second look finds an intact record where the first did not; it is then behind this read's end."""
    time.sleep(SECOND_LOOK_S)
    try:
        read_head(buffer, position, base_offset + position, check_crc=True)
    except CorruptRecord:
        return False
    return True
