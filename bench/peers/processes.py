"""Servers and load tools as processes: started, awaited, watched, ended."""

import contextlib
import os
import signal
import socket
import subprocess
import tempfile
import time
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path

from tests.ports import free_port

from bench.load import server_usage
from bench.peers.other_system import ToolFailed

START_TIMEOUT_S = 60.0
STOP_TIMEOUT_S = 60.0
_POLL_S = 0.01
_SAMPLE_S = 0.5


class NotReady(Exception):
    """A server did not come up; says what it said."""


@contextlib.contextmanager
def folder(work: Path, prefix: str) -> Iterator[Path]:
    """A directory on the disk that vanishes afterwards."""
    work.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory(dir=work, prefix=prefix, ignore_cleanup_errors=True) as path:
        yield Path(path)


@contextlib.contextmanager
def process(
    command: list[str], home: Path, name: str, environment: Mapping[str, str] | None = None
) -> Iterator["subprocess.Popen[bytes]"]:
    """A server whose output goes to `home`; ended by SIGTERM, its children too if it leaves them behind."""
    with open(home / f"{name}.log", "wb") as log:
        running = subprocess.Popen(
            command,
            stdin=subprocess.DEVNULL,
            stdout=log,
            stderr=subprocess.STDOUT,
            env={**os.environ, "HOME": str(home), "ROCKETMQ_HOME": str(home), **(environment or {})},
            start_new_session=True,
        )
    try:
        yield running
        running.send_signal(signal.SIGTERM)
        with contextlib.suppress(subprocess.TimeoutExpired):  # the figures are taken: a slow end costs nothing
            running.wait(STOP_TIMEOUT_S)
    finally:
        with contextlib.suppress(ProcessLookupError):
            os.killpg(running.pid, signal.SIGKILL)
        running.wait()


def await_ready(running: "subprocess.Popen[bytes]", log: Path, is_ready: Callable[[], bool]) -> None:
    """Ask again and again; raises NotReady when the process ends or takes too long."""
    deadline = time.monotonic() + START_TIMEOUT_S
    while time.monotonic() < deadline and running.poll() is None:
        if is_ready():
            return
        time.sleep(_POLL_S)
    state = "ended" if running.poll() is not None else f"is not ready after {START_TIMEOUT_S:.0f} s"
    raise NotReady(f"{log.stem} {state}:\n{log.read_text(errors='replace')[-3000:]}")


def listens(port: int) -> bool:
    """Whether someone accepts connections on this port."""
    with contextlib.suppress(OSError), socket.create_connection(("127.0.0.1", port), timeout=1):
        return True
    return False


def free_ports(count: int) -> list[int]:
    """Free ports whose neighbours are free too, and which no connection of a load is given before a server listens."""
    return [free_port() for _ in range(count)]


@dataclass(frozen=True)
class Watched:
    """A load tool's run."""

    output: str
    server_cpu_s: float
    loaded_mb: float


def run_watched(
    command: list[str], pids: list[int], home: Path, timeout_s: float, environment: Mapping[str, str] | None = None
) -> Watched:
    """Run a load tool to its end while looking at the server; raises ToolFailed when it complains."""
    cpu_before, most = server_usage.cpu_seconds(pids), 0
    deadline = time.monotonic() + timeout_s
    with open(home / "tool.log", "w+b") as log:
        tool = subprocess.Popen(
            command,
            stdin=subprocess.DEVNULL,
            stdout=log,
            stderr=subprocess.STDOUT,
            env={**os.environ, "HOME": str(home), **(environment or {})},
        )
        try:
            while tool.poll() is None and time.monotonic() < deadline:
                most = max(most, server_usage.memory(pids).anonymous)
                with contextlib.suppress(subprocess.TimeoutExpired):
                    tool.wait(_SAMPLE_S)
            cpu = server_usage.cpu_seconds(pids) - cpu_before
        finally:
            tool.kill()
            tool.wait()
        log.seek(0)
        output = log.read().decode(errors="replace")
    if tool.returncode != 0:
        raise ToolFailed(f"{Path(command[0]).name} failed (exit code {tool.returncode}): {output[-500:]}")
    return Watched(output, cpu, most / 1e6)
