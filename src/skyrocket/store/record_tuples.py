"""The two tuples that every message becomes: what goes into the log, and what the log says of it afterwards.

They are plain tuples, read by unpacking or by the names below. A NamedTuple would cost three times as much to make and
to unpack, and both happen to every message.
"""

from abc import abstractmethod
from collections.abc import Iterator, Sequence
from typing import Final, TypeAlias, overload

from skyrocket.store.topic_queue import TopicQueue

# A record to append.
Row: TypeAlias = tuple[
    TopicQueue,  # queue
    bytes,  # body
    bytes,  # properties
    int,  # flag
    int,  # sys flag
    int,  # born timestamp
    bytes,  # born host, packed
    int,  # reconsume times
    int,  # prepared transaction offset
    bytes | None,  # store host, packed; None is the broker's own
    int,  # by how many messages the queue's offset advances: 1 but for inner batches
]
ROW_BODY: Final = 1
ROW_PROPERTIES: Final = 2

# What queues, index and listeners need to know of a record that is in the log.
DispatchItem: TypeAlias = tuple[
    TopicQueue,  # queue
    int,  # physical offset
    int,  # size
    int,  # store timestamp
    int,  # queue offset
    bytes,  # properties
    int,  # sys flag
]
QUEUE: Final = 0
PHYSICAL_OFFSET: Final = 1
SIZE: Final = 2
STORE_TIMESTAMP: Final = 3
QUEUE_OFFSET: Final = 4
PROPERTIES: Final = 5
SYS_FLAG: Final = 6


def end_offset(item: DispatchItem) -> int:
    """Where the record ends in the log."""
    return item[PHYSICAL_OFFSET] + item[SIZE]


class ItemsOnDemand(Sequence[DispatchItem]):
    """Records as dispatch hands them around, made when somebody looks at them: hardly anyone does."""

    _made: list[DispatchItem] | None = None

    @abstractmethod
    def _make(self) -> list[DispatchItem]:
        """All of them."""

    def _all(self) -> list[DispatchItem]:
        if self._made is None:
            self._made = self._make()
        return self._made

    def __len__(self) -> int:
        return len(self._all())

    def __iter__(self) -> Iterator[DispatchItem]:
        return iter(self._all())

    @overload
    def __getitem__(self, at: int) -> DispatchItem: ...
    @overload
    def __getitem__(self, at: slice) -> list[DispatchItem]: ...
    def __getitem__(self, at: int | slice) -> DispatchItem | list[DispatchItem]:
        return self._all()[at]
