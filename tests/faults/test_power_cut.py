"""The power fails: what was answered as being on disk is there, and the log is a beginning of what was put."""

from pathlib import Path
from random import Random

import pytest

from skyrocket.config.sections import StoreConfig
from skyrocket.testing.clock import FakeClock
from skyrocket.testing.faulty_disk import FaultyDisk
from tests.faults.harness import (
    BATCH_TOPIC,
    SYNC,
    Driver,
    Ledger,
    Survives,
    abandon,
    copy_clock,
    copy_ledger,
    new_clock,
    open_store,
    reopen_and_check,
    small_config,
)

MODES = {
    "async": small_config(),
    "sync": small_config(**SYNC),
    "pool": small_config(transient_pool=True, transient_pool_size=3),
    "long files": small_config(commit_log_file_size=16384, index_entries=60),
}


def some_operations(driver: Driver, disk: FaultyDisk, random: Random, count: int) -> None:
    """Whatever a store does in its life; the kernel writes back what it likes, when it likes."""
    for _ in range(count):
        match random.randrange(20):
            case 0:
                assert driver.wait_disk()
            case 1:
                assert driver.flush()
            case 2:
                driver.store.dispatch()
            case 3:
                driver.store.dispatch()
                driver.store.flush_queues()
            case 4:
                driver.store.checkpoint.flush()
            case 5 | 6:
                disk.write_back(random, random.random())
            case 7:
                driver.put_batch("orders", random.randrange(3), random.randint(1, 5))
            case 8:
                driver.put(BATCH_TOPIC, 0, 50, messages=random.randint(2, 5))
            case _:
                driver.put(random.choice(("orders", "payments")), random.randrange(3), random.randint(10, 900))


def cut_power(directory: Path, config: StoreConfig, seed: int, lives: int, cuts: int = 3) -> None:
    """Some lives, each ended by a kill or a close; then the power fails, and several outcomes are looked at."""
    random = Random(seed)
    root = directory / f"{seed}"
    root.mkdir()
    disk, clock, ledger = FaultyDisk(root), new_clock(), Ledger()
    for life in range(lives):
        disk = disk.for_next_process()
        driver = Driver(open_store(root, config, clock, disk), ledger, clock)
        some_operations(driver, disk, random, random.randint(5, 60))
        if life < lives - 1 and random.random() < 0.5:
            driver.close()
        elif life < lives - 1 and config.transient_pool:
            driver.flush()  # otherwise the ledger would have to know what the buffers held
            abandon(driver.store)
        else:
            abandon(driver.store)
        clock.advance(seconds=random.randint(0, 10))
    for number in range(cuts):
        look(directory / f"{seed}-{number}", disk, config, clock, ledger, Random(seed * 100 + number))


def look(target: Path, disk: FaultyDisk, config: StoreConfig, clock: FakeClock, ledger: Ledger, random: Random) -> None:
    disk.leave_after_power_cut(target, random)
    reopen_and_check(target, copy_ledger(ledger), config, copy_clock(clock), Survives.FLUSHED)


@pytest.mark.requirement("A029", "A035", "D018")
@pytest.mark.parametrize("mode", MODES)
def test_what_was_flushed_survives_a_power_cut(directory: Path, mode: str) -> None:
    for seed in range(3):
        cut_power(directory, MODES[mode], seed, lives=1)


@pytest.mark.requirement("C158")
@pytest.mark.parametrize("mode", MODES)
def test_a_power_cut_after_the_process_was_killed_and_started_again(directory: Path, mode: str) -> None:
    # What a killed process left in the page cache only must be on disk before anything behind it is said to be.
    for seed in range(100, 102):
        cut_power(directory, MODES[mode], seed, lives=3)


@pytest.mark.slow
@pytest.mark.parametrize("block", range(8))
@pytest.mark.parametrize("mode", MODES)
def test_many_power_cuts(directory: Path, mode: str, block: int) -> None:
    for seed in range(1000 + block * 40, 1015 + block * 40):
        cut_power(directory, MODES[mode], seed, lives=1 + seed % 4, cuts=5)
