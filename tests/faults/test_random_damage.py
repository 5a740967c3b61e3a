"""Random harm of every kind to closed, killed and live stores of both makers.

What lies before the damage is there, or is refused with file, place and remedy; no queue vanishes, no queue answers
with what is not its own, and no file of the log is deleted. `SKYROCKET_DAMAGE_SEED=n` replays one seed alone.
"""

import os
import shutil
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path

import pytest

from skyrocket.config.sections import StoreConfig
from skyrocket.errors import CorruptFile
from tests.faults.damaged_store import Damaged, Places, QueueKey, Reading, golden_copy, read_everything
from tests.faults.harness import (
    BATCH_TOPIC,
    Driver,
    Ledger,
    abandon,
    check_refusal,
    new_clock,
    open_store,
    small_config,
)
from tests.faults.random_damage import Harm, harm
from tests.golden_store import GoldenStore

SHORT, LONG, PARTS = 60, 2000, 8
CONFIG = small_config(commit_log_file_size=8192)


@dataclass(frozen=True)
class Subject:
    """A whole store, what is read from it, and how copies of it are opened."""

    root: Path
    config: StoreConfig
    batch_topics: frozenset[str]
    whole: Reading
    sizes: dict[int, int]  # physical offset → bytes of each record
    live: bool

    def copy(self, target: Path) -> Damaged:
        shutil.rmtree(target, ignore_errors=True)
        shutil.copytree(self.root, target)
        return Damaged(target, self.config, self.batch_topics)


def our_store(root: Path, *, clean: bool) -> Damaged:
    clock, ledger = new_clock(), Ledger()
    driver = Driver(open_store(root, CONFIG, clock), ledger, clock)
    for number in range(120):
        clock.advance(seconds=1)
        driver.put("orders", number % 2, 60)
        if number % 3 == 0:
            driver.put("other", 0, 40)
        if number % 4 == 0:
            driver.put(BATCH_TOPIC, 0, 50, messages=3)
        if number == 80:
            driver.flush()
            driver.store.dispatch()
            driver.store.flush_queues()
    driver.store.dispatch()
    if clean:
        driver.close()
    else:
        driver.flush()
        driver.store.queues.write_out()
        abandon(driver.store)
    (root / "config" / "topics.json").write_text('{"topicConfigTable":{}}')
    return Damaged(root, CONFIG)


def of_rocketmq(version: str, name: str) -> Callable[[Path], Damaged]:
    return lambda root: golden_copy(GoldenStore(version, name), root)


MAKERS: dict[str, Callable[[Path], Damaged]] = {
    "ours closed": lambda root: our_store(root, clean=True),
    "ours killed": lambda root: our_store(root, clean=False),
    "ours live": lambda root: our_store(root, clean=True),
    "5.4.0 clean": of_rocketmq("5.4.0", "clean"),
    "5.4.0 killed": of_rocketmq("5.4.0", "killed"),
    "5.4.0 killed-recovered": of_rocketmq("5.4.0", "killed-recovered"),
    "5.4.0 lmq": of_rocketmq("5.4.0", "lmq"),
    "4.9.7 clean": of_rocketmq("4.9.7", "clean"),
    "4.9.7 killed": of_rocketmq("4.9.7", "killed"),
}


@pytest.fixture(scope="module")
def subjects(tmp_path_factory: pytest.TempPathFactory) -> Callable[[str], Subject]:
    """Each store is made once, and read once from a copy."""
    made: dict[str, Subject] = {}

    def subject(name: str) -> Subject:
        if name not in made:
            root = tmp_path_factory.mktemp("whole") / "store"
            whole = MAKERS[name](root)
            copy = Damaged(Path(shutil.copytree(root, root.with_name("copy"))), whole.config, whole.batch_topics)
            with copy.opened() as store:
                reading = read_everything(store)
                sizes = {place: len(store.by_physical_offset(place) or b"") for place in reading.records}
            assert not reading.refused
            made[name] = Subject(root, whole.config, whole.batch_topics, reading, sizes, name.endswith("live"))
        return made[name]

    return subject


def check(subject: Subject, damaged: Damaged, done: Harm, logs: dict[str, bytes]) -> None:
    """Open the harmed store, read it, and judge."""
    try:
        reading = damaged.read()
    except CorruptFile as error:
        check_refusal(error, damaged.root)
    else:
        judge(subject, reading, done)
    check_nothing_deleted(damaged, done, logs)


def judge(subject: Subject, reading: Reading, done: Harm) -> None:
    begin, end = done.log_range or (1 << 62, 1 << 62)
    hit = {place for place, size in subject.sizes.items() if place < end and place + size > begin}
    for key, whole in subject.whole.queues.items():
        safe = {number: place for number, place in whole.items() if place not in hit and place < begin}
        if not safe:
            continue
        assert key in reading.queues, f"queue {key} vanished"
        found = reading.queues[key]
        missing = set(safe.values()) - set(found.values())
        assert not missing or key in reading.refused, f"{key} lost {sorted(missing)[:5]} without a word"
        check_own(key, found, whole, hit)
    for key in reading.queues.keys() - subject.whole.queues.keys():
        assert set(reading.queues[key].values()) <= hit, f"a queue that nobody made: {key}"


def check_own(key: QueueKey, found: Places, whole: Places, hit: set[int]) -> None:
    for number, place in found.items():
        assert place in hit or place in whole.values(), f"{key} answers with the record at {place}, not its own"
        assert place in hit or key[0].startswith("%LMQ%") or whole.get(number) == place, f"{key} moved {place}"


def check_nothing_deleted(damaged: Damaged, done: Harm, logs: dict[str, bytes]) -> None:
    """Every file of the log that holds a byte is still there, or lies where recovery keeps what it cuts."""
    after = damaged.files()
    kept = {name.rpartition("/")[2] for name in after if name.startswith("skyrocket.cut/")}
    for name, data in logs.items():
        assert name in after or name.rpartition("/")[2] in kept or not any(data), f"{name} was deleted"
        if name in after and len(data) == len(after[name]) and done.log_range is None:
            assert after[name].startswith(data.rstrip(b"\0")) or kept, f"{name} was changed"


def run_seed(subject: Subject, directory: Path, seed: int) -> None:
    damaged = subject.copy(directory / "store")
    if subject.live:
        with damaged.opened() as store:
            done = harm(damaged.root, seed, live=True)
            if done is not None:
                judge(subject, read_everything(store), done)
    else:
        done = harm(damaged.root, seed)
    if done is None:
        return
    logs = damaged.files("commitlog")
    try:
        check(subject, damaged, done, logs)
    except Exception as error:
        raise AssertionError(f"{done}: {error!r}") from error


def seeds(count: int, part: int, parts: int) -> Iterator[int]:
    only = os.environ.get("SKYROCKET_DAMAGE_SEED")
    yield from [int(only)] if only else range(part, count, parts)


def run_seeds(subject: Subject, directory: Path, chosen: Iterator[int]) -> None:
    failures = []
    for seed in chosen:
        try:
            run_seed(subject, directory, seed)
        except AssertionError as error:
            failures.append(str(error)[:400])
    assert not failures, f"{len(failures)} harms:\n" + "\n".join(failures[:10])


@pytest.mark.parametrize("name", MAKERS)
def test_harm_of_every_kind_loses_nothing_before_it(
    subjects: Callable[[str], Subject], directory: Path, name: str
) -> None:
    number = list(MAKERS).index(name)
    run_seeds(subjects(name), directory, seeds(SHORT, number, len(MAKERS)))


@pytest.mark.slow
@pytest.mark.parametrize("part", range(PARTS))
@pytest.mark.parametrize("name", MAKERS)
def test_much_harm_of_every_kind_loses_nothing_before_it(
    subjects: Callable[[str], Subject], directory: Path, name: str, part: int
) -> None:
    number = list(MAKERS).index(name) * PARTS + part
    run_seeds(subjects(name), directory, seeds(LONG, number, len(MAKERS) * PARTS))
