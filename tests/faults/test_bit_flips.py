"""One flipped bit anywhere in any file: what is returned is what was put; what is missing is refused with a reason."""

from collections.abc import Iterator
from pathlib import Path

import pytest

from skyrocket.config.sections import StoreConfig
from skyrocket.errors import CorruptRecord
from skyrocket.format.record import CrcCheck, RecordWalk
from skyrocket.store.results import Durability
from tests.faults.harness import (
    BATCH_TOPIC,
    REFUSALS,
    Driver,
    Ledger,
    abandon,
    check_refusal,
    copy_clock,
    copy_store,
    new_clock,
    open_store,
    read_queue,
    small_config,
)

SEALED = small_config(append_record_crc=True, verify_record_crc=True, commit_log_file_size=8192)
PLAIN = small_config(commit_log_file_size=8192)


class FlippedStore:
    """A store of several files of each kind, and copies of it with one bit changed."""

    def __init__(self, directory: Path, config: StoreConfig, *, clean: bool) -> None:
        self.root = directory / "good"
        self.work = directory / "work"
        self.config, self.clean = config, clean
        self.clock, self.ledger = new_clock(), Ledger()
        driver = Driver(open_store(self.root, config, self.clock), self.ledger, self.clock)
        for number in range(70):
            driver.put("orders", number % 2, 60)
            self.clock.advance(seconds=1)
            if number % 3 == 0:
                driver.put(BATCH_TOPIC, 0, 50, messages=4)
            if number == 3:
                driver.put("seldom", 0)
        driver.store.dispatch()
        if clean:
            driver.close()
        else:
            driver.flush()
            driver.store.flush_queues()
            abandon(driver.store)

    def files(self, below: str) -> list[Path]:
        path = self.root / below
        return [path] if path.is_file() else sorted(file for file in path.rglob("*") if file.is_file())

    def flip(self, file: Path, position: int, bit: int) -> None:
        """Flip, open, read everything."""
        root = copy_store(self.root, self.work)
        path = root / file.relative_to(self.root)
        content = bytearray(path.read_bytes())
        content[position] ^= 1 << bit
        path.write_bytes(content)
        where = f"{file.relative_to(self.root)} byte {position} bit {bit}"
        try:
            store = open_store(root, self.config, copy_clock(self.clock))
        except REFUSALS as error:
            check_refusal(error, root)
            return
        try:
            self.read_all(store_driver := Driver(store, self.ledger, self.clock), where, root)
            del store_driver
        finally:
            store.close()

    def read_all(self, driver: Driver, where: str, root: Path) -> None:
        store, ledger = driver.store, self.ledger
        by_key = {put.key: put for put in ledger.puts}
        found = set()
        refused = False
        for topic, queue_id in ledger.queues:
            try:
                messages = read_queue(store, topic, queue_id)
            except REFUSALS as error:
                check_refusal(error, root)
                refused = True
                continue
            for message, properties in messages:
                if self.config.append_record_crc:
                    try:
                        self.check_seal(store.by_physical_offset(message.physical_offset), message.physical_offset)
                    except CorruptRecord:
                        refused = True  # the reader of the message sees it
                        continue
                put = by_key.get(message.properties.get("UNIQ_KEY", ""))
                assert put is not None, f"{where}: {message} was never put"
                assert put.is_stored_as(message, properties), f"{where}: {message} differs from {put}"
                assert message.queue_offset == put.queue_offset, where
                found.add(put.key)
        missing = [put for put in ledger.puts if put.durability is not Durability.NONE and put.key not in found]
        assert refused or not missing, f"{where}: silently lost {missing[0]} and {len(missing) - 1} more"
        for put in ledger.puts[::7]:  # a damaged index may miss, but never invents
            for view in store.query_unique_key(put.topic, put.key):
                assert len(view) > 0

    @staticmethod
    def check_seal(record: memoryview | None, physical_offset: int) -> None:
        assert record is not None
        walk = RecordWalk(record, physical_offset, crc=CrcCheck.RECORD)
        if not list(walk):
            raise CorruptRecord(walk.reason, physical_offset)


def flips(store: FlippedStore, below: str, step: int) -> Iterator[tuple[Path, int, int]]:
    """Every step-th byte of what was written, another bit each time."""
    number = 0
    for file in store.files(below):
        content = file.read_bytes()
        written = len(content.rstrip(b"\0")) + 8
        for position in range(number % step, min(written, len(content)), step):
            number += 1
            yield file, position, (number * 5 + position) % 8


KINDS = {  # step in the short mode, step in the long mode
    "commitlog": (1009, 23),
    "consumequeue": (113, 3),
    "batchconsumequeue": (101, 3),
    "index": (499, 13),
    "checkpoint": (211, 11),
    "skyrocket.manifest": (127, 5),
    "abort": (3, 1),
    "lock": (3, 1),
}


def flip_all(directory: Path, kind: str, step: int, config: StoreConfig, *, clean: bool) -> None:
    store = FlippedStore(directory, config, clean=clean)
    failures: list[str] = []
    for file, position, bit in flips(store, kind, step):
        try:
            store.flip(file, position, bit)
        except Exception as error:  # noqa: BLE001  all of them are reported together
            failures.append(f"{file.relative_to(store.root)} byte {position} bit {bit}: {error!r}"[:300])
    assert not failures, f"{len(failures)} flips:\n" + "\n".join(failures[:20])


@pytest.mark.requirement("A017", "B025")
@pytest.mark.parametrize("clean", [True, False], ids=["clean", "killed"])
@pytest.mark.parametrize("kind", KINDS)
def test_a_flipped_bit_is_mended_or_refused(directory: Path, kind: str, clean: bool) -> None:
    if kind == "abort" and clean:
        pytest.skip("a cleanly closed store has no abort file")
    flip_all(directory, kind, KINDS[kind][0], SEALED, clean=clean)


@pytest.mark.slow
@pytest.mark.parametrize("clean", [True, False], ids=["clean", "killed"])
@pytest.mark.parametrize("kind", KINDS)
def test_many_flipped_bits_are_mended_or_refused(directory: Path, kind: str, clean: bool) -> None:
    if kind == "abort" and clean:
        pytest.skip("a cleanly closed store has no abort file")
    flip_all(directory, kind, KINDS[kind][1], SEALED, clean=clean)


@pytest.mark.parametrize("clean", [True, False], ids=["clean", "killed"])
def test_the_only_message_of_a_queue_is_refused_not_forgotten_when_the_topic_in_its_record_is_damaged(
    directory: Path, clean: bool
) -> None:
    store = FlippedStore(directory, SEALED, clean=clean)
    for file in store.files("commitlog"):
        at = file.read_bytes().find(b"seldom")
        if at >= 0:
            for place in range(at, at + len(b"seldom")):
                store.flip(file, place, 1)
            return
    pytest.fail("no record of the topic")


@pytest.mark.parametrize("clean", [True, False], ids=["clean", "killed"])
@pytest.mark.parametrize("kind", ["consumequeue", "batchconsumequeue"])
def test_the_sign_of_every_offset_in_a_queue_may_flip(directory: Path, kind: str, clean: bool) -> None:
    # A negative offset lies before the log: a binary search for the first record must not believe it.
    store = FlippedStore(directory, PLAIN, clean=clean)
    size = 20 if kind == "consumequeue" else 46
    for file in store.files(kind):
        for position in range(0, len(file.read_bytes().rstrip(b"\0")), size * 9):
            store.flip(file, position, 7)
