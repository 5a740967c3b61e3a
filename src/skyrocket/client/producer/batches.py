"""Many messages in one request: how they are encoded, and where a long list is cut."""

from collections.abc import Iterable, Sequence
from struct import Struct

from skyrocket.client.core.client_id import UNIQUE_KEYS
from skyrocket.client.core.message import INSTANCE_ID, Message, property_text
from skyrocket.client.sending.message_encoding import SEND_BATCH, EncodedMessage, EncodingRules, checked_body
from skyrocket.errors import MessageRefused
from skyrocket.model import property_names as names
from skyrocket.model.topic import RETRY_PREFIX

_HEAD = Struct(">iiiii").pack  # as format/batch.py, which checks what it is given; here it is our own
_LENGTH = Struct(">H").pack
ELEMENT_BYTES = 22  # of a message in a batch, besides its body and its properties


def check_batchable(message: Message) -> None:
    """Raises MessageRefused for what brokers do not take in a batch."""
    if message.delay_level or message.delay is not None or message.deliver_at is not None:
        raise MessageRefused("a delayed message cannot be part of a batch: send it alone")
    if message.priority is not None:
        raise MessageRefused("a message with a priority cannot be part of a batch, which has one queue: send it alone")
    if message.topic.startswith(RETRY_PREFIX):
        raise MessageRefused(f"messages for {message.topic} cannot be part of a batch: send them one by one")


def encoded_element(message: Message, rules: EncodingRules, now_ms: int) -> tuple[bytes, str]:
    """One message as it stands in a batch, and its unique key; raises MessageRefused."""
    body = message.body
    if body.__class__ is not bytes or not 0 < len(body) <= rules.max_message_size:
        body = checked_body(message, rules.max_message_size)
    unique_key = UNIQUE_KEYS.next(now_ms)
    extra = {INSTANCE_ID: rules.namespace} if rules.namespace else None
    return _element(message.flag, body, property_text(message, unique_key, extra)), unique_key


def element_of(message: Message, properties: str) -> bytes:
    """A message whose body and properties were checked, as it stands in a batch."""
    return _element(message.flag, message.body, properties)


def _element(flag: int, body: bytes, property_text: str) -> bytes:
    properties = property_text.encode()
    length, of_properties = len(body), len(properties)
    head = _HEAD(ELEMENT_BYTES + length + of_properties, 0, 0, flag, length)
    return head + body + _LENGTH(of_properties) + properties  # for small ones quicker than a join


def batch(first: Message, topic: str, elements: Iterable[bytes], unique_keys: list[str], now_ms: int) -> EncodedMessage:
    """The request of a batch."""
    key = UNIQUE_KEYS.next(now_ms)
    wait = "true" if first.wait_store_ok else "false"
    properties = f"{names.UNIQUE_KEY}\x01{key}\x02{names.WAIT_STORE_OK}\x01{wait}\x02"
    return EncodedMessage(first, topic, b"".join(elements), properties, key, code=SEND_BATCH, unique_keys=unique_keys)


def split(sizes: Sequence[int], most: int) -> list[range]:
    """Cut a list greedily into runs whose sizes sum up to at most `most`; one that is larger stands alone."""
    runs: list[range] = []
    start, total = 0, 0
    for index, size in enumerate(sizes):
        if index > start and total + size > most:
            runs.append(range(start, index))
            start, total = index, 0
        total += size
    if start < len(sizes):
        runs.append(range(start, len(sizes)))
    return runs


def check_together(messages: Sequence[Message]) -> None:
    """Whether messages may share a batch; raises MessageRefused."""
    first = messages[0]
    for message in messages:
        if message.topic != first.topic:
            raise MessageRefused(
                f"a batch has one topic, this one has {first.topic} and {message.topic}: send a batch for each"
            )
        if message.wait_store_ok != first.wait_store_ok:
            raise MessageRefused("messages of one batch must agree in wait_store_ok")
        check_batchable(message)
