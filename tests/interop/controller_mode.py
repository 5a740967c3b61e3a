"""Replica sets of Apache's brokers under our controller, as processes."""

import asyncio
import contextlib
import os
import signal
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

from skyrocket.config.sections import StoreConfig
from skyrocket.protocol.bodies.controller import BROKER_NAMES, BrokerReplicasInfo, ReplicasInfo
from skyrocket.protocol.errors import RequestError
from skyrocket.protocol.requests.controller import GetSyncStateData
from skyrocket.remoting.client import RemotingClient
from skyrocket.remoting.errors import RemotingError
from tests.integration.program import Program
from tests.interop.apache import Apache
from tests.interop.rocketmq_broker import await_port, place_log_settings, process_of
from tests.interop.rocketmq_store import settings_for
from tests.ports import free_port

CLUSTER, BROKER = "DefaultCluster", "broker-a"
FILES = StoreConfig(commit_log_file_size=1 << 20, index_slots=1000, index_entries=4000)
SECONDS = 120.0


@contextlib.contextmanager
def our_controller(folder: Path, *settings: str, number: int = 0, store: str | None = None) -> Iterator[str]:
    """Its address."""
    port = free_port()
    given = ["--id", f"n{number}", "--peers", f"n{number}-127.0.0.1:{port}"]
    given += ["--store", store or f"file:{folder / 'replica-sets'}", "--verbose"]
    for each in ("bindAddress=127.0.0.1", *settings):
        given += ["--set", each]
    with Program("controller", *given, home=folder) as program:
        program.await_line("boot success")
        yield f"127.0.0.1:{port}"
        assert program.stop() == 0, "\n".join(program.lines)


class ApacheReplica:
    """One broker of the set on a store of its own; it can be killed and started again."""

    def __init__(self, apache: Apache, folder: Path, number: int, names: str, controllers: str) -> None:
        self._apache = apache
        self._home = folder / f"home-{number}"
        self._home.mkdir()
        place_log_settings(self._home)
        self.port = free_port()
        self.store = folder / f"store-{number}"
        self._settings: dict[str, Any] = {
            "brokerClusterName": CLUSTER,
            "brokerName": BROKER,
            "brokerIP1": "127.0.0.1",
            "brokerIP2": "127.0.0.1",
            "namesrvAddr": names,
            "listenPort": self.port,
            "haListenPort": self.port + 1,
            "storePathRootDir": self.store,
            "storePathCommitLog": self.store / "commitlog",
            "diskMaxUsedSpaceRatio": 95,
            "enableControllerMode": "true",
            "controllerAddr": controllers,
            "allAckInSyncStateSet": "true",
            **settings_for(apache, FILES),
        }
        self._running: contextlib.ExitStack | None = None
        self._pid = 0

    @property
    def address(self) -> str:
        return f"127.0.0.1:{self.port}"

    def start(self) -> None:
        self._running = contextlib.ExitStack()
        main_class = "org.apache.rocketmq.broker.BrokerStartup"
        process = self._running.enter_context(
            process_of(self._apache, self._home, "broker", main_class, self._settings)
        )
        self._pid = process.pid
        await_port(process, self.port, self._home / "broker.log")

    def kill(self) -> None:
        """kill -9."""
        os.killpg(self._pid, signal.SIGKILL)
        self.stop()

    def stop(self) -> None:
        if self._running is not None:
            self._running.close()
            self._running = None


@contextlib.contextmanager
def apache_replicas(
    apache: Apache, folder: Path, count: int, names: str, controllers: str
) -> Iterator[list[ApacheReplica]]:
    """Started one after the other, so that the first is the first master."""
    replicas = [ApacheReplica(apache, folder, number, names, controllers) for number in range(count)]
    try:
        for replica in replicas:
            replica.start()
        yield replicas
    finally:
        for replica in replicas:
            replica.stop()


async def replicas_info(client: RemotingClient, controller: str) -> ReplicasInfo:
    """The set as the controller knows it; an empty one while it does not."""
    try:
        reply = await client.call(controller, GetSyncStateData(), BROKER_NAMES.encode((BROKER,)))
    except (RequestError, RemotingError):
        return ReplicasInfo()
    return BrokerReplicasInfo.decode(reply.body).replicas.get(BROKER, ReplicasInfo())


async def until_set(
    client: RemotingClient, controller: str, condition: Callable[[ReplicasInfo], bool], what: str
) -> ReplicasInfo:
    """Wait until the set is as wanted."""
    deadline = time.monotonic() + SECONDS
    while not condition(info := await replicas_info(client, controller)):
        assert time.monotonic() < deadline, f"not within {SECONDS:.0f} s: {what}; the set is {info}"
        await asyncio.sleep(0.2)
    return info


def in_sync(info: ReplicasInfo) -> int:
    return len(info.in_sync_replicas)
