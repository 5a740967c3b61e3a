"""Decisions between a machine and an engine that several controllers share."""

import pytest

from skyrocket.controller.decider import Decider
from skyrocket.controller.decisions import RoleChange
from skyrocket.controller.engines.engine import Document, Member
from skyrocket.controller.machine import ControllerMachine
from skyrocket.controller.replica_set import decode
from skyrocket.protocol.errors import NotControllerLeader, SystemFailure
from skyrocket.protocol.requests.controller import ElectMaster, GetReplicaInfo, GetSyncStateData
from skyrocket.testing.clock import FakeClock
from tests.unit.controller.samples import NAME, apply_id, heartbeat
from tests.unit.controller.shared_engine import Seat, SharedEngine


class OneController:
    """A decider with its seat at the engine."""

    def __init__(self, shared: SharedEngine, number: int) -> None:
        self.clock = FakeClock()
        self.machine = ControllerMachine(self.clock.monotonic())
        self.changes: list[RoleChange] = []
        self.seat: Seat = shared.seat()
        self.me = Member(f"n{number}", f"127.0.0.1:{9878 + number}")
        self.decider = Decider(self.machine, self.seat, self.clock, self.changes.append)

    async def join(self) -> None:
        await self.seat.join(self.me, self.decider.told)

    def all_live(self) -> None:
        for broker_id in (1, 2):
            self.machine.heard(heartbeat(broker_id), object(), self.clock.monotonic())


async def two() -> tuple[SharedEngine, OneController, OneController]:
    shared = SharedEngine()
    first, second = OneController(shared, 0), OneController(shared, 1)
    for each in (first, second):
        await each.join()
        each.all_live()
    return shared, first, second


async def test_one_leads_and_the_other_names_it() -> None:
    _, first, second = await two()
    await first.decider.decide(apply_id(1))
    assert second.decider.standing.leader == first.me
    for request in (apply_id(2), GetReplicaInfo(broker_name=NAME)):
        with pytest.raises(NotControllerLeader, match="not in leader state"):
            await second.decider.decide(request)
    with pytest.raises(NotControllerLeader):
        await second.decider.sync_state_data(GetSyncStateData(), (NAME,))
    assert await second.decider.in_need() == []


async def test_who_takes_over_knows_all_that_was_decided() -> None:
    shared, first, second = await two()
    await first.decider.decide(apply_id(1))
    await first.decider.decide(apply_id(2))
    await first.decider.decide(ElectMaster(broker_name=NAME, broker_id=2))
    await first.seat.close()
    await second.decider.decide(GetReplicaInfo(broker_name=NAME))
    assert second.machine.sets[NAME].master_id == 2
    assert shared.documents.keys() == {NAME}
    await first.join()
    assert first.decider.standing.leader == second.me


async def test_a_leader_that_does_not_know_that_its_session_is_over_decides_nothing() -> None:
    shared, first, second = await two()
    await first.decider.decide(apply_id(1))
    await first.decider.decide(ElectMaster(broker_name=NAME, broker_id=1))
    shared.expire("n0", unheard=True)
    assert first.decider.leads
    with pytest.raises(SystemFailure, match="cannot write"):
        await first.decider.decide(apply_id(2))
    assert first.changes[0].replica_set.master_epoch == 1
    await second.decider.decide(apply_id(2))
    assert decode(shared.documents[NAME].content).replicas.keys() == {1, 2}
    with pytest.raises(SystemFailure):  # it has read again by now, and still may not write
        await first.decider.decide(apply_id(3))
    assert decode(shared.documents[NAME].content).replicas.keys() == {1, 2}


async def test_a_leader_that_stood_still_for_a_session_answers_nothing_before_it_has_heard_of_its_engine() -> None:
    _, first, _ = await two()
    await first.decider.decide(apply_id(1))
    standing = first.decider.standing._replace(sure_until=first.clock.monotonic() + 6.0)
    first.decider.told(standing)
    assert first.decider.leads
    first.clock.advance(seconds=6)
    assert not first.decider.leads
    assert first.decider.standing.leader is None, "it names nobody, itself not either"
    for request in (GetReplicaInfo(broker_name=NAME), ElectMaster(broker_name=NAME)):
        with pytest.raises(NotControllerLeader):
            await first.decider.decide(request)
    with pytest.raises(NotControllerLeader):
        await first.decider.sync_state_data(GetSyncStateData(), (NAME,))
    assert await first.decider.in_need() == []
    first.decider.told(standing._replace(sure_until=first.clock.monotonic() + 6.0))
    await first.decider.decide(GetReplicaInfo(broker_name=NAME))
    assert first.seat.reads == 1, "under the same number nobody else has decided"


@pytest.mark.parametrize("failure", ["fails_before", "fails_after"])
async def test_after_a_write_that_failed_the_engine_is_believed(failure: str) -> None:
    shared, first, _ = await two()
    await first.decider.decide(apply_id(1))
    setattr(first.seat, failure, True)
    with pytest.raises(SystemFailure, match="Ask again"):
        await first.decider.decide(ElectMaster(broker_name=NAME, broker_id=1))
    assert first.changes == []
    setattr(first.seat, failure, False)
    outcome = await first.decider.decide(GetReplicaInfo(broker_name=NAME))
    known = first.machine.sets[NAME]
    assert known.master_id == (None if failure == "fails_before" else 1)
    assert known == decode(shared.documents[NAME].content)
    assert outcome.code == 0
    assert first.decider.failed_writes == 1


async def test_a_document_that_was_changed_by_somebody_else_is_read_again() -> None:
    shared, first, _ = await two()
    await first.decider.decide(apply_id(1))
    held = shared.documents[NAME]
    shared.documents[NAME] = Document(held.content, held.version + 100)
    with pytest.raises(SystemFailure):
        await first.decider.decide(apply_id(2))
    await first.decider.decide(apply_id(2))
    assert decode(shared.documents[NAME].content).replicas.keys() == {1, 2}


async def test_documents_are_read_once_and_not_for_every_decision() -> None:
    _, first, _ = await two()
    for _ in range(5):
        await first.decider.decide(GetReplicaInfo(broker_name=NAME))
    assert first.seat.reads == 1


async def test_what_is_no_document_stops_decisions_with_its_reason() -> None:
    shared, first, _ = await two()
    shared.documents["x"] = Document(b"{}", 7)
    with pytest.raises(SystemFailure, match="not the document of a replica set"):
        await first.decider.decide(apply_id(1))


async def test_elections_are_told_after_they_were_written_and_counted() -> None:
    _, first, _ = await two()
    await first.decider.decide(apply_id(1))
    await first.decider.decide(ElectMaster(broker_name=NAME, broker_id=1))
    await first.decider.decide(ElectMaster(broker_name=NAME, broker_id=1))
    await first.decider.decide(ElectMaster(broker_name="unknown", broker_id=1))
    assert [change.tell for change in first.changes] == [{1: "10.0.0.1:10911"}]
    assert first.decider.elections.by_result == {
        "new_master_elected": 1,
        "keep_current_master": 1,
        "no_master_elected": 0,
    }
