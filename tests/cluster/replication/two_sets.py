"""A name server, a set of master and slave, and another master, in this process; time passes when a test says so."""

import contextlib
from collections.abc import AsyncIterator
from dataclasses import dataclass, field, replace
from pathlib import Path

from skyrocket.broker.acting.feature import ActingFeature
from skyrocket.broker.broker import Broker
from skyrocket.broker.timer.rules import TimerRules
from skyrocket.clock import SystemClock
from skyrocket.config.sections import BrokerConfig, BrokerRole, NameServerConfig
from skyrocket.protocol.bodies.route import TopicRoute
from skyrocket.protocol.requests.route import GetRouteInfoByTopic
from skyrocket.remoting.addresses import Address
from skyrocket.testing.clock import FakeClock
from tests.cluster.broker.broker_fixture import SMALL, TOPIC, RunningBroker
from tests.cluster.namesrv import name_server_fixture
from tests.cluster.replication.broker_pair import replication
from tests.waiting import until

CONFIG = BrokerConfig(
    acting_master=True,
    remote_escape=True,
    member_look_period_ms=50,
    heartbeat_interval_ms=100,
    slave_read=True,
    revive_queues=2,
)
NAME_SERVER = NameServerConfig(support_acting_master=True)
SLAVE_STORE = replace(SMALL, broker_role=BrokerRole.SLAVE)


@dataclass
class Running:
    """A broker that a test may kill."""

    given: RunningBroker
    stack: contextlib.AsyncExitStack

    async def stop(self) -> None:
        await self.stack.aclose()

    async def kill(self) -> None:
        await self.given.broker.break_off()
        await self.stop()


@dataclass
class TwoSets:
    """Set A with a slave, set B without."""

    folder: Path
    names: Address
    clock: FakeClock = field(default_factory=FakeClock)
    config: BrokerConfig = CONFIG
    replicas: int = 1  # of set A, as it is told; from two on its brokers hear each other before they are registered
    brokers: dict[str, Running] = field(default_factory=dict)

    async def start(self, name: str) -> RunningBroker:
        """`a`, `a-slave` or `b`, on its own folder; what it had there it has again."""
        is_slave = name.endswith("-slave")
        config = replace(
            self.config,
            broker_name=f"broker-{name[0]}",
            broker_id=1 if is_slave else 0,
            name_servers=str(self.names),
            listen_port=0,
            bind_address="127.0.0.1",
            broker_ip="127.0.0.1",
            store_root=str(self.folder / name),
        )
        stack = contextlib.AsyncExitStack()
        store = replace(SLAVE_STORE if is_slave else SMALL, total_replicas=1 if name == "b" else self.replicas)
        broker = Broker(config, store, self.clock, peer_clock=SystemClock())
        await stack.enter_async_context(broker)
        given = RunningBroker(broker, await broker.start())
        await stack.enter_async_context(given.client)
        self.brokers[name] = Running(given, stack)
        return given

    async def lose_master(self) -> None:
        """Kill the master of A, when its slave has all that it has; return when the slave acts, its timer too."""
        await self.copied()
        await self.brokers.pop("a").kill()
        await until(lambda: self.acts and self.slave_timers.is_at_work)

    async def copied(self) -> None:
        """Wait until the slave of A has log and tables of its master."""
        master, slave = self["a"].broker, self["a-slave"].broker
        await until(lambda: slave.store.commit_log.written_offset == master.store.commit_log.written_offset)
        slave.store.flush()
        side = replication(slave).slave
        assert side is not None
        assert await side.sync.sync()
        assert await side.sync.sync()

    @property
    def acts(self) -> bool:
        return self["a-slave"].broker.parts.special.acts

    @property
    def slave_timers(self) -> TimerRules:
        """What the slave of A lets wait."""
        timers = self["a-slave"].broker.parts.rules.timers
        assert isinstance(timers, TimerRules)
        return timers

    @property
    def not_taken(self) -> int:
        """Attempts of the slave of A that nobody has taken."""
        return self["a-slave"].broker.feature(ActingFeature).escape.not_taken

    def __getitem__(self, name: str) -> RunningBroker:
        return self.brokers[name].given

    async def route(self, topic: str = TOPIC) -> TopicRoute:
        reply = await self["a-slave"].client.call(str(self.names), GetRouteInfoByTopic(topic=topic))
        return TopicRoute.decode(bytes(reply.body))


@contextlib.asynccontextmanager
async def two_sets(
    folder: Path, config: BrokerConfig = CONFIG, replicas: int = 1, name_server: NameServerConfig = NAME_SERVER
) -> AsyncIterator[TwoSets]:
    """All three brokers at work, with a topic that both sets have."""
    async with name_server_fixture.running(folder, name_server) as (_, names):
        sets = TwoSets(folder, names, config=config, replicas=replicas)
        try:
            for name in ("a", "b", "a-slave"):
                given = await sets.start(name)
                if name != "a-slave":
                    await given.send(b"first")
                    await given.beat()
            side = replication(sets["a-slave"].broker).slave
            assert side is not None
            await until(
                lambda: side.client.stream is not None and not sets["a-slave"].broker.parts.broker_set.is_looking
            )
            yield sets
        finally:
            for running in sets.brokers.values():
                await running.stop()
