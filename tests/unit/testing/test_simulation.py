"""The simulator finds what it is there for: each planted bug within a thousand seeds, nothing in the real protocol."""

from collections.abc import Sequence

import pytest

from skyrocket.broker.replication.master_stream import MasterStream
from skyrocket.broker.replication.replicas import Replicas
from skyrocket.broker.replication.slave_stream import SlaveStream
from skyrocket.testing.simulation import nodes
from skyrocket.testing.simulation.run import PromiseBroken, Simulation

SHORT, LONG = range(200), range(200, 20_000)


def first_broken(seeds: Sequence[int]) -> int | None:
    """The first seed whose run breaks a promise."""
    for seed in seeds:
        try:
            Simulation(seed).run()
        except PromiseBroken:
            return seed
    return None


@pytest.mark.parametrize("start", range(0, 200, 50))
def test_no_fault_makes_a_set_lose_what_it_acknowledged(start: int) -> None:
    assert first_broken(SHORT[start : start + 50]) is None


@pytest.mark.slow
@pytest.mark.timeout(3600)
@pytest.mark.parametrize("part", range(20))
def test_no_fault_in_twenty_thousand_runs_makes_a_set_lose_what_it_acknowledged(part: int) -> None:
    assert first_broken(LONG[part::20]) is None


def test_a_seed_replays_its_run() -> None:
    def history(seed: int) -> list[str]:
        simulation = Simulation(seed)
        simulation.run()
        return simulation.world.history

    assert history(7) == history(7)
    assert history(7) != history(8)


class _EagerReplicas(Replicas):
    """Planted: a send is acknowledged before any slave has it."""

    def held_by(self, end_offset: int) -> int:
        return super().held_by(end_offset) + 1


class _HopefulMasterStream(MasterStream):
    """Planted: what was sent counts as acknowledged."""

    def receive(self, data: bytes, now: float) -> None:
        super().receive(data, now)
        self.acknowledged_offset = max(self.next_offset, 0)


class _HastySlaveStream(SlaveStream):
    """Planted: an offset is reported before the disk has it."""

    def progress(self, now: float) -> bytes:
        return self._report(self._log.end_offset, now) if self._log.end_offset > self._reported else b""


class _CarelessSlaveStream(SlaveStream):
    """Planted: bytes are appended wherever they came from."""

    def _take(self, offset: int, body: bytes | memoryview) -> None:
        if body:
            self._log.append(self._log.end_offset, body)


@pytest.mark.parametrize(
    ("name", "planted"),
    [
        ("Replicas", _EagerReplicas),
        ("MasterStream", _HopefulMasterStream),
        ("SlaveStream", _HastySlaveStream),
    ],
)
def test_a_planted_bug_is_found_within_a_thousand_seeds(
    name: str, planted: type, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(nodes, name, planted)
    assert first_broken(range(1000)) is not None


def test_logs_that_went_different_ways_and_are_continued_are_found(monkeypatch: pytest.MonkeyPatch) -> None:
    """Planted: nobody compares the logs when a master comes back that lost its newest records; RocketMQ cuts there."""
    monkeypatch.setattr(nodes, "check_tail", lambda log, tail: None)
    assert first_broken(range(1000)) is not None


def test_bytes_appended_at_a_wrong_place_are_found(monkeypatch: pytest.MonkeyPatch) -> None:
    """The real protocol never sends such bytes; a master that starts elsewhere makes the careless slave visible."""

    class Shifted(MasterStream):
        def _begin(self, reported: int) -> None:
            super()._begin(reported)
            self.next_offset = max(self.next_offset - 8, self._log.min_offset)

    monkeypatch.setattr(nodes, "MasterStream", Shifted)
    monkeypatch.setattr(nodes, "SlaveStream", _CarelessSlaveStream)
    assert first_broken(range(1000)) is not None
