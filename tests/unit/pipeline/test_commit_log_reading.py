"""Splits of log files → rows: golden stores, damage, the live end of a log, choice of records. Without Spark."""

from dataclasses import replace
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet
import pytest

from skyrocket.columns.schema import arrow_schema
from skyrocket.errors import CorruptFile
from skyrocket.format import sys_flag as flags
from skyrocket.format.batch import BatchElement, encode_batch
from skyrocket.format.record import decode_records, encode_blank
from skyrocket.offline.store_files import NotAStore
from skyrocket.pipeline.commit_log import walk
from skyrocket.pipeline.commit_log.damage import DAMAGE_SCHEMA
from skyrocket.pipeline.commit_log.data_source import plan_splits
from skyrocket.pipeline.commit_log.log_files import find_log_files
from skyrocket.pipeline.commit_log.reading import SplitReader
from skyrocket.pipeline.commit_log.settings import read_settings
from skyrocket.pipeline.options import OptionError
from tests.golden_store import GOLDEN_STORES, GoldenStore
from tests.unit.pipeline.records import Row, log_of, record

FILE_SIZE = 4096
SMALL = arrow_schema(["topic", "queueOffset", "commitLogOffset", "body"])


@pytest.fixture(autouse=True)
def no_waiting(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(walk, "SECOND_LOOK_S", 0)


def read(path: Path, wanted: pa.Schema = SMALL, **options: Any) -> list[Row]:
    settings = read_settings({"path": str(path)} | {name: str(value) for name, value in options.items()})
    rows: list[Row] = []
    for split in plan_splits(settings):
        for batch in SplitReader(split, settings, wanted).messages():
            assert batch.schema == wanted
            rows += batch.to_pylist()
    return rows


def damage(path: Path, **options: Any) -> list[tuple[str, int, int, str]]:
    settings = read_settings({"path": str(path), "view": "damage"} | {name: str(v) for name, v in options.items()})
    rows: list[Row] = []
    for split in plan_splits(settings):
        for batch in SplitReader(split, settings, DAMAGE_SCHEMA).damaged_regions():
            rows += batch.to_pylist()
    assert all(int(row["file"]) + row["position"] == row["physicalOffset"] for row in rows)
    return [(row["file"], row["position"], row["length"], row["cause"]) for row in rows]


def offsets(rows: list[Row]) -> list[int]:
    return [row["commitLogOffset"] for row in rows]


def write_log(store: Path, records: int, **fields: Any) -> list[int]:
    """A log of several files as a broker writes it; returns where its records stand."""
    (store / "commitlog").mkdir(parents=True)
    places, log, base = [], bytearray(), 0
    for number in range(records):
        data = record(base + len(log), queue_offset=number, body=f"body {number}".encode(), **fields)
        if len(log) + len(data) + 8 > FILE_SIZE:
            log += encode_blank(FILE_SIZE - len(log)) + bytes(FILE_SIZE - len(log) - 8)
            write_file(store, base, log)
            base, log = base + FILE_SIZE, bytearray()
            data = record(base, queue_offset=number, body=f"body {number}".encode(), **fields)
        places.append(base + len(log))
        log += data
    write_file(store, base, log)
    return places


def write_file(store: Path, base: int, log: bytes | bytearray) -> None:
    (store / "commitlog" / f"{base:020d}").write_bytes(bytes(log).ljust(FILE_SIZE, b"\0"))


def change(store: Path, offset: int, data: bytes) -> None:
    path = store / "commitlog" / f"{offset // FILE_SIZE * FILE_SIZE:020d}"
    content = bytearray(path.read_bytes())
    content[offset % FILE_SIZE : offset % FILE_SIZE + len(data)] = data
    path.write_bytes(content)


# -- whole logs --------------------------------------------------------------------------------------------


SOME = [golden for golden in GOLDEN_STORES if golden.name in ("torn", "torn-recovered", "ipv6", "expired", "crc")]


@pytest.mark.parametrize("golden", SOME, ids=str)
def test_every_message_of_rocketmqs_stores_is_read_once_in_small_splits(golden: GoldenStore, tmp_path: Path) -> None:
    golden.extract(tmp_path)
    expected = [
        line["physicalOffset"]
        for line in golden.messages()
        if line["kind"] == "message" and not line.get("afterRecoveredEnd")
    ]
    assert offsets(read(tmp_path, splitBytes=20_000)) == expected
    assert damage(tmp_path) == []


def test_splits_of_any_size_give_the_same_rows(tmp_path: Path) -> None:
    places = write_log(tmp_path, 100)
    for split_bytes in (50, 1000, 5000, 1 << 30):
        assert offsets(read(tmp_path, splitBytes=split_bytes)) == places
    assert offsets(read(tmp_path / "commitlog")) == places


def test_several_stores_are_read_with_the_name_of_each_broker(tmp_path: Path) -> None:
    write_log(tmp_path / "a", 2)
    write_log(tmp_path / "b", 1)
    paths = f"{tmp_path / 'a'},{tmp_path / 'b'}"
    settings = read_settings({"paths": paths, "brokerName": "broker-a,broker-b"})
    names = [
        row["brokerName"]
        for split in plan_splits(settings)
        for batch in SplitReader(split, settings, arrow_schema(["brokerName"])).messages()
        for row in batch.to_pylist()
    ]
    assert names == ["broker-a", "broker-a", "broker-b"]


def test_physical_offsets_bound_what_is_read_and_may_lie_inside_a_record(tmp_path: Path) -> None:
    places = write_log(tmp_path, 60)
    assert offsets(read(tmp_path, startingOffset=places[10], endingOffset=places[50])) == places[10:50]
    assert offsets(read(tmp_path, startingOffset=places[9] + 1, endingOffset=places[49] + 1)) == places[10:50]


def test_a_file_that_was_prepared_ahead_is_no_damage(tmp_path: Path) -> None:
    places = write_log(tmp_path, 40)
    write_file(tmp_path, places[-1] // FILE_SIZE * FILE_SIZE + FILE_SIZE, b"")
    assert offsets(read(tmp_path)) == places
    assert damage(tmp_path) == []


# -- choice ------------------------------------------------------------------------------------------------


def choice_store(store: Path) -> None:
    (store / "commitlog").mkdir(parents=True)
    elements = [BatchElement(0, b"in-1", b"TAGS\x01a\x02KEYS\x01k9\x02"), BatchElement(0, b"in-2", b"TAGS\x01b\x02")]
    records: list[Row] = [
        {"topic": "t1", "properties": b"TAGS\x01a\x02KEYS\x01k1 k2\x02UNIQ_KEY\x01u1\x02", "body": b"0"},
        {"topic": "t2", "properties": b"TAGS\x01a\x02KEYS\x01k2\x02", "body": b"1"},
        {"topic": "t1", "properties": b"TAGS\x01b\x02KEYS\x01k12\x02", "body": b"2"},
        {"topic": "t1", "body": encode_batch(elements), "sys_flag": flags.INNER_BATCH | flags.NEED_UNWRAP},
        {"topic": "t1", "properties": b"UNIQ_KEY\x01u2\x02", "body": b"4"},
    ]
    write_file(store, 0, log_of([row | {"store_timestamp": 1000 + number} for number, row in enumerate(records)]))


@pytest.mark.parametrize(
    ("options", "bodies"),
    [
        ({"topics": "t2"}, [b"1"]),
        ({"tags": "a"}, [b"0", b"1", b"in-1"]),
        ({"tags": "b || c", "topics": "t1"}, [b"2", b"in-2"]),
        ({"keys": "k2"}, [b"0", b"1"]),
        ({"keys": "u2,k9"}, [b"in-1", b"4"]),
        ({"startingTimestamp": 1001, "endingTimestamp": 1003}, [b"1", b"2"]),
        ({"topics": "none"}, []),
    ],
    ids=str,
)
def test_options_choose_messages(options: dict[str, Any], bodies: list[bytes], tmp_path: Path) -> None:
    choice_store(tmp_path)
    assert [row["body"] for row in read(tmp_path, **options)] == bodies
    assert [row["body"] for row in read(tmp_path, arrow_schema(["body"]), **options)] == bodies


# -- damage ------------------------------------------------------------------------------------------------


def test_damage_in_the_middle_fails_the_read_with_place_cause_and_next_step(tmp_path: Path) -> None:
    places = write_log(tmp_path, 60)
    change(tmp_path, places[30] + 4, b"\xff")
    with pytest.raises(CorruptFile, match=f"physical offset {places[30]}.*unknown magic.*onDamage") as caught:
        read(tmp_path)
    assert f"at byte {places[30] % FILE_SIZE}:" in str(caught.value)
    assert Path(caught.value.path).name == f"{places[30] // FILE_SIZE * FILE_SIZE:020d}"


@pytest.mark.parametrize("split_bytes", [60, 700, 1 << 30])
def test_reading_goes_on_behind_damage_and_each_region_is_reported_once(tmp_path: Path, split_bytes: int) -> None:
    places = write_log(tmp_path, 60)
    change(tmp_path, places[10], b"\x00\x00\x00\x07")
    change(tmp_path, places[11] + 30, b"\xff")
    change(tmp_path, places[40], bytes(60))
    left = [place for number, place in enumerate(places) if number not in (10, 11, 40)]
    assert offsets(read(tmp_path, onDamage="report", splitBytes=split_bytes)) == left
    found = damage(tmp_path, splitBytes=split_bytes)
    assert [(int(file) + position, length) for file, position, length, _ in found] == [
        (places[10], places[12] - places[10]),
        (places[40], places[41] - places[40]),
    ]


def test_damage_that_begins_where_a_split_ends_is_not_passed_over(tmp_path: Path) -> None:
    places = write_log(tmp_path, 20)
    change(tmp_path, places[10] + 4, b"\xff")
    settings = read_settings({"path": str(tmp_path), "view": "damage"})
    (whole,) = plan_splits(settings)
    for border in range(places[9], places[11] + 1):
        halves = [replace(whole, end=border), replace(whole, begin=border, at_record=False)]
        found = [row for half in halves for row in damaged_rows(SplitReader(half, settings, DAMAGE_SCHEMA))]
        assert [(row["position"], row["length"]) for row in found] == [(places[10], places[11] - places[10])], border


def damaged_rows(reader: SplitReader) -> list[Row]:
    return [row for batch in reader.damaged_regions() for row in batch.to_pylist()]


def test_a_missing_file_and_a_short_one_are_damage(tmp_path: Path) -> None:
    places = write_log(tmp_path, 120)
    files = find_log_files(str(tmp_path))
    assert len(files) >= 4
    Path(files[1].path).unlink()
    Path(files[2].path).write_bytes(Path(files[2].path).read_bytes()[:1000])
    lost = damage(tmp_path)
    assert (lost[0][1], lost[0][2], lost[0][3]) == (FILE_SIZE, FILE_SIZE, "the log has no file for these offsets")
    assert [region[0] for region in lost[1:]] == [Path(files[2].path).name] * 2
    assert sum(region[2] for region in lost[1:]) + lost[1][1] == FILE_SIZE
    with pytest.raises(CorruptFile, match="no file for these offsets"):
        read(tmp_path)
    rows = offsets(read(tmp_path, onDamage="report"))
    assert [p for p in places if p < FILE_SIZE or p >= 3 * FILE_SIZE] == [
        p for p in rows if p < FILE_SIZE or p >= 3 * FILE_SIZE
    ]


def test_zeros_in_an_older_file_are_damage_up_to_its_end(tmp_path: Path) -> None:
    places = write_log(tmp_path, 60)
    change(tmp_path, places[20], bytes(FILE_SIZE - places[20] % FILE_SIZE))
    ((file, position, length, cause),) = damage(tmp_path)
    assert (int(file) + position, position + length) == (places[20], FILE_SIZE)
    assert "zeros" in cause


def test_a_wrong_checksum_is_found_when_asked_for(tmp_path: Path) -> None:
    places = write_log(tmp_path, 30)
    change(tmp_path, places[5] + 90, b"!")
    assert offsets(read(tmp_path)) == places
    assert offsets(read(tmp_path, verifyCrc=True, onDamage="report")) == places[:5] + places[6:]
    ((_, position, length, cause),) = damage(tmp_path, verifyCrc=True)
    assert (position, length) == (places[5], places[6] - places[5])
    assert "body CRC" in cause


def test_a_body_that_does_not_inflate_is_damage_unless_bodies_stay_packed(tmp_path: Path) -> None:
    (tmp_path / "commitlog").mkdir()
    log = log_of([{"body": b"1"}, {"body": b"no zlib", "sys_flag": flags.COMPRESSED}, {"body": b"3"}])
    write_file(tmp_path, 0, log)
    assert [row["body"] for row in read(tmp_path, onDamage="report")] == [b"1", b"3"]
    assert len(read(tmp_path, decompress="false")) == 3
    second = next(iter(decode_records(log))).record_size
    assert [(row[1], row[3].count("ZLIB")) for row in damage(tmp_path)] == [(second, 1)]
    with pytest.raises(CorruptFile, match="ZLIB"):
        read(tmp_path)


def test_damage_is_kept_beside_the_run_and_forgotten_when_the_log_is_whole_again(tmp_path: Path) -> None:
    places = write_log(tmp_path / "store", 30)
    aside = tmp_path / "aside"
    whole = (tmp_path / "store" / "commitlog" / f"{0:020d}").read_bytes()
    change(tmp_path / "store", places[5] + 4, b"\0")
    for _ in range(2):
        read(tmp_path / "store", onDamage="report", damageLocation=aside)
        (row,) = pa.parquet.read_table(aside).to_pylist()
        assert (row["physicalOffset"], row["length"]) == (places[5], places[6] - places[5])
    (tmp_path / "store" / "commitlog" / f"{0:020d}").write_bytes(whole)
    read(tmp_path / "store", onDamage="report", damageLocation=aside)
    assert list(aside.iterdir()) == []


# -- the live end --------------------------------------------------------------------------------------------


def test_a_record_that_is_being_copied_is_no_damage_at_any_byte(tmp_path: Path) -> None:
    places = write_log(tmp_path, 5)
    start = places[-1] + len(record(0, body=b"body 4"))
    new = record(start, body=b"arriving", properties=b"TAGS\x01a\x02")
    for copied in range(1, len(new) + 1):
        change(tmp_path, start, new[:copied].ljust(len(new), b"\0"))
        whole = copied == len(new)
        assert offsets(read(tmp_path)) == [*places, *([start] if whole else [])], f"{copied} of {len(new)} bytes"


def test_a_broken_record_at_the_end_whose_last_byte_is_there_is_damage(tmp_path: Path) -> None:
    places = write_log(tmp_path, 5, properties=b"TAGS\x01a\x02")
    change(tmp_path, places[-1] + 30, b"\xff")
    with pytest.raises(CorruptFile, match="stored physical offset"):
        read(tmp_path)
    change(tmp_path, places[-1], record(places[-1], body=b"body 4", properties=b"TAGS\x01a\x02"))
    change(tmp_path, places[-1] + 90, b"!")
    with pytest.raises(CorruptFile, match="CRC"):
        read(tmp_path)


def test_what_a_second_look_finds_whole_was_only_being_written(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    places = write_log(tmp_path, 5, properties=b"TAGS\x01a\x02")
    path = tmp_path / "commitlog" / f"{0:020d}"
    whole = path.read_bytes()
    change(tmp_path, places[-1] + 30, b"\xff")

    def finish_the_write(_: float) -> None:
        with path.open("r+b") as file:
            file.write(whole)

    monkeypatch.setattr("skyrocket.pipeline.commit_log.walk.time.sleep", finish_the_write)
    assert offsets(read(tmp_path)) == places[:-1]


def test_a_file_deleted_while_it_is_read_is_read_to_its_end(tmp_path: Path) -> None:
    places = write_log(tmp_path, 20)
    settings = read_settings({"path": str(tmp_path)})
    (split,) = plan_splits(settings)
    from skyrocket.pipeline.commit_log.log_files import mapped
    from skyrocket.pipeline.commit_log.walk import walk_split

    with mapped(split.path) as buffer:
        Path(split.path).unlink()
        parts = [item for item in walk_split(buffer, split) if not isinstance(item, tuple)]
    assert [int(p) for part in parts for p in part.positions] == places
    with pytest.raises(CorruptFile, match="deleted after the read was planned"):
        list(SplitReader(split, settings, SMALL).messages())


# -- errors of use -------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("options", "text"),
    [
        ({"topcs": "a"}, 'did you mean "topics"'),
        ({"onDamage": "skip"}, "one of fail, report"),
        ({"damageLocation": "/tmp/x"}, "onDamage"),
        ({"properties": "json"}, "one of map, raw, none"),
        ({"brokerName": "a,b"}, "2 names for 1 paths"),
    ],
    ids=str,
)
def test_wrong_options_are_refused_with_what_would_be_right(options: dict[str, str], text: str) -> None:
    with pytest.raises(OptionError, match=text):
        read_settings({"path": "/data"} | options)


def test_a_path_that_is_no_store_is_refused_with_the_next_step(tmp_path: Path) -> None:
    with pytest.raises(NotAStore, match="does not exist"):
        find_log_files(str(tmp_path / "nowhere"))
    write_log(tmp_path / "store", 1)
    with pytest.raises(NotAStore, match=f"Did you mean {tmp_path / 'store'}"):
        find_log_files(str(tmp_path))
    with pytest.raises(NotAStore, match="mount it or copy"):
        find_log_files("s3://bucket/store")
    with pytest.raises(NotAStore, match=r"file://otherhost/.* is not a path of a mounted file system"):
        find_log_files(f"file://otherhost{tmp_path / 'store'}")
