"""Which files go and when: the rules as tables of cases, then the cleaner on real files of set ages."""

import os
import threading
import time
from pathlib import Path
from typing import Any

import pytest

from skyrocket.format.record import decode_records
from skyrocket.store.consume_queue import ConsumeQueue
from skyrocket.store.entry_files import EntryFiles
from skyrocket.store.message_store import MessageStore
from skyrocket.store.results import GetStatus, PutStatus
from skyrocket.store.retention import DiskState, deletable_files, disk_state, is_delete_hour
from skyrocket.testing.clock import FakeClock
from tests.unit.store.stores import (
    ENTRIES_PER_FILE,
    FILE_SIZE,
    TOPIC,
    Stores,
    UnforcedDisk,
    bodies,
    clean_expired,
    fill_files,
    message,
    put,
    small_config,
)
from tests.waiting import wait_until

HOUR_MS = 3_600_000


class PartlyUsedDisk(UnforcedDisk):
    """A disk that is used to a ratio that the test sets."""

    ratio = 0.1

    def used_ratio(self, path: str) -> float:
        return self.ratio


# -- rules ---------------------------------------------------------------------------------------------------------


@pytest.mark.requirement("A098", "A099", "A100")
@pytest.mark.parametrize(
    ("ratio", "state"),
    [
        (0.0, DiskState.ROOMY),
        (0.75, DiskState.ROOMY),
        (0.76, DiskState.HIGH),
        (0.85, DiskState.HIGH),
        (0.86, DiskState.FORCED),
        (0.90, DiskState.FORCED),
        (0.91, DiskState.FULL),
        (1.0, DiskState.FULL),
    ],
)
def test_the_state_of_a_disk_changes_above_75_85_and_90_percent(ratio: float, state: DiskState) -> None:
    assert disk_state(ratio, small_config()) is state


@pytest.mark.parametrize("percent", range(10, 96))
def test_a_limit_is_passed_only_above_it(percent: int) -> None:
    config = small_config(disk_max_used_percent=percent, disk_clean_forcibly_percent=85, disk_warning_percent=90)
    if percent <= 85:
        assert disk_state(percent / 100, config) is DiskState.ROOMY
    assert disk_state((percent + 1) / 100, config) is not DiskState.ROOMY


@pytest.mark.requirement("A097", "C155")
@pytest.mark.parametrize(
    ("hour", "delete_when", "expected"),
    [
        (4, "04", True),
        (3, "04", False),
        (5, "04", False),
        (0, "00", True),
        (23, "04;23", True),
        (4, "04;23", True),
        (12, "04;23", False),
        (4, "", False),
        (4, "four", False),
        (4, " 4 ", True),
    ],
)
def test_expired_files_go_in_the_hours_that_are_set(hour: int, delete_when: str, expected: bool) -> None:
    local = time.localtime(1_760_000_000)
    at = time.mktime((local.tm_year, local.tm_mon, local.tm_mday, hour, 30, 0, 0, 0, -1))
    assert is_delete_hour(int(at * 1000), delete_when) is expected


NOW = 1_000 * HOUR_MS
AGED = [
    (0, NOW - 80 * HOUR_MS),
    (10, NOW - 72 * HOUR_MS),
    (20, NOW - 71 * HOUR_MS),
    (30, NOW - 90 * HOUR_MS),
    (40, NOW),
]


@pytest.mark.requirement("A095", "A096", "C155")
@pytest.mark.parametrize(
    ("files", "forced", "at_most", "doomed"),
    [
        ([], False, 10, []),
        (AGED, False, 10, [0, 10]),  # up to the first that stays, though an older one follows
        (AGED, False, 1, [0]),
        (AGED, True, 10, [0, 10, 20, 30]),  # never the newest
        (AGED, True, 2, [0, 10]),
        (AGED[2:], False, 10, []),
        ([(0, 0)], False, 10, []),
        ([(0, 0)], True, 10, []),
    ],
)
def test_files_go_from_the_oldest_on(
    files: list[tuple[int, int]], forced: bool, at_most: int, doomed: list[int]
) -> None:
    assert deletable_files(files, NOW, reserved_hours=72, forced=forced, at_most=at_most) == doomed


# -- the cleaner ---------------------------------------------------------------------------------------------------


class Aged:
    """A store with five log files; the test says how old each is and how full the disk."""

    def __init__(self, stores: Stores, **changes: Any) -> None:
        self.disk = PartlyUsedDisk()
        self.clock = stores.clock
        self.store: MessageStore = stores.open(
            disk=self.disk, delete_pause_ms=0, delete_queue_pause_ms=0, delete_when="", **changes
        )
        self.messages = len(fill_files(self.store, 5, properties={"KEYS": "k"}))
        self.store.dispatch()
        self.store.queues.write_out()
        self.store.flush()
        self.age(0, 0, 0, 0, 0)

    def age(self, *hours: float) -> None:
        """Hours since the last change of each file."""
        for start, age in zip(self.starts, hours, strict=True):
            then = self.clock.now_ms() / 1000 - age * 3600
            os.utime(self.store.commit_log.files.path_of(start), (then, then))

    @property
    def starts(self) -> list[int]:
        return self.store.commit_log.files.starts

    @property
    def kept(self) -> list[int]:
        return [start // FILE_SIZE for start in self.starts]


def test_at_another_hour_with_room_nothing_goes(stores: Stores) -> None:
    aged = Aged(stores)
    aged.age(99, 99, 99, 99, 99)
    assert aged.store.cleaner.clean().log_files == 0
    assert aged.kept == [0, 1, 2, 3, 4]


@pytest.mark.requirement("A096", "A097", "C155")
def test_at_the_hour_expired_files_go_whether_consumed_or_not(stores: Stores, clock: FakeClock) -> None:
    hour = time.localtime(clock.now_ms() / 1000).tm_hour
    aged = Aged(stores)
    object.__setattr__(aged.store.config, "delete_when", f"{hour:02d}")
    aged.age(80, 72.001, 71.9, 80, 0)
    assert aged.store.cleaner.clean().log_files == 2
    assert aged.kept == [2, 3, 4]
    assert not Path(aged.store.commit_log.files.path_of(0)).exists()


@pytest.mark.requirement("A098", "C101")
def test_above_75_percent_expired_files_go_at_any_hour(stores: Stores) -> None:
    aged = Aged(stores)
    aged.age(80, 1, 1, 1, 0)
    aged.disk.ratio = 0.76
    aged.store.cleaner.clean()
    assert aged.kept == [1, 2, 3, 4]
    assert aged.store.put(message()).ok


@pytest.mark.requirement("A099", "C101")
@pytest.mark.parametrize("allowed", [True, False])
def test_above_85_percent_the_oldest_files_go_unless_forbidden(stores: Stores, allowed: bool) -> None:
    aged = Aged(stores, clean_forcibly=allowed)
    aged.disk.ratio = 0.86
    aged.store.cleaner.clean()
    assert aged.kept == ([4] if allowed else [0, 1, 2, 3, 4])


@pytest.mark.requirement("A100", "B044")
def test_above_90_percent_writes_are_refused_until_below_85(stores: Stores) -> None:
    aged = Aged(stores)
    store = aged.store
    aged.disk.ratio = 0.91
    store.cleaner.clean()
    assert (store.disk_full, store.writable) == (True, False)
    refused = store.put(message())
    assert refused.status is PutStatus.SERVICE_NOT_AVAILABLE
    assert "90 %" in refused.remark
    assert store.get(TOPIC, 0, store.max_offset(TOPIC, 0) - 1).status is GetStatus.FOUND  # reads go on
    aged.disk.ratio = 0.86
    store.cleaner.clean()
    assert not store.put(message()).ok
    aged.disk.ratio = 0.85
    store.cleaner.clean()
    assert store.put(message()).ok
    assert not store.disk_full


@pytest.mark.requirement("A100")
def test_a_store_on_a_full_disk_opens_for_reading_only(stores: Stores) -> None:
    disk = PartlyUsedDisk()
    disk.ratio = 0.95
    store = stores.open(disk=disk)
    assert not store.put(message()).ok


@pytest.mark.requirement("A101", "C101")
def test_manual_cleaning_takes_expired_files_at_any_hour(stores: Stores) -> None:
    aged = Aged(stores)
    aged.age(80, 80, 1, 1, 0)
    assert clean_expired(aged.store).log_files == 2
    assert aged.kept == [2, 3, 4]
    aged.age(80, 1, 0)
    assert aged.store.cleaner.clean().log_files == 1  # the request holds for twenty runs
    for _ in range(20):
        aged.store.cleaner.clean()
    aged.age(80, 0)
    assert aged.store.cleaner.clean().log_files == 0


@pytest.mark.requirement("A102")
def test_files_go_one_at_a_time_with_a_pause_and_some_in_a_run(stores: Stores) -> None:
    aged = Aged(stores, delete_batch=3)
    object.__setattr__(aged.store.config, "delete_pause_ms", 30)
    aged.disk.ratio = 0.86
    began = time.monotonic()
    assert aged.store.cleaner.clean().log_files == 3
    assert time.monotonic() - began >= 0.09
    assert aged.kept == [3, 4]


def test_queue_files_go_with_a_pause_too(stores: Stores) -> None:
    aged = Aged(stores)
    put(aged.store, queue_id=1)
    object.__setattr__(aged.store.config, "delete_queue_pause_ms", 50)
    aged.disk.ratio = 0.86
    began = time.monotonic()
    assert aged.store.cleaner.clean().queue_files > 1
    assert time.monotonic() - began >= 0.05


def test_what_is_not_flushed_or_still_wanted_stays(stores: Stores) -> None:
    aged = Aged(stores)
    aged.disk.ratio = 0.86
    aged.store.cleaner.oldest_wanted = 2 * FILE_SIZE + 5
    aged.store.cleaner.clean()
    assert aged.kept == [2, 3, 4]
    aged.store.cleaner.oldest_wanted = None
    aged.store.commit_log.flushed_offset = 3 * FILE_SIZE + 5
    aged.store.cleaner.clean()
    assert aged.kept == [3, 4]
    aged.store.flush()


@pytest.mark.requirement("A095")
def test_queues_follow_the_log_and_keep_their_numbers(stores: Stores) -> None:
    aged = Aged(stores)
    store = aged.store
    put(store, b"small", topic="Old")
    aged.age(80, 80, 1, 1, 0)
    report = clean_expired(store)

    assert report.queue_files > 0
    low = store.min_offset(TOPIC, 0)
    assert 0 < low < aged.messages == store.max_offset(TOPIC, 0)
    first = store.get(TOPIC, 0, low, 1)
    assert first.status is GetStatus.FOUND
    assert store.get(TOPIC, 0, low - 1).status is GetStatus.OFFSET_TOO_SMALL
    files = sorted(int(path.name) for path in (Path(store.paths.consume_queue) / TOPIC / "0").iterdir())
    assert files[0] == low // ENTRIES_PER_FILE * ENTRIES_PER_FILE * 20
    assert put(store).queue_offset == aged.messages


def test_a_queue_whose_records_are_all_gone_is_empty_but_goes_on_counting(stores: Stores) -> None:
    disk = PartlyUsedDisk()
    store = stores.open(disk=disk, delete_pause_ms=0, delete_queue_pause_ms=0)
    for _ in range(3):
        put(store, topic="Old")
    fill_files(store, 3)
    store.dispatch()
    store.flush()
    disk.ratio = 0.86
    store.cleaner.clean()
    assert (store.min_offset("Old", 0), store.max_offset("Old", 0)) == (3, 3)
    assert store.get("Old", 0, 0).status is GetStatus.OFFSET_TOO_SMALL
    store.close()
    disk.ratio = 0.1
    store = stores.open(disk=disk)
    assert (store.min_offset("Old", 0), store.max_offset("Old", 0)) == (3, 3)
    assert put(store, topic="Old").queue_offset == 3


def test_index_files_follow_the_log(stores: Stores) -> None:
    aged = Aged(stores, index_entries=60)
    store = aged.store
    assert store.index is not None
    store.index.catch_up()
    files = len(store.index.names)
    assert files > 5
    aged.disk.ratio = 0.86
    report = store.cleaner.clean()
    assert 0 < report.index_files < files
    assert len(list(Path(store.paths.index).iterdir())) == len(store.index.names) == files - report.index_files
    assert store.query(TOPIC, "k")


def test_slices_in_use_survive_the_deletion_of_their_file(stores: Stores) -> None:
    aged = Aged(stores)
    result = aged.store.get(TOPIC, 0, 0)
    before = result.join()
    aged.disk.ratio = 0.86
    aged.store.cleaner.clean()
    assert result.join() == before


def test_entries_that_go_while_a_reader_compares_them_speak_against_nothing(
    stores: Stores, monkeypatch: pytest.MonkeyPatch
) -> None:
    store = stores.open()
    for _ in range(3 * ENTRIES_PER_FILE):
        put(store)
    store.dispatch()
    store.queues.write_out()
    queue = store.queues.get(TOPIC, 0)
    assert isinstance(queue, ConsumeQueue)
    read = queue.entries.read

    def first_file_is_gone(_: EntryFiles, position: int, length: int) -> bytes:
        return b"" if position < queue.entries.file_size else read(position, length)

    monkeypatch.setattr(EntryFiles, "read", first_file_is_gone)
    assert all(queue.ascends_at(number) for number in (0, ENTRIES_PER_FILE - 1, ENTRIES_PER_FILE))
    monkeypatch.undo()


def test_a_cleaned_store_opens_without_a_rebuild(stores: Stores) -> None:
    aged = Aged(stores)
    aged.age(80, 80, 1, 1, 0)
    clean_expired(aged.store)
    low = aged.store.min_offset(TOPIC, 0)
    aged.store.close()
    store = stores.open(disk=aged.disk)
    assert store.recovery is not None
    assert (store.recovery.clean, store.recovery.rebuilt_queues) == (True, False)
    assert (store.min_offset(TOPIC, 0), store.max_offset(TOPIC, 0)) == (low, aged.messages)


def test_queues_of_expired_topics_can_be_removed(stores: Stores) -> None:
    disk = PartlyUsedDisk()
    store = stores.open(disk=disk, delete_pause_ms=0, delete_queue_pause_ms=0)
    put(store, topic="Old")
    put(store, topic="SCHEDULE_TOPIC_XXXX")
    fill_files(store, 2)
    put(store)
    store.dispatch()
    store.flush()
    disk.ratio = 0.86
    store.cleaner.clean()
    assert store.removal.remove_expired() == 1
    assert store.queues.get("Old", 0) is None
    assert store.queues.get("SCHEDULE_TOPIC_XXXX", 0) is not None
    assert store.queues.get(TOPIC, 0) is not None


def test_a_queue_whose_newest_message_has_no_entry_yet_is_not_removed(stores: Stores) -> None:
    """With SYNC_FLUSH it gets one when the disk has it."""
    disk = PartlyUsedDisk()
    store = stores.open(disk=disk, delete_pause_ms=0, delete_queue_pause_ms=0)
    put(store, topic="Old")
    fill_files(store, 2)
    store.dispatch()
    store.flush()
    disk.ratio = 0.86
    store.cleaner.clean()
    put(store, b"new", topic="Old")
    assert store.removal.remove_expired() == 0
    store.dispatch()
    assert bodies(store.get("Old", 0, 1)) == [b"new"]


@pytest.mark.requirement("C155")
def test_the_cleaner_runs_by_itself(stores: Stores) -> None:
    disk = PartlyUsedDisk()
    disk.ratio = 0.86
    store = stores.open(disk=disk, clean_first_delay_ms=10, clean_interval_ms=10, delete_pause_ms=0)
    fill_files(store, 3)
    store.flush()
    wait_until(lambda: len(store.commit_log.files.starts) <= 1)
    assert len(store.commit_log.files.starts) == 1


@pytest.mark.usefixtures("hurried_threads")
def test_readers_never_see_anything_wrong_while_files_go(stores: Stores) -> None:
    disk = PartlyUsedDisk()
    disk.ratio = 0.86
    store = stores.open(
        disk=disk,
        dispatch_thread=True,
        clean_first_delay_ms=1,
        clean_interval_ms=1,
        delete_pause_ms=0,
        delete_queue_pause_ms=0,
        max_mapped_log_files=2,
        max_open_queue_files=8,
        queue_flush_interval_ms=1,
        checkpoint_interval_ms=5,
        flush_interval_ms=2,
        index_entries=50,
    )
    stop = threading.Event()
    problems: list[str] = []

    def read() -> None:
        try:
            while not stop.is_set():
                offset = max(store.min_offset(TOPIC, 0), 0)
                result = store.get(TOPIC, 0, offset)
                for found in decode_records(result.join()):
                    assert found.body == b"%d" % found.queue_offset + b"x" * 900
                store.offset_by_time(TOPIC, 0, 1)
                store.reader.earliest_log_time()
                store.query(TOPIC, "k")
                store.commit_log.raw(store.commit_log.min_offset, 100)
        except Exception as error:
            problems.append(repr(error))
            raise

    readers = [threading.Thread(target=read) for _ in range(2)]
    for reader in readers:
        reader.start()
    for number in range(700):
        put(store, b"%d" % number + b"x" * 900, properties={"KEYS": "k"})
    stop.set()
    for reader in readers:
        reader.join()
    assert problems == []
    assert store.failure is None
    assert store.commit_log.min_offset > 0
