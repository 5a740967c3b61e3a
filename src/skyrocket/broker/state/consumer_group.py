"""A consumer group as its members' heartbeats describe it."""

from collections.abc import Iterable
from typing import Generic

from skyrocket.broker.state.connected_clients import C, Client, Member
from skyrocket.protocol.bodies.connections import ConsumerConnections
from skyrocket.protocol.bodies.heartbeat import ConsumerData
from skyrocket.protocol.bodies.subscription import SubscriptionData
from skyrocket.protocol.errors import FAQ, SubscriptionNotExist, SubscriptionNotLatest

BROADCASTING = "BROADCASTING"


class ConsumerGroup(Generic[C]):
    """Members and subscriptions; the last heartbeat decides what kind of group it is.

    The subscriptions are those of the last heartbeat, not the union of all: members that disagree take them from each
    other at every beat, as with RocketMQ.
    """

    def __init__(self, name: str) -> None:
        self.name = name
        self.consume_type: str | None = None
        self.message_model: str | None = None
        self.consume_from_where: str | None = None
        self.subscriptions: dict[str, SubscriptionData] = {}
        self.members: dict[C, Member[C]] = {}

    @property
    def is_broadcasting(self) -> bool:
        return self.message_model == BROADCASTING

    @property
    def clients(self) -> tuple[Client[C], ...]:
        return tuple(member.client for member in self.members.values())

    def beat(self, client: Client[C], data: ConsumerData, now: float, now_ms: int) -> bool:
        """Take a heartbeat's word, except for subscriptions; whether a member joined."""
        self.consume_type = data.consume_type
        self.message_model = data.message_model
        self.consume_from_where = data.consume_from_where
        member = self.members.get(client.connection)
        if member is not None and member.client.client_id == client.client_id:
            member.seen_at, member.seen_ms = now, now_ms
        else:
            self.members[client.connection] = Member(client, now, now_ms)
        return member is None

    def subscribe(self, subscriptions: Iterable[SubscriptionData]) -> bool:
        """Take over subscriptions; whether topics came or went. A newer version of a known topic is no such change."""
        latest: dict[str, SubscriptionData] = {}
        for new in subscriptions:
            known = latest.get(new.topic) or self.subscriptions.get(new.topic)
            latest[new.topic] = new if known is None or new.version > known.version else known
        changed = latest.keys() != self.subscriptions.keys()
        self.subscriptions = latest
        return changed

    def subscription(self, topic: str, version: int = 0) -> SubscriptionData:
        """What the group wants of a topic; raises SubscriptionNotExist, or SubscriptionNotLatest if ours is older."""
        found = self.subscriptions.get(topic)
        if found is None:
            raise SubscriptionNotExist(f"the consumer's subscription not exist{FAQ}")
        if found.version < version:
            raise SubscriptionNotLatest("the consumer's subscription not latest")
        return found

    def body(self, *, with_times: bool = False) -> ConsumerConnections:
        """GET_CONSUMER_CONNECTION_LIST."""
        return ConsumerConnections(
            connections=tuple(member.body(with_times=with_times) for member in self.members.values()),
            subscriptions=dict(self.subscriptions),
            consume_type=self.consume_type,
            message_model=self.message_model,
            consume_from_where=self.consume_from_where,
        )
