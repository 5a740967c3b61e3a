"""Who is connected, who consumes what, and whether the broker understands a client's filter."""

from skyrocket.broker.rules.subscriptions import Subscriptions
from skyrocket.broker.state.identity import BrokerIdentity
from skyrocket.broker.state.tables import Tables
from skyrocket.protocol.bodies.connections import CONSUMER_CONNECTIONS, PRODUCER_CONNECTIONS, PRODUCER_TABLE
from skyrocket.protocol.bodies.groups import GROUP_LIST, GroupList
from skyrocket.protocol.bodies.subscription import CLIENT_CONFIG_CHECK, GROUP_SUBSCRIPTION, GroupSubscription
from skyrocket.protocol.bodies.topics import TOPIC_LIST, TopicList
from skyrocket.protocol.codes import RequestCode, ResponseCode
from skyrocket.protocol.command import RemotingCommand
from skyrocket.protocol.requests.admin_groups import GetConsumerConnectionList, GetProducerConnectionList
from skyrocket.protocol.requests.query import (
    QuerySubscriptionByConsumer,
    QueryTopicConsumeByWho,
    QueryTopicsByConsumer,
)
from skyrocket.remoting.peer import Peer
from skyrocket.remoting.serving import Handlers, serve_raw


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
            serve_raw(RequestCode.GET_CONSUMER_CONNECTION_LIST, self.consumers),
            serve_raw(RequestCode.GET_PRODUCER_CONNECTION_LIST, self.producers),
            serve_raw(RequestCode.GET_ALL_PRODUCER_INFO, self.all_producers),
            serve_raw(RequestCode.QUERY_TOPIC_CONSUME_BY_WHO, self.groups_of_topic),
            serve_raw(RequestCode.QUERY_TOPICS_BY_CONSUMER, self.topics_of_group),
            serve_raw(RequestCode.QUERY_SUBSCRIPTION_BY_CONSUMER, self.subscription),
            serve_raw(RequestCode.CHECK_CLIENT_CONFIG, self.check_client),
        )

    def consumers(self, _: Peer, request: RemotingCommand) -> RemotingCommand:
        """GET_CONSUMER_CONNECTION_LIST; 206 for a group without members, on which tools depend."""
        header = GetConsumerConnectionList.from_fields(request.ext_fields)
        return _success(request, CONSUMER_CONNECTIONS.encode(self._consumers.connections(header.consumer_group)))

    def producers(self, _: Peer, request: RemotingCommand) -> RemotingCommand:
        """GET_PRODUCER_CONNECTION_LIST."""
        header = GetProducerConnectionList.from_fields(request.ext_fields)
        return _success(request, PRODUCER_CONNECTIONS.encode(self._producers.connections(header.producer_group)))

    def all_producers(self, _: Peer, request: RemotingCommand) -> RemotingCommand:
        """GET_ALL_PRODUCER_INFO."""
        return _success(request, PRODUCER_TABLE.encode(self._producers.table()))

    def groups_of_topic(self, _: Peer, request: RemotingCommand) -> RemotingCommand:
        """QUERY_TOPIC_CONSUME_BY_WHO: those that subscribe now, and those that have consumed."""
        topic = QueryTopicConsumeByWho.from_fields(request.ext_fields).topic
        groups = dict.fromkeys((*self._consumers.groups_of(topic), *self._offsets.groups_of(topic)))
        return _success(request, GROUP_LIST.encode(GroupList(tuple(groups))))

    def topics_of_group(self, _: Peer, request: RemotingCommand) -> RemotingCommand:
        """QUERY_TOPICS_BY_CONSUMER: what the group has offsets of."""
        header = QueryTopicsByConsumer.from_fields(request.ext_fields)
        topics = TopicList(self._offsets.topics_of(header.group), str(self._identity.address))
        return _success(request, TOPIC_LIST.encode(topics))

    def subscription(self, _: Peer, request: RemotingCommand) -> RemotingCommand:
        """QUERY_SUBSCRIPTION_BY_CONSUMER; without the subscription when the group has none."""
        header = QuerySubscriptionByConsumer.from_fields(request.ext_fields)
        topic = header.topic or ""
        found = GroupSubscription(header.group, topic, self._consumers.find_subscription(header.group, topic))
        return _success(request, GROUP_SUBSCRIPTION.encode(found))

    def check_client(self, _: Peer, request: RemotingCommand) -> RemotingCommand:
        """CHECK_CLIENT_CONFIG: whether this broker understands a subscription."""
        subscription = CLIENT_CONFIG_CHECK.decode(request.body).subscription if request.body else None
        if subscription is not None:
            self._subscriptions.check(subscription)
        return request.answer(ResponseCode.SUCCESS)


def _success(request: RemotingCommand, body: bytes) -> RemotingCommand:
    return request.answer(ResponseCode.SUCCESS, None, None, body)
