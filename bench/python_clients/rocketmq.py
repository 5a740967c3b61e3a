"""RocketMQ with our client: against Skyrocket, and against Apache RocketMQ."""

import asyncio
import contextlib
import time
from collections.abc import Callable, Iterator

from tests.interop.apache import Unavailable, obtain

from bench.peers.other_system import Missing
from bench.peers.rocketmq_servers import Server, apache_server, our_server
from bench.python_clients.system import QUEUES, Client, Running, System
from skyrocket.client import (
    Admin,
    ConsumeFromWhere,
    LitePullConsumer,
    LitePullSettings,
    Message,
    Producer,
    PushConsumer,
    PushConsumerSettings,
    ReceivedMessage,
)

_VERSION = "5.4.0"
_FIRST = ConsumeFromWhere.CONSUME_FROM_FIRST_OFFSET
_COLUMNS = ("queueId", "queueOffset", "storeTimestamp", "tags", "body")
_TOPICS = ("Speed", "Stock", "Live")


class RocketClient(Client):
    """One producer, and a consumer for each way."""

    def __init__(self, names: str) -> None:
        self._names = names
        self._producer: Producer

    async def open(self) -> None:
        async with Admin(self._names) as admin:
            for topic in _TOPICS:
                await admin.create_topic(topic, QUEUES)
            while any([len(await admin.queues(topic)) != QUEUES for topic in _TOPICS]):
                await asyncio.sleep(0.05)
        self._producer = Producer("Bench", self._names)
        await self._producer.start()

    async def close(self) -> None:
        await self._producer.stop()

    async def send(self, body: bytes) -> None:
        await self._producer.send(Message("Live" if body[:1] != b"x" else "Speed", body))

    async def send_many(self, body: bytes, count: int) -> None:
        await self._enqueue("Speed", body, count)

    async def fill(self, body: bytes, count: int) -> None:
        await self._enqueue("Stock", body, count)

    async def _enqueue(self, topic: str, body: bytes, count: int) -> None:
        pending = []
        for number in range(count):
            pending.append(await self._producer.enqueue(Message(topic, body)))
            if number % 500 == 0:
                await asyncio.sleep(0)
        await self._producer.flush()
        for each in pending:
            await each

    async def consume_one_by_one(self, count: int, reader: str) -> None:
        consumer = PushConsumer(reader, self._names, PushConsumerSettings(consume_from=_FIRST))
        left, done = count, asyncio.Event()

        @consumer.on("Stock")
        async def handle(message: ReceivedMessage) -> None:
            nonlocal left
            assert message.body
            left -= 1
            if not left:
                done.set()

        async with consumer:
            await done.wait()

    async def consume_in_bulk(self, count: int, reader: str) -> None:
        settings = LitePullSettings(consume_from=_FIRST, pull_batch_size=32)
        async with LitePullConsumer(reader, self._names, settings) as consumer:
            await consumer.subscribe("Stock")
            while count > 0:
                messages = await consumer.poll()
                assert all(message.body for message in messages)
                count -= len(messages)

    async def consume_as_columns(self, count: int, reader: str) -> None:
        settings = LitePullSettings(consume_from=_FIRST)
        async with LitePullConsumer(reader, self._names, settings) as consumer:
            await consumer.subscribe("Stock")
            while count > 0:
                rows = await consumer.poll_arrow(columns=_COLUMNS)
                assert rows.column("body").null_count == 0
                count -= rows.num_rows

    async def follow(self, seen: Callable[[bytes], None]) -> None:
        consumer = PushConsumer("Follower", self._names, PushConsumerSettings(consume_from=_FIRST))

        @consumer.on("Live")
        async def handle(message: ReceivedMessage) -> None:
            seen(message.body)

        async with consumer:
            await asyncio.Event().wait()


@contextlib.contextmanager
def _skyrocket() -> Iterator[Running]:
    with our_server() as server:
        yield _running(server)


@contextlib.contextmanager
def _apache() -> Iterator[Running]:
    try:
        apache = obtain(_VERSION)
    except Unavailable as reason:
        raise Missing(str(reason)) from reason
    with apache_server(apache) as server:
        yield _running(server)


def _running(server: Server) -> Running:
    began = time.monotonic() - server.seconds_to_ready
    return Running(lambda: RocketClient(server.name_server), server.pids, began)


_PROMISE = "in the page cache of one broker, flushed within 0.5 s"
SKYROCKET = System("skyrocket", "Skyrocket, our client", _PROMISE, _skyrocket)
APACHE = System("apache", f"Apache RocketMQ {_VERSION}, our client", _PROMISE, _apache)
