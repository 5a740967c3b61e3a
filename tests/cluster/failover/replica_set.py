"""A set of brokers under a controller, in this process: started, killed, and started again on the same ports."""

import contextlib
import shutil
from collections.abc import AsyncIterator
from dataclasses import replace
from pathlib import Path

from skyrocket.broker.failover.failover_broker import FailoverBroker
from skyrocket.cli.controller import build_controller
from skyrocket.config.sections import BrokerConfig, ControllerConfig, StoreConfig
from skyrocket.controller.controller import Controller
from skyrocket.protocol.errors import RequestError
from skyrocket.protocol.requests.messaging import SendMessageAnswer
from skyrocket.remoting.client import RemotingClient
from skyrocket.remoting.errors import RemotingError
from skyrocket.testing.broker_host import copy_store
from tests.cluster.broker.broker_fixture import SMALL, message
from tests.cluster.namesrv import name_server_fixture
from tests.cluster.replication.broker_pair import log_of
from tests.ports import free_port
from tests.waiting import until

STORE = replace(SMALL, all_ack_in_sync=True, slave_timeout_ms=2000)


class ReplicaSet:
    """Brokers by number, from 1 on; the numbers are not the controller's ids."""

    def __init__(
        self, folder: Path, name_servers: str, controller: Controller, controller_address: str, store: StoreConfig
    ) -> None:
        self._folder = folder
        self._controller_address = controller_address
        self._name_servers = name_servers
        self._store = store
        self.controller = controller
        self.ports: dict[int, int] = {}
        self.brokers: dict[int, FailoverBroker] = {}
        self.client = RemotingClient()

    async def start(self, number: int) -> FailoverBroker:
        config = BrokerConfig(
            broker_name="broker-a",
            bind_address="127.0.0.1",
            broker_ip="127.0.0.1",
            listen_port=self.ports.setdefault(number, free_port()),
            store_root=str(self.root(number)),
            name_servers=self._name_servers,
            controller_mode=True,
            controller_addresses=self._controller_address,
            heartbeat_interval_ms=100,
            controller_expiry_ms=5000,
            inner_client_credentials='{"accessKey":"brokers","secretKey":"12345678"}',
            replica_look_period_ms=300,
            sync_set_period_ms=300,
        )
        broker = FailoverBroker(config, self._store)
        await broker.start()
        self.brokers[number] = broker
        return broker

    def root(self, number: int) -> Path:
        return self._folder / f"broker-{number}"

    async def kill(self, number: int) -> None:
        """As kill -9 does: the store is left as it is at that moment."""
        broker = self.brokers.pop(number)
        remains = self._folder / "remains"
        await broker.break_off()
        copy_store(self.root(number), remains)
        await broker.stop()
        shutil.rmtree(self.root(number))
        remains.rename(self.root(number))

    async def stop(self, number: int) -> None:
        await self.brokers.pop(number).stop()

    def master(self) -> int | None:
        """The number of the broker that is master, if one is."""
        masters = [number for number, broker in self.brokers.items() if broker.master is not None]
        return masters[0] if len(masters) == 1 else None

    async def led_by(self) -> int:
        """Wait until one of the brokers is master."""
        await until(lambda: self.master() is not None, "one master")
        number = self.master()
        assert number is not None
        return number

    async def in_sync(self, count: int) -> int:
        """Wait until so many are members of the sync-state set; the master's number."""
        await until(lambda: len(self._members()) == count, f"{count} brokers in sync")
        return await self.led_by()

    def _members(self) -> frozenset[int]:
        number = self.master()
        master = self.brokers[number].master if number is not None else None
        return master.sync_set.members if master is not None else frozenset()

    async def send(self, body: bytes, properties: str = "") -> SendMessageAnswer:
        """To whoever is master, until it is acknowledged."""
        while True:
            number = await self.led_by()
            try:
                address = f"127.0.0.1:{self.ports[number]}"
                reply = await self.client.call(address, message(properties=properties), body)
            except (RemotingError, RequestError):
                continue
            return reply.header

    def log(self, number: int) -> bytes:
        """All bytes of a broker's log; none while it changes its role."""
        broker = self.brokers[number]
        return b"" if broker.is_between_lives else log_of(broker.life.store)

    async def equal(self) -> bytes:
        """Wait until all logs are the same; the log."""
        return await self.equal_of(*self.brokers)

    async def equal_of(self, *numbers: int) -> bytes:
        """Wait until these logs are the same; the log."""
        await until(lambda: len({self.log(number) for number in numbers}) == 1 and self.log(numbers[0]))
        return self.log(numbers[0])


@contextlib.asynccontextmanager
async def running_controller(folder: Path) -> AsyncIterator[tuple[Controller, str]]:
    """A controller that keeps its decisions in a file, believes signed words alone, and looks often; its address."""
    config = ControllerConfig(
        bind_address="127.0.0.1",
        peers=f"n0-127.0.0.1:{free_port()}",
        store=f"file:{folder / 'controller'}",
        config_store_path=str(folder / "controller.properties"),
        access_key="brokers",
        secret_key="12345678",
        scan_interval_ms=100,
        master_scan_interval_ms=100,
    )
    async with build_controller(config) as controller:
        yield controller, str(await controller.start())


@contextlib.asynccontextmanager
async def replica_set(folder: Path, size: int = 3, store: StoreConfig = STORE) -> AsyncIterator[ReplicaSet]:
    async with name_server_fixture.running(folder) as (_, names), running_controller(folder) as (controller, address):
        found = ReplicaSet(folder, str(names), controller, address, store)
        async with found.client:
            try:
                for number in range(1, size + 1):
                    await found.start(number)
                yield found
            finally:
                for number in list(found.brokers):
                    await found.stop(number)
