"""A master and slaves around the real state machines; each can be killed, lose its power, and come back."""

from collections.abc import Callable, Hashable
from typing import Protocol

from skyrocket.broker.replication.joining import check_tail, tail_of
from skyrocket.broker.replication.master_stream import MasterStream, ReplicaRefused, TransferRules
from skyrocket.broker.replication.replicas import Replicas
from skyrocket.broker.replication.slave_stream import MasterLeft, ReportRules, SlaveStream
from skyrocket.protocol.errors import ProtocolError
from skyrocket.testing.simulation.log import DiskFull, SimulatedLog
from skyrocket.testing.simulation.network import Connection, Network
from skyrocket.testing.simulation.world import World

_REPLICA_TIMEOUT_SECONDS = 3.0
_IDLE_SECONDS = 15.0


class Watcher(Protocol):
    """Hears what a set promises and does."""

    def acknowledged(self, payload: bytes) -> None: ...

    def appended(self, slave: "Slave") -> None: ...


class Node:
    """A process with a log; everything it planned dies with it."""

    def __init__(self, name: str, world: World, log: SimulatedLog) -> None:
        self.name = name
        self.world = world
        self.log = log
        self.is_up = True
        self.life = 0  # how often it died

    def later(self, seconds: float, action: Callable[[], None]) -> None:
        """Do something unless this node dies before."""
        life = self.life
        self.world.after(seconds, lambda: action() if self.is_up and self.life == life else None)

    def stop(self, *, power: bool) -> None:
        """kill -9, or the power fails."""
        self.world.note(f"{self.name} {'loses its power' if power else 'is killed'}")
        self.is_up = False
        self.life += 1
        if power:
            self.log.lose_power(self.world.random)

    def start(self) -> None:
        self.is_up = True
        self.log.recover()
        self.world.note(f"{self.name} is up, its log ends at {self.log.end_offset}")

    def flush_now_and_then(self) -> None:
        self.log.flush()
        self.later(self.world.random.uniform(0.05, 0.5), self.flush_now_and_then)


class Master(Node):
    """Takes messages and waits for replicas."""

    def __init__(
        self, world: World, log: SimulatedLog, watcher: Watcher, *, required: int, rules: TransferRules
    ) -> None:
        super().__init__("master", world, log)
        self._watcher = watcher
        self._required = required
        self._rules = rules
        self.replicas = Replicas(self._is_heard)
        self._streams: dict[Connection, MasterStream] = {}

    def start(self) -> None:
        super().start()
        self.replicas = Replicas(self._is_heard)
        self.flush_now_and_then()

    def stop(self, *, power: bool) -> None:
        super().stop(power=power)
        streams, self._streams = self._streams, {}
        for connection in streams:
            connection.close()

    def put(self, payload: bytes) -> None:
        """A send: the answer is success only if enough machines have it in time."""
        if not self.is_up:
            return
        try:
            end_offset = self.log.append_record(payload)
        except DiskFull:
            return
        if self.log.sync_flush:
            self.log.flush()
        wait = self.replicas.wait(end_offset, self._required, lambda: self._watcher.acknowledged(payload))
        self.later(_REPLICA_TIMEOUT_SECONDS, wait.cancel)
        for connection in list(self._streams):
            self._ship(connection)

    def _is_heard(self, slave: Hashable) -> bool:
        assert isinstance(slave, Connection)
        stream = self._streams.get(slave)
        return stream is not None and stream.is_heard(self.world.now, _REPLICA_TIMEOUT_SECONDS, _IDLE_SECONDS)

    def accept(self, connection: Connection) -> None:
        self._streams[connection] = MasterStream(self.log, self._rules, self.world.now)
        self._look_again(connection)

    def received(self, connection: Connection, data: bytes) -> None:
        stream = self._streams.get(connection)
        if stream is None:
            return
        try:
            stream.receive(data, self.world.now)
        except (ReplicaRefused, ProtocolError) as error:
            self._refuse(connection, error)
            return
        if stream.acknowledged_offset >= 0:
            self.replicas.acknowledge(connection, stream.acknowledged_offset)
        self._ship(connection)

    def _ship(self, connection: Connection) -> None:
        stream = self._streams.get(connection)
        while stream is not None:
            try:
                parts = stream.send(self.world.now)
            except ReplicaRefused as error:
                self._refuse(connection, error)
                return
            if not parts:
                return
            connection.send(self, b"".join(parts))

    def _look_again(self, connection: Connection) -> None:
        stream = self._streams.get(connection)
        if stream is not None:
            self._ship(connection)
            self.later(stream.next_look(self.world.now), lambda: self._look_again(connection))

    def _refuse(self, connection: Connection, error: Exception) -> None:
        self.world.note(f"master refuses a slave: {error}")
        connection.close()

    def closed(self, connection: Connection) -> None:
        self._streams.pop(connection, None)
        self.replicas.leave(connection)


class Slave(Node):
    """Follows the master, and connects again when it cannot."""

    def __init__(
        self,
        name: str,
        world: World,
        log: SimulatedLog,
        watcher: Watcher,
        *,
        master: Master,
        network: Network,
        plain: bool,
    ) -> None:
        super().__init__(name, world, log)
        self.master = master
        self._watcher = watcher
        self._network = network
        self._plain = plain  # as RocketMQ's: it does not show the end of its log
        self._connection: Connection | None = None
        self._stream: SlaveStream | None = None
        self.refused = ""

    def start(self) -> None:
        super().start()
        self.refused = ""
        self.flush_now_and_then()
        self._connect()

    def stop(self, *, power: bool) -> None:
        super().stop(power=power)
        self._leave()

    def flush_now_and_then(self) -> None:
        super().flush_now_and_then()
        if self._connection is not None and self._stream is not None:
            self._connection.send(self, self._stream.progress(self.world.now))

    def _connect(self) -> None:
        if self._connection is not None:
            return
        self.later(1.0, self._connect)
        if not self.master.is_up:
            return
        try:
            if not self._plain:
                check_tail(self.master.log, tail_of(self.log, self.log.first, self.log.end_offset))
        except ReplicaRefused as error:
            self.refused = str(error)
            return
        self._connection = self._network.connect(self, self.master)
        if self._connection is not None:
            self.master.accept(self._connection)
            self._stream = SlaveStream(self.log, ReportRules(), self.world.now)
            self._connection.send(self, self._stream.begin(self.world.now))
            self._look_again(self._connection)

    def received(self, connection: Connection, data: bytes) -> None:
        if connection is not self._connection or self._stream is None or not self.is_up:
            return
        try:
            report = self._stream.receive(data, self.world.now)
        except (MasterLeft, ProtocolError, DiskFull) as error:
            self.world.note(f"{self.name} leaves its master: {error}")
            self._leave()
            return
        self._watcher.appended(self)
        connection.send(self, report)

    def _look_again(self, connection: Connection) -> None:
        if connection is not self._connection or self._stream is None:
            return
        try:
            connection.send(self, self._stream.due(self.world.now))
        except MasterLeft as error:
            self.world.note(f"{self.name} leaves its master: {error}")
            self._leave()
            return
        self.later(self._stream.next_look(self.world.now), lambda: self._look_again(connection))

    def _leave(self) -> None:
        if self._connection is not None:
            self._connection.close()

    def closed(self, connection: Connection) -> None:
        if connection is self._connection:
            self._connection = self._stream = None
            self.later(1.0, self._connect)
