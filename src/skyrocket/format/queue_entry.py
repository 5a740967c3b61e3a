"""Entries of consume queues: 20 bytes (simple), 46 bytes (batch), and extension units.

Simple: physical offset 8 | record size 4 | tags code 8. The tags code is the hash of the tags, sign-extended;
or the delivery time (delay topic); or the address of an extension unit (then it is below every 32-bit hash).
"""

from struct import Struct
from typing import NamedTuple

from skyrocket.format.dtypes import dtype_of

ENTRY = Struct(">qiq")
ENTRY_SIZE = ENTRY.size

# RocketMQ: written before the first real entry when a queue begins in the middle of a file.
PREFILL_SIZE = 2147483647
PREFILL_ENTRY = ENTRY.pack(0, PREFILL_SIZE, 0)

BATCH_ENTRY = Struct(">qiqqqhii")
BATCH_ENTRY_SIZE = BATCH_ENTRY.size
MOST_BATCH_MESSAGES = (1 << 15) - 1  # that an entry has room for

EXT_UNIT = Struct(">hqqh")  # unit size, tags code, store timestamp, bitmap length
_EXT_BASE = -(1 << 63)
_LARGEST_EXT_ADDRESS = -2147483649


class QueueEntry(NamedTuple):
    """One entry of a consume queue."""

    physical_offset: int
    size: int
    tags_code: int


class BatchQueueEntry(NamedTuple):
    """One entry of a batch consume queue."""

    physical_offset: int
    size: int
    tags_code: int
    store_timestamp: int
    base_offset: int
    messages: int
    compacted_offset: int = -1
    reserved: int = 0


ENTRY_DTYPE = dtype_of(ENTRY, QueueEntry._fields)
BATCH_ENTRY_DTYPE = dtype_of(BATCH_ENTRY, BatchQueueEntry._fields)


class ExtUnit(NamedTuple):
    """One unit of a consume-queue extension file."""

    size: int
    tags_code: int
    store_timestamp: int
    bitmap: bytes


def is_ext_address(tags_code: int) -> bool:
    """Whether a tags code points into the extension file."""
    return tags_code <= _LARGEST_EXT_ADDRESS


def ext_position(tags_code: int) -> int:
    """The byte offset in the extension files that an address means."""
    return tags_code - _EXT_BASE


def decode_ext_unit(buffer: bytes | memoryview, position: int) -> ExtUnit | None:
    """The unit at a position; None where the file has no (whole) unit."""
    if position + EXT_UNIT.size > len(buffer):
        return None
    size, tags_code, store_timestamp, bitmap_bytes = EXT_UNIT.unpack_from(buffer, position)
    if size != EXT_UNIT.size + bitmap_bytes or bitmap_bytes < 0 or position + size > len(buffer):
        return None
    return ExtUnit(size, tags_code, store_timestamp, bytes(buffer[position + EXT_UNIT.size : position + size]))
