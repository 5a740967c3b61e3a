"""A full disk is an answer, not a crash: nothing is lost, and the store goes on when there is space again."""

from pathlib import Path

import pytest

from skyrocket.errors import StoreError
from skyrocket.format.record import decode_record
from skyrocket.store.results import PutStatus
from skyrocket.testing.faulty_disk import FaultyDisk
from tests.faults.harness import (
    SYNC,
    Ledger,
    Survives,
    check_promise,
    closing,
    new_clock,
    open_store,
    read_queue,
    reopen_and_check,
    small_config,
)
from tests.waiting import wait_until

REFUSALS = (PutStatus.CREATE_MAPPED_FILE_FAILED, PutStatus.SERVICE_NOT_AVAILABLE)
MODES = {
    "async": small_config(),
    "sync": small_config(**SYNC),
    "steps": small_config(commit_log_file_size=16384),
    "pool": small_config(transient_pool=True, transient_pool_size=3),
}


@pytest.mark.requirement("C103")
@pytest.mark.parametrize("mode", MODES)
def test_a_put_without_room_is_refused_and_a_later_one_is_taken(directory: Path, mode: str) -> None:
    config, clock, ledger = MODES[mode], new_clock(), Ledger()
    disk = FaultyDisk(directory)
    with closing(open_store(directory, config, clock, disk), ledger, clock) as driver:
        driver.put("orders")
        assert driver.wait_disk()
        for _ in range(3):  # full and free again, several times
            disk.fill()
            statuses = {driver.put("orders", body_bytes=200) for _ in range(140)}
            assert PutStatus.CREATE_MAPPED_FILE_FAILED in statuses
            assert statuses <= {PutStatus.PUT_OK, PutStatus.CREATE_MAPPED_FILE_FAILED}
            assert driver.put_batch("orders", 1, 8, 200) is PutStatus.CREATE_MAPPED_FILE_FAILED
            disk.free()
            clock.advance(seconds=2)
            assert not driver.store.page_cache_busy
            assert driver.store.gate.trouble is not None
            assert driver.put_batch("orders", 1, 3) is PutStatus.PUT_OK
            assert driver.store.gate.trouble is None
            assert driver.put("orders") is PutStatus.PUT_OK
            assert driver.wait_disk()
        assert driver.store.failure is None
        check_promise(driver.store, ledger, Survives.ACKNOWLEDGED)
    assert not (directory / "abort").exists()
    reopen_and_check(directory, ledger, config, clock, Survives.ACKNOWLEDGED)


# The log has its blocks already: only what is built from it finds no room.
BUILT = {
    "index": small_config(commit_log_file_size=65536, preallocate_bytes=65536),
    "queues": small_config(commit_log_file_size=65536, preallocate_bytes=65536, queue_buffer_bytes=100),
}


@pytest.mark.parametrize("what", BUILT)
def test_queues_and_index_without_room_wait_and_go_on(directory: Path, what: str) -> None:
    config, clock, ledger = BUILT[what], new_clock(), Ledger()
    disk = FaultyDisk(directory)
    with closing(open_store(directory, config, clock, disk), ledger, clock) as driver:
        store = driver.store
        for _ in range(2):
            for _ in range(5):
                assert driver.put("orders") is PutStatus.PUT_OK
            assert store.query("orders", "key-1")
            disk.fill()
            for _ in range(40):
                assert driver.put("orders") is PutStatus.PUT_OK
                store.dispatch()
            assert store.failure is None
            assert store.gate.trouble is not None
            assert "disk full" in store.gate.trouble
            assert len(read_queue(store, "orders", 0)) == len(ledger.puts)  # nobody has to wait for the disk to read
            assert store.query("orders", "key-1")  # what the index has
            disk.free()
            for _ in range(8):
                assert driver.put("orders") is PutStatus.PUT_OK
            wait_until(lambda: store.dispatch() == 0 and store.gate.trouble is None)
            store.flush_queues()
        check_promise(store, ledger, Survives.ACKNOWLEDGED)
        places = [decode_record(view).physical_offset for view in store.query("orders", "key-1", 1000)]
        assert places == [put.physical_offset for put in ledger.puts if b"KEYS\x01key-1\x02" in put.properties]
    assert not (directory / "abort").exists()
    reopen_and_check(directory, ledger, config, clock, Survives.ACKNOWLEDGED)


def fill_up_after(directory: Path, mode: str, operations: int) -> bool:
    """Let the disk become full at one point of a run; returns whether that point was reached."""
    root = directory / f"after-{operations}"
    root.mkdir()
    config, clock, ledger = MODES[mode], new_clock(), Ledger()
    disk = FaultyDisk(root)
    statuses = set()
    with closing(open_store(root, config, clock, disk), ledger, clock) as driver:
        disk.fill(after=operations)
        for number in range(40):
            statuses.add(driver.put("orders", number % 3, 150))
            if number % 10 == 9:
                statuses.add(driver.put_batch("payments", 0, 3))
                driver.flush()
                try:
                    driver.store.dispatch()
                    driver.store.flush_queues()
                except (OSError, StoreError):
                    statuses.add(PutStatus.SERVICE_NOT_AVAILABLE)
        assert statuses <= {PutStatus.PUT_OK, *REFUSALS}
        disk.free()
    reopen_and_check(root, ledger, config, clock, Survives.ACKNOWLEDGED)
    return statuses != {PutStatus.PUT_OK}


@pytest.mark.parametrize("mode", MODES)
def test_a_disk_that_fills_up_at_any_point_loses_nothing(directory: Path, mode: str) -> None:
    for operations in range(0, 90, 11):
        fill_up_after(directory, mode, operations)


@pytest.mark.slow
@pytest.mark.parametrize("mode", MODES)
def test_a_disk_that_fills_up_at_every_point_loses_nothing(directory: Path, mode: str) -> None:
    operations = 0
    while fill_up_after(directory, mode, operations):
        operations += 1
    assert operations > 50
