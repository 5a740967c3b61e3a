"""Three controllers as programs on one engine, and a replica set that beats; every answer is checked."""

import asyncio
import contextlib
import signal
import time
from collections.abc import AsyncIterator, Iterator, Sequence
from pathlib import Path

from skyrocket.errors import SkyrocketError
from skyrocket.protocol.bodies.controller import SyncStateSet
from skyrocket.protocol.requests.controller import (
    AlterSyncStateSet,
    ElectMaster,
    GetControllerMetadata,
    GetReplicaInfo,
    GetReplicaInfoAnswer,
)
from skyrocket.remoting.client import RemotingClient
from tests.cluster.controller.controller_fixture import CLUSTER, NAME, SeenBroker
from tests.integration.program import Program
from tests.ports import free_port

SECONDS = 60.0
HEARTBEAT_SECONDS = 0.2


class ControllerProgram:
    """`skyrocket controller` that can be killed, paused and started again."""

    def __init__(self, folder: Path, number: int, store: str) -> None:
        self.port = free_port()
        self.address = f"127.0.0.1:{self.port}"
        self._folder = folder
        self._given = ["controller", "--id", f"n{number}", "--peers", f"n{number}-{self.address}", "--store", store]
        for setting in ("bindAddress=127.0.0.1", "controllerStoreSessionMs=2000", "scanInactiveMasterInterval=500"):
            self._given += ["--set", setting]
        self._opened: contextlib.ExitStack | None = None
        self.program: Program | None = None

    def start(self) -> None:
        self._opened = contextlib.ExitStack()
        self.program = self._opened.enter_context(Program(*self._given, home=self._folder))
        self.program.await_line("boot success")

    def kill(self) -> None:
        """kill -9."""
        if self._opened is not None:
            self._opened.close()
            self._opened = None

    def pause(self) -> None:
        """It stands still, and does not know."""
        assert self.program is not None
        self.program.process.send_signal(signal.SIGSTOP)

    def go_on(self) -> None:
        assert self.program is not None
        self.program.process.send_signal(signal.SIGCONT)


@contextlib.contextmanager
def three_controllers(folder: Path, store: str) -> Iterator[list[ControllerProgram]]:
    controllers = [ControllerProgram(folder, number, store) for number in range(3)]
    try:
        for each in controllers:
            each.start()
        yield controllers
    finally:
        for each in controllers:
            each.kill()


class BeatingSet:
    """Brokers that beat to all controllers, and whose master keeps moving its set: every answer is remembered."""

    def __init__(self, brokers: Sequence[SeenBroker], addresses: Sequence[str]) -> None:
        self.brokers = brokers
        self.addresses = addresses
        self.masters: dict[int, int] = {}  # by epoch
        self.client = RemotingClient()

    async def leader(self) -> str:
        """The controller that says that it leads, and is right: it decides."""
        async with asyncio.timeout(SECONDS):
            while True:
                for address in self.addresses:
                    with contextlib.suppress(SkyrocketError):
                        metadata = await self.client.call(address, GetControllerMetadata(), timeout_seconds=1.0)
                        if metadata.header.is_leader:
                            await self.client.call(address, GetReplicaInfo(broker_name=NAME), timeout_seconds=1.0)
                            return address
                await asyncio.sleep(0.05)

    async def until_follows(self, address: str) -> None:
        """Wait until a controller leads no more."""
        async with asyncio.timeout(SECONDS):
            while (await self.client.call(address, GetControllerMetadata())).header.is_leader:
                await asyncio.sleep(0.05)

    async def info(self) -> tuple[GetReplicaInfoAnswer, SyncStateSet]:
        """What the leader knows of the set."""
        async with asyncio.timeout(SECONDS):
            while True:
                with contextlib.suppress(SkyrocketError):
                    reply = await self.client.call(await self.leader(), GetReplicaInfo(broker_name=NAME))
                    return reply.header, SyncStateSet.decode(reply.body)
                await asyncio.sleep(0.05)

    async def all_in_sync(self) -> None:
        """The master takes all replicas into its set, as it does when they follow."""
        deadline = time.monotonic() + SECONDS
        while True:
            header, known = await self.info()
            if len(known.broker_ids) == len(self.brokers):
                return
            assert time.monotonic() < deadline, f"the set is {known}, its master {header}"
            if header.master_broker_id is None or header.master_epoch is None:
                await asyncio.sleep(0.1)
                continue
            wanted = SyncStateSet(tuple(each.broker_id for each in self.brokers), known.epoch)
            request = AlterSyncStateSet(
                broker_name=NAME, master_broker_id=header.master_broker_id, master_epoch=header.master_epoch
            )
            with contextlib.suppress(SkyrocketError):
                await self.client.call(await self.leader(), request, wanted.encode())

    async def move(self) -> int:
        """An operator gives the lead to the next replica; the epoch in which it has it."""
        async with asyncio.timeout(SECONDS):
            while True:
                await self.all_in_sync()
                header, _ = await self.info()
                assert header.master_epoch is not None
                ids = sorted(each.broker_id for each in self.brokers)
                after = ids[(ids.index(header.master_broker_id or ids[0]) + 1) % len(ids)]
                request = ElectMaster(cluster_name=CLUSTER, broker_name=NAME, broker_id=after, designate_elect=True)
                with contextlib.suppress(SkyrocketError):
                    reply = await self.client.call(await self.leader(), request)
                    self.check_answer(reply.header.master_epoch, reply.header.master_broker_id)
                    assert reply.header.master_epoch is not None
                    return reply.header.master_epoch

    def check_answer(self, epoch: int | None, master: int | None) -> None:
        """No epoch has two masters, whoever says so."""
        if epoch is not None and master is not None:
            assert self.masters.setdefault(epoch, master) == master, f"epoch {epoch} has two masters"

    def check_notices(self) -> None:
        for broker in self.brokers:
            for header, _ in broker.roles:
                self.check_answer(header.master_epoch, header.master_broker_id)


@contextlib.asynccontextmanager
async def beating_set(addresses: Sequence[str], size: int = 3) -> AsyncIterator[BeatingSet]:
    """With ids, and a master."""
    async with contextlib.AsyncExitStack() as opened:
        brokers = [await opened.enter_async_context(SeenBroker(*addresses)) for _ in range(size)]
        alive = BeatingSet(brokers, addresses)
        opened.push_async_callback(alive.client.close)
        beats = [asyncio.create_task(_beat(broker, address)) for broker in brokers for address in addresses]
        opened.callback(lambda: [beat.cancel() for beat in beats])
        for broker in brokers:
            broker.controllers = (await _any_leader(alive, addresses),)
            await broker.get_id()
        await brokers[0].become_master()
        yield alive
        for beat in beats:
            beat.cancel()
        await asyncio.gather(*beats, return_exceptions=True)


async def _any_leader(alive: BeatingSet, addresses: Sequence[str]) -> str:
    async with asyncio.timeout(SECONDS):
        while True:
            for address in addresses:
                if (await alive.client.call(address, GetControllerMetadata())).header.is_leader:
                    return address
            await asyncio.sleep(0.05)


async def _beat(broker: SeenBroker, address: str) -> None:
    while True:
        if broker.broker_id:
            with contextlib.suppress(SkyrocketError):
                await broker.beat_to(address, epoch=1, max_offset=1, heartbeat_timeout_millis=5000)
        await asyncio.sleep(HEARTBEAT_SECONDS)
