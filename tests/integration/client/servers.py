"""The three servers of the client suite: Skyrocket, Apache RocketMQ 5.4.0 and 4.9.7, each as real processes.

`Servers` has a name server and a broker on fixed ports, so that either can be killed and come back.
"""

import asyncio
import contextlib
import functools
import os
import signal
import socket
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Final, Literal

import pytest

from skyrocket.client import Admin
from skyrocket.config.sections import StoreConfig
from tests.interop.apache import Apache, Unavailable, obtain
from tests.interop.rocketmq_broker import place_log_settings
from tests.interop.rocketmq_store import settings_for
from tests.loops import run_bounded
from tests.ports import free_port

OURS: Final = "skyrocket"
KINDS: Final = (OURS, "5.4.0", "4.9.7")

_SLOW = [pytest.mark.slow, pytest.mark.interop]
# Skyrocket's part is in `make test`; Apache's needs Java and is the long mode, `make interop-client`.
SERVER_PARAMETERS: Final = [OURS, pytest.param("5.4.0", marks=_SLOW), pytest.param("4.9.7", marks=_SLOW)]

_START_SECONDS: Final = 60.0
_STOP_SECONDS: Final = 40.0
_MAIN_CLASS = {
    "namesrv": "org.apache.rocketmq.namesrv.NamesrvStartup",
    "broker": "org.apache.rocketmq.broker.BrokerStartup",
}

Part = Literal["namesrv", "broker"]


@functools.cache
def _obtained(version: str) -> Apache | str:
    try:
        return obtain(version)
    except Unavailable as reason:
        return str(reason)


def apache_or_skip(version: str) -> Apache:
    """Apache RocketMQ, or a skip that says what is missing."""
    found = _obtained(version)
    return found if isinstance(found, Apache) else pytest.skip(f"no Apache RocketMQ {version}: {found}")


class Servers:
    """A name server and a broker of one kind, to be ended and started again on the same ports and store."""

    def __init__(self, kind: str, home: Path) -> None:
        self.kind = kind
        self._apache = None if kind == OURS else apache_or_skip(kind)
        self._home = home
        self._ports = {"namesrv": free_port(), "broker": free_port()}
        self.names = f"127.0.0.1:{self._ports['namesrv']}"
        self._running: dict[str, subprocess.Popen[bytes]] = {}
        if self._apache is not None:
            place_log_settings(home)

    def start(self, part: Part) -> None:
        """Start it, and wait until it listens."""
        command = self._our_command(part) if self._apache is None else self._apache_command(part, self._apache)
        with open(self._home / f"{part}.log", "ab") as log:
            process = self._running[part] = subprocess.Popen(
                command,
                stdin=subprocess.DEVNULL,
                stdout=log,
                stderr=subprocess.STDOUT,
                env={**os.environ, "HOME": str(self._home), "ROCKETMQ_HOME": str(self._home)},
                start_new_session=True,
            )
        deadline = time.monotonic() + _START_SECONDS
        while time.monotonic() < deadline and process.poll() is None:
            with (
                contextlib.suppress(OSError),
                socket.create_connection(("127.0.0.1", self._ports[part]), timeout=1),
            ):
                return
            time.sleep(0.05)
        raise AssertionError(f"{part} does not listen:\n" + (self._home / f"{part}.log").read_text()[-3000:])

    def end(self, part: Part, how: signal.Signals) -> None:
        """SIGTERM is an operator's stop, SIGKILL a crash."""
        process = self._running.pop(part)
        process.send_signal(how)
        try:
            process.wait(_STOP_SECONDS)
        finally:
            with contextlib.suppress(ProcessLookupError):
                os.killpg(process.pid, signal.SIGKILL)
            process.wait()

    def end_all(self) -> None:
        """Nothing is left running."""
        for part in ("broker", "namesrv"):
            if part in self._running:
                self.end(part, signal.SIGKILL)

    def _our_command(self, part: Part) -> list[str]:
        command = [sys.executable, "-m", "skyrocket", part, "--listen-port", str(self._ports[part])]
        if part == "broker":
            command += ["--namesrv-addr", self.names, "--broker-ip", "127.0.0.1", "--store", str(self._home / "store")]
            command += ["--set", "registerNameServerPeriod=10000"]
        return command

    def _apache_command(self, part: Part, apache: Apache) -> list[str]:
        settings: dict[str, object] = {"listenPort": self._ports[part]}
        if part == "broker":
            store = self._home / "store"
            settings |= {
                "brokerName": "broker-a",
                "brokerIP1": "127.0.0.1",
                "namesrvAddr": self.names,
                "haListenPort": self._ports[part] + 1,
                "storePathRootDir": store,
                "storePathCommitLog": store / "commitlog",
                "registerNameServerPeriod": 10_000,
                "diskMaxUsedSpaceRatio": 95,
                **settings_for(apache, StoreConfig()),
            }
        conf = self._home / f"{part}.conf"
        conf.write_text("".join(f"{key}={value}\n" for key, value in settings.items()))
        return apache.command(_MAIN_CLASS[part], "-c", str(conf), home=self._home)


@contextlib.contextmanager
def running(kind: str, home: Path) -> Iterator[Servers]:
    """Both parts up, and the broker known to the name server."""
    servers = Servers(kind, home)
    try:
        servers.start("namesrv")
        servers.start("broker")
        run_bounded(registered(servers.names), _START_SECONDS)
        yield servers
    finally:
        servers.end_all()


async def registered(names: str) -> None:
    """A broker listens before the name server knows it."""
    async with Admin(names) as admin:
        while not (await admin.cluster()).brokers:
            await asyncio.sleep(0.2)
