"""Copies of a store that are damaged on purpose, and what can still be read from them queue by queue."""

import shutil
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path

from skyrocket.config.sections import StoreConfig
from skyrocket.errors import CorruptFile, CorruptRecord
from skyrocket.format.record import decode_record
from skyrocket.model.topic import LMQ_PREFIX
from skyrocket.store.message_store import MessageStore
from skyrocket.store.results import GetStatus
from skyrocket.testing.clock import FakeClock
from tests.faults.harness import BATCH_TOPIC, abandon, check_refusal
from tests.golden_store import GoldenStore
from tests.unit.store.golden_files import batch_topics

QueueKey = tuple[str, int]
# Queue offset, as the record says it → physical offset of the record. Records of a light queue are numbered in others:
# there the physical offset stands for the number.
Places = dict[int, int]

_GOES_ON = (GetStatus.FOUND, GetStatus.NO_MATCHED_MESSAGE, GetStatus.MESSAGE_WAS_REMOVING, GetStatus.OFFSET_FOUND_NULL)


@dataclass
class Reading:
    """What a store gave: the records of its queues, and the refusals by queue."""

    queues: dict[QueueKey, Places] = field(default_factory=dict)
    refused: dict[QueueKey, CorruptFile] = field(default_factory=dict)
    unreadable: int = 0  # records that were handed out and cannot be decoded

    @property
    def records(self) -> set[int]:
        """Physical offsets of all records that some queue gave."""
        return {place for places in self.queues.values() for place in places.values()}


def read_everything(store: MessageStore) -> Reading:
    """Every queue from its first to its last offset; where a read is refused, the next offset is asked for."""
    reading = Reading()
    for key in sorted(store.queues.by_key):
        reading.queues[key] = dict(_places(store, key, reading))
    return reading


def _places(store: MessageStore, key: QueueKey, reading: Reading) -> Iterator[tuple[int, int]]:
    offset, end = max(store.min_offset(*key), 0), store.max_offset(*key)
    while offset < end:
        try:
            result = store.get(*key, offset)
        except CorruptFile as error:
            check_refusal(error, Path(store.paths.root))
            reading.refused.setdefault(key, error)
            offset += 1
            continue
        for view in result.slices:
            position = 0
            while position < len(view):
                try:
                    message = decode_record(view, position)
                    yield number_in(key, message.queue_offset, message.physical_offset), message.physical_offset
                except CorruptRecord:
                    reading.unreadable += 1  # its reader sees that
                position += int.from_bytes(view[position : position + 4], "big")
        if result.status not in _GOES_ON or result.next_offset <= offset:
            return
        offset = result.next_offset


def number_in(key: QueueKey, queue_offset: int, physical_offset: int) -> int:
    """What a record is known by among the places of a queue."""
    return physical_offset if key[0].startswith(LMQ_PREFIX) else queue_offset


@dataclass(frozen=True)
class Damaged:
    """A store directory that may be harmed, and the settings that it was written with."""

    root: Path
    config: StoreConfig
    batch_topics: frozenset[str] = frozenset({BATCH_TOPIC})

    def flip(self, file: str, position: int, mask: int) -> None:
        """Turn bits of one byte."""
        path = self.root / file
        content = bytearray(path.read_bytes())
        content[position] ^= mask
        path.write_bytes(content)

    def flip_log(self, physical_offset: int, mask: int) -> None:
        """Turn bits of one byte of the log."""
        size = self.config.commit_log_file_size
        start = physical_offset - physical_offset % size
        self.flip(f"commitlog/{start:020d}", physical_offset - start, mask)

    def swap(self, one: str, other: str) -> None:
        """Let two files or directories take each other's place."""
        aside = self.root / "aside"
        (self.root / one).rename(aside)
        (self.root / other).rename(self.root / one)
        aside.rename(self.root / other)

    def remove(self, name: str) -> None:
        path = self.root / name
        if path.is_dir():
            shutil.rmtree(path)
        else:
            path.unlink()

    def files(self, below: str = "") -> dict[str, bytes]:
        """Path below the root → content, of every file."""
        paths = sorted(path for path in (self.root / below).rglob("*") if path.is_file())
        return {str(path.relative_to(self.root)): path.read_bytes() for path in paths}

    @contextmanager
    def opened(self, *, killed: bool = False) -> Iterator[MessageStore]:
        """The store in use; afterwards it is closed, or left as a kill would leave it."""
        store = MessageStore(
            self.root,
            self.config,
            clock=FakeClock(1_900_000_000_000),
            is_batch_topic=self.batch_topics.__contains__,
            memory_bytes=1 << 40,
        )
        store.open()
        try:
            yield store
        except BaseException:
            abandon(store)
            raise
        if killed:
            abandon(store)
        else:
            store.close()

    def read(self) -> Reading:
        """Open, read everything, close."""
        with self.opened() as store:
            return read_everything(store)


def golden_copy(golden: GoldenStore, target: Path, **changes: object) -> Damaged:
    """A store of RocketMQ's that may be harmed."""
    config = golden.config_of_broker(dispatch_thread=False, **changes)
    return Damaged(golden.extract(target), config, frozenset(batch_topics(golden)))
