"""The simulator of controllers' sets finds what it is there for: nothing in the real parts, each planted bug soon."""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from typing import Any

import pytest

from skyrocket.broker.replication.switch_streams import CutNeeded
from skyrocket.broker.replication.sync_set import SyncSet
from skyrocket.controller import decisions
from skyrocket.controller.live_brokers import Report
from skyrocket.controller.replica_set import ReplicaSet
from skyrocket.testing.simulation import replica
from skyrocket.testing.simulation.failover_run import FailoverSimulation
from skyrocket.testing.simulation.parted_network import Machine, PartedNetwork
from skyrocket.testing.simulation.replica import SimulatedReplica
from skyrocket.testing.simulation.run import PromiseBroken
from skyrocket.testing.simulation.world import World

SHORT, LONG = range(200), range(200, 20_000)


def first_broken(seeds: Iterable[int]) -> int | None:
    """The first seed whose run breaks a promise."""
    for seed in seeds:
        try:
            FailoverSimulation(seed).run()
        except PromiseBroken:
            return seed
    return None


@pytest.mark.parametrize("start", range(0, 200, 50))
def test_no_fault_makes_a_set_lose_what_it_acknowledged(start: int) -> None:
    assert first_broken(SHORT[start : start + 50]) is None


@pytest.mark.slow
@pytest.mark.timeout(3600)
class TestTwentyThousandRuns:
    """Half of them; the other half is a class of its own, so that two workers share them."""

    seeds = LONG[0::2]

    @pytest.mark.parametrize("part", range(10))
    def test_no_fault_makes_a_set_lose_what_it_acknowledged(self, part: int) -> None:
        assert first_broken(self.seeds[part::10]) is None


class TestTheOtherHalf(TestTwentyThousandRuns):
    seeds = LONG[1::2]


def test_who_stands_still_goes_on_when_all_faults_end() -> None:
    """Seed 4666 was broken by a controller that stood still for eight seconds more."""
    world = World(1)
    network, machine = PartedNetwork(world), Machine("one", world)
    network.machines = [machine]
    machine.start()
    done: list[float] = []
    network.stand_still(machine, 12.0)
    machine.later(1.0, lambda: done.append(world.now))
    world.run(5.0)
    assert not done
    network.mend()
    world.run(6.0)
    assert len(done) == 1


def test_a_seed_replays_its_run() -> None:
    def history(seed: int) -> list[str]:
        simulation = FailoverSimulation(seed)
        simulation.run()
        return simulation.world.history

    assert history(7) == history(7)
    assert history(7) != history(8)


# ── planted bugs ─────────────────────────────────────────────────────────────────────────────────────────────────────


def test_an_election_outside_the_sync_state_set_is_found(monkeypatch: pytest.MonkeyPatch) -> None:
    def careless(
        replica_set: ReplicaSet, living: Mapping[int, Report], *, preferred: int | None = None, unclean: bool = False
    ) -> int | None:
        able: Sequence[int] = sorted(living)
        return replica_set.master_id if replica_set.master_id in able else next(iter(able), None)

    monkeypatch.setattr(decisions, "elect", careless)
    assert first_broken(range(1000)) is not None


def test_a_cut_that_is_left_out_is_found(monkeypatch: pytest.MonkeyPatch) -> None:
    def keep(self: SimulatedReplica, cut: CutNeeded) -> None:
        """The epochs are cut, the bytes are not."""
        self.epochs.cut(cut.end_offset)

    monkeypatch.setattr(SimulatedReplica, "_cut", keep)
    assert first_broken(range(1000)) is not None


def test_an_acknowledgement_before_all_members_have_the_message_is_found(monkeypatch: pytest.MonkeyPatch) -> None:
    class Eager(SyncSet):
        def _safe_offset(self) -> int:
            return self.log_end()

    monkeypatch.setattr(replica, "SyncSet", Eager)
    assert first_broken(range(1000)) is not None


def test_a_master_that_starts_without_being_fenced_is_found(monkeypatch: pytest.MonkeyPatch) -> None:
    start = SimulatedReplica.start

    def remember(self: SimulatedReplica) -> None:
        """Who was master takes messages at once, and counts itself alone until it hears more."""
        before = self.book.role
        start(self)
        if before is not None and before.master_id == self.broker_id:
            self._rules = replace(self._rules, least_members=1)
            self.hear(before._replace(members=frozenset({self.broker_id})))

    monkeypatch.setattr(SimulatedReplica, "start", remember)
    assert first_broken(range(1000)) is not None


@pytest.mark.slow
@pytest.mark.timeout(600)
def test_a_member_that_joins_before_it_has_all_that_was_acknowledged_is_found(monkeypatch: pytest.MonkeyPatch) -> None:
    class Hasty(SyncSet):
        def _has_caught_up(self, follower: Any) -> bool:
            return bool(follower.acknowledged >= 0)

    monkeypatch.setattr(replica, "SyncSet", Hasty)
    assert first_broken(range(1000)) is not None
