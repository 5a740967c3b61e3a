"""One IndexFile: key and time → physical offsets, through hash slots and chains of entries.

Entries are put in batches: for keys of one slot within a batch, each entry's predecessor is the one before it in
the batch, and only the last number goes into the slot. The bytes are the same as if they had come one by one.
"""

import mmap
from collections.abc import Iterator

import numpy as np
from numpy.typing import NDArray

from skyrocket.format import index_layout as layout
from skyrocket.format.index_layout import ENTRY, ENTRY_DTYPE, ENTRY_SIZE, HEADER, SLOT_DTYPE, IndexHeader
from skyrocket.store.disk import Disk

_Ints = NDArray[np.int64]
_ALLOCATE_ENTRIES = 1 << 16
_PLACE_BITS = 31  # a slot number takes at most 32 bits: both fit into one of 64


class IndexFile:
    """A mapped index file."""

    def __init__(self, disk: Disk, path: str, slots: int, entries: int, seed: IndexHeader | None = None) -> None:
        """Open the file; with a seed make it: the header begins with the end of the file before it."""
        self.path = path
        self.slots = slots
        self.capacity = entries
        self._disk = disk
        size = layout.file_size(slots, entries)
        self._fd = disk.create(path, size) if seed is not None or disk.size(path) < size else disk.open(path)
        self._map: mmap.mmap = disk.map(self._fd, size)
        self._slot_view = np.frombuffer(self._map, dtype=SLOT_DTYPE, count=slots, offset=layout.HEADER_SIZE)
        self._allocated = 0  # entries that have disk blocks
        if seed is not None:
            disk.allocate(self._fd, 0, layout.entry_position(slots, 0))
            self._map[: layout.HEADER_SIZE] = HEADER.pack(*seed)
        self.header = layout.decode_header(memoryview(self._map))

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
        """Whether the header can be true; a file whose header cannot is rebuilt from the log."""
        header = self.header
        return (
            1 <= header.next_number <= self.capacity
            and 0 <= header.used_slots < header.next_number
            and 0 <= header.begin_timestamp <= header.end_timestamp
            and 0 <= header.begin_physical_offset <= header.end_physical_offset
        )

    # -- building --------------------------------------------------------------------------------------

    def put(self, hashes: _Ints, physical_offsets: _Ints, timestamps: _Ints) -> None:
        """Add entries, at most `room` of them, in order."""
        count = len(hashes)
        assert 0 < count <= self.room
        header = self.header
        numbers = np.arange(header.next_number, header.next_number + count)
        previous, opened = self._chain(hashes % self.slots, numbers)
        table = np.empty(count, dtype=ENTRY_DTYPE)
        table["key_hash"] = hashes
        table["physical_offset"] = physical_offsets
        table["seconds"] = self._seconds(timestamps)
        table["previous"] = previous
        self._reserve(header.next_number + count)
        at = layout.entry_position(self.slots, header.next_number)
        self._map[at : at + count * ENTRY_SIZE] = table.tobytes()
        first = header.next_number <= 1
        self.header = IndexHeader(
            int(timestamps[0]) if first else header.begin_timestamp,
            int(timestamps[-1]),
            int(physical_offsets[0]) if first else header.begin_physical_offset,
            int(physical_offsets[-1]),
            header.used_slots + opened,
            header.next_number + count,
        )
        self._map[: layout.HEADER_SIZE] = HEADER.pack(*self.header)

    def _chain(self, slots: _Ints, numbers: _Ints) -> tuple[_Ints, int]:
        """Predecessor of each entry, and how many slots were empty; the slots then hold the newest numbers."""
        # Sorting slot and place as one number is twice as fast as a stable argsort of the slots.
        keyed = np.sort(slots << _PLACE_BITS | np.arange(len(slots)))
        order, sorted_slots = keyed & ((1 << _PLACE_BITS) - 1), keyed >> _PLACE_BITS
        sorted_numbers = numbers[order]
        changes = sorted_slots[1:] != sorted_slots[:-1]
        first = np.append(True, changes)
        last = np.append(changes, True)
        before = self._slot_view[sorted_slots[first]].astype(np.int64)
        before[(before < 0) | (before > sorted_numbers[first])] = 0  # never written, or damaged
        chained = np.empty_like(sorted_numbers)
        chained[1:] = sorted_numbers[:-1]
        chained[first] = before
        self._slot_view[sorted_slots[last]] = sorted_numbers[last]
        previous = np.empty_like(chained)
        previous[order] = chained
        return previous, int((before == 0).sum())

    def _seconds(self, timestamps: _Ints) -> _Ints:
        begin = self.header.begin_timestamp
        seconds = (timestamps - begin) // 1000 if begin > 0 else np.zeros_like(timestamps)
        if self.header.next_number <= 1:
            # RocketMQ: the first entry still counts from the seeded begin (end of the file before), the others from it.
            seconds[1:] = (timestamps[1:] - timestamps[0]) // 1000
        return np.clip(seconds, 0, layout.MAX_SECONDS)

    def _reserve(self, end_number: int) -> None:
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
