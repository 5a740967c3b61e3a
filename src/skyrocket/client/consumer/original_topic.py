"""The topic a message was sent to: without namespace, and for messages of a retry topic the one they failed in."""

from collections.abc import Callable
from functools import partial

from skyrocket.client.core.message import ReceivedMessage
from skyrocket.client.core.names import unwrap
from skyrocket.model import property_names
from skyrocket.model.message_queue import MessageQueue
from skyrocket.model.topic import RETRY_PREFIX


def restore_topic(namespace: str, message: ReceivedMessage) -> None:
    """Let a message appear under the topic it was sent to."""
    if message.stored_topic.startswith(RETRY_PREFIX):
        message.topic = message.properties.get(property_names.RETRY_TOPIC, message.stored_topic)
    message.topic = unwrap(namespace, message.topic)


def topic_restorer(namespace: str, queue: MessageQueue) -> Callable[[ReceivedMessage], None] | None:
    """`restore_topic` for the messages of a queue; None where it would change nothing."""
    return partial(restore_topic, namespace) if namespace or queue.topic.startswith(RETRY_PREFIX) else None
