"""Messages as browsers get them: a row of a list, and one with everything."""

import base64
from dataclasses import dataclass
from typing import Final

from skyrocket.client.core.message import ReceivedMessage
from skyrocket.errors import DataError
from skyrocket.format import sys_flag as flags
from skyrocket.format.compression import compression_type
from skyrocket.model.property_names import RESERVED
from skyrocket.model.words import counted

_PREVIEW: Final = 160
# What brokers and clients set themselves: a message that is sent anew gets its own.
_OF_ITS_FIRST_LIFE: Final = RESERVED | {"CLUSTER", "CRC32#"}
_MOST_BODY_BYTES: Final = 1024 * 1024


@dataclass(frozen=True, slots=True)
class MessageRow:
    """One line of a list."""

    message_id: str
    topic: str
    broker: str
    queue: int
    offset: int
    stored_ms: int
    born_ms: int
    size: int
    tags: str | None
    keys: list[str]
    preview: str  # the beginning of the body, if it is text


@dataclass(frozen=True, slots=True)
class FullMessage:
    """Everything about a message; the body in base64, cut after a mebibyte."""

    message_id: str
    offset_message_id: str
    topic: str
    stored_topic: str
    broker: str
    queue: int
    offset: int
    physical_offset: int
    size: int
    stored_ms: int
    born_ms: int
    born_host: str
    store_host: str
    reconsume_times: int
    flag: int
    sys_flag: int
    body_crc: int
    prepared_transaction_offset: int
    tags: str | None
    keys: list[str]
    properties: dict[str, str]
    own_properties: dict[str, str]  # those that its sender gave
    sharding_key: str
    body: str
    body_bytes: int
    compression: str  # as it is stored: zlib, lz4, zstd; "": as it was sent
    stored_body_bytes: int
    trouble: str  # why the body cannot be shown


def row_of(message: ReceivedMessage) -> MessageRow:
    """One line."""
    return MessageRow(
        message.message_id,
        message.topic,
        message.broker_name,
        message.queue_id,
        message.queue_offset,
        message.store_timestamp,
        message.born_timestamp,
        message.size,
        message.tags,
        message.keys,
        preview_of(message),
    )


def preview_of(message: ReceivedMessage) -> str:
    """The beginning of a body that is text; else its size."""
    try:
        body = message.body
    except DataError as error:
        return f"({error})"
    try:
        # A cut in the middle of a letter is no sign of bytes.
        text = body[: _PREVIEW * 4].decode("utf-8", "strict" if len(body) <= _PREVIEW * 4 else "ignore")
    except UnicodeDecodeError:
        return f"({counted(len(body), 'byte')})"
    return shortened(text)


def shortened(text: str) -> str:
    """The beginning of a text, for a line of a list."""
    return text[:_PREVIEW]


def own_properties(message: ReceivedMessage) -> dict[str, str]:
    """Those that the application gave, and that a copy should have, too."""
    return {
        name: value
        for name, value in message.properties.items()
        if name not in _OF_ITS_FIRST_LIFE and not name.startswith(("__", "TIMER_", "SKY_", "DLQ_ORIGIN_"))
    }


def full_of(message: ReceivedMessage) -> FullMessage:
    """Everything."""
    body, compression, trouble = b"", "", ""
    sys_flag, stored_body_bytes = message.sys_flag, message.stored_body_size  # before the body is unpacked
    try:
        if sys_flag & flags.COMPRESSED:
            compression = compression_type(sys_flag).name.lower()
        body = message.body
    except DataError as error:
        trouble = str(error)
    return FullMessage(
        message.message_id,
        message.offset_message_id,
        message.topic,
        message.stored_topic,
        message.broker_name,
        message.queue_id,
        message.queue_offset,
        message.physical_offset,
        message.size,
        message.store_timestamp,
        message.born_timestamp,
        message.born_host,
        message.store_host,
        message.reconsume_times,
        message.flag,
        sys_flag,
        message.body_crc,
        message.prepared_transaction_offset,
        message.tags,
        message.keys,
        dict(message.properties),
        own_properties(message),
        message.sharding_key or "",
        base64.b64encode(body[:_MOST_BODY_BYTES]).decode(),
        len(body),
        compression,
        stored_body_bytes,
        trouble,
    )
