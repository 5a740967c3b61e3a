"""Commit-log records: RocketMQ's own, and any that we make."""

import base64
from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from skyrocket.errors import CorruptRecord, MessageRefused
from skyrocket.format import sys_flag as flags
from skyrocket.format.compression import plain_body
from skyrocket.format.crc import CRC_PROPERTY, CRC_PROPERTY_BYTES, checksum, record_crc_property, reserve_record_crc
from skyrocket.format.message_id import offset_message_id, parse_host
from skyrocket.format.properties import decode_properties, encode_properties, without_property
from skyrocket.format.record import (
    MAGIC_BLANK,
    MAGIC_V1,
    MAGIC_V2,
    decode_record,
    decode_records,
    encode_blank,
    encode_record,
    read_head,
    record_properties,
    store_timestamp_at,
)
from skyrocket.model.message import Host, StoredMessage
from tests.golden_store import GoldenStore, Line
from tests.raw_store import RawStore
from tests.unit.format.samples import MESSAGE, TEXT, damaged, stored_messages

MAGICS = {"V1": MAGIC_V1, "V2": MAGIC_V2}


def whole_messages(lines: list[Line]) -> list[Line]:
    return [line for line in lines if line["kind"] == "message" and not line.get("afterRecoveredEnd")]


def as_manifest(message: StoredMessage) -> Line:
    """A decoded record in the words of the manifest."""
    return {
        "size": message.record_size,
        "magic": message.magic,
        "topic": message.topic,
        "queueId": message.queue_id,
        "queueOffset": message.queue_offset,
        "physicalOffset": message.physical_offset,
        "sysFlag": message.sys_flag,
        "flag": message.flag,
        "bornTimestamp": message.born_timestamp,
        "bornHost": message.born_host,
        "storeTimestamp": message.store_timestamp,
        "storeHost": message.store_host,
        "reconsumeTimes": message.reconsume_times,
        "preparedTransactionOffset": message.prepared_transaction_offset,
        "bodyCRC": message.body_crc,
        "storedBodyLength": len(message.body),
        "storedBody": message.body,
        "body": plain_body(message.body, message.sys_flag),
        "properties": message.properties,
        "msgId": offset_message_id(message.store_host, message.physical_offset),
        "offsetMsgId": offset_message_id(message.store_host, message.physical_offset),
        "uniqKey": message.unique_key,
        "keys": message.keys,
    }


def expected(line: Line) -> Line:
    """A manifest line with its texts turned into values."""
    body = base64.b64decode(line["body"])
    wanted = line | {
        "magic": MAGICS[line["magic"]],
        "bornHost": parse_host(line["bornHost"]),
        "storeHost": parse_host(line["storeHost"]),
        "body": body,
        "storedBody": base64.b64decode(line["storedBody"]) if "storedBody" in line else body,
        "uniqKey": line.get("uniqKey"),
        "keys": [key for key in (line.get("keys") or "").split(" ") if key],
    }
    del wanted["kind"], wanted["propertiesString"]
    return wanted


@pytest.mark.requirement("A025", "E004")
def test_every_golden_record_decodes_to_what_rocketmq_reads(golden_lines: list[Line], golden_files: RawStore) -> None:
    for line in whole_messages(golden_lines):
        record = golden_files.log_bytes(line["physicalOffset"], line["size"])
        assert as_manifest(decode_record(record, check_crc=True)) == expected(line)


@pytest.mark.requirement("A025", "E004")
def test_every_golden_record_encodes_to_its_bytes_again(golden_lines: list[Line], golden_files: RawStore) -> None:
    for line in whole_messages(golden_lines):
        record = golden_files.log_bytes(line["physicalOffset"], line["size"])
        head = read_head(record, 0, line["physicalOffset"], check_crc=True)
        assert head is not None
        assert head.properties.decode() == line["propertiesString"]
        assert encode_record(decode_record(record), head.properties) == record


def test_the_head_of_a_golden_record_says_what_dispatch_needs(golden_lines: list[Line], golden_files: RawStore) -> None:
    for line in whole_messages(golden_lines):
        record = golden_files.log_bytes(line["physicalOffset"], line["size"])
        head = read_head(record, 0, line["physicalOffset"])
        assert head is not None
        assert head == (
            line["physicalOffset"],
            line["size"],
            line["topic"].encode(),
            line["queueId"],
            line["queueOffset"],
            line["sysFlag"],
            line["storeTimestamp"],
            line["propertiesString"].encode(),
        )
        assert store_timestamp_at(record, 0) == line["storeTimestamp"]


@pytest.mark.requirement("A027")
def test_blanks_of_golden_logs_reach_to_the_end_of_their_file(golden_lines: list[Line], golden_files: RawStore) -> None:
    for line in golden_lines:
        if line["kind"] == "blank":
            blank = golden_files.log_bytes(line["physicalOffset"], 1 << 20)
            assert len(blank) == line["size"]
            assert blank.startswith(encode_blank(line["size"]))
            assert read_head(blank, 0, line["physicalOffset"]) is None


@pytest.mark.parametrize("golden", [GoldenStore("5.4.0", "torn")], indirect=True, ids=str)
def test_the_torn_record_of_a_power_loss_is_seen(golden_lines: list[Line], golden_files: RawStore) -> None:
    (torn,) = [line for line in golden_lines if line.get("afterRecoveredEnd")]
    record = golden_files.log_bytes(torn["physicalOffset"], torn["size"])
    with pytest.raises(CorruptRecord) as damage:
        read_head(record, 0, torn["physicalOffset"], check_crc=True)
    assert damage.value.physical_offset == torn["physicalOffset"]
    with pytest.raises(CorruptRecord):
        decode_record(record, check_crc=True)


@pytest.mark.parametrize("golden", [GoldenStore(v, "ipv6") for v in ("4.9.7", "5.4.0")], indirect=True, ids=str)
def test_records_of_ipv6_hosts_are_24_bytes_longer(golden_lines: list[Line], golden_files: RawStore) -> None:
    for line in whole_messages(golden_lines):
        message = decode_record(golden_files.log_bytes(line["physicalOffset"], line["size"]))
        assert message.sys_flag & (flags.BORN_HOST_V6 | flags.STORE_HOST_V6) == 0x30
        assert message.born_host.address == message.store_host.address == bytes(15) + b"\x01"
        parts = len(message.body) + len(message.topic) + len(line["propertiesString"].encode())
        assert message.record_size == 91 + 24 + parts


@pytest.mark.parametrize("golden", [GoldenStore("5.4.0", "crc")], indirect=True, ids=str)
def test_the_whole_record_crc_of_rocketmq_is_ours(golden_lines: list[Line], golden_files: RawStore) -> None:
    for line in whole_messages(golden_lines):
        record = golden_files.log_bytes(line["physicalOffset"], line["size"])
        assert record_crc_property(record) == record[-CRC_PROPERTY_BYTES:]
        # From the properties as they came in, by our own steps, to the same record.
        properties = without_property(line["propertiesString"].encode(), CRC_PROPERTY)
        unsealed = encode_record(decode_record(record), reserve_record_crc(properties))
        assert unsealed[:-CRC_PROPERTY_BYTES] + record_crc_property(unsealed) == record


def test_v2_records_occur_exactly_for_topics_that_one_length_byte_cannot_hold(
    golden: GoldenStore, golden_lines: list[Line]
) -> None:
    messages = whole_messages(golden_lines)
    assert all((line["magic"] == "V2") == (len(line["topic"]) > 127) for line in messages)
    if str(golden) == "5.4.0/clean":
        assert any(line["magic"] == "V2" for line in messages)


def test_the_digits_of_a_record_crc_stand_least_significant_first() -> None:
    assert checksum(bytes(80)) == 237181158
    assert record_crc_property(bytes(100)) == b"__CRC32#\x018511817320\x02"


def test_a_record_crc_replaces_the_one_that_a_message_brought() -> None:
    reserved = reserve_record_crc(b"A\x011\x02__CRC32#\x019000964850\x02B\x012")
    assert reserved == b"A\x011\x02B\x012\x02__CRC32#\x010000000000\x02"
    assert reserve_record_crc(b"") == b"__CRC32#\x010000000000\x02"


@pytest.mark.parametrize(
    ("magic", "stored"), [(MAGIC_V1, "DAA320A7"), (MAGIC_V2, "DAA320AB"), (MAGIC_BLANK, "CBD43194")]
)
def test_magic_codes_are_those_of_rocketmq(magic: int, stored: str) -> None:
    assert magic.to_bytes(4, "big", signed=True).hex().upper() == stored


@pytest.mark.parametrize(
    ("born", "store", "topic", "size"),
    [(4, 4, "T", 91), (16, 4, "T", 103), (4, 16, "T", 103), (16, 16, "T", 115), (4, 4, "T" * 128, 92)],
)
def test_the_fixed_part_is_91_bytes_and_more_for_wide_hosts_and_long_topics(
    born: int, store: int, topic: str, size: int
) -> None:
    message = replace(MESSAGE, topic=topic, body=b"", born_host=Host(bytes(born), 1), store_host=Host(bytes(store), 2))
    record = encode_record(message, b"")
    assert len(record) == size + len(topic)
    assert decode_record(record).topic == topic


@pytest.mark.parametrize(
    ("message", "properties"),
    [(replace(MESSAGE, topic="T" * 32768), b""), (MESSAGE, b"x" * 32768)],
    ids=["topic", "properties"],
)
def test_what_a_length_field_cannot_hold_is_refused(message: StoredMessage, properties: bytes) -> None:
    with pytest.raises(MessageRefused, match="32767"):
        encode_record(message, properties)


def test_the_longest_parts_fit() -> None:
    message = replace(MESSAGE, topic="T" * 32767)
    record = encode_record(message, b"x" * 32767)
    assert decode_record(record).topic == message.topic


@given(stored_messages(), st.dictionaries(TEXT, TEXT, max_size=5))
def test_a_record_decodes_to_the_message_that_was_encoded(message: StoredMessage, properties: dict[str, str]) -> None:
    text = encode_properties(properties)
    record = encode_record(message, text)
    decoded = decode_record(record, check_crc=True)
    assert decoded == replace(
        message,
        record_size=len(record),
        sys_flag=decoded.sys_flag,
        body_crc=checksum(message.body),
        magic=MAGIC_V1 if len(message.topic.encode()) <= 127 else MAGIC_V2,
        properties=decode_properties(text),
    )
    assert decoded.sys_flag & ~0x30 == message.sys_flag & ~0x30
    assert store_timestamp_at(record, 0) == message.store_timestamp


@given(stored_messages(), st.dictionaries(TEXT, TEXT, max_size=5))
def test_the_properties_of_a_record_are_found_without_reading_the_rest(
    message: StoredMessage, properties: dict[str, str]
) -> None:
    text = encode_properties(properties)
    assert record_properties(memoryview(encode_record(message, text))) == text


@given(st.lists(stored_messages(), max_size=4))
def test_the_records_of_a_pull_answer_come_back_in_order(messages: list[StoredMessage]) -> None:
    answer = b"".join(encode_record(message, b"A\x01b\x02") for message in messages)
    assert [m.body for m in decode_records(answer)] == [m.body for m in messages]


@given(st.binary(max_size=300))
def test_random_bytes_are_refused_as_corrupt(data: bytes) -> None:
    with pytest.raises(CorruptRecord):
        decode_record(data)
    with pytest.raises(CorruptRecord):
        read_head(data, 0, 0, check_crc=True)


@given(stored_messages().flatmap(lambda message: damaged(encode_record(message, b"KEYS\x01a b\x02TAGS\x01t\x02"))))
def test_a_damaged_record_decodes_or_is_refused_as_corrupt(record: bytes) -> None:
    try:
        message = decode_record(record)
    except CorruptRecord:
        return
    assert message.record_size <= len(record)


@given(st.data())
def test_a_flipped_bit_of_the_body_is_seen(data: st.DataObject) -> None:
    message = data.draw(stored_messages().filter(lambda m: len(m.body) > 0))
    record = bytearray(encode_record(message, b""))
    bit = data.draw(st.integers(0, len(message.body) * 8 - 1))
    body_at = len(record) - 2 - len(message.topic.encode()) - (1 if len(message.topic.encode()) < 128 else 2)
    record[body_at - len(message.body) + bit // 8] ^= 1 << bit % 8
    with pytest.raises(CorruptRecord, match="body CRC"):
        decode_record(record, check_crc=True)
    decode_record(record)  # a plain read does not pay for the check


@pytest.mark.parametrize("position", [-1, 0, 1])
def test_a_record_that_is_not_at_its_place_is_corrupt(position: int) -> None:
    record = encode_record(MESSAGE, b"")
    if position == 0:
        assert read_head(record, 0, MESSAGE.physical_offset) is not None
    else:
        with pytest.raises(CorruptRecord, match="stored physical offset"):
            read_head(record, 0, MESSAGE.physical_offset + position)


def test_a_blank_is_no_message() -> None:
    with pytest.raises(CorruptRecord, match="blank"):
        decode_record(encode_blank(100) + bytes(92))


@pytest.mark.parametrize(
    ("transaction", "enters"),
    [
        (flags.TRANSACTION_NONE, True),
        (flags.TRANSACTION_PREPARED, False),
        (flags.TRANSACTION_COMMIT, True),
        (flags.TRANSACTION_ROLLBACK, False),
    ],
)
def test_only_records_without_or_with_a_committed_transaction_enter_a_queue(transaction: int, enters: bool) -> None:
    for others in (0, flags.COMPRESSED | flags.BORN_HOST_V6, -1 & ~flags.TRANSACTION_MASK):
        assert flags.transaction_type(others | transaction) == transaction
        assert ((others | transaction) & flags.TRANSACTION_PREPARED == 0) is enters


def test_several_keys_are_separated_by_one_blank_each() -> None:
    message = replace(MESSAGE, properties={"KEYS": "a  b c ", "TAGS": "t", "UNIQ_KEY": "u"})
    assert (message.keys, message.tags, message.unique_key) == (["a", "b", "c"], "t", "u")
    assert (MESSAGE.keys, MESSAGE.tags, MESSAGE.unique_key) == ([], None, None)
