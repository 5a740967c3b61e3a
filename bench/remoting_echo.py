"""Requests per second through remoting/, and what one costs the server: `python -m bench.remoting_echo`.

64 connections ask for small things, each as soon as it has its answer; the server runs in a process of its own. The
same again with handlers that leave their answers to the turn's end, as sends do, and pipelined. The load generator
decodes nothing: it only counts frames.
"""

import argparse
import asyncio
import contextlib
import os
import resource
import subprocess
import sys
import time
from typing import cast

from skyrocket.protocol.codes import ResponseCode
from skyrocket.protocol.command import RemotingCommand
from skyrocket.protocol.frames import encode
from skyrocket.remoting.addresses import Address
from skyrocket.remoting.answers import LaterAnswer, Outcome
from skyrocket.remoting.event_loop import run
from skyrocket.remoting.peer import Peer
from skyrocket.remoting.router import Router
from skyrocket.remoting.server import RemotingServer

IMMEDIATE, AT_TURN_END, ENCODED = 9001, 9002, 9003
FIELDS = {"a": "PG", "b": "TopicA", "c": "TBW102", "d": "4", "e": "1", "f": "0", "g": "1700000000000", "h": "0"}
ANSWER = {"queueId": "1", "msgId": "7F00000100002A9F0000000000000000", "queueOffset": "12345"}
HEAD = (
    b'{"code":0,"extFields":{"queueId":"1","msgId":"7F00000100002A9F0000000000000000","queueOffset":"12345"},"flag":1,'
)
TAIL = b'"language":"JAVA","opaque":%d,"serializeTypeCurrentRPC":"JSON","version":493}'


async def serve() -> None:
    """The server; tells its port, then its CPU time whenever a line comes, until the input ends."""
    router = Router()
    later: list[LaterAnswer] = []

    def immediately(_: Peer, request: RemotingCommand) -> Outcome:
        return request.answer(ResponseCode.SUCCESS, None, ANSWER)

    def at_turn_end(_: Peer, request: RemotingCommand) -> Outcome:
        later.append(answer := LaterAnswer(request))
        return answer

    def encoded(_: Peer, request: RemotingCommand) -> Outcome:
        header = HEAD + TAIL % request.opaque
        size = len(header)
        return (size + 4).to_bytes(4, "big") + size.to_bytes(4, "big") + header

    def fill() -> None:
        for answer in later:
            answer.fill(answer.request.answer(ResponseCode.SUCCESS, None, ANSWER))
        later.clear()

    router.register(IMMEDIATE, immediately)
    router.register(AT_TURN_END, at_turn_end)
    router.register(ENCODED, encoded)
    async with RemotingServer(router) as server:
        server.on_turn_end(fill)
        address = await server.listen("127.0.0.1", 0)
        print(address.port, flush=True)
        loop = asyncio.get_running_loop()
        while await loop.run_in_executor(None, sys.stdin.readline):
            usage = resource.getrusage(resource.RUSAGE_SELF)
            print(usage.ru_utime + usage.ru_stime, flush=True)


class Asker(asyncio.Protocol):
    """One connection that keeps a number of requests in flight."""

    answers = 0

    def __init__(self, request: bytes, depth: int) -> None:
        self._request = request
        self._depth = depth
        self._answer_size = 0
        self._received = 0

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        self._transport = cast(asyncio.Transport, transport)  # uvloop's are not derived from it
        self._transport.write(self._request * self._depth)

    def data_received(self, data: bytes) -> None:
        if not self._answer_size:
            self._answer_size = 4 + int.from_bytes(data[:4], "big")
        self._received += len(data)
        complete, self._received = divmod(self._received, self._answer_size)
        if complete:
            Asker.answers += complete
            self._transport.write(self._request * complete)


class Server:
    """The server's process."""

    def __init__(self) -> None:
        self._process = subprocess.Popen(
            [sys.executable, "-m", "bench.remoting_echo", "--serve"],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
            env={**os.environ},
        )
        self.address = Address("127.0.0.1", int(self._line()))

    def cpu_seconds(self) -> float:
        assert self._process.stdin is not None
        self._process.stdin.write("\n")
        self._process.stdin.flush()
        return float(self._line())

    def stop(self) -> None:
        assert self._process.stdin is not None
        self._process.stdin.close()
        self._process.wait(10)

    def _line(self) -> str:
        assert self._process.stdout is not None
        return self._process.stdout.readline()


async def measure(server: Server, code: int, connections: int, depth: int, seconds: float) -> tuple[float, float]:
    """Requests per second, and microseconds of server CPU for each."""
    frame = encode(RemotingCommand(code, 7, ext_fields=FIELDS, body=b"x" * 128))
    loop = asyncio.get_running_loop()
    transports = [
        (await loop.create_connection(lambda: Asker(frame, depth), *server.address))[0] for _ in range(connections)
    ]
    await asyncio.sleep(seconds / 5)
    answers, cpu, began = Asker.answers, server.cpu_seconds(), time.perf_counter()
    await asyncio.sleep(seconds)
    answers, cpu, passed = Asker.answers - answers, server.cpu_seconds() - cpu, time.perf_counter() - began
    for transport in transports:
        transport.abort()
    await asyncio.sleep(0.1)
    return answers / passed, cpu / max(answers, 1) * 1e6


async def load(connections: int, seconds: float) -> None:
    """Measure and print."""
    with contextlib.closing(_Stopped(Server())) as stopped:
        print(f"{'answer':<24}{'in flight':>12}{'requests/s':>14}{'server CPU µs':>16}")
        for name, code in (("immediate", IMMEDIATE), ("at the turn's end", AT_TURN_END), ("encoded", ENCODED)):
            for depth in (1, 16):
                rate, cost = await measure(stopped.server, code, connections, depth, seconds)
                print(f"{name:<24}{f'{connections} x {depth}':>12}{rate:>14,.0f}{cost:>16.2f}")


class _Stopped:
    def __init__(self, server: Server) -> None:
        self.server = server

    def close(self) -> None:
        self.server.stop()


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--serve", action="store_true", help="be the server")
    parser.add_argument("--connections", type=int, default=64)
    parser.add_argument("--seconds", type=float, default=3.0)
    arguments = parser.parse_args()
    run(serve() if arguments.serve else load(arguments.connections, arguments.seconds))


if __name__ == "__main__":
    main()
