"""A name server, a set of master and slave that may act in its place, and another master, as processes of their own."""

import asyncio
import contextlib
import re
from collections.abc import AsyncIterator, Mapping
from pathlib import Path

from skyrocket.client import Admin, ClientSettings
from skyrocket.protocol.bodies.tables import KvTable
from skyrocket.protocol.errors import QueryNotFound
from skyrocket.protocol.requests.admin_broker import GetBrokerRuntimeInfo
from skyrocket.protocol.requests.offsets import QueryConsumerOffset, UpdateConsumerOffset
from skyrocket.remoting.client import RemotingClient
from skyrocket.remoting.errors import RemotingError
from tests.client_steps import fresh, soon
from tests.cluster.broker.broker_fixture import message
from tests.integration.program import SMALL_FILES, Program
from tests.integration.seen_messages import GROUP, TOPIC
from tests.ports import free_port
from tests.waiting import SECONDS

QUEUES = 4
SETTINGS = {
    "enableSlaveActingMaster": "true",
    "enableRemoteEscape": "true",
    "slaveReadEnable": "true",
    "reviveQueueNum": 2,
    "transactionTimeOut": 1000,
    "transactionCheckInterval": 1000,
    "flushConsumerOffsetInterval": 200,
    "brokerNotActiveTimeoutMillis": 5000,
}
MASTER_A, SLAVE_A, MASTER_B = "a", "a-slave", "b"


class ActingSet:
    """Set A of two brokers, set B of one; each may be killed and started again on its port and its store."""

    def __init__(self, folder: Path, names: str, settings: Mapping[str, object]) -> None:
        self.names = names
        self.client = ClientSettings(
            name_servers=names, route_refresh=0.5, heartbeat_interval=1.0, client_ip="127.0.0.1"
        )
        self._folder = folder
        self._settings = settings
        self._ports = {name: free_port() for name in (MASTER_A, SLAVE_A, MASTER_B)}
        self._running: dict[str, Program] = {}
        self._remoting = RemotingClient()

    def address(self, name: str) -> str:
        return f"127.0.0.1:{self._ports[name]}"

    def start(self, name: str) -> Program:
        """Do not wait until it serves."""
        given = ["broker", "--verbose", "-n", self.names, "--listen-port", str(self._ports[name])]
        given += ["--broker-ip", "127.0.0.1", "--store", str(self._folder / name)]
        is_slave = name == SLAVE_A
        of_one = {
            "brokerName": f"broker-{name[0]}",
            "brokerRole": "SLAVE" if is_slave else "SYNC_MASTER" if name == MASTER_A else "ASYNC_MASTER",
            "brokerId": int(is_slave),
            "totalReplicas": 1 if name == MASTER_B else 2,
        }
        settings = {**SETTINGS, **of_one, **self._settings}
        for setting in (*SMALL_FILES, *(f"{key}={value}" for key, value in settings.items())):
            given += ["--set", setting]
        self._running[name] = Program(*given, home=self._folder)
        return self._running[name]

    def kill(self, name: str) -> None:
        """kill -9."""
        self._running[name].kill()
        self._running.pop(name).__exit__()

    def say(self, name: str, pattern: str, count: int = 1) -> re.Match[str]:
        """Wait for a line of a broker."""
        return self._running[name].await_line(pattern, count=count)

    async def row(self, name: str, key: str) -> str:
        """Of GET_BROKER_RUNTIME_INFO; empty while it does not answer."""
        try:
            reply = await self._remoting.call(self.address(name), GetBrokerRuntimeInfo())
        except RemotingError:
            return ""
        return KvTable.decode(bytes(reply.body)).table.get(key, "")

    async def shows(self, name: str, key: str, value: str) -> None:
        """Wait until a broker says so."""
        async with asyncio.timeout(SECONDS):
            while await self.row(name, key) != value:
                await asyncio.sleep(0.05)

    async def copied(self) -> None:
        """Wait until the slave has log and tables of its master, which it asks for at once when a topic is new."""
        marked, new = fresh("Marked"), fresh("New")
        await self._remoting.call(self.address(MASTER_A), message(marked), b"x")
        commit = UpdateConsumerOffset(consumer_group=GROUP, topic=marked, queue_id=0, commit_offset=1)
        await self._remoting.call(self.address(MASTER_A), commit)
        await self._remoting.call(self.address(MASTER_A), message(new), b"x")
        async with asyncio.timeout(SECONDS):
            while await self.committed(SLAVE_A, marked, 0) != 1:
                await asyncio.sleep(0.05)
        await self.shows(SLAVE_A, "commitLogMaxOffset", await self.row(MASTER_A, "commitLogMaxOffset"))

    async def lose_master(self) -> None:
        """Kill the master of A; return when its slave acts."""
        self.kill(MASTER_A)
        await self.shows(SLAVE_A, "brokerActive", "true")

    async def bring_back_master(self) -> None:
        """Return when it is online, and the slave has stopped to act."""
        self.start(MASTER_A)
        self.say(MASTER_A, "online broker=")
        await self.shows(SLAVE_A, "brokerActive", "false")

    async def make_topic(self, topic: str = TOPIC) -> None:
        """At both masters."""
        async with Admin(client=self.client) as admin:
            await admin.create_topic(topic, QUEUES)
            await admin.create_group(GROUP)
            await soon(admin, topic, 2 * QUEUES)

    async def committed(self, name: str, topic: str, queue_id: int) -> int | None:
        """How far the group is, as a broker knows it."""
        request = QueryConsumerOffset(consumer_group=GROUP, topic=topic, queue_id=queue_id, set_zero_if_not_found=False)
        try:
            return (await self._remoting.call(self.address(name), request)).header.offset
        except QueryNotFound:
            return None

    async def close(self) -> None:
        await self._remoting.close()
        for program in self._running.values():
            program.__exit__()


@contextlib.asynccontextmanager
async def acting_set(folder: Path, **settings: object) -> AsyncIterator[ActingSet]:
    """All at work, with a topic that both sets have; the slave follows."""
    port = free_port()
    given = ["namesrv", "--listen-port", str(port), "--bind-address", "127.0.0.1"]
    with Program(*given, "--set", "supportActingMaster=true", home=folder) as names:
        names.await_line(str(port))
        made = ActingSet(folder, f"127.0.0.1:{port}", settings)
        try:
            for name in (MASTER_A, MASTER_B):
                made.start(name)
            for name in (MASTER_A, MASTER_B):
                made.say(name, "boot success")
            made.start(SLAVE_A)
            made.say(SLAVE_A, "following master=")
            await made.make_topic()
            yield made
        finally:
            await made.close()
