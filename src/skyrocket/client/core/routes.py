"""Topic → queues, as pure functions over what a name server said; and the table of what is known.

An ordered topic names its queues itself (`orderTopicConf`), whether its brokers live or not. A static topic has logical
queues that are mapped to brokers; elsewhere a broker's queues count if it has a master (to send) or may be read.
"""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace
from typing import Any, Final

from skyrocket.client.core.errors import RouteTooWide
from skyrocket.model.message_queue import MessageQueue
from skyrocket.model.permission import PERM_READ, PERM_WRITE
from skyrocket.protocol.bodies.route import TopicRoute

MASTER_ID: Final = 0
LOGICAL_PREFIX: Final = "__syslo__"
MAX_QUEUES: Final = 100_000  # of one route: a cluster of 24 brokers with as many each as a broker allows
_GLOBAL_SCOPE: Final = "__global__"
_INT_DIGITS: Final = 10  # Java's int
_NO_LEADER: Final = "__syslo__none__"


@dataclass(frozen=True, slots=True)
class Route:
    """Where a topic is."""

    topic: str
    data: TopicRoute
    write_queues: tuple[MessageQueue, ...]
    read_queues: tuple[MessageQueue, ...]
    leaders: Mapping[MessageQueue, str]  # of logical queues only
    is_ordered: bool = False


def route_of(topic: str, data: TopicRoute) -> Route:
    """A route with its queues; raises RouteTooWide before any is made."""
    queues = queue_count(data)
    if queues > MAX_QUEUES:
        raise RouteTooWide(topic, queues, MAX_QUEUES)
    data = replace(
        data,
        queues=tuple(sorted(data.queues, key=lambda queue: queue.broker_name)),
        brokers=tuple(sorted(data.brokers, key=lambda broker: broker.broker_name)),
    )
    leaders = logical_queues(topic, data.mappings_by_broker or {})
    logical = tuple(sorted(leaders, key=lambda queue: queue.queue_id))
    write: tuple[MessageQueue, ...]
    if data.order_topic_conf:
        write = tuple(ordered_queues(topic, data.order_topic_conf))
    else:
        write = logical or tuple(writable_queues(topic, data))
    return Route(
        topic, data, write, logical or tuple(readable_queues(topic, data)), leaders, bool(data.order_topic_conf)
    )


def queue_count(data: TopicRoute) -> int:
    """How many queues a route names, whichever of its parts will count."""
    mapped = (int(info.get("totalQueues") or 0) for info in (data.mappings_by_broker or {}).values())
    return max(
        sum(max(queues.read_queues, queues.write_queues, 0) for queues in data.queues),
        sum(count for _, count in _ordered_counts(data.order_topic_conf or "")),
        max(mapped, default=0),
    )


def ordered_queues(topic: str, text: str) -> Iterable[MessageQueue]:
    """The queues of `broker-a:4;broker-b:2`."""
    for broker_name, count in _ordered_counts(text):
        for queue_id in range(count):
            yield MessageQueue(topic, broker_name, queue_id)


def _ordered_counts(text: str) -> Iterable[tuple[str, int]]:
    for part in text.split(";"):
        broker_name, colon, count = part.partition(":")
        if colon and count.strip().isdecimal() and len(count.strip()) <= _INT_DIGITS:
            yield broker_name, int(count)


def writable_queues(topic: str, data: TopicRoute) -> Iterable[MessageQueue]:
    """Queues whose broker has a master and may be written to."""
    with_master = {broker.broker_name for broker in data.brokers if MASTER_ID in broker.addresses}
    for queues in data.queues:
        if queues.permission & PERM_WRITE and queues.broker_name in with_master:
            for queue_id in range(queues.write_queues):
                yield MessageQueue(topic, queues.broker_name, queue_id)


def writing_state(data: TopicRoute) -> str:
    """What decides over writing, broker by broker, for people."""
    with_master = {broker.broker_name for broker in data.brokers if MASTER_ID in broker.addresses}
    return ", ".join(
        f"{queues.broker_name} has perm {queues.permission}, {queues.write_queues} write queues and "
        f"{'a' if queues.broker_name in with_master else 'no'} master"
        for queues in data.queues
    )


def readable_queues(topic: str, data: TopicRoute) -> Iterable[MessageQueue]:
    """Queues that may be read, also from a broker whose master is away."""
    for queues in data.queues:
        if queues.permission & PERM_READ:
            for queue_id in range(queues.read_queues):
                yield MessageQueue(topic, queues.broker_name, queue_id)


def logical_queues(topic: str, mappings: Mapping[str, Any]) -> dict[MessageQueue, str]:
    """The queues of a static topic with the broker that leads each: of several claims the newest epoch counts."""
    leaders: dict[MessageQueue, str] = {}
    totals: dict[str, int] = {}
    for info in sorted(mappings.values(), key=lambda info: -int(info.get("epoch") or 0)):
        scope = info.get("scope") or _GLOBAL_SCOPE
        totals[scope] = max(totals.get(scope, 0), int(info.get("totalQueues") or 0))
        for logical_id in info.get("currIdMap") or {}:
            leaders.setdefault(MessageQueue(topic, LOGICAL_PREFIX + scope, int(logical_id)), info.get("bname") or "")
    for scope, total in totals.items():
        for queue_id in range(total):
            leaders.setdefault(MessageQueue(topic, LOGICAL_PREFIX + scope, queue_id), _NO_LEADER)
    return leaders


def as_template(data: TopicRoute, most_queues: int) -> TopicRoute:
    """The route that a topic will have when the template's brokers create it."""
    queues = tuple(
        replace(queue, read_queues=count, write_queues=count)
        for queue in data.queues
        for count in [min(most_queues, queue.read_queues)]
    )
    return replace(data, queues=queues, mappings_by_broker=None, order_topic_conf=None)


class BrokerTable:
    """Broker name → broker id → address, as the routes have it."""

    def __init__(self) -> None:
        self._addresses: dict[str, dict[int, str]] = {}

    def learn(self, data: TopicRoute) -> None:
        """Take over what a route says of its brokers."""
        for broker in data.brokers:
            self._addresses[broker.broker_name] = dict(broker.addresses)

    def keep_only(self, routes: Iterable[TopicRoute]) -> None:
        """Forget addresses that no route names any more."""
        named = {address for data in routes for broker in data.brokers for address in broker.addresses.values()}
        for broker_name, addresses in list(self._addresses.items()):
            left = {number: address for number, address in addresses.items() if address in named}
            if left:
                self._addresses[broker_name] = left
            else:
                del self._addresses[broker_name]

    def master(self, broker_name: str) -> str | None:
        """Where to write."""
        addresses = self._addresses.get(broker_name)
        return None if addresses is None else addresses.get(MASTER_ID)

    def replica(self, broker_name: str, broker_id: int) -> tuple[str, int] | None:
        """Where to read: the broker of that id, its neighbour, or any; with the id found."""
        addresses = self._addresses.get(broker_name)
        if not addresses:
            return None
        for number in (broker_id, broker_id + 1) if broker_id != MASTER_ID else (broker_id,):
            if number in addresses:
                return addresses[number], number
        number = min(addresses)
        return addresses[number], number

    def name_of(self, address: str) -> str | None:
        """The broker at an address."""
        return next((name for name, known in self._addresses.items() if address in known.values()), None)

    def all(self, *, masters_only: bool = False) -> list[str]:
        """Every address once."""
        return list(
            dict.fromkeys(
                address
                for addresses in self._addresses.values()
                for number, address in addresses.items()
                if number == MASTER_ID or not masters_only
            )
        )
