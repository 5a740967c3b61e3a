"""A whole Apache RocketMQ, name server and broker, as processes on a store directory."""

import contextlib
import json
import os
import shutil
import signal
import socket
import subprocess
import tempfile
import time
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from skyrocket.config.sections import StoreConfig
from tests.interop.apache import JAVA_SOURCES, Apache
from tests.interop.rocketmq_store import Contents, complaints_in, settings_for
from tests.ports import free_port

START_TIMEOUT_S = 180
STOP_TIMEOUT_S = 40
CLIENT_TIMEOUT_S = 90


@dataclass(frozen=True)
class RunningBroker:
    """A broker that answers on its port."""

    apache: Apache
    name_server: str

    def exchange(self, topics: list[str], send: list[dict[str, Any]]) -> Contents:
        """Send with RocketMQ's client, then pull everything in the topics."""
        stdin = json.dumps({"topics": topics, "send": send})
        done = self.apache.run("BrokerClient", self.name_server, stdin=stdin, timeout_s=CLIENT_TIMEOUT_S)
        if done.exit_code != 0:
            raise AssertionError("RocketMQ's client failed:\n" + "\n".join(complaints_in(done.stderr)[-60:]))
        return Contents([json.loads(line) for line in done.stdout.splitlines()], done.stderr)


@contextlib.contextmanager
def running_broker(
    apache: Apache, store: Path, config: StoreConfig, more_settings: Mapping[str, str] | None = None
) -> Iterator[RunningBroker]:
    """Start both processes, and stop them as an operator would: SIGTERM, then the clean shutdown."""
    with tempfile.TemporaryDirectory(prefix="rocketmq-home-") as scratch:
        home = Path(scratch)
        place_log_settings(home)
        name_server_port, broker_port = free_port(), free_port()
        settings = {
            "brokerClusterName": "DefaultCluster",
            "brokerName": "broker-a",
            "brokerIP1": "127.0.0.1",
            "namesrvAddr": f"127.0.0.1:{name_server_port}",
            "listenPort": broker_port,
            "haListenPort": broker_port + 1,
            "storePathRootDir": store,
            "storePathCommitLog": store / "commitlog",
            "fileReservedTime": 720_000,
            "diskMaxUsedSpaceRatio": 95,
            **settings_for(apache, config),
            **(more_settings or {}),
        }
        name_server = process_of(
            apache, home, "namesrv", "org.apache.rocketmq.namesrv.NamesrvStartup", {"listenPort": name_server_port}
        )
        broker = process_of(apache, home, "broker", "org.apache.rocketmq.broker.BrokerStartup", settings)
        with name_server as first, broker as second:
            await_port(first, name_server_port, home / "namesrv.log")
            await_port(second, broker_port, home / "broker.log")
            yield RunningBroker(apache, f"127.0.0.1:{name_server_port}")


@contextlib.contextmanager
def process_of(
    apache: Apache, home: Path, name: str, main_class: str, settings: dict[str, Any]
) -> Iterator["subprocess.Popen[bytes]"]:
    conf = home / f"{name}.conf"
    conf.write_text("".join(f"{key}={value}\n" for key, value in settings.items()))
    with open(home / f"{name}.log", "wb") as log:
        process = subprocess.Popen(
            apache.command(main_class, "-c", str(conf), home=home),
            stdin=subprocess.DEVNULL,
            stdout=log,
            stderr=subprocess.STDOUT,
            env={**os.environ, "ROCKETMQ_HOME": str(home)},
            start_new_session=True,
        )
    try:
        yield process
        process.send_signal(signal.SIGTERM)
        process.wait(STOP_TIMEOUT_S)
    finally:
        with contextlib.suppress(ProcessLookupError):
            os.killpg(process.pid, signal.SIGKILL)
        process.wait()


def await_port(process: "subprocess.Popen[bytes]", port: int, log: Path) -> None:
    deadline = time.monotonic() + START_TIMEOUT_S
    while time.monotonic() < deadline and process.poll() is None:
        with contextlib.suppress(OSError), socket.create_connection(("127.0.0.1", port), timeout=1):
            return
        time.sleep(0.1)
    complaints = complaints_in(log.read_text(errors="replace"))
    raise AssertionError(f"{log.stem} does not listen on port {port}:\n" + "\n".join(complaints[:60]))


def place_log_settings(home: Path) -> None:
    """4.9 insists on files of its own below ROCKETMQ_HOME."""
    (home / "conf").mkdir()
    for name in ("logback_namesrv.xml", "logback_broker.xml"):
        shutil.copy(JAVA_SOURCES / "logback.xml", home / "conf" / name)
