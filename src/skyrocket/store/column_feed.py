"""Queue entries of many records at once, for queues in which all is in order.

In order means: an ordinary queue, records numbered one after the other, the first number is one that the queue has an
entry for or the next that it would give, and new ones lie behind the last that has an entry. Entries that are there are
compared, the others appended, as the dispatcher does with one record. All records of any other queue are left to it.
"""

from collections.abc import Callable

import numpy as np

from skyrocket.format.dtypes import Int64s
from skyrocket.format.queue_entry import ENTRY, ENTRY_DTYPE, ENTRY_SIZE
from skyrocket.format.text_hashes import hash_texts
from skyrocket.store.entry_files import EntryFiles
from skyrocket.store.log_columns import ColumnItems, LogColumns
from skyrocket.store.topic_queue import TopicQueue

_NO_ROWS: Int64s = np.empty(0, dtype=np.int64)
_FEW = 1 << 15


def items_of(columns: LogColumns, queue_of: Callable[[str, int], TopicQueue]) -> ColumnItems:
    """The records with their queues; a queue that is new is made when the log first names it."""
    texts = [topic.decode("utf-8", "replace") for topic in columns.topics]
    numbers = columns.topic_numbers
    if len(set(texts)) < len(texts):  # what is not UTF-8 may read alike
        numbers = np.array([texts.index(text) for text in texts], dtype=np.int64)[numbers]
    lowest = int(columns.queue_ids.min())
    span = int(columns.queue_ids.max()) - lowest + 1
    keys = numbers * span + (columns.queue_ids - lowest)
    if span * len(texts) < _FEW:
        keys = keys.astype(np.int16)  # sorted several times faster
    order = np.argsort(keys, kind="stable")
    starts = _run_starts(keys[order])
    first_rows = order[starts]
    queues: dict[int, TopicQueue] = {}
    for group in np.argsort(first_rows).tolist():
        row = int(first_rows[group])
        queues[group] = queue_of(texts[int(numbers[row])], int(columns.queue_ids[row]))
    queue_numbers = np.empty(len(columns), dtype=np.int64)
    queue_numbers[order] = np.repeat(np.arange(len(starts)), np.diff(np.append(starts, len(order))))
    return ColumnItems(columns, [queues[group] for group in range(len(starts))], queue_numbers)


def feed_queues(items: ColumnItems, dirty: list[TopicQueue]) -> Int64s:
    """Give records to their queues; returns those whose queues must look at each of them, in log order."""
    columns = items.columns
    rows = np.argsort(items.queue_numbers.astype(np.int16 if len(items.queues) < _FEW else np.int64), kind="stable")
    prepared = columns.are_prepared
    if prepared.any():
        rows = rows[~prepared[rows]]
    if not len(rows):
        return _NO_ROWS
    entries = memoryview(_entries(columns).view(f"V{ENTRY_SIZE}")[rows].tobytes())
    numbers, offsets = items.queue_numbers[rows], columns.queue_offsets[rows]
    starts = _run_starts(numbers)
    ends = np.append(starts[1:], len(rows))
    jumps = np.cumsum(np.append(0, np.diff(offsets) != 1))  # numbered one after the other: no jump within
    in_order = jumps[ends - 1] == jumps[starts]
    record_ends = columns.physical_offsets[rows[ends - 1]] + columns.parts.sizes[rows[ends - 1]]
    left = []
    groups = (numbers[starts], starts, ends, offsets[starts], in_order, record_ends)
    for number, start, end, offset, orderly, record_end in zip(*(group.tolist() for group in groups), strict=True):
        queue = items.queues[number]
        data = entries[start * ENTRY_SIZE : end * ENTRY_SIZE]
        if not orderly or not _take(queue, offset, data, record_end, dirty):
            left.append(rows[start:end])
    return np.sort(np.concatenate(left)) if left else _NO_ROWS


def _take(queue: TopicQueue, first: int, data: memoryview, record_end: int, dirty: list[TopicQueue]) -> bool:
    """Compare and append the entries of records with these numbers; False, and nothing has happened: it cannot."""
    if not queue.simple or queue.holds_delivery_times or first > queue.max_offset:
        return False
    count = len(data) // ENTRY_SIZE
    known = min(queue.max_offset - first, count)
    if known < count and ENTRY.unpack_from(data, known * ENTRY_SIZE)[0] < queue.max_physical_offset:
        return False
    if known:
        position = first * ENTRY_SIZE
        if position < queue.entries.first_byte or not _has(queue.entries, position, data[: known * ENTRY_SIZE]):
            return False
        queue.confirmed_offset = max(queue.confirmed_offset, first + known)
    if known < count:
        tail = queue.entries.tail[1]
        if not tail:
            dirty.append(queue)
        tail += data[known * ENTRY_SIZE :]
        queue.max_offset = queue.confirmed_offset = first + count
        queue.max_physical_offset = record_end
    return True


def _has(entries: EntryFiles, position: int, data: memoryview) -> bool:
    """Whether these very entries stand at a position."""
    done = 0
    while done < len(data):
        stored = entries.read(position + done, len(data) - done)
        if not stored or stored != data[done : done + len(stored)]:
            return False
        done += len(stored)
    return True


def _entries(columns: LogColumns) -> np.ndarray[tuple[int], np.dtype[np.void]]:
    entries = np.empty(len(columns), dtype=ENTRY_DTYPE)
    entries["physical_offset"] = columns.physical_offsets
    entries["size"] = columns.parts.sizes
    entries["tags_code"] = 0
    tags = columns.segments.values(b"TAGS")
    codes = hash_texts(tags, np.zeros(len(tags.records), dtype=np.uint32)).view(np.int32)
    entries["tags_code"][tags.records] = codes
    return entries


def _run_starts(numbers: Int64s) -> Int64s:
    """Where runs of equal numbers begin."""
    return np.flatnonzero(np.append(True, numbers[1:] != numbers[:-1]))
