"""A broker of a controller's set around the real state machines: `RoleBook`, `SyncSet`, both streams, epochs."""

from collections.abc import Callable
from functools import partial
from typing import Protocol

from skyrocket.broker.failover.role_book import RoleBook
from skyrocket.broker.replication.master_stream import ReplicaRefused, TransferRules
from skyrocket.broker.replication.slave_stream import MasterLeft, ReportRules
from skyrocket.broker.replication.switch_streams import CutNeeded, SwitchMasterStream, SwitchSlaveStream
from skyrocket.broker.replication.sync_set import SyncRules, SyncSet
from skyrocket.broker.state.epochs import Epochs
from skyrocket.broker.state.switching import RoleWord
from skyrocket.controller.decisions import Outcome
from skyrocket.protocol.auto_switch import SlaveHello
from skyrocket.protocol.bodies.controller import ElectedMaster, SyncStateSet
from skyrocket.protocol.codes import ResponseCode
from skyrocket.protocol.errors import ProtocolError
from skyrocket.protocol.requests.broker_registration import BrokerHeartbeat
from skyrocket.protocol.requests.controller import (
    AlterSyncStateSet,
    ElectMaster,
    ElectMasterAnswer,
    GetReplicaInfo,
    GetReplicaInfoAnswer,
)
from skyrocket.testing.simulation.controllers import CLUSTER, SET, SimulatedController
from skyrocket.testing.simulation.log import SimulatedLog
from skyrocket.testing.simulation.network import Connection
from skyrocket.testing.simulation.parted_network import Call, Machine, PartedNetwork, Tell
from skyrocket.testing.simulation.world import World

_SEND_SECONDS = 3.0
_HEARTBEAT_SECONDS = 1.0
_EXPIRY_SECONDS = 4.0
_PATIENCE_SECONDS = 3.0


class SetWatcher(Protocol):
    """Hears what a set promises."""

    def acknowledged(self, replica: "SimulatedReplica", epoch: int, end_offset: int, payload: bytes) -> None: ...

    def confirmed(self, replica: "SimulatedReplica") -> None: ...


class OfferedLog:
    """What slaves may have: with SYNC_FLUSH no more than the disk has, as `SafeLog`."""

    def __init__(self, log: SimulatedLog) -> None:
        self._log = log

    @property
    def min_offset(self) -> int:
        return self._log.min_offset

    @property
    def readable_offset(self) -> int:
        return self._log.safe_offset

    @property
    def last_file_start(self) -> int:
        return self._log.last_file_start

    def raw(self, physical_offset: int, max_bytes: int) -> memoryview | None:
        room = min(max_bytes, self.readable_offset - physical_offset)
        return self._log.raw(physical_offset, room) if room > 0 else None


class SimulatedReplica(Machine):
    """Fenced after each start; then master or slave, by the controllers' word."""

    def __init__(
        self,
        broker_id: int,
        world: World,
        network: PartedNetwork,
        controllers: list[SimulatedController],
        watcher: SetWatcher,
        rules: SyncRules,
        log: SimulatedLog,
    ) -> None:
        super().__init__(f"broker {broker_id}", world)
        self.broker_id = broker_id
        self.log = log
        self.epochs = Epochs()
        self.book = RoleBook()
        self.sync_set: SyncSet | None = None  # while it is master
        self.serving_epoch = 0
        self.set: dict[int, SimulatedReplica] = {}
        self._network = network
        self._controllers = controllers
        self._watcher = watcher
        self._rules = rules
        self._streams: dict[Connection, SwitchMasterStream] = {}
        self._connection: Connection | None = None
        self._stream: SwitchSlaveStream | None = None
        self._changing = False
        self._asked = 0  # the controller that is asked until it fails or does not lead

    # ── life ─────────────────────────────────────────────────────────────────────────────────────────────────────────

    def start(self) -> None:
        self.is_up = True
        self.log.recover()
        self.book = RoleBook()
        self.book.own_id = self.broker_id
        self.sync_set, self._changing = None, False
        self.world.note(f"{self.name} is up, its log ends at {self.log.end_offset}")
        for work in (self._beat, self._look, self._flush, self._connect, self._propose):
            self.later(self.world.random.uniform(0, 0.3), work)

    def stop(self, *, power: bool = False) -> None:
        """kill -9, or the power fails."""
        self.world.note(f"{self.name} {'loses its power' if power else 'is killed'}")
        self.is_up = False
        self.life += 1
        if power:
            self.log.lose_power(self.world.random)
        self._leave_everybody()
        self._network.reset_of(self)
        for controller in self._controllers:
            if not self._network.blocks(self, controller):
                controller.disconnected(self)

    def _leave_everybody(self) -> None:
        streams, self._streams = self._streams, {}
        for connection in (*streams, *([self._connection] if self._connection is not None else [])):
            connection.close()
        self._connection = self._stream = None

    def _flush(self) -> None:
        self.log.flush()
        self._safe_now()
        self.later(self.world.random.uniform(0.05, 0.5), self._flush)

    def _safe_now(self) -> None:
        """The disk has all of the log."""
        if self.sync_set is not None:
            self.sync_set.refresh()
            self._ship_all()
        elif self._connection is not None and self._stream is not None:
            self._connection.send(self, self._stream.progress(self.now))

    # ── roles ────────────────────────────────────────────────────────────────────────────────────────────────────────

    def hear(self, word: RoleWord) -> None:
        """A controller spoke."""
        if self.book.hear(word):
            self._take_role()

    def _take_role(self) -> None:
        role = self.book.role
        if role is None or self._changing:
            return
        if not self.book.is_master:
            self._end_service()
            return
        if self.sync_set is None:
            self._change(self._become_master)
        elif role.master_epoch > self.serving_epoch:
            self._begin_epoch(role)
        else:
            self.sync_set.adopt(role.members, role.members_epoch)

    def _change(self, become: Callable[[], None]) -> None:
        """One life ends, the next begins a moment later."""
        self._changing = True
        self._leave_everybody()

        def begin() -> None:
            self._changing = False
            become()

        self.later(self.world.random.uniform(0.01, 0.4), begin)

    def _end_service(self) -> None:
        """A master that is none any more, or a slave with another master."""
        if self.sync_set is not None:
            self.world.note(f"{self.name} is master no more")
            self.sync_set = None
            self._change(self._connect)
        elif self._connection is not None and self.book.role is not None:
            if self._connection.joins(self, self.set[self.book.role.master_id or 0]):
                return
            self._connection.close()

    def _become_master(self) -> None:
        role = self.book.role
        if role is None or not self.book.is_master:
            self._take_role()
            return
        self.log.recover()  # a record that has come only in part goes
        self._begin_epoch(role)

    def _begin_epoch(self, role: RoleWord) -> None:
        end = self.log.end_offset
        assert role.master_epoch >= self.epochs.last.number, "a controller never goes back"
        self.epochs.cut(end, also_at_end=self.epochs.all)
        if self.epochs.last.number != role.master_epoch:
            self.epochs.begin(role.master_epoch, end)
        if self.sync_set is None:
            self.sync_set = SyncSet(self.broker_id, end, lambda: self.log.safe_offset, self._rules)
            self.sync_set.patient_until = self.now + _PATIENCE_SECONDS
        self.sync_set.began_at = end
        self.sync_set.adopt(role.members, role.members_epoch)
        self.serving_epoch = role.master_epoch
        self.world.note(f"{self.name} is master of epoch {role.master_epoch} from {end}, set {sorted(role.members)}")

    # ── the master's side ────────────────────────────────────────────────────────────────────────────────────────────

    def put(self, payload: bytes) -> None:
        """A send: the answer is success only if those who count have it in time."""
        sync_set, epoch, life = self.sync_set, self.serving_epoch, self.life
        if not self.is_up or self.stands_still or sync_set is None or sync_set.is_short:
            return
        end_offset = self.log.append_record(payload)

        def settled() -> None:
            if self.sync_set is sync_set and self.life == life:
                self._watcher.acknowledged(self, epoch, end_offset, payload)

        wait = sync_set.wait(end_offset, settled)
        self.later(_SEND_SECONDS, wait.cancel)
        if self.log.sync_flush:
            self.later(self.world.random.uniform(0.001, 0.02), self._flush_once)
        self._ship_all()

    def _flush_once(self) -> None:
        self.log.flush()
        self._safe_now()

    def accept(self, connection: Connection) -> None:
        """A slave has connected; who is not master lets it go."""
        if self.sync_set is None:
            connection.close()
            return
        sync_set = self.sync_set
        self._streams[connection] = SwitchMasterStream(
            OfferedLog(self.log),
            TransferRules(batch_bytes=self.world.random.choice((64, 700, 4096)), heartbeat_seconds=1.0),
            self.now,
            self.epochs,
            lambda: sync_set.confirm_offset,
        )
        self._look_at(connection)

    def _ship_all(self) -> None:
        for connection in list(self._streams):
            self._ship(connection)

    def _ship(self, connection: Connection) -> None:
        stream = self._streams.get(connection)
        while stream is not None:
            try:
                parts = stream.send(self.now)
            except ReplicaRefused as error:
                self.world.note(f"{self.name} lets a slave go: {error}")
                connection.close()
                return
            if not parts:
                return
            connection.send(self, b"".join(parts))

    def _look_at(self, connection: Connection) -> None:
        stream = self._streams.get(connection)
        if stream is not None:
            self._ship(connection)
            self.later(stream.next_look(self.now), lambda: self._look_at(connection))

    def _reported(self, connection: Connection, stream: SwitchMasterStream, data: bytes) -> None:
        sync_set = self.sync_set
        try:
            stream.receive(data, self.now)
        except (ReplicaRefused, ProtocolError) as error:
            self.world.note(f"{self.name} lets a slave go: {error}")
            connection.close()
            return
        if stream.acknowledged_offset >= 0 and sync_set is not None:
            broker_id = stream.slave.broker_id
            if sync_set.acknowledged(broker_id) < 0:
                sync_set.join(broker_id, self.now, is_learner=stream.slave.is_learner)
            sync_set.acknowledge(broker_id, stream.acknowledged_offset, self.now)
            self._watcher.confirmed(self)
        self._ship(connection)

    # ── the slave's side ─────────────────────────────────────────────────────────────────────────────────────────────

    def _connect(self) -> None:
        role = self.book.role
        self.later(0.7, self._connect)
        if self._connection is not None or self._changing or self.sync_set is not None:
            return
        if role is None or role.master_id in (None, self.broker_id):
            return
        assert role.master_id is not None
        master = self.set[role.master_id]
        if not master.is_up:
            return
        self._connection = connection = self._network.connect(self, master)
        if connection is None:
            return
        self._stream = SwitchSlaveStream(self.log, ReportRules(1.0, 6.0), self.now, self.epochs, self._hello())
        master.accept(connection)
        if connection.is_open:
            connection.send(self, self._stream.begin(self.now))
            self._watch(connection)

    def _hello(self) -> SlaveHello:
        return SlaveHello(self.broker_id)

    def received(self, connection: object, data: bytes) -> None:
        assert isinstance(connection, Connection)
        if not self.is_up:
            return
        stream = self._streams.get(connection)
        if stream is not None:
            self._reported(connection, stream, data)
        elif connection is self._connection and self._stream is not None:
            self._follow(connection, self._stream, data)

    def _follow(self, connection: Connection, stream: SwitchSlaveStream, data: bytes) -> None:
        try:
            report = stream.receive(data, self.now)
        except CutNeeded as cut:
            self.world.note(f"{self.name} cuts its log at {cut.end_offset}, it ended at {self.log.end_offset}")
            self._cut(cut)
            connection.close()
        except (MasterLeft, ProtocolError) as error:
            self.world.note(f"{self.name} leaves its master: {error}")
            connection.close()
        else:
            connection.send(self, report)

    def _cut(self, cut: CutNeeded) -> None:
        """Its epochs are cut when both have agreed, after the log."""
        self.log.cut(cut.end_offset)

    def _watch(self, connection: Connection) -> None:
        if connection is not self._connection or self._stream is None:
            return
        try:
            connection.send(self, self._stream.due(self.now))
        except MasterLeft as error:
            self.world.note(f"{self.name} leaves its master: {error}")
            connection.close()
            return
        self.later(self._stream.next_look(self.now), lambda: self._watch(connection))

    def closed(self, connection: object) -> None:
        assert isinstance(connection, Connection)
        if connection is self._connection:
            self._connection = self._stream = None
        stream = self._streams.pop(connection, None)
        if stream is not None and self.sync_set is not None:
            broker_id = stream.slave.broker_id
            if not any(other.slave.broker_id == broker_id for other in self._streams.values()):
                self.sync_set.leave(broker_id)

    # ── controllers ──────────────────────────────────────────────────────────────────────────────────────────────────

    def _beat(self) -> None:
        self.later(_HEARTBEAT_SECONDS, self._beat)
        heartbeat = BrokerHeartbeat(
            cluster_name=CLUSTER,
            broker_addr=self.name,
            broker_name=SET,
            broker_id=self.broker_id,
            epoch=self.epochs.last.number,
            max_offset=self.log.safe_offset,
            heartbeat_timeout_millis=int(_EXPIRY_SECONDS * 1000),
        )
        for controller in self._controllers:
            if controller.is_up:
                Tell(self._network, self, controller, partial(controller.hear, heartbeat, self))

    def _call(
        self, controller: SimulatedController, serve: Callable[[], Outcome], answered: Callable[[Outcome | None], None]
    ) -> None:
        def judge(answer: Outcome | None) -> None:
            if answer is None or answer.code == ResponseCode.CONTROLLER_NOT_LEADER:
                self._asked += 1
            answered(answer)

        if controller.is_up:
            Call(self._network, self, controller, serve, judge)
        else:
            self._asked += 1

    @property
    def _controller(self) -> SimulatedController:
        return self._controllers[self._asked % len(self._controllers)]

    def _look(self) -> None:
        """Ask one of the controllers who is master: the one that leads, or not."""
        self.later(self.world.random.uniform(0.5, 2.0), self._look)
        controller = self._controller
        was_asking = self.sync_set is not None and self.sync_set.is_asking
        self._call(
            controller,
            lambda: controller.ask(GetReplicaInfo(broker_name=SET)),
            lambda answer: self._informed(controller, answer, self.sync_set if not was_asking else None),
        )

    def _informed(self, controller: SimulatedController, answer: Outcome | None, sync_set: SyncSet | None) -> None:
        if answer is None or answer.code != ResponseCode.SUCCESS:
            return
        header, body = answer.header, answer.body
        assert isinstance(header, GetReplicaInfoAnswer)
        assert isinstance(body, SyncStateSet)
        self._hear(header.master_broker_id, header.master_epoch, body)
        if sync_set is not None and sync_set is self.sync_set:
            sync_set.still(body.epoch)
        if header.master_broker_id is None:
            request = ElectMaster(cluster_name=CLUSTER, broker_name=SET, broker_id=self.broker_id)
            self._call(controller, lambda: controller.ask(request), self._elected)

    def _elected(self, answer: Outcome | None) -> None:
        if answer is not None and answer.code == ResponseCode.SUCCESS:
            header, body = answer.header, answer.body
            assert isinstance(header, ElectMasterAnswer)
            assert isinstance(body, ElectedMaster)
            members = SyncStateSet(body.sync_state_set, header.sync_state_set_epoch or 0)
            self._hear(header.master_broker_id, header.master_epoch, members)

    def _hear(self, master_id: int | None, epoch: int | None, members: SyncStateSet) -> None:
        address = None if master_id is None else f"broker {master_id}"
        self.hear(RoleWord(master_id, address, epoch or 0, frozenset(members.broker_ids), members.epoch))

    def _propose(self) -> None:
        self.later(self.world.random.uniform(0.1, 0.5), self._propose)
        sync_set, role = self.sync_set, self.book.role
        wanted = sync_set.proposal(self.now) if sync_set is not None and role is not None else None
        if sync_set is None or role is None or wanted is None:
            return
        request = AlterSyncStateSet(broker_name=SET, master_broker_id=self.broker_id, master_epoch=role.master_epoch)
        body = SyncStateSet(tuple(sorted(wanted)), sync_set.members_epoch)
        controller = self._controller
        if not controller.is_up:
            self._asked += 1
            sync_set.refused()
            return

        def answered(answer: Outcome | None) -> None:
            if answer is None:
                sync_set.unanswered()
            elif answer.code != ResponseCode.SUCCESS:
                sync_set.refused()
            else:
                told = answer.body
                assert isinstance(told, SyncStateSet)
                self.world.note(f"{self.name} has the set {list(told.broker_ids)}")
                sync_set.adopt(frozenset(told.broker_ids), told.epoch)

        self._call(controller, lambda: controller.ask(request, body), answered)
