"""What is asked of a pop and its kin before anything is read: the list of refusals that they share."""

from typing import NamedTuple

from skyrocket.broker.rules.subscriptions import EVERYTHING, SQL92, MessageFilter, Subscriptions
from skyrocket.broker.state.live_settings import LiveSettings
from skyrocket.broker.state.tables import Tables
from skyrocket.filtering.sql92 import SqlError
from skyrocket.model.subscription_group import SubscriptionGroup
from skyrocket.model.topic_config import TopicConfig
from skyrocket.protocol.bodies.subscription import SubscriptionData
from skyrocket.protocol.errors import InvalidParameter, RequestError, SubscriptionParseFailed, SystemBusy
from skyrocket.remoting.peer import Peer


class PopTarget(NamedTuple):
    """Whose messages, and of what."""

    topic: TopicConfig
    group: SubscriptionGroup


class PopChecks:
    """Topic, queue and group of a request, or its refusal."""

    def __init__(
        self,
        tables: Tables,
        subscriptions: Subscriptions,
        settings: LiveSettings,
        broker_ip: str,
    ) -> None:
        self.settings = settings
        self.broker_ip = broker_ip  # as refusals name it
        self._topics = tables.topics
        self._groups = tables.groups
        self._consumers = tables.consumers
        self._subscriptions = subscriptions

    def target(self, peer: Peer, topic_name: str, queue_id: int, group: str) -> PopTarget:
        """Raises TopicNotExist, NoPermission, InvalidParameter or GroupNotExist."""
        topic = self._topics.readable(topic_name, "peeking")
        if queue_id >= topic.read_queues:
            raise InvalidParameter(
                f"queueId[{queue_id}] is illegal, topic:[{topic.name}] "
                f"topicConfig.readQueueNums:[{topic.read_queues}] consumer:[/{peer.remote_address}]"
            )
        return PopTarget(topic, self._groups.consuming(group))

    def is_group(self, name: str) -> bool:
        """Whether there is a group of this name."""
        return self._groups.find(name) is not None

    def filter_of(self, group: str, topic: str, expression: str | None, kind: str | None) -> MessageFilter:
        """The condition that a pop brings along; raises SubscriptionParseFailed."""
        if not expression:
            self._consumers.note_subscription(group, SubscriptionData(topic))
            return EVERYTHING
        try:
            if kind == SQL92:
                wanted = self._subscriptions.property_filter(expression)
                self._consumers.note_subscription(group, SubscriptionData(topic, expression, kind))
                return wanted
            subscription = self._subscriptions.of_request(topic, expression, kind)
            self._consumers.note_subscription(group, subscription)
            return self._subscriptions.filter_of(subscription)
        except SqlError as error:  # RocketMQ: without what is wrong and where
            raise SubscriptionParseFailed(f"parse the consumer's subscription failed: {error}") from None
        except SystemBusy:
            raise
        except RequestError:
            raise SubscriptionParseFailed("parse the consumer's subscription failed") from None
