"""NATS JetStream with nats-py."""

import asyncio
import contextlib
import time
from collections.abc import Callable, Iterator
from typing import Any

from bench.load.own_server import WORK
from bench.peers.debian import unpacked
from bench.peers.processes import await_ready, folder, free_ports, listens, process
from bench.python_clients.system import Client, Running, System

_PENDING = 1000  # asynchronous publishes, and messages of a fetch
_FETCH_S = 30.0


class NatsClient(Client):
    """A stream per purpose, in files."""

    def __init__(self, port: int) -> None:
        self._port = port
        self._nats: Any = None
        self._stream: Any = None

    async def open(self) -> None:
        import nats

        self._nats = await nats.connect(f"nats://127.0.0.1:{self._port}", connect_timeout=2, allow_reconnect=False)
        self._stream = self._nats.jetstream(publish_async_max_pending=_PENDING)
        for name in ("speed", "stock", "live"):
            await self._stream.add_stream(name=name, subjects=[name])

    async def close(self) -> None:
        await self._nats.close()

    async def send(self, body: bytes) -> None:
        await self._stream.publish("live" if body[:1] != b"x" else "speed", body)

    async def send_many(self, body: bytes, count: int) -> None:
        await self._publish("speed", body, count)

    async def fill(self, body: bytes, count: int) -> None:
        await self._publish("stock", body, count)

    async def _publish(self, subject: str, body: bytes, count: int) -> None:
        for _ in range(count):
            await self._stream.publish_async(subject, body)
        await self._stream.publish_async_completed()

    async def consume_one_by_one(self, count: int, reader: str) -> None:
        left, done = count, asyncio.Event()

        async def handle(message: Any) -> None:
            nonlocal left
            assert message.data
            await message.ack()
            left -= 1
            if not left:
                done.set()

        subscription = await self._stream.subscribe("stock", durable=reader, cb=handle, manual_ack=True)
        await done.wait()
        await subscription.unsubscribe()

    async def consume_in_bulk(self, count: int, reader: str) -> None:
        subscription = await self._stream.pull_subscribe("stock", durable=reader)
        while count > 0:
            messages = await subscription.fetch(min(_PENDING, count), timeout=_FETCH_S)
            for message in messages:
                assert message.data
                await message.ack()
            count -= len(messages)
        await subscription.unsubscribe()

    async def follow(self, seen: Callable[[bytes], None]) -> None:
        from nats.js.api import ConsumerConfig, DeliverPolicy

        async def handle(message: Any) -> None:
            seen(message.data)
            await message.ack()

        config = ConsumerConfig(deliver_policy=DeliverPolicy.NEW)
        subscription = await self._stream.subscribe("live", cb=handle, manual_ack=True, config=config)
        try:
            await asyncio.Event().wait()
        finally:
            await subscription.unsubscribe()


@contextlib.contextmanager
def _start() -> Iterator[Running]:
    nats = unpacked(("nats-server",))
    (port,) = free_ports(1)
    with folder(WORK, "nats-") as home:
        command = [nats.program("usr/sbin/nats-server"), "-a", "127.0.0.1", "-p", str(port), "-js", "-sd", str(home)]
        began = time.monotonic()
        with process(command, home, "nats", nats.environment) as running:
            await_ready(running, home / "nats.log", lambda: listens(port))
            yield Running(lambda: NatsClient(port), [running.pid], began)


NATS = System(
    "nats", "NATS JetStream, nats-py", "in the page cache of one server, flushed within 2 minutes", _start, share=0.5
)
