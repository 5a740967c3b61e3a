"""The commands and variables of failover-compose.yml as processes: a message, a master that dies, another message.

Host names become ports of the loopback, and every volume a folder. ZooKeeper is the machine's own, three of it.
"""

import asyncio
import contextlib
from collections.abc import Iterator, Mapping
from pathlib import Path

import pytest

from skyrocket.client import ClientError, Message, Producer
from skyrocket.config.sections.controller import DEFAULT_CONTROLLER_PORT
from skyrocket.protocol.bodies.controller import BROKER_NAMES, BrokerReplicasInfo, ReplicasInfo
from skyrocket.protocol.errors import RequestError
from skyrocket.protocol.requests.controller import GetSyncStateData
from skyrocket.remoting.client import RemotingClient
from skyrocket.remoting.errors import RemotingError
from tests.faults.broker_load import TOPIC, pull
from tests.integration.controller.real_engines import RealEngine, running_engine, why_not
from tests.integration.program import Program
from tests.integration.test_container_files import NAME_SERVER_PORT
from tests.integration.test_failover_compose import SERVICES, named
from tests.ports import free_port

NO_ZOOKEEPER = why_not("zookeeper")
NAME = "broker-a"
_SECONDS = 180.0  # ten programs start at once, with the time-outs of their defaults


class ComposedSet:
    """All services but ZooKeeper's, started as the file says."""

    def __init__(self, folder: Path, engine: RealEngine) -> None:
        self._folder = folder
        self._opened = contextlib.ExitStack()
        self._ports = {name: free_port() for name in SERVICES if not name.startswith("zookeeper")}
        self._words = {f"{name}:{DEFAULT_CONTROLLER_PORT}": self.address(name) for name in named("controller")}
        self._words[f"namesrv:{NAME_SERVER_PORT}"] = self.address("namesrv")
        for name, server in zip(named("zookeeper"), engine.servers, strict=True):
            self._words[name] = f"127.0.0.1:{server.port}"
        self._words |= dict.fromkeys(named("broker"), "127.0.0.1")
        self.programs: dict[str, Program] = {}

    def address(self, name: str) -> str:
        return f"127.0.0.1:{self._ports[name]}"

    def start(self) -> None:
        for name in self._ports:
            self.programs[name] = self._opened.enter_context(self._program(name))
        for program in self.programs.values():
            program.await_line("boot success")

    def close(self) -> None:
        self._opened.close()

    def _program(self, name: str) -> Program:
        service = SERVICES[name]
        given = {key: self._here(value) for key, value in service.get("environment", {}).items()}
        home = self._folder / name
        home.mkdir()
        arguments = [self._here(word) for word in service["command"]]
        return Program(*arguments, home=home, environment={**given, **self._of_one_machine(name, home)})

    def _here(self, text: str) -> str:
        """The text with this machine's addresses for the names of services."""
        for name, address in self._words.items():
            text = text.replace(name, address)
        return text

    def _of_one_machine(self, name: str, home: Path) -> Mapping[str, str]:
        """What containers need not say: ports of their own, a place for the store, and files that fit here."""
        if name == "namesrv":
            return {"SKYROCKET_NAMESRV_LISTEN_PORT": str(self._ports[name])}
        if name in named("controller"):
            return {}
        return {
            "SKYROCKET_BROKER_LISTEN_PORT": str(self._ports[name]),
            "SKYROCKET_BROKER_STORE_PATH_ROOT_DIR": str(home / "store"),
            "SKYROCKET_BROKER_MAPPED_FILE_SIZE_COMMIT_LOG": str(4 << 20),
        }

    async def replicas(self, client: RemotingClient) -> ReplicasInfo:
        """As the controller that leads knows them; an empty answer while none does."""
        for name in named("controller"):
            with contextlib.suppress(RemotingError, RequestError):
                reply = await client.call(self.address(name), GetSyncStateData(), BROKER_NAMES.encode((NAME,)))
                return BrokerReplicasInfo.decode(bytes(reply.body)).replicas.get(NAME, ReplicasInfo())
        return ReplicasInfo()

    async def led(self, client: RemotingClient, members: int) -> str:
        """Wait until so many are in sync with a master; its address."""
        async with asyncio.timeout(_SECONDS):
            while True:
                info = await self.replicas(client)
                if info.master_address and len(info.in_sync_replicas) == members:
                    return info.master_address
                await asyncio.sleep(0.1)

    def at(self, address: str) -> str:
        (found,) = (name for name in named("broker") if self.address(name) == address)
        return found


@contextlib.contextmanager
def composed(folder: Path) -> Iterator[ComposedSet]:
    with running_engine("zookeeper", folder, size=len(named("zookeeper"))) as engine:
        found = ComposedSet(folder, engine)
        try:
            found.start()
            yield found
        finally:
            found.close()


async def sent(producer: Producer, body: bytes) -> None:
    """Send until it is acknowledged."""
    while True:
        with contextlib.suppress(ClientError):
            if (await producer.send(Message(TOPIC, body))).status.name == "SEND_OK":
                return


async def bodies(client: RemotingClient, address: str) -> set[bytes]:
    found: set[bytes] = set()
    for queue_id in range(4):
        found.update(await pull(client, address, queue_id, 0))
    return found


@pytest.mark.slow
@pytest.mark.timeout(600)
@pytest.mark.skipif(NO_ZOOKEEPER is not None, reason=NO_ZOOKEEPER or "")
async def test_what_the_file_starts_takes_messages_also_after_its_master_died(tmp_path: Path) -> None:
    with composed(tmp_path) as services:
        async with RemotingClient() as client, Producer("Senders", services.address("namesrv")) as producer:
            first = await services.led(client, 3)
            await sent(producer, b"before")
            services.programs[services.at(first)].kill()
            second = await services.led(client, 2)
            assert second != first
            await sent(producer, b"after")
            assert await bodies(client, second) == {b"before", b"after"}
