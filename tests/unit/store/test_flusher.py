"""Flush modes: group commit, timed flushes with their page rule, one per message; failures; times of the checkpoint."""

import threading
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from skyrocket.config.sections import FlushDiskType, StoreConfig
from skyrocket.format.batch import BatchElement
from skyrocket.format.checkpoint import decode_checkpoint
from skyrocket.store.flusher import Flusher
from skyrocket.store.message_store import MessageStore
from skyrocket.store.results import Durability, GetStatus, PutResult, PutStatus
from skyrocket.testing.clock import FakeClock
from tests.unit.store.stores import TOPIC, Stores, UnforcedDisk, bodies, fill_files, message, put, wait_durable
from tests.waiting import wait_until

SYNC: dict[str, Any] = {"flush_disk_type": FlushDiskType.SYNC_FLUSH}
# The flusher's thread sleeps for the whole test: an interval is over when the test says so (`look`).
UNMOVED: dict[str, Any] = {"flush_timed": True, "flush_interval_ms": 3_600_000, "flush_thorough_interval_ms": 3_600_000}
PAGE = 4096


class SlowDisk(UnforcedDisk):
    """A disk whose fsync can be held up, counted and made to fail."""

    def __init__(self) -> None:
        super().__init__()
        self.released = threading.Event()
        self.released.set()
        self.begun = threading.Event()
        self.error: OSError | None = None

    def sync(self, fd: int) -> None:
        super().sync(fd)
        self.begun.set()
        assert self.released.wait(10)
        if self.error is not None:
            raise self.error


def flushed(store: MessageStore) -> int:
    return store.commit_log.flushed_offset


# -- synchronous ---------------------------------------------------------------------------------------------------


@pytest.mark.requirement("A035", "D018", "E005")
def test_a_put_waits_for_the_disk_and_then_says_so(stores: Stores) -> None:
    disk = SlowDisk()
    store = stores.open(disk=disk, **SYNC)
    result = put(store)
    assert result.durability is Durability.MEMORY
    durable = wait_durable(store, result)
    assert (durable.status, durable.durability) == (PutStatus.PUT_OK, Durability.DISK)
    assert disk.syncs >= 1
    assert flushed(store) >= result.end_offset


@pytest.mark.requirement("A034", "A037", "B028", "D031")
def test_one_fsync_answers_all_who_wait(stores: Stores) -> None:
    disk = SlowDisk()
    store = stores.open(disk=disk, **SYNC)
    wait_durable(store, put(store))
    disk.released.clear()
    disk.begun.clear()
    first = put(store)
    answers: list[PutResult] = []
    threads = [threading.Thread(target=lambda: answers.append(wait_durable(store, first)))]
    threads[0].start()
    assert disk.begun.wait(5)
    syncs = disk.syncs
    for number in range(20):  # they come while the disk is at work
        result = put(store, b"%d" % number)
        threads.append(threading.Thread(target=lambda result=result: answers.append(wait_durable(store, result))))
        threads[-1].start()
    wait_until(lambda: len(store.flusher._waiting) == 21)
    assert answers == []
    disk.released.set()
    for thread in threads:
        thread.join()

    assert len(answers) == 21
    assert {answer.durability for answer in answers} == {Durability.DISK}
    assert disk.syncs - syncs == 1
    assert flushed(store) == store.commit_log.written_offset


@pytest.mark.requirement("A035")
def test_with_synchronous_flush_nobody_reads_what_the_disk_does_not_have(stores: Stores) -> None:
    disk = SlowDisk()
    store = stores.open(disk=disk, **SYNC)
    disk.released.clear()
    result = put(store)
    store.dispatch()
    assert store.get(TOPIC, 0, 0).status is GetStatus.NO_MESSAGE_IN_QUEUE
    disk.released.set()
    wait_durable(store, result)
    store.dispatch()
    assert bodies(store.get(TOPIC, 0, 0)) == [b"hello"]


def test_with_synchronous_flush_a_message_nobody_waits_for_is_flushed_at_once(stores: Stores) -> None:
    store = stores.open(**SYNC)
    end = put(store).end_offset
    wait_until(lambda: flushed(store) >= end)
    batch = store.intake.put_batch(message(), [])
    assert not batch.ok


def test_with_synchronous_flush_replicated_bytes_are_flushed_at_once(stores: Stores) -> None:
    master = stores.open("master")
    data = bytes(master.commit_log.raw(0, put(master).end_offset) or b"")
    replica = stores.open("replica", **SYNC)
    replica.append_raw(0, data)
    wait_until(lambda: flushed(replica) == len(data))


def test_a_slow_disk_is_a_timeout_and_the_message_is_stored(stores: Stores) -> None:
    disk = SlowDisk()
    store = stores.open(disk=disk, sync_flush_timeout_ms=30, **SYNC)
    disk.released.clear()
    result = wait_durable(store, put(store))
    assert (result.status, result.durability) == (PutStatus.FLUSH_DISK_TIMEOUT, Durability.MEMORY)
    disk.released.set()
    wait_until(lambda: flushed(store) == result.end_offset)
    store.dispatch()
    assert bodies(store.get(TOPIC, 0, 0)) == [b"hello"]


def test_callbacks_come_in_log_order_and_at_once_for_what_is_on_disk(stores: Stores) -> None:
    store = stores.open(**SYNC)
    called: list[tuple[int, bool]] = []
    done = threading.Event()

    def note(number: int) -> Callable[[bool], None]:
        def callback(ok: bool) -> None:
            called.append((number, ok))
            if len(called) == 5:
                done.set()

        return callback

    ends = [put(store, b"%d" % number).end_offset for number in range(5)]
    for number in (3, 1, 4, 0, 2):
        store.flusher.when_flushed(ends[number], note(number))
    assert done.wait(5)
    assert {number for number, _ in called} == {0, 1, 2, 3, 4}
    assert all(ok for _, ok in called)
    store.flusher.when_flushed(ends[0], note(9))
    assert called[-1] == (9, True)


def test_a_callback_that_fails_does_not_stop_the_flusher(stores: Stores) -> None:
    store = stores.open(**SYNC)

    def broken(ok: bool) -> None:
        raise ValueError("not the store's fault")

    store.flusher.when_flushed(put(store).end_offset, broken)
    assert wait_durable(store, put(store)).durability is Durability.DISK


# -- asynchronous --------------------------------------------------------------------------------------------------


@pytest.mark.requirement("A036", "E005", "E006", "E008", "E009", "A012", "A096", "A097")
def test_the_defaults_are_those_of_rocketmq() -> None:
    config = StoreConfig()
    assert config.flush_disk_type is FlushDiskType.ASYNC_FLUSH
    assert config.flush_timed
    assert (config.flush_interval_ms, config.flush_least_pages) == (500, 4)
    assert config.flush_thorough_interval_ms == 10_000
    assert config.consume_queue_file_size == 300_000 * 20 == 6_000_000
    assert (config.file_reserved_hours, config.delete_when) == (72, "04")


@pytest.mark.requirement("A036", "D023", "E005")
def test_an_asynchronous_put_does_not_wait_for_the_disk(stores: Stores) -> None:
    disk = SlowDisk()
    store = stores.open(disk=disk, flush_interval_ms=5, flush_least_pages=1)
    disk.released.clear()
    for _ in range(100):
        assert put(store, b"x" * 500).durability is Durability.MEMORY
    store.dispatch()
    assert store.get(TOPIC, 0, 0).count == 32
    disk.released.set()


@pytest.mark.requirement("E006", "E008")
def test_every_interval_at_least_four_dirty_pages_are_flushed(stores: Stores) -> None:
    store = stores.open(flush_least_pages=4, **UNMOVED)
    put(store, b"x" * (3 * PAGE))
    store.flusher.look()
    assert flushed(store) == 0
    end = put(store, b"x" * PAGE).end_offset
    store.flusher.look()
    assert flushed(store) == end
    put(store, b"little")
    store.flusher.look()
    assert flushed(store) == end


def test_without_a_least_number_of_pages_every_byte_is_flushed(stores: Stores) -> None:
    store = stores.open(flush_interval_ms=10, flush_least_pages=0)
    end = put(store).end_offset
    wait_until(lambda: flushed(store) == end)


@pytest.mark.requirement("E009")
def test_after_the_thorough_interval_even_one_message_is_flushed(stores: Stores, clock: FakeClock) -> None:
    store = stores.open(flush_interval_ms=10, flush_least_pages=4, flush_thorough_interval_ms=60)
    result = put(store)
    wait_until(lambda: flushed(store) == result.end_offset)
    wait_until(lambda: store.checkpoint.current.physic_timestamp == result.store_timestamp)


@pytest.mark.requirement("E007")
def test_mode_two_flushes_when_a_message_arrives(stores: Stores) -> None:
    store = stores.open(flush_timed=False, flush_interval_ms=60_000, flush_least_pages=1)
    end = put(store, b"x" * 2 * PAGE).end_offset
    wait_until(lambda: flushed(store) == end)
    batch_end = store.intake.put_batch(message(), [BatchElement(0, b"x" * 2 * PAGE, b"")]).end_offset
    wait_until(lambda: flushed(store) == batch_end)


@pytest.mark.requirement("E006")
def test_mode_one_waits_for_its_interval(stores: Stores, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(Flusher, "wake", lambda _: pytest.fail("the message woke the flusher"))
    store = stores.open(flush_least_pages=1, **UNMOVED)
    end = put(store, b"x" * 2 * PAGE).end_offset
    assert flushed(store) == 0
    store.flusher.look()
    assert flushed(store) == end


def test_a_flush_covers_several_files_and_their_names(stores: Stores) -> None:
    class Noting(UnforcedDisk):
        directories = 0

        def sync_directory(self, path: str) -> None:
            self.directories += path.endswith("commitlog")

    disk = Noting()
    store = stores.open(disk=disk)
    fill_files(store, 3)
    syncs, directories = disk.syncs, disk.directories
    assert store.flush()
    assert (disk.syncs - syncs, disk.directories - directories) == (3, 1)
    assert flushed(store) == store.commit_log.written_offset
    assert store.flush()
    assert disk.syncs - syncs == 3  # nothing new: nothing to do


# -- a disk that fails ---------------------------------------------------------------------------------------------


def test_after_a_failed_fsync_no_write_is_taken_and_nothing_counts_as_flushed(stores: Stores) -> None:
    disk = SlowDisk()
    store = stores.open(disk=disk, **SYNC)
    durable = wait_durable(store, put(store, b"safe"))
    disk.error = OSError(5, "Input/output error")
    lost = wait_durable(store, put(store, b"lost"))

    assert lost.status is PutStatus.SERVICE_NOT_AVAILABLE
    assert "Input/output error" in lost.remark
    assert not store.writable
    disk.error = None  # the kernel has forgotten the failed pages: the next fsync would succeed
    assert not store.flush()
    assert flushed(store) == durable.end_offset
    assert store.checkpoint.current.flushed_offset == durable.end_offset
    refused = store.put(message())
    assert refused.status is PutStatus.SERVICE_NOT_AVAILABLE
    assert "start again" in refused.remark
    assert bodies(store.get(TOPIC, 0, 0)) == [] or bodies(store.get(TOPIC, 0, 0)) == [b"safe"]
    outcome: list[bool] = []
    store.flusher.when_flushed(lost.end_offset, outcome.append)
    assert outcome == [False]


# -- the checkpoint ------------------------------------------------------------------------------------------------


@pytest.mark.requirement("A023", "C098")
def test_checkpoint_times_are_those_of_what_was_flushed(stores: Stores, clock: FakeClock) -> None:
    store = stores.open()
    first = put(store).store_timestamp
    store.dispatch()
    assert store.checkpoint.current[:3] == (0, 0, 0)
    store.flush()
    clock.advance(seconds=7)
    second = put(store).store_timestamp
    assert store.checkpoint.current.physic_timestamp == first
    store.flush_queues()
    assert store.checkpoint.current.logics_timestamp == first  # the second was not dispatched yet
    store.dispatch()
    store.flush_queues()
    assert store.checkpoint.current.logics_timestamp == second
    store.close()
    checkpoint, trusted = decode_checkpoint(Path(store.paths.checkpoint).read_bytes())
    assert trusted
    assert (checkpoint.physic_timestamp, checkpoint.logics_timestamp) == (second, second)
    assert checkpoint.flushed_offset == store.commit_log.flushed_offset


def test_a_record_appended_during_a_commit_is_not_taken_as_flushed(stores: Stores, clock: FakeClock) -> None:
    class Interrupting(UnforcedDisk):
        armed = False

        def write_at(self, fd: int, data: bytes | bytearray | memoryview, position: int) -> None:
            super().write_at(fd, data, position)
            if self.armed:
                self.armed = False
                clock.advance(seconds=9)
                put(store, b"too late for this flush")

    disk = Interrupting()
    store = stores.open(disk=disk, transient_pool=True, transient_pool_size=2)
    first = put(store)
    disk.armed = True
    store.flush()
    assert flushed(store) == first.end_offset
    assert store.checkpoint.current.physic_timestamp == first.store_timestamp


def test_the_checkpoint_is_written_every_second_by_itself(stores: Stores) -> None:
    store = stores.open(checkpoint_interval_ms=20, queue_flush_interval_ms=20, queue_flush_thorough_interval_ms=20)
    result = put(store)
    store.dispatch()
    store.flush()

    def written() -> bool:
        path = Path(store.paths.checkpoint)
        return path.exists() and decode_checkpoint(path.read_bytes())[0].logics_timestamp == result.store_timestamp

    wait_until(lambda: store.checkpoint.current.logics_timestamp == result.store_timestamp)
    wait_until(written)
