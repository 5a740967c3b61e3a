"""Entries of consume queues, as they stand in RocketMQ's files."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from skyrocket.format.java_hash import java_hash
from skyrocket.format.queue_entry import (
    BATCH_ENTRY,
    BATCH_ENTRY_DTYPE,
    BATCH_ENTRY_SIZE,
    ENTRY,
    ENTRY_DTYPE,
    ENTRY_SIZE,
    EXT_UNIT,
    PREFILL_ENTRY,
    BatchQueueEntry,
    ExtUnit,
    QueueEntry,
    decode_ext_unit,
    ext_position,
    is_ext_address,
)
from skyrocket.format.sys_flag import TRANSACTION_PREPARED
from tests.golden_store import GOLDEN_STORES, GoldenStore, Line
from tests.raw_store import RawStore
from tests.unit.format.samples import I64, damaged

EXT_END = b"\xff\xff"  # the rest of an extension file is unused
FOLDERS = {"SimpleCQ": "consumequeue", "BatchCQ": "batchconsumequeue"}
CUT_SHORT = {"killed", "torn"}  # their manifests tell of the queues after recovery; the files are behind


def entries_in_files(files: RawStore, topic: str, queue_id: int, first: int) -> list[QueueEntry]:
    """The entries from a queue offset on, up to the first that was never written."""
    raw = files.queue_bytes("consumequeue", topic, queue_id, first * ENTRY_SIZE)
    entries = [QueueEntry(*entry) for entry in ENTRY.iter_unpack(raw)]
    return entries[: next((n for n, entry in enumerate(entries) if entry.size == 0), len(entries))]


def encode_ext_unit(tags_code: int, store_timestamp: int, bitmap: bytes = b"") -> bytes:
    """A unit as RocketMQ writes it; we only read them."""
    return EXT_UNIT.pack(EXT_UNIT.size + len(bitmap), tags_code, store_timestamp, len(bitmap)) + bitmap


def unit_of(files: RawStore, topic: str, queue_id: int, tags_code: int) -> ExtUnit:
    raw = files.queue_bytes("consumequeue_ext", topic, queue_id, 0)
    unit = decode_ext_unit(raw, ext_position(tags_code))
    assert unit is not None
    return unit


def resolved(files: RawStore, topic: str, queue_id: int, entry: QueueEntry) -> QueueEntry:
    if not is_ext_address(entry.tags_code):
        return entry
    return entry._replace(tags_code=unit_of(files, topic, queue_id, entry.tags_code).tags_code)


@pytest.mark.requirement("A009", "E014")
def test_every_golden_queue_entry_is_20_bytes_at_its_queue_offset(golden: GoldenStore, golden_files: RawStore) -> None:
    for line in golden.lines("queues"):
        if line["type"] != "SimpleCQ":
            continue
        topic, queue_id = line["topic"], line["queueId"]
        raw = entries_in_files(golden_files, topic, queue_id, line["min"])
        found = [list(resolved(golden_files, topic, queue_id, entry)) for entry in raw]
        if golden.name in CUT_SHORT:
            assert found == line["entries"][: len(found)]
        else:
            assert found == line["entries"]
            assert len(found) == line["max"] - line["min"]


def test_every_golden_batch_entry_is_46_bytes(golden: GoldenStore, golden_files: RawStore) -> None:
    for line in golden.lines("queues"):
        if line["type"] == "BatchCQ":
            raw = golden_files.queue_bytes("batchconsumequeue", line["topic"], line["queueId"], 0)
            entries = [BatchQueueEntry(*entry) for entry in BATCH_ENTRY.iter_unpack(raw)]
            written = [entry for entry in entries if entry.size > 0]
            assert [
                [e.physical_offset, e.size, e.tags_code, e.base_offset, e.messages, e.compacted_offset] for e in written
            ] == line["entries"]
            assert all(entry.reserved == 0 for entry in written)


def test_a_golden_batch_entry_knows_the_store_time_of_its_record(
    golden: GoldenStore, golden_files: RawStore, golden_lines: list[Line]
) -> None:
    times = {line["physicalOffset"]: line.get("storeTimestamp") for line in golden_lines}
    for topic, queue_id in golden_files.queues("batchconsumequeue"):
        raw = golden_files.queue_bytes("batchconsumequeue", topic, queue_id, 0)
        for entry in map(BatchQueueEntry._make, BATCH_ENTRY.iter_unpack(raw)):
            assert entry.size == 0 or entry.store_timestamp == times[entry.physical_offset]


@pytest.mark.requirement("A010", "E014")
def test_a_golden_entry_holds_the_hash_of_its_tags_and_nothing_of_the_text(
    golden: GoldenStore, golden_files: RawStore, golden_lines: list[Line]
) -> None:
    records = {line["physicalOffset"]: line for line in golden_lines}
    checked = 0
    for topic, queue_id in golden_files.queues("consumequeue"):
        if topic == "SCHEDULE_TOPIC_XXXX":
            continue  # there the delivery time takes the hash's place
        for entry in entries_in_files(golden_files, topic, queue_id, 0):
            record = records.get(entry.physical_offset)
            if record is not None and record.get("size") == entry.size and not record.get("afterRecoveredEnd"):
                tags_code = resolved(golden_files, topic, queue_id, entry).tags_code
                assert tags_code == java_hash(record["properties"].get("TAGS", ""))
                checked += 1
    assert checked >= 24


@pytest.mark.parametrize(
    "golden", [g for g in GOLDEN_STORES if g.name not in {*CUT_SHORT, "expired"}], indirect=True, ids=str
)
def test_every_golden_record_that_enters_a_queue_has_one_entry_with_its_number(
    golden_files: RawStore, golden_lines: list[Line]
) -> None:
    places = {
        (topic, queue_id, number): entry.physical_offset
        for topic, queue_id in golden_files.queues("consumequeue")
        for number, entry in enumerate(entries_in_files(golden_files, topic, queue_id, 0))
    }
    for line in golden_lines:
        if (
            line["kind"] == "message"
            and not line["sysFlag"] & TRANSACTION_PREPARED
            and "INNER_NUM" not in line["properties"]
        ):
            assert places[line["topic"], line["queueId"], line["queueOffset"]] == line["physicalOffset"]


@pytest.mark.requirement("C102")
@pytest.mark.parametrize("golden", [GoldenStore("5.4.0", "cqext")], indirect=True, ids=str)
def test_what_an_extension_unit_holds_can_be_read_and_computed_again_from_the_record(
    golden_files: RawStore, golden_lines: list[Line]
) -> None:
    records = {line["physicalOffset"]: line for line in golden_lines}
    addresses = 0
    for topic, queue_id in golden_files.queues("consumequeue_ext"):
        for entry in entries_in_files(golden_files, topic, queue_id, 0):
            record = records[entry.physical_offset]
            assert is_ext_address(entry.tags_code)
            unit = unit_of(golden_files, topic, queue_id, entry.tags_code)
            assert unit.store_timestamp == record["storeTimestamp"]
            if topic != "SCHEDULE_TOPIC_XXXX":
                assert unit.tags_code == java_hash(record["properties"].get("TAGS", ""))
            addresses += 1
    assert addresses == 28


@pytest.mark.requirement("A009")
def test_an_entry_is_offset_size_and_tags_code() -> None:
    assert ENTRY_SIZE == 20
    assert ENTRY.pack(1, 2, 3).hex() == "0000000000000001" + "00000002" + "0000000000000003"


@pytest.mark.parametrize(("tags", "stored"), [("polygenelubricants", "FFFFFFFF80000000"), ("TagA", "000000000027A807")])
def test_the_tags_hash_is_stored_with_its_sign(tags: str, stored: str) -> None:
    assert ENTRY.pack(0, 1, java_hash(tags))[12:].hex().upper() == stored


@given(st.lists(st.tuples(I64, st.integers(1, (1 << 31) - 1), I64)))
def test_many_entries_are_the_same_bytes_as_each_alone(entries: list[tuple[int, int, int]]) -> None:
    together = np.array(entries, dtype=ENTRY_DTYPE).tobytes()
    assert together == b"".join(ENTRY.pack(*entry) for entry in entries)
    assert list(ENTRY.iter_unpack(together)) == entries


def test_many_batch_entries_are_the_same_bytes_as_each_alone() -> None:
    entries = [BatchQueueEntry(1 << 40, 200 + n, -n, 1_700_000_000_000 + n, 10 * n, n) for n in range(5)]
    assert BATCH_ENTRY_SIZE == 46
    together = np.array(entries, dtype=BATCH_ENTRY_DTYPE).tobytes()
    assert together == b"".join(BATCH_ENTRY.pack(*entry) for entry in entries)


def test_the_filler_before_a_queue_that_begins_late_has_the_largest_size() -> None:
    assert PREFILL_ENTRY.hex() == "00" * 8 + "7fffffff" + "00" * 8


@given(st.integers(0, 1 << 40))
def test_an_extension_address_lies_below_every_hash(position: int) -> None:
    address = -(1 << 63) + position
    assert is_ext_address(address)
    assert ext_position(address) == position


@given(st.text(max_size=20))
def test_no_tags_hash_is_an_extension_address(tags: str) -> None:
    assert not is_ext_address(java_hash(tags))


def test_the_border_between_addresses_and_hashes() -> None:
    assert is_ext_address(-2147483649)
    assert not is_ext_address(-2147483648)


@given(I64, I64, st.binary(max_size=100), st.integers(0, 30))
def test_an_extension_unit_comes_back(tags_code: int, store_timestamp: int, bitmap: bytes, position: int) -> None:
    stored = bytes(position) + encode_ext_unit(tags_code, store_timestamp, bitmap) + EXT_END
    assert decode_ext_unit(stored, position) == (20 + len(bitmap), tags_code, store_timestamp, bitmap)
    assert decode_ext_unit(stored, len(stored) - len(EXT_END)) is None


@given(st.binary(max_size=60) | damaged(encode_ext_unit(1, 2, b"bitmap")), st.integers(0, 80))
def test_other_bytes_are_a_unit_or_none(data: bytes, position: int) -> None:
    unit = decode_ext_unit(data, position)
    assert unit is None or encode_ext_unit(*unit[1:]) == data[position : position + unit.size]
