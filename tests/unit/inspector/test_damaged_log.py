"""Damage in the commit log is found, and so is everything behind it."""

from struct import Struct

import pytest

from skyrocket.format import record
from skyrocket.inspector.findings import FindingKind, Severity
from tests.unit.inspector.conftest import Copies
from tests.unit.inspector.damage import DamagedStore

FIRST = "commitlog/00000000000000000000"
SECOND = "commitlog/00000000000000262144"
I32 = Struct(">i")


def middle(store: DamagedStore, file: str = SECOND) -> record.RecordHead:
    """A record with body, topic and properties in the middle of a file."""
    return store.log_records(file)[20]


def parts(store: DamagedStore, head: record.RecordHead, file: str = SECOND) -> dict[str, int]:
    """Where the parts of a record stand in its file."""
    position = head.physical_offset - int(file.rpartition("/")[2])
    layout = record.head_struct(head.sys_flag)
    body_length = layout.unpack_from(store.read(file), position)[14]
    return {
        "size": position,
        "magic": position + 4,
        "crc": position + 8,
        "queue id": position + 12,
        "queue offset": position + 20,
        "physical offset": position + 28,
        "body": position + layout.size + body_length // 2,
        "body length": position + layout.size - 4,
        "topic length": position + layout.size + body_length,
        "topic": position + layout.size + body_length + 3,
        "properties length": position + head.size - len(head.properties) - 2,
    }


@pytest.mark.requirement("A025")
@pytest.mark.parametrize(
    "part",
    ["size", "magic", "crc", "physical offset", "body", "body length", "topic length", "properties length"],
)
def test_a_flipped_bit_makes_the_record_damaged(part: str, store: DamagedStore) -> None:
    head = middle(store)
    store.flip(SECOND, parts(store, head)[part])
    # One damage is one finding, though queue and index point to the record as well.
    found = [(error.kind, error.file, error.position) for error in store.errors()]
    assert found == [(FindingKind.RECORD_DAMAGED, SECOND, head.physical_offset - 262144)]


@pytest.mark.requirement("A017")
@pytest.mark.parametrize("part", ["queue id", "queue offset", "topic"])
def test_a_record_that_names_another_queue_is_found_by_the_entry_it_left(part: str, store: DamagedStore) -> None:
    head = middle(store)
    store.flip(SECOND, parts(store, head)[part] + (3 if part == "queue id" else 0))
    directory = f"consumequeue/{head.topic.decode()}/{head.queue_id}"
    errors = [e for e in store.errors() if e.kind is FindingKind.ENTRY_ORPHAN and e.file.startswith(directory)]
    assert [error.position for error in errors] == [head.queue_offset * 20 % 2000]


def test_records_behind_a_damaged_one_are_still_checked(store: DamagedStore) -> None:
    before = store.verify().extent.records
    head = middle(store)
    store.flip(SECOND, parts(store, head)["size"] + 1, 4)
    assert store.verify().extent.records == before - 1


@pytest.mark.requirement("A027")
def test_a_file_without_its_blank_is_damaged(store: DamagedStore) -> None:
    last = store.log_records(FIRST)[-1]
    end = last.physical_offset + last.size
    store.flip(FIRST, end + 5)
    store.assert_found(FindingKind.RECORD_DAMAGED, FIRST)


@pytest.mark.requirement("A027")
def test_a_blank_that_does_not_fill_its_file_is_found(store: DamagedStore) -> None:
    last = store.log_records(FIRST)[-1]
    end = last.physical_offset + last.size
    store.write(FIRST, end, I32.pack(I32.unpack_from(store.read(FIRST), end)[0] - 16))
    store.assert_found(FindingKind.BLANK_WRONG, FIRST)


@pytest.mark.requirement("A026")
def test_a_missing_middle_file_is_a_gap(store: DamagedStore) -> None:
    store.delete(SECOND)
    errors = store.errors()
    assert "commitlog/00000000000000524288" in {error.file for error in errors if error.kind is FindingKind.FILE_GAP}
    assert FindingKind.ENTRY_ORPHAN in {error.kind for error in errors}


def test_a_missing_last_file_is_a_lost_tail(store: DamagedStore) -> None:
    store.delete(store.files("commitlog")[-1])
    assert FindingKind.LOG_TAIL_LOST in {error.kind for error in store.errors()}


@pytest.mark.parametrize("size", [0, 7, 100_000])
def test_a_truncated_file_is_found(size: int, store: DamagedStore) -> None:
    store.replace(SECOND, store.read(SECOND)[:size])
    store.assert_found(FindingKind.FILE_SIZE, SECOND)


def test_a_zeroed_page_in_the_middle_is_found(store: DamagedStore) -> None:
    store.write(SECOND, 8192, bytes(4096))
    store.assert_found(FindingKind.RECORD_DAMAGED, SECOND)


def test_a_zeroed_tail_is_lost_in_a_closed_store(store: DamagedStore) -> None:
    last_file = store.files("commitlog")[-1]
    records = store.log_records(last_file)
    cut = records[-3].physical_offset - int(last_file.rpartition("/")[2])
    store.write(last_file, cut, bytes(262144 - cut))
    store.assert_found(FindingKind.LOG_TAIL_LOST, last_file)


@pytest.mark.parametrize("part", ["size", "magic", "crc", "body length"])
def test_damage_in_the_last_record_is_found_in_a_closed_store(part: str, store: DamagedStore) -> None:
    last_file = store.files("commitlog")[-1]
    head = store.log_records(last_file)[-1]
    store.flip(last_file, parts(store, head, last_file)[part] + 1, 3)
    store.assert_found(FindingKind.RECORD_DAMAGED, last_file)


def test_a_torn_last_record_is_only_a_warning_after_an_unclean_stop(store: DamagedStore) -> None:
    last_file = store.files("commitlog")[-1]
    head = store.log_records(last_file)[-1]
    store.flip(last_file, parts(store, head, last_file)["size"] + 1, 3)
    store.replace("abort", b"")
    store.delete("checkpoint")  # it says that the record had been flushed
    result = store.verify()
    assert not result.has_problems()
    kinds = {finding.kind for finding in result.findings if finding.severity is Severity.WARNING}
    assert {FindingKind.LOG_TAIL_TORN, FindingKind.ENTRY_STALE} <= kinds


def test_damage_before_intact_records_stays_an_error_after_an_unclean_stop(store: DamagedStore) -> None:
    store.replace("abort", b"")
    store.flip(SECOND, parts(store, middle(store))["magic"])
    store.assert_found(FindingKind.RECORD_DAMAGED, SECOND)


def test_old_bytes_behind_the_end_that_nothing_points_to_are_a_warning(store: DamagedStore) -> None:
    last_file = store.files("commitlog")[-1]
    head = store.log_records(last_file)[-1]
    end = head.physical_offset + head.size - int(last_file.rpartition("/")[2])
    store.write(last_file, end, b"what another message left behind")
    result = store.verify()
    assert not result.has_problems()
    assert FindingKind.STALE_BYTES in {finding.kind for finding in result.findings}


def test_a_store_time_that_stands_out_is_found(store: DamagedStore) -> None:
    position = parts(store, middle(store))["size"] + 56
    store.flip(SECOND, position + 3, 7)
    store.assert_found(FindingKind.STORE_TIME_STANDS_OUT, SECOND)


@pytest.mark.parametrize("name", ["00000000000000262145", "notes.txt"])
def test_a_garbage_file_in_the_log_is_found(name: str, store: DamagedStore) -> None:
    store.replace(f"commitlog/{name}", b"garbage")
    assert [
        error.file for error in store.errors() if error.kind in (FindingKind.STRAY_FILE, FindingKind.FILE_SIZE)
    ] == [f"commitlog/{name}"]


def test_the_whole_record_crc_finds_what_nothing_else_protects(copy_of: Copies) -> None:
    store = copy_of("5.4.0", "crc")
    head = store.log_records(FIRST)[3]
    store.flip(FIRST, head.physical_offset + 19)  # the application's flag
    finding = store.assert_found(FindingKind.RECORD_DAMAGED, FIRST)
    assert "whole-record CRC" in finding.what


def test_a_compressed_body_that_does_not_inflate_is_found(copy_of: Copies) -> None:
    store = copy_of("4.9.7", "ipv6")
    head = store.log_records(FIRST)[3]
    store.flip(FIRST, head.physical_offset + 39)  # the lowest bit of sysFlag: compressed
    store.assert_found(FindingKind.BODY_UNREADABLE, FIRST)
