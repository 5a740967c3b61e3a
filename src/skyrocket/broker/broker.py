"""One broker: builds the shared parts and all features, starts and stops them in order; it knows none by name.

    start   open the store ▸ open the features ▸ listen ▸ start their services
    stop    tell them ▸ end services ▸ answer those who wait ▸ stop the server ▸ close features ▸ save ▸ close the store

Everything enters one exit stack and leaves it in reverse, so a start that fails half-way leaves nothing behind.
"""

import asyncio
import errno
from collections.abc import Callable, Iterable
from contextlib import AsyncExitStack
from typing import Final, NoReturn, Self, TypeVar

from skyrocket.broker.core.feature import Feature
from skyrocket.broker.core.parts import Parts, build_parts
from skyrocket.broker.core.plug_ins import plug_ins
from skyrocket.broker.features import FEATURES
from skyrocket.broker.state.switching import Switching
from skyrocket.clock import Clock, ServiceClock
from skyrocket.config.sections import BrokerConfig, MetricsExporter, StoreConfig, TlsConfig
from skyrocket.errors import SkyrocketError
from skyrocket.observability.http_endpoint import HttpEndpoint
from skyrocket.remoting.addresses import VIP_PORT_DISTANCE, Address
from skyrocket.remoting.listening import why_no_metrics, why_not_listening
from skyrocket.remoting.router import NOT_ON_VIP_PORT
from skyrocket.remoting.services import Services
from skyrocket.store.disk import Disk

F = TypeVar("F", bound=Feature)

_OPTIONS: Final = {"port_option": "--listen-port", "host_option": "--set bindAddress=…"}
_UNUSABLE: Final = frozenset({errno.EROFS, errno.EACCES, errno.EPERM, errno.ENOSPC, errno.EDQUOT})


class CannotStart(SkyrocketError):
    """The broker's address is not to be had."""


class Broker:
    """One broker on one store directory."""

    def __init__(
        self,
        config: BrokerConfig,
        store_config: StoreConfig,
        clock: ServiceClock | None = None,
        tls: TlsConfig | None = None,
        *,
        peer_clock: Clock | None = None,
        disk: Disk | None = None,
        switching: Switching | None = None,
        features: Iterable[Callable[[Parts], Feature]] = FEATURES,
    ) -> None:
        """Messages live by `clock`; connections, clients and their locks by `peer_clock`, if it is another one."""
        self.parts = parts = build_parts(
            config, store_config, clock, tls, peer_clock=peer_clock, disk=disk, switching=switching
        )
        self.store, self.tables = parts.store, parts.tables
        self.settings, self.identity = parts.settings, parts.identity
        self.metrics_port = 0  # of the HTTP pages; 0 while they are not served
        parts.features.extend(build(parts) for build in (*features, *plug_ins("brokerPlugins", config.plug_ins)))
        for feature in parts.features:
            parts.router.check_with(*feature.checks())
            parts.router.add(*feature.handlers())
            for follow in feature.follows():
                parts.settings.follow(follow.apply, *follow.keys)
            for table in feature.tables():
                parts.persistence.also_save(table)
        pages = {path: page for feature in parts.features for path, page in feature.pages().items()}
        self.http = HttpEndpoint(pages)
        self._services = Services(parts.peer_clock)
        self._stack = AsyncExitStack()

    def feature(self, kind: type[F]) -> F:
        """One of the features, for tests and tools that look inside."""
        return next(feature for feature in self.parts.features if isinstance(feature, kind))

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(self, *_: object) -> None:
        await self.stop()

    async def start(self, *, cut_at: int | None = None) -> Address:
        """Take up work; returns the address that clients use. Raises CannotStart, or what the store raises.

        `cut_at`: the log must end there.
        """
        try:
            await self._start(cut_at)
        except BaseException:
            await self.stop()
            raise
        return self.identity.address

    async def _start(self, cut_at: int | None) -> None:
        stack, parts = self._stack, self.parts
        if parts.config.metrics_exporter is MetricsExporter.PROM:
            await self._listen_for_observers()
            stack.push_async_callback(self.http.stop)
        parts.tables.topics.load()  # before the store: it must know whose queues are queues of batches
        await self._open_store(cut_at)
        stack.push_async_callback(asyncio.to_thread, parts.store.close)
        stack.callback(parts.persistence.save_all)
        for feature in parts.features:
            stack.push_async_callback(feature.close)
            await feature.open()
        stack.push_async_callback(parts.workers.close)
        stack.push_async_callback(parts.server.stop)
        await self._listen()
        for feature in parts.features:
            stack.callback(feature.let_go)
        stack.push_async_callback(parts.client.close)
        stack.push_async_callback(self._services.end)
        for feature in parts.features:
            stack.push_async_callback(feature.stopping)
            await feature.started()
            for work in feature.services():
                self._services.start(work)

    async def _open_store(self, cut_at: int | None) -> None:
        store = self.parts.store
        try:
            await asyncio.to_thread(store.open, cut_at=cut_at)
        except OSError as error:
            if error.errno not in _UNUSABLE:
                raise
            raise CannotStart(
                f"the store {store.paths.root} cannot be written: {error.strerror}. Mount its disk writable and free "
                "some room, let this user write there, or choose another directory with --store"
            ) from error

    async def _listen(self) -> None:
        config, server = self.parts.config, self.parts.server
        host, port = config.bind_address, self.identity.address.port
        try:
            await server.listen(host, port)
        except OSError as error:
            raise CannotStart(why_not_listening(error, host, port, **_OPTIONS)) from error
        if not config.listen_port:
            return  # with a port of its own choice it has no VIP port
        vip_port = port - VIP_PORT_DISTANCE
        try:
            await server.listen(host, vip_port, without=NOT_ON_VIP_PORT)
        except OSError as error:
            problem = why_not_listening(error, host, vip_port, **_OPTIONS)
            raise CannotStart(f"a broker at {port} listens at {vip_port} too (its VIP port); {problem}") from error

    async def _listen_for_observers(self) -> None:
        config = self.parts.config
        host, port = config.metrics_host or config.bind_address, config.metrics_port
        try:
            self.metrics_port = await self.http.listen(host, port)
        except OSError as error:
            raise CannotStart(why_no_metrics(error, host, port, without="metricsExporterType=DISABLE")) from error

    async def stop(self) -> None:
        """End in order; may be called again."""
        await self._stack.aclose()

    async def break_off(self) -> None:
        """Serve nobody any more, as a killed process; what was in hand is not answered. `stop` must follow."""
        for feature in self.parts.features:
            feature.break_off()
        await self.parts.server.stop(drain_seconds=0.0)

    async def failed(self) -> NoReturn:
        """Wait for what cannot be repaired; raises it."""
        await self._services.failed()
