"""What a controller decides, without clock, network and engine."""

import pytest

from skyrocket.controller.live_brokers import BrokerKey
from skyrocket.controller.machine import ControllerMachine
from skyrocket.controller.replica_set import encode
from skyrocket.protocol.bodies.controller import BrokerReplicasInfo, ElectedMaster, SyncStateSet
from skyrocket.protocol.codes import ResponseCode
from skyrocket.protocol.errors import InvalidControllerRequest, SystemBusy
from skyrocket.protocol.requests.controller import (
    CleanBrokerData,
    ElectMasterAnswer,
    GetNextBrokerId,
    GetNextBrokerIdAnswer,
    GetReplicaInfo,
    GetReplicaInfoAnswer,
    GetSyncStateData,
    RegisterAtController,
    RegisterAtControllerAnswer,
)
from tests.unit.controller.samples import CLUSTER, NAME, Given, address_of, apply_id, heartbeat, replicating, set_of


def next_id(given: Given) -> int | None:
    header = given.ask(GetNextBrokerId(cluster_name=CLUSTER, broker_name=NAME)).header
    assert isinstance(header, GetNextBrokerIdAnswer)
    return header.next_broker_id


def register(given: Given, broker_id: int, address: str | None = None) -> RegisterAtControllerAnswer:
    request = RegisterAtController(
        cluster_name=CLUSTER,
        broker_name=NAME,
        broker_id=broker_id,
        broker_address=address or address_of(broker_id),
    )
    header = given.ask(request).header
    assert isinstance(header, RegisterAtControllerAnswer)
    return header


# ── ids ──────────────────────────────────────────────────────────────────────────────────────────────────────────────


def test_brokers_get_ids_from_1_on() -> None:
    given = Given()
    assert next_id(given) == 1
    assert given.ask(apply_id(1)).code == ResponseCode.SUCCESS
    assert next_id(given) == 2


def test_a_set_begins_with_id_1_alone() -> None:
    outcome = Given().ask(apply_id(2))
    assert outcome.code == ResponseCode.CONTROLLER_BROKER_ID_INVALID
    assert outcome.change is None


def test_an_id_is_given_to_one_broker_and_that_one_may_ask_again() -> None:
    given = set_of(1)
    assert given.ask(apply_id(1, time=0)) == (given.ask(apply_id(1, time=0)))
    assert given.ask(apply_id(1, time=0)).code == ResponseCode.SUCCESS
    assert given.ask(apply_id(1, time=1)).code == ResponseCode.CONTROLLER_BROKER_ID_INVALID


def test_an_id_that_was_cleaned_is_not_given_again() -> None:
    given = set_of(1, 2)
    given.ask(CleanBrokerData(broker_name=NAME, broker_controller_ids_to_clean="2", is_clean_living_broker=True))
    assert next_id(given) == 3
    assert given.ask(apply_id(2, time=5)).code == ResponseCode.CONTROLLER_BROKER_ID_INVALID


def test_a_set_does_not_outgrow_its_document() -> None:
    given = Given()
    assert given.ask(apply_id(1, name="x" * 501)).code == ResponseCode.CONTROLLER_INVALID_REQUEST
    for broker_id in range(1, 501):
        given.ask(apply_id(broker_id))
    assert given.ask(apply_id(501)).code == ResponseCode.CONTROLLER_INVALID_REQUEST
    assert given.ask(apply_id(500)).code == ResponseCode.SUCCESS
    assert len(encode(given.machine.sets[NAME])) < 1 << 19


def test_a_broker_without_an_id_is_sent_to_get_one() -> None:
    given = Given()
    request = RegisterAtController(cluster_name=CLUSTER, broker_name=NAME, broker_id=1, broker_address="x")
    assert given.ask(request).code == ResponseCode.CONTROLLER_BROKER_NEED_TO_BE_REGISTERED
    given = set_of(1)
    register(given, 1)
    request = RegisterAtController(cluster_name=CLUSTER, broker_name=NAME, broker_id=9, broker_address="x")
    assert given.ask(request).code == ResponseCode.CONTROLLER_BROKER_NEED_TO_BE_REGISTERED


def test_a_broker_that_registers_hears_of_a_master_that_lives() -> None:
    given = replicating(1, 2)
    assert register(given, 2).master_address == address_of(1)
    given.listens(11)
    given.lives(2)
    assert register(given, 2).master_broker_id is None


def test_a_broker_that_moved_is_known_at_its_new_address() -> None:
    given = replicating(1, 2)
    register(given, 1, "10.9.9.9:10911")
    assert given.machine.sets[NAME].address_of(1) == "10.9.9.9:10911"
    assert register(given, 2).master_address == "10.9.9.9:10911"


# ── the sync-state set ───────────────────────────────────────────────────────────────────────────────────────────────


def test_a_master_changes_the_set_in_its_own_epochs() -> None:
    given = set_of(1, 2, 3)
    given.elect(1)
    outcome = given.alter(1, 2)
    assert outcome.body == SyncStateSet((1, 2), 2)
    assert given.machine.sets[NAME].in_sync == {1, 2}


@pytest.mark.parametrize(
    ("changes", "code"),
    [
        ({"master": 2}, ResponseCode.CONTROLLER_INVALID_MASTER),
        ({"master_epoch": 0}, ResponseCode.CONTROLLER_FENCED_MASTER_EPOCH),
        ({"master_epoch": 2}, ResponseCode.CONTROLLER_FENCED_MASTER_EPOCH),
        ({"epoch": 0}, ResponseCode.CONTROLLER_FENCED_SYNC_STATE_SET_EPOCH),
        ({"epoch": 2}, ResponseCode.CONTROLLER_FENCED_SYNC_STATE_SET_EPOCH),
    ],
)
def test_who_believes_in_other_epochs_is_refused(changes: dict[str, int], code: ResponseCode) -> None:
    given = set_of(1, 2)
    given.elect(1)
    outcome = given.alter(1, 2, **changes)
    assert outcome.code == code
    assert given.machine.sets[NAME].in_sync == {1}


def test_a_set_has_only_replicas_that_live_and_its_master() -> None:
    given = set_of(1, 2)
    given.elect(1)
    assert given.alter(1, 7).code == ResponseCode.CONTROLLER_INVALID_REPLICAS
    assert given.alter(2).code == ResponseCode.CONTROLLER_ALTER_SYNC_STATE_SET_FAILED
    assert given.alter(1).code == ResponseCode.CONTROLLER_ALTER_SYNC_STATE_SET_FAILED  # as it is
    given.listens(11)
    given.lives(1)
    assert given.alter(1, 2).code == ResponseCode.CONTROLLER_BROKER_NOT_ALIVE
    assert Given().alter(1).code == ResponseCode.CONTROLLER_ALTER_SYNC_STATE_SET_FAILED


# ── elections ────────────────────────────────────────────────────────────────────────────────────────────────────────


def test_the_first_that_asks_is_the_first_master() -> None:
    given = set_of(1, 2)
    outcome = given.elect(2)
    header = ElectMasterAnswer(master_broker_id=2, master_address=address_of(2), master_epoch=1, sync_state_set_epoch=1)
    assert outcome.header == header
    assert isinstance(outcome.body, ElectedMaster)
    assert outcome.body.members is not None
    assert outcome.body.members.addresses == {1: address_of(1), 2: address_of(2)}
    assert outcome.body.sync_state_set == (2,)


def test_all_living_replicas_are_told_of_a_new_master() -> None:
    given = replicating(1, 2, 3)
    given.listens(11)
    given.lives(2, epoch=1, max_offset=5)
    given.lives(3, epoch=1, max_offset=4)
    change = given.elect().role_change
    assert change is not None
    assert change.tell == {2: address_of(2), 3: address_of(3)}
    assert (change.replica_set.master_id, change.replica_set.master_epoch, set(change.replica_set.in_sync)) == (
        2,
        2,
        {2},
    )


def test_a_master_that_lives_stays() -> None:
    given = replicating(1, 2)
    outcome = given.elect(2)
    assert outcome.code == ResponseCode.CONTROLLER_MASTER_STILL_EXIST
    assert outcome.body == ElectedMaster(None, (1, 2))
    assert isinstance(outcome.header, ElectMasterAnswer)
    assert outcome.header.master_broker_id == 1
    assert outcome.change is None


@pytest.mark.parametrize(
    ("reports", "master"),
    [
        ({2: {"epoch": 3, "max_offset": 1}, 3: {"epoch": 2, "max_offset": 9}}, 2),
        ({2: {"epoch": 3, "max_offset": 1}, 3: {"epoch": 3, "max_offset": 9}}, 3),
        ({2: {"epoch": 3, "max_offset": 9}, 3: {"epoch": 3, "max_offset": 9, "election_priority": 1}}, 3),
        ({2: {"epoch": 3, "max_offset": 1 << 40}, 3: {"epoch": 3, "max_offset": 1}}, 2),
        ({2: {}, 3: {}}, 2),
    ],
)
def test_the_newest_epoch_counts_then_the_longest_log_then_the_priority(
    reports: dict[int, dict[str, int]], master: int
) -> None:
    given = replicating(1, 2, 3)
    given.listens(11)
    for broker_id, said in reports.items():
        given.lives(broker_id, **said)
    given.elect()
    assert given.machine.sets[NAME].master_id == master


def test_only_who_is_in_sync_becomes_master() -> None:
    given = set_of(1, 2, 3)
    given.elect(1)
    given.alter(1, 2)
    given.listens(11)
    given.lives(3, epoch=9, max_offset=999)
    outcome = given.elect(3)
    assert outcome.code == ResponseCode.CONTROLLER_ELECT_MASTER_FAILED
    given.lives(2)
    given.elect(3)
    assert given.machine.sets[NAME].master_id == 2


def test_an_unclean_election_takes_who_lives() -> None:
    given = Given(ControllerMachine(0.0, elects_unclean=lambda: True))
    for broker_id in (1, 2):
        given.ask(apply_id(broker_id))
        given.lives(broker_id)
    given.elect(1)
    given.listens(11)
    given.lives(2)
    given.elect()
    assert given.machine.sets[NAME].master_id == 2
    assert given.machine.sets[NAME].in_sync == {2}


def test_a_set_that_nobody_can_lead_waits_for_one_that_was_in_sync() -> None:
    given = replicating(1, 2)
    given.listens(11)
    outcome = given.elect()
    assert outcome.code == ResponseCode.CONTROLLER_MASTER_NOT_AVAILABLE
    alone = given.machine.sets[NAME]
    assert (alone.master_id, alone.master_epoch, set(alone.in_sync)) == (None, 2, {1, 2})
    given.elect()
    assert given.machine.sets[NAME] == alone
    assert given.machine.in_need(given.now) == []
    given.lives(2)
    assert given.machine.in_need(given.now) == [NAME]
    given.elect()
    assert given.machine.sets[NAME].master_id == 2
    assert given.machine.sets[NAME].master_epoch == 3


def test_an_operator_moves_the_lead_to_a_replica_in_sync_and_to_no_other() -> None:
    given = set_of(1, 2, 3)
    given.elect(1)
    given.alter(1, 2)
    assert given.elect(3, designated=True).code == ResponseCode.CONTROLLER_ELECT_MASTER_FAILED
    assert given.elect(7, designated=True).code == ResponseCode.CONTROLLER_BROKER_NEED_TO_BE_REGISTERED
    assert given.elect(1, designated=True).code == ResponseCode.CONTROLLER_MASTER_STILL_EXIST
    assert given.elect(2, designated=True).code == ResponseCode.SUCCESS
    assert given.machine.sets[NAME].master_id == 2


def test_a_set_that_is_not_known_elects_nobody() -> None:
    assert Given().elect(1).code == ResponseCode.CONTROLLER_BROKER_NEED_TO_BE_REGISTERED


# ── who lives ────────────────────────────────────────────────────────────────────────────────────────────────────────


def test_a_silent_master_is_in_need_of_an_election() -> None:
    given = replicating(1, 2)
    given.listens(9)
    given.lives(2)
    assert given.machine.in_need(given.now) == []
    given.listens(2)
    assert given.machine.in_need(given.now) == [NAME]
    assert [key for key, _ in given.machine.silence(given.now)] == [BrokerKey(CLUSTER, NAME, 1)]
    assert given.machine.has_lost_master(BrokerKey(CLUSTER, NAME, 1))
    assert not given.machine.has_lost_master(BrokerKey(CLUSTER, NAME, 2))


def test_each_broker_says_how_long_it_may_be_silent() -> None:
    given = replicating(1, 2)
    given.lives(1, heartbeat_timeout_millis=1000)
    given.lives(2)
    given.listens(2)
    assert given.machine.in_need(given.now) == [NAME]


def test_whose_connection_ends_is_gone_unless_it_has_another() -> None:
    given = replicating(1, 2)
    old = given.lives(1)
    new = given.lives(1)
    assert given.machine.disconnected(old, given.now) == []
    assert given.machine.disconnected(new, given.now) == [BrokerKey(CLUSTER, NAME, 1)]
    assert given.machine.in_need(given.now) == [NAME]


def test_a_controller_that_has_just_started_gives_a_master_time_to_find_it() -> None:
    before = replicating(1, 2)
    given = Given(ControllerMachine(before.now))
    given.machine.load(before.machine.sets.values())
    given.listens(5)
    given.lives(2)
    assert given.machine.in_need(given.now) == []
    given.listens(6)
    given.lives(2)
    assert given.machine.in_need(given.now) == [NAME]


def test_a_controller_that_stood_still_has_heard_nobody_and_takes_nobody_for_dead() -> None:
    given = replicating(1, 2)
    given.stands_still(60)
    assert given.machine.in_need(given.now) == []
    assert given.machine.silence(given.now) == []
    assert given.elect().code == ResponseCode.CONTROLLER_MASTER_STILL_EXIST
    given.listens(9)
    given.lives(2)
    assert given.machine.in_need(given.now) == []
    given.listens(2)
    assert given.machine.in_need(given.now) == [NAME], "it has listened to a silent master for long enough"


def test_silence_before_a_pause_counts() -> None:
    given = replicating(1, 2)
    given.listens(9)
    given.stands_still(60)
    given.lives(2)
    assert given.machine.in_need(given.now) == []
    given.listens(2)
    assert given.machine.in_need(given.now) == [NAME]


def test_connections_that_ended_while_a_controller_stood_still_are_no_deaths() -> None:
    given = replicating(1, 2)
    connections = [given.lives(broker_id) for broker_id in (1, 2)]
    given.stands_still(60)
    assert [given.machine.disconnected(each, given.now) for each in connections] == [[], []]
    assert given.machine.in_need(given.now) == []
    given.listens(2)
    again = given.lives(1)
    assert given.machine.disconnected(again, given.now) == [BrokerKey(CLUSTER, NAME, 1)], "it is awake by now"
    given.lives(1)
    given.listens(9)
    assert given.machine.silence(given.now) == [(BrokerKey(CLUSTER, NAME, 2), None)], "it never came back"


def test_who_is_not_back_soon_after_a_controller_stood_still_is_dead_before_its_silence_is_long() -> None:
    given = replicating(1, 2)
    connections = [given.lives(broker_id, heartbeat_timeout_millis=60_000) for broker_id in (1, 2)]
    given.stands_still(2)
    assert [given.machine.disconnected(each, given.now) for each in connections] == [[], []]
    given.listens(5)
    given.lives(2, heartbeat_timeout_millis=60_000)
    assert given.machine.in_need(given.now) == []
    given.listens(15)
    assert given.machine.in_need(given.now) == [NAME], "the master had three tenths of a minute to come back"
    assert given.machine.silence(given.now) == [(BrokerKey(CLUSTER, NAME, 1), None)]


def test_a_heartbeat_needs_an_id_and_a_place() -> None:
    machine = ControllerMachine(0.0, max_brokers=1)
    with pytest.raises(InvalidControllerRequest, match="empty brokerId"):
        machine.heard(heartbeat(None), object(), 0.0)
    machine.heard(heartbeat(1), object(), 0.0)
    machine.heard(heartbeat(1), object(), 1.0)
    with pytest.raises(SystemBusy, match="controllerMaxBrokers"):
        machine.heard(heartbeat(2), object(), 1.0)


def test_there_are_not_more_sets_than_allowed() -> None:
    given = Given(ControllerMachine(0.0, max_sets=1))
    given.ask(apply_id(1))
    given.ask(apply_id(2))
    with pytest.raises(SystemBusy, match="controllerMaxReplicaSets"):
        given.ask(apply_id(1, name="broker-b"))


# ── what operators see and clean ─────────────────────────────────────────────────────────────────────────────────────


def test_operators_see_who_is_in_sync_and_who_lives() -> None:
    given = set_of(1, 2)
    given.elect(1)
    given.listens(11)
    given.lives(2)
    body = given.machine.sync_state_data(GetSyncStateData(), (NAME, "unknown"), given.now).body
    assert isinstance(body, BrokerReplicasInfo)
    shown = body.replicas[NAME]
    assert [(each.broker_id, each.alive) for each in shown.in_sync_replicas] == [(1, False)]
    assert [(each.broker_id, each.alive) for each in shown.not_in_sync_replicas] == [(2, True)]
    assert body.replicas.keys() == {NAME}
    assert given.machine.sync_state_data(GetSyncStateData(), None, given.now).code == ResponseCode.SYSTEM_ERROR


def test_a_broker_asks_who_is_master() -> None:
    given = replicating(1, 2)
    outcome = given.ask(GetReplicaInfo(broker_name=NAME))
    answer = GetReplicaInfoAnswer(master_broker_id=1, master_address=address_of(1), master_epoch=1)
    assert outcome.header == answer
    assert outcome.body == SyncStateSet((1, 2), 2)
    unknown = given.ask(GetReplicaInfo(broker_name="x"))
    assert unknown.code == ResponseCode.CONTROLLER_BROKER_METADATA_NOT_EXIST


def clean(given: Given, ids: str | None = None, *, living: bool = False) -> int:
    request = CleanBrokerData(broker_name=NAME, broker_controller_ids_to_clean=ids, is_clean_living_broker=living)
    return given.ask(request).code


def test_what_lives_is_not_cleaned_unless_that_is_wanted() -> None:
    given = replicating(1, 2, 3)
    refused = ResponseCode.CONTROLLER_INVALID_CLEAN_BROKER_METADATA
    assert clean(given) == clean(given, "2") == clean(given, "2;x") == refused
    given.listens(11)
    given.lives(1)
    assert clean(given, "2") == ResponseCode.SUCCESS
    assert given.machine.sets[NAME].replicas.keys() == {1, 3}
    assert given.machine.sets[NAME].in_sync == {1, 3}
    assert clean(given, "3;1", living=True) == ResponseCode.SUCCESS
    assert NAME not in given.machine.sets
    assert clean(given) == refused


def test_epochs_go_on_when_a_master_is_cleaned() -> None:
    given = replicating(1, 2)
    clean(given, "1", living=True)
    left = given.machine.sets[NAME]
    assert (left.master_id, left.master_epoch, set(left.in_sync)) == (None, 2, {2})
    clean_all = replicating(1)
    clean_all.ask(apply_id(2))
    clean(clean_all, "1", living=True)
    assert clean_all.elect(2).code == ResponseCode.SUCCESS  # nobody is left who had more
    assert clean_all.machine.sets[NAME].master_epoch == 3
