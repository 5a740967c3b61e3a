"""Redis Streams with redis-py."""

import asyncio
import contextlib
import time
from collections.abc import Callable, Iterator
from typing import Any

from bench.load.own_server import WORK
from bench.peers.debian import unpacked
from bench.peers.processes import await_ready, folder, free_ports, listens, process
from bench.python_clients.system import Client, Running, System

_PACKAGES = ("redis-server", "redis-tools", "liblzf1", "libjemalloc2", "libatomic1")
_PORTION = 1000
_BLOCK_MS = 1000
_SOCKET_S = 60.0  # longer than any command blocks


class RedisClient(Client):
    """A pool of connections; pipelines where many messages go together."""

    def __init__(self, port: int) -> None:
        self._port = port
        self._redis: Any = None

    async def open(self) -> None:
        import redis.asyncio

        self._redis = redis.asyncio.Redis(port=self._port, max_connections=80, socket_timeout=_SOCKET_S)
        await self._redis.ping()

    async def close(self) -> None:
        await self._redis.aclose()

    async def send(self, body: bytes) -> None:
        await self._redis.xadd("live" if body[:1] != b"x" else "speed", {"body": body})

    async def send_many(self, body: bytes, count: int) -> None:
        await self._pipelined("speed", body, count)

    async def fill(self, body: bytes, count: int) -> None:
        await self._pipelined("stock", body, count)

    async def _pipelined(self, stream: str, body: bytes, count: int) -> None:
        for begin in range(0, count, _PORTION):
            pipeline = self._redis.pipeline(transaction=False)
            for _ in range(min(_PORTION, count - begin)):
                pipeline.xadd(stream, {"body": body})
            await pipeline.execute()

    async def consume_one_by_one(self, count: int, reader: str) -> None:
        await self._consume(count, reader, 1)

    async def consume_in_bulk(self, count: int, reader: str) -> None:
        await self._consume(count, reader, _PORTION)

    async def _consume(self, count: int, reader: str, portion: int) -> None:
        await self._redis.xgroup_create("stock", reader, "0")
        while count > 0:
            found = await self._redis.xreadgroup(reader, "one", {"stock": ">"}, count=portion, block=_BLOCK_MS)
            entries = _entries(found)
            assert all(fields[b"body"] for _, fields in entries)
            await self._redis.xack("stock", reader, *(number for number, _ in entries))
            count -= len(entries)

    async def follow(self, seen: Callable[[bytes], None]) -> None:
        newest = await self._redis.xrevrange("live", count=1)
        last: Any = newest[0][0] if newest else "0-0"
        while True:
            for number, fields in _entries(await self._redis.xread({"live": last}, block=_BLOCK_MS)):
                last = number
                seen(fields[b"body"])
            await asyncio.sleep(0)


def _entries(found: Any) -> list[tuple[bytes, dict[bytes, bytes]]]:
    """Of the one stream; its answer is a list or a mapping, as the protocol's version has it."""
    streams = found.values() if isinstance(found, dict) else [entries for _, entries in found or ()]
    flat: list[tuple[bytes, dict[bytes, bytes]]] = []
    for entries in streams:
        for each in entries:
            flat += each if isinstance(each, list) else [each]
    return flat


@contextlib.contextmanager
def _start() -> Iterator[Running]:
    redis = unpacked(_PACKAGES)
    (port,) = free_ports(1)
    with folder(WORK, "redis-") as home:
        command = [redis.program("usr/bin/redis-server"), "--port", str(port), "--bind", "127.0.0.1"]
        command += ["--dir", str(home), "--appendonly", "yes", "--appendfsync", "everysec", "--save", ""]
        began = time.monotonic()
        with process(command, home, "redis", redis.environment) as running:
            await_ready(running, home / "redis.log", lambda: listens(port))
            yield Running(lambda: RedisClient(port), [running.pid], began)


REDIS = System(
    "redis", "Redis Streams, redis-py", "in memory of one server, its log flushed within 1 s", _start, share=0.1
)
