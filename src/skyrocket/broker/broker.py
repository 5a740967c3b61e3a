"""Builds every part of a broker once, starts and stops them in order; only the command line imports it.

    start   open the store ▸ load tables ▸ listen ▸ register ▸ services
    stop    unregister ▸ end services ▸ answer those who wait ▸ stop the server ▸ save tables ▸ close the store

Parts enter one exit stack and leave it in reverse, so a start that fails half-way leaves nothing behind.
"""

import asyncio
import contextlib
import errno
import logging
import random
import socket
from collections.abc import Callable, Coroutine
from contextlib import AsyncExitStack
from dataclasses import replace
from functools import partial
from pathlib import Path
from types import ModuleType, TracebackType
from typing import Any, Final, NoReturn, Self

from skyrocket.broker.access.control import AccessControl
from skyrocket.broker.admin.feature import Administration
from skyrocket.broker.admin.operators import OperatorProcessor
from skyrocket.broker.clients.heartbeats import ClientProcessor
from skyrocket.broker.clients.locks import LockProcessor
from skyrocket.broker.core.advertised_address import advertised_host, resolved
from skyrocket.broker.core.dispatching import Dispatching
from skyrocket.broker.core.request_classes import RequestClasses
from skyrocket.broker.delay.delay_levels import DelayLevels
from skyrocket.broker.delay.delay_offsets import DelayOffsetTable
from skyrocket.broker.flow.fast_failure import FastFailure
from skyrocket.broker.offsets.consumer_progress import OffsetProcessor
from skyrocket.broker.pop.feature import Popping
from skyrocket.broker.pop.revive import timer_is_behind
from skyrocket.broker.pop.routes import QueueRoutes
from skyrocket.broker.pull.long_polling import LongPolling
from skyrocket.broker.pull.pull import PullProcessor, no_lite_pulls
from skyrocket.broker.query.query import QueryProcessor
from skyrocket.broker.registration.registration import Registration
from skyrocket.broker.rules.put_rules import PutRules, delays_of_levels
from skyrocket.broker.rules.subscriptions import Subscriptions
from skyrocket.broker.send.duplicate_window import DuplicateWindow
from skyrocket.broker.send.replies import ReplyProcessor
from skyrocket.broker.send.send import SEND_CODES, SendProcessor
from skyrocket.broker.send.send_back import SendBackProcessor
from skyrocket.broker.state.connected_consumers import ConnectedConsumers
from skyrocket.broker.state.connected_producers import ConnectedProducers
from skyrocket.broker.state.consumer_offsets import ConsumerOffsetTable
from skyrocket.broker.state.identity import BrokerIdentity
from skyrocket.broker.state.live_settings import LiveSettings
from skyrocket.broker.state.persistence import Persistence
from skyrocket.broker.state.queue_locks import QueueLocks
from skyrocket.broker.state.subscription_groups import SubscriptionGroupTable
from skyrocket.broker.state.system_topics import SystemTopics
from skyrocket.broker.state.topic_file import TopicFile
from skyrocket.broker.state.topics import TopicTable
from skyrocket.broker.statistics.feature import Inquiries
from skyrocket.broker.statistics.metrics import BrokerMetrics
from skyrocket.broker.timer.feature import Timers
from skyrocket.broker.transactions.feature import Transactions
from skyrocket.clock import Clock, ServiceClock, SystemClock
from skyrocket.config.sections import BrokerConfig, MetricsExporter, StoreConfig, TlsConfig
from skyrocket.errors import SkyrocketError
from skyrocket.fastjson import Dialect
from skyrocket.format.config_files import (
    consumer_offsets,
    delay_offsets,
    order_info,
    request_mode,
    subscription_groups,
)
from skyrocket.model.topic_config import PERM_WRITE
from skyrocket.observability.health import alive, readiness
from skyrocket.observability.http_endpoint import HttpEndpoint
from skyrocket.protocol.codes import RequestCode
from skyrocket.protocol.send_shapes import SendShapes
from skyrocket.remoting.addresses import VIP_PORT_DISTANCE, Address, AddressList
from skyrocket.remoting.client import RemotingClient
from skyrocket.remoting.peer import Peer
from skyrocket.remoting.router import NOT_ON_VIP_PORT, Router
from skyrocket.remoting.server import RemotingServer, ServerSettings
from skyrocket.remoting.services import Services
from skyrocket.remoting.tls import ServerTls, client_tls, server_settings
from skyrocket.remoting.workers import Workers
from skyrocket.store.config_file import ConfigFile
from skyrocket.store.disk import Disk
from skyrocket.store.message_store import MessageStore

_logger = logging.getLogger(__name__)

_CHOSEN_PORTS: Final = range(20_000, 32_000)
_HOUSEKEEPING_SECONDS: Final = 10.0
_FIRST_REGISTRATION_SECONDS: Final = 3.0


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
    ) -> None:
        """Messages live by `clock`; connections, clients and their locks by `peer_clock`, if it is another one."""
        self._config = config
        self.metrics_port = 0  # of /metrics, /health and /ready; 0 while they are not served
        self._tls = tls or TlsConfig()
        self._clock = clock or SystemClock()
        self._disk = disk
        self._peer_clock = peer_clock or self._clock
        port = config.listen_port or _free_port(config.bind_address)
        host = advertised_host(config.broker_ip, config.bind_address)
        self.identity = BrokerIdentity(
            Address(host, port),
            config.cluster_name,
            config.broker_name,
            config.broker_id,
            config.region_id,
            config.trace_on,
            resolved(host),
        )
        # The event loop dispatches itself, so that a turn's messages are readable when the turn is over.
        self.store = MessageStore(
            Path(config.store_root).expanduser(),
            replace(store_config, dispatch_thread=False),
            store_host=self.identity.store_host,
            clock=self._clock,
            disk=disk,
            is_batch_topic=self._has_batch_queues,
        )
        self._build_state()
        self.access = AccessControl(config, self.store, self._clock)
        self._persistence = Persistence(
            (self.topics, self.groups), self.offsets, config.flush_offsets_interval_ms / 1000, self._clock
        )
        self.settings = self._live_settings(store_config)
        self._client = RemotingClient(tls=client_tls(self._tls), signer=self.access.signer)
        self._build_requests()
        self._registration = Registration(
            self._client,
            AddressList.parse(config.name_servers).in_order(),
            self.identity,
            self.topics,
            ha_address=str(Address(self.identity.address.host, port + 1)),
            period_seconds=config.register_period_ms / 1000,
        )
        self._administration.let_follow(self._router, self.identity, self.classes, self._registration, self._polling)
        self._observation = self._build_observation()
        self._services = Services(self._peer_clock)
        self._stack = AsyncExitStack()

    def _build_state(self) -> None:
        config, clock = self._config, self._clock
        self._delays_ms = delays_of_levels(self.store.config.message_delay_levels)
        system = SystemTopics(
            config.cluster_name,
            config.broker_name,
            auto_create=config.auto_create_topic,
            default_queues=config.default_topic_queues,
            delay_levels=len(self._delays_ms),
            timer_wheel=self.store.config.timer_wheel,
            trace_topic=config.trace_topic if config.trace_topic_enable else None,
        )
        topic_file = TopicFile(Disk(), str(Path(self.store.paths.config) / "topics.json"))
        self.topics = TopicTable(
            topic_file,
            clock,
            system.configs(),
            auto_create=config.auto_create_topic,
            guard_system_topics=config.guard_system_topics,
            allow_mixed_type=config.allow_mixed_type,
            save_at_once=False,
        )
        self.topics.on_change(lambda configs: topic_file.note(self.topics.data_version, configs))
        self.groups = SubscriptionGroupTable(
            self._file("subscriptionGroup.json", subscription_groups),
            clock,
            auto_create=config.auto_create_group,
            save_at_once=False,
        )
        self.offsets = ConsumerOffsetTable(
            self._file("consumerOffset.json", consumer_offsets), clock, server_side_reset=config.server_side_reset
        )
        self.delay_offsets = DelayOffsetTable(self._file("delayOffset.json", delay_offsets), clock)
        self.consumers: ConnectedConsumers[Peer] = ConnectedConsumers(self._peer_clock)
        self.producers: ConnectedProducers[Peer] = ConnectedProducers(self._peer_clock)
        self.locks = QueueLocks(self._peer_clock)

    def _file(self, name: str, layout: ModuleType) -> ConfigFile[Any]:
        path = Path(self.store.paths.config) / name
        return ConfigFile(Disk(), str(path), layout.decode, partial(layout.encode, dialect=Dialect.V5_4))

    def _live_settings(self, store_config: StoreConfig) -> LiveSettings:
        """What was found out stands in place of what was left open."""
        address, root = self.identity.address, self.store.paths.root
        known = replace(self._config, listen_port=address.port, broker_ip=address.host, store_root=root)
        path = Path(self._config.config_path or f"{self.store.paths.config}/broker.properties").expanduser().resolve()
        return LiveSettings(known, store_config, ConfigFile(Disk(), str(path), bytes, bytes), self._clock)

    def _build_requests(self) -> None:
        store, config, clock = self.store, self._config, self._clock
        self._dispatching = Dispatching(store)
        self._polling = LongPolling(clock, store.max_offset)
        store.add_listener(self._polling.arrived)
        rules = PutRules(self._delays_ms, self.identity.address.host)
        rules.checks_types = config.check_message_types
        dispatch = self._dispatching.request
        self.duplicates = DuplicateWindow(config.duplicate_window)
        send = SendProcessor(
            store, self.topics, self.groups, self.locks, self.identity, clock, dispatch, rules, self.duplicates
        )
        subscriptions = Subscriptions(by_property=config.property_filter, of_retries=config.filter_retries)
        self.inquiries = Inquiries(
            store,
            self.topics,
            self.groups,
            self.offsets,
            self.delay_offsets,
            self.consumers,
            self.producers,
            self._polling,
            lambda: self._router.routes(),
            self.identity,
            config,
            clock,
            subscriptions,
        )
        send_back = SendBackProcessor(
            store,
            self.topics,
            self.groups,
            rules,
            self.identity.address.host,
            dispatch,
            may_write=lambda: self.settings.broker.broker_permission & PERM_WRITE != 0,
            on_sent_back=self.inquiries.counters.sent_back,
        )
        replies = ReplyProcessor(
            store, self.topics, self.producers, self.identity, clock, dispatch, stores_replies=config.store_replies
        )
        self.delay_levels = DelayLevels(
            store,
            self.delay_offsets,
            clock,
            self._delays_ms,
            dispatch,
            save_seconds=config.flush_delay_offsets_interval_ms / 1000,
        )
        self.timers = Timers(store, self.topics, self.identity, config, clock, dispatch, rules, self._disk)
        self.inquiries.runtime_info.add_source(self.timers.rows)
        self.transactions = Transactions(
            store, self.topics, self.offsets, self.producers, self.identity, config, clock, dispatch, rules
        )
        pull = PullProcessor(
            store,
            self.topics,
            self.groups,
            self.consumers,
            self.offsets,
            self._polling,
            clock,
            subscriptions,
            slave_read=config.slave_read,
            count=self.inquiries.counters.pulled,
        )
        self.popping = Popping(
            store,
            self.topics,
            self.groups,
            self.offsets,
            self.consumers,
            subscriptions,
            rules,
            self.identity,
            clock,
            self._peer_clock,
            lambda: self.settings.broker,
            dispatch,
            self._file("consumerOrderInfo.json", order_info),
            self._file("messageRequestMode.json", request_mode),
            has_timer=lambda: store.config.timer_wheel,
            is_timer_behind=partial(timer_is_behind, self.timers.service, clock, store.config.timer_precision_ms),
            count=self.inquiries.counters.pulled,
        )
        store.add_listener(self.popping.arrived)
        self._persistence.also_save(self.popping.modes)
        self._persistence.also_save(self.popping.orders, with_offsets=True)
        self._persistence.before_offsets = self.popping.revive_log.force_to_disk
        self._clients = ClientProcessor(self.consumers, self.producers, self.groups, self.topics)
        self.classes = classes = RequestClasses(config)
        self._workers = Workers(config.query_threads, self._peer_clock)
        self._router = router = Router(self._peer_clock, class_of=classes.of, workers=self._workers)
        router.check_with(*self.access.checks)
        router.shapes = SendShapes()
        router.register(SEND_CODES, send.send)
        router.add(*send_back.handlers(), *replies.handlers())
        router.add(*self.timers.handlers())
        self.timers.follow(self.settings)
        router.add(*self.transactions.handlers())
        self.transactions.follow(self.settings)
        router.add(*OperatorProcessor(self.transactions, self.timers, is_master=config.broker_id == 0).handlers())
        router.register(RequestCode.PULL_MESSAGE, pull.pull)
        lite_pull = pull.pull if config.lite_pulls else no_lite_pulls(self.identity.address.host)
        router.register(RequestCode.LITE_PULL_MESSAGE, lite_pull)
        name_servers = AddressList.parse(config.name_servers).in_order()
        routes = QueueRoutes(self._client, name_servers, self.topics, config.broker_name, self._peer_clock)
        router.add(*self.popping.handlers(routes))
        self.popping.follow(self.settings)
        router.add(*self._clients.handlers())
        router.add(*OffsetProcessor(store, self.topics, self.groups, self.offsets).handlers())
        router.add(*LockProcessor(self.locks).handlers())
        router.add(*QueryProcessor(store, store.config.default_query_results).handlers())
        self._administration = Administration(
            self.settings,
            store,
            self.topics,
            self.groups,
            self.offsets,
            self.delay_offsets,
            self._persistence,
            clock,
        )
        router.add(*self._administration.handlers())
        router.add(*self.access.handlers(str(self.identity.address)))
        router.add(*self.inquiries.handlers())
        self.inquiries.runtime_info.add_source(
            lambda: {"queryThreadPoolQueueHeadWaitTimeMills": str(self._workers.head_wait_ms)}
        )
        self._server = RemotingServer(
            router,
            ServerSettings(idle_seconds=config.idle_seconds),
            ServerTls(server_settings(self._tls)),
            clock=self._peer_clock,
        )
        self._fast_failure = FastFailure(store, classes, self._workers, enabled=config.fast_failure)
        self._server.on_turn_end(send.store_kept)
        self._server.on_turn_end(self._fast_failure.turn_ended)
        self._server.on_close(self._clients.closed)

    def _build_observation(self) -> HttpEndpoint:
        metrics = BrokerMetrics(
            self.identity,
            self.store,
            self.topics,
            self.groups,
            self.offsets,
            self.consumers,
            self.producers,
            self.inquiries.counters,
            self.classes,
            self._server,
            lambda: self.settings.broker.broker_permission,
            self._clock,
        )
        metrics.others += [self.timers.metrics, self.transactions.metrics]
        metrics.others.append(self.popping.metrics)
        metrics.others.append(self.duplicates.metrics)
        checks = {"store": self._store_trouble, "registration": self._registration_trouble}
        return HttpEndpoint({"/metrics": metrics.page, "/health": alive, "/ready": lambda: readiness(checks)})

    def _store_trouble(self) -> str | None:
        if self.store.disk_full:
            return f"the disk of {self.store.paths.root} is full: no messages are taken"
        return None if self.store.gate.is_open else self.store.gate.reason

    def _registration_trouble(self) -> str | None:
        if not self._config.name_servers or self._registration.heard_by:
            return None
        return f"registered at none of the name servers {self._config.name_servers}"

    # ── lifecycle ────────────────────────────────────────────────────────────────────────────────────────────────────

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        await self.stop()

    def _has_batch_queues(self, topic: str) -> bool:
        config = self.topics.find(topic)
        return config is not None and config.has_batch_queues

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
        if self._config.metrics_exporter is MetricsExporter.PROM:
            await self._listen_for_observers()
            stack.push_async_callback(self._observation.stop)
        self.topics.load()  # before the store: it must know whose queues are queues of batches
        await asyncio.to_thread(self.store.open)
        stack.push_async_callback(asyncio.to_thread, self.store.close)
        self.inquiries.begin()
        self.access.load()
        for table in (self.groups, self.offsets):
            table.load()
        self.delay_levels.load()  # after the store has recovered: offsets are compared with its queues
        self.popping.load()
        stack.callback(self._persistence.save_all)
        stack.push_async_callback(asyncio.to_thread, self.delay_levels.save)
        await asyncio.to_thread(self.timers.load)
        stack.push_async_callback(asyncio.to_thread, self.timers.close)
        self.transactions.log.load()
        await asyncio.to_thread(self.duplicates.read_again, self.store.commit_log, self.identity.store_host)
        stack.push_async_callback(self.transactions.check.close)
        stack.push_async_callback(self._workers.close)
        stack.push_async_callback(self._server.stop)
        await self._listen()
        stack.callback(self._polling.wake_all)
        stack.callback(self.popping.stop_waiting)
        stack.push_async_callback(self._client.close)
        stack.push_async_callback(self._services.end)
        self._run_service(self._polling.run)
        self._run_service(self.popping.pops.run)
        self._run_service(self.popping.notifications.run)
        self._run_service(self.popping.run_forgetting)
        if self._config.broker_id == 0:  # a slave revives nothing: its master does
            self._run_service(self.popping.revive.run)
        self._run_service(self.inquiries.sampling.run)
        if self.access.service is not None:
            self._run_service(self.access.service)
        self._run_service(self._persistence.run)
        self._run_service(self.delay_levels.run)
        self._run_service(self.delay_levels.run_saves)
        if self.timers.service is not None and self._config.broker_id == 0:  # a slave delivers nothing
            self._run_service(self.timers.service.run)
            self._run_service(self.timers.service.run_saves)
        if self._config.broker_id == 0:  # a slave asks nobody: its master does
            self._run_service(self.transactions.check.run)
        self._fast_failure.watch(self._server.turn)
        self._run_service(self._fast_failure.run)
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

    async def _listen_for_observers(self) -> None:
        host, port = self._config.metrics_host or self._config.bind_address, self._config.metrics_port
        try:
            self.metrics_port = await self._observation.listen(host, port)
        except OSError as error:
            reason = "it is taken by another program" if error.errno == errno.EADDRINUSE else error.strerror
            raise CannotStart(
                f"cannot serve metrics on {host}, port {port}: {reason}. Choose another with metricsPromExporterPort, "
                f"or none with metricsExporterType=DISABLE"
            ) from error

    async def stop(self) -> None:
        """End in order; may be called again."""
        await self._stack.aclose()

    async def break_off(self) -> None:
        """Serve nobody any more, as a killed process; what was in hand is not answered. `stop` must follow."""
        await self._server.stop(drain_seconds=0.0)

    def _run_service(self, work: Callable[[], Coroutine[Any, Any, None]]) -> None:
        self._services.start(work)

    async def failed(self) -> NoReturn:
        """Wait for what cannot be repaired; raises it."""
        await self._services.failed()

    async def _housekeeping(self) -> None:
        while True:
            await asyncio.sleep(_HOUSEKEEPING_SECONDS)
            self._clients.expire()
            self.locks.forget_lapsed()


def _free_port(bind_address: str) -> int:
    """A port that is free now: records name the broker's port, so it must be known before the store is opened.

    Below those that the kernel gives to outgoing connections, or one of them might take it in the meantime.
    """
    for port in random.sample(_CHOSEN_PORTS, 100):
        with contextlib.suppress(OSError), socket.create_server((bind_address, port)):
            return port
    with socket.create_server((bind_address, 0)) as probe:
        return int(probe.getsockname()[1])
