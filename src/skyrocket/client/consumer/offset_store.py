"""How far a group is, by queue: what is in memory, and kinds that need neither brokers nor files."""

import logging
from abc import ABC, abstractmethod
from collections.abc import Iterable, Mapping
from typing import Protocol

from skyrocket.client.core.errors import ClientError
from skyrocket.model.message_queue import MessageQueue

_logger = logging.getLogger(__name__)


class OffsetStorage(Protocol):
    """A place of the application's own for the offsets of a group: a database, a file, next to its results.

    Offsets are those to go on with. `save` gets what has changed and may be called again with the same; an exception of
    either is logged, and the queue is begun, or its offset saved, a little later.
    """

    async def load(self, group: str, queue: MessageQueue) -> int | None:
        """Where the group goes on in a queue; None if it was never there."""
        ...

    async def save(self, group: str, offsets: Mapping[MessageQueue, int]) -> None:
        """Keep these; what is kept for other queues stays."""
        ...


class OffsetStore(ABC):
    """Offsets to go on with, by queue: in memory here, and where they are kept in its kinds."""

    def __init__(self) -> None:
        self._offsets: dict[MessageQueue, int] = {}

    def update(self, queue: MessageQueue, offset: int, *, increase_only: bool) -> None:
        known = self._offsets.get(queue)
        if known is None or not increase_only or offset > known:
            self._offsets[queue] = offset

    def in_memory(self, queue: MessageQueue) -> int | None:
        return self._offsets.get(queue)

    def of_topic(self, topic: str) -> dict[MessageQueue, int]:
        return {queue: offset for queue, offset in self._offsets.items() if queue.topic == topic}

    def of_queues(self, queues: Iterable[MessageQueue]) -> dict[MessageQueue, int]:
        return {queue: offset for queue in queues if (offset := self._offsets.get(queue)) is not None}

    def forget(self, queue: MessageQueue) -> None:
        self._offsets.pop(queue, None)

    @abstractmethod
    async def stored(self, queue: MessageQueue) -> int | None:
        """What was persisted, None if nothing was; raises ClientError or RemotingError when nobody can tell."""

    @abstractmethod
    async def persist(self, queues: Iterable[MessageQueue], *, confirmed: bool = False) -> None:
        """Save the offsets of these queues; `confirmed` waits until they are saved."""


class OwnOffsets(OffsetStore):
    """Kept by the application."""

    def __init__(self, storage: OffsetStorage, group: str) -> None:
        super().__init__()
        self._storage = storage
        self._group = group
        self._saved: dict[MessageQueue, int] = {}

    async def stored(self, queue: MessageQueue) -> int | None:
        try:
            offset = await self._storage.load(self._group, queue)
        except Exception as error:
            raise ClientError(f"the offset storage cannot tell the offset of {queue}: {error!r}") from error
        self._saved.pop(queue, None)
        return offset

    async def persist(self, queues: Iterable[MessageQueue], *, confirmed: bool = False) -> None:
        known = self.of_queues(queues)
        news = {queue: offset for queue, offset in known.items() if self._saved.get(queue) != offset}
        if not news:
            return
        try:
            await self._storage.save(self._group, news)
        except Exception:
            _logger.exception("offsets were not saved by the offset storage group=%s queues=%d", self._group, len(news))
            return
        self._saved |= news


class SessionOffsets(OffsetStore):
    """Kept as long as the consumer runs: broadcasting that begins with the newest message at every start."""

    def __init__(self) -> None:
        super().__init__()
        self._last: dict[MessageQueue, int] = {}

    async def stored(self, queue: MessageQueue) -> int | None:
        return self._last.get(queue)

    async def persist(self, queues: Iterable[MessageQueue], *, confirmed: bool = False) -> None:
        self._last |= self.of_queues(queues)
