"""`--brokers N` with real processes: ready together, started again after a kill, gone with their parent."""

import asyncio
import contextlib
import os
import signal
import time
from pathlib import Path

from skyrocket.protocol.bodies.route import TopicRoute
from skyrocket.protocol.errors import TopicNotExist
from skyrocket.protocol.requests.route import GetRouteInfoByTopic
from skyrocket.remoting.client import RemotingClient
from skyrocket.remoting.errors import RemotingError
from tests.faults.broker_load import TOPIC, pull, send_request
from tests.integration.program import SMALL_FILES, Program, Standalone, alive, children_of

TWO = ("--brokers", "2")


async def send(address: str, body: bytes) -> None:
    async with RemotingClient() as client:
        await client.call(address, send_request(0), body)


async def read(address: str) -> list[bytes]:
    async with RemotingClient() as client:
        return await pull(client, address, 0, 0)


async def read_when_back(address: str, seconds: float = 60.0) -> list[bytes]:
    deadline = time.monotonic() + seconds
    while True:
        try:
            return await read(address)
        except RemotingError:
            assert time.monotonic() < deadline, "the broker does not come back"
            await asyncio.sleep(0.05)


def await_gone(pids: list[int], seconds: float = 60.0) -> None:
    deadline = time.monotonic() + seconds
    while left := [pid for pid in pids if alive(pid)]:
        assert time.monotonic() < deadline, f"left behind: {left}"
        time.sleep(0.05)


async def queues_of_topic(name_server: str) -> dict[str, tuple[int, int]]:
    """Read and write queues by broker, as clients hear of them once both brokers have told of the topic."""
    deadline = time.monotonic() + 60
    found: dict[str, tuple[int, int]] = {}
    async with RemotingClient() as client:
        while len(found) < 2 and time.monotonic() < deadline:
            with contextlib.suppress(TopicNotExist):
                route = TopicRoute.decode((await client.call(name_server, GetRouteInfoByTopic(topic=TOPIC))).body)
                found = {data.broker_name: (data.read_queues, data.write_queues) for data in route.queues}
            await asyncio.sleep(0.02)
    return found


async def test_a_killed_broker_comes_back_with_its_messages_and_sigterm_stops_all(tmp_path: Path) -> None:
    with Standalone(tmp_path, arguments=TWO) as program:
        assert len(program.brokers) == 2
        for address in program.brokers:
            await send(address, address.encode())
        assert await queues_of_topic(program.name_server) == {"broker-a": (4, 4), "broker-b": (4, 4)}
        children = children_of(program.process.pid)
        assert len(children) == 2
        victim = int(Path(tmp_path / "store" / "broker-1" / "abort").read_text())
        os.kill(victim, signal.SIGKILL)
        program.await_line(r"\[broker-b\] was ended by SIGKILL; it is started again in 0\.5 s")
        again = program.await_line(r"^\[broker-b\] The broker\[broker-b, (\S+)\] boot success", count=2)
        assert await read_when_back(again[1]) == [program.brokers[1].encode()]
        assert await read(program.brokers[0]) == [program.brokers[0].encode()]
        children = children_of(program.process.pid)
        assert len(children) == 2
        assert program.stop() == 0
        assert program.lines[-1] == "Skyrocket has stopped."
        await_gone(children, 0.0)
    assert [path.name for path in (tmp_path / "store").iterdir() if (path / "abort").exists()] == []


def test_brokers_end_with_a_parent_that_was_killed(tmp_path: Path) -> None:
    with Standalone(tmp_path, arguments=TWO) as program:
        children = children_of(program.process.pid)
        assert len(children) == 2
        program.kill()
        await_gone(children)
    # They were not cut off: each closed its store.
    assert sorted(path.name for path in (tmp_path / "store").iterdir()) == ["broker-0", "broker-1"]
    assert not list((tmp_path / "store").glob("*/abort"))


async def test_brokers_that_cannot_start_end_the_program_with_their_words(tmp_path: Path) -> None:
    with Standalone(tmp_path, arguments=TWO) as first, _second(tmp_path) as second:
        assert second.process.wait(60) == 1
        second.await_line(r"\[broker-[ab]\] skyrocket broker: .*store")
        second.await_line(r"^skyrocket standalone: broker-[ab] ended with exit code 1 before it was ready")
        await send(first.broker, b"unharmed")


def _second(folder: Path) -> Program:
    """Another one on the same stores."""
    given = ["standalone", "--namesrv-port", "0", "--listen-port", "0", "--broker-ip", "127.0.0.1", *TWO]
    return Program(*given, "--store", str(folder / "store"), home=folder)


async def test_brokers_of_their_own_program_register_at_a_name_server(tmp_path: Path) -> None:
    small = [text for setting in SMALL_FILES for text in ("--set", setting)]
    with Program("namesrv", "--listen-port", "0", home=tmp_path) as names:
        address = "127.0.0.1:" + names.await_line(r"address=.*:(\d+)")[1]
        given = ["broker", "--listen-port", "0", "--broker-ip", "127.0.0.1", "--store", str(tmp_path / "store"), *TWO]
        with Program(*given, *small, "-n", address, home=tmp_path) as brokers:
            ready = brokers.await_line(rf"^Skyrocket is ready\. namesrv={address} broker=(\S+),(\S+)$")
            await send(ready[2], b"x")
            assert brokers.stop(signal.SIGINT) == 0
        assert names.stop() == 0


def test_a_signal_during_the_start_stops_all_too(tmp_path: Path) -> None:
    with _second(tmp_path) as program:
        deadline = time.monotonic() + 60
        while len(children := children_of(program.process.pid)) < 2:
            assert time.monotonic() < deadline
            time.sleep(0.01)
        assert program.stop(signal.SIGINT) == 0
        assert "is ready" not in "\n".join(program.lines)
        await_gone(children)
