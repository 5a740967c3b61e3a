"""An IndexFile: header 40 bytes, hash slots of 4 bytes, entries of 20 bytes chained from their slot.

slot s (from 0) stands at 40 + 4·s, entry k (from 1; 0 is never used) at 40 + 4·slots + 20·k.
A slot holds the number of the newest entry of its chain, an entry that of the one before it; 0 ends the chain.
"""

from struct import Struct
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from skyrocket.format.dtypes import Int64s, dtype_of
from skyrocket.format.java_hash import java_hash

HEADER = Struct(">qqqqii")
HEADER_SIZE = HEADER.size
SLOT_SIZE = 4
ENTRY = Struct(">iqii")
ENTRY_SIZE = ENTRY.size
SLOT_DTYPE = np.dtype(">i4")

MAX_SECONDS = 2147483647
_NUMBER_BITS = 31  # of an entry; a slot number takes at most 32 bits: both fit into one of 64

Slots = NDArray[np.signedinteger]


class IndexHeader(NamedTuple):
    """The first 40 bytes; `next_number` is what RocketMQ calls indexCount: the number of the next entry."""

    begin_timestamp: int
    end_timestamp: int
    begin_physical_offset: int
    end_physical_offset: int
    used_slots: int
    next_number: int


class IndexEntry(NamedTuple):
    """One key of one record."""

    key_hash: int
    physical_offset: int
    seconds: int
    previous: int


ENTRY_DTYPE = dtype_of(ENTRY, IndexEntry._fields)


def file_size(slots: int, entries: int) -> int:
    """The size of an index file: 420 000 040 bytes by default."""
    return HEADER_SIZE + SLOT_SIZE * slots + ENTRY_SIZE * entries


def slot_position(slot: int) -> int:
    """Where a slot stands in the file."""
    return HEADER_SIZE + SLOT_SIZE * slot


def entry_position(slots: int, number: int) -> int:
    """Where an entry stands in the file."""
    return HEADER_SIZE + SLOT_SIZE * slots + ENTRY_SIZE * number


def decode_header(buffer: bytes | memoryview) -> IndexHeader:
    """The header; a count of 0 or less reads as 1, as in RocketMQ."""
    header = IndexHeader(*HEADER.unpack_from(buffer, 0))
    return header if header.next_number > 0 else header._replace(next_number=1)


def can_be_true(header: IndexHeader, capacity: int) -> bool:
    """Whether a header can be that of a file with so many entries; the index is rebuilt where it cannot."""
    return (
        1 <= header.next_number <= capacity
        and 0 <= header.used_slots < header.next_number
        and 0 <= header.begin_timestamp <= header.end_timestamp
        and 0 <= header.begin_physical_offset <= header.end_physical_offset
    )


def key_text(topic: str, key: str) -> str:
    """The text whose hash is stored for a key (or unique key) of a message."""
    return f"{topic}#{key}"


def tag_text(topic: str, tags: str) -> str:
    """The text whose hash 5.4.0 stores for the tags of a message."""
    return f"{topic}#T#{tags}"


def index_hash(text: str) -> int:
    """The stored hash: absolute value of Java's hash; the one value that has none becomes 0."""
    h = abs(java_hash(text))
    return 0 if h == 1 << 31 else h


def overlaps(header: IndexHeader, begin: int, end: int) -> bool:
    """Whether a file may hold entries between two times."""
    first, last = header.begin_timestamp, header.end_timestamp
    return (begin < first and end > last) or first <= begin <= last or first <= end <= last


def append_entries(
    slots: Slots, header: IndexHeader, hashes: Int64s, physical_offsets: Int64s, store_timestamps: Int64s
) -> tuple[NDArray[np.void], IndexHeader]:
    """The entries of keys behind those that a file has, and its new header; the slots are changed.

    The header of an empty file begins with the end of the file before it.
    """
    first = header.next_number <= 1
    begin = header.begin_timestamp
    seconds = (store_timestamps - begin) // 1000 if begin > 0 else np.zeros_like(store_timestamps)
    if first:
        # RocketMQ: the first entry still counts from the seeded begin (end of the file before), the others from it.
        seconds[1:] = (store_timestamps[1:] - store_timestamps[0]) // 1000
    previous, opened = chain_entries(hashes % len(slots), slots, header.next_number)
    entries = np.empty(len(hashes), dtype=ENTRY_DTYPE)
    entries["key_hash"] = hashes
    entries["physical_offset"] = physical_offsets
    entries["seconds"] = np.clip(seconds, 0, MAX_SECONDS)
    entries["previous"] = previous
    return entries, IndexHeader(
        int(store_timestamps[0]) if first else begin,
        int(store_timestamps[-1]),
        int(physical_offsets[0]) if first else header.begin_physical_offset,
        int(physical_offsets[-1]),
        header.used_slots + opened,
        header.next_number + len(hashes),
    )


def chain_entries(own_slots: Int64s, slots: Slots, next_number: int) -> tuple[Int64s, int]:
    """The predecessor of each entry, and how many slots were empty; the slots then hold the newest numbers.

    Of entries in one slot each has the one before it as its predecessor, and only the last number goes into the slot:
    the result is the same as if they had come one by one.
    """
    # Sorting slot and number as one is twice as fast as a stable argsort of the slots.
    keyed = np.sort(own_slots << _NUMBER_BITS | np.arange(len(own_slots)))
    order, sorted_slots = keyed & ((1 << _NUMBER_BITS) - 1), keyed >> _NUMBER_BITS
    numbers = order + next_number
    changes = sorted_slots[1:] != sorted_slots[:-1]
    first, last = np.append(True, changes)[: len(order)], np.append(changes, True)[: len(order)]
    before = slots[sorted_slots[first]].astype(np.int64)
    before[(before < 0) | (before > numbers[first])] = 0  # never written, or damaged
    chained = np.empty_like(numbers)
    chained[1:] = numbers[:-1]
    chained[first] = before
    slots[sorted_slots[last]] = numbers[last]
    previous = np.empty_like(chained)
    previous[order] = chained
    return previous, int((before == 0).sum())
