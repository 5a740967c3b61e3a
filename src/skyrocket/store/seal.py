"""The seal of a clean stop: one sum over all that the next recovery would walk through and compare.

    log                 the file with its last record, up to its end
    queues              how far each goes; and the files with entries of records in that log file
    index               the header of its newest file
    settings            those by which entries are made from records

When the sum still fits at the next start, every byte is the one that was left, and the walk would change nothing. When
one bit differs, the walk decides. A sum runs through gigabytes in a second, a walk through some ten thousand records.
"""

import os

from skyrocket.config.sections import StoreConfig
from skyrocket.format.crc import crc32
from skyrocket.format.index_layout import HEADER_SIZE
from skyrocket.store.disk import Disk
from skyrocket.store.index import Index
from skyrocket.store.manifest import queue_key
from skyrocket.store.mapped_file_queue import MappedFileQueue
from skyrocket.store.queue_table import QueueTable
from skyrocket.store.topic_queue import TopicQueue

_AT_ONCE = 1 << 24


def seal_of(
    disk: Disk, log: MappedFileQueue, log_end: int, queues: QueueTable, index: Index | None, config: StoreConfig
) -> int | None:
    """The sum over a store with a log that ends there, all of it on disk; None when there is nothing to walk."""
    newest = log.find(log_end - 1)  # the one with the last record; empty files that were prepared may follow
    if newest is None:
        return None
    total = crc32(f"{log_end} {config.message_delay_levels} {config.multi_dispatch}".encode())
    view = newest.view
    for at in range(0, log_end - newest.start_offset, _AT_ONCE):
        total = crc32(view[at : min(at + _AT_ONCE, log_end - newest.start_offset)], total)
    for queue in sorted(queues, key=queue_key):
        total = _add_queue(queue, newest.start_offset, total)
    return crc32(_index_header(disk, index), total)


def _add_queue(queue: TopicQueue, log_from: int, total: int) -> int:
    entries = queue.entries
    total = crc32(f"{queue_key(queue)} {queue.max_offset} {entries.end}".encode(), total)
    if queue.max_physical_offset > log_from:
        for start in reversed(entries.starts):
            if start < entries.end:
                if queue.last_physical_offset(start) < log_from:
                    break
                total = crc32(entries.read(start, entries.end - start), total)
    return total


def _index_header(disk: Disk, index: Index | None) -> bytes:
    if index is None:
        return b"no index"
    if not index.names:
        return b""
    fd = disk.open(os.path.join(index.directory, index.names[-1]))
    try:
        return disk.read_at(fd, HEADER_SIZE, 0)
    finally:
        disk.close(fd)
