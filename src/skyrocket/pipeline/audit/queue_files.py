"""The files of consume queues, simple and batch, as arrays."""

from dataclasses import dataclass
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from skyrocket.format.queue_entry import (
    BATCH_ENTRY_DTYPE,
    BATCH_ENTRY_SIZE,
    ENTRY_DTYPE,
    ENTRY_SIZE,
    PREFILL_SIZE,
)

CONSUME_QUEUE = "consumequeue"
BATCH_QUEUE = "batchconsumequeue"
Entries = NDArray[np.void]


@dataclass(frozen=True, slots=True)
class QueueFile:
    """One file of a queue; its name is the position of its first byte in the whole queue."""

    path: str
    topic: str
    queue_id: int
    is_batch: bool
    position: int

    @property
    def first_entry(self) -> int:
        """How many entries the files before it hold; in a simple queue, the queue offset of its first entry."""
        return self.position // (BATCH_ENTRY_SIZE if self.is_batch else ENTRY_SIZE)


def find_queue_files(store: Path) -> list[QueueFile]:
    """All of them, by topic, queue and position."""
    found = [
        QueueFile(str(path), path.parent.parent.name, int(path.parent.name), folder == BATCH_QUEUE, int(path.name))
        for folder in (CONSUME_QUEUE, BATCH_QUEUE)
        for path in (store / folder).glob("*/*/*")
        if path.name.isdigit() and path.parent.name.isdigit() and path.is_file()
    ]
    return sorted(found, key=lambda each: (each.is_batch, each.topic, each.queue_id, each.position))


def read_entries(file: QueueFile) -> Entries:
    """The entries of a file up to the last that is written; those before may be fillers."""
    entries: Entries = np.fromfile(file.path, BATCH_ENTRY_DTYPE if file.is_batch else ENTRY_DTYPE)
    written = np.flatnonzero(entries["size"])
    return entries[: int(written[-1]) + 1] if len(written) else entries[:0]


def is_real(entries: Entries) -> NDArray[np.bool_]:
    """Which entries mean a record: neither unwritten nor the filler before the first."""
    real: NDArray[np.bool_] = (entries["size"] > 0) & (entries["size"] != PREFILL_SIZE)
    return real


class QueueReader:
    """Entries of any queue by queue offset; what was read is kept while the reader lives."""

    def __init__(self, store: Path) -> None:
        self._store = store
        self._read: dict[QueueFile, Entries] = {}

    def simple(self, topic: str, queue_id: int, queue_offsets: NDArray[np.int64]) -> Entries:
        """The entry of each queue offset; zeros where there is none."""
        found = np.zeros(len(queue_offsets), ENTRY_DTYPE)
        for file in self._files(CONSUME_QUEUE, topic, queue_id):
            held = self._entries(file)
            inside = (queue_offsets >= file.first_entry) & (queue_offsets < file.first_entry + len(held))
            found[inside] = held[queue_offsets[inside] - file.first_entry]
        return found

    def batch(self, topic: str, queue_id: int) -> dict[int, tuple[int, int]]:
        """Base offset → physical offset and size, of a whole batch queue."""
        return {
            int(entry["base_offset"]): (int(entry["physical_offset"]), int(entry["size"]))
            for file in self._files(BATCH_QUEUE, topic, queue_id)
            for entry in self._entries(file)
        }

    def _files(self, folder: str, topic: str, queue_id: int) -> list[QueueFile]:
        directory = self._store / folder / topic / str(queue_id)
        if not directory.is_dir():
            return []
        names = sorted(path for path in directory.iterdir() if path.name.isdigit())
        return [QueueFile(str(path), topic, queue_id, folder == BATCH_QUEUE, int(path.name)) for path in names]

    def _entries(self, file: QueueFile) -> Entries:
        if file not in self._read:
            self._read[file] = read_entries(file)
        return self._read[file]
