"""A message on its way: the caller's message made into what a request carries, once for all attempts."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final, NamedTuple

from skyrocket.client.core.client_id import UNIQUE_KEYS
from skyrocket.client.core.message import INSTANCE_ID, Message, property_text
from skyrocket.errors import MessageRefused
from skyrocket.format.compression import CompressionType, compress, compressed_flag
from skyrocket.protocol.codes import RequestCode

SEND: Final = int(RequestCode.SEND_MESSAGE_V2)
SEND_REPLY: Final = int(RequestCode.SEND_REPLY_MESSAGE_V2)
SEND_BATCH: Final = int(RequestCode.SEND_BATCH_MESSAGE)


class EncodingRules(NamedTuple):
    """What of a producer's settings touches the message itself."""

    namespace: str = ""
    compress_over: int = 4096
    compress_type: CompressionType = CompressionType.ZLIB
    compress_level: int = 5
    max_message_size: int = 4 << 20


@dataclass(slots=True)
class EncodedMessage:
    """Ready to be put into a request; `unique_keys` has one key for each message of a batch."""

    message: Message
    topic: str  # with its namespace
    body: bytes
    properties: str
    unique_key: str
    flag: int = 0
    sys_flag: int = 0
    code: int = SEND
    reconsume_times: int = 0
    max_reconsume_times: int | None = None
    unique_keys: Sequence[str] = ()
    members: Sequence[Message] = ()  # of a batch, when they are still known
    is_numbered: bool = False  # a broker that knows about it stores it once, however often it is sent


def encoded(
    message: Message,
    topic: str,
    rules: EncodingRules,
    now_ms: int,
    extra: dict[str, str] | None = None,
    unique_key: str | None = None,
) -> EncodedMessage:
    """Check and encode; `topic` is the message's with its namespace. Raises MessageRefused."""
    body = checked_body(message, rules.max_message_size)
    unique_key = unique_key or UNIQUE_KEYS.next(now_ms)
    if rules.namespace:
        extra = {**(extra or {}), INSTANCE_ID: rules.namespace}
    properties = property_text(message, unique_key, extra)
    made = EncodedMessage(message, topic, body, properties, unique_key, message.flag)
    if len(body) >= rules.compress_over:
        # RocketMQ: also when it does not get smaller.
        made.body = compress(body, rules.compress_type, rules.compress_level)
        made.sys_flag = compressed_flag(0, rules.compress_type)
    return made


def is_plain(message: Message, rules: EncodingRules) -> bool:
    """Whether it travels as it is, to any queue: a small body of bytes, nothing to compress or to wait for."""
    body = message.body
    return (
        body.__class__ is bytes
        and 0 < len(body) < rules.compress_over
        and len(body) <= rules.max_message_size
        and message.sharding_key is None
        and not message.flag
        and not rules.namespace
    )


def checked_body(message: Message, max_size: int) -> bytes:
    """The body as bytes; raises MessageRefused."""
    body = message.body
    if body.__class__ is not bytes:
        if not isinstance(body, bytes | bytearray | memoryview):
            raise MessageRefused(
                f"the body of a message for topic {message.topic} is {type(body).__name__}, not bytes: "
                "encode it, or use Message.json"
            )
        body = bytes(body)
    if not body:
        raise MessageRefused(f"the body of a message for topic {message.topic} is empty: brokers refuse that")
    if len(body) > max_size:
        raise MessageRefused(
            f"the body of a message for topic {message.topic} has {len(body)} bytes; max_message_size is {max_size}: "
            "send less, or raise it here and maxMessageSize at the brokers"
        )
    return body
