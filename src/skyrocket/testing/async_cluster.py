"""A name server and brokers in the running event loop, with their stores in a temporary directory.

    async with AsyncLocalCluster() as mq:
        await mq.create_topic("Orders", queues=4)
        async with mq.producer() as producer:
            await producer.send(Message("Orders", b"paid", delay_level=3))
        await mq.advance(seconds=10)
        assert [message.body for message in mq.messages("Orders")] == [b"paid"]

`LocalCluster` is the same for code without an event loop.
"""

import asyncio
import itertools
import shutil
import tempfile
import time
from collections.abc import Callable, Mapping
from contextlib import AsyncExitStack
from dataclasses import replace
from datetime import timedelta
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final, Self, TypeVar

from skyrocket.broker.broker import Broker
from skyrocket.broker.replication.feature import ReplicationFeature
from skyrocket.config.sections import NameServerConfig
from skyrocket.errors import SkyrocketError
from skyrocket.format.config_files import KV_CONFIG, KvConfig
from skyrocket.model.message_queue import MessageQueue
from skyrocket.model.subscription_group import SubscriptionGroup
from skyrocket.model.topic import DLQ_PREFIX, RETRY_PREFIX
from skyrocket.model.topic_config import TopicConfig
from skyrocket.namesrv.name_server import NameServer
from skyrocket.store.config_file import ConfigFile
from skyrocket.store.disk import Disk
from skyrocket.store.message_store import MessageStore
from skyrocket.testing.broker_host import BrokerHost, configs
from skyrocket.testing.broker_sets import BrokerSets, controller_in, settings_of
from skyrocket.testing.movable_clock import MovableClock
from skyrocket.testing.time_travel import REACTION_SECONDS, TimeTravel

if TYPE_CHECKING:
    from skyrocket.client import Admin, LitePullConsumer, Producer, PushConsumer, SimpleConsumer
    from skyrocket.client.core.message import ReceivedMessage
    from skyrocket.client.core.settings import ClientSettings

_ROUTE_SECONDS: Final = 5.0
_FOLLOW_SECONDS: Final = 30.0
_PAGE: Final = 1000
COMMIT_SECONDS: Final = 0.05  # of consumers that the cluster makes: tests see at once what was consumed

T = TypeVar("T")


class AsyncLocalCluster:
    """One name server and some brokers; `settings` are RocketMQ's keys, for every broker."""

    def __init__(
        self,
        *,
        brokers: int = 1,
        replicas: int = 1,
        failover: bool = False,
        settings: Mapping[str, object] | None = None,
        reaction_seconds: float = REACTION_SECONDS,
    ) -> None:
        """`replicas` counts each master: with 2 it has one slave, which has a message before its sender hears of it.

        With `failover` a controller makes one of them master, and another one when that one is gone.
        """
        if brokers < 1 or replicas < 1:
            raise ValueError(f"a cluster has at least one broker, and it is one replica; not {brokers} and {replicas}")
        if failover and replicas == 1:
            raise ValueError("failover=True needs replicas that can take over: give replicas=3")
        self._broker, self._store = configs({**settings_of(replicas, failover=failover), **(settings or {})})
        self._has_failover = failover
        self._replicas = replicas
        self._names = [f"broker-{_letters(number)}" for number in range(brokers)]
        self.clock = MovableClock()
        self._sets = BrokerSets()
        self._travel = TimeTravel(self.clock, self._masters, reaction_seconds)
        self._name_server: NameServer | None = None
        self._stack = AsyncExitStack()
        self._moving = asyncio.Lock()
        self._numbers = itertools.count(1)
        self.name_server_address = ""  # what clients are given
        self.directory = Path()
        self.ready_seconds = 0.0  # how long the start took

    # ── life ─────────────────────────────────────────────────────────────────────────────────────────────────────────

    async def __aenter__(self) -> Self:
        await self.start()
        return self

    async def __aexit__(self, *_: object) -> None:
        await self.stop()

    async def start(self) -> None:
        """Returns when clients find every broker."""
        if self._name_server is not None:
            raise SkyrocketError("a local cluster is started only once: make a new one")
        began = time.perf_counter()
        try:
            await self._start()
        except BaseException:
            await self.stop()
            raise
        self.ready_seconds = time.perf_counter() - began

    async def _start(self) -> None:
        self.directory = Path(tempfile.mkdtemp(prefix="skyrocket-"))
        self._stack.callback(shutil.rmtree, self.directory)
        self._name_server = server = _name_server(self.directory)
        self._stack.push_async_callback(server.stop)
        self.name_server_address = str(await server.start())
        if self._has_failover:
            controller = controller_in(self.directory)
            self._stack.push_async_callback(controller.stop)
            address = str(await controller.start())
            self._broker = replace(self._broker, controller_mode=True, controller_addresses=address)
        for name in self._names:
            for number in range(self._replicas):
                await self._start_host(name, number)
        await self._until(lambda: set(server.table.brokers) >= set(self._names), "a broker did not register")
        for name in self._names:
            await self._followed(name)

    async def _start_host(self, name: str, number: int) -> None:
        directory = self.directory / (f"{name}-s{number}" if number else name)
        broker_id = 0 if self._has_failover else number
        host = BrokerHost(
            name, directory, self.name_server_address, self._broker, self._store, self.clock, broker_id=broker_id
        )
        self._sets.add(host)
        self._stack.push_async_callback(host.stop)
        await host.start()

    async def _followed(self, name: str) -> None:
        """Wait until a master has registered, and its slaves copy from it."""
        known = self._serving().table.brokers
        await self._until(lambda: 0 in known[name].addresses, f"{name} has no master that registered", _FOLLOW_SECONDS)
        await self._until(lambda: self._sets.is_followed(name), f"a slave of {name} did not follow", _FOLLOW_SECONDS)

    async def stop(self) -> None:
        """Stop all and remove the directory; may be called again."""
        await self._stack.aclose()

    # ── what is there ────────────────────────────────────────────────────────────────────────────────────────────────

    @property
    def broker_names(self) -> list[str]:
        return list(self._names)

    @property
    def broker_addresses(self) -> dict[str, str]:
        """By name, also of brokers that do not run now; of a set that of its master."""
        return {name: self._sets.master(name).address for name in self._names}

    @property
    def now_ms(self) -> int:
        """What time it is for messages."""
        return self.clock.now_ms()

    @property
    def client_settings(self) -> "ClientSettings":
        """For clients of `skyrocket.client`: quick to notice what changes, as tests want it."""
        from skyrocket.client.core.settings import ClientSettings

        return ClientSettings(name_servers=self.name_server_address, client_ip="127.0.0.1", route_refresh=0.5)

    def producer(self, group: str = "test-producers", **options: Any) -> "Producer":
        """A producer of this cluster, not started; `options` as Producer takes them."""
        from skyrocket.client import Producer

        return Producer(group, client=self.client_settings, **options)

    def push_consumer(self, group: str, **options: Any) -> "PushConsumer":
        """A push consumer of this cluster, not started; `options` as PushConsumer takes them; it commits quickly."""
        from skyrocket.client import PushConsumer, PushConsumerSettings

        options.setdefault("settings", PushConsumerSettings(persist_interval=COMMIT_SECONDS))
        return PushConsumer(group, client=self.client_settings, **options)

    def lite_pull_consumer(self, group: str, **options: Any) -> "LitePullConsumer":
        """A lite pull consumer of this cluster, not started; `options` as LitePullConsumer takes them."""
        from skyrocket.client import LitePullConsumer

        return LitePullConsumer(group, client=self.client_settings, **options)

    def simple_consumer(self, group: str, **options: Any) -> "SimpleConsumer":
        """A simple consumer of this cluster, not started; `options` as SimpleConsumer takes them."""
        from skyrocket.client import SimpleConsumer

        return SimpleConsumer(group, client=self.client_settings, **options)

    def admin(self) -> "Admin":
        """Administration of this cluster, not started."""
        from skyrocket.client import Admin

        return Admin(client=self.client_settings)

    # ── topics and groups ────────────────────────────────────────────────────────────────────────────────────────────

    async def create_topic(
        self, topic: str, *, queues: int = 4, ordered: bool = False, attributes: Mapping[str, str] | None = None
    ) -> None:
        """On every broker that runs; returns when clients find it. Raises what the broker would answer."""
        signed = {f"+{name}": value for name, value in (attributes or {}).items()}
        for broker in self._running():
            broker.tables.topics.update(TopicConfig(topic, queues, queues, ordered=ordered, attributes=signed))
        await self._routed(topic)
        await self._told_slaves()

    async def create_group(self, group: str, *, retries: int = 16, orderly: bool = False) -> None:
        """On every broker that runs, with its retry topic, so that consumers find both at once.

        `retries`: how often a message comes back before it is a dead letter. As with RocketMQ, push consumers have a
        limit of their own (`max_reconsume_times`), which counts for them.
        """
        for broker in self._running():
            broker.tables.groups.update(SubscriptionGroup(group, retry_max_times=retries, consumes_orderly=orderly))
            broker.tables.topics.ensure(RETRY_PREFIX + group, 1)
        await self._routed(RETRY_PREFIX + group)
        await self._told_slaves()

    async def unique_topic(self, stem: str = "topic", *, queues: int = 4) -> str:
        """Create a topic that no other test of this cluster uses; its name."""
        name = f"{stem}-{next(self._numbers)}"
        await self.create_topic(name, queues=queues)
        return name

    async def unique_group(self, stem: str = "group", *, retries: int = 16) -> str:
        """Create a consumer group that no other test of this cluster uses; its name."""
        name = f"{stem}-{next(self._numbers)}"
        await self.create_group(name, retries=retries)
        return name

    # ── what was stored ──────────────────────────────────────────────────────────────────────────────────────────────

    def messages(self, topic: str) -> "list[ReceivedMessage]":
        """All messages of a topic, in the order in which they were stored; `%RETRY%group` is a topic as well."""
        found: list[ReceivedMessage] = []
        for broker in self._running():
            for queue in broker.store.queues:
                if queue.topic == topic:
                    found += _messages_of(
                        broker.store, MessageQueue(topic, broker.identity.broker_name, queue.queue_id)
                    )
        return sorted(found, key=lambda message: (message.store_timestamp, message.physical_offset))

    def dead_letters(self, group: str) -> "list[ReceivedMessage]":
        """What a group could not consume at all."""
        return self.messages(DLQ_PREFIX + group)

    def offsets(self, group: str) -> dict[MessageQueue, int]:
        """How far a group has committed, of every queue that it ever committed."""
        return {
            MessageQueue(topic, broker.identity.broker_name, queue_id): offset
            for broker in self._running()
            for topic in broker.tables.offsets.topics_of(group)
            for queue_id, offset in broker.tables.offsets.committed_queues(group, topic).items()
        }

    # ── brokers that go and come ─────────────────────────────────────────────────────────────────────────────────────

    async def stop_broker(self, name: str | None = None) -> None:
        """Shut a broker down in order; without a name the first one."""
        await self._host(name).stop()

    async def kill_broker(self, name: str | None = None) -> None:
        """As `kill -9`: connections break, and what was only in memory is lost."""
        await self._host(name).kill()

    async def kill_master(self, name: str | None = None) -> None:
        """The same of a broker that has a slave: consumers go on there as soon as they see that the master is gone.

        With fail-over it returns when another one is master, and clients find it.
        """
        host = self._host(name)
        if len(self._sets.running(host.name)) < 2:
            raise ValueError(f"broker {host.name} has no slave: make the cluster with replicas=2")
        await host.kill()
        members = self._serving().table.brokers
        gone = host.address
        await self._until(lambda: members[host.name].addresses.get(0) != gone, "the master is still known")
        if self._has_failover:
            await self.await_master(host.name)

    async def await_master(self, name: str | None = None) -> str:
        """With fail-over: wait until a set has a master whose slaves are in sync with it; its address."""
        chosen = self._host(name).name
        await self._until(lambda: self._sets.has_master(chosen), f"{chosen} has no master", _FOLLOW_SECONDS)
        await self._followed(chosen)
        return self._sets.master(chosen).address

    async def start_broker(self, name: str | None = None) -> None:
        """Start a broker again, on the same port and store; of a set with fail-over all that are down."""
        host = self._host(name)
        down = (
            [host] if not self._has_failover else [each for each in self._sets.hosts[host.name] if not each.is_running]
        )
        for each in down or [host]:
            await each.start()
        known = self._serving().table.brokers
        await self._until(lambda: host.name in known and 0 in known[host.name].addresses, "the broker did not register")
        await self._followed(host.name)

    async def restart_broker(self, name: str | None = None) -> None:
        """Stop in order and start again."""
        await self.stop_broker(name)
        await self.start_broker(name)

    # ── time ─────────────────────────────────────────────────────────────────────────────────────────────────────────

    async def advance(self, *, days: float = 0, hours: float = 0, minutes: float = 0, seconds: float = 0) -> None:
        """Let time pass for messages: what becomes due happens, in order, before this returns.

        Connected consumers are given the time to take what was delivered, see `time_travel`. Connections, heartbeats
        and locks go on in real time.
        """
        distance = timedelta(days=days, hours=hours, minutes=minutes, seconds=seconds)
        if distance < timedelta(0):
            raise ValueError("time goes on, not back: give a positive distance")
        async with self._moving:
            await self._travel.advance(round(distance / timedelta(milliseconds=1)))

    # ── parts ────────────────────────────────────────────────────────────────────────────────────────────────────────

    def _serving(self) -> NameServer:
        if self._name_server is None:
            raise SkyrocketError("the cluster does not run: enter it with `with`, or call start()")
        return self._name_server

    def _host(self, name: str | None) -> BrokerHost:
        self._serving()
        chosen = self._names[0] if name is None else name
        if chosen not in self._sets.hosts:
            raise ValueError(f"there is no broker {chosen!r}; this cluster has {', '.join(self._names)}")
        return self._sets.master(chosen)

    def _masters(self) -> list[Broker]:
        self._serving()
        return self._sets.masters()

    def _running(self) -> list[Broker]:
        """One broker of each name: the master, or the slave that stands in for it."""
        self._serving()
        return self._sets.speakers()

    async def _told_slaves(self) -> None:
        """Slaves take over their master's tables from time to time; tests see what they changed at once."""
        for broker in list(self._sets.followers()):
            side = broker.feature(ReplicationFeature).slave
            assert side is not None
            await side.sync.sync()

    async def _routed(self, topic: str) -> None:
        names = {broker.identity.broker_name for broker in self._running()}
        table = self._serving().table
        await self._until(
            lambda: names <= table.topics.get(topic, {}).keys(), f"the name server did not learn of topic {topic}"
        )

    async def _until(self, condition: Callable[[], bool], failure: str, seconds: float = _ROUTE_SECONDS) -> None:
        deadline = time.monotonic() + seconds
        while not condition():
            if time.monotonic() > deadline:
                raise SkyrocketError(f"{failure} within {seconds:g} s")
            await asyncio.sleep(0.001)


def _letters(number: int) -> str:
    """a, b, … z, aa, ab, …"""
    text = ""
    while number >= 0:
        text = chr(ord("a") + number % 26) + text
        number = number // 26 - 1
    return text


def _name_server(directory: Path) -> NameServer:
    config = NameServerConfig(
        listen_port=0,
        bind_address="127.0.0.1",
        kv_config_path=str(directory / "kvConfig.json"),
        config_store_path=str(directory / "namesrv.properties"),
    )
    kv_file = ConfigFile(
        Disk(),
        config.kv_config_path,
        lambda data: KV_CONFIG.decode(data).namespaces,
        lambda namespaces: KV_CONFIG.encode(KvConfig(namespaces)),
    )
    return NameServer(config, kv_file, ConfigFile(Disk(), config.config_store_path, bytes, bytes))


def _messages_of(store: MessageStore, queue: MessageQueue) -> "list[ReceivedMessage]":
    from skyrocket.client.core.message import decode_messages

    found: list[ReceivedMessage] = []
    offset, end = store.min_offset(queue.topic, queue.queue_id), store.max_offset(queue.topic, queue.queue_id)
    while offset < end:
        page = store.get(queue.topic, queue.queue_id, offset, _PAGE)
        found += decode_messages(page.join(), queue.broker_name, queue.queue_id)
        if page.next_offset <= offset:
            break
        offset = page.next_offset
    return found
