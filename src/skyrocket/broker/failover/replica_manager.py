"""A broker's dealings with its controllers: its id, signs of life, who is master, and the sync-state set of a master.

no id ─▶ GET_NEXT_BROKER_ID ─▶ brokerIdentity-temp ─▶ APPLY_BROKER_ID ─▶ brokerIdentity
      ─▶ REGISTER_BROKER ─▶ GET_REPLICA_INFO now and then ─▶ no master: ELECT_MASTER
master: ALTER_SYNC_STATE_SET when a slave has caught up, lags, or is gone
"""

import asyncio
import contextlib
import logging
from typing import Final, Protocol

from skyrocket.broker.failover.controllers import Controllers
from skyrocket.broker.failover.replica_files import IdentityFiles
from skyrocket.broker.failover.role_book import RoleBook
from skyrocket.broker.replication.switch_master import SwitchMaster
from skyrocket.broker.replication.switch_slave import SwitchSlave
from skyrocket.broker.state.epochs import Epochs
from skyrocket.broker.state.switching import RoleWord
from skyrocket.clock import SystemClock
from skyrocket.config.sections import BrokerConfig
from skyrocket.errors import DataError
from skyrocket.format.epochs import ReplicaIdentity
from skyrocket.protocol.bodies.controller import ElectedMaster, SyncStateSet
from skyrocket.protocol.errors import (
    BrokerIdInvalid,
    BrokerMetadataNotExist,
    BrokerNeedsRegistration,
    InvalidReplicas,
    RequestError,
)
from skyrocket.protocol.requests.broker_registration import BrokerHeartbeat
from skyrocket.protocol.requests.controller import (
    AlterSyncStateSet,
    ApplyBrokerId,
    ElectMaster,
    GetNextBrokerId,
    GetReplicaInfo,
    RegisterAtController,
)
from skyrocket.remoting.errors import RemotingError
from skyrocket.remoting.services import Work

_logger = logging.getLogger(__name__)

_RETRY_SECONDS: Final = 1.0
_PATIENCE_SECONDS: Final = 3.0  # with members that have not come back to a master that was restarted


class Replica(Protocol):
    """The broker that is managed."""

    @property
    def address(self) -> str: ...

    @property
    def master(self) -> SwitchMaster | None: ...

    @property
    def slave(self) -> SwitchSlave | None: ...

    @property
    def epochs(self) -> Epochs: ...

    def hear(self, word: RoleWord) -> None: ...

    def role_changed(self) -> None: ...


class ReplicaManager:
    """Of one broker."""

    def __init__(
        self,
        replica: Replica,
        controllers: Controllers,
        book: RoleBook,
        files: IdentityFiles,
        config: BrokerConfig,
    ) -> None:
        self._replica = replica
        self._controllers = controllers
        self._book = book
        self._files = files
        self._config = config
        self._clock = SystemClock()
        self._identity: ReplicaIdentity | None = None
        self._is_registered = False
        self._address = ""
        self._offsets = (0, 0)  # of the last life that was seen
        self._followers_changed = asyncio.Event()
        self.trouble: str | None = "no controller has been asked yet"

    def load(self) -> None:
        """Take what the files say; raises CorruptFile and ConfigError."""
        self._identity = self._files.load()
        if self._identity is not None and not self._identity.check_code:
            self._book.own_id = self._identity.broker_id

    def services(self) -> tuple[Work, ...]:
        return (self.run_looks, self.run_heartbeats, self.run_sync_set, self.run_leader)

    # ── who is master ────────────────────────────────────────────────────────────────────────────────────────────────

    async def run_leader(self) -> None:
        """Look which controller leads, until cancelled."""
        while True:
            await asyncio.sleep(self._config.controller_look_period_ms / 1000)
            with contextlib.suppress(RemotingError):  # who asks next says it aloud
                await self._controllers.find_leader()

    async def run_looks(self) -> None:
        """Ask for id and master until cancelled."""
        while True:
            try:
                await self.look()
                self.trouble = None
            except (RemotingError, RequestError, DataError) as error:
                if str(error) != self.trouble:
                    _logger.warning("the controllers do not say who is master reason=%s", error)
                self.trouble = str(error)
            await asyncio.sleep(self._pause())

    def _pause(self) -> float:
        """Who has no master to follow asks more often."""
        slave, master = self._replica.slave, self._replica.master
        is_settled = self.trouble is None and (master is not None or (slave is not None and slave.follows))
        period = self._config.replica_look_period_ms / 1000
        return period if is_settled else min(period, _RETRY_SECONDS)

    async def look(self) -> None:
        """Ask once; raises RemotingError, RequestError and DataError."""
        self._address = self._replica.address
        if not self._book.own_id:
            await self._apply_for_id()
        if not self._is_registered:
            await self._register()
        try:
            await self._ask_for_master()
        except (BrokerMetadataNotExist, BrokerNeedsRegistration, InvalidReplicas):
            self._is_registered = False
            raise

    async def _apply_for_id(self) -> None:
        names = {"cluster_name": self._config.cluster_name, "broker_name": self._config.broker_name}
        identity = self._identity
        if identity is None:
            told = (await self._controllers.call(GetNextBrokerId(**names))).header
            if told.next_broker_id is None:
                raise DataError("the controller gives no id")
            identity = self._files.ask(told.next_broker_id, f"{self._address};{self._clock.now_ms()}")
        request = ApplyBrokerId(**names, applied_broker_id=identity.broker_id, register_check_code=identity.check_code)
        try:
            await self._controllers.call(request)
        except BrokerIdInvalid:  # another broker was faster
            self._identity = None
            self._files.give_up()
            raise
        self._identity = self._files.confirm(identity)
        self._book.own_id = identity.broker_id
        _logger.info("the controller has given this broker the id %d", identity.broker_id)
        self._replica.role_changed()

    async def _register(self) -> None:
        reply = await self._controllers.call(
            RegisterAtController(
                cluster_name=self._config.cluster_name,
                broker_name=self._config.broker_name,
                broker_id=self._book.own_id,
                broker_address=self._address,
                invoke_time=self._clock.now_ms(),
            )
        )
        self._is_registered = True
        body = SyncStateSet.decode(bytes(reply.body)) if reply.body else SyncStateSet()
        self._hear(reply.header.master_broker_id, reply.header.master_address, reply.header.master_epoch, body)

    async def _ask_for_master(self) -> None:
        sync_set = self._replica.master.sync_set if self._replica.master is not None else None
        was_asking = sync_set is not None and sync_set.is_asking
        reply = await self._controllers.call(GetReplicaInfo(broker_name=self._config.broker_name))
        header = reply.header
        body = SyncStateSet.decode(bytes(reply.body)) if reply.body else SyncStateSet()
        self._hear(header.master_broker_id, header.master_address, header.master_epoch, body)
        if sync_set is not None and not was_asking:
            sync_set.still(body.epoch)
        if header.master_broker_id is None or not header.master_address:
            await self._elect()

    async def _elect(self) -> None:
        reply = await self._controllers.call(
            ElectMaster(
                cluster_name=self._config.cluster_name,
                broker_name=self._config.broker_name,
                broker_id=self._book.own_id,
                invoke_time=self._clock.now_ms(),
            )
        )
        header, elected = reply.header, ElectedMaster.decode(bytes(reply.body)) if reply.body else ElectedMaster()
        members = SyncStateSet(elected.sync_state_set, header.sync_state_set_epoch or 0)
        self._hear(header.master_broker_id, header.master_address, header.master_epoch, members)

    def _hear(self, master_id: int | None, address: str | None, epoch: int | None, members: SyncStateSet) -> None:
        word = RoleWord(master_id, address, epoch or 0, frozenset(members.broker_ids), members.epoch)
        self._replica.hear(word)

    # ── signs of life ────────────────────────────────────────────────────────────────────────────────────────────────

    async def run_heartbeats(self) -> None:
        """Tell all controllers that this broker lives, also while it changes its role; until cancelled."""
        await self._controllers.beat(self._heartbeat, self._config.heartbeat_interval_ms / 1000)

    def _heartbeat(self) -> BrokerHeartbeat | None:
        if not self._book.own_id or not self._address:
            return None
        side = self._replica.master or self._replica.slave
        if side is not None:
            self._offsets = (side.end_offset, side.confirm_offset)
        return BrokerHeartbeat(
            cluster_name=self._config.cluster_name,
            broker_addr=self._address,
            broker_name=self._config.broker_name,
            broker_id=self._book.own_id,
            epoch=self._replica.epochs.last.number,
            max_offset=self._offsets[0],
            confirm_offset=self._offsets[1],
            heartbeat_timeout_millis=self._config.controller_expiry_ms,
            election_priority=self._config.election_priority,
        )

    # ── the sync-state set ───────────────────────────────────────────────────────────────────────────────────────────

    def look_at_followers(self) -> None:
        """A slave has caught up, or is gone."""
        self._followers_changed.set()

    def renew(self, master: SwitchMaster, role: RoleWord) -> None:
        """A controller says more about a broker that is master already."""
        if role.master_epoch > self._replica.epochs.last.number:
            master.begin_epoch(role)  # chosen again
        else:
            master.sync_set.adopt(role.members, role.members_epoch)
        self._followers_changed.set()

    async def run_sync_set(self) -> None:
        """Keep the controller's sync-state set up to date while this broker is master, until cancelled."""
        seen: SwitchMaster | None = None
        while True:
            with contextlib.suppress(TimeoutError):
                async with asyncio.timeout(self._config.sync_set_period_ms / 1000):
                    await self._followers_changed.wait()
            self._followers_changed.clear()
            master = self._replica.master
            if master is not None and master is not seen:
                master.sync_set.patient_until = self._clock.monotonic() + _PATIENCE_SECONDS
                seen = master
            if master is not None and not await self._propose(master):
                await asyncio.sleep(_RETRY_SECONDS)
                self._followers_changed.set()

    async def _propose(self, master: SwitchMaster) -> bool:
        """Whether the controller has taken the set as it should be."""
        sync_set, role = master.sync_set, self._book.role
        wanted = sync_set.proposal(self._clock.monotonic())
        if wanted is None or role is None:
            return True
        request = AlterSyncStateSet(
            broker_name=self._config.broker_name,
            master_broker_id=self._book.own_id,
            master_epoch=role.master_epoch,
            invoke_time=self._clock.now_ms(),
        )
        body = SyncStateSet(tuple(sorted(wanted)), sync_set.members_epoch).encode()
        try:
            reply = await self._controllers.call(request, body)
            told = SyncStateSet.decode(bytes(reply.body))
        except RequestError as error:
            _logger.warning("the sync-state set was not changed wanted=%s reason=%s", sorted(wanted), error)
            sync_set.refused()
            return False
        except (RemotingError, DataError) as error:
            _logger.warning("nobody knows the sync-state set wanted=%s reason=%s", sorted(wanted), error)
            sync_set.unanswered()
            return False
        _logger.info("the sync-state set is %s epoch=%d", sorted(told.broker_ids), told.epoch)
        self._hear(self._book.own_id, self._address, role.master_epoch, told)
        sync_set.adopt(frozenset(told.broker_ids), told.epoch)
        return True
