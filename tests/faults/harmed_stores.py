"""Whole stores of both makers, copies of which are harmed at random, and the judgement on what is read afterwards."""

import shutil
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

from skyrocket.config.sections import StoreConfig
from tests.faults.damaged_store import Damaged, Places, QueueKey, Reading, golden_copy, read_everything
from tests.faults.harness import BATCH_TOPIC, Driver, Ledger, abandon, new_clock, open_store, small_config
from tests.faults.random_damage import Harm
from tests.golden_store import GoldenStore

CONFIG = small_config(commit_log_file_size=8192)
LONG, PARTS = 2000, 8  # harms in the long mode; pieces that those of one store are run in
NOWHERE = (1 << 62, 1 << 62)


def maker_of(seed: int) -> str:
    """Which store a seed of the long run harms."""
    return list(MAKERS)[seed % (len(MAKERS) * PARTS) // PARTS]


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

    def hit_by(self, done: Harm) -> set[int]:
        """The places of the records of which a byte was harmed."""
        begin, end = done.log_range or NOWHERE
        return {place for place, size in self.sizes.items() if place < end and place + size > begin}


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


class Subjects:
    """Each store is made once, and read once from a copy."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        self._made: dict[str, Subject] = {}

    def __getitem__(self, name: str) -> Subject:
        if name not in self._made:
            root = self._folder / name.replace(" ", "-") / "store"
            root.parent.mkdir(parents=True)
            whole = MAKERS[name](root)
            (root / "timerwheel").unlink(missing_ok=True)  # 37 MiB that no store looks at, for every copy
            copy = Damaged(Path(shutil.copytree(root, root.with_name("copy"))), whole.config, whole.batch_topics)
            with copy.opened() as store:
                reading = read_everything(store)
                sizes = {place: len(store.by_physical_offset(place) or b"") for place in reading.records}
            assert not reading.refused
            self._made[name] = Subject(root, whole.config, whole.batch_topics, reading, sizes, name.endswith("live"))
        return self._made[name]


def judge(subject: Subject, reading: Reading, done: Harm) -> None:
    """No queue vanishes, what lies before the damage is there or refused, and nobody answers with another's records."""
    begin, _ = done.log_range or NOWHERE
    hit = subject.hit_by(done)
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
        assert place in hit or whole.get(number) == place, f"{key} moved {place}"
