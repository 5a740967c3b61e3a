"""Which broker has which queues: the tables of a name server, and every change of them.

    topics    topic ▸ broker name ▸ QueueData         brokers   broker name ▸ BrokerData (addresses by id, 0 = master)
    clusters  cluster ▸ broker names                  live      (cluster, address) ▸ last sign of life, data version
    filters   (cluster, address) ▸ filter servers     mappings  topic ▸ broker name ▸ static mapping

Synchronous and without I/O: the event loop's thread is the only one here, so nothing needs RocketMQ's lock. A refused
registration changes nothing. Times are monotonic seconds: setting the machine's clock makes no broker look dead.
"""

from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, field, replace
from typing import Any, Final, NamedTuple

from skyrocket.model.data_version import DataVersion
from skyrocket.model.permission import PERM_READ, PERM_WRITE
from skyrocket.model.topic_config import SYS_FLAG_UNIT, SYS_FLAG_UNIT_SUBSCRIPTION, TopicConfig
from skyrocket.protocol.bodies.registration import BrokerRegistration
from skyrocket.protocol.bodies.route import BrokerData, QueueData
from skyrocket.protocol.errors import SystemFailure

MASTER_ID: Final = 0
MAX_ROUTES: Final = 500_000
DEFAULT_TIMEOUT_SECONDS: Final = 120.0


class BrokerKey(NamedTuple):
    """One broker process."""

    cluster: str
    address: str


@dataclass(frozen=True, slots=True)
class BrokerIdentity:
    """Who registers or goes; `accepts_acting_master` is None for brokers older than 5.0."""

    cluster: str
    broker_name: str
    broker_id: int
    address: str
    ha_address: str = ""
    zone_name: str | None = None
    accepts_acting_master: bool | None = None
    timeout_seconds: float = DEFAULT_TIMEOUT_SECONDS

    @property
    def key(self) -> BrokerKey:
        return BrokerKey(self.cluster, self.address)

    @property
    def is_master(self) -> bool:
        return self.broker_id == MASTER_ID


@dataclass(slots=True)
class LiveBroker:
    """The last sign of life of one broker process, and the connection that it came by."""

    seen_at: float
    timeout_seconds: float
    data_version: DataVersion
    connection: object
    ha_address: str

    def is_expired(self, now: float) -> bool:
        return self.seen_at + self.timeout_seconds < now


@dataclass(frozen=True, slots=True)
class MinBrokerChange:
    """The smallest id of a broker name changed: by one that went, or by one that came."""

    broker_name: str
    addresses: Mapping[int, str]
    offline_address: str | None = None
    ha_address: str | None = None


@dataclass(frozen=True, slots=True)
class Registered:
    """What the broker hears (its master, when it is a slave), and what other brokers may hear."""

    master_address: str | None = None
    ha_address: str | None = None
    min_change: MinBrokerChange | None = None


@dataclass(slots=True)
class RouteTable:
    """The tables; `changes` grows whenever an answer to a route query may have become another."""

    topics: dict[str, dict[str, QueueData]] = field(default_factory=dict)
    brokers: dict[str, BrokerData] = field(default_factory=dict)
    clusters: dict[str, set[str]] = field(default_factory=dict)
    live: dict[BrokerKey, LiveBroker] = field(default_factory=dict)
    filters: dict[BrokerKey, tuple[str, ...]] = field(default_factory=dict)
    mappings: dict[str, dict[str, Any]] = field(default_factory=dict)
    changes: int = 0
    routes: int = 0  # topics of each broker, added up
    max_routes: int = MAX_ROUTES  # with the brokers themselves

    # ── registration ─────────────────────────────────────────────────────────────────────────────────────────────────

    def register(
        self,
        broker: BrokerIdentity,
        registration: BrokerRegistration,
        connection: object,
        now: float,
        *,
        drops_missing_topics: bool = False,
    ) -> Registered:
        """Take in a broker with its topics; raises SystemFailure when it may not come with these."""
        known = self.brokers.get(broker.broker_name)
        addresses = dict(known.addresses) if known is not None else {}
        previous_min = min(addresses, default=MASTER_ID)
        # The same process under another id: a slave became master, or the other way round.
        addresses = {i: a for i, a in addresses.items() if a != broker.address or i == broker.broker_id}
        version = registration.table.data_version
        if self._is_outdated(broker, addresses.get(broker.broker_id), version):
            self.live.pop(broker.key, None)
            return Registered()
        is_new_id = broker.broker_id not in addresses
        if is_new_id and len(registration.table.topics) == 1:
            # RocketMQ: news of a single topic must not come before the whole table.
            raise SystemFailure("register broker failed", {})
        self._check_room(broker, registration.table.topics)
        addresses[broker.broker_id] = broker.address
        self._put_broker(broker, known, addresses)
        if broker.is_master or self._is_prime_slave(broker, addresses):
            is_changed = is_new_id or self.stored_version(broker.key) != version
            self._put_topics(broker, registration, everything=is_changed, drops_missing=drops_missing_topics)
        self.live[broker.key] = LiveBroker(now, broker.timeout_seconds, version, connection, broker.ha_address)
        self._put_filters(broker.key, registration.filter_servers)
        change = None
        if broker.broker_id < previous_min:
            change = MinBrokerChange(broker.broker_name, addresses, ha_address=broker.ha_address)
        return replace(self._master_of(broker), min_change=change)

    def _check_room(self, broker: BrokerIdentity, topics: Iterable[str]) -> None:
        """Raises SystemFailure when there would be more than one process can hold: brokers may be made up, too."""
        name, known = broker.broker_name, self.topics
        more = sum(topic not in known or name not in known[topic] for topic in topics) + (broker.key not in self.live)
        in_all = self.routes + len(self.live) + more
        if more and in_all > self.max_routes:
            raise SystemFailure(
                f"the name server would have {in_all} routes, {self.max_routes} are allowed; maxRoutes of the name "
                "server says how many topics all brokers may have together",
                {},
            )

    def _is_outdated(self, broker: BrokerIdentity, holder: str | None, version: DataVersion) -> bool:
        """Whether another process has this id by the word of a later controller."""
        if holder is None or holder == broker.address:
            return False
        live = self.live.get(BrokerKey(broker.cluster, holder))
        return live is not None and live.data_version.state_version > version.state_version

    def _put_broker(self, broker: BrokerIdentity, known: BrokerData | None, addresses: dict[int, str]) -> None:
        self.clusters.setdefault(broker.cluster, set()).add(broker.broker_name)
        data = BrokerData(
            broker_name=broker.broker_name,
            cluster=known.cluster if known is not None else broker.cluster,
            addresses=dict(sorted(addresses.items())),
            enable_acting_master=bool(broker.accepts_acting_master),
            zone_name=broker.zone_name,
        )
        if data != known:
            self.brokers[broker.broker_name] = data
            self.changes += 1

    @staticmethod
    def _is_prime_slave(broker: BrokerIdentity, addresses: Mapping[int, str]) -> bool:
        is_old = broker.accepts_acting_master is None
        return not is_old and not broker.is_master and broker.broker_id == min(addresses)

    def _put_topics(
        self, broker: BrokerIdentity, registration: BrokerRegistration, *, everything: bool, drops_missing: bool
    ) -> None:
        table = registration.table
        if drops_missing and not table.mapping_infos:
            gone = [name for name in self.topics_of_broker(broker.broker_name) if name not in table.topics]
            self._drop_queues(gone, {broker.broker_name})
        acts_as_master = not broker.is_master and bool(broker.accepts_acting_master)
        for name, topic in table.topics.items():
            queues = self.topics.get(name)
            if everything or queues is None or broker.broker_name not in queues:
                self._put_queues(name, _queue_data(broker.broker_name, topic, read_only=acts_as_master))
        if everything:
            for name, mapping in (table.mapping_infos or {}).items():
                self.mappings.setdefault(name, {})[mapping.get("bname") or broker.broker_name] = mapping
                self.changes += 1

    def _put_queues(self, topic: str, queues: QueueData) -> None:
        of_topic = self.topics.setdefault(topic, {})
        self.routes += queues.broker_name not in of_topic
        if of_topic.get(queues.broker_name) != queues:
            of_topic[queues.broker_name] = queues
            self.changes += 1

    def _put_filters(self, key: BrokerKey, servers: tuple[str, ...] | None) -> None:
        if servers is None or servers == self.filters.get(key, ()):
            return
        self.changes += 1
        if servers:
            self.filters[key] = servers
        else:
            del self.filters[key]

    def _master_of(self, broker: BrokerIdentity) -> Registered:
        if broker.is_master:
            return Registered()
        address = self.brokers[broker.broker_name].addresses.get(MASTER_ID)
        live = self.live.get(BrokerKey(broker.cluster, address)) if address is not None else None
        return Registered() if live is None else Registered(address, live.ha_address)

    # ── signs of life ────────────────────────────────────────────────────────────────────────────────────────────────

    def stored_version(self, key: BrokerKey) -> DataVersion | None:
        """The version of the topics that a broker last registered."""
        live = self.live.get(key)
        return None if live is None else live.data_version

    def touch(self, key: BrokerKey, now: float) -> None:
        """A broker showed that it lives; one that is not registered stays unknown."""
        live = self.live.get(key)
        if live is not None:
            live.seen_at = now

    def expired(self, now: float) -> list[BrokerKey]:
        """Brokers that were silent for too long."""
        return [key for key, live in self.live.items() if live.is_expired(now)]

    def connected_by(self, connection: object) -> list[BrokerKey]:
        """Brokers whose last registration came by this connection."""
        return [key for key, live in self.live.items() if live.connection is connection]

    # ── removal ──────────────────────────────────────────────────────────────────────────────────────────────────────

    def identity(self, key: BrokerKey) -> BrokerIdentity | None:
        """Name and id of a broker process that is registered."""
        for data in self.brokers.values():
            if data.cluster == key.cluster:
                for broker_id, address in data.addresses.items():
                    if address == key.address:
                        return BrokerIdentity(key.cluster, data.broker_name, broker_id, address)
        return None

    def remove(self, keys: Iterable[BrokerKey]) -> list[MinBrokerChange]:
        """Forget brokers that are lost or silent."""
        leaving = []
        for key in keys:
            identity = self.identity(key)
            if identity is None:
                self.live.pop(key, None)
                self.filters.pop(key, None)
            else:
                leaving.append(identity)
        return self.unregister(leaving)

    def unregister(self, leaving: Iterable[BrokerIdentity]) -> list[MinBrokerChange]:
        """Forget brokers; topics that nobody has any more go with them."""
        removed: set[str] = set()
        reduced: dict[str, MinBrokerChange | None] = {}
        for broker in leaving:
            self.live.pop(broker.key, None)
            self.filters.pop(broker.key, None)
            data = self.brokers.get(broker.broker_name)
            if data is None or broker.address not in data.addresses.values():
                continue
            self.changes += 1
            left = {i: address for i, address in data.addresses.items() if address != broker.address}
            if left:
                self.brokers[broker.broker_name] = replace(data, addresses=left)
                change = reduced.get(broker.broker_name)
                if data.enable_acting_master and broker.broker_id == min(data.addresses):
                    change = MinBrokerChange(broker.broker_name, left, offline_address=broker.address)
                reduced[broker.broker_name] = change
            else:
                self._drop_broker(data)
                removed.add(broker.broker_name)
                reduced.pop(broker.broker_name, None)
        if removed:
            self._drop_queues(list(self.topics), removed)
        self._make_read_only(self._without_master(reduced))
        return [change for change in reduced.values() if change is not None]

    def _drop_broker(self, data: BrokerData) -> None:
        del self.brokers[data.broker_name]
        for cluster in [name for name, members in self.clusters.items() if data.broker_name in members]:
            self.clusters[cluster].discard(data.broker_name)
            if not self.clusters[cluster]:
                del self.clusters[cluster]

    def _drop_queues(self, topics: Iterable[str], broker_names: set[str]) -> None:
        for topic in topics:
            for table in (self.topics, self.mappings):
                of_topic = table.get(topic)
                if of_topic is None:
                    continue
                for name in broker_names & of_topic.keys():
                    del of_topic[name]
                    self.routes -= table is self.topics
                    self.changes += 1
                if not of_topic:
                    del table[topic]

    def _without_master(self, broker_names: Iterable[str]) -> set[str]:
        brokers = (self.brokers[name] for name in broker_names)
        return {b.broker_name for b in brokers if b.enable_acting_master and MASTER_ID not in b.addresses}

    def _make_read_only(self, broker_names: Iterable[str]) -> None:
        for name in broker_names:
            self._set_permissions(name, lambda permission: permission & ~PERM_WRITE)

    # ── by order of an administrator ─────────────────────────────────────────────────────────────────────────────────

    def wipe_write_permission(self, broker_name: str) -> int:
        """Let producers avoid a broker until it registers changed topics; the number of its topics."""
        return self._set_permissions(broker_name, lambda permission: permission & ~PERM_WRITE)

    def add_write_permission(self, broker_name: str) -> int:
        """The opposite. RocketMQ: whatever the permission was, it becomes read and write."""
        return self._set_permissions(broker_name, lambda _: PERM_READ | PERM_WRITE)

    def _set_permissions(self, broker_name: str, changed: Callable[[int], int]) -> int:
        topics = list(self.topics_of_broker(broker_name))
        for topic in topics:
            queues = self.topics[topic][broker_name]
            self._put_queues(topic, replace(queues, permission=changed(queues.permission)))
        return len(topics)

    def delete_topic(self, topic: str, cluster: str | None = None) -> None:
        """Forget a topic, or only what one cluster has of it."""
        of_topic = self.topics.get(topic, {})
        names = set(of_topic) if cluster is None else self.clusters.get(cluster, set()) & of_topic.keys()
        self._drop_queues([topic], set(names) | (set(self.mappings.get(topic, {})) if cluster is None else set()))

    def register_topic(self, topic: str, queues: Iterable[QueueData]) -> None:
        """Queues of one topic, ahead of the registration that will bring them; brokers must be known.

        More than there is room for are left to the registration, which says why it is refused.
        """
        for data in queues:
            is_new = data.broker_name not in self.topics.get(topic, ())
            if data.broker_name not in self.brokers or (is_new and self.routes + len(self.live) >= self.max_routes):
                return  # RocketMQ: those before it stay
            self._put_queues(topic, data)

    # ── questions ────────────────────────────────────────────────────────────────────────────────────────────────────

    def topics_of_broker(self, broker_name: str) -> Iterator[str]:
        """Topics of which a broker has queues."""
        return (topic for topic, queues in self.topics.items() if broker_name in queues)

    def topics_of_cluster(self, cluster: str) -> list[str]:
        """Topics of which a broker of the cluster has queues."""
        members = self.clusters.get(cluster, set())
        return [topic for topic, queues in self.topics.items() if not members.isdisjoint(queues)]

    def unit_topics(self) -> list[str]:
        """Topics of units."""
        return self._topics_with(lambda flag: bool(flag & SYS_FLAG_UNIT))

    def unit_subscription_topics(self) -> list[str]:
        """Topics with subscriptions of units."""
        return self._topics_with(lambda flag: bool(flag & SYS_FLAG_UNIT_SUBSCRIPTION))

    def unit_subscription_topics_without_unit(self) -> list[str]:
        """Topics with subscriptions of units that belong to no unit themselves."""
        both = SYS_FLAG_UNIT | SYS_FLAG_UNIT_SUBSCRIPTION
        return self._topics_with(lambda flag: flag & both == SYS_FLAG_UNIT_SUBSCRIPTION)

    def _topics_with(self, wanted: Callable[[int], bool]) -> list[str]:
        # RocketMQ looks at the first broker only: all have the same flag.
        return [topic for topic, queues in self.topics.items() if wanted(next(iter(queues.values())).topic_sys_flag)]

    def any_address(self) -> str | None:
        """Some broker that can be asked for more."""
        return next((address for data in self.brokers.values() for address in data.addresses.values()), None)


def _queue_data(broker_name: str, topic: TopicConfig, *, read_only: bool) -> QueueData:
    # A slave that stands in for its master takes no messages.
    permission = topic.permission & ~PERM_WRITE if read_only else topic.permission
    return QueueData(broker_name, topic.read_queues, topic.write_queues, permission, topic.sys_flag)
