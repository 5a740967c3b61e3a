"""What makes two messages the same: the application's own key. A message id is not enough.

A producer that starts again, or a second system that reports the same order, sends the same thing under another id.
"""

import hashlib
from collections.abc import Callable
from typing import Final, TypeAlias

from skyrocket.client.core.errors import ClientError
from skyrocket.client.core.message import ReceivedMessage
from skyrocket.model import property_names

KeyRule: TypeAlias = Callable[[ReceivedMessage], str]

LONGEST_KEY: Final = 200  # characters that every database can index


class NoBusinessKey(ClientError):
    """The message does not say what it is about."""


def by_keys(message: ReceivedMessage) -> str:
    """All keys of the message (`Message(…, keys="o-1001")`)."""
    return message.properties.get(property_names.KEYS, "")


def by_message_id(message: ReceivedMessage) -> str:
    """The producer's id: knows repeated deliveries and retries of a send, but not an application that sends twice."""
    return message.message_id


def by_property(name: str) -> KeyRule:
    """A property of the message."""
    return lambda message: message.properties.get(name, "")


def key_of(message: ReceivedMessage, rule: KeyRule) -> str:
    """The key, short enough to be a database key; raises NoBusinessKey."""
    key = rule(message)
    if not isinstance(key, str) or not key.strip():
        raise NoBusinessKey(
            f"{message!r} has no business key: send it with keys=…, or give Once another rule, as by_property(name)"
        )
    if len(key) <= LONGEST_KEY:
        return key
    return "sha256:" + hashlib.sha256(key.encode("utf-8", "surrogatepass")).hexdigest()
