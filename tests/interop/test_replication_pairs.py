"""Mixed sets: Apache's master with our slave, and ours with Apache's; logs must end up identical byte by byte."""

import asyncio
import contextlib
import random
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from skyrocket.client import Message, Producer
from skyrocket.client.core.settings import ClientSettings
from skyrocket.config.sections import StoreConfig
from skyrocket.protocol.bodies.tables import KvTable
from skyrocket.protocol.errors import RequestError
from skyrocket.protocol.requests.admin_broker import GetBrokerRuntimeInfo
from skyrocket.remoting.client import RemotingClient
from skyrocket.remoting.errors import RemotingError
from tests.integration.program import Program
from tests.interop.apache import Apache
from tests.interop.rocketmq_broker import await_port, place_log_settings, process_of
from tests.interop.rocketmq_store import settings_for
from tests.interop.whole_queue import messages_at
from tests.ports import free_port

pytestmark = [pytest.mark.interop, pytest.mark.slow, pytest.mark.timeout(400)]

FILES = StoreConfig(commit_log_file_size=1 << 20, index_slots=1000, index_entries=4000)
TOPIC, QUEUES, COUNT = "Orders", 4, 3000
SECONDS = 120.0
BOOT = r"The broker\[broker-a, (\S+)\] boot success"


def our_program(folder: Path, name: str, role: str, names: str, *, verbose: bool = False) -> Program:
    """A broker that is about to start."""
    given = ["broker", "-n", names, "--listen-port", str(free_port()), "--broker-ip", "127.0.0.1"]
    given += ["--verbose"] if verbose else []
    settings = {
        "brokerRole": role,
        "brokerId": int(role == "SLAVE"),
        "slaveReadEnable": "true",
        "mappedFileSizeCommitLog": FILES.commit_log_file_size,
        "maxHashSlotNum": FILES.index_slots,
        "maxIndexNum": FILES.index_entries,
        "registerNameServerPeriod": 10_000,
    }
    for key, value in settings.items():
        given += ["--set", f"{key}={value}"]
    return Program(*given, "--store", str(folder / name), home=folder)


@contextlib.contextmanager
def our_broker(folder: Path, name: str, role: str, names: str) -> Iterator[str]:
    """Its address; a slave follows: Apache's master gives one that comes late no more than its newest file."""
    with our_program(folder, name, role, names, verbose=role == "SLAVE") as program:
        address = program.await_line(BOOT)[1]
        if role == "SLAVE":
            program.await_line("following master=")
        yield address
        assert program.stop() == 0


@contextlib.contextmanager
def apaches_broker(apache: Apache, folder: Path, name: str, role: str, names: str) -> Iterator[str]:
    port, store = free_port(), folder / name
    home = folder / f"{name}-home-{port}"
    home.mkdir()
    place_log_settings(home)
    settings = {
        "brokerName": "broker-a",
        "brokerIP1": "127.0.0.1",
        "brokerIP2": "127.0.0.1",
        "brokerId": int(role == "SLAVE"),
        "brokerRole": role,
        "namesrvAddr": names,
        "listenPort": port,
        "haListenPort": port + 1,
        "storePathRootDir": store,
        "storePathCommitLog": store / "commitlog",
        "registerNameServerPeriod": 10_000,
        "slaveReadEnable": "true",
        "diskMaxUsedSpaceRatio": 95,
        **settings_for(apache, FILES),
    }
    with process_of(apache, home, "broker", "org.apache.rocketmq.broker.BrokerStartup", settings) as process:
        await_port(process, port, home / "broker.log")
        yield f"127.0.0.1:{port}"


@contextlib.contextmanager
def our_name_server(folder: Path) -> Iterator[str]:
    port = free_port()
    with Program("namesrv", "--listen-port", str(port), "--bind-address", "127.0.0.1", home=folder) as program:
        program.await_line(str(port))
        yield f"127.0.0.1:{port}"


async def log_end(client: RemotingClient, broker: str) -> int:
    reply = await client.call(broker, GetBrokerRuntimeInfo(), timeout_seconds=10)
    return int(KvTable.decode(bytes(reply.body)).table["commitLogMaxOffset"])


async def send(names: str, first: int, count: int) -> None:
    """Messages of many sizes, some with keys and tags, some delayed, from several tasks."""
    sizes = random.Random(first)
    async with Producer("Shop", client=ClientSettings(name_servers=names)) as producer:
        for number in range(first, first + count, 50):
            await asyncio.gather(
                *(
                    producer.send(
                        Message(
                            TOPIC,
                            b"%d " % each + bytes(sizes.randrange(1500)),
                            tags=f"t{each % 3}",
                            keys=f"k{each}",
                            delay_level=1 if each % 100 == 0 else 0,
                        ),
                        timeout=30,
                    )
                    for each in range(number, number + 50)
                )
            )


async def identical(client: RemotingClient, master: str, slave: str) -> None:
    """Wait until nothing more is written here, and there is the same."""
    async with asyncio.timeout(SECONDS):
        before = (-1, -2)
        while True:
            with contextlib.suppress(RequestError):  # of an Apache broker that has no sample of its rates yet
                ends = (await log_end(client, master), await log_end(client, slave))
                if ends == before and ends[0] == ends[1]:
                    return
                before = ends
            await asyncio.sleep(1.5)


async def numbers_at(client: RemotingClient, broker: str) -> set[int]:
    """The numbers of all messages that a broker gives to consumers."""
    return {
        int(message.body.split(b" ", 1)[0])
        for queue_id in range(QUEUES * 2)
        for message in await messages_at(client, broker, TOPIC, queue_id)
    }


async def served(client: RemotingClient, broker: str, count: int) -> None:
    """A slave serves what it has when it has heard of the topic and its group: up to a minute with Apache's."""
    async with asyncio.timeout(SECONDS):
        while True:
            with contextlib.suppress(RemotingError):
                if len(await numbers_at(client, broker)) == count:
                    return
            await asyncio.sleep(2)


async def _exchange(folder: Path, names: str, master: str, slave: str) -> None:
    async with RemotingClient() as client:
        await send(names, 0, COUNT)
        await identical(client, master, slave)
        await send(names, COUNT, COUNT // 10)
        await identical(client, master, slave)
        assert len(await numbers_at(client, master)) == COUNT + COUNT // 10
        await served(client, slave, COUNT + COUNT // 10)


def assert_identical_logs(folder: Path) -> None:
    """Both have stopped; the command's own words are the reason of a failure."""
    command = [sys.executable, "-m", "skyrocket", "inspect", str(folder / "master"), "--compare", str(folder / "slave")]
    done = subprocess.run([*command, "--strict"], capture_output=True, text=True, timeout=60)
    assert done.returncode == 0, done.stdout + done.stderr


def undecoded_fields(folder: Path) -> list[str]:
    """What Apache's master says of fields that it misses in our slave's requests."""
    logs = [path.read_text(errors="replace") for path in folder.glob("master-home-*/**/*.log")]
    return [line for log in logs for line in log.splitlines() if "Failed field" in line]


@pytest.mark.parametrize("role", ["ASYNC_MASTER", "SYNC_MASTER"])
def test_our_slave_behind_apaches_master(tmp_path: Path, apache: Apache, role: str) -> None:
    with (
        our_name_server(tmp_path) as names,
        apaches_broker(apache, tmp_path, "master", role, names) as master,
        our_broker(tmp_path, "slave", "SLAVE", names) as slave,
    ):
        asyncio.run(_exchange(tmp_path, names, master, slave))
    assert_identical_logs(tmp_path)
    assert undecoded_fields(tmp_path) == []


@pytest.mark.parametrize("role", ["ASYNC_MASTER", "SYNC_MASTER"])
def test_apaches_slave_behind_our_master(tmp_path: Path, apache: Apache, role: str) -> None:
    with (
        our_name_server(tmp_path) as names,
        our_broker(tmp_path, "master", role, names) as master,
        apaches_broker(apache, tmp_path, "slave", "SLAVE", names) as slave,
    ):
        asyncio.run(_exchange(tmp_path, names, master, slave))
    assert_identical_logs(tmp_path)


async def _send_and_follow(names: str, first: int, master: str, slave: str) -> None:
    async with RemotingClient() as client:
        await send(names, first, 500)
        await identical(client, master, slave)


def test_our_slave_goes_on_behind_apaches_master_after_a_kill(tmp_path: Path, apache: Apache) -> None:
    with (
        our_name_server(tmp_path) as names,
        apaches_broker(apache, tmp_path, "master", "ASYNC_MASTER", names) as master,
    ):
        with our_program(tmp_path, "slave", "SLAVE", names, verbose=True) as slave:
            slave.await_line("following master=")
            asyncio.run(send(names, 0, 1000))
            slave.kill()  # with whatever it has received so far
        asyncio.run(send(names, 1000, 500))
        with our_broker(tmp_path, "slave", "SLAVE", names) as slave_address:
            asyncio.run(_send_and_follow(names, 1500, master, slave_address))
    assert_identical_logs(tmp_path)


def test_apaches_slave_goes_on_behind_our_master_after_restarts_of_both(tmp_path: Path, apache: Apache) -> None:
    with our_name_server(tmp_path) as names:
        with our_program(tmp_path, "master", "ASYNC_MASTER", names) as program:
            master = program.await_line(BOOT)[1]
            with apaches_broker(apache, tmp_path, "slave", "SLAVE", names) as slave:
                asyncio.run(_send_and_follow(names, 0, master, slave))
            asyncio.run(send(names, 500, 3000))  # more than a transfer holds at most
            program.kill()
        with (
            our_broker(tmp_path, "master", "ASYNC_MASTER", names) as master,
            apaches_broker(apache, tmp_path, "slave", "SLAVE", names) as slave,
        ):
            asyncio.run(_send_and_follow(names, 3500, master, slave))
    assert_identical_logs(tmp_path)
