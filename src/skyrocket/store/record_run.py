"""The records of client batches, from the log to queues and index without a tuple for each of them.

They lie back to back and are of one time; those of one batch are of one queue, whose offsets they have in a row.
"""

from collections.abc import Iterable, Iterator, Sequence
from itertools import chain, count, repeat
from typing import NamedTuple, TypeAlias

from skyrocket.store.record_tuples import PHYSICAL_OFFSET, SIZE, STORE_TIMESTAMP, DispatchItem, ItemsOnDemand
from skyrocket.store.topic_queue import TopicQueue


class RunPart(NamedTuple):
    """The records of one batch, within those of the run."""

    queue: TopicQueue
    first_queue_offset: int
    at: int  # its first record: the number within the run
    end: int


class RecordRun:
    """Plain records: their queues were simple ones, and none of them is part of a transaction."""

    __slots__ = ("count", "end_offset", "parts", "properties", "sizes", "starts", "store_timestamp", "sys_flag")

    def __init__(
        self,
        parts: Sequence[RunPart],
        starts: Sequence[int],
        sizes: Sequence[int],
        store_timestamp: int,
        properties: Sequence[bytes],
        sys_flag: int,
    ) -> None:
        self.parts = parts
        self.count = len(starts)
        self.starts = starts
        self.sizes = sizes
        self.store_timestamp = store_timestamp
        self.properties = properties
        self.sys_flag = sys_flag
        self.end_offset = starts[-1] + sizes[-1]

    def end_of(self, part: RunPart) -> int:
        """Where the records of a batch end in the log."""
        last = part.end - 1
        return self.starts[last] + self.sizes[last]

    def items(self) -> Iterator[DispatchItem]:
        """One by one, for those who look at each."""
        return chain.from_iterable(map(self.items_of, self.parts))

    def items_of(self, part: RunPart) -> Iterator[DispatchItem]:
        """Those of one batch."""
        queue, first_queue_offset, at, end = part
        return zip(
            repeat(queue),
            self.starts[at:end],
            self.sizes[at:end],
            repeat(self.store_timestamp),
            count(first_queue_offset),
            self.properties[at:end],
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
