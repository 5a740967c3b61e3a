"""Random lives of replica sets: whatever happens, masters follow each other without a gap that could lose a message."""

from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, rule

from skyrocket.controller.decisions import Outcome
from skyrocket.controller.machine import ControllerMachine, SetRequest
from skyrocket.controller.replica_set import ReplicaSet, decode, encode
from skyrocket.protocol.bodies.controller import SyncStateSet
from skyrocket.protocol.codes import ResponseCode
from skyrocket.protocol.requests.controller import (
    AlterSyncStateSet,
    CleanBrokerData,
    ElectMaster,
    GetNextBrokerId,
    GetNextBrokerIdAnswer,
    RegisterAtController,
)
from tests.unit.controller.samples import CLUSTER, address_of, apply_id, heartbeat, listen

NAMES = st.sampled_from(["broker-a"] * 5 + ["broker-b"])  # one that much happens to, and one beside it
IDS = st.integers(1, 4)
SETS_OF_IDS = st.frozensets(IDS, max_size=4)
SMALL = st.integers(0, 5)


class Lives(RuleBasedStateMachine):
    """Requests, heartbeats, lost connections and time in any order; some decisions are not written."""

    def __init__(self) -> None:
        super().__init__()
        self.machine = ControllerMachine(0.0)
        self.now = 0.0
        self.given_ids: set[tuple[str, int]] = set()
        self.masters: dict[tuple[str, int], int] = {}
        self.highest: dict[str, tuple[int, int]] = {}

    def ask(self, request: SetRequest, body: object = None, *, written: bool = True) -> Outcome:
        before = dict(self.machine.sets)
        outcome = self.machine.decide(request, body, self.now)
        assert self.machine.sets == before, "a decision changes nothing before it is written"
        change = outcome.change
        if change is None or not written:
            return outcome
        assert outcome.code in (ResponseCode.SUCCESS, ResponseCode.CONTROLLER_MASTER_NOT_AVAILABLE)
        self.machine.apply(change)
        if change.before is not None and change.after is not None:
            self.check_step(change.before, change.after, request)
        if change.after is None:
            self.forget(change.broker_name)
        return outcome

    def check_step(self, before: ReplicaSet, after: ReplicaSet, request: SetRequest) -> None:
        if after.master_id != before.master_id:
            assert after.master_epoch == before.master_epoch + 1
        else:
            assert after.master_epoch == before.master_epoch
        if after.master_id is not None and after.master_id != before.master_id:
            assert after.in_sync == {after.master_id}
            if before.in_sync:
                assert after.master_id in before.in_sync, "a master has all that was confirmed"
                assert after.master_id in self.machine.live.of(after, self.now), "a master lives"
        if after.in_sync != before.in_sync:
            assert after.sync_epoch > before.sync_epoch
        if isinstance(request, AlterSyncStateSet):
            assert request.master_broker_id == before.master_id
            assert request.master_epoch == before.master_epoch
            assert after.in_sync <= self.machine.live.of(after, self.now).keys(), "who is in sync lives"

    def forget(self, name: str) -> None:
        """Operators cleaned the whole set: what comes after is another set of that name."""
        self.highest.pop(name, None)
        self.given_ids = {each for each in self.given_ids if each[0] != name}
        self.masters = {key: master for key, master in self.masters.items() if key[0] != name}

    @initialize()
    def three_brokers_are_in_sync(self) -> None:
        for broker_id in (1, 2, 3):
            self.a_new_broker_gets_its_id("broker-a")
            self.a_heartbeat_comes("broker-a", broker_id, 0, 0)
        self.somebody_wants_an_election("broker-a", 1, False, True)
        self.its_master_changes_the_sync_state_set("broker-a", frozenset({1, 2, 3}), 0, 0)

    @rule(name=NAMES)
    def a_new_broker_gets_its_id(self, name: str) -> None:
        header = self.ask(GetNextBrokerId(cluster_name=CLUSTER, broker_name=name)).header
        assert isinstance(header, GetNextBrokerIdAnswer)
        assert header.next_broker_id is not None
        if header.next_broker_id <= 4:
            outcome = self.ask(apply_id(header.next_broker_id, name=name, time=int(self.now)))
            assert outcome.code == ResponseCode.SUCCESS
            assert (name, header.next_broker_id) not in self.given_ids
            self.given_ids.add((name, header.next_broker_id))

    @rule(name=NAMES, broker_id=IDS, time=SMALL)
    def some_broker_asks_for_an_id(self, name: str, broker_id: int, time: int) -> None:
        outcome = self.ask(apply_id(broker_id, name=name, time=time))
        if outcome.change is not None:
            assert (name, broker_id) not in self.given_ids
            self.given_ids.add((name, broker_id))

    @rule(name=NAMES, broker_id=IDS, epoch=SMALL, max_offset=SMALL)
    def a_heartbeat_comes(self, name: str, broker_id: int, epoch: int, max_offset: int) -> None:
        self.machine.heard(
            heartbeat(broker_id, name=name, epoch=epoch, max_offset=max_offset), (name, broker_id), self.now
        )

    @rule(name=NAMES, broker_id=IDS)
    def a_connection_ends(self, name: str, broker_id: int) -> None:
        for key in list(self.machine.live.silent(float("inf"))):
            if key.broker_name == name and key.broker_id == broker_id:
                self.machine.live.forget(key)

    @rule(seconds=st.sampled_from([0.5, 3.0, 11.0]))
    def time_passes(self, seconds: float) -> None:
        self.now = listen(self.machine, self.now, seconds)
        self.machine.silence(self.now)

    @rule(seconds=st.sampled_from([3.0, 11.0]))
    def the_controller_stands_still(self, seconds: float) -> None:
        self.now += seconds
        assert not self.machine.silence(self.now), "who does not listen hears nobody"

    @rule(name=NAMES, broker_id=st.just(-1) | IDS, designated=st.booleans(), written=st.booleans())
    def somebody_wants_an_election(self, name: str, broker_id: int, designated: bool, written: bool) -> None:
        self.ask(ElectMaster(broker_name=name, broker_id=broker_id, designate_elect=designated), written=written)

    @rule()
    def sets_in_need_get_a_master(self) -> None:
        for name in self.machine.in_need(self.now):
            outcome = self.ask(ElectMaster(broker_name=name))
            assert outcome.change is not None

    @rule(name=NAMES, ids=SETS_OF_IDS, master=IDS, behind=st.integers(0, 1))
    def a_broker_changes_the_sync_state_set(self, name: str, ids: frozenset[int], master: int, behind: int) -> None:
        known = self.machine.sets.get(name)
        epoch = 0 if known is None else known.master_epoch - behind
        sync_epoch = 0 if known is None else known.sync_epoch
        request = AlterSyncStateSet(broker_name=name, master_broker_id=master, master_epoch=epoch)
        self.ask(request, SyncStateSet(tuple(ids), sync_epoch))

    @rule(name=NAMES, ids=SETS_OF_IDS, epochs_behind=st.integers(0, 1), sync_behind=st.integers(0, 1))
    def its_master_changes_the_sync_state_set(
        self, name: str, ids: frozenset[int], epochs_behind: int, sync_behind: int
    ) -> None:
        known = self.machine.sets.get(name)
        if known is not None and known.master_id is not None:
            request = AlterSyncStateSet(
                broker_name=name, master_broker_id=known.master_id, master_epoch=known.master_epoch - epochs_behind
            )
            proposed = SyncStateSet((*ids, known.master_id), known.sync_epoch - sync_behind)
            self.ask(request, proposed)

    @rule(name=NAMES, broker_id=IDS)
    def a_broker_registers(self, name: str, broker_id: int) -> None:
        self.ask(
            RegisterAtController(
                cluster_name=CLUSTER, broker_name=name, broker_id=broker_id, broker_address=address_of(broker_id)
            )
        )

    @rule(name=NAMES, ids=SETS_OF_IDS, living=st.booleans())
    def an_operator_cleans(self, name: str, ids: frozenset[int], living: bool) -> None:
        self.ask(
            CleanBrokerData(
                broker_name=name,
                broker_controller_ids_to_clean=";".join(map(str, ids)),
                is_clean_living_broker=living,
            )
        )

    @invariant()
    def sets_are_whole_and_epochs_go_on(self) -> None:
        for name, each in self.machine.sets.items():
            assert each.in_sync <= each.replicas.keys()
            assert each.master_id is None or each.master_id in each.in_sync
            assert decode(encode(each)) == each
            assert (each.master_epoch, each.sync_epoch) >= self.highest.get(name, (0, 0))
            self.highest[name] = (each.master_epoch, each.sync_epoch)
            if each.master_id is not None:
                known = self.masters.setdefault((name, each.master_epoch), each.master_id)
                assert known == each.master_id, "an epoch has one master"


TestLives = Lives.TestCase
TestLives.settings = settings(max_examples=80, stateful_step_count=50, deadline=None)
