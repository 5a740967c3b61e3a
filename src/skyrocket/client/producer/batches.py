"""Many messages in one request: how they are encoded, and where a long list is cut."""

from collections.abc import Iterable, Mapping, Sequence
from struct import Struct
from typing import Final, TypeAlias

from skyrocket.client.core.client_id import UNIQUE_KEYS, KeySeries
from skyrocket.client.core.message import INSTANCE_ID, Message, property_text
from skyrocket.client.sending.message_encoding import SEND_BATCH, EncodedMessage, EncodingRules, checked_body
from skyrocket.errors import MessageRefused
from skyrocket.model import property_names as names
from skyrocket.model.topic import RETRY_PREFIX

_HEAD = Struct(">iiiii").pack  # as format/batch.py, which checks what it is given; here it is our own
_LENGTH = Struct(">H").pack
_FLAGS: Final = 1 << 31
_KEY_NAME: Final = names.UNIQUE_KEY.encode() + b"\x01"
_ANY_KEY: Final = "0" * 32
_KEY_BYTES: Final = len(_KEY_NAME) + len(_ANY_KEY)
_HEX: Final = tuple(b"%02X" % number for number in range(256))
ELEMENT_BYTES: Final = 22 + _KEY_BYTES  # of a message in a batch, besides its body and what follows its key
_BARE_TAILS: Final = (b"\x02WAIT\x01false\x02", b"\x02WAIT\x01true\x02")


# A message of a batch that is still to be encoded: body, properties behind the value of its key, and flag. The key
# comes first and is given to it when the batch leaves. A bare tuple, as one is made for every message.
Element: TypeAlias = tuple[bytes, bytes, int]


def check_batchable(message: Message) -> None:
    """Raises MessageRefused for what brokers do not take in a batch."""
    if message.delay_level or message.delay is not None or message.deliver_at is not None:
        raise MessageRefused("a delayed message cannot be part of a batch: send it alone")
    if message.priority is not None:
        raise MessageRefused("a message with a priority cannot be part of a batch, which has one queue: send it alone")
    if message.topic.startswith(RETRY_PREFIX):
        raise MessageRefused(f"messages for {message.topic} cannot be part of a batch: send them one by one")


def element_of(message: Message, rules: EncodingRules) -> Element:
    """A message that may be part of a batch; raises MessageRefused."""
    body = message.body
    if body.__class__ is not bytes or not 0 < len(body) <= rules.max_message_size:
        body = checked_body(message, rules.max_message_size)
    if message.flag and not -_FLAGS <= message.flag < _FLAGS:
        raise MessageRefused(f"flag={message.flag}: give a number from -2147483648 to 2147483647")
    extra = {INSTANCE_ID: rules.namespace} if rules.namespace else None
    return body, property_tail(message, extra), message.flag


def property_tail(message: Message, extra: Mapping[str, str] | None = None) -> bytes:
    """The properties of a message behind the value of its key; raises MessageRefused."""
    if not (message.tags or message.keys or message.properties or message.sharding_key is not None or extra):
        return _BARE_TAILS[1 if message.wait_store_ok else 0]  # what is delayed or has a priority is in no batch
    return property_text(message, _ANY_KEY, extra).encode("utf-8", "replace")[_KEY_BYTES:]


def properties_of(unique_key: str, tail: bytes) -> str:
    """All properties of a message."""
    return f"{names.UNIQUE_KEY}\x01{unique_key}{tail.decode()}"


def joined(elements: Iterable[Element], keys: KeySeries) -> bytes:
    """The body of a batch. This is done for every message, so what neighbours have in common is made once."""
    name_and_prefix, counter = _KEY_NAME + keys.prefix.encode(), keys.first
    pieces: list[bytes] = []
    size, last_tail, last_flag, head, middle = -1, b"", 0, b"", b""
    for body, tail, flag in elements:
        if len(body) != size or tail is not last_tail or flag != last_flag:
            size, last_tail, last_flag = len(body), tail, flag
            head = _HEAD(ELEMENT_BYTES + size + len(tail), 0, 0, flag, size)
            middle = _LENGTH(_KEY_BYTES + len(tail)) + name_and_prefix
        pieces += (head, body, middle, _HEX[counter >> 8], _HEX[counter & 0xFF], tail)
        counter = counter + 1 & 0xFFFF
    return b"".join(pieces)


def batch(first: Message, topic: str, elements: Iterable[Element], keys: KeySeries, now_ms: int) -> EncodedMessage:
    """The request of a batch."""
    key = UNIQUE_KEYS.next(now_ms)
    wait = "true" if first.wait_store_ok else "false"
    properties = f"{names.UNIQUE_KEY}\x01{key}\x02{names.WAIT_STORE_OK}\x01{wait}\x02"
    return EncodedMessage(first, topic, joined(elements, keys), properties, key, code=SEND_BATCH, unique_keys=keys)


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
