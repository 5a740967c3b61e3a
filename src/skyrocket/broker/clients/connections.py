"""Who is connected, who consumes what, and whether the broker understands a client's filter."""

from skyrocket.broker.rules.subscriptions import Subscriptions
from skyrocket.broker.state.identity import BrokerIdentity
from skyrocket.broker.state.tables import Tables
from skyrocket.protocol.bodies.connections import ConsumerConnections, ProducerConnections, ProducerTable
from skyrocket.protocol.bodies.groups import GroupList
from skyrocket.protocol.bodies.subscription import ClientConfigCheck, GroupSubscription
from skyrocket.protocol.bodies.topics import TopicList
from skyrocket.protocol.command import Body
from skyrocket.protocol.requests.admin_groups import GetAllProducerInfo, GetProducerConnectionList
from skyrocket.protocol.requests.consumers import CheckClientConfig, GetConsumerConnectionList
from skyrocket.protocol.requests.query import QuerySubscriptionByConsumer, QueryTopicConsumeByWho, QueryTopicsByConsumer
from skyrocket.remoting.peer import Peer
from skyrocket.remoting.serving import Handlers, serve


class ConnectionProcessor:
    """Reads the tables of clients and offsets."""

    def __init__(
        self,
        tables: Tables,
        identity: BrokerIdentity,
        subscriptions: Subscriptions,
    ) -> None:
        self._consumers = tables.consumers
        self._producers = tables.producers
        self._offsets = tables.offsets
        self._identity = identity
        self._subscriptions = subscriptions

    def handlers(self) -> Handlers:
        return (
            serve(GetConsumerConnectionList, self.consumers),
            serve(GetProducerConnectionList, self.producers),
            serve(GetAllProducerInfo, self.all_producers),
            serve(QueryTopicConsumeByWho, self.groups_of_topic),
            serve(QueryTopicsByConsumer, self.topics_of_group),
            serve(QuerySubscriptionByConsumer, self.subscription),
            serve(CheckClientConfig, self.check_client),
        )

    def consumers(self, _: Peer, header: GetConsumerConnectionList, __: Body) -> ConsumerConnections:
        """The members of a consumer group; 206 for a group without members, on which tools depend."""
        return self._consumers.connections(header.consumer_group, with_times=bool(header.with_times))

    def producers(self, _: Peer, header: GetProducerConnectionList, __: Body) -> ProducerConnections:
        """The members of a producer group."""
        return self._producers.connections(header.producer_group)

    def all_producers(self, _: Peer, header: GetAllProducerInfo, __: Body) -> ProducerTable:
        """All producers by group."""
        return self._producers.table(with_times=bool(header.with_times))

    def groups_of_topic(self, _: Peer, header: QueryTopicConsumeByWho, __: Body) -> GroupList:
        """The groups of a topic: those that subscribe now, and those that have consumed."""
        groups = dict.fromkeys((*self._consumers.groups_of(header.topic), *self._offsets.groups_of(header.topic)))
        return GroupList(tuple(groups))

    def topics_of_group(self, _: Peer, header: QueryTopicsByConsumer, __: Body) -> TopicList:
        """The topics of which a group has offsets."""
        return TopicList(self._offsets.topics_of(header.group), str(self._identity.address))

    def subscription(self, _: Peer, header: QuerySubscriptionByConsumer, __: Body) -> GroupSubscription:
        """What a group subscribes to of a topic; without the subscription when it has none."""
        topic = header.topic or ""
        return GroupSubscription(header.group, topic, self._consumers.find_subscription(header.group, topic))

    def check_client(self, _: Peer, __: CheckClientConfig, body: ClientConfigCheck | None) -> None:
        """Refuse a subscription that this broker does not understand."""
        if body is not None and body.subscription is not None:
            self._subscriptions.check(body.subscription)
