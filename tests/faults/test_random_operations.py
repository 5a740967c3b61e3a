"""Random lives of a store, compared with a model that is simply a list of everything that was put."""

from pathlib import Path
from random import Random

import pytest

from skyrocket.config.sections import StoreConfig
from skyrocket.format.record import decode_record
from skyrocket.store.results import Durability, GetStatus, PutStatus
from tests.faults.harness import (
    BATCH_TOPIC,
    SYNC,
    Driver,
    Ledger,
    Survives,
    abandon,
    check_promise,
    forget_lost,
    new_clock,
    open_store,
    reopen_and_check,
    small_config,
)
from tests.unit.store.stores import clean_expired

MODES: dict[str, StoreConfig] = {
    "async": small_config(),
    "sync": small_config(**SYNC),
    "threads": small_config(
        dispatch_thread=True,
        flush_interval_ms=3,
        flush_least_pages=0,
        queue_flush_interval_ms=3,
        queue_flush_thorough_interval_ms=9,
        checkpoint_interval_ms=5,
        index_batch_delay_ms=1,
    ),
    "pool": small_config(transient_pool=True, transient_pool_size=4, commit_log_file_size=8192),
}


class RandomLife:
    """A store and its model; `step` does one random thing."""

    def __init__(self, root: Path, config: StoreConfig, seed: int) -> None:
        self.root, self.config = root, config
        self.random = Random(seed)
        self.clock, self.ledger = new_clock(), Ledger()
        self.steps = 0
        self.driver = self.open()

    def open(self) -> Driver:
        return Driver(open_store(self.root, self.config, self.clock), self.ledger, self.clock)

    def step(self) -> None:
        random, driver = self.random, self.driver
        match random.randrange(40):
            case 0:
                driver.close()
                assert driver.store.failure is None
                self.reopen(Survives.ACKNOWLEDGED)
            case 1:
                abandon(driver.store)
                self.reopen(Survives.FLUSHED if self.config.transient_pool else Survives.ACKNOWLEDGED)
            case 2:
                self.clock.advance(hours=73 if random.random() < 0.3 else 0)
                clean_expired(driver.store)
            case 3 | 4:
                assert driver.flush()
            case 5:
                assert driver.wait_disk()
            case 6 | 7:
                driver.store.dispatch()
            case 8:
                driver.store.flush_queues()
            case 9 | 10:
                self.query()
            case 11 | 12 | 13 | 14:
                self.get()
            case 15 | 16:
                self.accept(driver.put_batch(self.topic(), random.randrange(3), random.randint(1, 6)))
            case 17 | 18:
                self.accept(driver.put(BATCH_TOPIC, random.randrange(2), 50, messages=random.randint(2, 9)))
            case 19:
                self.clock.advance(seconds=random.randint(0, 100))
            case _:
                self.accept(driver.put(self.topic(), random.randrange(3), random.randint(7, 1500)))

    def accept(self, status: PutStatus) -> None:
        allowed = {PutStatus.PUT_OK}
        if self.config.transient_pool:
            allowed.add(PutStatus.OS_PAGE_CACHE_BUSY)  # every buffer is in use
            if status is not PutStatus.PUT_OK:
                assert self.driver.flush()
        assert status in allowed

    def topic(self) -> str:
        return self.random.choice(("orders", "payments", "mails"))

    def reopen(self, survives: Survives) -> None:
        self.clock.advance(ms=self.random.randint(0, 2000))
        self.driver = self.open()
        check_promise(self.driver.store, self.ledger, survives)
        forget_lost(self.driver.store, self.ledger)

    def readable(self) -> list[int]:
        store = self.driver.store
        start, end = store.commit_log.min_offset, store.dispatcher.dispatched_offset
        return [n for n, put in enumerate(self.ledger.puts) if start <= put.physical_offset and put.end_offset <= end]

    def get(self) -> None:
        self.driver.store.dispatch()
        candidates = self.readable()
        if not candidates:
            return
        put = self.ledger.puts[self.random.choice(candidates)]
        if put.durability is Durability.NONE:
            return
        result = self.driver.store.get(put.topic, put.queue_id, put.queue_offset, self.random.randint(1, 40))
        assert result.status is GetStatus.FOUND
        message = decode_record(result.slices[0], check_crc=True)
        assert (message.body, message.queue_offset) == (put.body, put.queue_offset)
        assert sum(map(len, result.slices)) == result.size

    def query(self) -> None:
        self.driver.store.dispatch()
        candidates = self.readable()
        if not candidates:
            return
        put = self.ledger.puts[self.random.choice(candidates)]
        if put.durability is Durability.NONE:
            return
        found = [decode_record(view).body for view in self.driver.store.query_unique_key(put.topic, put.key)]
        assert put.body in found


def run(directory: Path, mode: str, seed: int, steps: int) -> None:
    root = directory / f"{seed}"
    life = RandomLife(root, MODES[mode], seed)
    try:
        for life.steps in range(steps):
            life.step()
        life.driver.close()
    except BaseException as error:
        abandon(life.driver.store)
        error.add_note(f"mode {mode}, seed {seed}, step {life.steps}")
        raise
    reopen_and_check(root, life.ledger, MODES[mode], life.clock, Survives.ACKNOWLEDGED)


@pytest.mark.requirement("C158")
@pytest.mark.parametrize("left", [1, 2, 5])
def test_a_queue_goes_on_behind_records_that_left_the_log_before_their_entries_were_on_disk(
    directory: Path, left: int
) -> None:
    clock, ledger = new_clock(), Ledger()
    driver = Driver(open_store(directory / "store", MODES["async"], clock), ledger, clock)
    for _ in range(2):
        driver.put("orders", 0, 1000)
    driver.store.dispatch()
    driver.store.flush_queues()
    for _ in range(10):
        driver.put("orders", 0, 1000)
    for _ in range(2):
        driver.put("payments", 0, 3000)  # each fills a file: none of orders is in the newest, which stays
    driver.store.dispatch()
    assert driver.flush()
    clock.advance(hours=73)
    while clean_expired(driver.store).log_files:
        pass
    first = driver.store.commit_log.min_offset
    assert any(put.queue_offset > 2 and put.physical_offset < first for put in ledger.puts)
    for _ in range(left):
        driver.put("payments", 0, 3000)
        driver.put("orders", 0, 900)
    assert driver.flush()
    assert len([put for put in ledger.puts if put.topic == "orders" and put.physical_offset >= first]) == left
    abandon(driver.store)

    store = open_store(directory / "store", MODES["async"], clock)
    try:
        check_promise(store, ledger, Survives.ACKNOWLEDGED)
    finally:
        abandon(store)


@pytest.mark.parametrize("mode", MODES)
def test_random_lives_agree_with_the_model(directory: Path, mode: str) -> None:
    for seed in range(2):
        run(directory, mode, seed, steps=120)


@pytest.mark.slow
@pytest.mark.parametrize("block", range(8))
@pytest.mark.parametrize("mode", MODES)
def test_many_random_lives_agree_with_the_model(directory: Path, mode: str, block: int) -> None:
    for seed in range(1000 + block * 20, 1006 + block * 20):
        run(directory, mode, seed, steps=400)
