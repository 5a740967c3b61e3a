"""Builds the controller, runs it, and stops it in order.

start   listen ▸ join the engine ▸ search for silent brokers and for sets without a living master
stop    end the searches ▸ leave the engine, so that another leads at once ▸ close connections

a heartbeat stays away, or its connection ends ─▶ its broker was master? ─▶ an election ─▶ the others are told
"""

import asyncio
import logging
from collections.abc import Iterable
from typing import Final, NoReturn, Self, cast

from skyrocket.clock import Clock, SystemClock
from skyrocket.config.sections import ControllerConfig, TlsConfig
from skyrocket.controller.access import account_check, signer_of
from skyrocket.controller.decider import Decider
from skyrocket.controller.decisions import RoleChange
from skyrocket.controller.engines.engine import Engine, Member, Standing
from skyrocket.controller.live_brokers import BrokerKey
from skyrocket.controller.machine import ControllerMachine
from skyrocket.controller.notifier import Notifier
from skyrocket.controller.observation import ControllerObservation
from skyrocket.controller.peers import own_peer
from skyrocket.controller.processors import ControllerProcessor, ReplicaSetProcessor
from skyrocket.controller.settings import live_settings
from skyrocket.observability.exposition import CONTENT_TYPE, render
from skyrocket.observability.health import alive, readiness
from skyrocket.observability.http_endpoint import HttpEndpoint, Page
from skyrocket.protocol.codes import ResponseCode
from skyrocket.protocol.errors import NotControllerLeader, RequestError, SystemFailure
from skyrocket.protocol.requests.controller import ElectMaster
from skyrocket.remoting.addresses import Address
from skyrocket.remoting.admission import RequestClass
from skyrocket.remoting.client import ClientSettings, RemotingClient
from skyrocket.remoting.listening import CannotListen, why_no_metrics, why_not_listening
from skyrocket.remoting.live_settings import SettingsFile
from skyrocket.remoting.peer import CloseReason, Peer
from skyrocket.remoting.router import Router
from skyrocket.remoting.server import RemotingServer, settings_of
from skyrocket.remoting.services import Services
from skyrocket.remoting.tls import ServerTls, client_tls

_logger = logging.getLogger(__name__)

_RETRY_SECONDS: Final = 0.5
_ATTEND_SECONDS: Final = 0.25


class Controller:
    """One controller: what it knows, who asks it, and its engine."""

    def __init__(
        self,
        config: ControllerConfig,
        engine: Engine,
        settings_file: SettingsFile,
        tls: TlsConfig | None = None,
        clock: Clock | None = None,
    ) -> None:
        self._clock = clock or SystemClock()
        self.settings = live_settings(config, settings_file)
        self._own = own_peer(config.peers, config.self_id)
        self._engine = engine
        tls = tls or TlsConfig()
        self._client = RemotingClient(
            ClientSettings(connect_seconds=1.0), tls=client_tls(tls), signer=signer_of(config)
        )
        self._notifier = Notifier(self._client)
        self.machine = ControllerMachine(
            self._clock.monotonic(),
            max_sets=config.max_sets,
            max_brokers=config.max_brokers,
            elects_unclean=lambda: self.settings.config.elect_unclean,
        )
        self.decider = Decider(self.machine, engine, self._clock, self._role_changed)
        self._server = RemotingServer(self._router(config), settings_of(config), ServerTls(tls), self._clock)
        self._server.on_close(self._connection_closed)
        self.observation = ControllerObservation(self.machine, self.decider, self._notifier, self._server, self._clock)
        self._http = HttpEndpoint({"/metrics": self._metrics, "/health": alive, "/ready": self._ready})
        self._services = Services(self._clock)
        self._is_stopping = False

    def _router(self, config: ControllerConfig) -> Router:
        requests = RequestClass("controller", config.queue_capacity)
        router = Router(self._clock, class_of=lambda _: requests)
        router.add(
            *ReplicaSetProcessor(self.decider).handlers(),
            *ControllerProcessor(self.machine, self.decider, self.settings, self._clock).handlers(),
        )
        router.check_with(account_check(config))
        return router

    # ── lifecycle ────────────────────────────────────────────────────────────────────────────────────────────────────

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(self, *_: object) -> None:
        await self.stop()

    async def start(self) -> Address:
        """Listen and take part; the address is the one that brokers are told. Raises CannotListen or EngineError."""
        config = self.settings.config
        try:
            listening = await self._server.listen(config.bind_address, self._own.port)
        except OSError as error:
            options = {"port_option": "controllerDLegerPeers", "host_option": "--set bindAddress=…"}
            raise CannotListen(why_not_listening(error, config.bind_address, self._own.port, **options)) from error
        if config.metrics_port:
            try:
                await self._http.listen(config.bind_address, config.metrics_port)
            except OSError as error:
                problem = why_no_metrics(
                    error, config.bind_address, config.metrics_port, without="metricsPromExporterPort=0"
                )
                raise CannotListen(problem) from error
        self._own = self._own._replace(port=listening.port)
        await self._engine.join(Member(config.self_id, str(self._own)), self._told)
        self._services.start(self._attend)
        self._services.start(self._scan_brokers)
        self._services.start(self._scan_masters)
        return self._own

    @property
    def address(self) -> Address:
        """What brokers are told; when port 0 was asked for, right from the start on."""
        return self._own

    @property
    def keeps_in(self) -> str:
        """The engine, for people."""
        return self._engine.description

    async def stop(self) -> None:
        """End in order; may be called again."""
        self._is_stopping = True
        await self._http.stop()
        await self._services.end()
        await self._engine.close()
        await self._server.stop()
        await self._notifier.close()
        await self._client.close()

    async def failed(self) -> NoReturn:
        """Wait for what cannot be repaired; raises it."""
        await self._services.failed()

    # ── masters that are lost ────────────────────────────────────────────────────────────────────────────────────────

    async def _attend(self) -> None:
        """So that a pause of this process is not taken for one of all brokers."""
        while True:
            self.machine.attend(self._clock.monotonic())
            await asyncio.sleep(_ATTEND_SECONDS)

    async def _scan_brokers(self) -> None:
        while True:
            await asyncio.sleep(self.settings.config.scan_interval_ms / 1000)
            self.scan_brokers()

    def scan_brokers(self) -> None:
        """Forget brokers that were silent for too long, close their connections, and elect where a master was lost."""
        gone = self.machine.silence(self._clock.monotonic())
        self._lost([key for key, _ in gone], "silent")
        for _, connection in gone:
            if connection is not None:
                cast(Peer, connection).close(CloseReason.IDLE)

    async def _scan_masters(self) -> None:
        while True:
            await asyncio.sleep(self.settings.config.master_scan_interval_ms / 1000)
            await self.scan_masters()

    async def scan_masters(self) -> None:
        """Elect for every set that needs it: also what an election before could not do is done here."""
        try:
            for name in await self.decider.in_need():
                await self._elect(name)
        except (NotControllerLeader, SystemFailure) as error:
            _logger.warning("sets without a master are looked for again later reason=%s", error)

    def _connection_closed(self, peer: Peer, reason: CloseReason) -> None:
        if not self._is_stopping:
            self._lost(self.machine.disconnected(peer, self._clock.monotonic()), reason.value)

    def _lost(self, keys: Iterable[BrokerKey], reason: str) -> None:
        for key in keys:
            _logger.warning("broker lost name=%s id=%d reason=%s", key.broker_name, key.broker_id, reason)
            if self.decider.leads:
                self._server.router.tasks.start(self._follow(key), name=f"follow {key.broker_name}")

    async def _follow(self, gone: BrokerKey) -> None:
        """Elect, if a broker that is gone was master."""
        try:
            if await self.decider.has_lost_master(gone):
                await self._elect(gone.broker_name)
        except (NotControllerLeader, SystemFailure) as error:
            _logger.warning("a lost broker is looked at again later name=%s reason=%s", gone.broker_name, error)

    def _told(self, standing: Standing) -> None:
        """How we stand; who begins to lead looks at once what happened while nobody did."""
        led = self.decider.leads
        self.decider.told(standing)
        if self.decider.leads and not led and not self._is_stopping:
            self._server.router.tasks.start(self.scan_masters(), name="first look at masters")

    async def _elect(self, broker_name: str) -> None:
        attempts = self.settings.config.election_attempts
        for attempt in range(attempts):
            try:
                outcome = await self.decider.decide(ElectMaster(broker_name=broker_name))
            except NotControllerLeader:
                return  # whoever leads now sees it too
            except RequestError as error:
                _logger.warning("an election failed name=%s reason=%s", broker_name, error)
                if attempt + 1 < attempts:
                    await asyncio.sleep(_RETRY_SECONDS)
            else:
                if outcome.code != ResponseCode.CONTROLLER_MASTER_STILL_EXIST:
                    _logger.warning(
                        "an election was held name=%s result=%s", broker_name, outcome.remark or outcome.header
                    )
                return

    def _role_changed(self, change: RoleChange) -> None:
        if self.settings.config.notify_roles:
            self._notifier.tell(change)

    # ── what is shown ────────────────────────────────────────────────────────────────────────────────────────────────

    def _metrics(self) -> Page:
        return Page(200, CONTENT_TYPE, render(self.observation.metrics(), {"node_type": "controller"}))

    def _ready(self) -> Page:
        return readiness({"controller": self.observation.why_not_ready})
