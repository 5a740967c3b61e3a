"""One scripted life of a store, in which every single operation of the disk fails, is torn, or is the last one."""

import errno
from pathlib import Path
from random import Random

import pytest

from skyrocket.config.sections import StoreConfig
from skyrocket.errors import StoreError
from skyrocket.testing.faulty_disk import Fault, FaultyDisk, Operation, PowerCut
from tests.faults.harness import (
    BATCH_TOPIC,
    SYNC,
    Driver,
    Ledger,
    Survives,
    abandon,
    copy_clock,
    copy_ledger,
    forget_lost,
    new_clock,
    open_store,
    reopen_and_check,
    small_config,
)
from tests.unit.store.stores import clean_expired

CONFIGS = {
    "async": small_config(),
    "sync": small_config(**SYNC),
    "pool": small_config(transient_pool=True, transient_pool_size=3),
    "sparse": small_config(preallocate_bytes=4096, commit_log_file_size=16384),
}


class Life:
    """The script: two openings, several queues, batches, roll-overs of everything, retention, clean closes."""

    def __init__(self, root: Path, config: StoreConfig, disk: FaultyDisk) -> None:
        self.root = root
        self.config = config
        self.disk = disk
        self.clock = new_clock()
        self.ledger = Ledger()
        self.errors: list[Exception] = []
        self.crashed = False

    def run(self) -> None:
        for part in (self.first_life, self.second_life):
            try:
                store = open_store(self.root, self.config, self.clock, self.disk)
            except OSError as error:
                self.errors.append(error)
                return
            except PowerCut:
                self.crashed = True
                return
            driver = Driver(store, self.ledger, self.clock)
            if self.errors and self.config.transient_pool:
                forget_lost(store, self.ledger)  # buffers died with the life that failed
            try:
                part(driver)
                driver.close()
            except PowerCut:
                self.crashed = True
            finally:
                if self.crashed:
                    abandon(store)
            if self.crashed:
                return
            if store.failure is not None:
                self.errors.append(StoreError(store.failure))

    def first_life(self, driver: Driver) -> None:
        self.mixed_puts(driver, 14)
        driver.wait_disk()
        driver.put_batch("orders", 1, 4)
        self.attempt(driver.store.dispatch)
        self.attempt(driver.store.flush_queues)
        self.mixed_puts(driver, 14)
        driver.flush()
        self.attempt(lambda: driver.store.query("orders", "key-1"))
        self.mixed_puts(driver, 3)

    def second_life(self, driver: Driver) -> None:
        self.mixed_puts(driver, 20)
        driver.wait_disk()
        self.attempt(driver.store.dispatch)
        self.clock.advance(hours=80)
        self.attempt(lambda: clean_expired(driver.store))
        self.mixed_puts(driver, 6)
        self.attempt(driver.store.flush_queues)
        self.attempt(lambda: clean_expired(driver.store))
        self.mixed_puts(driver, 4)
        self.attempt(driver.store.dispatch)

    def mixed_puts(self, driver: Driver, count: int) -> None:
        for number in range(count):
            if number % 5 == 4:
                driver.put(BATCH_TOPIC, 0, 60, messages=3)
            else:
                driver.put(("orders", "payments")[number % 2], number % 3, 30 + 37 * (number % 7))

    def attempt(self, action: object) -> None:
        assert callable(action)
        try:
            action()
        except (OSError, StoreError) as error:
            self.errors.append(error)


def live(root: Path, config: StoreConfig, *faults: Fault) -> Life:
    root.mkdir()
    life = Life(root, config, FaultyDisk(root, *faults))
    life.run()
    return life


def count_operations(root: Path, config: StoreConfig) -> FaultyDisk:
    life = live(root, config)
    assert not life.errors
    assert not life.crashed
    reopen_and_check(root, life.ledger, config, life.clock, Survives.ACKNOWLEDGED)
    return life.disk


def survivors(config: StoreConfig) -> Survives:
    """With the pool, what is only in a buffer dies with the process."""
    return Survives.FLUSHED if config.transient_pool else Survives.ACKNOWLEDGED


def crash_at(directory: Path, config: StoreConfig, number: int, kept_bytes: int) -> None:
    """Stop at one operation; look at what a dead process leaves, and at what a power cut leaves."""
    root = directory / f"crash-{number}-{kept_bytes}"
    life = live(root, config, Fault(number, kept_bytes=kept_bytes))
    if not life.crashed:
        return  # threads take turns: the end of the script may come a few operations earlier
    after_cut = directory / f"cut-{number}-{kept_bytes}"
    life.disk.leave_after_power_cut(after_cut, Random(number * 1000 + kept_bytes))
    ledger = copy_ledger(life.ledger)
    reopen_and_check(root, life.ledger, config, copy_clock(life.clock), survivors(config))
    reopen_and_check(after_cut, ledger, config, life.clock, Survives.FLUSHED)


def every_crash(directory: Path, name: str, step: int, first: int = 1) -> None:
    config = CONFIGS[name]
    total = count_operations(directory / "whole", config).operations
    failures = []
    for number in range(first, total - 6, step):
        kept = (0, 1, 50, 200)[number // step % 4]
        try:
            crash_at(directory, config, number, kept)
        except Exception as error:  # noqa: BLE001  all of them are reported together
            failures.append(f"operation {number}, {kept} bytes kept: {error!r}")
    assert not failures, "\n".join(failures[:20])


@pytest.mark.parametrize("name", CONFIGS)
def test_a_crash_at_any_operation_loses_nothing_that_was_promised(directory: Path, name: str) -> None:
    every_crash(directory, name, step=53)


@pytest.mark.slow
@pytest.mark.parametrize("first", range(1, 5))
@pytest.mark.parametrize("name", CONFIGS)
def test_a_crash_at_every_operation_loses_nothing_that_was_promised(directory: Path, name: str, first: int) -> None:
    every_crash(directory, name, step=4, first=first)


def every_failure(directory: Path, name: str, operation: Operation, error: int, step: int) -> None:
    config = CONFIGS[name]
    total = count_operations(directory / "whole", config).counts[operation]
    for number in range(1, total + 1, step):
        root = directory / f"{operation.value}-{number}"
        life = live(root, config, Fault(number, operation, error))
        reopen_and_check(root, life.ledger, config, life.clock, survivors(config))


FAILURES = [
    (operation, code)
    for operation in Operation
    for code in (errno.EIO, errno.ENOSPC)
    if operation in (Operation.WRITE, Operation.CREATE, Operation.ALLOCATE) or code == errno.EIO
]


@pytest.mark.parametrize(("operation", "error"), FAILURES)
def test_an_error_of_any_operation_loses_nothing(directory: Path, operation: Operation, error: int) -> None:
    every_failure(directory, "sync", operation, error, step=31)


@pytest.mark.slow
@pytest.mark.parametrize(("operation", "error"), FAILURES)
@pytest.mark.parametrize("name", CONFIGS)
def test_an_error_of_every_operation_loses_nothing(
    directory: Path, name: str, operation: Operation, error: int
) -> None:
    every_failure(directory, name, operation, error, step=1)
