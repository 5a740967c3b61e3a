"""The two RocketMQs: Apache's, as two Java processes, and ours, as one; the same .conf for both brokers."""

import contextlib
import os
import socket
import subprocess
import sys
import time
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

from tests.interop.apache import Apache

import skyrocket
from bench.load.own_server import WORK
from bench.peers.processes import await_ready, folder, free_ports, listens, process
from bench.peers.rocketmq_client import java_command
from skyrocket.protocol.codes import RequestCode
from skyrocket.protocol.command import RemotingCommand
from skyrocket.protocol.frames import encode

BROKER_NAME = "bench-broker"
# What RocketMQ's runbroker.sh gives, with a heap for a machine of this size, and without -XX:+AlwaysPreTouch, which
# would take the whole heap at once.
BROKER_FLAGS = (
    *("-server", "-Xms1g", "-Xmx1g", "-XX:+UseG1GC", "-XX:G1HeapRegionSize=16m", "-XX:G1ReservePercent=25"),
    *("-XX:InitiatingHeapOccupancyPercent=30", "-XX:SoftRefLRUPolicyMSPerMB=0", "-XX:-OmitStackTraceInFastThrow"),
    *("-XX:MaxDirectMemorySize=1g", "-XX:-UseLargePages"),
)
NAME_SERVER_FLAGS = ("-server", "-Xms256m", "-Xmx256m")


@dataclass(frozen=True)
class Server:
    """A broker that its name server knows."""

    name_server: str
    broker: tuple[str, int]
    pids: list[int]  # whose CPU and memory count
    seconds_to_ready: float


@contextlib.contextmanager
def apache_server(apache: Apache, work: Path = WORK) -> Iterator[Server]:
    """Name server, then broker. Only the broker's time to ready, CPU and memory count: to Apache's advantage."""
    with folder(work, "apache-") as home, contextlib.ExitStack() as stack:
        names, broker = free_ports(2)
        (home / "namesrv.conf").write_text(f"listenPort={names}\n")
        command = java_command(apache.classpath, home, NAME_SERVER_FLAGS, "org.apache.rocketmq.namesrv.NamesrvStartup")
        first = stack.enter_context(process([*command, "-c", str(home / "namesrv.conf")], home, "namesrv"))
        await_ready(first, home / "namesrv.log", lambda: listens(names))
        conf = _broker_conf(home, names, broker)
        began = time.monotonic()
        command = java_command(apache.classpath, home, BROKER_FLAGS, "org.apache.rocketmq.broker.BrokerStartup")
        second = stack.enter_context(process([*command, "-c", str(conf)], home, "broker"))
        await_ready(second, home / "broker.log", lambda: _knows_broker(names) and listens(broker))
        yield Server(f"127.0.0.1:{names}", ("127.0.0.1", broker), [second.pid], time.monotonic() - began)


@contextlib.contextmanager
def our_server(settings: Sequence[str] = (), work: Path = WORK) -> Iterator[Server]:
    """`skyrocket standalone`, name server included in all figures; `settings` come after the .conf."""
    with folder(work, "skyrocket-") as home:
        names, broker = free_ports(2)
        conf = _broker_conf(home, names, broker)
        command = [
            sys.executable,
            "-m",
            "skyrocket",
            "standalone",
            "--no-console",
            "-c",
            str(conf),
            "--namesrv-port",
            str(names),
        ]
        command += [part for setting in settings for part in ("--set", setting)]
        environment = _with_bytecode(home)
        began = time.monotonic()
        with process(command, home, "skyrocket", environment) as running:
            await_ready(running, home / "skyrocket.log", lambda: _knows_broker(names) and listens(broker))
            ready = time.monotonic() - began
            yield Server(f"127.0.0.1:{names}", ("127.0.0.1", broker), [running.pid], ready)


def _with_bytecode(home: Path) -> dict[str, str]:
    """The environment of a Python whose modules are compiled, as those of an installed package are."""
    environment = {"PYTHONDONTWRITEBYTECODE": "", "PYTHONPYCACHEPREFIX": str(home / "bytecode")}
    package = str(Path(skyrocket.__file__).parent)
    for arguments in (
        ["-m", "compileall", "-q", package],
        ["-c", "import skyrocket.cli.standalone, skyrocket.broker.broker"],
    ):
        subprocess.run([sys.executable, *arguments], env={**os.environ, **environment}, check=True, timeout=120)
    return environment


def _broker_conf(home: Path, name_server_port: int, port: int) -> Path:
    settings = {
        "brokerClusterName": "DefaultCluster",
        "brokerName": BROKER_NAME,
        "brokerId": 0,
        "brokerIP1": "127.0.0.1",
        "namesrvAddr": f"127.0.0.1:{name_server_port}",
        "listenPort": port,
        "brokerRole": "ASYNC_MASTER",
        "flushDiskType": "ASYNC_FLUSH",
        "autoCreateTopicEnable": "true",
        "storePathRootDir": home / "store",
        "storePathCommitLog": home / "store" / "commitlog",
        "diskMaxUsedSpaceRatio": 95,
    }
    conf = home / "broker.conf"
    conf.write_text("".join(f"{key}={value}\n" for key, value in settings.items()))
    return conf


def _knows_broker(name_server_port: int) -> bool:
    """Whether the name server lists the broker: from then on clients find it."""
    with contextlib.suppress(OSError), socket.create_connection(("127.0.0.1", name_server_port), timeout=1) as names:
        names.sendall(encode(RemotingCommand(RequestCode.GET_BROKER_CLUSTER_INFO, 1)))
        data = b""
        while len(data) < 4 or len(data) < 4 + int.from_bytes(data[:4], "big"):
            chunk = names.recv(65536)
            if not chunk:
                return False
            data += chunk
        return BROKER_NAME.encode() in data
    return False
