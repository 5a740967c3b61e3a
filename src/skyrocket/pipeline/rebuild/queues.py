"""Queue entries → files. An entry's place is its queue offset, so tasks write without knowing of each other.

Files are sized when they are made; runs of consecutive entries are one write each. Repeats of a task write the same
bytes. What no record claims is found when all splits are written: from the start of the queue's first file to its first
entry, and where numbers are missing, RocketMQ's filling stands.
"""

import os
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from skyrocket.format.dispatch_claims import Claims, QueueName
from skyrocket.format.queue_entry import BATCH_ENTRY, BATCH_ENTRY_SIZE, ENTRY_DTYPE, ENTRY_SIZE, PREFILL_SIZE
from skyrocket.format.store_names import offset_name
from skyrocket.pipeline.rebuild.claims import BatchClaim


@dataclass(frozen=True, slots=True)
class QueueExtent:
    """What the splits claimed of one queue."""

    first: int
    last: int
    claims: int

    def joined(self, other: "QueueExtent") -> "QueueExtent":
        return QueueExtent(min(self.first, other.first), max(self.last, other.last), self.claims + other.claims)


@dataclass(frozen=True, slots=True)
class FinishedQueue:
    """One queue when all its entries are written."""

    first: int
    last: int
    entries: int
    gaps: int  # numbers between first and last that no record has
    repeats: int  # claims of a number that another record claims as well


def write_claims(directory: Path, queues: Sequence[QueueName], claims: Claims, entries_per_file: int) -> None:
    """Put entries at their places, in the order of the log where several claim one."""
    if not len(claims):
        return
    order = np.lexsort((claims["queue_offset"], claims["queue"]))  # stable: later records come later
    claims = claims[order]
    files = claims["queue_offset"] // entries_per_file
    breaks = (np.diff(claims["queue"]) != 0) | (np.diff(claims["queue_offset"]) != 1) | (np.diff(files) != 0)
    starts = np.concatenate([[0], np.flatnonzero(breaks) + 1]).tolist()
    ends = [*starts[1:], len(claims)]
    table = np.empty(len(claims), dtype=ENTRY_DTYPE)
    for name in ("physical_offset", "size", "tags_code"):
        table[name] = claims[name]
    data = memoryview(table.tobytes())
    with _Files(directory, entries_per_file * ENTRY_SIZE) as opened:
        numbers, offsets = claims["queue"][starts].tolist(), claims["queue_offset"][starts].tolist()
        for start, end, number, offset in zip(starts, ends, numbers, offsets, strict=True):
            file, within = divmod(offset, entries_per_file)
            descriptor = opened.file(queues[number], file * entries_per_file * ENTRY_SIZE)
            write_all(descriptor, data[start * ENTRY_SIZE : end * ENTRY_SIZE], within * ENTRY_SIZE)


def extents(queues: Sequence[QueueName], claims: Claims) -> dict[QueueName, QueueExtent]:
    """First, last and number of claims of each queue."""
    found: dict[QueueName, QueueExtent] = {}
    if not len(claims):
        return found
    order = np.argsort(claims["queue"], kind="stable")
    numbers, offsets = claims["queue"][order], claims["queue_offset"][order]
    starts = np.concatenate([[0], np.flatnonzero(np.diff(numbers)) + 1])
    firsts, lasts = np.minimum.reduceat(offsets, starts), np.maximum.reduceat(offsets, starts)
    counts = np.diff(np.append(starts, len(numbers)))
    columns = (numbers[starts].tolist(), firsts.tolist(), lasts.tolist(), counts.tolist())
    for number, first, last, count in zip(*columns, strict=True):
        found[queues[number]] = QueueExtent(first, last, count)
    return found


def finish_queue(directory: Path, extent: QueueExtent, entries_per_file: int) -> FinishedQueue:
    """Fill what no record claims, force the files to disk, and count."""
    entries = missing = 0
    first_file, last_file = extent.first // entries_per_file, extent.last // entries_per_file
    for file in range(first_file, last_file + 1):
        base = file * entries_per_file
        path = directory / offset_name(base * ENTRY_SIZE)
        with _opened(path, entries_per_file * ENTRY_SIZE) as descriptor:
            count = min(extent.last + 1 - base, entries_per_file)
            table = np.frombuffer(os.pread(descriptor, count * ENTRY_SIZE, 0), dtype=ENTRY_DTYPE)
            filling = (table["size"] == 0) | (table["size"] == PREFILL_SIZE)  # the second: of a finish before this one
            if filling.any():
                table = table.copy()
                table[filling] = (0, PREFILL_SIZE, 0)
                write_all(descriptor, memoryview(table.tobytes()), 0)
            entries += int((~filling).sum())
            missing += int(filling[max(extent.first - base, 0) :].sum())
            os.fsync(descriptor)
    return FinishedQueue(extent.first, extent.last, entries, missing, extent.claims - entries)


def write_batch_queue(directory: Path, claims: Sequence[BatchClaim], entries_per_file: int) -> None:
    """The files of a batch queue: its entries in log order."""
    file_size = entries_per_file * BATCH_ENTRY_SIZE
    for first in range(0, len(claims), entries_per_file):
        packed = b"".join(
            BATCH_ENTRY.pack(*claim[1:5], claim.base_offset, claim.messages, -1, 0)
            for claim in claims[first : first + entries_per_file]
        )
        directory.mkdir(parents=True, exist_ok=True)
        with _opened(directory / offset_name(first * BATCH_ENTRY_SIZE), file_size) as descriptor:
            write_all(descriptor, memoryview(packed), 0)
            os.fsync(descriptor)


class _Files:
    """The file that is written, open; queues come one after the other, so one is enough."""

    def __init__(self, directory: Path, file_size: int) -> None:
        self._directory = directory
        self._file_size = file_size
        self._key: tuple[QueueName, int] | None = None
        self._descriptor = -1

    def __enter__(self) -> "_Files":
        return self

    def __exit__(self, *_: object) -> None:
        self._close()

    def file(self, queue: QueueName, start: int) -> int:
        if self._key != (queue, start):
            self._close()
            folder = self._directory / queue.topic / str(queue.queue_id)
            folder.mkdir(parents=True, exist_ok=True)
            self._descriptor = _open(folder / offset_name(start), self._file_size)
            self._key = (queue, start)
        return self._descriptor

    def _close(self) -> None:
        if self._descriptor >= 0:
            os.close(self._descriptor)
            self._descriptor = -1


def _open(path: Path, size: int) -> int:
    descriptor = os.open(path, os.O_RDWR | os.O_CREAT, 0o644)
    if os.fstat(descriptor).st_size != size:
        os.ftruncate(descriptor, size)
    return descriptor


@contextmanager
def _opened(path: Path, size: int) -> Iterator[int]:
    path.parent.mkdir(parents=True, exist_ok=True)
    descriptor = _open(path, size)
    try:
        yield descriptor
    finally:
        os.close(descriptor)


def write_all(descriptor: int, data: memoryview, position: int) -> None:
    """Write all bytes at a position of a file."""
    while data:
        written = os.pwrite(descriptor, data, position)
        data, position = data[written:], position + written
