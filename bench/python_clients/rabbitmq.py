"""RabbitMQ with aio-pika: a classic and a quorum queue, publisher confirms."""

import asyncio
import contextlib
import time
from collections.abc import Callable, Iterator
from functools import partial
from typing import Any

from bench.peers.rabbitmq import rabbit_server
from bench.python_clients.system import Client, Running, System

_TOGETHER = 1000  # unconfirmed publishes of `send_many`
_PREFETCH = 500


class RabbitClient(Client):
    """A durable queue per purpose; the stock is filled again for each reader, as a queue is empty after one."""

    def __init__(self, port: int, kind: str) -> None:
        self._address = f"amqp://guest:guest@127.0.0.1:{port}/"
        self._arguments = {"x-queue-type": kind}
        self._connection: Any = None
        self._channel: Any = None
        self._stock = (b"", 0)

    async def open(self) -> None:
        import aio_pika

        self._connection = await aio_pika.connect(self._address)
        self._channel = await self._connection.channel(publisher_confirms=True)
        for name in ("speed", "stock", "live"):
            await self._channel.declare_queue(name, durable=True, arguments=self._arguments)

    async def close(self) -> None:
        await self._connection.close()

    async def send(self, body: bytes) -> None:
        await self._publish("live" if body[:1] != b"x" else "speed", body)

    async def _publish(self, queue: str, body: bytes) -> None:
        import aio_pika

        message = aio_pika.Message(body, delivery_mode=aio_pika.DeliveryMode.PERSISTENT)
        await self._channel.default_exchange.publish(message, routing_key=queue)

    async def send_many(self, body: bytes, count: int) -> None:
        await self._many("speed", body, count)

    async def fill(self, body: bytes, count: int) -> None:
        self._stock = (body, count)
        await self._many("stock", body, count)

    async def _many(self, queue: str, body: bytes, count: int) -> None:
        for begin in range(0, count, _TOGETHER):
            portion = min(_TOGETHER, count - begin)
            await asyncio.gather(*(self._publish(queue, body) for _ in range(portion)))

    async def refill(self) -> None:
        body, count = self._stock
        queue = await self._channel.declare_queue("stock", durable=True, arguments=self._arguments)
        await self._many("stock", body, count - queue.declaration_result.message_count)

    async def consume_one_by_one(self, count: int, reader: str) -> None:
        await self._consume(count, acks_each=True)

    async def consume_in_bulk(self, count: int, reader: str) -> None:
        await self._consume(count, acks_each=False)

    async def _consume(self, count: int, *, acks_each: bool) -> None:
        channel = await self._connection.channel()
        await channel.set_qos(prefetch_count=_PREFETCH)
        queue = await channel.declare_queue("stock", durable=True, arguments=self._arguments)
        async with queue.iterator() as messages:
            async for message in messages:
                assert message.body
                count -= 1
                if acks_each:
                    await message.ack()
                elif count % (_PREFETCH // 2) == 0 or not count:
                    await message.ack(multiple=True)
                if not count:
                    break
        await channel.close()

    async def follow(self, seen: Callable[[bytes], None]) -> None:
        channel = await self._connection.channel()
        await channel.set_qos(prefetch_count=_PREFETCH)
        queue = await channel.declare_queue("live", durable=True, arguments=self._arguments)
        async with queue.iterator() as messages:
            async for message in messages:
                seen(message.body)
                await message.ack()


@contextlib.contextmanager
def _start(kind: str) -> Iterator[Running]:
    with rabbit_server() as server:
        began = time.monotonic() - server.seconds_to_ready
        yield Running(lambda: RabbitClient(server.port, kind), server.pids, began)


CLASSIC = System(
    "rabbitmq",
    "RabbitMQ classic queue, aio-pika",
    "on the disk of one server (fsync)",
    partial(_start, "classic"),
    share=0.05,
)
QUORUM = System(
    "rabbitmq-quorum",
    "RabbitMQ quorum queue of one, aio-pika",
    "on the disk of one server (fsync)",
    partial(_start, "quorum"),
    share=0.05,
)
