"""The entries of one consume queue on disk, simple or batch, and its extension units."""

from collections.abc import Iterator
from functools import cached_property

import numpy as np
from numpy.typing import NDArray

from skyrocket.format import queue_entry
from skyrocket.format.dispatch_claims import QueueName
from skyrocket.offline.offset_files import OffsetFile, OffsetFiles, data_end
from skyrocket.offline.store_files import StoreFiles

Entries = NDArray[np.void]


class SimpleQueue:
    """Entries of 20 bytes; an entry's number is its queue offset."""

    dtype = queue_entry.ENTRY_DTYPE

    def __init__(self, files: OffsetFiles) -> None:
        self.files = files
        self.first_number = -(-files.start // self.dtype.itemsize)

    def read(self, number: int, count: int) -> Entries:
        """Entries from a number on; fewer where a file ends or is missing."""
        data = self.files.read(number * self.dtype.itemsize, count * self.dtype.itemsize)
        return np.frombuffer(data[: len(data) // self.dtype.itemsize * self.dtype.itemsize], dtype=self.dtype)

    def entries_at(self, queue_offsets: NDArray[np.int64]) -> Entries:
        """The entry of each queue offset; zeros where there is none."""
        found = np.zeros(len(queue_offsets), self.dtype)
        for file in self.files.files:
            held = read_entries(file, self.dtype)
            places = queue_offsets - file.offset // self.dtype.itemsize
            inside = (places >= 0) & (places < len(held))
            found[inside] = held[places[inside]]
        return found

    @cached_property
    def written(self) -> tuple[int, int]:
        """Numbers of the first entry and of the one behind the last that is not zero."""
        for file in reversed(self.files.files):
            first = -(-file.offset // self.dtype.itemsize)
            room = -(-data_end(file.path) // self.dtype.itemsize)
            used = np.flatnonzero(is_used(self.read(first, min(room, file.size // self.dtype.itemsize))))
            if len(used):
                return self.first_number, first + int(used[-1]) + 1
        return self.first_number, self.first_number

    def min_offset(self, log_start: int) -> int:
        """The first queue offset whose record is still in the log."""
        first, end = self.written
        while first < end:
            entries = self.read(first, min(end - first, 1 << 16))
            if not len(entries):
                break
            alive = (entries["physical_offset"] >= log_start) & (entries["size"] != queue_entry.PREFILL_SIZE)
            if alive.any():
                return first + int(np.argmax(alive))
            first += len(entries)
        return end

    @property
    def max_offset(self) -> int:
        return self.written[1]


class BatchQueue(SimpleQueue):
    """Entries of 46 bytes; an entry covers the queue offsets from its base on, its number says nothing."""

    dtype = queue_entry.BATCH_ENTRY_DTYPE

    @cached_property
    def number_of_base(self) -> dict[int, int]:
        """Entry number by base offset."""
        first, end = self.written
        entries = self.read(first, end - first)
        return {int(base): first + at for at, base in enumerate(entries["base_offset"].tolist())}

    def min_offset(self, log_start: int) -> int:
        first, end = self.written
        for entry in self.read(first, end - first):
            if entry["physical_offset"] >= log_start:
                return int(entry["base_offset"])
        return self.max_offset

    @property
    def max_offset(self) -> int:
        first, end = self.written
        last = self.read(end - 1, 1 if end > first else 0)
        return int(last[0]["base_offset"]) + int(last[0]["messages"]) if len(last) else 0


def open_queue(store: StoreFiles, name: QueueName) -> SimpleQueue | None:
    """A queue of a store, simple or batch; None when it has no files."""
    batch, simple = store.batch_queues.get(name), store.queues.get(name)
    return BatchQueue(batch) if batch is not None else SimpleQueue(simple) if simple is not None else None


def open_queues(store: StoreFiles) -> Iterator[tuple[QueueName, SimpleQueue]]:
    """All queues of a store, simple ones first."""
    yield from ((name, SimpleQueue(files)) for name, files in store.queues.items())
    yield from ((name, BatchQueue(files)) for name, files in store.batch_queues.items())


class QueueExtension:
    """Units that hold the tags code where an entry has only an address."""

    def __init__(self, files: OffsetFiles | None) -> None:
        self._files = files

    def unit(self, tags_code: int) -> queue_entry.ExtUnit | None:
        """The unit that an address means."""
        if self._files is None:
            return None
        position = queue_entry.ext_position(tags_code)
        head = self._files.read(position, queue_entry.EXT_UNIT.size)
        if len(head) < queue_entry.EXT_UNIT.size:
            return None
        size = queue_entry.EXT_UNIT.unpack(head)[0]
        return queue_entry.decode_ext_unit(self._files.read(position, size), 0) if size > 0 else None


def is_used(entries: Entries) -> NDArray[np.bool_]:
    """Which entries are not all zero."""
    used: NDArray[np.bool_] = (entries["physical_offset"] != 0) | (entries["size"] != 0) | (entries["tags_code"] != 0)
    return used


def read_entries(file: OffsetFile, dtype: np.dtype[np.void]) -> Entries:
    """The entries of one file up to the last that has a size; those before may be fillers."""
    entries: Entries = np.fromfile(file.path, dtype)
    written = np.flatnonzero(entries["size"])
    return entries[: int(written[-1]) + 1] if len(written) else entries[:0]
