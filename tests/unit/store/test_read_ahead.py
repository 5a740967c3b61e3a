"""Who reads a queue on and on gets what any other reader gets, with fewer looks at its entries."""

import copy
import mmap
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from skyrocket.errors import CorruptFile
from skyrocket.format.queue_entry import ENTRY, ENTRY_SIZE
from skyrocket.format.record import decode_records
from skyrocket.store.message_store import MessageStore
from skyrocket.store.read_ahead import ReadAhead, Trail
from skyrocket.store.results import GetStatus
from tests.unit.store.stores import TOPIC, Stores, UnforcedDisk, bodies, put

LARGE: dict[str, Any] = {"commit_log_file_size": 1 << 20, "consume_queue_file_size": 40_000}


class CountingDisk(UnforcedDisk):
    """Counts reads of files."""

    def __init__(self) -> None:
        super().__init__()
        self.reads = self.bytes_read = 0

    def read_at(self, fd: int, length: int, position: int) -> bytes:
        self.reads += 1
        self.bytes_read += length
        return super().read_at(fd, length, position)


def filled(stores: Stores, queue_ids: list[int], sizes: list[int] | None = None, **changes: Any) -> MessageStore:
    """A store with a message in each of these queues, one after the other; entries are in files."""
    store = stores.open(f"store-{len(stores._opened)}", **{"memory_bytes": 1 << 40, **LARGE, **changes})
    for number, queue_id in enumerate(queue_ids):
        size = sizes[number % len(sizes)] if sizes else 10
        put(store, (b"%06d" % number).ljust(size, b"."), queue_id=queue_id)
    store.dispatch()
    store.queues.write_out()
    return store


def as_anybody(store: MessageStore, *read: Any) -> Any:
    """The same read by somebody whom nobody expected."""
    reader = copy.copy(store.reader)
    reader._ahead = ReadAhead(store.commit_log)
    return outcome(reader, *read)


def outcome(reader: Any, *read: Any) -> Any:
    try:
        result = reader.get(TOPIC, *read)
    except CorruptFile as error:
        return str(error)
    return shown(result)


def shown(result: Any) -> Any:
    return (
        *(result.status, result.next_offset, result.min_offset, result.max_offset),
        *(result.join(), result.count, result.size, result.suggest_slave),
    )


def read_on(store: MessageStore, queue_id: int, offset: int, counts: list[int]) -> None:
    """Read on, and compare each step."""
    for count in counts:
        expected = as_anybody(store, queue_id, offset, count)
        assert outcome(store.reader, queue_id, offset, count) == expected
        if isinstance(expected, str) or expected[1] == offset:
            return
        offset = expected[1]


def test_entries_are_read_once_for_twenty_pulls(stores: Stores) -> None:
    disk = CountingDisk()
    store = filled(stores, [0, 1] * 1000, disk=disk)
    before = disk.reads
    got = [bodies(store.get(TOPIC, 1, offset, 32)) for offset in range(0, 640, 32)]
    assert [body for some in got for body in some] == [b"%06d...." % number for number in range(1, 1280, 2)]
    assert disk.reads - before <= 4


@settings(max_examples=60, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(data=st.data())
def test_who_reads_on_gets_what_anybody_gets(stores: Stores, data: st.DataObject) -> None:
    queue_ids = data.draw(st.lists(st.integers(0, 2), min_size=1, max_size=12)) * 60
    sizes = data.draw(st.just([10]) | st.lists(st.integers(6, 3000), min_size=1, max_size=9))
    changes = data.draw(
        st.fixed_dictionaries(
            {},
            optional={
                "commit_log_file_size": st.sampled_from([1 << 17, 1 << 18]),
                "consume_queue_file_size": st.sampled_from([2000, 3000]),
                "memory_bytes": st.sampled_from([10_000, 100_000, 1_000_000]),  # 40 % of it are near
                "max_transfer_count_disk": st.sampled_from([1, 20, 64]),
                "max_transfer_bytes_disk": st.sampled_from([1000, 20_000]),
                "max_transfer_count_memory": st.sampled_from([20, 32, 100]),
                "max_transfer_bytes_memory": st.sampled_from([3000, 60_000, 262_144]),
            },
        )
    )
    store = filled(stores, queue_ids, sizes, **changes)
    for _ in range(data.draw(st.integers(0, 40))):  # these stay in memory
        put(store, b"late")
    store.dispatch()
    steps = st.lists(st.sampled_from([32, 32, 32, 1, 16, 20, 64, 100]), min_size=1, max_size=40)
    for _ in range(2):
        read_on(store, data.draw(st.integers(0, 2)), data.draw(st.integers(0, 100)), data.draw(steps))
    store.close()


@settings(max_examples=40, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(
    queue_ids=st.sampled_from([[0], [0, 1], [0, 1, 1]]),
    sizes=st.sampled_from([[10], [10, 300]]),
    wrong=st.integers(0, 250),
    entry=st.tuples(st.integers(-1, 1 << 20), st.integers(-1, 400) | st.sampled_from([2**31 - 1, -(2**31)])),
    read_before=st.integers(0, 5),
)
def test_a_damaged_entry_is_refused_as_it_is_to_anybody(
    stores: Stores, queue_ids: list[int], sizes: list[int], wrong: int, entry: tuple[int, int], read_before: int
) -> None:
    store = filled(stores, queue_ids * 300, sizes)
    for offset in range(0, read_before * 32, 32):
        store.get(TOPIC, 0, offset, 32)
    queue = store.queues.get(TOPIC, 0)
    assert queue is not None
    queue.entries.overwrite(wrong * ENTRY_SIZE, ENTRY.pack(*entry, 0))
    read_on(store, 0, read_before * 32, [32] * 10)
    store.close()


def test_readers_at_different_places_do_not_disturb_each_other(stores: Stores) -> None:
    disk = CountingDisk()
    store = filled(stores, [0, 1] * 1000, disk=disk)
    before = disk.reads
    for step in range(10):
        for start in (0, 160, 320, 480):
            result = store.get(TOPIC, 0, start + step * 32, 32)
            assert bodies(result)[0] == b"%06d...." % (2 * (start + step * 32))
    assert disk.reads - before <= 4 * 3


def test_a_file_of_the_log_that_is_gone_is_missed_at_once(stores: Stores) -> None:
    store = filled(stores, [0, 1] * 1000, commit_log_file_size=1 << 17)
    for offset in (0, 32, 64):
        assert store.get(TOPIC, 0, offset, 32).status is GetStatus.FOUND
    store.flush()
    store.commit_log.files.drop_file(store.commit_log.files.starts[0])
    expected = as_anybody(store, 0, 96, 32)
    assert outcome(store.reader, 0, 96, 32) == expected
    assert expected[1] > 128 + 32  # the first that are still there


def test_neighbours_in_the_log_are_one_slice_of_it(stores: Stores) -> None:
    store = filled(stores, [0] * 300)
    for offset in (0, 32, 64):
        (view,) = store.get(TOPIC, 0, offset, 32).slices
        assert isinstance(view.obj, mmap.mmap)


def test_large_records_are_not_copied(stores: Stores) -> None:
    store = filled(stores, [0, 1] * 150, [3000])
    for offset in (0, 32, 64):
        result = store.get(TOPIC, 0, offset, 32)
        assert len(result.slices) == 32
        assert all(isinstance(view.obj, mmap.mmap) for view in result.slices)


def test_entries_of_what_lies_far_back_are_read_once_for_twenty_pulls_of_eight(stores: Stores) -> None:
    disk = CountingDisk()
    store = filled(stores, [0, 1] * 1000, disk=disk, memory_bytes=100_000)
    before = disk.reads
    for offset in range(0, 160, 8):
        result = store.get(TOPIC, 0, offset, 32)
        assert bodies(result) == [b"%06d...." % number for number in range(2 * offset, 2 * offset + 16, 2)]
        assert result.suggest_slave
    assert disk.reads - before <= 4
    read_on(store, 0, 0, [32] * 10)
    read_on(store, 0, 700, [32] * 40)  # across the border between far and near


def test_the_number_of_readers_that_are_remembered_is_bounded(stores: Stores) -> None:
    store = filled(stores, [0, 1] * 1000)
    for offset in range(900):
        store.get(TOPIC, 0, offset, 32)
    assert len(store.reader._ahead._at) <= 512


def test_two_who_read_a_queue_in_step_do_not_disturb_each_other(stores: Stores) -> None:
    disk = CountingDisk()
    store = filled(stores, [0, 1] * 1000, disk=disk)
    before = disk.reads
    for offset in range(0, 640, 32):
        for _ in range(2):
            assert bodies(store.get(TOPIC, 1, offset, 32))[0] == b"%06d...." % (2 * offset + 1)
    assert disk.reads - before <= 20 + 4  # one of them reads ahead


@pytest.mark.parametrize("gone", ["deleted", "no longer mapped"])
def test_a_file_of_the_log_is_not_held_for_who_no_longer_reads_it(stores: Stores, gone: str) -> None:
    store = filled(stores, [0, 1] * 1000, commit_log_file_size=1 << 16, max_mapped_log_files=2)
    log = store.commit_log
    for offset in (0, 32, 64):
        store.get(TOPIC, 0, offset, 32)
    assert log.files.path_of(0) in Path("/proc/self/maps").read_text()
    if gone == "deleted":
        store.flush()
        log.files.drop_file(0)
    else:
        for start in log.files.starts:
            log.files.find(start)
    assert log.files.path_of(0) not in Path("/proc/self/maps").read_text()


def trail_at(store: MessageStore, queue_id: int, offset: int) -> Trail:
    trail = store.reader.trail(TOPIC, queue_id)
    assert trail is not None
    trail.expected = offset
    return trail


def go_on(store: MessageStore, trail: Trail, offset: int) -> int:
    """As who pulls: on the trail, else as any other; where the next read begins."""
    result = store.reader.go_on(trail, offset, 32)
    if result is None:
        result = store.get(TOPIC, trail.queue.queue_id, offset, 32)
        trail.expected = result.next_offset
    queue_offsets = [record.queue_offset for record in decode_records(result.join())]
    assert queue_offsets == list(range(offset, result.next_offset))
    return result.next_offset


def test_what_is_read_for_those_with_a_trail_is_bounded_in_all_and_they_go_on_nevertheless(stores: Stores) -> None:
    store = filled(stores, [0, 1] * 1000)
    trails = [trail_at(store, 0, offset) for offset in [0, 32, 64, 96] * 150]
    for trail in trails:
        for _ in range(2):
            assert store.reader.go_on(trail, trail.expected, 32) is not None
    assert sum(trail.ahead is not None for trail in trails) <= 512
    assert trails[0].ahead is None
    offset = 64
    while trails[0].ahead is None:  # it was let go of: for a while he reads as any other
        offset = go_on(store, trails[0], offset)
        assert offset <= 960


def test_more_with_a_trail_than_are_remembered_do_not_take_each_others_entries_in_vain(stores: Stores) -> None:
    disk = CountingDisk()
    store = filled(stores, [0, 1] * 1000, disk=disk)
    trails = [trail_at(store, number % 2, 0) for number in range(700)]
    before = disk.bytes_read
    offset = 0
    while offset < 640:
        (offset,) = {go_on(store, trail, offset) for trail in trails}
    assert disk.bytes_read - before <= 3 * 700 * 640 * ENTRY_SIZE  # it was 20 times as much as they were given


def test_who_waits_for_what_is_new_takes_no_entries_from_those_who_are_behind(stores: Stores) -> None:
    store = filled(stores, [0, 1] * 1000)
    behind = trail_at(store, 0, 0)
    go_on(store, behind, 0)
    assert behind.ahead is not None
    waiting = [trail_at(store, 1, 1000) for _ in range(600)]
    for trail in waiting:
        assert store.reader.go_on(trail, 1000, 32) is None
    assert behind.ahead is not None


def test_who_has_a_trail_gets_as_many_old_messages_as_anybody_also_when_these_may_be_more_than_new_ones(
    stores: Stores,
) -> None:
    limits: dict[str, Any] = {"max_transfer_count_memory": 20, "max_transfer_count_disk": 48}
    store = filled(stores, [0, 1] * 1000, memory_bytes=10_000, **limits)
    trail = trail_at(store, 0, 32)
    result = store.reader.go_on(trail, 32, 64)
    assert result is not None
    assert shown(result) == as_anybody(store, 0, 32, 64)
    assert result.count == 48


@settings(max_examples=60, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(data=st.data())
def test_who_has_a_trail_gets_what_anybody_gets(stores: Stores, data: st.DataObject) -> None:
    queue_ids = data.draw(st.lists(st.integers(0, 2), min_size=1, max_size=12)) * 60
    sizes = data.draw(st.just([10]) | st.lists(st.integers(6, 3000), min_size=1, max_size=9))
    changes = data.draw(
        st.fixed_dictionaries(
            {},
            optional={
                "commit_log_file_size": st.sampled_from([1 << 17, 1 << 18]),
                "consume_queue_file_size": st.sampled_from([2000, 3000]),
                "memory_bytes": st.sampled_from([10_000, 100_000, 1_000_000]),
                "max_transfer_count_disk": st.sampled_from([1, 20, 64]),
                "max_transfer_bytes_disk": st.sampled_from([1000, 20_000]),
                "max_transfer_count_memory": st.sampled_from([20, 32, 100]),
                "max_transfer_bytes_memory": st.sampled_from([3000, 60_000, 262_144]),
            },
        )
    )
    store = filled(stores, queue_ids, sizes, **changes)
    queue_id = data.draw(st.integers(0, 2))
    trail = store.reader.trail(TOPIC, queue_id)
    offset = data.draw(st.integers(0, 100))
    steps = data.draw(st.lists(st.sampled_from([32, 32, 32, 1, 16, 64, 100, -40, 7]), min_size=1, max_size=40))
    for count in steps:
        if count == -40:
            put(store, b"late", queue_id=queue_id)
            store.dispatch()
            offset = max(offset - 40, 0)
            continue
        most_bytes = data.draw(st.sampled_from([1 << 27, 1 << 27, 2000, 1, -5]))
        expected = as_anybody(store, queue_id, offset, count, most_bytes)
        found = None if trail is None else store.reader.go_on(trail, offset, count, most_bytes)
        if found is not None:
            assert shown(found) == expected
        elif trail is not None and not isinstance(expected, str):
            trail.expected = expected[1]
        if isinstance(expected, str):
            return
        offset = expected[1]
    store.close()
