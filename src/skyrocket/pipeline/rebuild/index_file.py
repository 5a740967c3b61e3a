"""Keys in log order → one index file, byte for byte as if they had been put one by one.

Keys come in pieces, so that a file of twenty million entries does not have to be in memory.
"""

import os
from collections.abc import Iterable
from pathlib import Path
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from skyrocket.format.index_layout import (
    HEADER,
    HEADER_SIZE,
    SLOT_DTYPE,
    IndexHeader,
    append_entries,
    entry_position,
    file_size,
)
from skyrocket.pipeline.rebuild.queues import write_all


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
    header = IndexHeader(end_before, 0, 0, 0, 0, 1)
    descriptor = os.open(path, os.O_RDWR | os.O_CREAT | os.O_TRUNC, 0o644)
    try:
        os.ftruncate(descriptor, file_size(slots, capacity))
        for keys in pieces:
            columns = (keys[name].astype(np.int64) for name in ("hash", "physical_offset", "store_timestamp"))
            at = entry_position(slots, header.next_number)
            entries, header = append_entries(table, header, *columns)
            write_all(descriptor, memoryview(entries.tobytes()), at)
        write_all(descriptor, memoryview(table.astype(SLOT_DTYPE).tobytes()), HEADER_SIZE)
        os.pwrite(descriptor, HEADER.pack(*header), 0)
        os.fsync(descriptor)
    finally:
        os.close(descriptor)
    return header
