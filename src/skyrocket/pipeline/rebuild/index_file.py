"""Keys in log order → one index file, byte for byte as if they had been put one by one.

Keys come in pieces, so that a file of twenty million entries does not have to be in memory. Within a piece an entry's
predecessor is the one before it in its slot; between pieces the slots say it.
"""

import os
from collections.abc import Iterable
from pathlib import Path
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from skyrocket.format.index_layout import (
    ENTRY_DTYPE,
    HEADER,
    HEADER_SIZE,
    MAX_SECONDS,
    SLOT_DTYPE,
    IndexHeader,
    entry_position,
    file_size,
)
from skyrocket.pipeline.columns.parts import Int64s

_PLACE_BITS = 31  # a slot number takes at most 32 bits: both fit into one of 64


class KeyRange(NamedTuple):
    """Keys [begin, end) of a file of keys."""

    path: str
    begin: int
    end: int


def ranges_of_files(counts: list[tuple[str, int]], capacity: int) -> list[list[KeyRange]]:
    """Which keys go into which index file; entry 0 of a file is never used, so it takes one less than its capacity."""
    files: list[list[KeyRange]] = []
    room = 0
    for path, count in counts:
        begin = 0
        while begin < count:
            if room == 0:
                files.append([])
                room = capacity - 1
            end = min(count, begin + room)
            files[-1].append(KeyRange(path, begin, end))
            room -= end - begin
            begin = end
    return files


def write_index_file(
    path: Path, pieces: Iterable[NDArray[np.void]], slots: int, capacity: int, end_before: int
) -> IndexHeader:
    """Make a file of these keys; `end_before` is the time of the last key of the file before, 0 for the first."""
    table = np.zeros(slots, dtype=np.int64)
    header = IndexHeader(0, 0, 0, 0, 0, 1)
    descriptor = os.open(path, os.O_RDWR | os.O_CREAT | os.O_TRUNC, 0o644)
    try:
        os.ftruncate(descriptor, file_size(slots, capacity))
        for keys in pieces:
            entries, header = _entries(keys, table, header, end_before)
            _write_all(descriptor, entries, entry_position(slots, header.next_number - len(keys)))
        _write_all(descriptor, table.astype(SLOT_DTYPE), HEADER_SIZE)
        os.pwrite(descriptor, HEADER.pack(*header), 0)
        os.fsync(descriptor)
    finally:
        os.close(descriptor)
    return header


def _entries(
    keys: NDArray[np.void], table: Int64s, header: IndexHeader, end_before: int
) -> tuple[NDArray[np.void], IndexHeader]:
    hashes, times = keys["hash"].astype(np.int64), keys["store_timestamp"].astype(np.int64)
    first = header.next_number == 1
    begin = int(times[0]) if first else header.begin_timestamp
    seconds = np.clip((times - begin) // 1000, 0, MAX_SECONDS)
    if first:
        # RocketMQ: the first entry still counts from the seeded begin, which is the end of the file before.
        seconds[0] = np.clip((times[0] - end_before) // 1000, 0, MAX_SECONDS) if end_before > 0 else 0
    previous, opened = _chain(hashes % len(table), table, header.next_number)
    entries = np.empty(len(keys), dtype=ENTRY_DTYPE)
    entries["key_hash"] = hashes
    entries["physical_offset"] = keys["physical_offset"]
    entries["seconds"] = seconds
    entries["previous"] = previous
    offsets = keys["physical_offset"]
    return entries, IndexHeader(
        begin,
        int(times[-1]),
        int(offsets[0]) if first else header.begin_physical_offset,
        int(offsets[-1]),
        header.used_slots + opened,
        header.next_number + len(keys),
    )


def _chain(slots: Int64s, table: Int64s, next_number: int) -> tuple[Int64s, int]:
    """The predecessor of each entry, and how many slots were empty; the slots then hold the newest numbers."""
    keyed = np.sort(slots << _PLACE_BITS | np.arange(len(slots)))  # twice as fast as a stable argsort
    order, sorted_slots = keyed & ((1 << _PLACE_BITS) - 1), keyed >> _PLACE_BITS
    numbers = order + next_number
    changes = sorted_slots[1:] != sorted_slots[:-1]
    first, last = np.append(True, changes), np.append(changes, True)
    before = table[sorted_slots[first]]
    chained = np.empty_like(numbers)
    chained[1:] = numbers[:-1]
    chained[first] = before
    table[sorted_slots[last]] = numbers[last]
    previous = np.empty_like(chained)
    previous[order] = chained
    return previous, int((before == 0).sum())


def _write_all(descriptor: int, array: NDArray[np.generic], position: int) -> None:
    data = memoryview(array.tobytes())
    while data:
        written = os.pwrite(descriptor, data, position)
        data, position = data[written:], position + written
