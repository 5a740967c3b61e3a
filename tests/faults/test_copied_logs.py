"""A slave reads copied records many at once where many have come; one by one is the authority.

Random logs, some of them harmed, arrive in pieces of random sizes, and are dispatched in both ways: queues, index,
what listeners hear, and where damage is seen must be the same. `SKYROCKET_DAMAGE_SEED=n` replays one seed alone.
"""

import random
import shutil
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any
from unittest import mock

import pytest

from skyrocket.broker.state.counters import QUEUE_PUT_NUMS, QUEUE_PUT_SIZE, Counters
from skyrocket.store import dispatcher, log_columns
from skyrocket.store.message_store import MessageStore
from skyrocket.store.record_tuples import DispatchItem
from skyrocket.testing.clock import FakeClock
from tests.faults.harness import BATCH_TOPIC, small_config
from tests.faults.random_damage import harm
from tests.faults.random_logs import write_log
from tests.faults.recovery_ways import dispatched_to, heard, queue_states
from tests.faults.test_random_damage import seeds

SHORT, LONG, PARTS = 24, 1000, 4
FILE_SIZE = 16_384
_NEVER = 1 << 40


@pytest.fixture
def log(tmp_path: Path) -> Callable[[int], bytes]:
    def written(seed: int) -> bytes:
        root = tmp_path / "master"
        shutil.rmtree(root, ignore_errors=True)
        write_log(root, seed, FILE_SIZE)
        if seed % 3 == 0:
            harm(root, seed)
        return b"".join(path.read_bytes() for path in sorted((root / "commitlog").iterdir()))

    return written


class _Slave:
    """What became of a log that arrived in pieces."""

    def __init__(self, root: Path, seed: int, least: int) -> None:
        """`least` is how many records are read as columns."""
        self._root = root
        self._seed = seed
        self._least = least
        self.heard: list[tuple[Any, ...]] = []
        self._clock = FakeClock()
        self._counters = Counters(self._clock, "cluster", str.isupper, by_queue=True, most_items=1000)

    def take(self, log: bytes) -> tuple[Any, ...]:
        choose = random.Random(self._seed)
        config = small_config(commit_log_file_size=FILE_SIZE, index_entries=1000, multi_dispatch=choose.random() < 0.5)
        shutil.rmtree(self._root, ignore_errors=True)
        with (
            mock.patch.object(dispatcher, "_COLUMN_RECORDS", self._least),
            mock.patch.object(log_columns, "BATCH_RECORDS", choose.choice((1, 3, 50, 8192))),
            heard() as lines,
            MessageStore(self._root, config, is_batch_topic=BATCH_TOPIC.__eq__) as store,
        ):
            store.add_listener(self._listen)
            store.add_listener(self._counters.stored)
            end = choose.randint(len(log) // 2, len(log))
            at, steps = 0, []
            while at < end:
                piece = choose.choice((7, 300, 5_000, 5_000, 40_000))
                store.append_raw(at, log[at : min(at + piece, end)])
                at = min(at + piece, end)
                store.dispatcher.dispatch(at - choose.choice((0, 0, 100)))
                steps.append(store.dispatcher.dispatched_offset)
            store.dispatch()
            assert store.index is not None
            store.index.catch_up()
            state = (steps, dispatched_to(store), store.dispatcher.damage, store.commit_log.last_store_timestamp)
            told = self.heard, self._counted()
            return state, _queues(store), _entries(store), told, sorted(lines), self._index_files()

    def _listen(self, items: Sequence[DispatchItem]) -> None:
        self.heard += [(queue.topic, queue.queue_id, *rest) for queue, *rest in items]

    def _counted(self) -> list[tuple[int, int]]:
        """Messages and bytes of each queue."""
        self._clock.advance(seconds=10)
        for _ in self._counters.sample():
            pass
        keys = {f"{topic}@{queue_id}" for topic, queue_id, *_ in self.heard}
        views = [
            [self._counters.view(name, key).minute.sum for name in (QUEUE_PUT_NUMS, QUEUE_PUT_SIZE)] for key in keys
        ]
        return sorted((count, size) for count, size in views)

    def _index_files(self) -> dict[str, bytes]:
        """All but their names, which are times."""
        files = sorted((self._root / "index").iterdir())
        return {str(number): path.read_bytes() for number, path in enumerate(files)}


def _queues(store: MessageStore) -> list[tuple[Any, ...]]:
    """Without the next number of batch queues: the highest that the end of a batch saw, where numbers go back."""
    return [(*state[:5], *state[6:]) if state[1] == "BatchConsumeQueue" else state for state in queue_states(store)]


def _entries(store: MessageStore) -> dict[tuple[str, int], list[bytes]]:
    """Of each queue, what each of its files and its tail hold."""
    size = store.config.consume_queue_file_size
    return {
        (queue.topic, queue.queue_id): [
            bytes(queue.entries.read(at, size)) for at in range(queue.entries.first_byte, queue.entries.end, size)
        ]
        for queue in store.queues
    }


def check(log: bytes, directory: Path, seed: int) -> None:
    by_columns = _Slave(directory / "columns", seed, 1).take(log)
    authority = _Slave(directory / "one-by-one", seed, _NEVER).take(log)
    for name, ours, theirs in zip(
        ("where dispatch stands", "queues", "entries", "listeners", "lines", "index"),
        by_columns,
        authority,
        strict=True,
    ):
        assert ours == theirs, f"seed {seed}: {name}"


@pytest.mark.requirement("B043")
def test_copied_records_are_dispatched_alike_many_at_once_and_one_by_one(
    log: Callable[[int], bytes], tmp_path: Path
) -> None:
    for seed in seeds(SHORT, 0, 1):
        check(log(seed), tmp_path, seed)


@pytest.mark.slow
@pytest.mark.parametrize("part", range(PARTS))
def test_many_copied_logs_are_dispatched_alike_many_at_once_and_one_by_one(
    log: Callable[[int], bytes], tmp_path: Path, part: int
) -> None:
    for seed in seeds(LONG, part, PARTS):
        check(log(seed), tmp_path, seed)
