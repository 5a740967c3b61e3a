"""What members of a group tell, under the names that are seen from within a namespace."""

from dataclasses import replace

from skyrocket.client.core.names import unwrap
from skyrocket.model.message_queue import MessageQueue
from skyrocket.protocol.bodies.connections import ConsumerConnections
from skyrocket.protocol.bodies.running_info import ConsumerRunningInfo
from skyrocket.protocol.bodies.subscription import SubscriptionData


def shown_queue(namespace: str, queue: MessageQueue) -> MessageQueue:
    return queue._replace(topic=unwrap(namespace, queue.topic))


def shown_members(namespace: str, members: ConsumerConnections) -> ConsumerConnections:
    wanted = (_shown_subscription(namespace, each) for each in members.subscriptions.values())
    return replace(members, subscriptions={each.topic: each for each in wanted})


def shown_info(namespace: str, info: ConsumerRunningInfo) -> ConsumerRunningInfo:
    return replace(
        info,
        subscriptions=tuple(_shown_subscription(namespace, each) for each in info.subscriptions),
        queues={shown_queue(namespace, queue): each for queue, each in info.queues.items()},
        status={unwrap(namespace, topic): each for topic, each in info.status.items()},
    )


def _shown_subscription(namespace: str, subscription: SubscriptionData) -> SubscriptionData:
    return replace(subscription, topic=unwrap(namespace, subscription.topic))
