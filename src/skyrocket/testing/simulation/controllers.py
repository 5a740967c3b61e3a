"""Controllers around the real machine, and an engine with its promises: versions, sessions, watches that are late."""

from collections.abc import Callable
from typing import Any

from skyrocket.controller.decisions import Outcome
from skyrocket.controller.machine import ControllerMachine, SetRequest
from skyrocket.controller.replica_set import ReplicaSet
from skyrocket.protocol.codes import ResponseCode
from skyrocket.protocol.requests.broker_registration import BrokerHeartbeat
from skyrocket.protocol.requests.controller import ElectMaster
from skyrocket.testing.simulation.parted_network import Machine, PartedNetwork
from skyrocket.testing.simulation.world import World

CLUSTER, SET = "DefaultCluster", "broker-a"
NOT_LEADER = Outcome(code=ResponseCode.CONTROLLER_NOT_LEADER)
_SESSION_SECONDS = 6.0
_RENEW_SECONDS = 1.5
_SCAN_SECONDS = 0.7


class Engine(Machine):
    """What ZooKeeper or etcd promises: one document, changed by whoever leads and knows its version."""

    def __init__(self, world: World) -> None:
        super().__init__("engine", world)
        self.is_up = True
        self.document: ReplicaSet | None = None
        self.version = 0
        self.leadership = 0  # counts leaders; who leads under a smaller number may write nothing
        self.leader: SimulatedController | None = None
        self._seen: dict[SimulatedController, float] = {}
        self.world.after(1.0, self._expire)

    def renew(self, controller: "SimulatedController") -> int | None:
        """A sign of life; the number under which this controller leads, if it does."""
        self._seen[controller] = self.world.now
        if self.leader is None:
            self.leader, self.leadership = controller, self.leadership + 1
            self.world.note(f"{controller.name} leads")
        return self.leadership if self.leader is controller else None

    def _expire(self) -> None:
        if self.leader is not None and self.world.now - self._seen[self.leader] > _SESSION_SECONDS:
            self.world.note(f"the session of {self.leader.name} expires")
            self.leader = None
        self.world.after(0.5, self._expire)

    def write(self, leadership: int, version: int, document: ReplicaSet | None) -> bool:
        """Compare and set, by who leads."""
        if (leadership, version) != (self.leadership, self.version):
            return False
        self.document, self.version = document, self.version + 1
        return True


class SimulatedController(Machine):
    """One of them; only the one that leads decides."""

    def __init__(self, name: str, world: World, network: PartedNetwork, engine: Engine) -> None:
        super().__init__(name, world)
        self._network = network
        self._engine = engine
        self.tell: Callable[[SimulatedController, ReplicaSet], None] = lambda controller, elected: None
        self._machine = self._new_machine()
        self._leadership: int | None = None
        self._version = 0
        self._renewed_at = 0.0

    def _new_machine(self) -> ControllerMachine:
        return ControllerMachine(self.now)

    def start(self) -> None:
        self.is_up = True
        self._machine, self._leadership = self._new_machine(), None
        self._renew()
        self.later(_SCAN_SECONDS, self._scan)

    def stop(self) -> None:
        self.world.note(f"{self.name} is killed")
        self.is_up = False
        self.life += 1
        self._network.reset_of(self)

    # ── the engine ───────────────────────────────────────────────────────────────────────────────────────────────────

    def _renew(self) -> None:
        self.later(_RENEW_SECONDS, self._renew)
        asked_at = self.now
        if self._network.blocks(self, self._engine):
            return
        number = self._engine.renew(self)
        self.later(self.world.random.uniform(0.0, 0.5), lambda: self._told(number, asked_at))  # watches are late

    def _told(self, number: int | None, asked_at: float) -> None:
        self._renewed_at = asked_at
        if number != self._leadership:
            self._leadership = number
            self._read()

    def _read(self) -> None:
        document, self._version = self._engine.document, self._engine.version
        self._machine.load([] if document is None else [document])

    @property
    def leads(self) -> bool:
        """Whether it may answer: who has not reached the engine for a session may have been replaced."""
        return self._leadership is not None and self.now - self._renewed_at < _SESSION_SECONDS

    # ── requests ─────────────────────────────────────────────────────────────────────────────────────────────────────

    def hear(self, heartbeat: BrokerHeartbeat, connection: object) -> None:
        self._machine.heard(heartbeat, connection, self.now)

    def disconnected(self, connection: object) -> None:
        """The process at the other end has died."""
        self._machine.disconnected(connection, self.now)

    def ask(self, request: SetRequest, body: Any = None) -> Outcome:
        """Decide, write, answer."""
        if not self.leads or self._leadership is None or self._network.blocks(self, self._engine):
            return NOT_LEADER
        outcome = self._machine.decide(request, body, self.now)
        change = outcome.change
        if change is not None:
            if not self._engine.write(self._leadership, self._version, change.after):
                self._read()
                return Outcome(code=ResponseCode.SYSTEM_ERROR, remark="the engine has another version")
            self._version += 1
            self._machine.apply(change)
        if outcome.role_change is not None:
            elected = outcome.role_change.replica_set
            members = sorted(elected.in_sync)
            self.world.note(f"{self.name} elects {elected.master_id} for epoch {elected.master_epoch}, set {members}")
            self.tell(self, elected)
        return outcome

    def _scan(self) -> None:
        self.later(_SCAN_SECONDS, self._scan)
        self._machine.attend(self.now)
        if self.leads:
            self._machine.silence(self.now)
            for name in self._machine.in_need(self.now):
                self.ask(ElectMaster(cluster_name=CLUSTER, broker_name=name))
