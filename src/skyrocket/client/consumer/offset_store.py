"""How far a group is: kept by the brokers, or for broadcasting in a file of this machine."""

import asyncio
import logging
import os
from abc import ABC, abstractmethod
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Protocol

from skyrocket.client.core.errors import BrokerRefused, ClientError
from skyrocket.client.core.instance import ClientInstance
from skyrocket.errors import DataError, SkyrocketError
from skyrocket.model.message_queue import MessageQueue
from skyrocket.protocol.bodies.offsets import ResetOffsets
from skyrocket.protocol.codes import ResponseCode
from skyrocket.protocol.requests.offsets import QueryConsumerOffset, UpdateConsumerOffset
from skyrocket.remoting.errors import CallTimeout, RemotingError

_logger = logging.getLogger(__name__)

_NOT_SAVED = "an offset was not saved"
_TIMEOUT = 5.0
_CONFIRMED_ATTEMPTS = 3  # of a save that is waited for, when no answer comes in time


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


class RemoteOffsets(OffsetStore):
    """Kept by the broker that has the queue."""

    def __init__(self, instance: ClientInstance, group: str, *, new_group_from_zero: bool = True) -> None:
        super().__init__()
        self._instance = instance
        self._group = group
        self._zero = None if new_group_from_zero else False

    async def stored(self, queue: MessageQueue) -> int | None:
        request = QueryConsumerOffset(
            consumer_group=self._group,
            topic=queue.topic,
            queue_id=queue.queue_id,
            set_zero_if_not_found=self._zero,
            broker_name=queue.broker_name,
        )
        address = await self._address(queue)
        try:
            reply = await self._instance.ask(
                address, request, doing=f"asking for the offset of {queue}", timeout=_TIMEOUT
            )
        except BrokerRefused as error:
            if error.code == ResponseCode.QUERY_NOT_FOUND:
                return None
            raise
        return reply.header.offset

    async def persist(self, queues: Iterable[MessageQueue], *, confirmed: bool = False) -> None:
        known = self.of_queues(queues)
        await asyncio.gather(*(self._save(queue, offset, confirmed) for queue, offset in known.items()))

    async def _save(self, queue: MessageQueue, offset: int, confirmed: bool) -> None:
        request = UpdateConsumerOffset(
            consumer_group=self._group,
            topic=queue.topic,
            queue_id=queue.queue_id,
            commit_offset=offset,
            broker_name=queue.broker_name,
        )
        try:
            address = await self._address(queue)
            if confirmed:
                await self._ask(address, request)
            else:
                await self._instance.remoting.call_oneway(address, request, timeout_seconds=_TIMEOUT)
            self._instance.troubles.works(_logger, queue.broker_name, _NOT_SAVED)
        except (ClientError, RemotingError) as error:
            details = f"queue={queue} offset={offset}"
            self._instance.troubles.failed(_logger, queue.broker_name, _NOT_SAVED, details, error)

    async def _ask(self, address: str, request: UpdateConsumerOffset) -> None:
        """Sent again when no answer comes in time: an offset may be saved twice. Raises what the last attempt did."""
        doing = f"saving the offset of {request.topic}/{request.queue_id}"
        for attempt in range(1, _CONFIRMED_ATTEMPTS + 1):
            try:
                await self._instance.ask(address, request, doing=doing, timeout=_TIMEOUT)
            except CallTimeout:
                if attempt == _CONFIRMED_ATTEMPTS:
                    raise
                _logger.warning("no answer while %s, it is sent again attempt=%d", doing, attempt)
            else:
                return

    async def _address(self, queue: MessageQueue) -> str:
        """The master; without one any replica will do, which hands it on."""
        leader = self._instance.leader(queue)
        found = self._instance.brokers.replica(leader, 0)
        return found[0] if found is not None else await self._instance.master_of(queue)


class LocalOffsets(OffsetStore):
    """A JSON file that Java clients can read as well."""

    def __init__(self, directory: Path, client_id: str, group: str) -> None:
        super().__init__()
        self._path = directory / client_id / group / "offsets.json"
        self._saved = self._load()

    async def stored(self, queue: MessageQueue) -> int | None:
        return self._saved.get(queue)

    async def persist(self, queues: Iterable[MessageQueue], *, confirmed: bool = False) -> None:
        news = self.of_queues(queues)
        if all(self._saved.get(queue) == offset for queue, offset in news.items()):
            return
        merged = {**self._saved, **news}
        try:
            await asyncio.to_thread(self._write, merged)
        except OSError as error:
            _logger.error("offsets were not saved path=%s reason=%s", self._path, error)
            return
        self._saved = merged

    def _write(self, offsets: dict[MessageQueue, int]) -> None:
        self._path.parent.mkdir(parents=True, exist_ok=True)
        fresh = self._path.with_suffix(".json.tmp")
        with open(fresh, "wb") as file:
            file.write(ResetOffsets(offsets).encode())
            file.flush()
            os.fsync(file.fileno())
        if self._path.exists():
            self._path.replace(self._path.with_suffix(".json.bak"))
        fresh.replace(self._path)

    def _load(self) -> dict[MessageQueue, int]:
        """The file, or what was saved before it; raises DataError when both are broken."""
        failures = []
        for path in (self._path, self._path.with_suffix(".json.bak")):
            try:
                data = path.read_bytes()
                if data.strip():
                    return dict(ResetOffsets.decode(data).offsets)
            except FileNotFoundError:
                continue
            except (OSError, SkyrocketError) as error:
                failures.append(f"{path}: {error}")
        if failures:
            raise DataError(f"offsets cannot be read ({'; '.join(failures)}): repair or remove the files")
        return {}


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


def default_directory() -> Path:
    """RocketMQ's place for such files."""
    return Path(os.environ.get("ROCKETMQ_CLIENT_OFFSETS", "~/.rocketmq_offsets")).expanduser()


def offset_store(
    instance: ClientInstance, group: str, *, clustering: bool, new_group_from_zero: bool, directory: Path | None = None
) -> OffsetStore:
    """Where a group's offsets are kept: with brokers if its members share the messages, else in files of its own."""
    if clustering:
        return RemoteOffsets(instance, group, new_group_from_zero=new_group_from_zero)
    return LocalOffsets(directory or default_directory(), instance.client_id, group)
