"""Name server, controller and three brokers as processes; a producer that goes on through fail-overs.

producer ─▶ master ─▶ slave, slave        kill -9 of the master again and again; it comes back as a slave
              ▲ controller, its decisions in a file
"""

import asyncio
import contextlib
import itertools
import time
from pathlib import Path
from types import TracebackType
from typing import Final, Self

from skyrocket.client import ClientError, Message, Producer, ProducerSettings
from skyrocket.model.message_queue import MessageQueue
from skyrocket.protocol.bodies.controller import BROKER_NAMES, BrokerReplicasInfo, ReplicasInfo
from skyrocket.protocol.errors import RequestError
from skyrocket.protocol.requests.controller import GetSyncStateData
from skyrocket.remoting.client import RemotingClient
from skyrocket.remoting.errors import RemotingError
from tests.faults.broker_load import QUEUES, TOPIC, pull
from tests.integration.program import SMALL_FILES, Program
from tests.ports import free_port
from tests.waiting import SECONDS

BROKER: Final = "broker-a"
_QUICK: Final = (
    "enableControllerMode=true",
    "allAckInSyncStateSet=true",
    "minInSyncReplicas=2",
    "brokerHeartbeatInterval=200",
    "controllerHeartBeatTimeoutMills=2000",
    "syncBrokerMetadataPeriod=500",
    "checkSyncStateSetPeriod=500",
    "slaveTimeout=2000",
)


class FailoverSet:
    """The processes; a broker that is started again has the port and the store that it had."""

    def __init__(self, folder: Path, brokers: int = 3) -> None:
        self.folder = folder
        self.count = brokers
        self._processes = contextlib.ExitStack()
        self.brokers: dict[int, Program] = {}
        self.ports = {number: free_port() for number in range(1, brokers + 1)}
        self.client = RemotingClient()
        self.name_server = self.controller_at = ""

    async def __aenter__(self) -> Self:
        port = free_port()
        self.name_server, self.controller_at = f"127.0.0.1:{port}", f"127.0.0.1:{free_port()}"
        names = Program("namesrv", "--listen-port", str(port), home=self.folder)
        self._processes.enter_context(names)
        names.await_line("boot success")
        self._processes.enter_context(self._controller()).await_line("boot success")
        for number in self.ports:
            self.start(number)
        await self.in_sync(self.count)
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._processes.close()
        await self.client.close()

    def _controller(self) -> Program:
        settings = ("scanNotActiveBrokerInterval=200", "scanInactiveMasterInterval=200", "bindAddress=127.0.0.1")
        arguments = ["controller", "--peers", f"n0-{self.controller_at}", "--store", f"file:{self.folder}/decisions"]
        for setting in (*settings, f"configStorePath={self.folder}/controller.properties"):
            arguments += ["--set", setting]
        return Program(*arguments, home=self.folder)

    def store(self, number: int) -> Path:
        return self.folder / f"store-{number}"

    def start(self, number: int) -> None:
        arguments = ["broker", "-n", self.name_server, "--listen-port", str(self.ports[number])]
        arguments += ["--broker-ip", "127.0.0.1", "--store", str(self.store(number))]
        given = (f"brokerName={BROKER}", f"controllerAddr={self.controller_at}", "autoCreateTopicEnable=true")
        for setting in (*SMALL_FILES, *_QUICK, *given):
            arguments += ["--set", setting]
        self.brokers[number] = program = Program(*arguments, home=self.folder)
        self._processes.enter_context(program)
        program.await_line("boot success")

    async def stop_all(self) -> None:
        """In order, so that the logs are at rest."""
        for program in self.brokers.values():
            await asyncio.to_thread(program.stop)

    async def info(self) -> ReplicasInfo | None:
        """What the controller says of the set; None when it does not answer."""
        try:
            reply = await self.client.call(self.controller_at, GetSyncStateData(), BROKER_NAMES.encode((BROKER,)))
        except (RemotingError, RequestError):
            return None
        return BrokerReplicasInfo.decode(bytes(reply.body)).replicas.get(BROKER)

    async def in_sync(self, count: int) -> int:
        """Wait until so many brokers are in the sync-state set; the number of the master."""
        async with asyncio.timeout(SECONDS):
            while True:
                info = await self.info()
                if info is not None and len(info.in_sync_replicas) == count and info.master_address:
                    port = int(info.master_address.rpartition(":")[2])
                    return next(number for number, known in self.ports.items() if known == port)
                await asyncio.sleep(0.05)

    async def fail_over(self) -> float:
        """Kill the master; returns after how many seconds another one was elected. The dead one comes back later."""
        master = await self.in_sync(self.count)
        before = await self.info()
        assert before is not None
        began = time.monotonic()
        self.brokers[master].kill()
        async with asyncio.timeout(SECONDS):
            while True:
                info = await self.info()
                if info is not None and info.master_address not in (None, before.master_address):
                    break
                await asyncio.sleep(0.02)
        seconds = time.monotonic() - began
        await asyncio.to_thread(self.start, master)  # senders go on meanwhile
        return seconds


class Load:
    """One sender for each queue, one message after the other; what was acknowledged, and what consumers saw."""

    def __init__(self, name_server: str) -> None:
        self._name_server = name_server
        self.acknowledged: dict[int, list[int]] = {queue: [] for queue in range(QUEUES)}
        self.longest_silence = 0.0
        self._last = time.monotonic()
        self._is_over = asyncio.Event()

    def end(self) -> None:
        self._is_over.set()

    async def send(self) -> None:
        """Until `end`: what fails is sent again under the same number."""
        async with Producer("Senders", self._name_server, ProducerSettings(retries=0)) as producer:
            await asyncio.gather(*(self._send(producer, queue_id) for queue_id in range(QUEUES)))

    async def _send(self, producer: Producer, queue_id: int) -> None:
        for number in itertools.count():
            while not self._is_over.is_set():
                message = Message(TOPIC, b"%d" % number + b"." * (number * 37 % 300))
                try:
                    receipt = await producer.send(message, queue=MessageQueue(TOPIC, BROKER, queue_id), timeout=3)
                except ClientError:
                    await asyncio.sleep(0.02)
                    continue
                if receipt.status.name == "SEND_OK":
                    self.acknowledged[queue_id].append(number)
                    now = time.monotonic()
                    self.longest_silence = max(self.longest_silence, now - self._last)
                    self._last = now
                    break
                await asyncio.sleep(0.02)
            if self._is_over.is_set():
                return

    async def grows(self) -> None:
        """Wait until every queue takes messages again."""
        counts = {queue: len(numbers) for queue, numbers in self.acknowledged.items()}
        async with asyncio.timeout(SECONDS):
            while any(len(self.acknowledged[queue]) <= count for queue, count in counts.items()):
                await asyncio.sleep(0.02)


async def stored(client: RemotingClient, master: str) -> dict[int, list[int]]:
    """The numbers in each queue, in their order, as a consumer reads them."""
    found: dict[int, list[int]] = {}
    for queue_id in range(QUEUES):
        numbers = found.setdefault(queue_id, [])
        while bodies := await pull(client, master, queue_id, len(numbers)):
            numbers += [int(body.rstrip(b".")) for body in bodies]
    return found
