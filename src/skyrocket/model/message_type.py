"""Kinds of messages: what a topic takes (its attribute `message.type`), and what a message is by its properties."""

from collections.abc import Callable
from enum import Enum

from skyrocket.model import property_names as names


class MessageType(Enum):
    """The values of `message.type`; messages themselves are never UNSPECIFIED or MIXED."""

    UNSPECIFIED = "UNSPECIFIED"
    NORMAL = "NORMAL"
    FIFO = "FIFO"
    DELAY = "DELAY"
    TRANSACTION = "TRANSACTION"
    PRIORITY = "PRIORITY"
    MIXED = "MIXED"


_POSTPONING = (names.DELAY_LEVEL, names.TIMER_DELIVER_MS, names.TIMER_DELAY_SEC, names.TIMER_DELAY_MS)


def type_of(value: Callable[[str], str | None]) -> MessageType:
    """The type of a message; `value` finds its properties. The first that fits counts, as in RocketMQ."""
    if (value(names.TRANSACTION_PREPARED) or "").lower() == "true":
        return MessageType.TRANSACTION
    if any(value(name) for name in _POSTPONING):
        return MessageType.DELAY
    if value(names.SHARDING_KEY):
        return MessageType.FIFO
    return MessageType.PRIORITY if value(names.PRIORITY) else MessageType.NORMAL


def mismatch(topic_type: str, message_type: MessageType) -> str | None:
    """Why a topic does not take a message, in RocketMQ's words; None when it does."""
    if topic_type in (message_type.value, MessageType.MIXED.value):
        return None
    return (
        f"TopicMessageType validate failed, the expected type is {topic_type}, but actual type is {message_type.value}"
    )
