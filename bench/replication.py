"""What a slave costs its master, and how fast it follows: `python -m bench.replication`.

In one run, in turn: a master alone, with an asynchronous slave, with a synchronous one; one message per request, 64 in
flight. Then large messages as fast as they go, with a slave that follows, and an empty slave that catches up with a
log of a gibibyte. Ratios are of this run; keep the machine quiet. Processes on this machine share its cores: a slave
of its own machine would take nothing from its master but the bytes.
"""

import argparse
import asyncio
import contextlib
import os
import re
import socket
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Final

from rich.console import Console
from rich.table import Table

from bench.load.measure import Figures, Timing, measure
from bench.load.scenario import SEND, Scenario
from skyrocket.protocol.bodies.replication import HaStatus
from skyrocket.protocol.requests.admin_broker import GetBrokerHaStatus
from skyrocket.remoting.client import RemotingClient

WORK = Path(__file__).parent.parent / "var" / "bench"  # on a disk: /tmp may live in memory
ROLES: Final = ("alone", "ASYNC_MASTER", "SYNC_MASTER")
START_SECONDS: Final = 60.0
CATCH_UP_SECONDS: Final = 300.0
_MIB: Final = 1 << 20


class Broker:
    """`skyrocket broker` as a process."""

    def __init__(self, folder: Path, name_server: str, name: str, *settings: str) -> None:
        self.port, ha_port = _free_port(), _free_port()
        command = [sys.executable, "-m", "skyrocket", "broker", "-n", name_server, "--broker-ip", "127.0.0.1"]
        command += ["--listen-port", str(self.port), "--store", str(folder / name)]
        for setting in ("brokerName=set", f"haListenPort={ha_port}", *settings):
            command += ["--set", setting]
        self.process = _start(command, folder)

    @property
    def address(self) -> str:
        return f"127.0.0.1:{self.port}"

    def status(self) -> HaStatus:
        async def ask() -> HaStatus:
            async with RemotingClient() as client:
                return HaStatus.decode(bytes((await client.call(self.address, GetBrokerHaStatus())).body))

        return asyncio.run(ask())

    def copied(self) -> int:
        """How far a slave's log reaches."""
        client = self.status().client
        assert client is not None
        return client.max_offset

    def stop(self) -> None:
        self.process.terminate()
        self.process.wait(START_SECONDS)


def _free_port() -> int:
    with socket.create_server(("127.0.0.1", 0)) as taken:
        return int(taken.getsockname()[1])


def _start(command: list[str], folder: Path) -> "subprocess.Popen[bytes]":
    return subprocess.Popen(
        command,
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        env={**os.environ, "HOME": str(folder)},
    )


def _await_line(process: "subprocess.Popen[bytes]", pattern: str) -> re.Match[str]:
    assert process.stdout is not None
    said = ""
    for line in process.stdout:
        said += line.decode(errors="replace")
        if found := re.search(pattern, said):
            return found
    raise SystemExit(f"a server did not start: {said[-1000:]}")


@contextlib.contextmanager
def name_server(folder: Path) -> Iterator[str]:
    command = [sys.executable, "-m", "skyrocket", "namesrv", "--listen-port", "0", "--bind-address", "127.0.0.1"]
    process = _start(command, folder)
    try:
        yield "127.0.0.1:" + _await_line(process, r":(\d+)")[1]
    finally:
        process.kill()
        process.communicate()


@contextlib.contextmanager
def brokers(folder: Path, names: str, role: str) -> Iterator[list[Broker]]:
    """A master, and its slave unless it is alone; ready."""
    started: list[Broker] = []
    try:
        master_role = "ASYNC_MASTER" if role == "alone" else role
        started.append(Broker(folder, names, "master", f"brokerRole={master_role}"))
        _await_line(started[0].process, "boot success")
        if role != "alone":
            started.append(slave_of(folder, names))
            wait_for(lambda: started[0].status().in_sync_slaves, START_SECONDS)
        yield started
    finally:
        for broker in started:
            broker.process.kill()
            broker.process.communicate()


def slave_of(folder: Path, names: str) -> Broker:
    slave = Broker(folder, names, "slave", "brokerRole=SLAVE", "brokerId=1")
    _await_line(slave.process, "boot success")
    return slave


def wait_for(condition: Callable[[], object], seconds: float) -> float:
    """How long it took."""
    began = time.monotonic()
    while not condition():
        if time.monotonic() - began > seconds:
            raise SystemExit("the slave did not follow in time")
        time.sleep(0.02)
    return time.monotonic() - began


def scenario(broker: Broker, topic: str, *, body: int = 128, window: int = 1, connections: int = 64) -> Scenario:
    return Scenario(
        kind=SEND,
        address=("127.0.0.1", broker.port),
        topic=topic,
        connections=connections,
        window=window,
        rate=None,
        body_size=body,
        batch=1,
        queues=8,
        tag="",
        pull_at_most=32,
        timer_seconds=0,
    )


def costs(timing: Timing, rounds: int) -> dict[str, list[Figures]]:
    """Sends of each kind of master, round by round."""
    found: dict[str, list[Figures]] = {role: [] for role in ROLES}
    for number in range(rounds):
        for role in ROLES:
            print(f"round {number + 1} of {rounds}: {role} …", file=sys.stderr, flush=True)
            with (
                tempfile.TemporaryDirectory(dir=WORK) as place,
                name_server(Path(place)) as names,
                brokers(Path(place), names, role) as started,
            ):
                master = started[0]
                found[role].append(measure(scenario(master, "Cost"), timing, 1, [master.process.pid]))
    return found


def following(seconds: float, log_bytes: int) -> tuple[float, float, float]:
    """MB/s that a slave follows, what it lacked when the load ended, and MB/s of an empty slave that catches up."""
    with tempfile.TemporaryDirectory(dir=WORK) as place, name_server(Path(place)) as names:
        with brokers(Path(place), names, "ASYNC_MASTER") as (master, slave):
            print("large messages …", file=sys.stderr, flush=True)
            before, began = master.status().master_max_offset, time.monotonic()
            large = scenario(master, "Large", body=32 << 10, window=4, connections=16)
            measure(large, Timing(0, seconds), 1, [master.process.pid])
            took, status = time.monotonic() - began, master.status()
            lag = max(each.lag_bytes for each in status.connections)
            rate = (status.master_max_offset - lag - before) / took / 1e6
            slave.stop()
            while master.status().master_max_offset < log_bytes:
                measure(large, Timing(0, 2.0), 1, [master.process.pid])
        size = 0
        with brokers(Path(place), names, "alone") as (master,):
            size = master.status().master_max_offset
            print(f"an empty slave catches up with {size / _MIB:.0f} MiB …", file=sys.stderr, flush=True)
            empty = Path(place) / "empty"
            empty.mkdir()
            slave = slave_of(empty, names)
            try:
                wait_for(lambda: slave.copied() > 0, START_SECONDS)
                copied, began = slave.copied(), time.monotonic()
                wait_for(lambda: slave.copied() >= size, CATCH_UP_SECONDS)
                return rate, lag / 1e6, (size - copied) / (time.monotonic() - began) / 1e6
            finally:
                slave.process.kill()
                slave.process.communicate()


def main() -> None:
    parser = argparse.ArgumentParser(prog="python -m bench.replication", description=__doc__)
    parser.add_argument("--seconds", type=float, default=5.0, help="of each measured part (default: 5)")
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--mib", type=int, default=1024, help="of the log that is caught up with (default: 1024)")
    options = parser.parse_args()
    WORK.mkdir(parents=True, exist_ok=True)
    found = costs(Timing(1.5, options.seconds), options.rounds)
    rate, lag, catch_up = following(options.seconds, options.mib * _MIB)

    table = Table(title="Sends, 128 bytes, 64 in flight", box=None, header_style="bold", title_justify="left")
    for heading in ("master", "messages/s", "of alone", "p99 ms", "CPU µs/message"):
        table.add_column(heading, justify="left" if heading == "master" else "right")
    alone = statistics.median(each.rate for each in found["alone"])
    for role, figures in found.items():
        middle = statistics.median(each.rate for each in figures)
        p99 = statistics.median(each.p99_ms for each in figures)
        cpu = statistics.median(each.server_cpu_us or 0.0 for each in figures)
        table.add_row(role, f"{middle:,.0f}", f"{middle / alone:.2f}", f"{p99:.1f}", f"{cpu:.1f}")
    console = Console(width=None if Console().is_terminal else 120)
    console.print(table)
    console.print(f"\nA slave follows {rate:.0f} MB/s of large messages (and lacked {lag:.1f} MB when they ended).")
    console.print(f"An empty slave catches up at {catch_up:.0f} MB/s.")


if __name__ == "__main__":
    main()
