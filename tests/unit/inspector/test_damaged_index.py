"""Damage in index files is found, in the file and at the byte where it is."""

from struct import Struct

import pytest

from skyrocket.format.index_layout import ENTRY, HEADER, entry_position, slot_position
from skyrocket.inspector.findings import FindingKind, Severity
from tests.unit.inspector.conftest import Copies
from tests.unit.inspector.damage import DamagedStore

pytestmark = pytest.mark.requirement("A019", "A020")

SLOTS = 500
I32 = Struct(">i")


def some_file(store: DamagedStore) -> str:
    return store.files("index")[3]


@pytest.mark.parametrize(
    ("number", "part", "byte"), [(1, "hash", 2), (200, "offset", 10), (399, "previous", 19), (1, "offset", 11)]
)
def test_a_flipped_bit_in_an_entry_is_found(number: int, part: str, byte: int, store: DamagedStore) -> None:
    file = some_file(store)
    store.flip(file, entry_position(SLOTS, number) + byte)
    assert file in {error.file for error in store.errors()}


def test_a_wrong_time_difference_is_found(store: DamagedStore) -> None:
    file = some_file(store)
    store.flip(file, entry_position(SLOTS, 200) + 15)
    finding = store.assert_found(FindingKind.INDEX_ENTRY_WRONG, file)
    assert finding.position == entry_position(SLOTS, 200)


def test_a_wrong_slot_is_found(store: DamagedStore) -> None:
    file = some_file(store)
    for slot in (0, 250, 499):
        store.flip(file, slot_position(slot) + 3)
    errors = [error for error in store.errors() if error.kind is FindingKind.INDEX_CHAIN]
    assert [error.position for error in errors] == [slot_position(0), slot_position(250), slot_position(499)]


def test_a_chain_that_runs_in_a_circle_is_found(store: DamagedStore) -> None:
    file = some_file(store)
    store.write(file, entry_position(SLOTS, 200) + 16, I32.pack(200))
    assert "chained to entry 200" in store.assert_found(FindingKind.INDEX_CHAIN, file).what


@pytest.mark.parametrize(
    ("field", "byte"),
    [("begin time", 7), ("end time", 15), ("begin offset", 23), ("end offset", 31), ("slots", 35), ("count", 39)],
)
def test_a_flipped_bit_in_the_header_is_found(field: str, byte: int, store: DamagedStore) -> None:
    file = some_file(store)
    store.flip(file, byte, 1)
    store.assert_found(FindingKind.INDEX_HEADER, file)


@pytest.mark.parametrize("byte", [4, 22, 30, 34, 38])
def test_a_damaged_header_of_the_only_file_does_not_mislead_the_shape(byte: int, copy_of: Copies) -> None:
    store = copy_of("5.4.0", "ipv6")
    file = store.files("index")[0]
    store.flip(file, byte, 2)
    store.assert_found(FindingKind.INDEX_HEADER, file)


@pytest.mark.parametrize("place", [0, 3, -1], ids=["first", "middle", "last"])
def test_a_deleted_index_file_leaves_keys_missing(place: int, store: DamagedStore) -> None:
    store.delete(store.files("index")[place])
    errors = store.errors()
    assert FindingKind.INDEX_KEY_MISSING in {error.kind for error in errors}
    assert {error.file for error in errors} <= set(store.files("index"))


def test_a_truncated_index_file_is_found(store: DamagedStore) -> None:
    file = some_file(store)
    store.replace(file, store.read(file)[:5000])
    assert file in {error.file for error in store.errors()}


def test_a_zeroed_page_is_found(store: DamagedStore) -> None:
    file = some_file(store)
    store.write(file, 4096, bytes(4096))
    store.assert_found(FindingKind.INDEX_CHAIN, file)


def test_a_garbage_file_is_found(store: DamagedStore) -> None:
    store.replace("index/notes.txt", b"garbage")
    store.assert_found(FindingKind.STRAY_FILE, "index/notes.txt")


def test_a_missing_tag_entry_is_found_where_tags_are_indexed(copy_of: Copies) -> None:
    store = copy_of("5.4.0", "ipv6")
    file = store.files("index")[0]
    data = store.read(file)
    # The third entry is that of the first record's tags: make it the unique key once more.
    key_hash, offset, seconds, _ = ENTRY.unpack_from(data, entry_position(SLOTS, 1))
    store.write(file, entry_position(SLOTS, 3), ENTRY.pack(key_hash, offset, seconds, 1))
    assert file in {error.file for error in store.errors()}


def test_entries_behind_the_end_of_the_log_are_a_warning_after_an_unclean_stop(copy_of: Copies) -> None:
    store = copy_of("5.4.0", "killed")
    file = store.files("index")[-1]
    header = HEADER.unpack_from(store.read(file))
    number = header[5] - 1
    store.write(file, entry_position(SLOTS, number) + 4, Struct(">q").pack(1 << 40))
    stale = [finding for finding in store.verify().findings if finding.kind is FindingKind.INDEX_ENTRY_STALE]
    assert [(finding.file, finding.severity) for finding in stale] == [(file, Severity.WARNING)]


def test_a_store_without_index_files_is_a_warning(copy_of: Copies) -> None:
    store = copy_of("4.9.7", "ipv6")
    store.delete("index")
    result = store.verify()
    assert not result.has_problems()
    assert FindingKind.INDEX_ABSENT in {finding.kind for finding in result.findings}
