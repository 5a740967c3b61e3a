"""The master's side where a controller decides: slaves greet with their ids, and the sync-state set says who counts."""

import asyncio
import logging
from collections.abc import Callable

from skyrocket.broker.core.parts import Parts
from skyrocket.broker.replication.confirmed_reads import ConfirmedReads
from skyrocket.broker.replication.ha_server import HaServer, SlaveLink
from skyrocket.broker.replication.logs import MasterLog, SafeLog
from skyrocket.broker.replication.master import Master, Waits
from skyrocket.broker.replication.master_stream import LogBytes, TransferRules
from skyrocket.broker.replication.switch_streams import SwitchMasterStream
from skyrocket.broker.replication.sync_set import SyncRules, SyncSet
from skyrocket.broker.state.epochs import Epochs
from skyrocket.broker.state.switching import RoleWord
from skyrocket.config.sections import StoreConfig
from skyrocket.errors import StoreError
from skyrocket.store.results import PutStatus

_logger = logging.getLogger(__name__)


class OlderEpoch(StoreError):
    """The log knows a later master than the controller: the controller has lost its state, or is another one."""


class SwitchMaster(Master):
    """A master of one epoch."""

    def __init__(self, parts: Parts) -> None:
        assert parts.switching is not None
        self._switching = parts.switching
        self._epochs: Epochs = parts.switching.epochs
        self._topics = parts.tables.topics
        self._router = parts.router
        rules = sync_rules(parts.store.config)
        self.sync_set = SyncSet(parts.switching.broker_id, 0, lambda: self._log.readable_offset, rules)
        self._reads = ConfirmedReads(lambda: self.sync_set.confirm_offset)
        self.on_followers: Callable[[], None] = lambda: None  # called when the set may have to be another
        super().__init__(parts)
        parts.store.shown_end = lambda: self.sync_set.confirm_offset
        parts.dispatching.on_growth.insert(0, self.sync_set.refresh)

    def _offered_log(self, parts: Parts) -> MasterLog:
        return SafeLog(parts.store)

    def _ha_server(self, rules: TransferRules) -> HaServer:
        return HaServer(self._log, _Followers(self), self._clock, self.members.refusal, rules, self._new_stream)

    def _new_stream(self, log: LogBytes, rules: TransferRules, now: float) -> SwitchMasterStream:
        return SwitchMasterStream(log, rules, now, self._epochs, lambda: self.sync_set.confirm_offset)

    def _copy_keeper(self, parts: Parts) -> Waits:
        return SetWaits(self.sync_set, parts.store.config)

    async def listen(self) -> None:
        """The store is open: begin the epoch, then let slaves in. Raises OlderEpoch and HaPortTaken.

        A master that was elected is alone in its set, and all that it has is confirmed. One that was restarted in its
        epoch has members that may not have all of its log, and one of them may be the next master.
        """
        role = self._switching.role
        assert role is not None
        self.begin_epoch(role)
        self._reads.hold(self._router, self._commit_log.written_offset)
        await super().listen()

    def begin_epoch(self, role: RoleWord) -> None:
        """All bytes from here on are of this epoch; also of a master that was chosen again. Raises OlderEpoch."""
        end, last = self._commit_log.written_offset, self._epochs.last.number
        if role.master_epoch < last:
            raise OlderEpoch(
                f"the controller says epoch {role.master_epoch}, but this log has bytes of epoch {last}: the "
                "controller has lost its state, or is another one. Nothing was changed; restore the controller's state"
            )
        self._epochs.forget_before(self._commit_log.min_offset)
        self._epochs.cut(end, also_at_end=self._epochs.all)
        if self._epochs.last.number != role.master_epoch:
            self._epochs.begin(role.master_epoch, end)
        if self._topics.data_version.state_version < role.master_epoch:
            self._topics.enter_epoch(role.master_epoch)
        self.sync_set.began_at = end
        self.sync_set.adopt(role.members, role.members_epoch)
        _logger.info("master of epoch %d from=%d members=%s", role.master_epoch, end, sorted(role.members))

    def trouble(self) -> str | None:
        if not self._reads.are_open:
            return (
                "this master was restarted, and its set has not confirmed what its log had: consumers wait until its "
                "slaves are back, or the controller has agreed that they are not in sync"
            )
        return super().trouble()

    @property
    def end_offset(self) -> int:
        """What this broker itself has safely."""
        return self._log.readable_offset

    @property
    def confirm_offset(self) -> int:
        return self.sync_set.confirm_offset

    def is_in_sync(self, slave: SlaveLink) -> bool:
        return broker_id_of(slave) in self.sync_set.members

    def acknowledged(self, slave: SlaveLink) -> None:
        """A slave has more of the log; what all members have is shown to consumers."""
        broker_id, now = broker_id_of(slave), self._clock.monotonic()
        stream, confirmed = slave.stream, self.sync_set.confirm_offset
        assert isinstance(stream, SwitchMasterStream)
        if self.sync_set.acknowledged(broker_id) < 0:
            self.sync_set.join(broker_id, now, is_learner=stream.slave.is_learner)
        self.sync_set.acknowledge(broker_id, stream.acknowledged_offset, now)
        if self.sync_set.confirm_offset > confirmed:
            self._dispatching.request()
        if broker_id not in self.sync_set.members:
            self.on_followers()

    def left(self, slave: SlaveLink) -> None:
        """A slave is gone, unless it has come back by another connection."""
        broker_id = broker_id_of(slave)
        if not any(broker_id_of(other) == broker_id for other in self.slaves):
            self.sync_set.leave(broker_id)
            self.on_followers()


class _Followers:
    """What the HA server tells of slaves."""

    def __init__(self, master: SwitchMaster) -> None:
        self._master = master

    def acknowledge(self, slave: SlaveLink, _: int, /) -> None:
        self._master.acknowledged(slave)

    def leave(self, slave: SlaveLink, /) -> None:
        self._master.left(slave)


def broker_id_of(slave: SlaveLink) -> int:
    """Its controller's id; -1 before it has greeted."""
    assert isinstance(slave.stream, SwitchMasterStream)
    return slave.stream.slave.broker_id


class SetWaits:
    """Senders that wait for the sync-state set; one wait for each turn of the loop."""

    def __init__(self, sync_set: SyncSet, config: StoreConfig) -> None:
        self._set = sync_set
        self._timeout_seconds = config.slave_timeout_ms / 1000

    def use(self, config: StoreConfig) -> None:
        """Go by these settings from now on."""
        self._timeout_seconds = config.slave_timeout_ms / 1000
        self._set.rules = sync_rules(config)

    def in_sync(self) -> int:
        return len(self._set.members)

    def is_short(self) -> bool:
        return self._set.is_short

    def held_by(self, end_offset: int) -> int:
        return self._set.held_by(end_offset)

    def wait(self, end_offset: int, settled: Callable[[PutStatus], None]) -> None:
        def too_late() -> None:
            wait.cancel()
            settled(PutStatus.FLUSH_SLAVE_TIMEOUT)

        def copied() -> None:
            timer.cancel()
            settled(PutStatus.PUT_OK)

        timer = asyncio.get_running_loop().call_later(self._timeout_seconds, too_late)
        wait = self._set.wait(end_offset, copied)


def sync_rules(config: StoreConfig) -> SyncRules:
    """What the settings say; where nothing is said, nothing that is acknowledged can be lost."""
    return SyncRules(
        all_members=config.all_ack_in_sync or not config.in_sync_replicas,
        replicas=config.in_sync_replicas,
        least_members=config.min_in_sync_replicas,
        lag_seconds=config.ha_unheard_ms / 1000,
    )
