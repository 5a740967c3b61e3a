"""After a failed fsync nobody knows what is on disk: the store takes no more writes, says so, and ends in order."""

import errno
import threading
from pathlib import Path

import pytest

from skyrocket.store.commit_log import PutMessage
from skyrocket.store.results import Durability, PutStatus
from skyrocket.testing.faulty_disk import FaultyDisk, Operation
from tests.faults.harness import (
    SYNC,
    Driver,
    Ledger,
    Survives,
    closing,
    new_clock,
    open_store,
    reopen_and_check,
    small_config,
)
from tests.unit.store.stores import wait_durable

MODES = {
    "async": small_config(),
    "sync": small_config(**SYNC),
    "pool": small_config(transient_pool=True, transient_pool_size=3),
}


@pytest.mark.requirement("A035", "D018")
@pytest.mark.parametrize("mode", MODES)
@pytest.mark.parametrize("error", [errno.EIO, errno.ENOSPC])
def test_after_a_failed_fsync_no_more_writes_are_taken(directory: Path, mode: str, error: int) -> None:
    config, clock, ledger = MODES[mode], new_clock(), Ledger()
    disk = FaultyDisk(directory)
    driver = Driver(open_store(directory, config, clock, disk), ledger, clock)
    for _ in range(5):
        assert driver.put("orders") is PutStatus.PUT_OK
    assert driver.wait_disk()
    driver.put("orders")
    disk.fail_next(Operation.SYNC, error)
    assert not driver.wait_disk(), "a waiter was told that its message is on disk"

    store = driver.store
    assert store.failure is not None
    assert "no more messages are taken" in store.failure
    assert driver.put("orders") is PutStatus.SERVICE_NOT_AVAILABLE
    assert driver.put_batch("orders", 0, 2) is PutStatus.SERVICE_NOT_AVAILABLE
    refused = store.put(PutMessage("orders", 0, b"body"))
    assert refused.remark == store.failure
    assert not store.flush(), "the kernel reports a lost write once: a second fsync proves nothing"
    assert store.get("orders", 0, 0) is not None, "what is there can still be read"

    driver.close()
    assert (directory / "abort").exists(), "not a clean stop"
    reopen_and_check(directory, ledger, config, clock, Survives.FLUSHED)


@pytest.mark.requirement("A034", "B028", "D031")
def test_every_waiter_is_answered_when_the_fsync_fails(directory: Path) -> None:
    config, clock = small_config(**SYNC, sync_flush_timeout_ms=60_000), new_clock()
    disk = FaultyDisk(directory)
    store = open_store(directory, config, clock, disk)
    with store.flusher._flushing:  # all of them come while the disk is busy: they are one group
        results = [store.put(PutMessage("orders", 0, b"body")) for _ in range(8)]
        answers: list[PutStatus] = []
        threads = [
            threading.Thread(target=lambda r=result: answers.append(wait_durable(store, r).status))
            for result in results
        ]
        for thread in threads:
            thread.start()
        disk.fail_next(Operation.SYNC)
    for thread in threads:
        thread.join(10)
        assert not thread.is_alive()
    assert answers == [PutStatus.SERVICE_NOT_AVAILABLE] * 8
    assert wait_durable(store, results[0]).durability is not Durability.DISK
    store.close()
    assert (directory / "abort").exists()


@pytest.mark.requirement("A034", "A037", "B028", "D031")
def test_one_fsync_answers_all_who_wait(directory: Path) -> None:
    config, clock = small_config(**SYNC), new_clock()
    disk = FaultyDisk(directory)
    with closing(open_store(directory, config, clock, disk), Ledger(), clock) as driver:
        driver.put("orders")
        assert driver.wait_disk()
        before = disk.counts[Operation.SYNC]
        answers: list[bool] = []
        with driver.store.flusher._flushing:
            for _ in range(10):
                result = driver.store.put(PutMessage("orders", 0, b"body"))
                driver.store.flusher.when_flushed(result.end_offset, answers.append)
        assert driver.wait_disk()
        for _ in range(1000):
            if len(answers) == 10:
                break
            threading.Event().wait(0.005)
        assert answers == [True] * 10
        assert disk.counts[Operation.SYNC] - before <= 2
        driver.ledger.puts.clear()


@pytest.mark.parametrize("operation", [Operation.SYNC, Operation.RENAME, Operation.UNLINK, Operation.WRITE])
@pytest.mark.parametrize("after", range(0, 24, 4))
def test_a_close_that_fails_frees_the_directory_and_leaves_the_mark(
    directory: Path, operation: Operation, after: int
) -> None:
    config, clock, ledger = small_config(), new_clock(), Ledger()
    disk = FaultyDisk(directory)
    driver = Driver(open_store(directory, config, clock, disk), ledger, clock)
    for number in range(20):
        driver.put("orders", number % 4)
    assert driver.flush()
    disk.fail_next(operation, after=after)
    driver.close()
    failed = driver.store.failure is not None
    assert failed == any(fault.number <= disk.counts[operation] for fault in disk.faults)
    # Only when the very last step fails, forcing the removal of the mark, is the mark gone.
    assert (directory / "abort").exists() == failed or (operation is Operation.SYNC and failed)
    reopen_and_check(directory, ledger, config, clock, Survives.ACKNOWLEDGED)


def test_a_failed_sync_of_the_queues_stops_the_store_too(directory: Path) -> None:
    config, clock, ledger = small_config(), new_clock(), Ledger()
    disk = FaultyDisk(directory)
    driver = Driver(open_store(directory, config, clock, disk), ledger, clock)
    driver.put("orders")
    driver.store.dispatch()
    disk.fail_next(Operation.SYNC)
    with pytest.raises(Exception, match="no more messages are taken"):
        driver.store.flush_queues()
    assert driver.put("orders") is PutStatus.SERVICE_NOT_AVAILABLE
    driver.close()
    reopen_and_check(directory, ledger, config, clock, Survives.ACKNOWLEDGED)
