"""Clients come, beat their hearts and go; members of a group hear of each other, and of queues that come and go."""

from collections.abc import Iterable, Sequence
from typing import Final

from skyrocket.broker.state.connected_clients import Client
from skyrocket.broker.state.connected_consumers import Change
from skyrocket.broker.state.rate_bucket import RateBucket
from skyrocket.broker.state.subscription_groups import TOO_MANY_NEW
from skyrocket.broker.state.tables import Tables
from skyrocket.clock import Clock
from skyrocket.model.topic import RETRY_PREFIX
from skyrocket.model.topic_config import SYS_FLAG_UNIT_SUBSCRIPTION, TopicConfig
from skyrocket.protocol.bodies.connections import ConsumerList
from skyrocket.protocol.bodies.heartbeat import ConsumerData, Heartbeat
from skyrocket.protocol.command import Body
from skyrocket.protocol.errors import SystemBusy
from skyrocket.protocol.requests.clients import HeartBeat, HeartBeatAnswer, UnregisterClient
from skyrocket.protocol.requests.consumers import GetConsumerListByGroup
from skyrocket.protocol.requests.server_to_client import NotifyConsumerIdsChanged
from skyrocket.remoting.peer import CloseReason, Peer
from skyrocket.remoting.serving import Handlers, serve

_NEW_GROUPS: Final = "broker.new groups"


class ClientProcessor:
    """Keeps the tables of producers and consumers."""

    def __init__(self, tables: Tables, clock: Clock, new_groups_per_second: int) -> None:
        """A connection may bring half of the new groups that all together may bring."""
        self._consumers = tables.consumers
        self._producers = tables.producers
        self._groups = tables.groups
        self._topics = tables.topics
        self._clock = clock
        self._new_per_second = new_groups_per_second / 2
        self._told_queues: dict[str, int] = {}  # read queues by topic, as the name servers last heard of them
        self._topics.on_announced(self.queues_changed)

    def handlers(self) -> Handlers:
        return (
            serve(HeartBeat, self.heart_beat),
            serve(UnregisterClient, self.unregister),
            serve(GetConsumerListByGroup, self.consumer_list),
        )

    def heart_beat(self, peer: Peer, _: HeartBeat, beat: Heartbeat) -> HeartBeatAnswer:
        """Take the groups of a client; one that may not be created is passed over in silence."""
        language = peer.language.name if peer.language is not None else None
        client = Client(peer, beat.client_id, str(peer.remote_address), language, peer.version)
        must_send = [self._consumer_beats(client, data, beat) for data in beat.consumers]
        for producer in beat.producers:
            self._producers.register(producer.group, client)
        changed = beat.fingerprint == 0 or any(must_send)
        return HeartBeatAnswer(supports_v2=True, subscription_changed=changed)

    def _consumer_beats(self, client: Client[Peer], data: ConsumerData, beat: Heartbeat) -> bool:
        """Whether the client must send its subscriptions in full; raises SystemBusy for one new group too many."""
        if self._groups.find(data.group) is None and not self._brings_few(client.connection):
            raise SystemBusy(TOO_MANY_NEW)
        must_send = self._consumers.must_send_subscriptions(
            data.group, beat.fingerprint, without_subscriptions=beat.without_subscriptions
        )
        group = self._groups.find_or_create(data.group)
        if group is None:
            return must_send
        if not beat.without_subscriptions:
            self._ensure_retry_topic(data, group.retry_queues)
        self._tell(
            self._consumers.register(
                client,
                data,
                notifies=group.notifies_of_members,
                with_subscriptions=not beat.without_subscriptions,
            )
        )
        return must_send

    def _brings_few(self, peer: Peer) -> bool:
        """Whether a connection may bring one more new group."""
        bucket = peer.attributes.get(_NEW_GROUPS)
        if bucket is None:
            bucket = peer.attributes[_NEW_GROUPS] = RateBucket(self._clock, self._new_per_second)
        assert isinstance(bucket, RateBucket)
        return bucket.take()

    def _ensure_retry_topic(self, data: ConsumerData, queues: int) -> None:
        found = [self._topics.find(subscription.topic) for subscription in data.subscriptions]
        ordered = any(topic is not None and topic.ordered for topic in found)
        sys_flag = SYS_FLAG_UNIT_SUBSCRIPTION if data.unit_mode else 0
        self._topics.ensure(RETRY_PREFIX + data.group, queues, ordered=ordered, sys_flag=sys_flag)

    def unregister(self, peer: Peer, header: UnregisterClient, _: Body) -> None:
        """Forget a client in its groups."""
        if header.producer_group:
            self._producers.unregister(header.producer_group, peer)
        if header.consumer_group:
            group = self._groups.find(header.consumer_group)
            notifies = group is None or group.notifies_of_members
            change = self._consumers.unregister(header.consumer_group, peer, notifies=notifies)
            if change is not None:
                self._tell(change)

    def consumer_list(self, _: Peer, header: GetConsumerListByGroup, __: Body) -> ConsumerList:
        """The members of a group."""
        return ConsumerList(self._consumers.client_ids(header.consumer_group))

    # ── queues ───────────────────────────────────────────────────────────────────────────────────────────────────────

    def queues_changed(self, announced: Sequence[TopicConfig]) -> None:
        """Tell the members of all groups that read a topic when it has more queues or fewer.

        RocketMQ leaves it to the 30 s in which every client asks for its routes. Ours asks at once for the route of the
        topic that is named here; others rebalance with the route that they have, which does no harm.
        """
        changed = [topic for topic in announced if topic.read_queues != self._told_queues.get(topic.name)]
        self._told_queues.update((topic.name, topic.read_queues) for topic in changed)
        for topic in changed:
            for name in self._consumers.groups_of(topic.name):
                group = self._consumers.find_group(name)
                for peer in group.members if group is not None else ():
                    peer.send_oneway(NotifyConsumerIdsChanged(consumer_group=name, topic=topic.name))
        if len(self._told_queues) > len(self._topics.topics):
            self._told_queues = {name: n for name, n in self._told_queues.items() if name in self._topics.topics}

    # ── departures that nobody announced ─────────────────────────────────────────────────────────────────────────────

    def closed(self, peer: Peer, _: CloseReason) -> None:
        """A connection is gone, and whoever used it."""
        self._producers.closed(peer)
        self._tell_all(self._consumers.closed(peer))

    def expire(self) -> None:
        """Close connections of clients that were silent for too long."""
        consumers, changes = self._consumers.expire()
        self._tell_all(changes)
        for client in [*consumers, *self._producers.expire()]:
            client.connection.close(CloseReason.IDLE)

    def _tell_all(self, changes: Iterable[Change[Peer]]) -> None:
        for change in changes:
            self._tell(change)

    def _tell(self, change: Change[Peer]) -> None:
        for peer in change.tell:
            peer.send_oneway(NotifyConsumerIdsChanged(consumer_group=change.group))
