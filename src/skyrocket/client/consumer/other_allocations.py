"""Rules for sharing queues that are chosen on purpose; `Averagely`, the usual one, is in `allocation`."""

import hashlib
from bisect import bisect_left
from collections.abc import Callable, Collection
from dataclasses import dataclass, field

from skyrocket.client.consumer.allocation import AllocationStrategy, Ids, Queues, own_index
from skyrocket.model.message_queue import MessageQueue


@dataclass(frozen=True, slots=True)
class AveragelyByCircle:
    """Queues dealt out one by one."""

    name: str = "AVG_BY_CIRCLE"

    def __call__(self, group: str, own_id: str, queues: Queues, ids: Ids) -> list[MessageQueue]:
        index = own_index(own_id, queues, ids)
        return [] if index is None else list(queues[index :: len(ids)])


@dataclass(frozen=True, slots=True)
class ByConfig:
    """Always the same queues, whoever else there is."""

    queues: tuple[MessageQueue, ...] = ()
    name: str = "CONFIG"

    def __call__(self, group: str, own_id: str, queues: Queues, ids: Ids) -> list[MessageQueue]:
        return list(self.queues)


@dataclass(frozen=True, slots=True)
class ByMachineRoom:
    """Only queues of brokers named `room@name` in the given rooms."""

    rooms: Collection[str] = ()
    name: str = "MACHINE_ROOM"

    def __call__(self, group: str, own_id: str, queues: Queues, ids: Ids) -> list[MessageQueue]:
        index = own_index(own_id, queues, ids)
        if index is None:
            return []
        near = [queue for queue in queues if _room_of(queue) in self.rooms]
        share, more = divmod(len(near), len(ids))
        mine = near[index * share : (index + 1) * share]
        if index < more:
            mine.append(near[index + len(ids) * share])
        return mine


def _room_of(queue: MessageQueue) -> str | None:
    parts = queue.broker_name.split("@")
    return parts[0] if len(parts) == 2 else None


@dataclass(frozen=True, slots=True)
class MachineRoomNearby:
    """Queues go to consumers of their own room; those of a room without consumers are shared among all."""

    inner: AllocationStrategy
    room_of_broker: Callable[[MessageQueue], str]
    room_of_consumer: Callable[[str], str]

    @property
    def name(self) -> str:
        return f"MACHINE_ROOM_NEARBY-{self.inner.name}"

    def __call__(self, group: str, own_id: str, queues: Queues, ids: Ids) -> list[MessageQueue]:
        if own_index(own_id, queues, ids) is None:
            return []
        by_room: dict[str, list[MessageQueue]] = {}
        for queue in queues:
            by_room.setdefault(_named(self.room_of_broker(queue), queue), []).append(queue)
        members: dict[str, list[str]] = {}
        for member in ids:
            members.setdefault(_named(self.room_of_consumer(member), member), []).append(member)
        own_room = self.room_of_consumer(own_id)
        mine: list[MessageQueue] = []
        if own_room in by_room:
            mine += self.inner(group, own_id, by_room[own_room], members[own_room])
        for room in sorted(by_room):
            if room not in members:
                mine += self.inner(group, own_id, by_room[room], ids)
        return mine


def _named(room: str, of: object) -> str:
    if not room:
        raise ValueError(f"no machine room is known for {of!r}")
    return room


def md5_hash(text: str) -> int:
    """The first four bytes of MD5, as RocketMQ's ring uses them."""
    return int.from_bytes(hashlib.md5(text.encode(), usedforsecurity=False).digest()[:4], "big")


@dataclass(frozen=True, slots=True)
class ConsistentHash:
    """A ring of virtual nodes: when members come or go, few queues change hands."""

    virtual_nodes: int = 10
    hash: Callable[[str], int] = field(default=md5_hash)
    name: str = "CONSISTENT_HASH"

    def __call__(self, group: str, own_id: str, queues: Queues, ids: Ids) -> list[MessageQueue]:
        if own_index(own_id, queues, ids) is None:
            return []
        ring = {self.hash(f"{member}-{number}"): member for member in ids for number in range(self.virtual_nodes)}
        if not ring:
            return []
        points = sorted(ring)
        return [queue for queue in queues if ring[points[self._place(points, queue)]] == own_id]

    def _place(self, points: list[int], queue: MessageQueue) -> int:
        key = f"MessageQueue [topic={queue.topic}, brokerName={queue.broker_name}, queueId={queue.queue_id}]"
        return bisect_left(points, self.hash(key)) % len(points)
