"""What the doctor looks at: a cluster as it was told by name servers, brokers and clients at one moment."""

from collections.abc import Mapping
from dataclasses import dataclass, field

from skyrocket.client.admin.offset_admin import QueueLag
from skyrocket.client.admin.places import BrokerPlace
from skyrocket.client.admin.waiting_messages import OpenTransaction
from skyrocket.model.message_queue import MessageQueue
from skyrocket.model.subscription_group import SubscriptionGroup
from skyrocket.model.topic_config import TopicConfig
from skyrocket.protocol.bodies.access import UserInfo
from skyrocket.protocol.bodies.connections import ConsumerConnections
from skyrocket.protocol.bodies.replication import HaStatus
from skyrocket.protocol.bodies.route import ClusterInfo, TopicRoute
from skyrocket.protocol.bodies.running_info import ConsumerRunningInfo
from skyrocket.protocol.bodies.statistics import TopicOffset


@dataclass(frozen=True, slots=True)
class NameServerFacts:
    """One name server: what it knows, or why it did not say."""

    address: str
    cluster: ClusterInfo | None = None
    problem: str | None = None
    is_refusal: bool = False  # somebody answered who knows no brokers


@dataclass(frozen=True, slots=True)
class BrokerFacts:
    """One broker: what it counts and how it is set, or why it did not say."""

    place: BrokerPlace
    runtime: Mapping[str, str] = field(default_factory=dict)
    settings: Mapping[str, str] = field(default_factory=dict)
    ha: HaStatus | None = None
    producers: int = 0
    users: tuple[UserInfo, ...] = ()
    problem: str | None = None
    is_refusal: bool = False  # it answered, but would not tell
    asked_at_ms: int = 0  # by our clock, as is when it had told how it is
    answered_at_ms: int = 0

    def number(self, key: str, default: float = 0.0) -> float:
        """A count of the runtime information; the first one where it tells several."""
        try:
            return float((self.runtime.get(key) or "").split()[0])
        except (ValueError, IndexError):
            return default

    def setting(self, key: str, default: int) -> int:
        """A setting that is a number."""
        text = self.settings.get(key, "")
        return int(text) if text.lstrip("-").isdecimal() else default


@dataclass(frozen=True, slots=True)
class GroupFacts:
    """One group: how it is set, who is in it, and how far it is, now and some seconds ago."""

    name: str
    configs: Mapping[BrokerPlace, SubscriptionGroup] = field(default_factory=dict)
    members: ConsumerConnections | None = None  # None: nobody runs
    infos: Mapping[str, ConsumerRunningInfo] = field(default_factory=dict)  # by client id, of those who answered
    lags: tuple[QueueLag, ...] = ()
    earlier: Mapping[MessageQueue, QueueLag] = field(default_factory=dict)
    waited_ms: Mapping[MessageQueue, int] = field(default_factory=dict)  # how long what is next has, where it was asked

    @property
    def lag(self) -> int:
        return sum(max(each.lag, 0) for each in self.lags)

    def come_in(self, seconds: float, sample_seconds: float) -> float:
        """How many messages come in so long, as the two looks say."""
        pairs = ((self.earlier[each.queue], each) for each in self.lags if each.queue in self.earlier)
        moved = sum(now.broker_offset - before.broker_offset for before, now in pairs)
        return moved * seconds / sample_seconds if sample_seconds > 0 else 0.0

    def late_ms(self, lag: QueueLag, now_ms: int) -> int | None:
        """For how long messages have waited in a queue; at most, as the last one that was consumed says."""
        if lag.lag <= 0:
            return 0
        if lag.queue in self.waited_ms:
            return self.waited_ms[lag.queue]
        return max(now_ms - lag.last_timestamp, 0) if lag.last_timestamp > 0 else None

    @property
    def client_count(self) -> int:
        return 0 if self.members is None else len(self.members.connections)


@dataclass(frozen=True, slots=True)
class ClusterFacts:
    """All of it."""

    now_ms: int
    name_servers: tuple[NameServerFacts, ...] = ()
    brokers: tuple[BrokerFacts, ...] = ()
    topics: Mapping[str, Mapping[BrokerPlace, TopicConfig]] = field(default_factory=dict)
    topic_names: frozenset[str] = frozenset()  # of all topics, also when one alone is looked at
    routes: Mapping[str, TopicRoute] = field(default_factory=dict)  # of topics of applications
    offsets: Mapping[MessageQueue, TopicOffset] = field(
        default_factory=dict
    )  # of topics that groups consume, and theirs
    groups: Mapping[str, GroupFacts] = field(default_factory=dict)
    transactions: tuple[OpenTransaction, ...] = ()
    sample_seconds: float = 0.0

    @property
    def masters(self) -> list[BrokerFacts]:
        return [broker for broker in self.brokers if broker.place.is_master]

    @property
    def answering(self) -> list[BrokerFacts]:
        return [broker for broker in self.brokers if broker.problem is None]
