"""One broker of a set with a controller: lives as slave and as master by turns, on one store and one address."""

import asyncio
import contextlib
import logging
from dataclasses import replace
from typing import Final, NoReturn, Self, TypeVar

from skyrocket.broker.broker import Broker
from skyrocket.broker.core.feature import Feature
from skyrocket.broker.core.parts import free_port
from skyrocket.broker.failover.controllers import Controllers
from skyrocket.broker.failover.replica_files import IdentityFiles, load_epochs
from skyrocket.broker.failover.replica_manager import ReplicaManager
from skyrocket.broker.failover.role_book import RoleBook
from skyrocket.broker.replication.feature import ReplicationFeature
from skyrocket.broker.replication.switch_master import SwitchMaster
from skyrocket.broker.replication.switch_slave import SwitchSlave
from skyrocket.broker.state.epochs import Epochs
from skyrocket.broker.state.switching import RoleWord, Switching
from skyrocket.clock import Clock, ServiceClock
from skyrocket.config.home import in_home
from skyrocket.config.sections import BrokerConfig, BrokerRole, StoreConfig, TlsConfig
from skyrocket.errors import ConfigError, SkyrocketError
from skyrocket.remoting.addresses import Address, AddressList
from skyrocket.remoting.client import RemotingClient
from skyrocket.remoting.services import Services
from skyrocket.remoting.tls import client_tls
from skyrocket.store.disk import Disk

_logger = logging.getLogger(__name__)

_FENCED_ID: Final = 1  # of a slave before a controller has given it an id: nobody is told of it
_RETRY_SECONDS: Final = 3.0

F = TypeVar("F", bound=Feature)


class BetweenLives(SkyrocketError):
    """The broker is changing its role: ask again."""


class FailoverBroker:
    """What `Broker` is to a broker with a fixed role."""

    def __init__(
        self,
        config: BrokerConfig,
        store_config: StoreConfig,
        clock: ServiceClock | None = None,
        tls: TlsConfig | None = None,
        *,
        peer_clock: Clock | None = None,
        disk: Disk | None = None,
    ) -> None:
        controllers = AddressList.parse(config.controller_addresses).in_order()
        if not controllers:
            raise ConfigError(
                "enableControllerMode=true needs controllerAddr, as host:9878;other:9878: where the controllers are"
            )
        root = in_home(config.store_root)
        port = config.listen_port or free_port(config.bind_address)  # the same for all lives
        self._config = replace(config, listen_port=port, acting_master=False)
        self._store_config = store_config
        self._clock, self._peer_clock, self._disk = clock, peer_clock, disk or Disk()
        self._tls = tls or TlsConfig()
        self._client = RemotingClient(tls=client_tls(self._tls))
        self._epochs = Epochs()
        self._root = str(root)
        self.book = RoleBook()
        self._life: Broker | None = None
        self._address = ""
        self._cut: int | None = None  # where the log must end before its master can be followed
        self._changed = asyncio.Event()
        self._services = Services()
        self._failure: asyncio.Future[NoReturn] | None = None
        self._watch: asyncio.Task[None] | None = None
        self._switch: asyncio.Task[None] | None = None  # from one role to another
        files = IdentityFiles(self._disk, self._root, config.cluster_name, config.broker_name)
        self.manager = ReplicaManager(self, Controllers(self._client, controllers), self.book, files, self._config)

    # ── the life of now ──────────────────────────────────────────────────────────────────────────────────────────────

    @property
    def life(self) -> Broker:
        """The broker in the role that it has now; raises BetweenLives."""
        if self._life is None:
            raise BetweenLives("the broker is changing its role")
        return self._life

    @property
    def is_between_lives(self) -> bool:
        """Whether the broker is changing its role."""
        return self._life is None

    @property
    def master(self) -> SwitchMaster | None:
        """The master's side, while it is one."""
        if self._life is None:
            return None
        side = self._life.feature(ReplicationFeature).master
        return side if isinstance(side, SwitchMaster) else None

    @property
    def slave(self) -> SwitchSlave | None:
        """The slave's side, while it is one."""
        if self._life is None:
            return None
        side = self._life.feature(ReplicationFeature).slave
        return side if isinstance(side, SwitchSlave) else None

    @property
    def epochs(self) -> Epochs:
        return self._epochs

    @property
    def address(self) -> str:
        """As others reach it, the same in all lives; empty before the first."""
        return self._address

    @property
    def metrics_port(self) -> int:
        return self.life.metrics_port

    def feature(self, kind: type[F]) -> F:
        """One of the features of the life of now."""
        return self.life.feature(kind)

    # ── start and stop ───────────────────────────────────────────────────────────────────────────────────────────────

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(self, *_: object) -> None:
        await self.stop()

    async def start(self) -> Address:
        """Serve, fenced until a controller has spoken. Raises what a broker raises, and ConfigError."""
        self._failure = asyncio.get_running_loop().create_future()
        try:
            self._disk.make_directory(self._root)
            self._epochs = load_epochs(self._disk, self._root)
            self.manager.load()
            await self._begin_life(BrokerRole.SLAVE)
        except BaseException:
            await self.stop()
            raise
        for work in (self._run_roles, *self.manager.services()):
            self._services.start(work)
        return self.life.identity.address

    async def stop(self) -> None:
        """End in order; may be called again."""
        await self._services.end()
        if self._switch is not None:
            await asyncio.wait((self._switch,))
        await self._end_life(goodbye=True)
        await self._client.close()
        if self._failure is not None:
            self._failure.cancel()

    async def break_off(self) -> None:
        """Serve nobody any more, as a killed process. `stop` must follow."""
        await self._services.end()
        if self._switch is not None:
            await asyncio.wait((self._switch,))
        if self._life is not None:
            await self._life.break_off()

    async def failed(self) -> NoReturn:
        """Wait for what cannot be repaired; raises it."""
        assert self._failure is not None
        own = asyncio.ensure_future(self._services.failed())
        try:
            await asyncio.wait((own, self._failure), return_when=asyncio.FIRST_COMPLETED)
            await (own if own.done() else self._failure)
        finally:
            own.cancel()
        raise AssertionError("whoever fails says why")

    # ── roles ────────────────────────────────────────────────────────────────────────────────────────────────────────

    def hear(self, word: RoleWord) -> None:
        """A controller spoke."""
        if self.book.hear(word):
            self._changed.set()

    def role_changed(self) -> None:
        """The broker has got another id."""
        self._changed.set()

    def _demand_cut(self, end_offset: int) -> None:
        self._cut = end_offset
        self._changed.set()

    async def _run_roles(self) -> None:
        """Be what the controllers say, until cancelled."""
        while True:
            await self._changed.wait()
            self._changed.clear()
            self._switch = asyncio.ensure_future(self._take_role())
            try:
                await asyncio.shield(self._switch)  # a life that begins or ends does so as a whole
            except (SkyrocketError, OSError) as error:
                _logger.error("the role could not be taken, trying again reason=%s", error)
                await asyncio.sleep(_RETRY_SECONDS)
                self._changed.set()

    async def _take_role(self) -> None:
        role, is_master = self.book.role, self.book.is_master
        if self._life is None or self._id_is_new() or (self._cut is not None and not is_master):
            await self._next_life(BrokerRole.SLAVE)
        if role is None:
            return
        if not is_master:
            if self.slave is None:
                await self._next_life(BrokerRole.SLAVE)
            assert self.slave is not None
            assert role.master_address is not None
            self.slave.follow(role.master_address)
        elif self.master is None:
            await self._next_life(BrokerRole.SYNC_MASTER)
        else:
            self.manager.renew(self.master, role)

    def _id_is_new(self) -> bool:
        switching = self.life.parts.switching
        return switching is not None and switching.broker_id != self.book.own_id

    async def _next_life(self, role: BrokerRole) -> None:
        cut_at, self._cut = await self._end_life(), None
        await self._begin_life(role, cut_at)

    async def _begin_life(self, role: BrokerRole, cut_at: int | None = None) -> None:
        is_master = role is not BrokerRole.SLAVE
        switching = Switching(
            self.book.own_id,
            self._epochs,
            self.book.role if is_master else None,
            told=self.hear,
            demand_cut=self._demand_cut,
        )
        life = Broker(
            replace(self._config, broker_id=0 if is_master else self.book.own_id or _FENCED_ID),
            replace(self._store_config, broker_role=role),
            self._clock,
            self._tls,
            peer_clock=self._peer_clock,
            disk=self._disk,
            switching=switching,
        )
        self._client.signer = life.parts.client.signer  # controllers may want to know who asks
        self._address = str(await life.start(cut_at=cut_at))
        self._life = life
        self._watch = asyncio.ensure_future(self._watch_life(life))
        if self.master is not None:
            self.master.on_followers = self.manager.look_at_followers
        _logger.info("a new life role=%s epoch=%d", role.value, self._epochs.last.number)

    async def _watch_life(self, life: Broker) -> None:
        try:
            await life.failed()
        except SkyrocketError as error:
            if self._failure is not None and not self._failure.done():
                self._failure.set_exception(error)

    async def _end_life(self, *, goodbye: bool = False) -> int | None:
        """Where the log must be cut before the next one, None when it need not.

        Without a goodbye nobody waits for an answer any more: what was not confirmed is not acknowledged, and name
        servers will hear of the next life.
        """
        life, self._life = self._life, None
        if life is None:
            return None
        if self._watch is not None:
            self._watch.cancel()
            with contextlib.suppress(asyncio.CancelledError):
                await self._watch
        if not goodbye:
            life.parts.broker_set.isolate()
            await life.break_off()
        await life.stop()
        return self._cut_after(life)

    def _cut_after(self, life: Broker) -> int | None:
        """A log that must be cut by its master's word, or ends inside a record that will not come."""
        if self._cut is not None:
            # Epochs are cut later, with the master: bytes of a forgotten one would be taken for those of the last.
            return self._cut
        log, dispatched = life.store.commit_log, life.store.dispatcher.dispatched_offset
        if dispatched >= log.raw_end or life.store.dispatcher.damage is not None:
            return None
        _logger.info("the log ends inside a record, which is left out from=%d end=%d", dispatched, log.raw_end)
        return dispatched
