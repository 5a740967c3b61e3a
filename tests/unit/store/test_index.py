"""The index: what is indexed, chains, roll-over, and queries by key, tags and time."""

import errno
import os
import shutil
import threading
import time
from pathlib import Path

import pytest

from skyrocket.format import index_layout as layout
from skyrocket.format import sys_flag as flags
from skyrocket.format.checkpoint import decode_checkpoint
from skyrocket.format.index_layout import IndexEntry, IndexHeader, index_hash
from skyrocket.format.record import decode_record
from skyrocket.store.index import Index
from skyrocket.store.message_store import MessageStore
from skyrocket.testing.clock import FakeClock
from tests.unit.store.stores import TOPIC, Stores, UnforcedDisk, fill_files, message, put, small_config
from tests.waiting import wait_until

SLOTS = 50


def index_of(store: MessageStore) -> Index:
    assert store.index is not None
    return store.index


def found(store: MessageStore, key: str, *arguments: int, **options: bool) -> list[bytes]:
    return [decode_record(view).body for view in store.query(TOPIC, key, *arguments, **options)]


def index_files(store: MessageStore) -> list[bytes]:
    return [path.read_bytes() for path in sorted(Path(store.paths.index).iterdir())]


def entries_of(data: bytes) -> list[IndexEntry]:
    header = layout.decode_header(data)
    return [
        IndexEntry._make(layout.ENTRY.unpack_from(data, layout.entry_position(SLOTS, number)))
        for number in range(1, header.next_number)
    ]


# -- what is indexed ---------------------------------------------------------------------------------------------


@pytest.mark.requirement("A001", "A003", "A052")
def test_a_message_is_found_by_its_unique_key_and_by_each_of_its_keys(stores: Stores) -> None:
    store = stores.open()
    put(store, b"one", properties={"UNIQ_KEY": "u1", "KEYS": "a b"})
    put(store, b"two", properties={"UNIQ_KEY": "u2", "KEYS": "b c"})
    put(store, b"no keys")
    assert found(store, "a") == [b"one"]
    assert found(store, "b") == [b"one", b"two"]
    assert found(store, "u2") == [b"two"]
    assert [decode_record(view).body for view in store.query_unique_key(TOPIC, "u1")] == [b"one"]
    assert found(store, "") == []
    header = index_of(store).newest_header
    assert header is not None
    assert header.next_number == 1 + 6


@pytest.mark.requirement("A052")
def test_messages_without_keys_make_no_index_file(stores: Stores) -> None:
    store = stores.open()
    put(store, properties={"other": "x"})
    store.dispatch()
    index_of(store).catch_up()
    store.close()
    assert index_files(store) == []


def test_a_key_belongs_to_its_topic(stores: Stores) -> None:
    store = stores.open()
    put(store, b"mine", properties={"KEYS": "k"})
    put(store, b"other", topic="Other", properties={"KEYS": "k"})
    assert found(store, "k") == [b"mine"]


@pytest.mark.parametrize("on", [True, False])
def test_tags_are_indexed_when_so_set(stores: Stores, on: bool) -> None:
    store = stores.open(index_tags=on)
    put(store, b"red", properties={"TAGS": "red", "KEYS": "k"})
    put(store, b"blue", properties={"TAGS": "blue"})
    assert found(store, "red", tag=True) == ([b"red"] if on else [])
    assert found(store, "red") == []
    assert found(store, "k") == [b"red"]


@pytest.mark.parametrize(
    ("kind", "indexed"),
    [
        (flags.TRANSACTION_PREPARED, True),
        (flags.TRANSACTION_COMMIT, True),
        (flags.TRANSACTION_ROLLBACK, False),
    ],
)
def test_all_but_rollbacks_are_indexed(stores: Stores, kind: int, indexed: bool) -> None:
    store = stores.open()
    put(store, b"half", properties={"KEYS": "k"}, sys_flag=kind)
    assert found(store, "k") == ([b"half"] if indexed else [])


def test_without_an_index_nothing_is_found_and_nothing_written(stores: Stores) -> None:
    store = stores.open(index_enabled=False)
    put(store, properties={"KEYS": "k"})
    assert found(store, "k") == []
    store.close()
    assert not Path(store.paths.index).exists()


def test_a_repeated_key_has_an_entry_each_time(stores: Stores) -> None:
    store = stores.open()
    put(store, b"twice", properties={"KEYS": "k k"})
    assert found(store, "k") == [b"twice", b"twice"]


# -- the bytes ---------------------------------------------------------------------------------------------------


@pytest.mark.requirement("A018", "A019", "A020", "A054", "A055", "A056", "A061", "C099", "D005", "D006", "D007", "B030")
def test_entries_are_numbered_from_one_and_chained_from_their_slot(stores: Stores, clock: FakeClock) -> None:
    store = stores.open(index_tags=False)
    results = []
    for number in range(120):  # more keys than slots: chains are sure
        results.append(put(store, properties={"KEYS": f"key{number % 60}"}))
        clock.advance(ms=600)
    store.dispatch()
    store.close()

    (data,) = index_files(store)
    assert len(data) == 40 + 4 * SLOTS + 20 * 1000
    entries = entries_of(data)
    begin = results[0].store_timestamp
    chains: dict[int, int] = {}
    for number, (entry, result) in enumerate(zip(entries, results, strict=True), 1):
        key_hash = index_hash(f"{TOPIC}#key{(number - 1) % 60}")
        slot = key_hash % SLOTS
        seconds = (result.store_timestamp - begin) // 1000
        assert entry == (key_hash, result.physical_offset, seconds, chains.get(slot, 0))
        chains[slot] = number
    for slot in range(SLOTS):
        at = layout.slot_position(slot)
        assert int.from_bytes(data[at : at + 4], "big") == chains.get(slot, 0)
    last = results[-1]
    assert layout.decode_header(data) == IndexHeader(
        begin, last.store_timestamp, 0, last.physical_offset, len(chains), 121
    )


@pytest.mark.requirement("A003")
@pytest.mark.parametrize("batch", [1, 7, 4096])
def test_indexing_in_batches_gives_the_same_bytes_as_one_by_one(stores: Stores, clock: FakeClock, batch: int) -> None:
    stored = []
    for name, size in (("reference", 1), ("batched", batch)):
        clock.set(1_760_000_000_000)
        store = stores.open(name, index_batch_records=size, index_entries=40)
        for number in range(150):
            put(store, properties={"KEYS": f"a{number % 9} b{number % 4}", "UNIQ_KEY": f"u{number}"})
            clock.advance(ms=333)
            if name == "reference":
                store.dispatch()
        store.close()
        stored.append(index_files(store))
    assert stored[0] == stored[1]
    assert len(stored[0]) > 5


@pytest.mark.requirement("A053", "D004")
def test_a_file_is_named_by_the_local_time_of_its_making(stores: Stores, clock: FakeClock) -> None:
    store = stores.open()
    put(store, properties={"KEYS": "k"})
    clock.advance(ms=123)
    store.dispatch()
    index_of(store).catch_up()
    now = clock.now_ms()
    expected = time.strftime("%Y%m%d%H%M%S", time.localtime(now // 1000)) + f"{now % 1000:03d}"
    assert index_of(store).names == [expected]


@pytest.mark.requirement("A057", "A058", "B033", "C100")
def test_a_full_file_is_followed_by_one_whose_first_entry_counts_from_its_end(stores: Stores, clock: FakeClock) -> None:
    store = stores.open(index_entries=5, index_tags=False)
    results = []
    for _ in range(9):
        results.append(put(store, properties={"KEYS": "k"}))
        clock.advance(seconds=10)
        store.dispatch()
        index_of(store).catch_up()
    store.close()

    first, second, third = map(entries_of, index_files(store))
    assert [len(first), len(second), len(third)] == [4, 4, 1]  # number 0 is never used
    assert [entry.seconds for entry in first] == [0, 10, 20, 30]
    # RocketMQ: the header of a new file is seeded with the end of the one before, and the first entry counts from it.
    assert [entry.seconds for entry in second] == [10, 10, 20, 30]
    headers = [layout.decode_header(data) for data in index_files(store)]
    assert [header.begin_timestamp for header in headers] == [results[n].store_timestamp for n in (0, 4, 8)]
    assert [header.begin_physical_offset for header in headers] == [results[n].physical_offset for n in (0, 4, 8)]
    assert [header.end_physical_offset for header in headers] == [results[n].physical_offset for n in (3, 7, 8)]


def test_names_of_files_that_fill_within_a_millisecond_differ(stores: Stores) -> None:
    store = stores.open(index_entries=3)
    for number in range(10):
        put(store, properties={"KEYS": f"k{number}"})
    store.dispatch()
    index_of(store).catch_up()
    names = index_of(store).names
    assert len(set(names)) == len(names) == 5
    assert names == sorted(names)
    assert [found(store, f"k{number}") for number in range(10)] == [[b"hello"]] * 10


def test_keys_of_one_message_may_fall_into_two_files(stores: Stores) -> None:
    store = stores.open(index_entries=4, index_tags=False)
    put(store, b"first", properties={"KEYS": "a b"})
    put(store, b"second", properties={"KEYS": "c d"})
    assert [found(store, key) for key in "abcd"] == [[b"first"], [b"first"], [b"second"], [b"second"]]
    assert len(index_of(store).names) == 2


# -- queries ---------------------------------------------------------------------------------------------------


@pytest.mark.requirement("B030", "D006")
def test_the_newest_are_found_first_and_returned_in_log_order(stores: Stores) -> None:
    store = stores.open(index_entries=31)
    for number in range(100):
        put(store, b"%d" % number, properties={"KEYS": "k"})
    assert found(store, "k", 10) == [b"%d" % number for number in range(90, 100)]
    offsets = index_of(store).query(f"{TOPIC}#k", 10, 0, 1 << 62)
    assert offsets == sorted(offsets, reverse=True)


@pytest.mark.requirement("B030")
def test_a_query_gives_64_at_most_and_one_by_unique_key_32(stores: Stores) -> None:
    store = stores.open()
    for number in range(100):
        put(store, b"%d" % number, properties={"UNIQ_KEY": "u"})
    assert found(store, "u", 1000) == [b"%d" % number for number in range(36, 100)]
    assert len(store.query_unique_key(TOPIC, "u")) == 32
    assert found(store, "u", 0) == []


@pytest.mark.requirement("A060", "D008")
def test_times_outside_the_range_are_left_out(stores: Stores, clock: FakeClock) -> None:
    store = stores.open(index_entries=11, index_tags=False)
    times = []
    for number in range(40):
        times.append(put(store, b"%d" % number, properties={"KEYS": "k"}).store_timestamp)
        clock.advance(seconds=1)
        store.dispatch()
        index_of(store).catch_up()
    assert found(store, "k", 64, times[13], times[17]) == [b"%d" % number for number in range(13, 18)]
    assert found(store, "k", 64, times[38], times[39] + 9999) == [b"38", b"39"]
    assert found(store, "k", 64, 0, times[1]) == [b"0", b"1"]
    assert found(store, "k", 64, times[39] + 1000, times[39] + 2000) == []
    assert found(store, "k", 64, 0, times[0] - 1) == []


@pytest.mark.requirement("A020", "B031")
def test_keys_that_share_a_slot_are_told_apart_by_their_hash(stores: Stores) -> None:
    store = stores.open(index_slots=1)
    for number in range(30):
        put(store, b"%d" % number, properties={"KEYS": f"k{number % 3}"})
    assert found(store, "k1") == [b"%d" % number for number in range(1, 30, 3)]
    assert found(store, "absent") == []


@pytest.mark.requirement("B032")
def test_keys_with_the_same_hash_are_left_to_the_caller(stores: Stores) -> None:
    store = stores.open()
    assert index_hash(f"{TOPIC}#Aa") == index_hash(f"{TOPIC}#BB")
    put(store, b"one", properties={"KEYS": "Aa"})
    put(store, b"two", properties={"KEYS": "BB"})
    views = store.query(TOPIC, "Aa")
    assert [decode_record(view).body for view in views] == [b"one", b"two"]
    assert [decode_record(view).body for view in views if "Aa" in decode_record(view).keys] == [b"one"]


def test_hits_that_left_the_log_are_not_returned(stores: Stores, clock: FakeClock) -> None:
    store = stores.open()
    put(store, b"old", properties={"KEYS": "k"})
    put(store, b"gone", properties={"KEYS": "only old"})
    clock.advance(seconds=5)
    fill_files(store, 2)
    put(store, b"new", properties={"KEYS": "k"})
    store.flush()
    store.commit_log.files.drop_file(0)
    assert found(store, "k") == [b"new"]
    assert found(store, "old") == []


def test_a_chain_that_runs_in_a_circle_ends(stores: Stores) -> None:
    store = stores.open(index_slots=1, index_tags=False)
    for number in range(5):
        put(store, b"%d" % number, properties={"KEYS": "k"})
    store.dispatch()
    index = index_of(store)
    index.catch_up()
    current = index._current
    assert current is not None
    at = layout.entry_position(1, 2)
    current._map[at + 16 : at + 20] = (4).to_bytes(4, "big")  # entry 2 → entry 4 → 3 → 2 → …
    assert len(found(store, "k")) <= 64


# -- life ------------------------------------------------------------------------------------------------------


def test_records_wait_for_the_index_only_a_moment(stores: Stores) -> None:
    store = stores.open(index_batch_records=10, index_batch_delay_ms=60_000)
    for _ in range(9):
        put(store, properties={"KEYS": "k"})
    store.dispatch()
    assert index_of(store).backlog == 9
    put(store, properties={"KEYS": "k"})
    store.dispatch()
    assert index_of(store).backlog == 0
    store = stores.open("soon", index_batch_records=10, index_batch_delay_ms=20)
    put(store, properties={"KEYS": "k"})
    store.dispatch()
    time.sleep(0.03)
    store.dispatch()
    assert index_of(store).backlog == 0


@pytest.mark.parametrize("clean", [True, False])
def test_every_key_is_found_after_a_restart_and_after_a_crash(stores: Stores, clean: bool) -> None:
    store = stores.open(index_entries=20)
    for number in range(50):
        put(store, b"%d" % number, properties={"KEYS": f"k{number}"})
    store.dispatch()
    store.close()
    if not clean:
        Path(store.paths.abort).touch()
    store = stores.open(index_entries=20)
    put(store, b"50", properties={"KEYS": "k50"})
    for number in range(51):
        bodies = found(store, f"k{number}")
        if clean:
            assert bodies == [b"%d" % number]
        else:  # RocketMQ: the record that filled the last file that was kept may be there twice
            assert set(bodies) == {b"%d" % number}


@pytest.mark.requirement("C157")
def test_after_a_crash_files_newer_than_the_checkpoint_are_built_anew(stores: Stores, clock: FakeClock) -> None:
    store = stores.open(index_entries=11, index_tags=False)
    for number in range(25):
        put(store, b"%d" % number, properties={"KEYS": f"k{number}"})
        clock.advance(seconds=1)
        store.dispatch()
        index_of(store).catch_up()
    names = index_of(store).names
    assert len(names) == 3
    store.close()
    Path(store.paths.abort).touch()
    newest = Path(store.paths.index) / names[-1]
    newest.write_bytes(layout.HEADER.pack(1, 1 << 60, 1, 1 << 60, 3, 4) + newest.read_bytes()[40:])

    store = stores.open(index_entries=11, index_tags=False)
    assert [set(found(store, f"k{number}")) for number in range(25)] == [{b"%d" % number} for number in range(25)]
    header = index_of(store).newest_header
    assert header is not None
    assert header.end_timestamp < 1 << 60


def test_files_whose_records_have_all_left_the_log_go_but_never_the_newest(stores: Stores) -> None:
    store = stores.open(index_entries=6, index_tags=False)
    for number in range(23):
        put(store, properties={"KEYS": f"k{number}"})
    store.dispatch()
    index = index_of(store)
    index.catch_up()
    names = index.names
    assert len(names) == 5
    third = store.query(TOPIC, "k10")[0]
    assert index.remove_expired(decode_record(third).physical_offset) == names[:2]
    assert index.names == names[2:]
    assert index.remove_expired(1 << 60) == names[2:4]
    assert sorted(path.name for path in Path(store.paths.index).iterdir()) == names[4:]


def test_few_index_files_are_mapped_at_a_time(stores: Stores) -> None:
    store = stores.open(index_entries=3, max_mapped_index_files=2)
    for number in range(20):
        put(store, b"%d" % number, properties={"KEYS": f"k{number}"})
    assert [found(store, f"k{number}") for number in range(20)] == [[b"%d" % number] for number in range(20)]
    assert len(index_of(store)._mapped) <= 2


def test_names_that_are_no_time_are_left_alone(stores: Stores) -> None:
    store = stores.open()
    put(store, properties={"KEYS": "k"})
    store.close()
    (Path(store.paths.index) / "readme.txt").write_text("mine")
    store = stores.open()
    assert found(store, "k") == [b"hello"]
    assert (Path(store.paths.index) / "readme.txt").read_text() == "mine"


@pytest.mark.parametrize("left", [0, 100, 40 + 50 * 4 + 5 * 20])
@pytest.mark.parametrize("which", [0, -1])
def test_an_index_file_that_was_cut_short_is_built_anew(stores: Stores, left: int, which: int) -> None:
    store = stores.open(index_slots=50, index_entries=30, index_tags=False)
    places = [put(store, properties={"KEYS": f"k{number}"}).physical_offset for number in range(50)]
    store.close()
    assert store.index is not None
    files = sorted(Path(store.index.directory).iterdir())
    assert len(files) == 2
    files[which].write_bytes(files[which].read_bytes()[:left])
    again = stores.open(index_slots=50, index_entries=30, index_tags=False)
    assert again.index is not None
    assert [again.index.query(f"{TOPIC}#k{number}", 9, 0, 2**62) for number in range(50)] == [[at] for at in places]


@pytest.mark.requirement("A003")
def test_an_index_of_its_own_needs_only_what_dispatch_tells(tmp_path: Path, clock: FakeClock) -> None:
    index = Index(UnforcedDisk(), str(tmp_path / "index"), small_config(), clock)
    assert index.load(clean=True, checkpoint_timestamp=0)
    assert index.query("T#k", 10, 0, 1 << 62) == []
    assert index.end_physical_offset == -1
    assert index.newest_header is None


@pytest.mark.requirement("A003")
def test_the_dispatch_thread_brings_queues_and_index_up_to_date_within_moments(stores: Stores) -> None:
    store = stores.open(dispatch_thread=True)
    put(store, properties={"KEYS": "k"})
    store.intake.put_group([message(b"x", properties={"KEYS": "k"}) for _ in range(10)])
    wait_until(lambda: store.max_offset(TOPIC, 0) >= 11 and not index_of(store).backlog)
    assert store.max_offset(TOPIC, 0) == 11
    assert index_of(store).backlog == 0
    assert store.dispatch_lag_bytes == 0


# -- a disk that is full -----------------------------------------------------------------------------------------


def test_a_full_file_that_a_full_disk_keeps_out_of_the_checkpoint_is_named_by_the_clean_stop(stores: Stores) -> None:
    store = stores.open(index_entries=4)
    index = index_of(store)
    asked = list[int]()

    def no_room(end_timestamp: int) -> None:
        asked.append(end_timestamp)
        raise OSError(errno.ENOSPC, "no space left on device")

    index.on_completed = no_room
    for number in range(8):
        put(store, b"x", properties={"UNIQ_KEY": f"u{number}"})
    assert found(store, "u7") == [b"x"]
    wait_until(lambda: len(asked) == 2)
    store.close()
    assert store.failure is None
    again = stores.open().recovery
    assert again is not None
    assert again.clean


# -- full files at a start ---------------------------------------------------------------------------------------


class LateIndexDisk(UnforcedDisk):
    """Full files of the index reach it after the checkpoint, if nobody waits for them."""

    def __init__(self) -> None:
        super().__init__()
        self._checkpoint_is_written = threading.Event()

    def create(self, path: str, size: int) -> int:
        if os.path.basename(path) == "checkpoint":
            self._checkpoint_is_written.set()
        return super().create(path, size)

    def sync_directory(self, path: str) -> None:
        if threading.current_thread().name == "store-index-sync":
            self._checkpoint_is_written.wait(1)


def test_a_start_names_the_full_files_that_it_built_however_late_they_reach_the_disk(stores: Stores) -> None:
    store = stores.open(index_entries=4)
    last = [put(store, properties={"UNIQ_KEY": f"u{number}"}).store_timestamp for number in range(9)][-1]
    store.close()
    Path(store.paths.abort).touch()
    Path(store.paths.checkpoint).unlink()
    shutil.rmtree(store.paths.index)

    store = stores.open(disk=LateIndexDisk(), index_entries=4)
    wait_until(lambda: not any(thread.name == "store-index-sync" for thread in threading.enumerate()))
    checkpoint, is_sealed = decode_checkpoint(Path(store.paths.checkpoint).read_bytes())
    assert is_sealed
    assert checkpoint.index_timestamp == last
    assert store.checkpoint.current == checkpoint
