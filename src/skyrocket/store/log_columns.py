"""Intact records of the log as columns: what recovery needs of thousands of records, read at once.

A run ends before the first record with which anything is not as usual. Whoever walks looks at that one with the eyes of
`format.record`: these columns never say what is wrong, they only say what is right.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np

from skyrocket.format import sys_flag as flags
from skyrocket.format.column_walk import intact_run
from skyrocket.format.crc import CRC_PROPERTY_BYTES, crc32, record_crc_property
from skyrocket.format.dtypes import Bools, Int64s, gathered
from skyrocket.format.property_segments import PropertySegments, properties_in
from skyrocket.format.record import Buffer, CrcCheck, RecordHead
from skyrocket.format.record_columns import Parts, examine
from skyrocket.format.store_names import topic_damage
from skyrocket.store.record_tuples import DispatchItem, ItemsOnDemand
from skyrocket.store.topic_queue import TopicQueue

BATCH_RECORDS = 16_384
BATCH_BYTES = 16 << 20
_TOP_BIT_CLEARED = 0x7FFFFFFF
_FEW_TOPICS = 32


@dataclass(frozen=True, slots=True)
class LogColumns:
    """Records back to back, all intact; topics and properties are still encoded."""

    parts: Parts
    physical_offsets: Int64s
    queue_ids: Int64s
    queue_offsets: Int64s
    store_timestamps: Int64s
    topics: list[bytes]  # each different one
    topic_numbers: Int64s  # which of them a record has
    segments: PropertySegments

    def __len__(self) -> int:
        return len(self.parts)

    @property
    def end_offset(self) -> int:
        return int(self.physical_offsets[-1] + self.parts.sizes[-1])

    @property
    def are_prepared(self) -> Bools:
        """Prepared and rolled back: these are in the log only."""
        prepared: Bools = self.parts.sys_flags & flags.TRANSACTION_PREPARED != 0
        return prepared

    def heads(self) -> list[RecordHead]:
        """The same, record by record."""
        topics = [self.topics[number] for number in self.topic_numbers.tolist()]
        columns = (self.physical_offsets, self.parts.sizes, self.queue_ids, self.queue_offsets)
        offsets, sizes, queue_ids, queue_offsets = (column.tolist() for column in columns)
        sys_flags, times = self.parts.sys_flags.tolist(), self.store_timestamps.tolist()
        fields = zip(
            offsets, sizes, topics, queue_ids, queue_offsets, sys_flags, times, self.segments.blocks(), strict=True
        )
        return list(map(RecordHead._make, fields))


class ColumnItems(ItemsOnDemand):
    """The same records for dispatch and its listeners."""

    def __init__(self, columns: LogColumns, queues: list[TopicQueue], queue_numbers: Int64s) -> None:
        self.columns = columns
        self.queues = queues  # each of them once
        self.queue_numbers = queue_numbers  # which of them a record is in

    def __len__(self) -> int:
        return len(self.columns)

    def _make(self) -> list[DispatchItem]:
        columns = self.columns
        return list(
            zip(
                [self.queues[number] for number in self.queue_numbers.tolist()],
                columns.physical_offsets.tolist(),
                columns.parts.sizes.tolist(),
                columns.store_timestamps.tolist(),
                columns.queue_offsets.tolist(),
                columns.segments.blocks(),
                columns.parts.sys_flags.tolist(),
                strict=True,
            )
        )


def queues_of(items: Sequence[DispatchItem]) -> set[TopicQueue]:
    """The queues that records are in."""
    return set(items.queues) if isinstance(items, ColumnItems) else {item[0] for item in items}


def read_columns(buffer: Buffer, position: int, base_offset: int, crc: CrcCheck, on_disk: int) -> LogColumns | None:
    """The records from a position on, up to the first that is not as usual; None when that is the first of all.

    `base_offset` is the physical offset of the buffer's first byte. Records that end before `on_disk` were flushed.
    """
    parts, _ = intact_run(buffer, position, len(buffer), base_offset, BATCH_RECORDS, BATCH_BYTES)
    checks: tuple[Callable[[Buffer, Parts], int], ...] = ()
    if crc is CrcCheck.BODY:
        checks = (_right_bodies,)
    elif crc is CrcCheck.RECORD:
        checks = (_right_records,)
    for check in checks:
        if len(parts) and (right := check(buffer, parts)) < len(parts):
            parts = examine(buffer, parts.positions[:right], base_offset)
    if not len(parts):
        return None
    topics, topic_numbers = _different_topics(buffer, parts.topic_starts, parts.topic_lengths)
    segments = properties_in(buffer, parts.properties_starts, parts.properties_lengths)
    odd = [number for number, topic in enumerate(topics) if topic_damage(topic)]
    strange = np.isin(topic_numbers, odd) if odd else np.zeros(len(parts), dtype=np.bool_)
    strange[segments.records_with(0)] |= (parts.ends + base_offset > on_disk)[segments.records_with(0)]
    if strange.any():
        usual = int(np.argmax(strange))
        if not usual:
            return None
        parts = examine(buffer, parts.positions[:usual], base_offset)
        topic_numbers = topic_numbers[:usual]
        segments = properties_in(buffer, parts.properties_starts, parts.properties_lengths)
    heads = parts.heads
    return LogColumns(
        parts=parts,
        physical_offsets=parts.positions + base_offset,
        queue_ids=heads["queue_id"],
        queue_offsets=heads["queue_offset"],
        store_timestamps=heads["store_timestamp"],
        topics=topics,
        topic_numbers=topic_numbers,
        segments=segments,
    )


def _right_bodies(buffer: Buffer, parts: Parts) -> int:
    """How many records from the first on have the bodies of their checksums."""
    view = memoryview(buffer)
    slices = map(slice, parts.body_starts.tolist(), (parts.body_starts + parts.body_lengths).tolist())
    sums = np.fromiter(map(crc32, map(view.__getitem__, slices)), np.int64, len(parts)) & _TOP_BIT_CLEARED
    return _count_right((sums == parts.heads["body_crc"]) | (parts.body_lengths == 0))


def _right_records(buffer: Buffer, parts: Parts) -> int:
    """How many records from the first on end with the checksum of all that is before it."""
    view = memoryview(buffer)
    right = [
        room >= CRC_PROPERTY_BYTES and record_crc_property(view[begin:end]) == view[end - CRC_PROPERTY_BYTES : end]
        for begin, end, room in zip(
            parts.positions.tolist(), parts.ends.tolist(), parts.properties_lengths.tolist(), strict=True
        )
    ]
    return _count_right(np.array(right, dtype=np.bool_))


def _count_right(right: Bools) -> int:
    return len(right) if right.all() else int(np.argmin(right))


def _different_topics(buffer: Buffer, starts: Int64s, lengths: Int64s) -> tuple[list[bytes], Int64s]:
    """Each topic once, in the order of their first records, and which of them every record has."""
    topics: list[bytes] = []
    numbers = np.full(len(starts), -1, dtype=np.int64)
    left = np.arange(len(starts))
    while len(left) and len(topics) < _FEW_TOPICS:
        start, length = int(starts[left[0]]), int(lengths[left[0]])
        alike = left[lengths[left] == length]
        if length:
            texts = gathered(buffer, np.dtype(f"V{length}"), starts[alike])
            alike = alike[texts == texts[0]]
        numbers[alike] = len(topics)
        topics.append(bytes(buffer[start : start + length]))
        left = left[numbers[left] < 0]
    known = {topic: number for number, topic in enumerate(topics)}
    for row, start, end in zip(left.tolist(), starts[left].tolist(), (starts + lengths)[left].tolist(), strict=True):
        topic = bytes(buffer[start:end])
        numbers[row] = known.setdefault(topic, len(known))
    return list(known), numbers
