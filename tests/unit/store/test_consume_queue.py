"""A consume queue: one entry of 20 bytes per message at its offset × 20; where it begins and ends."""

from pathlib import Path

import pytest

from skyrocket.format.java_hash import java_hash
from skyrocket.format.queue_entry import ENTRY, ENTRY_SIZE, PREFILL_ENTRY, PREFILL_SIZE
from skyrocket.store.consume_queue import ConsumeQueue
from skyrocket.store.entry_files import EntryFiles
from skyrocket.store.handle_cache import HandleCache
from tests.unit.store.stores import ENTRIES_PER_FILE, TOPIC, Stores, UnforcedDisk, put

PER_FILE = 5


def queue_at(path: Path) -> ConsumeQueue:
    disk = UnforcedDisk()
    return ConsumeQueue("T", 0, EntryFiles(disk, HandleCache(disk, 8), str(path / "0"), 20, PER_FILE * 20))


def add(queue: ConsumeQueue, first: int, count: int, *, size: int = 100, gap: int = 0) -> None:
    """Entries with physical offset = 1000 × queue offset (+ gap)."""
    for number in range(first, first + count):
        queue.append(1000 * number + gap, size, number, number, 0, 1)


def reopened(path: Path) -> ConsumeQueue:
    queue = queue_at(path)
    queue.damaged = not queue.entries.load()
    queue.recover()
    return queue


# -- entries -----------------------------------------------------------------------------------------------


@pytest.mark.requirement("A008", "A009", "A011", "E013", "D001")
def test_the_file_of_a_queue_holds_offset_size_and_tag_hash_at_offset_times_20(stores: Stores) -> None:
    store = stores.open()
    results = [put(store, b"x" * n, queue_id=2, properties={"TAGS": f"tag{n}"}) for n in range(ENTRIES_PER_FILE + 5)]
    store.dispatch()
    store.close()

    directory = Path(store.paths.consume_queue) / TOPIC / "2"
    assert sorted(file.name for file in directory.iterdir()) == [f"{0:020d}", f"{ENTRIES_PER_FILE * 20:020d}"]
    data = b"".join(file.read_bytes() for file in sorted(directory.iterdir()))
    for number, result in enumerate(results):
        entry = ENTRY.unpack_from(data, number * 20)
        assert entry == (result.physical_offset, result.record_size, java_hash(f"tag{number}"))
    assert not any(data[len(results) * 20 :])


@pytest.mark.requirement("A010", "E014")
def test_a_queue_holds_neither_tags_nor_content(stores: Stores) -> None:
    store = stores.open()
    put(store, b"content" * 10, properties={"TAGS": "a-long-tag-text", "KEYS": "a-long-key"})
    store.dispatch()
    store.close()
    data = (Path(store.paths.consume_queue) / TOPIC / "0" / f"{0:020d}").read_bytes()
    assert len(data.rstrip(b"\0")) <= 20
    assert b"tag" not in data
    assert b"content" not in data


def test_entries_are_read_from_files_and_from_memory_alike(tmp_path: Path) -> None:
    queue = queue_at(tmp_path)
    add(queue, 0, 7)
    queue.entries.write_out()
    add(queue, 7, 3)
    for number in range(10):
        entry = queue.entry(number)
        assert entry is not None
        assert entry == (1000 * number, 100, number)
    assert queue.entry(10) is None
    assert queue.entry(-1) is None
    assert (queue.min_offset, queue.max_offset, queue.max_physical_offset) == (0, 10, 9100)


def test_an_entry_that_is_there_already_is_not_added_again(tmp_path: Path) -> None:
    queue = queue_at(tmp_path)
    add(queue, 0, 7)
    add(queue, 3, 4)
    assert queue.max_offset == 7
    assert not queue.damaged


@pytest.mark.requirement("A017")
@pytest.mark.parametrize("written", [True, False])
def test_an_entry_that_differs_from_the_log_is_mended(tmp_path: Path, written: bool) -> None:
    queue = queue_at(tmp_path)
    add(queue, 0, 7)
    if written:
        queue.entries.write_out()
    queue.append(2000, 222, 2, 2, 0, 1)
    assert queue.entry(2) == (2000, 222, 2)
    assert queue.entry(3) == (3000, 100, 3)


@pytest.mark.requirement("C102")
def test_the_address_of_an_extension_unit_is_left_alone(tmp_path: Path) -> None:
    queue = queue_at(tmp_path)
    address = -(1 << 63) + 40  # byte 40 of the extension files
    queue.append(0, 100, address, 0, 0, 1)
    queue.append(0, 100, 77, 0, 0, 1)
    entry = queue.entry(0)
    assert entry is not None
    assert entry.tags_code == address


# -- where a queue begins -----------------------------------------------------------------------------------------


def test_a_queue_that_begins_in_the_middle_of_a_file_is_prefilled(tmp_path: Path) -> None:
    queue = queue_at(tmp_path)
    add(queue, 13, 2)
    queue.entries.write_out()

    assert (queue.min_offset, queue.max_offset) == (13, 15)
    files = sorted((tmp_path / "0").iterdir())
    assert [file.name for file in files] == [f"{200:020d}"]
    data = files[0].read_bytes()
    assert data[:60] == PREFILL_ENTRY * 3
    assert ENTRY.unpack_from(data, 60) == (13_000, 100, 13)
    assert queue.entry(12) is None


def test_prefilled_entries_are_not_offered_after_a_restart(tmp_path: Path) -> None:
    queue = queue_at(tmp_path)
    add(queue, 13, 5)
    queue.entries.write_out()
    queue = reopened(tmp_path)
    assert (queue.min_offset, queue.max_offset, queue.next_offset) == (13, 18, 18)
    queue.correct_min_offset(0)  # RocketMQ: with a log that begins at 0 the pre-filled entries would seem valid
    assert queue.min_offset == 13


def test_a_gap_is_filled_so_that_numbers_keep_their_place(tmp_path: Path) -> None:
    queue = queue_at(tmp_path)
    add(queue, 0, 3)
    add(queue, 8, 2)
    assert queue.has_gap
    assert queue.entry(8) == (8000, 100, 8)
    between = queue.entry(5)
    assert between is not None
    assert between.size == PREFILL_SIZE


# -- recovery ------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("count", [0, 1, 4, 5, 6, 15, 23])
def test_the_end_is_found_at_the_first_zero(tmp_path: Path, count: int) -> None:
    queue = queue_at(tmp_path)
    add(queue, 0, count)
    queue.entries.write_out()
    queue = reopened(tmp_path)
    assert (queue.max_offset, queue.next_offset) == (count, count)
    assert queue.max_physical_offset == (1000 * (count - 1) + 100 if count else -1)
    assert not queue.damaged


def test_entries_that_go_back_in_the_log_end_the_queue(tmp_path: Path) -> None:
    queue = queue_at(tmp_path)
    add(queue, 0, 12)
    queue.entries.overwrite(20 * 8, ENTRY.pack(500, 100, 8))
    queue.entries.write_out()
    queue = reopened(tmp_path)
    assert queue.max_offset == 8
    assert len(list((tmp_path / "0").iterdir())) == 2
    assert queue.entries.read(20 * 8, 20) == b""


@pytest.mark.parametrize(
    ("log_end", "left"), [(100_000, 12), (11_100, 12), (11_000, 11), (5_001, 6), (5_000, 5), (0, 0)]
)
def test_entries_of_records_behind_the_logs_end_are_dropped(tmp_path: Path, log_end: int, left: int) -> None:
    queue = queue_at(tmp_path)
    add(queue, 0, 12)
    queue.entries.write_out()
    queue.truncate_to(log_end)
    assert queue.max_offset == left
    assert queue.max_physical_offset == (1000 * (left - 1) + 100 if left else -1)
    assert len(list((tmp_path / "0").iterdir())) == -(-left // PER_FILE)
    queue = reopened(tmp_path)
    assert queue.max_offset == left


# -- the first offset --------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("log_start", "expected"), [(0, 0), (1, 1), (1000, 1), (7_500, 8), (11_000, 11), (11_001, 12), (99_999, 12)]
)
def test_the_first_offset_follows_the_start_of_the_log(tmp_path: Path, log_start: int, expected: int) -> None:
    queue = queue_at(tmp_path)
    add(queue, 0, 10)
    queue.entries.write_out()
    add(queue, 10, 2)
    queue.correct_min_offset(log_start)
    assert (queue.min_offset, queue.max_offset) == (expected, 12)


def test_a_queue_whose_records_are_all_gone_keeps_its_numbers(tmp_path: Path) -> None:
    queue = queue_at(tmp_path)
    add(queue, 0, 7)
    queue.correct_min_offset(1 << 40)
    assert (queue.min_offset, queue.max_offset) == (7, 7)
    add(queue, 7, 1, gap=1 << 40)
    assert (queue.min_offset, queue.max_offset) == (7, 8)


def test_the_last_record_of_a_file_decides_whether_it_may_go(tmp_path: Path) -> None:
    queue = queue_at(tmp_path)
    add(queue, 0, 7)
    assert queue.last_physical_offset(0) == 4000
    assert queue.last_physical_offset(100) == 6000
    assert queue.last_physical_offset(200) == -1


def test_a_filled_gap_in_the_middle_does_not_move_the_first_offset(stores: Stores) -> None:
    store = stores.open()
    for number in range(5):
        put(store, b"%d" % number)
    store.dispatch()
    queue = store.queues.get(TOPIC, 0)
    assert isinstance(queue, ConsumeQueue)
    queue.entries.overwrite(2 * ENTRY_SIZE, PREFILL_ENTRY)  # where a search for the first record looks first
    queue.correct_min_offset(0)
    assert queue.min_offset == 0
