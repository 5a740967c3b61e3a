"""Files that are gone: queues, index, checkpoint and manifest are rebuilt from the log, a gap in the log is refused."""

import shutil
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Self

import pytest

from skyrocket.errors import CorruptFile
from skyrocket.testing.faulty_disk import FaultyDisk, Operation
from tests.faults.harness import (
    BATCH_TOPIC,
    Driver,
    Ledger,
    Survives,
    abandon,
    check_refusal,
    copy_clock,
    copy_ledger,
    copy_store,
    new_clock,
    open_store,
    reopen_and_check,
    small_config,
)
from tests.unit.store.stores import clean_expired

CONFIG = small_config(max_mapped_index_files=3)


class Store:
    """A store with several files of each kind, closed or killed."""

    def __init__(self, root: Path, *, clean: bool, retention: bool = False) -> None:
        self.root = root
        self.clock, self.ledger = new_clock(), Ledger()
        driver = Driver(open_store(root, CONFIG, self.clock), self.ledger, self.clock)
        for life in range(2):
            for number in range(60):
                self.clock.advance(seconds=1)
                driver.put("orders", number % 2, 60)
                if number % 4 == 0:
                    driver.put(BATCH_TOPIC, 0, 50, messages=3)
            if life == 0:
                driver.put("seldom", 3)
                driver.flush()
                driver.store.dispatch()
                driver.store.flush_queues()
                if retention:
                    self.clock.advance(hours=100)
                    clean_expired(driver.store)
                    clean_expired(driver.store)
                    assert driver.store.commit_log.min_offset > 0
        driver.store.dispatch()
        if clean:
            driver.close()
        else:
            driver.store.queues.write_out()
            abandon(driver.store)

    def copied_to(self, root: Path) -> Self:
        """The same store somewhere else, with a ledger and a clock of its own."""
        copy = type(self).__new__(type(self))
        copy.root = copy_store(self.root, root)
        copy.clock, copy.ledger = copy_clock(self.clock), copy_ledger(self.ledger)
        return copy

    def files(self, below: str) -> list[Path]:
        return sorted(file for file in (self.root / below).rglob("*") if file.is_file())

    def check(self) -> None:
        reopen_and_check(self.root, self.ledger, CONFIG, self.clock, Survives.ACKNOWLEDGED)


Copies = Callable[[bool, bool], Store]
_made: dict[tuple[bool, bool], Store] = {}


@pytest.fixture(scope="module")
def templates(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Path]:
    yield tmp_path_factory.mktemp("lost-files")
    _made.clear()


@pytest.fixture
def copy_of(templates: Path, directory: Path) -> Copies:
    """Stores that may be damaged; each kind is made once and copied."""

    def copy(clean: bool, retention: bool) -> Store:
        if (clean, retention) not in _made:
            _made[clean, retention] = Store(templates / f"{clean}-{retention}", clean=clean, retention=retention)
        return _made[clean, retention].copied_to(directory / "store")

    return copy


def nth(below: str, which: Callable[[int], int]) -> Callable[[Store], None]:
    def remove(store: Store) -> None:
        files = store.files(below)
        assert len(files) >= 3
        files[which(len(files))].unlink()

    return remove


def tree(*names: str) -> Callable[[Store], None]:
    def remove(store: Store) -> None:
        for name in names:
            path = store.root / name
            if path.is_dir():
                shutil.rmtree(path)
            else:
                path.unlink(missing_ok=True)

    return remove


def first(count: int) -> int:
    return 0


def middle(count: int) -> int:
    return count // 2


def last(count: int) -> int:
    return count - 1


VICTIMS = {
    "a queue": tree("consumequeue/orders/1"),
    "a topic": tree("consumequeue/orders"),
    "a topic that is seldom used": tree("consumequeue/seldom"),
    "all queues": tree("consumequeue", "batchconsumequeue"),
    "the batch queues": tree("batchconsumequeue"),
    "the first file of a queue": nth("consumequeue/orders/0", first),
    "a middle file of a queue": nth("consumequeue/orders/0", middle),
    "the last file of a queue": nth("consumequeue/orders/0", last),
    "the first file of a batch queue": nth("batchconsumequeue", first),
    "a middle file of a batch queue": nth("batchconsumequeue", middle),
    "the last file of a batch queue": nth("batchconsumequeue", last),
    "the first index file": nth("index", first),
    "a middle index file": nth("index", middle),
    "the last index file": nth("index", last),
    "the index": tree("index"),
    "the checkpoint": tree("checkpoint"),
    "the manifest": tree("skyrocket.manifest"),
    "the lock": tree("lock"),
    "the config directory": tree("config"),
    "queues, index and manifest": tree("consumequeue", "batchconsumequeue", "index", "skyrocket.manifest"),
    "all but the log": tree(
        "consumequeue", "batchconsumequeue", "index", "skyrocket.manifest", "checkpoint", "lock", "config"
    ),
}


def both_ways() -> Iterator[object]:
    """Each victim after a clean close and after a kill; the short mode has one of the two, by turns."""
    for number, victim in enumerate(VICTIMS):
        for clean, name in ((True, "clean"), (False, "killed")):
            marks = [pytest.mark.slow] if clean is (number % 2 == 0) else []
            yield pytest.param(victim, clean, id=f"{victim}-{name}", marks=marks)


@pytest.mark.requirement("A017", "B025", "C156", "C158")
@pytest.mark.parametrize(("victim", "clean"), list(both_ways()))
def test_what_is_gone_is_rebuilt_from_the_log(copy_of: Copies, victim: str, clean: bool) -> None:
    store = copy_of(clean, False)
    VICTIMS[victim](store)
    store.check()


@pytest.mark.parametrize("clean", [True, False], ids=["clean", "killed"])
@pytest.mark.parametrize("victim", ["a queue", "all queues", "the first file of a queue", "the last file of a queue"])
def test_queues_are_rebuilt_although_the_log_begins_later(copy_of: Copies, victim: str, clean: bool) -> None:
    store = copy_of(clean, True)
    VICTIMS[victim](store)
    store.check()


@pytest.mark.parametrize("clean", [True, False], ids=["clean", "killed"])
@pytest.mark.parametrize("which", [middle, last], ids=["middle", "last"])
def test_a_lost_log_file_is_named(directory: Path, which: Callable[[int], int], clean: bool) -> None:
    store = Store(directory / "store", clean=clean)
    if not clean:
        with_driver = Driver(open_store(store.root, CONFIG, store.clock), store.ledger, store.clock)
        with_driver.close()
        (store.root / "abort").touch()
    files = [file for file in store.files("commitlog") if any(file.read_bytes())]
    files[which(len(files))].unlink()
    for later in store.files("commitlog"):
        if not any(later.read_bytes()):
            later.unlink()
    with pytest.raises(CorruptFile, match="missing") as refusal:
        open_store(store.root, CONFIG, store.clock)
    check_refusal(refusal.value, store.root)


def test_a_lost_log_is_not_taken_for_a_new_store(directory: Path) -> None:
    store = Store(directory / "store", clean=True)
    shutil.rmtree(store.root / "commitlog")
    with pytest.raises(CorruptFile, match="missing") as refusal:
        open_store(store.root, CONFIG, store.clock)
    check_refusal(refusal.value, store.root)
    assert list((store.root / "consumequeue").iterdir()), "what could still be of use was deleted"


@pytest.mark.requirement("A022", "C156")
def test_the_mark_of_a_running_store_comes_and_goes(directory: Path) -> None:
    clock, ledger = new_clock(), Ledger()
    store = open_store(directory, CONFIG, clock)
    assert (directory / "abort").exists()
    Driver(store, ledger, clock).close()
    assert not (directory / "abort").exists()
    killed = open_store(directory, CONFIG, clock)
    assert killed.recovery is not None
    assert killed.recovery.clean
    abandon(killed)
    assert (directory / "abort").exists()
    again = open_store(directory, CONFIG, clock)
    assert again.recovery is not None
    assert not again.recovery.clean
    again.close()


@pytest.mark.requirement("C157")
def test_index_files_newer_than_the_checkpoint_go_after_a_kill(directory: Path) -> None:
    store = Store(directory / "store", clean=False)
    before = [file.name for file in store.files("index")]
    store.clock.advance(seconds=1)
    again = open_store(store.root, CONFIG, store.clock)
    assert again.index is not None
    assert before[-1] not in again.index.names
    abandon(again)
    store.check()


def test_a_log_file_that_cannot_be_deleted_is_not_skipped(directory: Path) -> None:
    clock, ledger = new_clock(), Ledger()
    disk = FaultyDisk(directory)
    driver = Driver(open_store(directory, CONFIG, clock, disk), ledger, clock)
    for _ in range(100):
        driver.put("orders", 0, 100)
    driver.flush()
    clock.advance(hours=100)
    disk.fail_next(Operation.UNLINK)
    with pytest.raises(OSError, match="Input/output"):
        clean_expired(driver.store)
    assert driver.store.commit_log.min_offset == 0
    clean_expired(driver.store)
    assert driver.store.commit_log.min_offset == CONFIG.commit_log_file_size
    driver.close()
    reopen_and_check(directory, ledger, CONFIG, clock, Survives.ACKNOWLEDGED)
