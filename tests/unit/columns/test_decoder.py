"""The vectorised decoder against the reference decoder: random records, golden stores, and damage."""

from itertools import pairwise
from pathlib import Path

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from skyrocket.columns import BadBody, decode
from skyrocket.columns.properties import PropertyBlocks
from skyrocket.columns.schema import arrow_schema
from skyrocket.errors import CorruptRecord
from skyrocket.format.column_walk import Damage, record_positions
from skyrocket.format.dtypes import Int64s
from skyrocket.format.record import CrcCheck, WalkEnd, decode_records, encode_blank
from skyrocket.format.record import RecordWalk as ReferenceWalk
from skyrocket.format.record_search import find_record
from tests.golden_store import GOLDEN_STORES, GoldenStore
from tests.unit.pipeline.records import Row, log_of, property_blocks, record, record_fields, reference_rows

ALL = arrow_schema()
RAW = arrow_schema(["properties"], "raw")
BASE = 1 << 40
patient = settings(max_examples=25, suppress_health_check=[HealthCheck.too_slow])  # busy machines draw slowly


def decoded(log: bytes, decompress: bool = True) -> list[Row]:
    found = record_positions(log, 0, len(log), BASE)
    assert not found.damage
    rows: list[Row] = decode(log, found.positions, ALL, "broker-a", decompress).to_pylist()
    return rows


def _all(log: bytes) -> Int64s:
    return record_positions(log, 0, len(log), BASE).positions


@patient
@given(st.lists(record_fields(), max_size=8), st.booleans())
def test_columns_say_what_the_reference_decoder_says(records: list[Row], decompress: bool) -> None:
    log = log_of(records, BASE)
    expected: list[Row] = []
    for position in record_positions(log, 0, len(log), BASE).positions.tolist():
        expected += reference_rows(log, position, "broker-a", decompress=decompress)
    assert decoded(log, decompress=decompress) == [{name: row[name] for name in ALL.names} for row in expected]


@patient
@given(st.lists(property_blocks, max_size=12))
def test_odd_property_blocks_do_not_disturb_their_neighbours(blocks: list[bytes]) -> None:
    log = log_of([{"properties": block} for block in blocks], BASE)
    rows = decoded(log)
    assert [row["properties"] for row in rows] == [list(m.properties.items()) for m in decode_records(log)]
    assert [row["tags"] for row in rows] == [m.tags for m in decode_records(log)]


_names = st.text(st.characters(min_codepoint=3, max_codepoint=0x17F), min_size=1, max_size=18)
_values = st.text(st.characters(min_codepoint=3, codec="utf-8"), min_size=1, max_size=5)


@patient
@given(st.lists(_names, min_size=1, max_size=4, unique=True), st.integers(2, 9), st.booleans(), st.data())
def test_blocks_of_the_same_names_and_one_that_differs_by_a_letter_are_told_apart(
    names: list[str], count: int, closed: bool, data: st.DataObject
) -> None:
    rows = [{name: data.draw(_values) for name in names} for _ in range(count)]
    other = data.draw(st.integers(0, count - 1))
    changed, letter = data.draw(st.sampled_from(names)), data.draw(st.sampled_from("xyz"))
    rows[other] = {(name[:-1] + letter if name == changed else name): value for name, value in rows[other].items()}
    text = ["\2".join(f"{name}\1{value}" for name, value in row.items()) for row in rows]
    log = log_of([{"properties": (block + "\2" * closed).encode()} for block in text], BASE)
    assert [dict(row["properties"]) for row in decoded(log)] == rows
    for name in (names[0], changed):
        column = PropertyBlocks(decode(log, _all(log), RAW, None, properties="raw").column(0)).column(name)
        assert column.to_pylist() == [row.get(name) for row in rows]


@pytest.mark.parametrize("size", [0, -1, -(1 << 31), 90, (1 << 31) - 1])
def test_a_size_that_leads_nowhere_ends_the_chain_at_its_record(size: int) -> None:
    log = bytearray(log_of([{}, {}, {}, {}], BASE))
    positions = _all(bytes(log)).tolist()
    log[positions[2] : positions[2] + 4] = size.to_bytes(4, "big", signed=True)
    found = record_positions(bytes(log), 0, len(log), BASE)
    assert found.positions.tolist() == [*positions[:2], positions[3]]
    assert [(region.position, region.length) for region in found.damage] == [
        (positions[2], positions[3] - positions[2])
    ]


@pytest.mark.parametrize("before", [0, 1, 2, 3, 4, 8])
def test_a_record_behind_zeros_is_found_wherever_the_search_is_cut(before: int) -> None:
    place = (1 << 20) - before  # the search goes in steps of a mebibyte
    log = bytes(place) + log_of([{}], BASE + place)
    assert find_record(log, 0, len(log), BASE) == place


@patient
@given(st.lists(record_fields(), min_size=1, max_size=6), st.data())
def test_any_damage_is_found_where_the_reference_walk_finds_it(records: list[Row], data: st.DataObject) -> None:
    log = bytearray(log_of(records, BASE))
    for _ in range(data.draw(st.integers(1, 3))):
        log[data.draw(st.integers(0, len(log) - 1))] = data.draw(st.integers(0, 255))
    expected: list[int] = []
    regions: list[tuple[int, int]] = []
    position = 0
    while position < len(log):
        walk = ReferenceWalk(bytes(log), BASE, position, crc=CrcCheck.NONE)
        expected += [head.physical_offset - BASE for head in walk]
        position = walk.position
        if walk.end in (WalkEnd.LIMIT, WalkEnd.BLANK):
            break
        behind = next((at for at in range(position + 1, len(log)) if _whole(bytes(log), at)), len(log))
        if walk.end is not WalkEnd.ZERO or behind < len(log):
            regions.append((position, behind - position))
        position = behind
    found = record_positions(bytes(log), 0, len(log), BASE)
    assert found.positions.tolist() == expected
    assert [(region.position, region.length) for region in found.damage] == regions


def _whole(log: bytes, position: int) -> bool:
    return any(True for _ in ReferenceWalk(log, BASE, position, crc=CrcCheck.NONE))


@patient
@given(st.lists(record_fields(), min_size=1, max_size=8), st.data())
def test_splits_at_any_byte_give_every_record_once(records: list[Row], data: st.DataObject) -> None:
    log = log_of(records, BASE)
    cuts = sorted(data.draw(st.lists(st.integers(0, len(log)), max_size=5)))
    borders = [0, *cuts, len(log)]
    found: list[int] = []
    for begin, end in pairwise(borders):
        first = find_record(log, begin, end, BASE)
        if first is not None:
            found += record_positions(log, first, end, BASE).positions.tolist()
    assert found == record_positions(log, 0, len(log), BASE).positions.tolist()


@pytest.mark.parametrize("golden", GOLDEN_STORES, ids=str)
def test_golden_logs_decode_as_the_reference_decodes_them(golden: GoldenStore, tmp_path: Path) -> None:
    golden.extract(tmp_path)
    for path in sorted(tmp_path.glob("**/commitlog/[0-9]*")):
        log, base = path.read_bytes(), int(path.name)
        reference = ReferenceWalk(log, base)
        expected = [head.physical_offset - base for head in reference]
        found = record_positions(log, 0, len(log), base)
        assert found.positions.tolist()[: len(expected)] == expected
        assert found.end is reference.end or found.damage
        rows = decode(log, found.positions, ALL, "b").to_pylist()
        wanted = [row for position in found.positions.tolist() for row in reference_rows(log, position, "b")]
        assert rows == [{name: row[name] for name in ALL.names} for row in wanted]


def test_a_pull_answer_needs_no_physical_offsets() -> None:
    answer = record(500) + record(9000, body=b"second") + record(20)
    found = record_positions(answer, 0, len(answer), None)
    rows = decode(answer, found.positions, arrow_schema(["commitLogOffset", "body"]), "b")
    assert rows.to_pydict() == {"commitLogOffset": [500, 9000, 20], "body": [b"body", b"second", b"body"]}
    assert found.damage == []


def test_a_cut_pull_answer_is_damage_from_the_broken_record_on() -> None:
    answer = record(0) + record(200)[:-1]
    found = record_positions(answer, 0, len(answer), None)
    assert found.positions.tolist() == [0]
    (damage,) = found.damage
    assert (damage.position, damage.length) == (len(record(0)), len(record(200)) - 1)


def test_a_blank_ends_the_walk_and_what_follows_is_not_looked_at() -> None:
    log = record(BASE) + encode_blank(40) + bytes(32)
    found = record_positions(log, 0, len(log), BASE)
    assert (found.positions.tolist(), found.damage, found.end) == ([0], [], WalkEnd.BLANK)


def test_a_zero_tail_is_an_end_and_a_hole_before_a_record_is_damage() -> None:
    first = record(BASE)
    tail = record_positions(first + bytes(500), 0, len(first) + 500, BASE)
    assert (tail.end, tail.damage, tail.stop) == (WalkEnd.ZERO, [], len(first))
    hole = first + bytes(500) + record(BASE + len(first) + 500)
    found = record_positions(hole, 0, len(hole), BASE)
    assert found.damage == [Damage(len(first), 500, "zeros where a record belongs")]
    assert found.positions.tolist() == [0, len(first) + 500]


def test_a_record_that_stands_elsewhere_is_not_taken_for_one() -> None:
    log = record(BASE, body=b"x" * 50 + record(BASE)) + b"\xff" * 9 + record(BASE)  # copies of another place
    found = record_positions(log, 0, len(log), BASE)
    assert found.positions.tolist() == [0]
    assert [region.position + region.length for region in found.damage] == [len(log)]


def test_a_body_that_does_not_inflate_names_its_place() -> None:
    log = record(BASE) + record(BASE + len(record(BASE)), sys_flag=1, body=b"no zlib")
    positions = record_positions(log, 0, len(log), BASE).positions
    with pytest.raises(BadBody, match=f"physical offset {BASE + len(record(BASE))}.*ZLIB") as caught:
        decode(log, positions, ALL, "b")
    assert caught.value.position == len(record(BASE))
    assert decode(log, positions, ALL, "b", decompress=False).num_rows == 2


def test_decoding_at_a_place_without_a_record_is_refused() -> None:
    log = record(BASE) + record(BASE)
    with pytest.raises(CorruptRecord, match="no whole record stands at byte 5"):
        decode(log, np.array([0, 5]), ALL, "b")


def test_raw_properties_are_the_stored_bytes() -> None:
    log = record(BASE, properties=b"a\x01b\x02broken") + record(BASE, properties=b"")
    wanted = arrow_schema(["properties"], "raw")
    batch = decode(log, np.array([0, len(log) - len(record(BASE))]), wanted, "b", properties="raw")
    assert batch.column(0).to_pylist() == [b"a\x01b\x02broken", b""]
    assert batch.schema.field("properties").type == pa.binary()


def test_no_records_are_an_empty_batch_with_every_column() -> None:
    assert decode(b"", np.empty(0, dtype=np.int64), ALL, "b").schema == ALL
