"""The handle that a sender gets for a message that waits, and by which it is recalled.

    URL-safe Base64 of `v1 {topic} {broker name} {time} {unique key}`

The time is one millisecond behind the step for which the message is parked: rounded as every time is, a cancel for it
gets into the same step.
"""

import base64
import binascii
from typing import NamedTuple

from skyrocket.errors import DataError
from skyrocket.format.properties import find_property
from skyrocket.format.property_bytes import REAL_TOPIC, TIMER_OUT_MS
from skyrocket.model.topic import RETRY_PREFIX

_VERSION = "v1"
_URL_SAFE = bytes.maketrans(b"+/", b"-_")


class RecallHandle(NamedTuple):
    """Which message is meant."""

    topic: str
    broker_name: str
    time: str  # milliseconds, as text: a value that is not a number gets another refusal
    unique_key: str

    def encode(self) -> str:
        """As clients keep it."""
        return base64.urlsafe_b64encode(" ".join((_VERSION, *self)).encode()).decode()


def recall_handle(properties: bytes, broker_name: str, unique_key: str) -> str:
    """The handle of a message that was parked with these properties; RocketMQ: none for a retry, which is "" here."""
    topic = (find_property(properties, REAL_TOPIC) or b"").decode("utf-8", "replace")
    out_ms = find_property(properties, TIMER_OUT_MS) or b""
    if not topic or topic.startswith(RETRY_PREFIX) or not out_ms.isdigit():
        return ""
    return RecallHandle(topic, broker_name, str(int(out_ms) + 1), unique_key).encode()


def handle_head(topic: str, broker_name: str) -> bytes:
    """What the handles of all messages for a topic begin with; not for retry topics, see `recall_handle`."""
    return f"{_VERSION} {topic} {broker_name} ".encode()


def handle_from(head: bytes, out_ms: int, unique_key: bytes) -> str:
    """The handle of a message, as `recall_handle` makes it, from a head that is known already."""
    text = b"%b%d %b" % (head, out_ms + 1, unique_key)
    return binascii.b2a_base64(text, newline=False).translate(_URL_SAFE).decode()


def decode_handle(text: str) -> RecallHandle:
    """Raises DataError."""
    try:
        # Java's decoder takes it without padding too.
        raw = base64.b64decode(text + "=" * (-len(text) % 4), altchars=b"-_", validate=True)
        version, *words = raw.decode().split(" ")
    except (binascii.Error, ValueError) as error:
        raise DataError("it is not Base64 of a text") from error
    if version != _VERSION or len(words) != len(RecallHandle._fields):
        raise DataError("it does not consist of v1, topic, broker, time and key")
    return RecallHandle._make(words)
