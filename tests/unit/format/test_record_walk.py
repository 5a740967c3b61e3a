"""The walk through a file of records, and where it stops."""

from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from skyrocket.format.crc import CRC_PROPERTY_BYTES, record_crc_property, reserve_record_crc
from skyrocket.format.record import CrcCheck, RecordHead, RecordWalk, WalkEnd, encode_blank, encode_record
from tests.golden_store import GoldenStore, Line
from tests.raw_store import RawStore
from tests.unit.format.samples import MESSAGE, damaged

FILE_OFFSET = 8192


def three_records(*, sealed: bool = False) -> list[bytes]:
    """Records of different sizes, each at its place in a file that begins at FILE_OFFSET."""
    records: list[bytes] = []
    for number, body in enumerate([b"first", b"second " * 20, b"third" * 3]):
        place = FILE_OFFSET + sum(map(len, records))
        message = replace(MESSAGE, physical_offset=place, queue_offset=number, body=body)
        properties = b"TAGS\x01TagA\x02KEYS\x01k1 k2\x02"
        record = encode_record(message, reserve_record_crc(properties) if sealed else properties)
        records.append(record[:-CRC_PROPERTY_BYTES] + record_crc_property(record) if sealed else record)
    return records


def walked(
    buffer: bytes, crc: CrcCheck = CrcCheck.BODY, limit: int | None = None
) -> tuple[list[RecordHead], RecordWalk]:
    walk = RecordWalk(buffer, FILE_OFFSET, limit=limit, crc=crc)
    return list(walk), walk


@pytest.mark.requirement("A026", "A027")
def test_a_walk_finds_every_record_of_a_golden_log_in_place(golden_lines: list[Line], golden_files: RawStore) -> None:
    lines = [line for line in golden_lines if not line.get("afterRecoveredEnd")]
    found: list[tuple[str, int, int]] = []
    for start, data in golden_files.commit_log():
        walk = RecordWalk(data, start)
        found += [("message", head.physical_offset, head.size) for head in walk]
        if walk.end is WalkEnd.BLANK:
            found.append(("blank", start + walk.position, len(data) - walk.position))
    assert found == [(line["kind"], line["physicalOffset"], line["size"]) for line in lines]


def test_records_and_blanks_of_a_golden_log_leave_no_gap(golden: GoldenStore, golden_lines: list[Line]) -> None:
    end = golden.json("store")["minPhyOffset"]
    for line in golden_lines:
        assert line["physicalOffset"] == end
        if not line.get("afterRecoveredEnd"):
            end += line["size"]
    assert end == golden.json("store")["maxPhyOffset"]


@pytest.mark.parametrize("golden", [GoldenStore("5.4.0", "torn")], indirect=True, ids=str)
def test_a_walk_of_a_torn_log_ends_where_recovery_of_rocketmq_ended(
    golden: GoldenStore, golden_files: RawStore
) -> None:
    (torn,) = [
        (start + walk.position, walk.reason)
        for start, data in golden_files.commit_log()
        if (walk := _exhausted(RecordWalk(data, start))).end is WalkEnd.DAMAGED
    ]
    assert torn[0] == golden.json("store")["maxPhyOffset"]
    assert torn[1]


def _exhausted(walk: RecordWalk) -> RecordWalk:
    for _ in walk:
        pass
    return walk


@pytest.mark.parametrize("golden", [GoldenStore("5.4.0", "killed")], indirect=True, ids=str)
def test_a_file_that_was_only_allocated_holds_nothing(golden_files: RawStore) -> None:
    start, data = golden_files.commit_log()[-1]
    assert not any(data)
    walk = _exhausted(RecordWalk(data, start))
    assert (walk.end, walk.position) == (WalkEnd.ZERO, 0)


@pytest.mark.parametrize("golden", [GoldenStore("5.4.0", "crc")], indirect=True, ids=str)
def test_a_flipped_bit_anywhere_in_a_record_is_seen_by_its_whole_crc(
    golden_lines: list[Line], golden_files: RawStore
) -> None:
    line = golden_lines[3]
    record = golden_files.log_bytes(line["physicalOffset"], line["size"])
    assert [head.size for head in RecordWalk(record, line["physicalOffset"], crc=CrcCheck.RECORD)] == [line["size"]]
    for bit in range(len(record) * 8):
        flipped = bytearray(record)
        flipped[bit // 8] ^= 1 << bit % 8
        assert list(RecordWalk(flipped, line["physicalOffset"], crc=CrcCheck.RECORD)) == []


def test_a_record_without_a_crc_of_its_whole_is_damaged_when_that_is_asked_for() -> None:
    heads, walk = walked(three_records()[0], CrcCheck.RECORD)
    assert heads == []
    assert (walk.end, walk.reason) == (WalkEnd.DAMAGED, "whole-record CRC differs or is missing")


def test_a_log_cut_at_any_byte_gives_the_records_before_the_cut() -> None:
    records = three_records()
    buffer = b"".join(records) + encode_blank(40) + bytes(32)
    ends = [sum(map(len, records[: n + 1])) for n in range(3)]
    for cut in range(len(buffer) + 1):
        heads, walk = walked(buffer[:cut])
        whole = sum(end <= cut for end in ends)
        assert len(heads) == whole
        assert walk.position == ([0, *ends])[whole]
        if cut == len(buffer):
            assert walk.end is WalkEnd.BLANK
        else:
            assert walk.end is (WalkEnd.LIMIT if cut == walk.position else WalkEnd.DAMAGED)
        assert walked(buffer, limit=cut)[0] == heads


def test_a_log_zeroed_from_any_byte_gives_only_what_was_written() -> None:
    records = three_records(sealed=True)
    buffer = b"".join(records)
    ends = [sum(map(len, records[: n + 1])) for n in range(3)]
    for cut in range(len(buffer) + 1):
        heads, walk = walked(buffer[:cut] + bytes(4096 - cut), CrcCheck.RECORD)
        # Zeros that were zeros before are no damage: a record counts as cut from its first changed byte on.
        whole = sum(not any(buffer[cut:end]) for end in ends)
        assert len(heads) == whole
        assert walk.end in (WalkEnd.ZERO, WalkEnd.DAMAGED)
        if cut in ends:
            assert walk.end is WalkEnd.ZERO


def test_a_torn_property_text_is_seen_only_by_the_crc_of_the_whole_record() -> None:
    # RocketMQ: the body CRC and the lengths do not cover what stands in the properties.
    record = three_records()[0]
    torn = record[:-4] + bytes(4)
    assert len(walked(torn)[0]) == 1
    sealed = three_records(sealed=True)[0]
    assert walked(sealed[:-24] + bytes(24), CrcCheck.BODY)[1].end is WalkEnd.LIMIT
    assert walked(sealed[:-4] + bytes(4), CrcCheck.RECORD)[1].end is WalkEnd.DAMAGED


def test_a_walk_stops_at_its_limit_although_more_follows() -> None:
    records = three_records()
    heads, walk = walked(b"".join(records), limit=len(records[0]))
    assert len(heads) == 1
    assert (walk.end, walk.position) == (WalkEnd.LIMIT, len(records[0]))


def test_a_walk_that_is_left_early_can_be_taken_up_again() -> None:
    buffer = b"".join(three_records())
    walk = RecordWalk(buffer, FILE_OFFSET)
    for head in walk:
        if head.queue_offset == 1:
            break
    assert [head.queue_offset for head in walk] == [1, 2]


def test_a_walk_may_begin_at_any_record() -> None:
    records = three_records()
    walk = RecordWalk(b"".join(records), FILE_OFFSET, position=len(records[0]))
    assert [head.physical_offset for head in walk] == [
        FILE_OFFSET + len(records[0]),
        FILE_OFFSET + len(records[0]) + len(records[1]),
    ]


@pytest.mark.requirement("A026")
def test_a_record_copied_to_another_place_is_damaged() -> None:
    record = three_records()[0]
    heads, walk = walked(record + record)
    assert len(heads) == 1
    assert (walk.end, walk.reason) == (WalkEnd.DAMAGED, f"stored physical offset {FILE_OFFSET}")


@pytest.mark.parametrize("size", [-8, 0, 7, 41])
def test_a_blank_of_an_impossible_size_is_no_end_of_the_file(size: int) -> None:
    _, walk = walked(encode_blank(size) + bytes(32))
    assert walk.end is (WalkEnd.ZERO if size == 0 else WalkEnd.DAMAGED)


@given(st.binary(max_size=500))
def test_a_walk_through_random_bytes_only_stops(data: bytes) -> None:
    for crc in CrcCheck:
        heads, walk = walked(data, crc)
        assert heads == []
        assert walk.end is not WalkEnd.LIMIT or data == b""


@given(damaged(b"".join(three_records(sealed=True)) + encode_blank(16) + bytes(8)))
def test_a_walk_through_a_damaged_log_gives_a_prefix_of_it(data: bytes) -> None:
    intact = walked(b"".join(three_records(sealed=True)), CrcCheck.RECORD)[0]
    heads, walk = walked(data, CrcCheck.RECORD)
    assert heads == intact[: len(heads)]
    assert walk.position == sum(head.size for head in heads)
