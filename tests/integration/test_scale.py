"""Many topics and many connections: what a request costs does not grow with the number of topics."""

import asyncio
import contextlib
import itertools
import os
import resource
import socket
from collections.abc import Awaitable, Callable
from pathlib import Path

import pytest

from skyrocket.model.data_version import DataVersion
from skyrocket.model.topic_config import TopicConfig
from skyrocket.protocol.bodies.registration import BrokerRegistration, body_crc
from skyrocket.protocol.bodies.topics import TopicTable
from skyrocket.protocol.command import RemotingCommand
from skyrocket.protocol.frames import FrameReader, encode
from skyrocket.protocol.requests.admin_topics import UpdateAndCreateTopic
from skyrocket.protocol.requests.broker_registration import RegisterBroker
from skyrocket.protocol.requests.clients import HeartBeat
from skyrocket.protocol.requests.route import GetRouteInfoByTopic
from skyrocket.remoting.client import RemotingClient
from skyrocket.remoting.exchange import command_of
from tests.cluster.broker.broker_fixture import heartbeat, message, pull_request
from tests.integration.measured import MeasuredProgram, measured

FEW, MANY = 100, 10_000
BUSY_TOPICS = 5
FLAT = 2.5  # how much more a request may cost with 100 times as many topics; caches are colder then


def topic_name(number: int) -> str:
    return f"Topic{number:05d}"


class Scale:
    """A running program, and the processor time that it takes for requests."""

    def __init__(self, running: MeasuredProgram, client: RemotingClient) -> None:
        self._running = running
        self._client = client
        self._versions = itertools.count(1)
        self.broker = f"127.0.0.1:{running.broker}"
        self.name_server = f"127.0.0.1:{running.name_server}"

    async def create(self, first: int, end: int) -> None:
        for start in range(first, end, 2500):
            await asyncio.gather(*(self._create(number) for number in range(start, min(start + 2500, end))))

    async def _create(self, number: int) -> None:
        request = UpdateAndCreateTopic(
            topic=topic_name(number),
            default_topic="TBW102",
            read_queue_nums=4,
            write_queue_nums=4,
            perm=6,
            topic_filter_type="SINGLE_TAG",
            topic_sys_flag=0,
            order=False,
        )
        await self._client.call(self.broker, request, timeout_seconds=30)

    async def registered(self, number: int) -> None:
        """Wait until the name server knows a topic."""
        for _ in range(600):
            asked = command_of(GetRouteInfoByTopic(topic=topic_name(number)))
            if (await self._client.invoke(self.name_server, asked)).code == 0:
                return
            await asyncio.sleep(0.05)
        raise AssertionError(f"{topic_name(number)} was not registered")

    async def settled(self) -> None:
        """Wait until the program has nothing left to do: tables saved, name server told."""
        for _ in range(100):
            before = self._cpu_seconds()
            await asyncio.sleep(0.3)
            if self._cpu_seconds() - before <= 0.02:
                return

    def _cpu_seconds(self) -> float:
        fields = Path(f"/proc/{self._running.process.pid}/stat").read_text().rpartition(")")[2].split()
        return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")

    async def microseconds_each(self, count: int, ask: Callable[[int], Awaitable[object]]) -> float:
        """Processor time of the program for one request."""
        await self.settled()
        before = self._cpu_seconds()
        for start in range(0, count, 50):
            await asyncio.gather(*(ask(number) for number in range(start, start + 50)))
        await self.settled()
        return (self._cpu_seconds() - before) / count * 1e6

    async def beat(self, number: int) -> None:
        topic = topic_name(number % FEW)
        await self._client.call(self.broker, HeartBeat(), heartbeat(f"client{number % 50}", f"Group{topic}", topic))

    async def route(self, number: int) -> None:
        await self._client.call(self.name_server, GetRouteInfoByTopic(topic=topic_name(number % FEW)))

    async def register(self, number: int, count: int = 1) -> None:
        """Another broker tells of one topic, as brokers do when one is new."""
        names = [topic_name((number + i) % FEW) for i in range(count)]
        topics = {name: TopicConfig(name) for name in names}
        version = DataVersion(0, next(self._versions), 1_700_000_000_000)
        body = BrokerRegistration(TopicTable(version, topics)).encode()
        request = RegisterBroker(
            broker_name="other",
            broker_addr="127.0.0.1:1",
            cluster_name="DefaultCluster",
            ha_server_addr="127.0.0.1:2",
            broker_id=0,
            enable_acting_master=False,
            body_crc32=body_crc(body),
        )
        await self._client.call(self.name_server, request, body)

    async def costs(self) -> dict[str, float]:
        await self.register(0, FEW)  # who is not known yet may not come with one topic alone
        return {
            "heartbeat": await self.microseconds_each(1500, self.beat),
            "route": await self.microseconds_each(1500, self.route),
            "registration of a topic": await self.microseconds_each(1000, self.register),
        }

    async def work(self) -> None:
        """A producer and a consumer on a few topics."""
        for number in range(BUSY_TOPICS):
            topic = topic_name(number * 17)
            await self._client.call(self.broker, message(topic), b"x")
            pulled = await self._client.call(self.broker, pull_request(topic=topic))
            assert pulled.body


def is_flat(few: dict[str, float], many: dict[str, float]) -> bool:
    return all(many[name] < few[name] * FLAT + 20 for name in few)


async def test_heartbeats_routes_and_registrations_cost_the_same_with_10_000_topics(tmp_path: Path) -> None:
    async def main(running: MeasuredProgram) -> None:
        async with RemotingClient() as client:
            scale = Scale(running, client)
            await scale.create(0, FEW)
            await scale.registered(FEW - 1)
            few = await scale.costs()
            await scale.create(FEW, MANY)
            await scale.registered(MANY - 1)
            await scale.work()
            many = await scale.costs()
            if not is_flat(few, many):  # what others do at the same time costs us caches: once more
                again = await scale.costs()
                many = {name: min(many[name], again[name]) for name in many}
            figures = ", ".join(f"{name} {few[name]:.0f} → {many[name]:.0f} µs" for name in few)
            print(f"\n{FEW} → {MANY} topics: {figures}; {running.resident_mb:.0f} MB")  # noqa: T201
            assert is_flat(few, many), figures

    with measured(tmp_path, "metricsExporterType=DISABLE") as running:
        await main(running)


def test_2000_idle_connections_cost_less_than_100_mb(tmp_path: Path) -> None:
    count = 2000
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    if hard < 2 * count:
        pytest.skip(f"only {hard} open files are allowed here, {2 * count} are needed")
    resource.setrlimit(resource.RLIMIT_NOFILE, (max(soft, min(hard, 3 * count)), hard))
    with measured(tmp_path, "metricsExporterType=DISABLE") as running, contextlib.ExitStack() as stack:
        ask(stack.enter_context(socket.create_connection(("127.0.0.1", running.broker))), 0)
        before = running.resident_mb
        for number in range(count):
            sock = stack.enter_context(socket.create_connection(("127.0.0.1", running.broker)))
            ask(sock, number)
        grown = running.resident_mb - before
        print(f"\n{count} connections: {grown:.1f} MB")  # noqa: T201
        assert grown < 100


def ask(sock: socket.socket, number: int) -> None:
    """A heartbeat, so that the connection is one of a client."""
    request = command_of(HeartBeat(), heartbeat(f"client{number}", f"Group{number % 400}"))
    sock.sendall(encode(request))
    frames: list[RemotingCommand] = []
    reader = FrameReader()
    while not any(frame.flag & 1 for frame in frames):
        frames += reader.receive(sock.recv(1 << 16))
