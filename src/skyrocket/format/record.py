"""A CommitLog record: its layout, encoding, decoding, and the walk through a buffer of records.

    TOTALSIZE 4 | MAGIC 4 | BODYCRC 4 | QUEUEID 4 | FLAG 4 | QUEUEOFFSET 8 | PHYSICALOFFSET 8 | SYSFLAG 4 |
    BORNTIMESTAMP 8 | BORNHOST 8 or 20 | STORETIMESTAMP 8 | STOREHOST 8 or 20 | RECONSUMETIMES 4 |
    PREPAREDTRANSACTIONOFFSET 8 | BODYLENGTH 4 | BODY | TOPICLENGTH 1 or 2 | TOPIC | PROPERTIESLENGTH 2 | PROPERTIES

All integers are big-endian and signed. V1 records have a topic length of one byte, V2 records of two. A file of
records ends with a blank: its size up to the end of the file, a magic of its own, and bytes without meaning.
`FixedPart` declares the fields up to BODYLENGTH; every `Struct`, offset and size of the layout, and the dtype of
`record_columns`, come from it.
"""

import re
from collections.abc import Iterable, Iterator
from enum import Enum
from mmap import mmap
from struct import Struct
from typing import Annotated, NamedTuple, get_type_hints

from skyrocket.errors import CorruptRecord, MessageRefused
from skyrocket.format import sys_flag as flags
from skyrocket.format.crc import CRC_PROPERTY_BYTES, checksum, record_crc_property
from skyrocket.format.properties import MAX_BYTES as MAX_PROPERTIES_BYTES
from skyrocket.format.properties import decode_properties
from skyrocket.model.message import Host, StoredMessage

Buffer = bytes | bytearray | memoryview | mmap

MAGIC_V1 = -626843481
MAGIC_V2 = -626843477
MAGIC_BLANK = -875286124

BLANK = Struct(">ii")  # bytes left in the file, MAGIC_BLANK
BLANK_SIZE = BLANK.size


_Int32 = Annotated[int, "i"]
_Int64 = Annotated[int, "q"]
_Host = Annotated[bytes, "s"]  # 8 bytes, or 20 with an IPv6 address


class FixedPart(NamedTuple):
    """The fields of a record from its start to the body, in the order of their bytes."""

    size: _Int32
    magic: _Int32
    body_crc: _Int32
    queue_id: _Int32
    flag: _Int32
    queue_offset: _Int64
    physical_offset: _Int64
    sys_flag: _Int32
    born_timestamp: _Int64
    born_host: _Host
    store_timestamp: _Int64
    store_host: _Host
    reconsume_times: _Int32
    prepared_transaction_offset: _Int64
    body_length: _Int32


# The type of each field as `struct` spells it.
FIELD_CODES: dict[str, str] = {
    name: hint.__metadata__[0] for name, hint in get_type_hints(FixedPart, include_extras=True).items()
}


def field_offset(name: str) -> int:
    """Where a field stands in a record; from the store timestamp on it depends on the hosts, and this is for IPv4."""
    names = list(FIELD_CODES)
    return _struct_of(names[: names.index(name)], 0).size


def some_fields(*names: str) -> Struct:
    """Fields that stand before the hosts, in the order of their bytes; what is between them is passed over."""
    parts, end = [">"], 0
    for name in names:
        at, code = field_offset(name), FIELD_CODES[name]
        parts.append(f"{at - end}x{code}")
        end = at + Struct(f">{code}").size
    return Struct("".join(parts))


def _struct_of(names: Iterable[str], bits: int) -> Struct:
    widths = flags.host_widths(bits)
    return Struct(">" + "".join(f"{widths.get(name, '')}{FIELD_CODES[name]}" for name in names))


HOST_BITS_SHIFT = 4
HOST_BITS_MASK = 3
HEADS = tuple(_struct_of(FIELD_CODES, bits) for bits in range(4))  # of the fixed part, by the two IPv6 bits of sysFlag

TOPIC_LENGTH_V1 = Struct(">b")
TOPIC_LENGTH_V2 = Struct(">h")
PROPERTIES_LENGTH = Struct(">h")
SMALLEST_RECORD = HEADS[0].size + TOPIC_LENGTH_V1.size + PROPERTIES_LENGTH.size

QUEUE_OFFSET_AT = field_offset("queue_offset")
PHYSICAL_OFFSET_AT = field_offset("physical_offset")
SYS_FLAG_AT = field_offset("sys_flag")
BORN_HOST_AT = field_offset("born_host")
_MAGIC_AT = field_offset("magic")
_SECTOR = 512
_ZERO_SECTORS = re.compile(rb"\0{%d,}" % _SECTOR)

_new_tuple = tuple.__new__  # builds a NamedTuple without its Python-level __new__: recovery makes millions
_I32 = Struct(">i")
_I64 = Struct(">q")
_PORT = Struct(">i")


def head_struct(sys_flag: int) -> Struct:
    """The layout of the fixed part for these host widths."""
    return HEADS[sys_flag >> HOST_BITS_SHIFT & HOST_BITS_MASK]


def read_fixed(buffer: Buffer, position: int = 0) -> tuple[FixedPart, int]:
    """The fixed part of the record at a position, unchecked, and where its body begins."""
    (sys_flag,) = _I32.unpack_from(buffer, position + SYS_FLAG_AT)
    layout = head_struct(sys_flag)
    return FixedPart(*layout.unpack_from(buffer, position)), position + layout.size


def pack_host(host: Host) -> bytes:
    """Address bytes and port as stored."""
    return host.address + _PORT.pack(host.port)


def unpack_host(raw: bytes) -> Host:
    """The host of 8 or 20 stored bytes."""
    return Host(raw[:-4], _PORT.unpack_from(raw, len(raw) - 4)[0])


def topic_part(topic: bytes) -> tuple[int, bytes]:
    """Magic, and length + name as they stand between body and properties; V2 only where V1 cannot hold it."""
    if len(topic) <= 127:
        return MAGIC_V1, TOPIC_LENGTH_V1.pack(len(topic)) + topic
    if len(topic) > 32767:
        raise MessageRefused(f"topic takes {len(topic)} bytes; the record holds 32767 at most")
    return MAGIC_V2, TOPIC_LENGTH_V2.pack(len(topic)) + topic


def encode_record(message: StoredMessage, properties: bytes) -> bytes:
    """The bytes of a record; `properties` is its stored text (`message.properties` is not looked at)."""
    if len(properties) > MAX_PROPERTIES_BYTES:
        raise MessageRefused(f"properties take {len(properties)} bytes; the limit is {MAX_PROPERTIES_BYTES}")
    magic, topic = topic_part(message.topic.encode())
    hosts = flags.host_flags(message.born_host, message.store_host)
    sys_flag = message.sys_flag & ~(HOST_BITS_MASK << HOST_BITS_SHIFT) | hosts
    layout = head_struct(sys_flag)
    size = layout.size + len(message.body) + len(topic) + PROPERTIES_LENGTH.size + len(properties)
    head = FixedPart(
        size=size,
        magic=magic,
        body_crc=checksum(message.body),
        queue_id=message.queue_id,
        flag=message.flag,
        queue_offset=message.queue_offset,
        physical_offset=message.physical_offset,
        sys_flag=sys_flag,
        born_timestamp=message.born_timestamp,
        born_host=pack_host(message.born_host),
        store_timestamp=message.store_timestamp,
        store_host=pack_host(message.store_host),
        reconsume_times=message.reconsume_times,
        prepared_transaction_offset=message.prepared_transaction_offset,
        body_length=len(message.body),
    )
    return b"".join((layout.pack(*head), message.body, topic, PROPERTIES_LENGTH.pack(len(properties)), properties))


def encode_blank(size: int) -> bytes:
    """The head of the blank that fills the last `size` bytes of a file."""
    return BLANK.pack(size, MAGIC_BLANK)


class RecordHead(NamedTuple):
    """What dispatch needs of a record; topic and properties are still encoded."""

    physical_offset: int
    size: int
    topic: bytes
    queue_id: int
    queue_offset: int
    sys_flag: int
    store_timestamp: int
    properties: bytes


class CrcCheck(Enum):
    """Which checksum a walk compares."""

    NONE = "none"
    BODY = "body"
    RECORD = "record"  # RocketMQ: a record without one is damaged; a tear may have taken it


class WalkEnd(Enum):
    """Why a walk stopped."""

    LIMIT = "limit"  # exactly at the end of what may be read
    BLANK = "blank"  # end of the file's records
    ZERO = "zero"  # four zero bytes where a size belongs: nothing was written here
    DAMAGED = "damaged"


class RecordWalk:
    """Iterates the records of one file's buffer, then says where and why it stopped.

    `file_offset` is the physical offset of the buffer's first byte. A record whose stored physical offset is not
    its place is damaged: dispatch would otherwise index a place that holds something else.
    """

    def __init__(
        self,
        buffer: Buffer,
        file_offset: int,
        position: int = 0,
        limit: int | None = None,
        crc: CrcCheck = CrcCheck.BODY,
    ) -> None:
        self.position = position
        self.end: WalkEnd = WalkEnd.LIMIT
        self.reason = ""
        self._view = memoryview(buffer)
        self._buffer = buffer  # a slice of a map is bytes at once, one of a view must be copied from
        self._file_offset = file_offset
        self._limit = len(self._view) if limit is None else limit
        self._crc = crc

    def __iter__(self) -> Iterator[RecordHead]:
        view, buffer, limit, file_offset = self._view, self._buffer, self._limit, self._file_offset
        position = self.position
        check_body = self._crc is CrcCheck.BODY
        check_record = self._crc is CrcCheck.RECORD
        while position < limit:
            try:
                head = _examine(view, buffer, position, limit, file_offset + position, check_body)
                if check_record and head is not None:
                    _check_record_crc(view, position, head)
            except CorruptRecord as damage:
                self.end, self.reason = WalkEnd.DAMAGED, damage.reason
                if position + 4 <= limit and not any(view[position : position + 4]):
                    self.end = WalkEnd.ZERO
                return
            if head is None:
                self.end = WalkEnd.BLANK
                return
            yield head
            position += head.size
            self.position = position
        self.end = WalkEnd.LIMIT


def read_head(buffer: Buffer, position: int, physical_offset: int, *, check_crc: bool = False) -> RecordHead | None:
    """The head of the record at a position, None for a blank; raises CorruptRecord otherwise."""
    view = memoryview(buffer)
    return _examine(view, buffer, position, len(view), physical_offset, check_crc)


def _examine(
    view: memoryview, buffer: Buffer, position: int, limit: int, physical_offset: int, check_body_crc: bool
) -> RecordHead | None:
    left = limit - position
    if left < BLANK_SIZE:
        raise CorruptRecord(f"only {left} bytes left", physical_offset)
    size, magic = BLANK.unpack_from(view, position)
    if size > left:
        raise CorruptRecord(f"size {size} passes the {left} bytes that are left", physical_offset)
    if magic == MAGIC_BLANK:
        if size < BLANK_SIZE:
            raise CorruptRecord(f"a blank of {size} bytes", physical_offset)
        return None
    if magic not in (MAGIC_V1, MAGIC_V2):
        raise CorruptRecord(f"unknown magic {magic & 0xFFFFFFFF:08X}", physical_offset)
    if size < SMALLEST_RECORD:
        raise CorruptRecord(f"size {size} is less than that of an empty record", physical_offset)
    (sys_flag,) = _I32.unpack_from(view, position + SYS_FLAG_AT)
    layout = HEADS[sys_flag >> HOST_BITS_SHIFT & HOST_BITS_MASK]
    topic_length = TOPIC_LENGTH_V1 if magic == MAGIC_V1 else TOPIC_LENGTH_V2
    if size < layout.size + topic_length.size + PROPERTIES_LENGTH.size:
        raise CorruptRecord(f"size {size} is less than that of an empty record", physical_offset)
    fields = layout.unpack_from(view, position)  # without names: recovery makes millions
    _, _, body_crc, queue_id, _, queue_offset, stored_offset, _, _, _, store_timestamp, _, _, _, body_length = fields
    end = position + size
    topic_at = position + layout.size + body_length + topic_length.size
    if body_length < 0 or topic_at + PROPERTIES_LENGTH.size > end:
        raise CorruptRecord(f"body length {body_length} in a record of {size} bytes", physical_offset)
    (topic_bytes,) = topic_length.unpack_from(view, topic_at - topic_length.size)
    properties_at = topic_at + topic_bytes + PROPERTIES_LENGTH.size
    if topic_bytes < 0 or properties_at > end:
        raise CorruptRecord(f"topic length {topic_bytes} in a record of {size} bytes", physical_offset)
    (properties_bytes,) = PROPERTIES_LENGTH.unpack_from(view, properties_at - PROPERTIES_LENGTH.size)
    if properties_bytes < 0 or properties_at + properties_bytes != end:
        raise CorruptRecord(
            f"size {size} does not match its parts ({properties_at + properties_bytes - position})",
            physical_offset,
        )
    if stored_offset != physical_offset:
        raise CorruptRecord(f"stored physical offset {stored_offset}", physical_offset)
    if store_timestamp <= 0:
        raise CorruptRecord(f"store timestamp {store_timestamp}", physical_offset)
    if check_body_crc and body_length:
        body_at = position + layout.size
        actual = checksum(view[body_at : body_at + body_length])
        if actual != body_crc:
            raise CorruptRecord(f"body CRC {actual} differs from the stored {body_crc}", physical_offset)
    return _new_tuple(
        RecordHead,
        (
            physical_offset,
            size,
            bytes(buffer[topic_at : topic_at + topic_bytes]),
            queue_id,
            queue_offset,
            sys_flag,
            store_timestamp,
            bytes(buffer[properties_at:end]),
        ),
    )


def lacks_sectors(head: RecordHead, behind: Buffer, position: int) -> bool:
    """Whether a record seems intact, but the disk lacks a part of its property text: no other check covers that.

    What was not written reads as zeros: to the end of the record, or whole sectors of the disk within it. `behind` are
    the bytes that follow the record, `position` is its place in the file.

    Zeros at its end with something behind are another matter: a sector is written as a whole, so they were there when
    that was written. A process was killed while it copied the record, and RocketMQ, to which a whole body is enough,
    took it and wrote on: all that follows is in the log, and so is the record.
    """
    text = head.properties
    if text.endswith(b"\0"):
        return not any(behind)
    text_at = position + head.size - len(text)
    return any(
        not (text_at + zeros.start()) % _SECTOR and not (text_at + zeros.end()) % _SECTOR
        for zeros in _ZERO_SECTORS.finditer(text)
    )


def decode_record(buffer: Buffer, position: int = 0, *, check_crc: bool = False) -> StoredMessage:
    """One whole record; raises CorruptRecord when it is damaged."""
    view = memoryview(buffer)
    left = len(view) - position
    if left < SMALLEST_RECORD:
        raise CorruptRecord(f"only {left} bytes left")
    (stored_offset,) = _I64.unpack_from(view, position + PHYSICAL_OFFSET_AT)
    head = _examine(view, buffer, position, len(view), stored_offset, check_crc)
    if head is None:
        raise CorruptRecord("a blank, not a message", stored_offset)
    fixed, body_at = read_fixed(view, position)
    return StoredMessage(
        topic=head.topic.decode("utf-8", "replace"),
        queue_id=head.queue_id,
        queue_offset=head.queue_offset,
        physical_offset=stored_offset,
        record_size=head.size,
        flag=fixed.flag,
        sys_flag=head.sys_flag,
        born_timestamp=fixed.born_timestamp,
        born_host=unpack_host(fixed.born_host),
        store_timestamp=head.store_timestamp,
        store_host=unpack_host(fixed.store_host),
        reconsume_times=fixed.reconsume_times,
        prepared_transaction_offset=fixed.prepared_transaction_offset,
        body_crc=fixed.body_crc,
        body=bytes(view[body_at : body_at + fixed.body_length]),
        properties=decode_properties(head.properties),
        magic=fixed.magic,
    )


def decode_records(buffer: Buffer) -> Iterator[StoredMessage]:
    """All records of a pull answer, back to back."""
    view = memoryview(buffer)
    position = 0
    while position < len(view):
        message = decode_record(view, position)
        yield message
        position += message.record_size


def record_properties(record: Buffer) -> bytes:
    """The properties of one whole record, without reading the rest of it."""
    (sys_flag,) = _I32.unpack_from(record, SYS_FLAG_AT)
    head_size = head_struct(sys_flag).size
    (body_length,) = _I32.unpack_from(record, head_size - _I32.size)
    at = topic_end(record, head_size + body_length, _I32.unpack_from(record, _MAGIC_AT)[0])
    (properties_length,) = PROPERTIES_LENGTH.unpack_from(record, at)
    at += PROPERTIES_LENGTH.size
    return bytes(memoryview(record)[at : at + properties_length])


def topic_end(buffer: Buffer, topic_at: int, magic: int) -> int:
    """Where a topic ends whose length stands at a position."""
    length = TOPIC_LENGTH_V2 if magic == MAGIC_V2 else TOPIC_LENGTH_V1
    return topic_at + length.size + int(length.unpack_from(buffer, topic_at)[0])


def store_timestamp_at(buffer: Buffer, position: int) -> int:
    """The store time of the record at a position, without looking at the rest."""
    (sys_flag,) = _I32.unpack_from(buffer, position + SYS_FLAG_AT)
    born_host_bytes = 20 if sys_flag & flags.BORN_HOST_V6 else 8
    return int(_I64.unpack_from(buffer, position + BORN_HOST_AT + born_host_bytes)[0])


def _check_record_crc(view: memoryview, position: int, head: RecordHead) -> None:
    record = view[position : position + head.size]
    if record_crc_property(record) != head.properties[-CRC_PROPERTY_BYTES:]:
        raise CorruptRecord("whole-record CRC differs or is missing", head.physical_offset)
