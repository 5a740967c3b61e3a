"""Damage in consume queues is found, in the file and at the entry where it is."""

from struct import Struct

import pytest

from skyrocket.format.queue_entry import ENTRY, ENTRY_SIZE
from skyrocket.inspector.findings import FindingKind, Severity
from tests.unit.inspector.conftest import Copies
from tests.unit.inspector.damage import DamagedStore

pytestmark = pytest.mark.requirement("A009", "A017")

QUEUE = "consumequeue/TopicOrder/0"
FILE = f"{QUEUE}/00000000000000000000"
ENTRIES = 72
LONG_QUEUE = "consumequeue/TopicBusy/0"


def entry(store: DamagedStore, number: int) -> tuple[int, int, int]:
    physical_offset, size, tags_code = ENTRY.unpack_from(store.read(FILE), number * ENTRY_SIZE)
    return physical_offset, size, tags_code


@pytest.mark.parametrize(
    ("number", "field", "byte"),
    [(0, "offset", 6), (30, "size", 11), (ENTRIES - 1, "offset", 7), (30, "tags code", 19), (0, "tags code", 12)],
)
def test_a_flipped_bit_in_an_entry_is_found(number: int, field: str, byte: int, store: DamagedStore) -> None:
    store.flip(FILE, number * ENTRY_SIZE + byte)
    finding = store.assert_found(FindingKind.ENTRY_WRONG, FILE)
    assert finding.position == number * ENTRY_SIZE


def test_two_entries_that_changed_places_are_both_found(store: DamagedStore) -> None:
    first, second = entry(store, 10), entry(store, 11)
    store.write(FILE, 10 * ENTRY_SIZE, ENTRY.pack(*second) + ENTRY.pack(*first))
    errors = store.errors()
    assert [(error.kind, error.position) for error in errors] == [
        (FindingKind.ENTRY_WRONG, 200),
        (FindingKind.ENTRY_WRONG, 220),
    ]


def test_a_duplicated_entry_behind_the_last_is_found(store: DamagedStore) -> None:
    store.write(FILE, ENTRIES * ENTRY_SIZE, ENTRY.pack(*entry(store, ENTRIES - 1)))
    finding = store.assert_found(FindingKind.ENTRY_ORPHAN, FILE)
    assert finding.position == ENTRIES * ENTRY_SIZE
    assert f"record {ENTRIES - 1} of TopicOrder/0 stands" in finding.what


def test_an_entry_behind_the_end_of_the_log_is_stale_when_nothing_else_knows_of_it(store: DamagedStore) -> None:
    store.write(FILE, ENTRIES * ENTRY_SIZE, ENTRY.pack(1 << 40, 200, 0))
    result = store.verify()
    assert not result.has_problems()
    stale = [finding for finding in result.findings if finding.kind is FindingKind.ENTRY_STALE]
    assert [(finding.file, finding.severity) for finding in stale] == [(FILE, Severity.WARNING)]


def test_zeroed_entries_are_missing(store: DamagedStore) -> None:
    store.write(FILE, 10 * ENTRY_SIZE, bytes(3 * ENTRY_SIZE))
    finding = store.assert_found(FindingKind.ENTRY_MISSING, FILE)
    assert "queue offset 10 to 12" in finding.what


def test_a_zeroed_end_of_a_queue_is_missing(store: DamagedStore) -> None:
    store.write(FILE, (ENTRIES - 2) * ENTRY_SIZE, bytes(2 * ENTRY_SIZE))
    store.assert_found(FindingKind.ENTRY_MISSING, FILE)


@pytest.mark.requirement("A013")
@pytest.mark.parametrize("place", [0, 1, -1], ids=["first", "middle", "last"])
def test_a_deleted_queue_file_is_found(place: int, store: DamagedStore) -> None:
    file = store.files(LONG_QUEUE)[place]
    store.delete(file)
    store.assert_found(FindingKind.ENTRY_MISSING, file)


@pytest.mark.parametrize("directory", [QUEUE, "consumequeue/TopicOrder", "consumequeue"])
def test_a_deleted_directory_is_found(directory: str, store: DamagedStore) -> None:
    store.delete(directory)
    store.assert_found(FindingKind.ENTRY_MISSING, QUEUE)


def test_a_truncated_queue_file_is_found(store: DamagedStore) -> None:
    store.replace(FILE, store.read(FILE)[:1001])
    errors = {(error.kind, error.file) for error in store.errors()}
    assert (FindingKind.FILE_SIZE, FILE) in errors
    assert any(kind is FindingKind.ENTRY_MISSING and file.startswith(QUEUE) for kind, file in errors)


@pytest.mark.parametrize("name", [f"{QUEUE}/notes.txt", "consumequeue/notes.txt", "consumequeue/TopicOrder/x"])
def test_a_garbage_file_among_the_queues_is_found(name: str, store: DamagedStore) -> None:
    store.replace(name, b"garbage")
    store.assert_found(FindingKind.STRAY_FILE, name)


def test_queues_that_are_merely_behind_are_a_warning_after_an_unclean_stop(store: DamagedStore) -> None:
    store.write(FILE, (ENTRIES - 2) * ENTRY_SIZE, bytes(2 * ENTRY_SIZE))
    store.replace("abort", b"")
    store.delete("checkpoint")  # recovery then reads the whole log
    result = store.verify()
    assert not result.has_problems()
    assert FindingKind.QUEUES_BEHIND in {finding.kind for finding in result.findings}


def test_a_hole_inside_a_queue_stays_an_error_after_an_unclean_stop(store: DamagedStore) -> None:
    store.write(FILE, 10 * ENTRY_SIZE, bytes(ENTRY_SIZE))
    store.replace("abort", b"")
    store.delete("checkpoint")
    store.assert_found(FindingKind.ENTRY_MISSING, FILE)


def test_records_of_a_topic_that_was_deleted_are_a_note(copy_of: Copies) -> None:
    store = copy_of("4.9.7", "clean")
    for file in ("config/topics.json", "config/topics.json.bak"):
        store.replace(file, store.read(file).replace(b'"TopicOrder"', b'"TopicOther"'))
    store.delete("consumequeue/TopicOrder")
    findings = [f for f in store.verify().findings if f.kind in (FindingKind.TOPIC_DELETED, FindingKind.ENTRY_MISSING)]
    assert {(finding.kind, finding.severity) for finding in findings} == {(FindingKind.TOPIC_DELETED, Severity.NOTE)}


@pytest.mark.parametrize(("byte", "what"), [(3, "offset"), (27, "store time"), (35, "base"), (37, "count")])
def test_damage_in_a_batch_queue_is_found(byte: int, what: str, copy_of: Copies) -> None:
    store = copy_of("5.4.0", "clean")
    file = "batchconsumequeue/TopicBatchCq/0/00000000000000000000"
    store.flip(file, 2 * 46 + byte)
    errors = {(error.kind, error.file) for error in store.errors()}
    assert {(FindingKind.ENTRY_WRONG, file), (FindingKind.ENTRY_MISSING, file)} & errors


def test_damage_in_an_extension_file_is_found_at_the_entry_that_needs_it(copy_of: Copies) -> None:
    store = copy_of("5.4.0", "cqext")
    store.flip("consumequeue_ext/TopicTiny/0/00000000000000000000", 20 + 9)
    store.assert_found(FindingKind.EXT_UNIT_MISSING, "consumequeue/TopicTiny/0/00000000000000000000")


def test_damage_in_a_light_queue_is_found(copy_of: Copies) -> None:
    store = copy_of("5.4.0", "lmq")
    file = "consumequeue/%LMQ%alpha/0/00000000000000000000"
    store.flip(file, 5 * ENTRY_SIZE + 7)
    store.assert_found(FindingKind.ENTRY_WRONG, file)


def test_a_delivery_time_that_is_wrong_is_found(store: DamagedStore) -> None:
    file = "consumequeue/SCHEDULE_TOPIC_XXXX/0/00000000000000000000"
    store.flip(file, ENTRY_SIZE - 1)
    store.assert_found(FindingKind.ENTRY_WRONG, file)


def test_other_delay_levels_give_other_delivery_times(store: DamagedStore) -> None:
    file = "consumequeue/SCHEDULE_TOPIC_XXXX/0/00000000000000000000"
    store.assert_found(FindingKind.ENTRY_WRONG, file, "messageDelayLevel=2s 5s 10s 30s 1m")


def test_entries_written_ahead_of_the_first_real_one_are_fine(copy_of: Copies) -> None:
    store = copy_of("4.9.7", "expired")
    file = next(f for f in store.files("consumequeue/TopicOrder/0"))
    prefill = Struct(">qiq").pack(0, 2147483647, 0)
    store.write(file, 0, prefill * 3)
    assert store.errors() == []
