"""Index files: header, slots, chained entries, as they stand in RocketMQ's files."""

from collections.abc import Iterator

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from skyrocket.config.sections import StoreConfig
from skyrocket.format.index_layout import (
    ENTRY,
    ENTRY_DTYPE,
    ENTRY_SIZE,
    HEADER,
    HEADER_SIZE,
    SLOT_SIZE,
    IndexEntry,
    IndexHeader,
    decode_header,
    entry_position,
    file_size,
    index_hash,
    key_text,
    overlaps,
    slot_position,
    tag_text,
)
from skyrocket.format.sys_flag import TRANSACTION_ROLLBACK, transaction_type
from tests.golden_store import GOLDEN_STORES, GoldenStore, Line
from tests.raw_store import RawStore

SLOTS, ENTRIES = 500, 400  # of the golden stores
DEFAULT_SLOTS, DEFAULT_ENTRIES = 5_000_000, 20_000_000
# Whose index was written once, in the order of the log, and neither cut nor rebuilt.
WRITTEN_IN_ONE_GO = [g for g in GOLDEN_STORES if g.name in {"clean", "ipv6", "crc", "cqext", "lmq", "timer-roll"}]


def entry_at(data: bytes, number: int) -> IndexEntry:
    return IndexEntry(*ENTRY.unpack_from(data, entry_position(SLOTS, number)))


def entries_of(data: bytes) -> list[IndexEntry]:
    return [entry_at(data, number) for number in range(1, decode_header(data).next_number)]


def newest_of_slot(data: bytes, slot: int) -> int:
    return int.from_bytes(data[slot_position(slot) : slot_position(slot) + SLOT_SIZE], "big", signed=True)


def chain(data: bytes, slot: int) -> Iterator[int]:
    """The numbers of a slot's entries, newest first."""
    number = newest_of_slot(data, slot)
    while number:
        yield number
        number = entry_at(data, number).previous


def hashes_of(line: Line, version: str) -> list[int]:
    """The index hashes of a record in the order in which they are written."""
    if transaction_type(line["sysFlag"]) == TRANSACTION_ROLLBACK:
        return []
    properties = line["properties"]
    keys = [properties["UNIQ_KEY"]] if "UNIQ_KEY" in properties else []
    keys += [key for key in properties.get("KEYS", "").split(" ") if key]
    texts = [key_text(line["topic"], key) for key in keys]
    if version == "5.4.0" and "TAGS" in properties:
        texts.append(tag_text(line["topic"], properties["TAGS"]))
    return [index_hash(text) for text in texts]


@pytest.mark.requirement("A018", "A059", "D004")
def test_a_default_index_file_has_420_000_040_bytes() -> None:
    assert file_size(DEFAULT_SLOTS, DEFAULT_ENTRIES) == 40 + 5_000_000 * 4 + 20_000_000 * 20 == 420_000_040
    config = StoreConfig()
    assert (config.index_slots, config.index_entries) == (DEFAULT_SLOTS, DEFAULT_ENTRIES)


@pytest.mark.requirement("A019", "A054", "D005", "D007")
def test_header_and_entry_are_laid_out_as_in_rocketmq() -> None:
    assert (HEADER_SIZE, SLOT_SIZE, ENTRY_SIZE) == (40, 4, 20)
    header = IndexHeader(
        begin_timestamp=1,
        end_timestamp=2,
        begin_physical_offset=3,
        end_physical_offset=4,
        used_slots=5,
        next_number=6,
    )
    stored = HEADER.pack(*header)
    assert stored.hex() == "".join(f"{n:016x}" for n in (1, 2, 3, 4)) + "00000005" + "00000006"
    assert decode_header(stored) == header
    assert ENTRY.pack(*IndexEntry(key_hash=1, physical_offset=2, seconds=3, previous=4)).hex() == (
        "00000001" + "0000000000000002" + "00000003" + "00000004"
    )


@pytest.mark.requirement("A061")
def test_slots_and_entries_stand_where_the_formulas_say() -> None:
    assert slot_position(0) == 40
    assert slot_position(DEFAULT_SLOTS - 1) == 40 + 4 * 4_999_999
    assert entry_position(DEFAULT_SLOTS, 0) == 20_000_040
    assert entry_position(DEFAULT_SLOTS, 1) == 20_000_060
    assert entry_position(DEFAULT_SLOTS, DEFAULT_ENTRIES - 1) + 20 == file_size(DEFAULT_SLOTS, DEFAULT_ENTRIES)


@pytest.mark.requirement("A054")
def test_golden_headers_are_what_rocketmq_reads(golden: GoldenStore, golden_files: RawStore) -> None:
    told = {line["name"]: line for line in golden.lines("index") if line["kind"] == "file"}
    raw = golden_files.folder("index")
    assert raw
    for name, data in raw:
        assert len(data) == file_size(SLOTS, ENTRIES)
        if name not in told:
            assert golden.name in {"killed", "torn"}, "only recovery drops and rebuilds index files"
            continue
        assert decode_header(data) == IndexHeader(
            told[name]["beginTimestamp"],
            told[name]["endTimestamp"],
            told[name]["beginPhyOffset"],
            told[name]["endPhyOffset"],
            told[name]["hashSlotCount"],
            told[name]["indexCount"],
        )


@pytest.mark.requirement("A061")
def test_golden_chains_lead_from_each_slot_through_all_its_entries_newest_first(golden_files: RawStore) -> None:
    for _, data in golden_files.folder("index"):
        header = decode_header(data)
        seen: list[int] = []
        for slot in range(SLOTS):
            numbers = list(chain(data, slot))
            assert numbers == sorted(numbers, reverse=True)
            assert all(entry_at(data, number).key_hash % SLOTS == slot for number in numbers)
            seen += numbers
        assert sorted(seen) == list(range(1, header.next_number))
        assert sum(newest_of_slot(data, slot) != 0 for slot in range(SLOTS)) == header.used_slots


@pytest.mark.requirement("C099")
@pytest.mark.parametrize("golden", WRITTEN_IN_ONE_GO, indirect=True, ids=str)
def test_golden_entries_are_the_keys_of_the_records_in_order(
    golden: GoldenStore, golden_files: RawStore, golden_lines: list[Line]
) -> None:
    messages = [line for line in golden_lines if line["kind"] == "message"]
    expected = [(h, line["physicalOffset"]) for line in messages for h in hashes_of(line, golden.version)]
    found = [(e.key_hash, e.physical_offset) for _, data in golden_files.folder("index") for e in entries_of(data)]
    assert found == expected
    if str(golden) == "4.9.7/clean":
        assert any(not hashes_of(line, golden.version) for line in messages), "a record without keys has no entry"


def test_golden_entries_point_to_records_with_such_a_key(
    golden: GoldenStore, golden_files: RawStore, golden_lines: list[Line]
) -> None:
    hashes = {
        line["physicalOffset"]: hashes_of(line, golden.version)
        for line in golden_lines
        if line["kind"] == "message" and not line.get("afterRecoveredEnd")
    }
    missing = 0
    for _, data in golden_files.folder("index"):
        for entry in entries_of(data):
            if entry.physical_offset in hashes:
                assert entry.key_hash in hashes[entry.physical_offset]
            else:
                missing += 1
    assert missing == 0 or golden.name in {"expired", "torn", "torn-recovered"}


@pytest.mark.requirement("A057", "B033", "C100")
def test_golden_entries_hold_whole_seconds_since_the_begin_of_their_file(
    golden_files: RawStore, golden_lines: list[Line]
) -> None:
    times = {line["physicalOffset"]: line.get("storeTimestamp") for line in golden_lines}
    previous_end = 0
    for _, data in golden_files.folder("index"):
        header = decode_header(data)
        # RocketMQ: the first entry is still counted from the end of the file before.
        begins = [previous_end or 0] + [header.begin_timestamp] * (header.next_number - 2)
        for begin, entry in zip(begins, entries_of(data), strict=True):
            stored = times.get(entry.physical_offset)
            if stored is not None:
                assert entry.seconds == (max(stored - begin, 0) // 1000 if begin > 0 else 0)
        previous_end = header.end_timestamp


@pytest.mark.requirement("C099")
def test_a_key_is_hashed_together_with_its_topic() -> None:
    assert index_hash(key_text("TopicTest", "KEY1")) == 1656969516
    assert key_text("TopicTest", "KEY1") == "TopicTest#KEY1"
    assert tag_text("TopicTest", "TagA") == "TopicTest#T#TagA"


def test_the_hash_that_has_no_absolute_value_becomes_zero() -> None:
    assert index_hash("polygenelubricants") == 0


@given(st.text(max_size=30))
def test_an_index_hash_fits_31_bits(text: str) -> None:
    assert 0 <= index_hash(text) < 1 << 31


@pytest.mark.parametrize("count", [-5, 0, 1])
def test_a_count_that_was_never_written_reads_as_one(count: int) -> None:
    assert decode_header(HEADER.pack(0, 0, 0, 0, 0, count)).next_number == 1


@pytest.mark.parametrize(
    ("begin", "end", "expected"),
    [
        (0, 99, False),
        (0, 100, True),
        (0, 150, True),
        (0, 500, True),
        (100, 200, True),
        (120, 130, True),
        (200, 500, True),
        (201, 500, False),
    ],
)
def test_a_file_is_searched_when_its_times_touch_the_range(begin: int, end: int, expected: bool) -> None:
    assert overlaps(IndexHeader(100, 200, 0, 0, 0, 1), begin, end) is expected


@given(st.binary(min_size=40, max_size=40))
def test_any_40_bytes_are_a_header(data: bytes) -> None:
    assert decode_header(data).next_number >= 1


@given(st.lists(st.tuples(*[st.integers(-(1 << 31), (1 << 31) - 1)] * 4)))
def test_many_entries_are_the_same_bytes_as_each_alone(entries: list[tuple[int, int, int, int]]) -> None:
    assert np.array(entries, dtype=ENTRY_DTYPE).tobytes() == b"".join(ENTRY.pack(*entry) for entry in entries)
