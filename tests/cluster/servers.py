"""A whole cluster in the test's own event loop: one name server, some brokers, stores in a temporary directory."""

import contextlib
from collections.abc import AsyncIterator
from dataclasses import replace
from pathlib import Path

from skyrocket.broker.broker import Broker
from skyrocket.config.sections import BrokerConfig, StoreConfig
from skyrocket.protocol.codes import RequestCode
from skyrocket.remoting.router import Route
from tests.cluster.namesrv import name_server_fixture
from tests.loops import run_bounded
from tests.waiting import until

__all__ = ["Cluster", "cluster", "run_bounded", "until"]

SMALL = StoreConfig(commit_log_file_size=4 << 20, preallocate_bytes=1 << 16, index_slots=1000, index_entries=4000)


class Cluster:
    """What tests talk to."""

    def __init__(self, folder: Path, names: str) -> None:
        self.folder = folder
        self.names = names
        self.brokers: dict[str, Broker] = {}
        self.ports: dict[str, int] = {}

    async def start_broker(self, name: str = "broker-a", config: BrokerConfig | None = None) -> Broker:
        """Start, or start again on the same port and store."""
        chosen = replace(
            config or BrokerConfig(),
            broker_name=name,
            listen_port=0,
            bind_address="127.0.0.1",
            broker_ip="127.0.0.1",
            store_root=str(self.folder / name),
            name_servers=self.names,
            register_period_ms=10_000,
        )
        if name in self.ports:
            chosen = replace(chosen, listen_port=self.ports[name])
        broker = Broker(chosen, SMALL)
        await broker.start()
        self.brokers[name] = broker
        self.ports[name] = broker.identity.address.port
        return broker

    def route(self, code: RequestCode) -> Route:
        """The route of a code at broker-a; a test may put another handler in front of the broker's."""
        return next(route for route in self.brokers["broker-a"].parts.router.routes() if route.code == code)

    async def stop_broker(self, name: str = "broker-a") -> None:
        await self.brokers.pop(name).stop()


@contextlib.asynccontextmanager
async def cluster(folder: Path, *brokers: str, config: BrokerConfig | None = None) -> AsyncIterator[Cluster]:
    async with name_server_fixture.running(folder) as (_, address):
        given = Cluster(folder, str(address))
        try:
            for name in brokers or ("broker-a",):
                await given.start_broker(name, config)
            yield given
        finally:
            for name in list(given.brokers):
                await given.stop_broker(name)
