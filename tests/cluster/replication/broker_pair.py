"""A name server, a master and a slave in this process, on free ports."""

import contextlib
from collections.abc import AsyncIterator
from dataclasses import dataclass, replace
from pathlib import Path

from skyrocket.broker.broker import Broker
from skyrocket.broker.replication.feature import ReplicationFeature
from skyrocket.broker.replication.master import Master
from skyrocket.broker.replication.slave import Slave
from skyrocket.config.sections import BrokerConfig, BrokerRole, StoreConfig
from skyrocket.store.message_store import MessageStore
from tests.cluster.broker.broker_fixture import SMALL, RunningBroker, running_broker
from tests.cluster.namesrv import name_server_fixture
from tests.waiting import until

CONFIG = BrokerConfig(slave_read=True)


def replication(broker: Broker) -> ReplicationFeature:
    return broker.feature(ReplicationFeature)


def log_of(store: MessageStore) -> bytes:
    """All bytes of a log, file ends among them."""
    log, at, found = store.commit_log, store.commit_log.min_offset, b""
    while piece := log.raw(at, 1 << 20):
        found += piece
        at += len(piece)
    return found


@dataclass
class Pair:
    """Both brokers of a set."""

    master: RunningBroker
    slave: RunningBroker

    @property
    def master_side(self) -> Master:
        found = replication(self.master.broker).master
        assert found is not None
        return found

    @property
    def slave_side(self) -> Slave:
        found = replication(self.slave.broker).slave
        assert found is not None
        return found

    async def follows(self) -> None:
        """Wait until the slave has all that the master has."""
        end = self.master.broker.store.commit_log
        await until(lambda: self.master_side.replicas.held_by(end.written_offset) == 2)


@contextlib.asynccontextmanager
async def running_master(
    folder: Path, name_servers: str, store: StoreConfig = SMALL, config: BrokerConfig = CONFIG
) -> AsyncIterator[RunningBroker]:
    async with running_broker(folder / "master", replace(config, name_servers=name_servers), store) as master:
        yield master


@contextlib.asynccontextmanager
async def running_slave(
    folder: Path, name_servers: str, store: StoreConfig = SMALL, config: BrokerConfig = CONFIG
) -> AsyncIterator[RunningBroker]:
    chosen = replace(config, name_servers=name_servers, broker_id=1)
    role = replace(store, broker_role=BrokerRole.SLAVE)
    async with running_broker(folder / "slave", chosen, role) as slave:
        yield slave


@contextlib.asynccontextmanager
async def running_pair(
    folder: Path, store: StoreConfig = SMALL, slave_store: StoreConfig = SMALL, config: BrokerConfig = CONFIG
) -> AsyncIterator[Pair]:
    """A slave that follows its master."""
    async with (
        name_server_fixture.running(folder) as (_, names),
        running_master(folder, str(names), store, config) as master,
        running_slave(folder, str(names), slave_store, config) as slave,
    ):
        pair = Pair(master, slave)
        await until(lambda: pair.master_side.replicas.connected == 1)
        yield pair
