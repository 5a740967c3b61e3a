"""How far a group is: kept by the brokers, or for broadcasting in a file of this machine."""

import asyncio
import logging
import os
from collections.abc import Iterable
from pathlib import Path
from typing import Protocol

from skyrocket.client.core.errors import BrokerRefused, ClientError
from skyrocket.client.core.instance import ClientInstance
from skyrocket.errors import DataError, SkyrocketError
from skyrocket.fastjson import Dialect, dumps, loads
from skyrocket.model.message_queue import MessageQueue
from skyrocket.protocol.bodies.offsets import RESET_OFFSETS, ResetOffsets
from skyrocket.protocol.codes import ResponseCode
from skyrocket.protocol.requests.offsets import QueryConsumerOffset, UpdateConsumerOffset
from skyrocket.remoting.errors import RemotingError

_logger = logging.getLogger(__name__)

_TIMEOUT = 5.0


class OffsetStore(Protocol):
    """Offsets to go on with, by queue."""

    def update(self, queue: MessageQueue, offset: int, *, increase_only: bool) -> None: ...

    def in_memory(self, queue: MessageQueue) -> int | None: ...

    def of_topic(self, topic: str) -> dict[MessageQueue, int]: ...

    async def stored(self, queue: MessageQueue) -> int | None:
        """What was persisted, None if nothing was; raises ClientError or RemotingError when nobody can tell."""
        ...

    async def persist(self, queues: Iterable[MessageQueue], *, confirmed: bool = False) -> None:
        """Save the offsets of these queues; `confirmed` waits until they are saved."""
        ...

    def forget(self, queue: MessageQueue) -> None: ...


class _Memory:
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

    def forget(self, queue: MessageQueue) -> None:
        self._offsets.pop(queue, None)


class RemoteOffsets(_Memory):
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
        saves = [
            self._save(queue, offset, confirmed) for queue in queues if (offset := self.in_memory(queue)) is not None
        ]
        await asyncio.gather(*saves)

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
                await self._instance.ask(address, request, doing=f"saving the offset of {queue}", timeout=_TIMEOUT)
            else:
                await self._instance.remoting.call_oneway(address, request, timeout_seconds=_TIMEOUT)
        except (ClientError, RemotingError) as error:
            _logger.warning("an offset was not saved queue=%s offset=%d reason=%s", queue, offset, error)

    async def _address(self, queue: MessageQueue) -> str:
        """The master; without one any replica will do, which hands it on."""
        leader = self._instance.leader(queue)
        found = self._instance.brokers.replica(leader, 0)
        return found[0] if found is not None else await self._instance.master_of(queue)


class LocalOffsets(_Memory):
    """A JSON file that Java clients can read as well."""

    def __init__(self, directory: Path, client_id: str, group: str) -> None:
        super().__init__()
        self._path = directory / client_id / group / "offsets.json"
        self._saved = self._load()

    async def stored(self, queue: MessageQueue) -> int | None:
        return self._saved.get(queue)

    async def persist(self, queues: Iterable[MessageQueue], *, confirmed: bool = False) -> None:
        news = {queue: offset for queue in queues if (offset := self.in_memory(queue)) is not None}
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
        text = dumps(RESET_OFFSETS.kind.write(ResetOffsets(offsets), Dialect.COMPACT))
        fresh = self._path.with_suffix(".json.tmp")
        with open(fresh, "wb") as file:
            file.write(text)
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
                    return dict(RESET_OFFSETS.kind.read(loads(data)).offsets)
            except FileNotFoundError:
                continue
            except (OSError, SkyrocketError) as error:
                failures.append(f"{path}: {error}")
        if failures:
            raise DataError(f"offsets cannot be read ({'; '.join(failures)}): repair or remove the files")
        return {}


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
