"""A master and its slave as processes, ours and Apache's, and what they say of each other."""

import asyncio
import contextlib
import sys
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from tests.interop.apache import Apache

from bench.load import server_usage
from bench.peers.processes import await_ready, free_ports, listens, process
from bench.peers.rocketmq_client import java_command
from bench.peers.rocketmq_servers import BROKER_FLAGS
from skyrocket.protocol.bodies.replication import HaStatus
from skyrocket.protocol.errors import RequestError
from skyrocket.protocol.requests.admin_broker import GetBrokerHaStatus
from skyrocket.remoting.client import RemotingClient
from skyrocket.remoting.errors import RemotingError

ALONE, ASYNC, SYNC = "alone", "asynchronous slave", "synchronous slave"
SETUPS: Final = (ALONE, ASYNC, SYNC)
FOLLOW_SECONDS: Final = 120.0
_LOOK_SECONDS: Final = 0.1  # each look costs a connection: more would disturb what is measured


class NotFollowed(Exception):
    """A slave did not come as far as it should in time."""


@dataclass(frozen=True)
class Broker:
    """A broker that listens."""

    port: int
    pid: int

    @property
    def address(self) -> str:
        return f"127.0.0.1:{self.port}"

    def status(self) -> HaStatus:
        async def ask() -> HaStatus:
            async with RemotingClient() as client:
                reply = await client.call(self.address, GetBrokerHaStatus(), timeout_seconds=20)
                return HaStatus.decode(bytes(reply.body))

        return asyncio.run(ask())

    def in_sync_slaves(self) -> int:
        """As the master says; 0 while it says nothing."""
        with contextlib.suppress(RequestError, RemotingError):
            return self.status().in_sync_slaves
        return 0

    def copied(self) -> int:
        """How far a slave's log reaches."""
        client = self.status().client
        assert client is not None
        return client.max_offset

    def cpu_seconds(self) -> float:
        return server_usage.cpu_seconds([self.pid])


@dataclass(frozen=True)
class Place:
    """Where brokers of one set live and who tells them of each other."""

    folder: Path
    name_server: str


@contextlib.contextmanager
def name_server(folder: Path) -> Iterator[Place]:
    """Ours, for the brokers of both makers."""
    (port,) = free_ports(1)
    command = [sys.executable, "-m", "skyrocket", "namesrv", "--listen-port", str(port), "--bind-address", "127.0.0.1"]
    with process(command, folder, "namesrv") as running:
        await_ready(running, folder / "namesrv.log", lambda: listens(port))
        yield Place(folder, f"127.0.0.1:{port}")


def _settings(place: Place, name: str, role: str, port: int, ha_port: int) -> dict[str, object]:
    store = place.folder / name / "store"
    return {
        "brokerClusterName": "DefaultCluster",
        "brokerName": "set",
        "brokerId": int(role == "SLAVE"),
        "brokerRole": role,
        "brokerIP1": "127.0.0.1",
        "brokerIP2": "127.0.0.1",
        "namesrvAddr": place.name_server,
        "listenPort": port,
        "haListenPort": ha_port,
        "flushDiskType": "ASYNC_FLUSH",
        "slaveReadEnable": "true",
        "storePathRootDir": store,
        "storePathCommitLog": store / "commitlog",
        "diskMaxUsedSpaceRatio": 95,
    }


@contextlib.contextmanager
def broker(
    place: Place, name: str, role: str, apache: Apache | None = None, settings: dict[str, object] | None = None
) -> Iterator[Broker]:
    """One broker: ours, or Apache's where it is given; both read the same .conf."""
    home = place.folder / name
    home.mkdir(exist_ok=True)
    port, ha_port = free_ports(2)
    conf = home / "broker.conf"
    given = _settings(place, name, role, port, ha_port) | (settings or {})
    conf.write_text("".join(f"{key}={value}\n" for key, value in given.items()))
    if apache is None:
        command = [sys.executable, "-m", "skyrocket", "broker", "-c", str(conf)]
    else:
        main_class = "org.apache.rocketmq.broker.BrokerStartup"
        command = [*java_command(apache.classpath, home, BROKER_FLAGS, main_class), "-c", str(conf)]
    with process(command, home, "broker") as running:
        await_ready(running, home / "broker.log", lambda: listens(port))
        yield Broker(port, running.pid)


@contextlib.contextmanager
def brokers(
    place: Place, setup: str, apache: Apache | None = None, settings: dict[str, object] | None = None
) -> Iterator[list[Broker]]:
    """A master, and unless it is alone its slave, which follows."""
    role = "SYNC_MASTER" if setup == SYNC else "ASYNC_MASTER"
    more = dict(settings or {})
    if setup == SYNC:
        more["inSyncReplicas"] = 2  # RocketMQ 5 waits for nobody without it
    with contextlib.ExitStack() as stack:
        started = [stack.enter_context(broker(place, "master", role, apache, more))]
        if setup != ALONE:
            started.append(stack.enter_context(broker(place, "slave", "SLAVE", apache, settings)))
            wait_for(started[0].in_sync_slaves, "a slave is in sync")
        yield started


def wait_for(condition: Callable[[], object], what: str, seconds: float = FOLLOW_SECONDS) -> float:
    """How long it took; raises NotFollowed."""
    began = time.monotonic()
    while not condition():
        if time.monotonic() - began > seconds:
            raise NotFollowed(f"not within {seconds:.0f} s: {what}")
        time.sleep(_LOOK_SECONDS)
    return time.monotonic() - began
