"""Records for the tests of the decoder: every variant by hypothesis, and what the reference decoder makes of one."""

from collections.abc import Mapping, Sequence
from datetime import UTC, datetime, timedelta
from typing import Any

from hypothesis import strategies as st

from skyrocket.format import sys_flag as flags
from skyrocket.format.batch import BatchElement, decode_batch, encode_batch
from skyrocket.format.compression import CompressionType, compress, compressed_flag, plain_body
from skyrocket.format.message_id import host_text, offset_message_id
from skyrocket.format.properties import decode_properties
from skyrocket.format.record import decode_record, encode_record
from skyrocket.model.message import Host, StoredMessage

Row = dict[str, Any]
EPOCH = datetime(1970, 1, 1, tzinfo=UTC)


def record(physical_offset: int = 0, *, properties: bytes = b"", **changes: Any) -> bytes:
    """A plain record with some fields changed."""
    fields: dict[str, Any] = {
        "topic": "orders",
        "queue_id": 3,
        "queue_offset": 7,
        "physical_offset": physical_offset,
        "record_size": 0,
        "flag": 0,
        "sys_flag": 0,
        "born_timestamp": 1_700_000_000_000,
        "born_host": Host(b"\x0a\x00\x00\x01", 50_000),
        "store_timestamp": 1_700_000_000_123,
        "store_host": Host(b"\x0a\x00\x00\x02", 10_911),
        "reconsume_times": 0,
        "prepared_transaction_offset": 0,
        "body_crc": 0,
        "body": b"body",
    }
    return encode_record(StoredMessage(**(fields | changes)), properties)


def log_of(records: Sequence[Mapping[str, Any]], base_offset: int = 0) -> bytes:
    """Records back to back, each at its physical offset."""
    log = bytearray()
    for fields in records:
        log += record(base_offset + len(log), **fields)
    return bytes(log)


def reference_rows(buffer: bytes, position: int, broker_name: str, *, decompress: bool = True) -> list[Row]:
    """What the reference decoder and the client's rules make of the record at a position."""
    message = decode_record(buffer, position)
    unwrapped = flags.INNER_BATCH | flags.NEED_UNWRAP
    row: Row = {
        "topic": message.topic,
        "brokerName": broker_name,
        "queueId": message.queue_id,
        "queueOffset": message.queue_offset,
        "commitLogOffset": message.physical_offset,
        "msgId": offset_message_id(message.store_host, message.physical_offset),
        "bornTimestamp": _time(message.born_timestamp),
        "bornHost": host_text(message.born_host),
        "storeTimestamp": _time(message.store_timestamp),
        "storeHost": host_text(message.store_host),
        "reconsumeTimes": message.reconsume_times,
        "sysFlag": message.sys_flag,
        "flag": message.flag,
        "preparedTransactionOffset": message.prepared_transaction_offset,
        "bodyCRC": message.body_crc,
    }
    if message.sys_flag & unwrapped != unwrapped:
        plain = message.body if not (decompress and message.body) else plain_body(message.body, message.sys_flag)
        return [row | _content(plain, message.properties)]
    sys_flag = message.sys_flag & ~(unwrapped | flags.COMPRESSED)
    return [
        row
        | {"queueOffset": message.queue_offset + number, "sysFlag": sys_flag, "flag": element.flag}
        | _content(element.body, decode_properties(element.properties))
        for number, element in enumerate(decode_batch(plain_body(message.body, message.sys_flag)))
    ]


def _content(body: bytes, properties: dict[str, str]) -> Row:
    names = {"uniqKey": "UNIQ_KEY", "keys": "KEYS", "tags": "TAGS"}
    single = {column: properties.get(name) for column, name in names.items()}
    return {**single, "body": body, "properties": list(properties.items())}


def _time(milliseconds: int) -> datetime:
    return EPOCH + timedelta(milliseconds=milliseconds)


_int32 = st.integers(-(1 << 31), (1 << 31) - 1)
_int64 = st.integers(-(1 << 63), (1 << 63) - 1)
_hosts = st.builds(
    Host, st.binary(min_size=4, max_size=4) | st.binary(min_size=16, max_size=16), st.integers(0, 65_535)
)
_names = st.sampled_from(["TAGS", "KEYS", "UNIQ_KEY", "a", "größe", "名"]) | st.text(max_size=3)
_values = st.text(st.characters(exclude_characters="\x01\x02", exclude_categories=["Cs"]), max_size=8)


def _block(pairs: list[tuple[str, str]], closed: bool) -> bytes:
    text = "\x02".join(f"{name}\x01{value}" for name, value in pairs)
    return (text + "\x02" if closed and text else text).encode("utf-8", "replace")


_regular = st.builds(_block, st.lists(st.tuples(_names, _values), max_size=6), st.booleans())
_wild = st.lists(st.sampled_from([b"\x01", b"\x02", b"a", b"bc", b"TAGS", b"\xff", "ö".encode(), b"\0"]), max_size=12)
property_blocks = _regular | _wild.map(b"".join)
_bodies = st.binary(max_size=40)


@st.composite
def record_fields(draw: st.DrawFn) -> Row:
    """The fields of any record that the store may hold."""
    body, sys_flag = draw(_bodies), 0
    if draw(st.integers(0, 5)) == 0:
        elements = st.builds(BatchElement, _int32, _bodies, property_blocks)
        body, sys_flag = encode_batch(draw(st.lists(elements, max_size=4))), flags.INNER_BATCH
        sys_flag |= flags.NEED_UNWRAP if draw(st.booleans()) else 0
    if body and draw(st.integers(0, 3)) == 0:
        kind = draw(st.sampled_from(CompressionType))
        body, sys_flag = compress(body, kind), compressed_flag(sys_flag, kind)
    return {
        "topic": draw(st.sampled_from(["orders", "größen", "t" * 200]) | st.text(max_size=4)).replace("\ud800", ""),
        "queue_id": draw(_int32),
        "queue_offset": draw(st.integers(0, 1 << 62)),
        "flag": draw(_int32),
        "sys_flag": sys_flag | draw(st.sampled_from([0, 2, 4, 8, 12])),
        "born_timestamp": draw(st.integers(-62_135_596_800_000, 253_402_300_799_999)),
        "born_host": draw(_hosts),
        "store_timestamp": draw(st.integers(1, 253_402_300_799_999)),
        "store_host": draw(_hosts),
        "reconsume_times": draw(_int32),
        "prepared_transaction_offset": draw(_int64),
        "body": body,
        "properties": draw(property_blocks),
    }
