"""The controller without clock, network and engine: events in, answers and changes out.

    decide(request, body, now)  ─▶ Outcome        nothing is changed by it: the change is written first, then applied
    apply(change)                                  the engine has it
    attend, heard, disconnected, silence           who lives
    in_need(now)                ─▶ names           sets whose master is lost, and for which somebody could be there

The same events at the same times give the same outcomes, so that a simulator can drive it.
"""

from collections.abc import Callable, Iterable, Mapping
from typing import Any, Final, TypeAlias

from skyrocket.controller import decisions
from skyrocket.controller.decisions import Change, Outcome, Situation
from skyrocket.controller.election import elect
from skyrocket.controller.live_brokers import BrokerKey, LiveBrokers
from skyrocket.controller.replica_set import ReplicaSet
from skyrocket.protocol.bodies.controller import BrokerReplicasInfo
from skyrocket.protocol.codes import ResponseCode
from skyrocket.protocol.errors import InvalidControllerRequest, SystemBusy
from skyrocket.protocol.requests.broker_registration import BrokerHeartbeat
from skyrocket.protocol.requests.controller import (
    AlterSyncStateSet,
    ApplyBrokerId,
    CleanBrokerData,
    ElectMaster,
    GetNextBrokerId,
    GetReplicaInfo,
    GetSyncStateData,
    RegisterAtController,
)

# What only a leader answers about one set. AlterSyncStateSet has a body, all others say everything in their header.
SetRequest: TypeAlias = (
    AlterSyncStateSet
    | ApplyBrokerId
    | CleanBrokerData
    | ElectMaster
    | GetNextBrokerId
    | GetReplicaInfo
    | RegisterAtController
)

_DECISIONS: Final[Mapping[type, Callable[[Any, Situation], Outcome]]] = {
    ApplyBrokerId: decisions.apply_broker_id,
    CleanBrokerData: decisions.clean_broker_data,
    ElectMaster: decisions.elect_master,
    GetNextBrokerId: decisions.next_broker_id,
    GetReplicaInfo: decisions.replica_info,
    RegisterAtController: decisions.register_broker,
}
_UNSET_REMARK: Final = "not set any response code"  # RocketMQ: of answers whose handlers set none


class ControllerMachine:
    """All replica sets and all living brokers, as one controller knows them."""

    def __init__(
        self,
        started: float,
        *,
        max_sets: int = 10_000,
        max_brokers: int = 50_000,
        elects_unclean: Callable[[], bool] = lambda: False,
    ) -> None:
        """Times are monotonic seconds; `started` is when this controller began to listen for heartbeats."""
        self.sets: dict[str, ReplicaSet] = {}
        self.live = LiveBrokers(started, max_brokers)
        self._elects_unclean = elects_unclean
        self._max_sets = max_sets

    # ── decisions ────────────────────────────────────────────────────────────────────────────────────────────────────

    def load(self, sets: Iterable[ReplicaSet]) -> None:
        """Take over what the engine has, and nothing else."""
        self.sets = {each.broker_name: each for each in sets}

    def decide(self, request: SetRequest, body: Any, now: float) -> Outcome:
        """What to answer, and what to write before; raises SystemBusy when there are too many sets."""
        self.attend(now)
        situation = self._situation(request.broker_name, now)
        if isinstance(request, AlterSyncStateSet):
            outcome = decisions.alter_sync_state_set(request, body, situation)
        else:
            outcome = _DECISIONS[type(request)](request, situation)
        change = outcome.change
        if change is not None and change.before is None and len(self.sets) >= self._max_sets:
            raise SystemBusy(f"there are {self._max_sets} replica sets already: raise controllerMaxReplicaSets")
        return outcome

    def apply(self, change: Change) -> None:
        """The engine has taken it."""
        assert self.sets.get(change.broker_name) == change.before, "a change of something else"
        if change.after is None:
            del self.sets[change.broker_name]
        else:
            self.sets[change.broker_name] = change.after

    def sync_state_data(self, _: GetSyncStateData, names: Iterable[str] | None, now: float) -> Outcome:
        """The sets of these names, without those that are not known."""
        self.attend(now)
        if not names:
            return Outcome(code=ResponseCode.SYSTEM_ERROR, remark=_UNSET_REMARK)
        found = {name: self.sets[name] for name in names if name in self.sets}
        table = {name: decisions.replicas_info(each, self.live.of(each, now)) for name, each in found.items()}
        return Outcome(body=BrokerReplicasInfo(table))

    def _situation(self, broker_name: str, now: float) -> Situation:
        known = self.sets.get(broker_name)
        return Situation(known, {} if known is None else self.live.of(known, now), self._elects_unclean())

    # ── who lives ────────────────────────────────────────────────────────────────────────────────────────────────────

    def attend(self, now: float) -> None:
        """Time passes, and we listen: who does not say so several times a second has stood still."""
        self.live.attend(now)

    def heard(self, header: BrokerHeartbeat, connection: object, now: float) -> None:
        """A heartbeat; raises InvalidControllerRequest or SystemBusy."""
        self.attend(now)
        if header.broker_id is None:
            raise InvalidControllerRequest("Heart beat with empty brokerId")
        self.live.heard(header.broker_id, header, connection, now)

    def disconnected(self, connection: object, now: float) -> list[BrokerKey]:
        """A connection has ended: whoever sent heartbeats over it is gone, unless it may be because of us."""
        self.attend(now)
        if self.live.is_waking(now):
            self.live.lose_connection(connection, now)
            return []
        return self._forget(self.live.connected_by(connection))

    def silence(self, now: float) -> list[tuple[BrokerKey, object]]:
        """Forget who was silent for too long; who it was, and over which connection it had spoken."""
        self.attend(now)
        return [(key, self.live.forget(key).connection) for key in self.live.silent(now)]

    def _forget(self, keys: list[BrokerKey]) -> list[BrokerKey]:
        for key in keys:
            self.live.forget(key)
        return keys

    # ── masters that are lost ────────────────────────────────────────────────────────────────────────────────────────

    def in_need(self, now: float) -> list[str]:
        """Sets that need an election: their master does not live, or they have none and somebody could be it."""
        self.attend(now)
        return [name for name, each in self.sets.items() if self._needs_election(each, now)]

    def _needs_election(self, replica_set: ReplicaSet, now: float) -> bool:
        living = self.live.of(replica_set, now)
        if not living or replica_set.master_id in living:
            return False
        if replica_set.master_id is not None:
            return not self.live.may_be_late(replica_set.master_id, replica_set, now)
        return elect(replica_set, living, unclean=self._elects_unclean()) is not None

    def has_lost_master(self, key: BrokerKey) -> bool:
        """Whether a broker that is gone was the master of its set."""
        known = self.sets.get(key.broker_name)
        return known is not None and known.cluster_name == key.cluster_name and known.master_id == key.broker_id
