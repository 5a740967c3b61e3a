"""Messages: as an application gives them, and as it receives them.

`Message` is only read by the client, never changed. `ReceivedMessage` is made for every message that is consumed, so
it decodes its properties and hosts when somebody asks for them.
"""

import json
import struct
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from typing import TYPE_CHECKING, Any, TypedDict, TypeVar, Unpack

from skyrocket.errors import DataError, MessageRefused
from skyrocket.format import sys_flag as flags
from skyrocket.format.batch import decode_batch
from skyrocket.format.compression import plain_body
from skyrocket.format.message_id import host_text, offset_message_id, parse_host
from skyrocket.format.properties import decode_properties
from skyrocket.format.record import (
    HEADS,
    HOST_BITS_MASK,
    HOST_BITS_SHIFT,
    MAGIC_V1,
    MAGIC_V2,
    PROPERTIES_LENGTH,
    SMALLEST_RECORD,
    SYS_FLAG_AT,
    pack_host,
    unpack_host,
)
from skyrocket.model import property_names as names
from skyrocket.model.durations import seconds_of
from skyrocket.model.message_queue import MessageQueue

if TYPE_CHECKING:
    from skyrocket.client.bodies.codecs import BodyCodec
    from skyrocket.protocol.requests.server_to_client import PushReplyMessageToClient

T = TypeVar("T")

RECONSUME_TIME = "RECONSUME_TIME"
MAX_RECONSUME_TIMES = "MAX_RECONSUME_TIMES"
INSTANCE_ID = "INSTANCE_ID"
CORRELATION_ID = "CORRELATION_ID"
REPLY_TO_CLIENT = "REPLY_TO_CLIENT"
TIME_TO_LIVE = "TTL"
MESSAGE_TYPE = "MSG_TYPE"
CLUSTER = "CLUSTER"


@dataclass(slots=True)
class Message:
    """What is to be sent. Of `delay_level`, `delay` and `deliver_at` at most one may be given."""

    topic: str
    """Where it goes."""
    body: bytes
    """What it says; for other values than bytes there is `Message.of`."""
    tags: str | None = None
    """One word by which consumers choose."""
    keys: str | Iterable[str] = ()
    """By which it can be found: one, or a list. A text with blanks is several, as in Java."""
    properties: Mapping[str, str] = field(default_factory=dict)
    """What SQL filters look at."""
    sharding_key: str | None = None
    """Messages with the same key go to the same queue, in order."""
    delay_level: int = 0
    """One of the brokers' delays: 1 is 1s, 18 is 2h."""
    delay: timedelta | float | str | None = None
    """Seconds, or 30s, 10m, 2h, 1d."""
    deliver_at: datetime | None = None
    """The moment from which consumers get it."""
    flag: int = 0
    """A number that brokers only carry."""
    wait_store_ok: bool = True
    """Whether the answer waits for disk and replicas, as brokers are configured."""
    priority: int | None = None
    """0 is the lowest: the number of its queue, of which pop empties high ones first."""

    @classmethod
    def json(cls, topic: str, value: Any, **rest: Any) -> "Message":
        """With a value as JSON for a body; also dataclasses, models, UUID, Decimal, dates. Raises MessageRefused."""
        from skyrocket.client.bodies.codecs import json_bytes  # with orjson behind it

        try:
            return cls(topic, json_bytes(value), **rest)
        except (TypeError, ValueError) as error:
            raise MessageRefused(f"the body of a message for topic {topic} cannot be JSON: {error}") from error

    @classmethod
    def of(
        cls, topic: str, value: Any, codec: "BodyCodec[Any] | None" = None, **rest: "Unpack[MessageFields]"
    ) -> "Message":
        """With a value for a body: by its type, or as the codec makes it. Raises MessageRefused."""
        from skyrocket.client.bodies.codecs import as_body

        try:
            body = as_body(value) if codec is None else codec.encode(value)
        except Exception as error:
            raise MessageRefused(f"the body of a message for topic {topic} cannot be encoded: {error}") from error
        return cls(topic, body, **rest)


class MessageFields(TypedDict, total=False):
    """The fields of a Message besides topic and body."""

    tags: str | None
    keys: str | Iterable[str]
    properties: Mapping[str, str]
    sharding_key: str | None
    delay_level: int
    delay: timedelta | float | str | None
    deliver_at: datetime | None
    flag: int
    wait_store_ok: bool
    priority: int | None


def property_text(message: Message, unique_key: str, extra: Mapping[str, str] | None = None) -> str:
    """The property string of a message; raises MessageRefused for what a broker would misread."""
    waits = "true" if message.wait_store_ok else "false"
    text = f"UNIQ_KEY\x01{unique_key}\x02WAIT\x01{waits}\x02"
    if message.tags:
        text = f"{text}{names.TAGS}\x01{_word('tags', message.tags)}\x02"
    if message.keys:
        keys = message.keys if isinstance(message.keys, str) else _joined(message.keys)
        text = f"{text}{names.KEYS}\x01{_value(names.KEYS, keys)}\x02"
    if message.sharding_key is not None:
        text = f"{text}{names.SHARDING_KEY}\x01{_word('sharding_key', message.sharding_key)}\x02"
    if message.delay_level or message.delay is not None or message.deliver_at is not None:
        text += _timing(message)
    if message.priority is not None:
        text += _priority(message)
    if message.properties:
        for name, value in message.properties.items():
            if name in names.RESERVED:
                raise MessageRefused(f"property {name} is reserved: choose another name")
            text = f"{text}{_name(name)}\x01{_value(name, value)}\x02"
    if extra:
        for name, value in extra.items():
            text = f"{text}{name}\x01{value}\x02"
    if len(text) > 32767 // 4 and len(text.encode()) > 32767:
        raise MessageRefused(f"properties take {len(text.encode())} bytes; the limit is 32767")
    return text


def _joined(keys: Any) -> str:
    """Several keys as brokers want them; raises MessageRefused."""
    try:
        parts = list(keys)
    except TypeError:
        raise MessageRefused(f"keys={keys!r}: keys are text, give keys={str(keys)!r} or a list of texts") from None
    for part in parts:
        if not isinstance(part, str):
            raise MessageRefused(f"keys={parts!r}: {part!r} is no text, give {str(part)!r}")
        if not part.strip() or " " in part:
            raise MessageRefused(
                f"key {part!r} is blank or has a blank inside, which separates keys: replace it, as in "
                f"{'-'.join(part.split()) or 'o-1001'!r}"
            )
    return " ".join(parts)


def _name(name: str) -> str:
    if not isinstance(name, str) or not name.strip():
        raise MessageRefused("a property has a blank name")
    return _clean(name, name)


def _value(name: str, value: str) -> str:
    if not isinstance(value, str) or not value.strip():
        raise MessageRefused(f"property {name} has no text for a value: {value!r}")
    return _clean(name, value)


def _word(field: str, value: Any) -> str:
    if not isinstance(value, str):
        raise MessageRefused(f"{field}={value!r}: it is one text, give {field}={_as_text(value)!r}")
    if not value.strip():
        raise MessageRefused(f"{field}={value!r} is blank: give a text, or leave it out")
    return _clean(field, value)


def _as_text(value: Any) -> str:
    """The text that was probably meant: of several the first."""
    return str(next(iter(value), "")) if isinstance(value, list | tuple | set) else str(value)


def _clean(name: str, text: str) -> str:
    if "\x01" in text or "\x02" in text:
        raise MessageRefused(f"property {name!r} contains 0x01 or 0x02, which separate properties")
    return text


def _timing(message: Message) -> str:
    given = [message.delay_level != 0, message.delay is not None, message.deliver_at is not None]
    if sum(given) > 1:
        raise MessageRefused("delay_level, delay and deliver_at exclude each other: give one of them")
    if message.sharding_key is not None:
        raise MessageRefused(
            "a message with a sharding key cannot be delayed, it would be delivered out of order: leave out one of them"
        )
    if message.delay_level:
        return f"{names.DELAY_LEVEL}\x01{message.delay_level}\x02"
    if message.delay is not None:
        seconds = delay_seconds(message.delay)
        return f"{names.TIMER_DELAY_MS}\x01{round(seconds * 1000)}\x02"
    if not isinstance(message.deliver_at, datetime):
        raise MessageRefused(f"deliver_at={message.deliver_at!r}: give a datetime; delay= takes seconds and '5m'")
    return f"{names.TIMER_DELIVER_MS}\x01{round(message.deliver_at.timestamp() * 1000)}\x02"


def delay_seconds(delay: Any) -> float:
    """From seconds, `5m` or a timedelta; raises MessageRefused."""
    if isinstance(delay, timedelta):
        return delay.total_seconds()
    if isinstance(delay, str):
        try:
            return seconds_of(delay)
        except ValueError as error:
            raise MessageRefused(f"delay={error}") from None
    if not isinstance(delay, int | float) or isinstance(delay, bool):
        raise MessageRefused(f"delay={delay!r}: give seconds, '5m', or a timedelta")
    return float(delay)


def _priority(message: Message) -> str:
    priority = message.priority
    if not isinstance(priority, int) or isinstance(priority, bool) or not 0 <= priority < 1 << 31:
        raise MessageRefused(f"the priority is {priority!r}: give a whole number from 0 (lowest) to 2147483647")
    if message.sharding_key is not None or message.delay_level or message.delay is not None or message.deliver_at:
        raise MessageRefused(
            "a message with a priority cannot be delayed or have a sharding key, brokers would ignore the priority: "
            "leave out one of them"
        )
    return f"{names.PRIORITY}\x01{priority}\x02"


class ReceivedMessage:
    """A message that was stored. `topic` is the one it was sent to, also when it comes from a retry topic."""

    __slots__ = (
        "_body",
        "_born_host",
        "_properties",
        "_property_bytes",
        "_store_host",
        "body_crc",
        "born_timestamp",
        "broker_name",
        "consume_start_ms",
        "flag",
        "max_offset",
        "min_offset",
        "physical_offset",
        "prepared_transaction_offset",
        "queue_id",
        "queue_offset",
        "reconsume_times",
        "size",
        "store_timestamp",
        "stored_topic",
        "sys_flag",
        "topic",
    )

    topic: str
    stored_topic: str  # where it was pulled from
    broker_name: str
    queue_id: int
    queue_offset: int
    physical_offset: int
    size: int
    flag: int
    sys_flag: int
    born_timestamp: int
    store_timestamp: int
    reconsume_times: int
    prepared_transaction_offset: int
    body_crc: int
    min_offset: int  # of its queue when it was pulled, else -1: `max_offset - queue_offset` is the lag
    max_offset: int
    consume_start_ms: int  # when its handler was called, -1 before: the property CONSUME_START_TIME
    _body: bytes
    _property_bytes: bytes
    _properties: dict[str, str] | None
    _born_host: bytes
    _store_host: bytes

    @property
    def body(self) -> bytes:
        """As the producer gave it; raises DataError when it was compressed and cannot be inflated."""
        if self.sys_flag & flags.COMPRESSED:
            self._body = plain_body(self._body, self.sys_flag)
            self.sys_flag &= ~flags.COMPRESSED
        return self._body

    @property
    def stored_body_size(self) -> int:
        """Bytes that the body takes here and now."""
        return len(self._body)

    def decode(self, kind: "type[T]") -> "T":
        """The body as a value of this type; raises ValueError, or what its library raises."""
        from skyrocket.client.bodies.codecs import codec_for

        value: T = codec_for(kind).decode(self.body)
        return value

    def json(self) -> Any:
        """The body as JSON."""
        return json.loads(self.body)

    @property
    def properties(self) -> dict[str, str]:
        properties = self._properties
        if properties is None:
            properties = self._properties = decode_properties(self._property_bytes)
            if self.max_offset >= 0:
                properties["MIN_OFFSET"] = str(self.min_offset)
                properties["MAX_OFFSET"] = str(self.max_offset)
            if self.consume_start_ms >= 0:
                properties["CONSUME_START_TIME"] = str(self.consume_start_ms)
        return properties

    def consumption_begins(self, now_ms: int) -> None:
        """Its handler is about to be called."""
        self.consume_start_ms = now_ms
        if self._properties is not None:
            self._properties["CONSUME_START_TIME"] = str(now_ms)

    @property
    def tags(self) -> str | None:
        return self.properties.get(names.TAGS)

    @property
    def keys(self) -> list[str]:
        return [key for key in self.properties.get(names.KEYS, "").split(" ") if key]

    @property
    def sharding_key(self) -> str | None:
        return self.properties.get(names.SHARDING_KEY)

    @property
    def priority(self) -> int | None:
        """The producer's, None without one."""
        text = self.properties.get(names.PRIORITY, "")
        return int(text) if text.isascii() and text.isdigit() else None

    @property
    def message_id(self) -> str:
        """The producer's unique key, else the offset id."""
        return self.properties.get(names.UNIQUE_KEY) or self.offset_message_id

    @property
    def offset_message_id(self) -> str:
        """Where the record is."""
        return offset_message_id(unpack_host(self._store_host), self.physical_offset)

    @property
    def born_host(self) -> str:
        return host_text(unpack_host(self._born_host))

    @property
    def store_host(self) -> str:
        return host_text(unpack_host(self._store_host))

    @property
    def queue(self) -> MessageQueue:
        return MessageQueue(self.stored_topic, self.broker_name, self.queue_id)

    def __repr__(self) -> str:
        where = f"{self.broker_name}:{self.queue_id} offset {self.queue_offset}"
        return f"<message {self.message_id} of {self.topic} at {where}, {len(self._body)} bytes>"


_new = object.__new__
_HOST_BITS_AT = SYS_FLAG_AT + 3  # its last byte


def decode_messages(data: bytes | memoryview, broker_name: str, queue_id: int | None = None) -> list[ReceivedMessage]:
    """All messages of a pull answer, inner batches unfolded; raises DataError where the bytes are not records.

    A record that is longer than its parts or of a newer kind is passed over by its size, as far as that can be told.
    """
    try:
        return _decoded(bytes(data), broker_name, queue_id)
    except (struct.error, IndexError) as error:  # a length that points behind the bytes: not looked at for each message
        raise DataError(f"a record of a pull answer of {len(data)} bytes ends before its parts do: {error}") from error


def _decoded(data: bytes, broker_name: str, queue_id: int | None) -> list[ReceivedMessage]:
    found: list[ReceivedMessage] = []
    at, end = 0, len(data)
    topic, topic_bytes = "", b""  # the last one: mostly all are alike
    while at < end:
        if end - at < SMALLEST_RECORD:
            raise DataError(f"{end - at} bytes are left at byte {at} of a pull answer: too few for a record")
        head = HEADS[data[at + _HOST_BITS_AT] >> HOST_BITS_SHIFT & HOST_BITS_MASK]
        (
            size,
            magic,
            crc,
            stored_queue,
            flag,
            queue_offset,
            physical_offset,
            sys_flag,
            born,
            born_host,
            stored,
            store_host,
            times,
            prepared,
            length,
        ) = head.unpack_from(data, at)
        if not SMALLEST_RECORD <= size <= end - at or length < 0:
            raise DataError(f"a record of {size} bytes, {length} of body, at byte {at} of a pull answer of {end} bytes")
        body_at = at + head.size
        topic_at = body_at + length
        if magic == MAGIC_V1:
            topic_from, topic_size = topic_at + 1, data[topic_at]
        elif magic == MAGIC_V2:
            topic_from = topic_at + 2
            topic_size = int.from_bytes(data[topic_at:topic_from], "big")
        else:
            raise DataError(f"magic {magic & 0xFFFFFFFF:08X} at byte {at} of a pull answer is of no known record")
        message = _new(ReceivedMessage)
        topic_end = topic_from + topic_size
        if (name := data[topic_from:topic_end]) != topic_bytes:
            topic_bytes, topic = name, name.decode("utf-8", "replace")
        message.topic = message.stored_topic = topic
        message.broker_name = broker_name
        message.queue_id = stored_queue if queue_id is None else queue_id
        message.queue_offset, message.physical_offset = queue_offset, physical_offset
        message.size, message.body_crc = size, crc
        message.flag, message.sys_flag = flag, sys_flag
        message.born_timestamp, message.store_timestamp = born, stored
        message.reconsume_times, message.prepared_transaction_offset = times, prepared
        message.min_offset = message.max_offset = message.consume_start_ms = -1
        message._body = data[body_at:topic_at]
        message._property_bytes, message._properties = data[topic_end + PROPERTIES_LENGTH.size : at + size], None
        message._born_host, message._store_host = born_host, store_host
        if sys_flag & flags.INNER_BATCH and sys_flag & flags.NEED_UNWRAP:
            found += _members(message)
        else:
            found.append(message)
        at += size
    return found


def _members(batch: ReceivedMessage) -> list[ReceivedMessage]:
    """The messages inside an inner batch: they have consecutive offsets."""
    members = []
    for number, element in enumerate(decode_batch(batch.body)):
        member = _new(ReceivedMessage)
        for name in ReceivedMessage.__slots__:
            setattr(member, name, getattr(batch, name))
        member.flag = element.flag
        member.sys_flag = batch.sys_flag & ~(flags.INNER_BATCH | flags.NEED_UNWRAP | flags.COMPRESSED)
        member.queue_offset = batch.queue_offset + number
        member._body = element.body
        member._property_bytes = element.properties
        member._properties = None
        members.append(member)
    return members


def reply_message(header: "PushReplyMessageToClient", body: bytes) -> ReceivedMessage:
    """The reply that a broker hands over to the client that waits for it."""
    message = _new(ReceivedMessage)
    message.topic = message.stored_topic = header.topic
    message.broker_name = ""
    message.queue_id = header.queue_id
    message.queue_offset = message.physical_offset = message.prepared_transaction_offset = 0
    message.size = len(body)
    message.flag = header.flag
    message.sys_flag = header.sys_flag
    message.born_timestamp = header.born_timestamp
    message.store_timestamp = header.store_timestamp
    message.reconsume_times = header.reconsume_times or 0
    message.body_crc = 0
    message.min_offset = message.max_offset = message.consume_start_ms = -1
    message._body = body
    message._property_bytes = (header.properties or "").encode()
    message._properties = None
    message._born_host = _host_bytes(header.born_host)
    message._store_host = _host_bytes(header.store_host)
    return message


def _host_bytes(text: str | None) -> bytes:
    try:
        return pack_host(parse_host((text or "").removeprefix("/")))
    except ValueError:
        return bytes(8)
