"""kill -9 of a process that writes, again and again: every acknowledgement that came through the pipe holds."""

import subprocess
import sys
import time
from pathlib import Path
from random import Random

import pytest

from skyrocket.store.message_store import MessageStore
from skyrocket.store.results import Durability
from tests import ROOT
from tests.faults.harness import Ledger, Put, Survives, check_promise, forget_lost
from tests.faults.writer_process import config_of, nth_put

IN_FLIGHT = 5  # puts after the last reported one that may have been stored


class Victim:
    """The killed process, its store directory and what it said."""

    def __init__(self, root: Path, mode: str) -> None:
        self.root, self.mode = root, mode
        self.ledger = Ledger()
        self.by_number: dict[int, Put] = {}
        self.next = 1

    def live_and_die(self, seconds: float) -> int:
        """Run for some time after the store was opened, kill, take down the acknowledgements; returns how many."""
        command = [sys.executable, "-m", "tests.faults.writer_process", str(self.root), self.mode, str(self.next)]
        process = subprocess.Popen(command, cwd=ROOT, stdout=subprocess.PIPE, stderr=subprocess.PIPE)
        assert process.stdout is not None
        assert process.stderr is not None
        try:
            assert process.stdout.readline() == b"O\n"
            time.sleep(seconds)
            assert process.poll() is None, process.stderr.read().decode()
        finally:
            process.kill()
            rest = process.stdout.read()
            process.stdout.close()
            process.stderr.close()
            process.wait(30)
        lines = rest.split(b"\n")[:-1]  # a line without its end was cut off by the kill
        for line in lines:
            self.note(line.split())
        last = self.next + len([line for line in lines if line.startswith(b"A")])
        for number in range(last, last + IN_FLIGHT):
            self.by_number[number] = nth_put(self.ledger, number)
        self.next = last + IN_FLIGHT
        return len(lines)

    def note(self, words: list[bytes]) -> None:
        number = int(words[1])
        if words[0] == b"A":
            put = self.by_number[number] = nth_put(self.ledger, number)
            put.queue_offset, put.physical_offset, put.end_offset = (int(word) for word in words[2:])
            put.durability = Durability.BUFFER if self.mode == "pool" else Durability.MEMORY
        else:
            self.ledger.flushed(self.by_number[number].end_offset)

    def check(self) -> None:
        """Open here, compare, and leave as after another kill or a close, by turns."""
        with MessageStore(self.root, config_of(self.mode)) as store:
            assert store.recovery is not None
            assert not store.recovery.clean
            survives = Survives.FLUSHED if self.mode == "pool" else Survives.ACKNOWLEDGED
            check_promise(store, self.ledger, survives)
            self.settle(store)

    def settle(self, store: MessageStore) -> None:
        """What is there now is on disk after the close; what is not there is gone."""
        assert store.flush()
        forget_lost(store, self.ledger)
        self.ledger.flushed(store.commit_log.flushed_offset)


def kill_in_a_loop(root: Path, mode: str, rounds: int, seed: int) -> None:
    victim, random = Victim(root, mode), Random(seed)
    acknowledged = 0
    for _ in range(rounds):
        acknowledged += victim.live_and_die(random.uniform(0.05, 0.3))
        victim.check()
    assert acknowledged > 0


@pytest.mark.requirement("A029", "A035", "C158")
@pytest.mark.parametrize("mode", ["async", "sync", "pool"])
def test_a_killed_writer_loses_nothing_that_it_was_promised(tmp_path: Path, mode: str) -> None:
    kill_in_a_loop(tmp_path / "store", mode, rounds=2, seed=1)


@pytest.mark.requirement("A032", "A030")
def test_a_killed_writer_loses_what_was_in_the_pool_and_not_yet_committed(tmp_path: Path) -> None:
    victim = Victim(tmp_path / "store", "held")
    while not victim.live_and_die(0.2):
        pass
    with MessageStore(victim.root, config_of("held")) as store:
        found = sum(queue.max_offset for queue in store.queues)
    assert (found, victim.next > 1) == (0, True)


@pytest.mark.slow
@pytest.mark.parametrize("seed", range(3))
@pytest.mark.parametrize("mode", ["async", "sync", "pool"])
def test_a_writer_killed_many_times_loses_nothing(tmp_path: Path, mode: str, seed: int) -> None:
    kill_in_a_loop(tmp_path / "store", mode, rounds=10, seed=seed)
