"""One IndexFile: key and time → physical offsets, through hash slots and chains of entries.

Entries are put in batches; the bytes are the same as if they had come one by one.
"""

import mmap
from collections.abc import Iterator

import numpy as np
from numpy.typing import NDArray

from skyrocket.format import index_layout as layout
from skyrocket.format.index_layout import ENTRY, ENTRY_SIZE, HEADER, SLOT_DTYPE, IndexHeader
from skyrocket.store.disk import Disk

_Ints = NDArray[np.int64]
_ALLOCATE_ENTRIES = 1 << 16


class IndexFile:
    """A mapped index file."""

    def __init__(self, disk: Disk, path: str, slots: int, entries: int, seed: IndexHeader | None = None) -> None:
        """Open the file; with a seed make it: the header begins with the end of the file before it."""
        self.path = path
        self.slots = slots
        self.capacity = entries
        self._disk = disk
        size = layout.file_size(slots, entries)
        found = size if seed is not None else disk.size(path)
        self._fd = disk.create(path, size) if seed is not None or found < size else disk.open(path)
        self._map: mmap.mmap = disk.map(self._fd, size)
        self._slot_view = np.frombuffer(self._map, dtype=SLOT_DTYPE, count=slots, offset=layout.HEADER_SIZE)
        self._allocated = 0  # entries that have disk blocks
        if seed is not None:
            disk.allocate(self._fd, 0, layout.entry_position(slots, 0))
            self._map[: layout.HEADER_SIZE] = HEADER.pack(*seed)
        self.header = layout.decode_header(memoryview(self._map))
        self._lost_entries = found < layout.entry_position(slots, self.header.next_number)

    def __del__(self) -> None:
        if hasattr(self, "_fd"):
            self._disk.close(self._fd)

    @property
    def full(self) -> bool:
        return self.header.next_number >= self.capacity

    @property
    def room(self) -> int:
        """Entries that still fit."""
        return self.capacity - self.header.next_number

    @property
    def sane(self) -> bool:
        """Whether the header can be true, and the file had room for what it counts; others are rebuilt from the log."""
        return layout.can_be_true(self.header, self.capacity) and not self._lost_entries

    # -- building --------------------------------------------------------------------------------------

    def put(self, hashes: _Ints, physical_offsets: _Ints, timestamps: _Ints) -> None:
        """Add entries, at most `room` of them, in order; there is a place for each (`reserve`)."""
        count = len(hashes)
        number = self.header.next_number
        assert 0 < count <= self.room
        assert number + count <= self._allocated
        entries, self.header = layout.append_entries(self._slot_view, self.header, hashes, physical_offsets, timestamps)
        at = layout.entry_position(self.slots, number)
        self._map[at : at + count * ENTRY_SIZE] = entries.tobytes()
        self._map[: layout.HEADER_SIZE] = HEADER.pack(*self.header)

    def reserve(self, count: int) -> None:
        """Get disk blocks for so many more entries; a map without them would kill the process when it is written."""
        end_number = self.header.next_number + count
        if end_number > self._allocated:
            wanted = min(end_number + _ALLOCATE_ENTRIES, self.capacity)
            start = layout.entry_position(self.slots, self._allocated)
            self._disk.allocate(self._fd, start, layout.entry_position(self.slots, wanted) - start)
            self._allocated = wanted

    # -- reading ---------------------------------------------------------------------------------------

    def find(self, key_hash: int, begin: int, end: int, limit: int) -> Iterator[int]:
        """Physical offsets of entries with a hash and a time in range, newest first."""
        header = self.header
        number = int(self._slot_view[key_hash % self.slots])
        if header.next_number <= 1:
            return
        found = 0
        for _ in range(header.next_number):  # a damaged chain may run in a circle
            if not 0 < number <= header.next_number or found >= limit:
                return
            at = layout.entry_position(self.slots, number)
            stored_hash, physical_offset, seconds, previous = ENTRY.unpack_from(self._map, at)
            if seconds < 0:
                return
            time = header.begin_timestamp + seconds * 1000
            if stored_hash == key_hash and begin <= time <= end:
                found += 1
                yield physical_offset
            if previous == number or time < begin:
                return
            number = previous

    def sync(self) -> None:
        self._disk.sync(self._fd)
