"""Which queue next: in turn, avoiding the broker that just failed; or by a key; or by the caller's rule.

`Rotation` belongs to one topic of one producer. Selectors are plain functions (queues, message, argument) → queue.
"""

import os
from collections.abc import Callable, Sequence
from typing import Any, TypeAlias

from skyrocket.client.core.message import Message
from skyrocket.client.sending.broker_faults import BrokerFaults
from skyrocket.format.java_hash import java_hash, signed
from skyrocket.model.message_queue import MessageQueue

QueueSelector: TypeAlias = Callable[[Sequence[MessageQueue], Message, Any], MessageQueue]

_TOLERANCE_MS = 5.0


def java_hash_of(key: object) -> int:
    """hashCode of what Java programs use for keys: text, int and long, Boolean."""
    if isinstance(key, bool):
        return 1231 if key else 1237
    if isinstance(key, int):
        if -(1 << 31) <= key < 1 << 31:
            return key
        bits = key & 0xFFFFFFFFFFFFFFFF
        return signed((bits ^ bits >> 32) & 0xFFFFFFFF)
    return java_hash(str(key))


def index_by_hash(key: object, count: int) -> int:
    """As Java's SelectMessageQueueByHash: |hash mod n|, where mod has the sign of the hash."""
    return abs(java_hash_of(key)) % count


def select_by_hash(queues: Sequence[MessageQueue], _: Message, key: Any) -> MessageQueue:
    """Equal keys to equal queues, the same as Java producers choose."""
    return queues[index_by_hash(key, len(queues))]


def select_by_random(queues: Sequence[MessageQueue], _: Message, __: Any) -> MessageQueue:
    """Any."""
    return queues[_somewhere() % len(queues)]


def _somewhere() -> int:
    return int.from_bytes(os.urandom(2), "big")


class SelectByMachineRoom:
    """Queues of brokers named `room@name` in the given rooms, in turn."""

    def __init__(self, rooms: Sequence[str]) -> None:
        self._rooms = frozenset(rooms)
        self._next = _somewhere()

    def __call__(self, queues: Sequence[MessageQueue], _: Message, __: Any) -> MessageQueue:
        near = [queue for queue in queues if queue.broker_name.partition("@")[0] in self._rooms]
        if not near:
            raise ValueError(f"no queue belongs to one of the rooms {sorted(self._rooms)}")
        self._next += 1
        return near[self._next % len(near)]


class Rotation:
    """Queues in turn, from a random one on."""

    __slots__ = ("_next", "queues")

    def __init__(self, queues: Sequence[MessageQueue]) -> None:
        self.queues = tuple(queues)
        self._next = _somewhere()

    def next(self) -> int:
        """The index of the next one."""
        self._next += 1
        return self._next % len(self.queues)

    def take_back(self) -> None:
        """The last one was not used."""
        self._next -= 1

    def other_than(self, failed_broker: str | None) -> int:
        """The next one on another broker, if there is one."""
        if failed_broker is None:
            return self.next()
        found = self._first(lambda name: name != failed_broker)
        return self.next() if found is None else found

    def avoiding(self, faults: BrokerFaults, now: float, failed_broker: str | None) -> int:
        """The next one whose broker does not rest; else one that was reached; else simply the next."""
        if failed_broker is not None:
            self._next = _somewhere()
        found = self._first(lambda name: name != failed_broker and faults.is_available(name, now))
        if found is None:
            found = self._first(lambda name: name != failed_broker and faults.is_reachable(name))
        return self.next() if found is None else found

    def quickest(self, faults: BrokerFaults, now: float, failed_broker: str | None) -> int:
        """The next one whose broker has the lowest latency; nearly equal ones take turns."""
        names = {queue.broker_name for queue in self.queues} - {failed_broker}
        awake = {name for name in names if faults.is_available(name, now)} or names
        if not awake:
            return self.next()
        best = min(map(faults.average_ms, awake)) + _TOLERANCE_MS
        found = self._first(lambda name: name in awake and faults.average_ms(name) <= best)
        return self.next() if found is None else found

    def _first(self, good: Callable[[str], bool]) -> int | None:
        for _ in self.queues:
            index = self.next()
            if good(self.queues[index].broker_name):
                return index
        return None
