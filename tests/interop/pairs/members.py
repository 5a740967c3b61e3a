"""Brokers of a mixed set, ours and Apache's: each has its port and its store, is stopped or killed and comes back."""

import contextlib
import os
import signal
import subprocess
from collections.abc import Mapping
from pathlib import Path
from typing import Protocol, Self

from skyrocket.config.sections import StoreConfig
from tests.integration.program import Program
from tests.interop.apache import Apache
from tests.interop.rocketmq_broker import await_port, place_log_settings, process_of
from tests.interop.rocketmq_store import settings_for
from tests.ports import free_port

# Several log files and many index files; a record of 4 MiB must fit.
FILES = StoreConfig(commit_log_file_size=32 << 20, index_slots=50_000, index_entries=200_000)
STARTED = r"The broker\[broker-\w, (\S+)\] boot success"


def _common(role: str) -> dict[str, object]:
    """What both makers read."""
    return {
        "brokerRole": role,
        "brokerId": int(role == "SLAVE"),
        "slaveReadEnable": "true",
        "registerNameServerPeriod": 10_000,
        "transactionTimeOut": 3_000,
        "transactionCheckInterval": 3_000,
        "diskMaxUsedSpaceRatio": 95,
        "mappedFileSizeCommitLog": FILES.commit_log_file_size,
        "maxHashSlotNum": FILES.index_slots,
        "maxIndexNum": FILES.index_entries,
    }


class Member(Protocol):
    """A broker that can be ended in two ways and started again."""

    address: str
    store: Path

    def start(self) -> None:
        """On the same port and store; returns when it listens."""

    def stop(self) -> None:
        """As an operator does."""

    def freeze(self) -> None:
        """SIGSTOP: it says nothing any more, but its connections stay. `kill` must follow."""

    def kill(self) -> None:
        """kill -9; nothing happens when it does not run."""


class OurMember:
    """`skyrocket broker`."""

    def __init__(
        self, folder: Path, name: str, role: str, names: str, more: Mapping[str, object] | None = None
    ) -> None:
        """`more` are settings that count before those of all members."""
        port = free_port()
        self.address, self.store = f"127.0.0.1:{port}", folder / name
        self._folder = folder
        self._arguments = ["broker", "-n", names, "--listen-port", str(port), "--broker-ip", "127.0.0.1"]
        self._arguments += ["--store", str(self.store)]
        for key, value in {**_common(role), **(more or {})}.items():
            self._arguments += ["--set", f"{key}={value}"]
        self._program: Program | None = None

    def start(self) -> None:
        self._program = Program(*self._arguments, home=self._folder)
        self._program.await_line(STARTED)

    def stop(self) -> None:
        assert self._program is not None
        code = self._program.stop()
        assert code == 0, "\n".join(self._program.lines[-30:])
        self.kill()

    def freeze(self) -> None:
        assert self._program is not None
        self._program.process.send_signal(signal.SIGSTOP)

    def kill(self) -> None:
        if self._program is not None:
            self._program.__exit__()
        self._program = None


class ApacheMember:
    """Apache's broker."""

    def __init__(
        self,
        apache: Apache,
        folder: Path,
        name: str,
        role: str,
        names: str,
        more: Mapping[str, object] | None = None,
    ) -> None:
        self._port = free_port()
        self.address, self.store = f"127.0.0.1:{self._port}", folder / name
        self._apache = apache
        self._folder = folder
        self._starts = 0
        self._running: contextlib.ExitStack | None = None
        self._process: subprocess.Popen[bytes] | None = None
        self._settings: Mapping[str, object] = {
            **_common(role),
            "brokerName": "broker-a",
            "brokerIP1": "127.0.0.1",
            "brokerIP2": "127.0.0.1",
            "namesrvAddr": names,
            "listenPort": self._port,
            "haListenPort": self._port + 1,
            "storePathRootDir": self.store,
            "storePathCommitLog": self.store / "commitlog",
            **settings_for(apache, FILES),
            **(more or {}),
        }

    def start(self) -> None:
        self._starts += 1
        home = self._folder / f"{self.store.name}-home-{self._starts}"
        home.mkdir()
        place_log_settings(home)
        stack = self._running = contextlib.ExitStack()
        main_class, settings = "org.apache.rocketmq.broker.BrokerStartup", dict(self._settings)
        self._process = stack.enter_context(process_of(self._apache, home, "broker", main_class, settings))
        await_port(self._process, self._port, home / "broker.log")

    def stop(self) -> None:
        assert self._running is not None
        stack, self._running = self._running, None
        stack.close()

    def freeze(self) -> None:
        assert self._process is not None
        os.killpg(self._process.pid, signal.SIGSTOP)

    def kill(self) -> None:
        if self._running is None or self._process is None:
            return
        with contextlib.suppress(ProcessLookupError):
            os.killpg(self._process.pid, signal.SIGKILL)
        self._process.wait()
        self.stop()


class NameServer:
    """Ours; nothing happens to it."""

    def __init__(self, folder: Path, *settings: str) -> None:
        port = free_port()
        self.address = f"127.0.0.1:{port}"
        given = ["namesrv", "--listen-port", str(port), "--bind-address", "127.0.0.1"]
        for setting in settings:
            given += ["--set", setting]
        self._program = Program(*given, home=folder)
        self._program.await_line(str(port))

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self._program.__exit__()
