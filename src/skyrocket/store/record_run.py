"""The records of one client batch, from the log to queues and index without a tuple for each of them.

They lie back to back, are of one queue and one time, and their queue offsets follow each other.
"""

from collections.abc import Iterable, Iterator, Sequence
from itertools import count, repeat
from typing import TypeAlias

from skyrocket.store.record_tuples import PHYSICAL_OFFSET, SIZE, STORE_TIMESTAMP, DispatchItem, ItemsOnDemand
from skyrocket.store.topic_queue import TopicQueue


class RecordRun:
    """Plain records: their queue was a simple one, and none of them is part of a transaction."""

    __slots__ = (
        "count",
        "end_offset",
        "first_queue_offset",
        "properties",
        "queue",
        "sizes",
        "starts",
        "store_timestamp",
        "sys_flag",
    )

    def __init__(
        self,
        queue: TopicQueue,
        starts: Sequence[int],
        sizes: Sequence[int],
        store_timestamp: int,
        first_queue_offset: int,
        properties: Sequence[bytes],
        sys_flag: int,
    ) -> None:
        self.queue = queue
        self.count = len(starts)
        self.starts = starts
        self.sizes = sizes
        self.store_timestamp = store_timestamp
        self.first_queue_offset = first_queue_offset
        self.properties = properties
        self.sys_flag = sys_flag
        self.end_offset = starts[-1] + sizes[-1]

    def items(self) -> Iterator[DispatchItem]:
        """One by one, for those who look at each."""
        return zip(
            repeat(self.queue),
            self.starts,
            self.sizes,
            repeat(self.store_timestamp),
            count(self.first_queue_offset),
            self.properties,
            repeat(self.sys_flag),
            strict=False,
        )


# What the writer leaves for dispatch; a run is at least two records there, so that counts tell whether there are runs.
Appended: TypeAlias = DispatchItem | RecordRun


def last_offset(one: Appended) -> int:
    """Where the last record begins."""
    return one.starts[-1] if isinstance(one, RecordRun) else one[PHYSICAL_OFFSET]


def last_end(one: Appended) -> int:
    """Where the last record ends."""
    return one.end_offset if isinstance(one, RecordRun) else one[PHYSICAL_OFFSET] + one[SIZE]


def time_of(one: Appended) -> int:
    """When the records were stored."""
    return one.store_timestamp if isinstance(one, RecordRun) else one[STORE_TIMESTAMP]


def each_item(appended: Iterable[Appended]) -> Iterator[DispatchItem]:
    """All records, one by one."""
    for one in appended:
        if isinstance(one, RecordRun):
            yield from one.items()
        else:
            yield one


class RunItems(ItemsOnDemand):
    """Records among which are runs, for listeners."""

    def __init__(self, appended: Sequence[Appended]) -> None:
        self.appended = appended

    def _make(self) -> list[DispatchItem]:
        return list(each_item(self.appended))
