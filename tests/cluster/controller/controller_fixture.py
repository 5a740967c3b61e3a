"""Controllers on free ports, and brokers that exist as far as a controller can see."""

import contextlib
from collections.abc import AsyncIterator
from dataclasses import replace
from pathlib import Path
from typing import Any

from skyrocket.cli.program.disk import DiskWithDirectories
from skyrocket.clock import Clock
from skyrocket.config.sections import ControllerConfig
from skyrocket.controller.controller import Controller
from skyrocket.controller.engine_choice import engine_of
from skyrocket.controller.engines.engine import Engine
from skyrocket.protocol.bodies.controller import SyncStateSet
from skyrocket.protocol.requests.broker_registration import BrokerHeartbeat
from skyrocket.protocol.requests.controller import (
    AlterSyncStateSet,
    ApplyBrokerId,
    ElectMaster,
    GetNextBrokerId,
    NotifyBrokerRoleChanged,
)
from skyrocket.remoting.client import RemotingClient
from skyrocket.remoting.peer import Peer
from skyrocket.remoting.router import Router
from skyrocket.remoting.server import RemotingServer
from skyrocket.store.config_file import ConfigFile
from skyrocket.testing.clock import FakeClock

CLUSTER, NAME = "DefaultCluster", "broker-a"


def listen(controller: Controller, clock: FakeClock, seconds: int) -> None:
    """Time passes for a controller that does not stand still."""
    for _ in range(seconds * 2):
        clock.advance(seconds=0.5)
        controller.machine.attend(clock.monotonic())


@contextlib.asynccontextmanager
async def running(
    folder: Path,
    config: ControllerConfig | None = None,
    *,
    number: int = 0,
    engine: Engine | None = None,
    clock: Clock | None = None,
) -> AsyncIterator[tuple[Controller, str]]:
    """A controller whose files are in `folder`, and its address."""
    chosen = replace(
        config or ControllerConfig(store=f"file:{folder / 'replica-sets'}"),
        self_id=f"n{number}",
        peers=f"n{number}-127.0.0.1:0",
        bind_address="127.0.0.1",
        config_store_path=str(folder / f"controller-{number}.properties"),
    )
    disk = DiskWithDirectories()
    settings_file = ConfigFile(disk, chosen.config_store_path, bytes, bytes)
    async with Controller(chosen, engine or engine_of(chosen, disk), settings_file, clock=clock) as controller:
        yield controller, str(await controller.start())


class SeenBroker:
    """A broker with a connection of its own to each controller; it hears of roles, and stores nothing."""

    def __init__(self, *controllers: str) -> None:
        self.controllers = controllers
        self.client = RemotingClient()
        self.roles: list[tuple[NotifyBrokerRoleChanged, SyncStateSet]] = []
        self.address = ""
        self.broker_id = 0
        router = Router()
        router.serve(NotifyBrokerRoleChanged, self._role_changed)
        self._server = RemotingServer(router)

    def _role_changed(self, _: Peer, header: NotifyBrokerRoleChanged, body: SyncStateSet) -> None:
        self.roles.append((header, body))

    @property
    def epoch(self) -> int | None:
        """The newest of which it was told."""
        return self.roles[-1][0].master_epoch if self.roles else None

    async def __aenter__(self) -> "SeenBroker":
        self.address = str(await self._server.listen("127.0.0.1", 0))
        return self

    async def __aexit__(self, *_: object) -> None:
        await self.client.close()
        await self._server.stop()

    async def get_id(self) -> None:
        """The first start of a broker."""
        leader = self.controllers[0]
        reply = await self.client.call(leader, GetNextBrokerId(cluster_name=CLUSTER, broker_name=NAME))
        assert reply.header.next_broker_id is not None
        self.broker_id = reply.header.next_broker_id
        request = ApplyBrokerId(
            cluster_name=CLUSTER,
            broker_name=NAME,
            applied_broker_id=self.broker_id,
            register_check_code=f"{self.address};1",
        )
        await self.client.call(leader, request)

    async def beat(self, **said: Any) -> None:
        """A heartbeat to every controller."""
        for controller in self.controllers:
            await self.beat_to(controller, **said)

    async def beat_to(self, controller: str, **said: Any) -> None:
        """A heartbeat; `said` is epoch, max_offset, heartbeat_timeout_millis, election_priority."""
        header = BrokerHeartbeat(
            cluster_name=CLUSTER,
            broker_addr=self.address,
            broker_name=NAME,
            broker_id=self.broker_id,
            **said,
        )
        reply = await self.client.call(controller, header)
        assert reply.remark == "Heart beat success"

    async def become_master(self) -> None:
        request = ElectMaster(cluster_name=CLUSTER, broker_name=NAME, broker_id=self.broker_id)
        await self.client.call(self.controllers[0], request)

    async def alter(self, *broker_ids: int, master_epoch: int = 1, epoch: int = 1) -> None:
        request = AlterSyncStateSet(broker_name=NAME, master_broker_id=self.broker_id, master_epoch=master_epoch)
        await self.client.call(self.controllers[0], request, SyncStateSet(broker_ids, epoch).encode())


@contextlib.asynccontextmanager
async def replica_set(*controllers: str, size: int = 2) -> AsyncIterator[list[SeenBroker]]:
    """Living brokers that are all in sync; the first is master, in epoch 1."""
    async with contextlib.AsyncExitStack() as opened:
        brokers = [await opened.enter_async_context(SeenBroker(*controllers)) for _ in range(size)]
        for broker in brokers:
            await broker.get_id()
            await broker.beat(epoch=1, max_offset=0)
        await brokers[0].become_master()
        if size > 1:
            await brokers[0].alter(*(broker.broker_id for broker in brokers))
        yield brokers
