"""The parts that all features share, built once; features take what they need from here, their inside takes no more.

Nothing listens and no file is opened yet: a test builds the parts of a broker without any network.
"""

import contextlib
import os
import random
import socket
from collections import deque
from dataclasses import dataclass, field, replace
from functools import partial
from pathlib import Path
from typing import Final, TypeVar

from skyrocket.broker.core.advertised_address import advertised_host, resolved
from skyrocket.broker.core.dispatching import Dispatching
from skyrocket.broker.core.feature import Feature
from skyrocket.broker.core.request_classes import RequestClasses
from skyrocket.broker.core.slices import Slices
from skyrocket.broker.rules.put_rules import PutRules, delays_of_levels
from skyrocket.broker.rules.special_services import SpecialServices
from skyrocket.broker.rules.subscriptions import Subscriptions
from skyrocket.broker.state.broker_set import BrokerSet
from skyrocket.broker.state.connected_consumers import ConnectedConsumers
from skyrocket.broker.state.connected_producers import ConnectedProducers
from skyrocket.broker.state.consumer_offsets import ConsumerOffsetTable
from skyrocket.broker.state.counters import Counters
from skyrocket.broker.state.identity import BrokerIdentity
from skyrocket.broker.state.live_settings import LiveSettings
from skyrocket.broker.state.offset_files import OffsetFiles
from skyrocket.broker.state.persistence import Persistence
from skyrocket.broker.state.queue_locks import QueueLocks
from skyrocket.broker.state.rate_bucket import RateBucket
from skyrocket.broker.state.subscription_groups import SubscriptionGroupTable
from skyrocket.broker.state.switching import Switching
from skyrocket.broker.state.system_topics import SystemTopics
from skyrocket.broker.state.tables import Tables
from skyrocket.broker.state.topic_file import TopicFile
from skyrocket.broker.state.topics import QueueLimit, TopicTable
from skyrocket.clock import Clock, ServiceClock, SteadyClock, wall_clock
from skyrocket.config.home import in_home
from skyrocket.config.sections import BrokerConfig, BrokerRole, StoreConfig, TlsConfig
from skyrocket.errors import ConfigError
from skyrocket.fastjson import Dialect
from skyrocket.format.config_files import SUBSCRIPTION_GROUPS, JsonFile
from skyrocket.remoting.addresses import Address, AddressList
from skyrocket.remoting.client import RemotingClient
from skyrocket.remoting.guard import descriptor_limit
from skyrocket.remoting.router import Router
from skyrocket.remoting.server import RemotingServer, settings_of
from skyrocket.remoting.tls import ServerTls, client_tls
from skyrocket.remoting.workers import Workers
from skyrocket.store.config_file import ConfigFile
from skyrocket.store.disk import Disk
from skyrocket.store.message_store import MessageStore

_CHOSEN_PORTS: Final = range(20_000, 32_000)
_PORT_STEP: Final = 64
_chosen_lately: Final[deque[int]] = deque(maxlen=32)

T = TypeVar("T")


@dataclass(frozen=True, slots=True)
class Parts:
    """Messages live by `clock`; connections, clients and their locks by `peer_clock`, if it is another one."""

    config: BrokerConfig  # as it was at the start; `settings` knows it as it is now
    settings: LiveSettings
    identity: BrokerIdentity
    broker_set: BrokerSet
    clock: ServiceClock
    peer_clock: Clock
    disk: Disk
    store: MessageStore
    dispatching: Dispatching
    tables: Tables
    rules: PutRules
    special: SpecialServices
    subscriptions: Subscriptions
    counters: Counters
    persistence: Persistence
    classes: RequestClasses
    workers: Workers
    slices: Slices
    router: Router
    server: RemotingServer
    client: RemotingClient  # what the broker itself asks of others
    tls: TlsConfig
    switching: Switching | None = None  # of a broker whose role a controller decides
    features: list[Feature] = field(default_factory=list)  # all of them, for those that put together what each says

    @property
    def is_master(self) -> bool:
        return self.config.broker_id == 0

    @property
    def may_act(self) -> bool:
        """Whether this is a slave that does its master's work while that is gone."""
        return not self.is_master and self.config.acting_master and self.switching is None

    @property
    def name_servers(self) -> list[str]:
        return AddressList.parse(self.config.name_servers).in_order()

    def config_file(self, name: str, layout: JsonFile[T]) -> ConfigFile[T]:
        """A JSON file of the store's `config` folder."""
        return _json_file(self.disk, self.store, name, layout)


def build_parts(
    config: BrokerConfig,
    store_config: StoreConfig,
    clock: ServiceClock | None = None,
    tls: TlsConfig | None = None,
    *,
    peer_clock: Clock | None = None,
    disk: Disk | None = None,
    switching: Switching | None = None,
) -> Parts:
    """The parts of one broker; raises ConfigError."""
    check_role(config, store_config)
    clock, disk, tls = clock or SteadyClock(), disk or Disk(), tls or TlsConfig()
    peer_clock = peer_clock or wall_clock(clock)  # clients say when they asked by the wall clock
    identity = _identity(config)
    store, tables = _store_and_tables(config, store_config, identity, clock, peer_clock, disk)
    classes = RequestClasses(config)
    workers = Workers(config.query_threads, peer_clock)
    router = Router(peer_clock, class_of=classes.of, workers=workers)
    rules = PutRules(delays_of_levels(store.config.message_delay_levels))
    rules.checks_types = config.check_message_types
    return Parts(
        config=config,
        settings=_live_settings(config, store_config, identity, store, clock),
        identity=identity,
        broker_set=BrokerSet(str(Address(identity.address.host, _ha_port(config, store_config, identity)))),
        clock=clock,
        peer_clock=peer_clock,
        disk=disk,
        store=store,
        dispatching=Dispatching(store),
        tables=tables,
        rules=rules,
        special=SpecialServices(is_master=config.broker_id == 0),
        subscriptions=Subscriptions(
            by_property=config.property_filter, of_retries=config.filter_retries, clock=peer_clock
        ),
        counters=Counters(clock, identity.cluster_name, tables.topics.is_system, by_queue=config.queue_statistics),
        persistence=Persistence(
            (tables.topics, tables.groups), tables.offsets, config.flush_offsets_interval_ms / 1000, clock
        ),
        classes=classes,
        workers=workers,
        slices=Slices(peer_clock),
        router=router,
        server=RemotingServer(router, settings_of(config), ServerTls(tls), clock=peer_clock),
        client=RemotingClient(tls=client_tls(tls)),
        tls=tls,
        switching=switching,
    )


def check_role(config: BrokerConfig, store_config: StoreConfig) -> None:
    """Raises ConfigError when id and role of a broker do not fit, or copies are promised that nobody waits for."""
    is_slave = store_config.broker_role is BrokerRole.SLAVE
    if is_slave and config.broker_id == 0:
        raise ConfigError("brokerRole=SLAVE needs a brokerId above 0: the broker with brokerId=0 is the master")
    if config.broker_id and not is_slave:
        # RocketMQ: makes it 0 without a word, and a second master appends to the set's queues.
        role = store_config.broker_role.value
        raise ConfigError(
            f"brokerId={config.broker_id} with brokerRole={role}: a master has brokerId=0, a slave brokerRole=SLAVE"
        )
    if store_config.broker_role is BrokerRole.ASYNC_MASTER:
        for key, is_promised in (
            ("inSyncReplicas", store_config.in_sync_replicas > 1),
            ("minInSyncReplicas", store_config.min_in_sync_replicas > 1),
            ("allAckInSyncStateSet", store_config.all_ack_in_sync),
        ):
            if is_promised:  # RocketMQ: says nothing, and its senders wait for nobody
                raise ConfigError(
                    f"{key} promises copies, but brokerRole=ASYNC_MASTER waits for no slave. "
                    f"Set brokerRole=SYNC_MASTER, or leave {key} out"
                )


def _identity(config: BrokerConfig) -> BrokerIdentity:
    host = advertised_host(config.broker_ip, config.bind_address)
    return BrokerIdentity(
        Address(host, config.listen_port or free_port(config.bind_address)),
        config.cluster_name,
        config.broker_name,
        config.broker_id,
        config.region_id,
        config.trace_on,
        resolved(host),
    )


def _ha_port(config: BrokerConfig, store_config: StoreConfig, identity: BrokerIdentity) -> int:
    """As RocketMQ: the one behind the broker's own. A broker that takes any free port takes any for its log, too."""
    if store_config.ha_listen_port:
        return store_config.ha_listen_port
    return identity.address.port + 1 if config.listen_port else free_port(config.bind_address)


def free_port(bind_address: str) -> int:
    """A port that is free now: records name the broker's port, so it must be known before the store is opened.

    Below those that the kernel gives to outgoing connections, or one of them might take it in the meantime. Processes
    that start brokers side by side choose among different ports, and none chooses the same twice in a row.
    """
    own = _CHOSEN_PORTS[os.getpid() % _PORT_STEP :: _PORT_STEP]
    for port in random.sample(own, len(own)):
        if port in _chosen_lately:
            continue
        with contextlib.suppress(OSError), socket.create_server((bind_address, port)):
            _chosen_lately.append(port)
            return port
    with socket.create_server((bind_address, 0)) as probe:
        return int(probe.getsockname()[1])


def _store_and_tables(
    config: BrokerConfig,
    store_config: StoreConfig,
    identity: BrokerIdentity,
    clock: ServiceClock,
    peer_clock: Clock,
    disk: Disk,
) -> tuple[MessageStore, Tables]:
    """The store asks the table of topics whose queues are queues of batches, the tables lie in the store's folder."""

    def has_batch_queues(topic: str) -> bool:
        found = tables.topics.find(topic)
        return found is not None and found.has_batch_queues

    # No more than a quarter of all descriptors: half of them are kept free of connections.
    open_files = max(min(store_config.max_open_queue_files, descriptor_limit() // 4), 8)
    # The event loop dispatches itself, so that a turn's messages are readable when the turn is over.
    store = MessageStore(
        in_home(config.store_root),
        replace(store_config, dispatch_thread=False, max_open_queue_files=open_files),
        store_host=identity.store_host,
        clock=clock,
        disk=disk,
        is_batch_topic=has_batch_queues,
    )
    queue_limit = QueueLimit(config.max_topic_queues)
    tables = Tables(
        topics=_topics(config, store, clock, disk, queue_limit),
        groups=SubscriptionGroupTable(
            _json_file(disk, store, "subscriptionGroup.json", SUBSCRIPTION_GROUPS),
            clock,
            auto_create=config.auto_create_group,
            queue_limit=queue_limit,
            save_at_once=False,
            new_groups=RateBucket(peer_clock, config.new_groups_per_second),
        ),
        offsets=ConsumerOffsetTable(
            OffsetFiles(
                disk, f"{store.paths.config}/consumerOffset.json", f"{store.paths.config}/lmqConsumerOffset.json"
            ),
            clock,
            server_side_reset=config.server_side_reset,
        ),
        consumers=ConnectedConsumers(peer_clock),
        producers=ConnectedProducers(peer_clock),
        locks=QueueLocks(peer_clock),
    )
    return store, tables


def _topics(config: BrokerConfig, store: MessageStore, clock: Clock, disk: Disk, queue_limit: QueueLimit) -> TopicTable:
    system = SystemTopics(
        config.cluster_name,
        config.broker_name,
        auto_create=config.auto_create_topic,
        default_queues=config.default_topic_queues,
        delay_levels=len(delays_of_levels(store.config.message_delay_levels)),
        timer_wheel=store.config.timer_wheel,
        revive_queues=config.revive_queues,
        trace_topic=config.trace_topic if config.trace_topic_enable else None,
    )
    file = TopicFile(disk, str(Path(store.paths.config) / "topics.json"))
    topics = TopicTable(
        file,
        clock,
        system.configs(),
        auto_create=config.auto_create_topic,
        guard_system_topics=config.guard_system_topics,
        allow_mixed_type=config.allow_mixed_type,
        queue_limit=queue_limit,
        save_at_once=False,
    )
    topics.on_change(lambda configs: file.note(topics.data_version, configs))
    return topics


def _json_file(disk: Disk, store: MessageStore, name: str, layout: JsonFile[T]) -> ConfigFile[T]:
    path = str(Path(store.paths.config) / name)
    return ConfigFile(disk, path, layout.decode, partial(layout.encode, dialect=Dialect.V5_4))


def _live_settings(
    config: BrokerConfig, store_config: StoreConfig, identity: BrokerIdentity, store: MessageStore, clock: Clock
) -> LiveSettings:
    """What was found out stands in place of what was left open."""
    address, root = identity.address, store.paths.root
    known = replace(config, listen_port=address.port, broker_ip=address.host, store_root=root)
    path = in_home(config.config_path or f"{store.paths.config}/broker.properties").resolve()
    return LiveSettings(known, store_config, ConfigFile(Disk(), str(path), bytes, bytes), clock)
