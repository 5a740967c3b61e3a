"""One run of a controller's set: elections, partitions, pauses, power cuts, and a checker of what was promised."""

from dataclasses import dataclass, field
from functools import partial

from skyrocket.broker.replication.sync_set import SyncRules
from skyrocket.broker.state.switching import RoleWord
from skyrocket.controller.replica_set import Replica, ReplicaSet
from skyrocket.testing.simulation.controllers import CLUSTER, SET, Engine, SimulatedController
from skyrocket.testing.simulation.log import SimulatedLog
from skyrocket.testing.simulation.parted_network import Machine, PartedNetwork, Tell
from skyrocket.testing.simulation.replica import SimulatedReplica
from skyrocket.testing.simulation.run import PromiseBroken
from skyrocket.testing.simulation.world import World

_FAULT_SECONDS = 20.0
_SETTLING_SECONDS = 16.0


@dataclass
class SetChecker:
    """Knows what was acknowledged and shown, and where it stood."""

    accepted: dict[int, bytes] = field(default_factory=dict)  # end offset ▸ payload
    shown: dict[int, bytes] = field(default_factory=dict)  # start ▸ bytes that consumers could read
    _shown_end: int = 0
    _epoch: int = 0
    _master: int = 0

    def acknowledged(self, replica: SimulatedReplica, epoch: int, end_offset: int, payload: bytes) -> None:
        if epoch < self._epoch or (epoch == self._epoch and self._master not in (0, replica.broker_id)):
            raise PromiseBroken(
                f"{replica.name} acknowledges in epoch {epoch}, and broker {self._master} has in epoch {self._epoch}"
            )
        self._epoch, self._master = epoch, replica.broker_id
        if self.accepted.get(end_offset, payload) != payload:
            raise PromiseBroken(f"two messages are acknowledged that end at {end_offset}")
        self.accepted[end_offset] = payload

    def confirmed(self, replica: SimulatedReplica) -> None:
        assert replica.sync_set is not None
        log = replica.log
        shown = log.whole_records(self._shown_end, replica.sync_set.confirm_offset)
        if shown:
            self.shown[self._shown_end] = shown
            self._shown_end += len(shown)

    def check(self, log: SimulatedLog) -> None:
        """All that was promised is in this log, where it was; raises PromiseBroken."""
        ends, at = {}, log.first
        for payload in log.payloads():
            at += 8 + len(payload)
            ends[at] = payload
        lost = [end for end, payload in self.accepted.items() if ends.get(end) != payload]
        if lost:
            raise PromiseBroken(
                f"{len(lost)} of {len(self.accepted)} acknowledged messages are lost, the first ended at {min(lost)}"
            )
        for start, data in self.shown.items():
            if bytes(log.data[start - log.first : start - log.first + len(data)]) != data:
                raise PromiseBroken(f"consumers could read bytes from {start} on that are not in the log any more")


class FailoverSimulation:
    """Everything about one run is drawn from its seed."""

    def __init__(self, seed: int) -> None:
        self.world = World(seed)
        random = self.world.random
        self.checker = SetChecker()
        self.network = PartedNetwork(self.world)
        self.engine = Engine(self.world)
        self.sync_flush = random.random() < 0.5
        names = [f"controller {number}" for number in range(random.choice((1, 2, 3)))]
        self.controllers = [SimulatedController(name, self.world, self.network, self.engine) for name in names]
        rules = SyncRules(all_members=True, least_members=2, lag_seconds=5.0)
        self.replicas = {
            number: SimulatedReplica(
                number,
                self.world,
                self.network,
                self.controllers,
                self.checker,
                rules,
                SimulatedLog(sync_flush=self.sync_flush),
            )
            for number in (1, 2, 3)
        }
        for replica in self.replicas.values():
            replica.set = self.replicas
        for controller in self.controllers:
            controller.tell = self._tell
        self.network.machines = [*self.replicas.values(), *self.controllers, self.engine]
        self.engine.document = ReplicaSet(
            CLUSTER,
            SET,
            {number: Replica(replica.name, str(number)) for number, replica in self.replicas.items()},
            next_broker_id=4,
        )
        self._sent = 0

    def run(self) -> None:
        """Raises PromiseBroken."""
        for machine in (*self.controllers, *self.replicas.values()):
            machine.start()
        self.world.after(2.0, self._send)
        self.world.after(4.0, self._fault)
        self.world.run(_FAULT_SECONDS)
        self._mend_everything()
        accepted = len(self.checker.accepted)
        self.world.run(_FAULT_SECONDS + _SETTLING_SECONDS)
        self._check_liveness(accepted)
        self._check_logs()

    def _tell(self, controller: SimulatedController, elected: ReplicaSet) -> None:
        word = RoleWord(
            elected.master_id,
            elected.address_of(elected.master_id),
            elected.master_epoch,
            elected.in_sync,
            elected.sync_epoch,
        )
        for replica in self.replicas.values():
            if replica.is_up:
                Tell(self.network, controller, replica, partial(replica.hear, word))

    def _send(self) -> None:
        """Clients send to whoever believes to be master, old ones among them."""
        for replica in self.replicas.values():
            for _ in range(self.world.random.randint(0, 2)):
                self._sent += 1
                replica.put(b"%d:" % self._sent + bytes(self.world.random.randint(0, 300)))
        self.world.after(self.world.random.expovariate(5), self._send)

    # ── faults ───────────────────────────────────────────────────────────────────────────────────────────────────────

    def _fault(self) -> None:
        if self.world.now > _FAULT_SECONDS - 2:
            return
        random = self.world.random
        faults = (
            self._stop_master, self._stop_replica, self._stop_replica, self._cut_pair, self._cut_pair,
            self._cut_from_controllers, self._cut_from_replicas, self._stand_still, self._stand_still,
            self._clock_jumps, self._reset, self._stop_controller, self._restart_all,
        )  # fmt: skip
        random.choice(faults)()
        self.world.after(random.expovariate(0.6), self._fault)

    def _masters(self) -> list[SimulatedReplica]:
        return [replica for replica in self.replicas.values() if replica.sync_set is not None and replica.is_up]

    def _stop_master(self) -> None:
        for master in self._masters()[:1]:
            self._stop(master)

    def _stop_replica(self) -> None:
        self._stop(self.world.random.choice(list(self.replicas.values())))

    def _stop(self, replica: SimulatedReplica, most_seconds: float = 8.0) -> None:
        """The power may fail only if the disk has what is acknowledged."""
        if replica.is_up:
            replica.stop(power=self.sync_flush and self.world.random.random() < 0.5)
            self.world.after(self.world.random.uniform(0.1, most_seconds), lambda: self._start(replica))

    def _start(self, machine: Machine) -> None:
        if not machine.is_up:
            machine.start()

    def _cut_pair(self) -> None:
        one, other = self.world.random.choice(self.network.pairs())
        self.network.cut_between(one, other, self.world.random.uniform(0.5, 15))

    def _cut_from(self, replica: SimulatedReplica, others: list[Machine]) -> None:
        seconds = self.world.random.uniform(2, 15)
        for other in others:
            self.network.cut_between(replica, other, seconds)

    def _cut_from_controllers(self) -> None:
        """The master, or another, reaches the others of its set but no controller."""
        chosen = self.world.random.choice(self._masters() or list(self.replicas.values()))
        self._cut_from(chosen, list(self.controllers))

    def _cut_from_replicas(self) -> None:
        """It reaches the controllers but not the others."""
        chosen = self.world.random.choice(self._masters() or list(self.replicas.values()))
        self._cut_from(chosen, [other for other in self.replicas.values() if other is not chosen])

    def _stand_still(self) -> None:
        machine = self.world.random.choice(self.network.machines)
        self.network.stand_still(machine, self.world.random.choice((0.5, 5.0, 12.0)))

    def _clock_jumps(self) -> None:
        machine = self.world.random.choice(self.network.machines)
        machine.ahead_seconds += self.world.random.choice((1.0, 10.0, 100.0))
        self.world.note(f"the clock of {machine.name} jumps")

    def _reset(self) -> None:
        self.network.reset_between(*self.world.random.choice(self.network.pairs()))

    def _stop_controller(self) -> None:
        controller = self.world.random.choice(self.controllers)
        if controller.is_up:
            controller.stop()
            self.world.after(self.world.random.uniform(0.1, 10), lambda: self._start(controller))

    def _restart_all(self) -> None:
        """A rolling restart."""
        for number, replica in enumerate(self.replicas.values()):
            self.world.after(number * 2.0, partial(self._stop, replica, 1.0))

    # ── the end ──────────────────────────────────────────────────────────────────────────────────────────────────────

    def _mend_everything(self) -> None:
        self.world.note("all faults end")
        self.network.mend()
        for machine in (*self.controllers, *self.replicas.values()):
            self._start(machine)

    def _check_liveness(self, accepted: int) -> None:
        if len(self.checker.accepted) <= accepted + 10:
            raise PromiseBroken("hardly anything is acknowledged although all faults have ended")
        if len(self._masters()) != 1:
            raise PromiseBroken(f"{[master.name for master in self._masters()]} are masters")

    def _check_logs(self) -> None:
        """Nothing is sent any more: all logs become the same, and what was promised is in them."""
        self._send = lambda: None  # type: ignore[method-assign]
        for replica in self.replicas.values():
            replica.put = lambda payload: None  # type: ignore[method-assign]
        self.world.run(self.world.now + 5)
        logs = [replica.log for replica in self.replicas.values()]
        for log in logs:
            self.checker.check(log)
        if len({bytes(log.data) for log in logs}) != 1:
            raise PromiseBroken(f"the logs end at {[log.end_offset for log in logs]} and are not the same")
