"""One run: a set of replicas, a client, faults in random order, and a checker that knows what was acknowledged."""

from dataclasses import dataclass, field

from skyrocket.broker.replication.master_stream import TransferRules
from skyrocket.errors import SkyrocketError
from skyrocket.testing.simulation.log import SimulatedLog
from skyrocket.testing.simulation.network import Network
from skyrocket.testing.simulation.nodes import Master, Slave
from skyrocket.testing.simulation.world import World

_FAULT_SECONDS = 40.0
_SETTLING_SECONDS = 25.0


class PromiseBroken(SkyrocketError):
    """A run did what must never happen."""


@dataclass
class Checker:
    """Knows what was acknowledged, and looks at each log as it grows."""

    accepted: list[bytes] = field(default_factory=list)
    _compared: dict[tuple[str, int, int], int] = field(default_factory=dict)  # slave and both lives ▸ bytes that agree

    def acknowledged(self, payload: bytes) -> None:
        self.accepted.append(payload)

    def appended(self, slave: Slave) -> None:
        """A slave's log is a first part of its master's, byte by byte; what agreed once is not compared again."""
        log, master = slave.log, slave.master.log
        if not slave.master.is_up:
            return
        life = (slave.name, slave.life, slave.master.life)
        start = self._compared.get(life, 0)
        at = log.first - master.first + start
        if at < 0 or log.data[start:] != master.data[at : at + len(log.data) - start]:
            raise PromiseBroken(f"the log of {slave.name} is not a first part of its master's")
        self._compared[life] = len(log.data)

    def check_survivors(self, slaves: list[Slave]) -> None:
        """The master's disk is thrown away: everything acknowledged is on a slave, in the order of sending."""
        for slave in slaves:
            slave.log.recover()
        best = max(slaves, key=lambda slave: slave.log.end_offset).log.payloads()
        places = {payload: number for number, payload in enumerate(best)}
        lost = [payload for payload in self.accepted if payload not in places]
        if lost:
            raise PromiseBroken(
                f"{len(lost)} of {len(self.accepted)} acknowledged messages are lost, first {lost[0]!r}"
            )
        numbers = [places[payload] for payload in self.accepted]
        if numbers != sorted(numbers):
            raise PromiseBroken("acknowledged messages are out of order")


class Simulation:
    """Everything about one run is drawn from its seed."""

    def __init__(self, seed: int) -> None:
        self.world = World(seed)
        random = self.world.random
        self.checker = Checker()
        self.network = Network(self.world)
        self.slave_sync = random.random() < 0.5
        self.master_sync = random.random() < 0.5
        self.plain = random.random() < 0.3
        rules = TransferRules(batch_bytes=random.choice((64, 700, 4096)), from_first_file=True)
        self.master = Master(
            self.world, SimulatedLog(sync_flush=self.master_sync), self.checker, required=2, rules=rules
        )
        self.slaves = [
            Slave(
                f"slave {number}",
                self.world,
                SimulatedLog(sync_flush=self.slave_sync),
                self.checker,
                master=self.master,
                network=self.network,
                plain=self.plain,
            )
            for number in range(1, random.choice((2, 3)))
        ]
        # A master that forgets what its slave has is known by the slave alone, and a second one would go the new way.
        self.master_forgets = (
            not self.master_sync and not self.plain and len(self.slaves) == 1 and random.random() < 0.5
        )
        self._sent = 0

    def run(self) -> None:
        """Raises PromiseBroken."""
        self.master.start()
        for slave in self.slaves:
            slave.start()
        self.world.after(0.1, self._send)
        self.world.after(1.0, self._fault)
        if self.world.random.random() < 0.5:
            self.world.run(self.world.random.uniform(2, _FAULT_SECONDS))
        else:
            self.world.run(_FAULT_SECONDS)
            self._mend_everything()
            self.world.run(_FAULT_SECONDS + _SETTLING_SECONDS)
            self._check_liveness()
        self._lose_master()
        self.checker.check_survivors(self.slaves)

    def _lose_master(self) -> None:
        """Its disk is thrown away, and the power of the whole house fails if slaves promise to survive that."""
        self.world.note("the master's disk is thrown away")
        self.master.stop(power=True)
        for slave in self.slaves:
            if slave.is_up:
                slave.stop(power=self.slave_sync)

    def _send(self) -> None:
        for _ in range(self.world.random.randint(1, 4)):
            self._sent += 1
            self.master.put(b"%d:" % self._sent + bytes(self.world.random.randint(0, 300)))
        self.world.after(self.world.random.expovariate(5), self._send)

    # -- faults -----------------------------------------------------------------------------------------------

    def _fault(self) -> None:
        if self.world.now > _FAULT_SECONDS - 5:
            return
        random = self.world.random
        faults = (self._stop_master, self._stop_slave, self._stop_slave, self._cut, self._reset, self._fill_disk)
        random.choice(faults)()
        self.world.after(random.expovariate(0.5), self._fault)

    def _stop_master(self) -> None:
        """The power of a master may fail only if its disk has what it acknowledged, or if its slave compares logs."""
        if self.master.is_up:
            may_fail = self.master_sync or self.master_forgets
            self.master.stop(power=may_fail and self.world.random.random() < 0.5)
            self.world.after(self.world.random.uniform(0.1, 8), self._start_master)

    def _start_master(self) -> None:
        if not self.master.is_up:
            self.master.start()

    def _stop_slave(self) -> None:
        slave = self.world.random.choice(self.slaves)
        if slave.is_up:
            slave.stop(power=self.slave_sync and self.world.random.random() < 0.5)
            self.world.after(self.world.random.uniform(0.1, 8), lambda: None if slave.is_up else slave.start())

    def _cut(self) -> None:
        if not self.network.is_cut:
            self.network.cut()
            self.world.after(self.world.random.uniform(0.1, 25), self.network.heal)

    def _reset(self) -> None:
        self.network.reset_connections()

    def _fill_disk(self) -> None:
        node = self.world.random.choice((self.master, *self.slaves))
        node.log.is_full = True
        self.world.note(f"the disk of {node.name} is full")
        self.world.after(self.world.random.uniform(0.1, 10), lambda: setattr(node.log, "is_full", False))

    def _mend_everything(self) -> None:
        self.world.note("all faults end")
        if self.network.is_cut:
            self.network.heal()
        for node in (self.master, *self.slaves):
            node.log.is_full = False
            if not node.is_up:
                node.start()

    def _check_liveness(self) -> None:
        """After the last fault every slave has followed, and messages are acknowledged again."""
        last = b"%d:" % self._sent
        if self.master_forgets and any(slave.refused for slave in self.slaves):
            return  # it lost what its slave has: nobody follows until a person has decided
        for slave in self.slaves:
            if slave.refused:
                raise PromiseBroken(f"{slave.name} was refused: {slave.refused}")
            if self.master.log.end_offset - slave.log.end_offset > 10_000:
                raise PromiseBroken(f"{slave.name} does not follow, last message {last!r}")
        if not self.checker.accepted or int(self.checker.accepted[-1].split(b":")[0]) < self._sent - 50:
            raise PromiseBroken("nothing is acknowledged although all faults have ended")
