"""Reads by queue offset: statuses, next offsets and limits; slices of the log; by physical offset; by time."""

import mmap
import os
import random
import time
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from skyrocket.errors import CorruptFile
from skyrocket.format.java_hash import java_hash
from skyrocket.format.queue_entry import ENTRY
from skyrocket.format.record import decode_record, decode_records
from skyrocket.store.message_store import MessageStore
from skyrocket.store.results import Boundary, GetStatus
from skyrocket.testing.clock import FakeClock
from tests.unit.store.stores import (
    EMPTY_RECORD,
    ENTRIES_PER_FILE,
    FILE_SIZE,
    TOPIC,
    Stores,
    bodies,
    fill_files,
    log_bytes,
    message,
    put,
    put_sized,
)


def filled(stores: Stores, count: int, **changes: int) -> MessageStore:
    """A store with messages b"0", b"1", … in queue 0."""
    store = stores.open("store", disk=None, **{"consume_queue_file_size": 20_000, **changes})  # type: ignore[arg-type]
    for number in range(count):
        put(store, b"%d" % number, properties={"TAGS": "even" if number % 2 == 0 else "odd"})
    store.dispatch()
    return store


def drop_log_files(store: MessageStore, count: int) -> None:
    store.flush()
    for start in store.commit_log.files.starts[:count]:
        store.commit_log.files.drop_file(start)


# -- statuses ------------------------------------------------------------------------------------------------


@pytest.mark.requirement("E016")
@pytest.mark.parametrize(
    ("offset", "status", "next_offset"),
    [
        (-1, GetStatus.OFFSET_TOO_SMALL, 0),
        (0, GetStatus.FOUND, 10),
        (9, GetStatus.FOUND, 10),
        (10, GetStatus.OFFSET_OVERFLOW_ONE, 10),
        (11, GetStatus.OFFSET_OVERFLOW_BADLY, 10),
    ],
)
def test_each_offset_has_its_status_and_next_offset(
    stores: Stores, offset: int, status: GetStatus, next_offset: int
) -> None:
    store = filled(stores, 10)
    result = store.get(TOPIC, 0, offset)
    assert (result.status, result.next_offset) == (status, next_offset)
    assert (result.min_offset, result.max_offset) == (0, 10)
    assert bodies(result) == [b"%d" % n for n in range(offset, 10) if status is GetStatus.FOUND]


def test_an_unknown_queue_and_an_empty_one_differ(stores: Stores) -> None:
    store = stores.open()
    assert store.get("Nobody", 0, 0).status is GetStatus.NO_MATCHED_LOGIC_QUEUE
    put(store)
    result = store.get(TOPIC, 0, 5)  # put but not yet dispatched
    assert (result.status, result.next_offset) == (GetStatus.NO_MESSAGE_IN_QUEUE, 0)


def test_an_offset_before_the_first_is_answered_with_the_first(stores: Stores) -> None:
    store = filled(stores, 10)
    queue = store.queues.get(TOPIC, 0)
    assert queue is not None
    queue.min_offset = 4
    result = store.get(TOPIC, 0, 3)
    assert (result.status, result.next_offset) == (GetStatus.OFFSET_TOO_SMALL, 4)


def test_a_queue_file_that_vanished_is_skipped(stores: Stores) -> None:
    store = filled(stores, 2 * ENTRIES_PER_FILE + 3, consume_queue_file_size=ENTRIES_PER_FILE * 20)
    store.queues.write_out()
    queue = store.queues.get(TOPIC, 0)
    assert queue is not None
    queue.entries.drop_first_file()
    result = store.get(TOPIC, 0, 3)  # the first offset was not corrected yet
    assert (result.status, result.next_offset) == (GetStatus.OFFSET_FOUND_NULL, ENTRIES_PER_FILE)


def test_records_that_left_the_log_are_skipped(stores: Stores) -> None:
    store = stores.open(consume_queue_file_size=40_000)
    offsets = [result.queue_offset for result in fill_files(store, 3)]
    store.dispatch()
    drop_log_files(store, 2)
    all_gone = store.get(TOPIC, 0, 0, max_count=5)
    # As in RocketMQ: what lies in the same file as the first missing record is passed over without a look.
    assert all_gone.status is GetStatus.FOUND
    assert [found.queue_offset for found in decode_records(all_gone.join())] == offsets[-1:]
    assert all_gone.next_offset == len(offsets)


@pytest.mark.requirement("C143")
def test_when_all_records_looked_at_are_gone_the_status_says_so(stores: Stores) -> None:
    store = stores.open(consume_queue_file_size=20 * 10)
    fill_files(store, 2)
    store.dispatch()
    store.queues.write_out()
    drop_log_files(store, 1)
    result = store.get(TOPIC, 0, 0)
    assert (result.status, result.next_offset, result.count) == (GetStatus.MESSAGE_WAS_REMOVING, 10, 0)


# -- limits ----------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(("wanted", "count"), [(1, 1), (5, 5), (32, 32), (100, 32)])
def test_a_read_from_memory_gives_32_messages_at_most(stores: Stores, wanted: int, count: int) -> None:
    store = filled(stores, 50)
    result = store.get(TOPIC, 0, 3, max_count=wanted)
    assert (result.count, result.next_offset) == (count, 3 + count)
    assert bodies(result) == [b"%d" % n for n in range(3, 3 + count)]


@pytest.mark.requirement("C114")
@pytest.mark.parametrize(("ratio", "near_bytes"), [({}, 40_000), ({"memory_ratio": 80}, 80_000)])
def test_a_read_counts_as_slow_when_its_record_is_farther_from_the_end_than_the_ratio_of_memory(
    stores: Stores, ratio: dict[str, Any], near_bytes: int
) -> None:
    store = stores.open(memory_bytes=100_000, **ratio)
    results = [put_sized(store, 1000) for _ in range(120)]
    store.dispatch()
    for result in results:
        distance = store.commit_log.written_offset - result.physical_offset
        got = store.get(TOPIC, 0, result.queue_offset, max_count=1)
        assert got.suggest_slave == (distance > near_bytes), distance


@pytest.mark.parametrize(("wanted", "count"), [(1, 1), (5, 5), (32, 8)])
def test_a_read_from_disk_gives_8_messages_and_suggests_another_broker(stores: Stores, wanted: int, count: int) -> None:
    store = stores.open(memory_bytes=1000)  # 400 bytes count as page cache
    for number in range(20):
        put(store, b"%d" % number)
    store.dispatch()
    result = store.get(TOPIC, 0, 0, max_count=wanted)
    assert result.count == count
    assert result.suggest_slave
    newest = store.get(TOPIC, 0, 19)
    assert not newest.suggest_slave
    assert store.get(TOPIC, 0, 17).count == 3  # the last ones count as in memory again


@pytest.mark.parametrize(("memory", "limit"), [(1 << 30, 5000), (100, 3000)], ids=["memory", "disk"])
def test_a_read_stops_before_it_passes_the_bytes_of_its_kind(stores: Stores, memory: int, limit: int) -> None:
    store = stores.open(memory_bytes=memory, max_transfer_bytes_memory=5000, max_transfer_bytes_disk=3000)
    for _ in range(10):
        put(store, b"x" * 900)
    store.dispatch()
    result = store.get(TOPIC, 0, 0)
    assert result.count == limit // (900 + EMPTY_RECORD)
    assert result.size == len(result.join()) <= limit


def test_the_callers_limit_of_bytes_counts_too(stores: Stores) -> None:
    store = filled(stores, 10)
    three = store.get(TOPIC, 0, 0, max_count=3)
    assert store.get(TOPIC, 0, 0, max_bytes=three.size).count == 3
    assert store.get(TOPIC, 0, 0, max_bytes=three.size - 1).count == 2


def test_one_record_is_given_however_large(stores: Stores) -> None:
    store = stores.open(max_transfer_bytes_memory=1000, max_transfer_bytes_disk=1000)
    put(store, b"x" * 20_000)
    put(store, b"small")
    store.dispatch()
    result = store.get(TOPIC, 0, 0, max_bytes=1)
    assert [len(body) for body in bodies(result)] == [20_000]
    assert result.next_offset == 1


# -- filters ---------------------------------------------------------------------------------------------------


def test_tags_are_compared_by_hash_in_the_queue_without_reading_the_log(stores: Stores) -> None:
    store = filled(stores, 50)
    result = store.get(TOPIC, 0, 0, max_count=10, tags_codes={java_hash("odd")})
    assert bodies(result) == [b"%d" % n for n in range(1, 20, 2)]
    assert result.next_offset == 20


@pytest.mark.requirement("B034")
def test_records_whose_tag_is_not_wanted_are_not_even_looked_at(stores: Stores) -> None:
    store = filled(stores, 10)
    file = store.commit_log.files.find(0)
    assert file is not None
    for found in decode_records(store.get(TOPIC, 0, 0).join()):
        if found.queue_offset % 2 == 0:  # a record that is read is compared with its entry
            file.map[found.physical_offset : found.physical_offset + 4] = bytes(4)
    assert bodies(store.get(TOPIC, 0, 0, tags_codes={java_hash("odd")})) == [b"1", b"3", b"5", b"7", b"9"]
    with pytest.raises(CorruptFile):
        store.get(TOPIC, 0, 0)


@pytest.mark.requirement("C143")
def test_nothing_matched_still_moves_on(stores: Stores) -> None:
    store = filled(stores, 50)
    result = store.get(TOPIC, 0, 5, tags_codes={java_hash("none")})
    assert (result.status, result.count, result.next_offset) == (GetStatus.NO_MATCHED_MESSAGE, 0, 50)


def test_a_filter_looks_at_no_more_than_800_entries(stores: Stores) -> None:
    store = stores.open(commit_log_file_size=1 << 20, consume_queue_file_size=20 * 5000)
    put(store)
    store.intake.put_group([message(b"x") for _ in range(1999)])
    store.dispatch()
    result = store.get(TOPIC, 0, 0, tags_codes={1})
    assert (result.status, result.next_offset) == (GetStatus.NO_MATCHED_MESSAGE, 800)
    assert store.get(TOPIC, 0, 0, max_count=1500, tags_codes={1}).next_offset == 1500


def test_a_record_filter_sees_the_record(stores: Stores) -> None:
    store = filled(stores, 20)
    result = store.get(TOPIC, 0, 0, record_filter=lambda view: decode_record(view).body.endswith(b"7"))
    assert bodies(result) == [b"7", b"17"]
    assert result.next_offset == 20


@pytest.mark.requirement("C143")
def test_an_entry_filter_comes_before_the_record_filter(stores: Stores) -> None:
    store = filled(stores, 10)
    seen: list[bytes] = []

    def note(view: memoryview) -> bool:
        seen.append(decode_record(view).body)
        return True

    store.get(TOPIC, 0, 0, entry_filter=lambda entry: entry.tags_code == java_hash("even"), record_filter=note)
    assert seen == [b"0", b"2", b"4", b"6", b"8"]


def test_prefilled_entries_are_passed_over(stores: Stores) -> None:
    store = stores.open()
    queue = store.queues.get_or_create(TOPIC, 0)
    queue.next_offset = 5
    put(store, b"five")
    queue.next_offset = 8
    put(store, b"eight")
    store.dispatch()
    result = store.get(TOPIC, 0, 5)
    assert bodies(result) == [b"five", b"eight"]
    assert (result.next_offset, result.min_offset) == (9, 5)
    assert bodies(store.get(TOPIC, 0, 6)) == [b"eight"]


# -- slices ------------------------------------------------------------------------------------------------------


@pytest.mark.requirement("A028", "E022")
def test_slices_are_the_mapped_log_itself_and_not_copies(stores: Stores) -> None:
    store = filled(stores, 20)
    result = store.get(TOPIC, 0, 0, max_count=20)

    assert len(result.slices) == 1  # neighbours in the log are one slice
    assert isinstance(result.slices[0].obj, mmap.mmap)
    assert result.join() == log_bytes(store)[: result.size]
    file = store.commit_log.files.find(0)
    assert file is not None
    before = result.slices[0][100]
    file.map[100] = before ^ 1
    assert result.slices[0][100] == before ^ 1
    file.map[100] = before


def test_records_among_those_of_other_queues_are_cut_out(stores: Stores) -> None:
    store = stores.open()
    for number in (0, 0, 1, 0, 1, 1, 0, 0):
        put(store, b"to %d" % number, queue_id=number)
    store.dispatch()
    assert bodies(store.get(TOPIC, 0, 0)) == [b"to 0"] * 5
    assert bodies(store.get(TOPIC, 1, 0)) == [b"to 1"] * 3
    assert len(store.get(TOPIC, 1, 0).slices) == 1  # small ones are copied together: one piece to write


@pytest.mark.requirement("E022")
def test_large_records_among_those_of_other_queues_are_not_copied(stores: Stores) -> None:
    store = stores.open(commit_log_file_size=1 << 20, memory_bytes=1 << 40)
    for number in (0, 1, 0, 1, 0):
        put(store, b"x" * 30_000, queue_id=number)
    store.dispatch()
    result = store.get(TOPIC, 0, 0)
    assert [len(body) for body in bodies(result)] == [30_000] * 3
    assert all(isinstance(view.obj, mmap.mmap) for view in result.slices)


def test_a_read_across_two_log_files_gives_both_parts(stores: Stores) -> None:
    store = stores.open()
    results = fill_files(store, 2)
    put(store, b"last")
    store.dispatch()
    first = len(results) - 5
    got = store.get(TOPIC, 0, first)
    assert [found.queue_offset for found in decode_records(got.join())] == list(range(first, len(results) + 1))


@pytest.mark.parametrize(("wrong", "target"), [(1, 2), (3, 0), (1, 3), (3, 2)])
def test_a_queue_that_points_to_another_record_is_refused_and_not_answered(
    stores: Stores, wrong: int, target: int
) -> None:
    store = stores.open()
    results = [put(store, b"%d" % number) for number in range(5)]
    store.dispatch()
    queue = store.queues.get(TOPIC, 0)
    assert queue is not None
    queue.entries.overwrite(wrong * 20, ENTRY.pack(results[target].physical_offset, results[target].record_size, 0))
    with pytest.raises(CorruptFile, match=f"entry {wrong} points to physical offset") as raised:
        store.get(TOPIC, 0, wrong)
    assert "skyrocket repair" in raised.value.remedy
    with pytest.raises(CorruptFile):
        store.get(TOPIC, 0, 1, max_count=3)
    assert bodies(store.get(TOPIC, 0, 4)) == [b"4"]


def test_by_physical_offset_gives_whole_records_only(stores: Stores) -> None:
    store = filled(stores, 5)
    fill_files(store, 2)
    data = log_bytes(store)
    position = 0
    for _ in range(5):
        view = store.by_physical_offset(position)
        assert view is not None
        assert bytes(view) == data[position : position + len(view)]
        position += len(view)
    last = store.commit_log.written_offset
    assert store.by_physical_offset(last) is None
    assert store.by_physical_offset(last - 10) is None
    assert store.by_physical_offset(1 << 50) is None


@pytest.mark.requirement("A016", "B005")
def test_random_reads_of_4_kib_messages_are_quick(stores: Stores) -> None:
    store = stores.open(commit_log_file_size=1 << 20, index_enabled=False)
    for _ in range(2000):
        put(store, b"x" * 4096)
    store.dispatch()
    offsets = [random.Random(3).randrange(2000) for _ in range(2000)]
    began = time.thread_time()  # what the reads cost, whatever else the machine does
    for offset in offsets:
        assert store.get(TOPIC, 0, offset, 1).count == 1
    assert len(offsets) / (time.thread_time() - began) > 8000


def forget_pages(directory: str) -> None:
    for path in Path(directory).iterdir():
        with path.open("rb") as file:
            os.fsync(file.fileno())
            os.posix_fadvise(file.fileno(), 0, 0, os.POSIX_FADV_DONTNEED)


@pytest.mark.slow
@pytest.mark.requirement("B046")
def test_a_backlog_is_read_from_a_cold_disk_at_5000_messages_a_second(stores: Stores) -> None:
    store = stores.open(commit_log_file_size=1 << 20, index_enabled=False)
    for _ in range(2000):
        put(store, b"x" * 4096)
    rates = []
    for _ in range(3):
        store.close()
        forget_pages(store.paths.commit_log)
        store = stores.open(commit_log_file_size=1 << 20, index_enabled=False, memory_bytes=1000)
        began = time.perf_counter()
        offset = 0
        while offset < 2000:
            result = store.get(TOPIC, 0, offset)
            assert len(result.join()) == result.size
            offset = result.next_offset
        rates.append(offset / (time.perf_counter() - began))
    assert max(rates) > 5000


# -- by time ---------------------------------------------------------------------------------------------------


def timed(stores: Stores, clock: FakeClock, steps_ms: list[int]) -> tuple[MessageStore, list[int]]:
    """A store whose messages were stored at these distances from each other."""
    store = stores.open()
    times = []
    for step in steps_ms:
        clock.advance(ms=step)
        times.append(put(store).store_timestamp)
        put(store, queue_id=1)
    store.dispatch()
    return store, times


@pytest.mark.requirement("A094")
def test_time_is_found_to_the_millisecond_with_equal_times(stores: Stores, clock: FakeClock) -> None:
    store, times = timed(stores, clock, [5, 1, 0, 0, 1, 7, 0, 1])
    begin = times[0]

    def lower(after_ms: int) -> int:
        return store.offset_by_time(TOPIC, 0, begin + after_ms)

    def upper(after_ms: int) -> int:
        return store.offset_by_time(TOPIC, 0, begin + after_ms, Boundary.UPPER)

    #       offset:  0   1 2 3   4         5 6   7
    #       time:   +0    +1    +2         +9   +10
    assert [lower(ms) for ms in (-100, 0, 1, 2, 3, 8, 9, 10, 11)] == [0, 0, 1, 4, 5, 5, 5, 7, 8]
    assert [upper(ms) for ms in (-100, 0, 1, 2, 3, 8, 9, 10, 11)] == [0, 0, 3, 4, 4, 4, 6, 7, 7]


@settings(max_examples=20)
@given(steps=st.lists(st.integers(0, 3), min_size=1, max_size=60), ask=st.integers(-2, 100))
def test_offset_by_time_agrees_with_a_look_at_every_message(
    tmp_path_factory: pytest.TempPathFactory, steps: list[int], ask: int
) -> None:
    clock = FakeClock()
    stores = Stores(tmp_path_factory.mktemp("time"), clock)
    store, times = timed(stores, clock, steps)
    wanted = times[0] + ask
    later = [offset for offset, time_ms in enumerate(times) if time_ms >= wanted]
    earlier = [offset for offset, time_ms in enumerate(times) if time_ms <= wanted]
    assert store.offset_by_time(TOPIC, 0, wanted) == (later[0] if later else len(times))
    assert store.offset_by_time(TOPIC, 0, wanted, Boundary.UPPER) == (earlier[-1] if earlier else 0)
    stores.close()


@pytest.mark.requirement("A094", "A095")
def test_reading_and_reading_again_leaves_messages_where_they_are(stores: Stores, clock: FakeClock) -> None:
    store, times = timed(stores, clock, [10] * 10)
    for _ in range(3):
        offset = store.offset_by_time(TOPIC, 0, times[4])
        assert offset == 4
        result = store.get(TOPIC, 0, offset)
        assert result.count == 6
        assert [found.store_timestamp for found in decode_records(result.join())] == times[4:]


def test_an_unknown_queue_has_no_time(stores: Stores) -> None:
    store = stores.open()
    assert store.offset_by_time("Nobody", 0, 1) == 0
    assert store.earliest_time("Nobody", 0) == -1
    assert store.reader.earliest_log_time() == -1


def test_the_earliest_time_moves_with_the_log(stores: Stores, clock: FakeClock) -> None:
    store = stores.open(consume_queue_file_size=40_000)
    first = put(store).store_timestamp
    clock.advance(seconds=5)
    fill_files(store, 2)
    store.dispatch()
    assert store.earliest_time(TOPIC, 0) == store.reader.earliest_log_time() == first
    clock.advance(seconds=5)
    drop_log_files(store, 1)
    for queue in store.queues:
        queue.correct_min_offset(store.commit_log.min_offset)
    assert store.reader.earliest_log_time() == store.earliest_time(TOPIC, 0) == first + 5000
    assert store.offset_by_time(TOPIC, 0, 0) == store.min_offset(TOPIC, 0) > 0


def test_old_brokers_answer_with_the_nearest_message(stores: Stores, clock: FakeClock) -> None:
    store = stores.open(offset_by_time_nearest=True)
    times = []
    for step in (10, 10, 10):
        clock.advance(ms=step)
        times.append(put(store).store_timestamp)
    store.dispatch()
    store.queues.write_out()
    asked = [store.offset_by_time(TOPIC, 0, times[0] + ms) for ms in (-50, 0, 4, 5, 6, 10, 16, 100)]
    assert asked == [0, 0, 0, 0, 1, 1, 2, 2]


# -- what readers may see ----------------------------------------------------------------------------------------


def test_file_size_does_not_matter_to_readers(stores: Stores) -> None:
    store = stores.open()
    fill_files(store, 3)
    store.dispatch()
    offset = 0
    while offset < store.max_offset(TOPIC, 0):
        result = store.get(TOPIC, 0, offset)
        assert result.count
        assert [found.queue_offset for found in decode_records(result.join())] == list(
            range(offset, result.next_offset)
        )
        offset = result.next_offset
    assert store.commit_log.written_offset > 2 * FILE_SIZE
