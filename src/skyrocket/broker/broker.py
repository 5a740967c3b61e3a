"""Builds every part of a broker once, starts and stops them in order; only the command line imports it.

    start   open the store ▸ load tables ▸ listen ▸ register ▸ services
    stop    unregister ▸ end services ▸ answer those who wait ▸ stop the server ▸ save tables ▸ close the store

Parts enter one exit stack and leave it in reverse, so a start that fails half-way leaves nothing behind.
"""

import asyncio
import errno
import ipaddress
import logging
import socket
from collections.abc import Callable, Coroutine
from contextlib import AsyncExitStack
from dataclasses import replace
from functools import partial
from pathlib import Path
from types import ModuleType, TracebackType
from typing import Any, Final, Self

from skyrocket.broker.identity import BrokerIdentity, own_ip
from skyrocket.broker.processors.clients import ClientProcessor
from skyrocket.broker.processors.locks import LockProcessor
from skyrocket.broker.processors.offsets import OffsetProcessor
from skyrocket.broker.processors.pull import PULL_CODES, PullProcessor
from skyrocket.broker.processors.query import QueryProcessor
from skyrocket.broker.processors.send import SEND_CODES, SendProcessor
from skyrocket.broker.services.dispatching import Dispatching
from skyrocket.broker.services.long_polling import LongPolling
from skyrocket.broker.services.persistence import Persistence
from skyrocket.broker.services.registration import Registration
from skyrocket.broker.state.connected_consumers import ConnectedConsumers
from skyrocket.broker.state.connected_producers import ConnectedProducers
from skyrocket.broker.state.consumer_offsets import ConsumerOffsetTable
from skyrocket.broker.state.queue_locks import QueueLocks
from skyrocket.broker.state.subscription_groups import SubscriptionGroupTable
from skyrocket.broker.state.system_topics import SystemTopics
from skyrocket.broker.state.topics import TopicTable
from skyrocket.clock import Clock, SystemClock
from skyrocket.config.sections import BrokerConfig, StoreConfig
from skyrocket.errors import ConfigError, SkyrocketError
from skyrocket.fastjson import Dialect
from skyrocket.format.config_files import consumer_offsets, subscription_groups, topics
from skyrocket.remoting.addresses import VIP_PORT_DISTANCE, Address, AddressList
from skyrocket.remoting.admission import RequestClass
from skyrocket.remoting.client import RemotingClient
from skyrocket.remoting.peer import Peer
from skyrocket.remoting.router import NOT_ON_VIP_PORT, Router
from skyrocket.remoting.server import RemotingServer, ServerSettings
from skyrocket.store.config_file import ConfigFile
from skyrocket.store.disk import Disk
from skyrocket.store.message_store import MessageStore

_logger = logging.getLogger(__name__)

_HOUSEKEEPING_SECONDS: Final = 10.0
_FIRST_REGISTRATION_SECONDS: Final = 3.0


class CannotStart(SkyrocketError):
    """The broker's address is not to be had."""


class Broker:
    """One broker on one store directory."""

    def __init__(self, config: BrokerConfig, store_config: StoreConfig, clock: Clock | None = None) -> None:
        self._config = config
        self._clock = clock or SystemClock()
        port = config.listen_port or _free_port(config.bind_address)
        self.identity = BrokerIdentity(
            Address(_checked_ip(config.broker_ip) or own_ip(), port),
            config.cluster_name,
            config.broker_name,
            config.broker_id,
            config.region_id,
            config.trace_on,
        )
        # The event loop dispatches itself, so that a turn's messages are readable when the turn is over.
        self.store = MessageStore(
            Path(config.store_root).expanduser(),
            replace(store_config, dispatch_thread=False),
            store_host=self.identity.store_host,
            clock=self._clock,
        )
        self._build_state()
        self._build_requests()
        self._client = RemotingClient()
        self._registration = Registration(
            self._client,
            AddressList.parse(config.name_servers).in_order(),
            self.identity,
            self.topics,
            ha_address=str(Address(self.identity.address.host, port + 1)),
            period_seconds=config.register_period_ms / 1000,
        )
        self._persistence = Persistence(
            (self.topics, self.groups), self.offsets, config.flush_offsets_interval_ms / 1000
        )
        self._services: list[asyncio.Task[None]] = []
        self._stack = AsyncExitStack()

    def _build_state(self) -> None:
        config, clock = self._config, self._clock
        system = SystemTopics(
            config.cluster_name,
            config.broker_name,
            auto_create=config.auto_create_topic,
            default_queues=config.default_topic_queues,
        )
        self.topics = TopicTable(
            self._file("topics.json", topics),
            clock,
            system.configs(),
            auto_create=config.auto_create_topic,
            save_at_once=False,
        )
        self.groups = SubscriptionGroupTable(
            self._file("subscriptionGroup.json", subscription_groups),
            clock,
            auto_create=config.auto_create_group,
            save_at_once=False,
        )
        self.offsets = ConsumerOffsetTable(self._file("consumerOffset.json", consumer_offsets), clock)
        self.consumers: ConnectedConsumers[Peer] = ConnectedConsumers(clock)
        self.producers: ConnectedProducers[Peer] = ConnectedProducers(clock)
        self.locks = QueueLocks(clock)

    def _file(self, name: str, layout: ModuleType) -> ConfigFile[Any]:
        path = Path(self.store.paths.config) / name
        return ConfigFile(Disk(), str(path), layout.decode, partial(layout.encode, dialect=Dialect.V5_4))

    def _build_requests(self) -> None:
        store, config, clock = self.store, self._config, self._clock
        self._dispatching = Dispatching(store)
        self._polling = LongPolling(clock, store.max_offset)
        store.add_listener(self._polling.arrived)
        send = SendProcessor(
            store, self.topics, self.groups, self.locks, self.identity, clock, self._dispatching.request
        )
        pull = PullProcessor(store, self.topics, self.groups, self.consumers, self.offsets, self._polling, clock)
        self._clients = ClientProcessor(self.consumers, self.producers, self.groups, self.topics)
        router = Router(clock=clock)
        router.register(
            SEND_CODES, send.send, RequestClass("send", config.send_capacity, lambda: store.page_cache_busy)
        )
        router.register(PULL_CODES, pull.pull, RequestClass("pull", config.pull_capacity))
        self._clients.register(router, RequestClass("clients", config.client_capacity))
        OffsetProcessor(store, self.topics, self.groups, self.offsets).register(
            router, RequestClass("offsets", config.offset_capacity)
        )
        LockProcessor(self.locks).register(router, RequestClass("locks", config.offset_capacity))
        QueryProcessor(store, store.config.default_query_results).register(
            router, RequestClass("query", config.query_capacity)
        )
        self._server = RemotingServer(router, ServerSettings(idle_seconds=config.idle_seconds), clock=clock)
        self._server.on_turn_end(send.store_kept)
        self._server.on_close(self._clients.closed)

    # ── lifecycle ────────────────────────────────────────────────────────────────────────────────────────────────────

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        await self.stop()

    async def start(self) -> Address:
        """Take up work; returns the address that clients use. Raises CannotStart, or what the store raises."""
        try:
            await self._start()
        except BaseException:
            await self.stop()
            raise
        return self.identity.address

    async def _start(self) -> None:
        stack = self._stack
        await asyncio.to_thread(self.store.open)
        stack.push_async_callback(asyncio.to_thread, self.store.close)
        for table in (self.topics, self.groups, self.offsets):
            table.load()
        stack.callback(self._persistence.save_all)
        stack.push_async_callback(self._server.stop)
        await self._listen()
        stack.callback(self._polling.wake_all)
        stack.push_async_callback(self._client.close)
        stack.push_async_callback(self._end_services)
        self._run_service(self._polling.run)
        self._run_service(self._persistence.run)
        self._run_service(self._housekeeping)
        if self._config.name_servers:
            first = asyncio.ensure_future(self._registration.register())
            await asyncio.wait((first,), timeout=_FIRST_REGISTRATION_SECONDS)
            self._run_service(self._registration.run)
            stack.push_async_callback(self._registration.unregister)

    async def _listen(self) -> None:
        host, port = self._config.bind_address, self.identity.address.port
        try:
            await self._server.listen(host, port)
            if self._config.listen_port:  # with a port of its own choice it has no VIP port
                await self._server.listen(host, port - VIP_PORT_DISTANCE, without=NOT_ON_VIP_PORT)
        except OSError as error:
            reason = "it is taken by another program" if error.errno == errno.EADDRINUSE else error.strerror
            taken = f"{port} or {port - VIP_PORT_DISTANCE}" if self._config.listen_port else str(port)
            raise CannotStart(
                f"cannot listen on {host}, port {taken}: {reason}. Stop it, or choose another port with --listen-port"
            ) from error

    async def stop(self) -> None:
        """End in order; may be called again."""
        await self._stack.aclose()

    def _run_service(self, work: Callable[[], Coroutine[Any, Any, None]]) -> None:
        task = asyncio.create_task(work(), name=work.__qualname__)
        task.add_done_callback(_report_death)
        self._services.append(task)

    async def _end_services(self) -> None:
        for task in self._services:
            task.cancel()
        await asyncio.gather(*self._services, return_exceptions=True)
        self._services.clear()

    async def _housekeeping(self) -> None:
        while True:
            await asyncio.sleep(_HOUSEKEEPING_SECONDS)
            self._clients.expire()
            self.locks.forget_lapsed()


def _report_death(task: "asyncio.Task[None]") -> None:
    if not task.cancelled() and (error := task.exception()) is not None:
        _logger.error("a service died service=%s", task.get_name(), exc_info=error)


def _checked_ip(text: str) -> str:
    try:
        return str(ipaddress.ip_address(text)) if text else ""
    except ValueError:
        raise ConfigError(
            f"brokerIP1={text!r} is no IP address: records hold the broker's address as numbers"
        ) from None


def _free_port(bind_address: str) -> int:
    """A port that is free now: records name the broker's port, so it must be known before the store is opened."""
    with socket.create_server((bind_address, 0)) as probe:
        return int(probe.getsockname()[1])
