"""Builds the name server, runs it, and stops it in order.

    start   load KV values ▸ listen ▸ start the controller, if one lives here ▸ search for silent brokers every 5 s
    stop    stop the controller ▸ end the search ▸ answer what is in hand ▸ close connections

Name servers know nothing of each other: each has what brokers told it.
"""

import asyncio
import logging
from collections.abc import Iterable
from dataclasses import replace
from typing import Final, NoReturn, Self, cast

from skyrocket.clock import Clock, SystemClock
from skyrocket.config.sections import NameServerConfig, TlsConfig
from skyrocket.controller.controller import Controller
from skyrocket.namesrv.access import account_check
from skyrocket.namesrv.kv_config import KvConfig, KvFile
from skyrocket.namesrv.min_broker import notify
from skyrocket.namesrv.observation import endpoint
from skyrocket.namesrv.processors import BrokerProcessor, KvProcessor, RouteProcessor, TopicProcessor
from skyrocket.namesrv.route_table import BrokerKey, MinBrokerChange, RouteTable
from skyrocket.namesrv.settings import live_settings
from skyrocket.protocol.requests.route import GetRouteInfoByTopic
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

_FIRST_SCAN_SECONDS: Final = 5.0
_FIRST_KV_LOG_SECONDS: Final = 60.0
_KV_LOG_SECONDS: Final = 600.0


class NameServer:
    """One name server: tables, requests, network."""

    def __init__(
        self,
        config: NameServerConfig,
        kv_file: KvFile,
        settings_file: SettingsFile,
        tls: TlsConfig | None = None,
        clock: Clock | None = None,
        controller: Controller | None = None,
    ) -> None:
        """`controller` is one that lives in the same process: it begins and ends with the name server."""
        self._clock = clock or SystemClock()
        self.controller = controller
        self.settings = live_settings(config, settings_file)
        self.kv = KvConfig(kv_file, config.max_kv_bytes)
        self.table = RouteTable(max_routes=config.max_routes)
        tls = tls or TlsConfig()
        self._client = RemotingClient(ClientSettings(connect_seconds=0.3), tls=client_tls(tls))
        self._server = RemotingServer(
            self._router(),
            replace(settings_of(config), backlog=config.backlog),
            ServerTls(tls),
            self._clock,
        )
        self._server.on_close(self._connection_closed)
        self._observation = endpoint(self.table, self._server, None if controller is None else controller.observation)
        self._services = Services(self._clock)
        self._is_stopping = False

    def _router(self) -> Router:
        """Route queries have a bound of their own, so that neither side can starve the other."""
        table, kv, settings, clock = self.table, self.kv, self.settings, self._clock
        routes = RequestClass("routes", settings.config.route_queue_capacity)
        others = RequestClass("default", settings.config.queue_capacity)
        router = Router(clock, class_of=lambda code: routes if code == GetRouteInfoByTopic.code else others)
        router.add(
            *RouteProcessor(table, kv, settings, clock).handlers(),
            *BrokerProcessor(table, kv, settings, clock, self._tell_brokers).handlers(),
            *TopicProcessor(table, settings).handlers(),
            *KvProcessor(kv, settings).handlers(),
        )
        router.check_with(account_check(settings.config))
        return router

    # ── lifecycle ────────────────────────────────────────────────────────────────────────────────────────────────────

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(self, *_: object) -> None:
        await self.stop()

    async def start(self, port_option: str = "--listen-port") -> Address:
        """Listen; the address says which port was taken when 0 was asked for. Raises CannotListen.

        `port_option` is what the user gives for another port.
        """
        config = self.settings.config
        try:
            address = await self._server.listen(config.bind_address, config.listen_port)
        except OSError as error:
            problem = why_not_listening(
                error,
                config.bind_address,
                config.listen_port,
                port_option=port_option,
                host_option="--set bindAddress=…",
            )
            raise CannotListen(problem) from error
        if self.controller is not None:
            _logger.warning("a controller runs here too address=%s", await self.controller.start())
        if config.metrics_port:
            await self._listen_for_observers(config)
        self._services.start(self._scan)
        self._services.start(self._log_kv_values)
        return address

    async def _listen_for_observers(self, config: NameServerConfig) -> None:
        try:
            await self._observation.listen(config.bind_address, config.metrics_port)
        except OSError as error:
            problem = why_no_metrics(
                error, config.bind_address, config.metrics_port, without="metricsPromExporterPort=0"
            )
            raise CannotListen(problem) from error

    async def stop(self) -> None:
        """End in order; may be called again."""
        self._is_stopping = True
        await self._observation.stop()
        if self.controller is not None:
            await self.controller.stop()
        await self._services.end()
        config = self.settings.config
        await self._server.stop(go_away_seconds=config.shutdown_wait_seconds if config.graceful_shutdown else 0.0)
        await self._client.close()

    async def failed(self) -> NoReturn:
        """Wait for what cannot be repaired; raises it. A controller has its own."""
        await self._services.failed()

    # ── brokers that are lost ────────────────────────────────────────────────────────────────────────────────────────

    async def _scan(self) -> None:
        pause = min(_FIRST_SCAN_SECONDS, self.settings.config.scan_interval_ms / 1000)
        while True:
            await asyncio.sleep(pause)
            self.scan()
            pause = self.settings.config.scan_interval_ms / 1000

    def scan(self) -> None:
        """Forget brokers that were silent for too long, and close their connections."""
        expired = self.table.expired(self._clock.monotonic())
        connections = [self.table.live[key].connection for key in expired]
        self._remove(expired, "silent")
        for connection in connections:
            cast(Peer, connection).close(CloseReason.IDLE)

    def _connection_closed(self, peer: Peer, reason: CloseReason) -> None:
        lost = self.table.connected_by(peer)
        if lost and not self._is_stopping:
            self._remove(lost, reason.value)

    def _remove(self, keys: list[BrokerKey], reason: str) -> None:
        for key in keys:
            _logger.warning("broker lost cluster=%s address=%s reason=%s", key.cluster, key.address, reason)
        self._tell_brokers(self.table.remove(keys))

    def _tell_brokers(self, changes: Iterable[MinBrokerChange]) -> None:
        changes = list(changes)
        if changes and self.settings.config.notify_min_broker_id:
            self._server.router.tasks.start(notify(self._client, changes), name="notify brokers")

    async def _log_kv_values(self) -> None:
        pause = _FIRST_KV_LOG_SECONDS
        while True:
            await asyncio.sleep(pause)
            _logger.info("kv values %s", self.kv.describe())
            pause = _KV_LOG_SECONDS
