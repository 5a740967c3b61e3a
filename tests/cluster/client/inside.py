"""The one way into the members of a client: what tests must see or hold, and applications have no business with."""

from collections.abc import MutableMapping

from skyrocket.client import Admin, LitePullConsumer, Producer, PushConsumer, SimpleConsumer
from skyrocket.client.consumer.assigned_queues import AssignedQueues
from skyrocket.client.core.instance import ClientInstance
from skyrocket.client.producer.in_flight import InFlight
from skyrocket.client.sending.topic_publish_info import TopicPublishInfo


def instance_of(member: Producer | PushConsumer | LitePullConsumer | SimpleConsumer | Admin) -> ClientInstance:
    """What a running member shares with the others of its client: connections, routes, the id that brokers see."""
    return member._instance


def known_topics(producer: Producer) -> MutableMapping[str, TopicPublishInfo]:
    """Where a running producer would send messages of the topics that it has met."""
    return producer._sender.topics


def sends_in_flight(producer: Producer) -> InFlight:
    """The bound of what a producer has sent without an answer."""
    return producer._flight


def assigned_queues(consumer: PushConsumer) -> AssignedQueues:
    """The queues of a running consumer, also those that it is leaving."""
    return consumer._queues
