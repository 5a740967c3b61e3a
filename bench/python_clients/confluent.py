"""Kafka with confluent-kafka: librdkafka works in threads of its own, and tells an event loop what became of a send."""

import asyncio
import contextlib
import threading
from collections.abc import Callable, Iterator
from typing import Any

from bench.python_clients.kafka import VERSION, running_kafka
from bench.python_clients.system import QUEUES, Client, Running, System

_POLL_S = 0.1
_PATIENCE_S = 60.0
_PORTION = 500
_TOPICS = ("speed", "stock", "live")


class ConfluentClient(Client):
    """One producer without a linger for what is awaited, one as it comes for what is batched."""

    def __init__(self, address: str) -> None:
        self._servers: dict[str, Any] = {"bootstrap.servers": address, "log_level": 0}  # one that starts is no news
        self._prompt: Any = None
        self._batching: Any = None
        self._loop: asyncio.AbstractEventLoop
        self._ended = threading.Event()
        self._polling: list[threading.Thread] = []

    async def open(self) -> None:
        from confluent_kafka import Producer
        from confluent_kafka.admin import AdminClient
        from confluent_kafka.cimpl import NewTopic  # where it is: `admin` does not export it to type checkers

        self._loop = asyncio.get_running_loop()
        admin = AdminClient(self._servers)  # must live until it has its answers
        for each in admin.create_topics([NewTopic(name, QUEUES, 1) for name in _TOPICS]).values():
            await asyncio.to_thread(each.result, _PATIENCE_S)
        self._prompt = Producer({**self._servers, "acks": "all", "linger.ms": 0})
        self._batching = Producer({**self._servers, "acks": "all", "queue.buffering.max.messages": 1_000_000})
        self._polling = [threading.Thread(target=self._poll, args=(self._prompt,), daemon=True)]
        for thread in self._polling:
            thread.start()

    def _poll(self, producer: Any) -> None:
        """Callbacks of deliveries are called in here, as its documentation wants it beside an event loop."""
        while not self._ended.is_set():
            producer.poll(_POLL_S)

    async def close(self) -> None:
        self._ended.set()
        for thread in self._polling:
            await asyncio.to_thread(thread.join, _PATIENCE_S)

    async def send(self, body: bytes) -> None:
        confirmed: asyncio.Future[None] = self._loop.create_future()

        def delivered(error: Any, _: Any) -> None:
            self._loop.call_soon_threadsafe(_settle, confirmed, error)

        self._prompt.produce("live" if body[:1] != b"x" else "speed", body, on_delivery=delivered)
        await confirmed

    async def send_many(self, body: bytes, count: int) -> None:
        await asyncio.to_thread(self._produce, "speed", body, count)

    async def fill(self, body: bytes, count: int) -> None:
        await asyncio.to_thread(self._produce, "stock", body, count)

    def _produce(self, topic: str, body: bytes, count: int) -> None:
        failures: list[Any] = []

        def delivered(error: Any, _: Any) -> None:
            if error is not None:
                failures.append(error)

        for number in range(count):
            self._batching.produce(topic, body, on_delivery=delivered)
            if number % _PORTION == 0:
                self._batching.poll(0)
        left = self._batching.flush(_PATIENCE_S)
        if left or failures:
            raise RuntimeError(f"{left} messages were not confirmed, {len(failures)} refused: {failures[:1]}")

    def _consumer(self, topic: str, group: str, reset: str) -> Any:
        from confluent_kafka import Consumer

        consumer = Consumer({**self._servers, "group.id": group, "auto.offset.reset": reset})
        consumer.subscribe([topic])
        return consumer

    async def consume_one_by_one(self, count: int, reader: str) -> None:
        await asyncio.to_thread(self._consume, count, reader, 1)

    async def consume_in_bulk(self, count: int, reader: str) -> None:
        await asyncio.to_thread(self._consume, count, reader, _PORTION)

    def _consume(self, count: int, reader: str, portion: int) -> None:
        consumer = self._consumer("stock", reader, "earliest")
        try:
            while count > 0 and not self._ended.is_set():
                if portion == 1:
                    message = consumer.poll(_POLL_S)
                    messages = [] if message is None else [message]
                else:
                    messages = consumer.consume(portion, _POLL_S)
                for message in messages:
                    if message.error() is not None:
                        raise RuntimeError(str(message.error()))
                    assert message.value()
                count -= len(messages)
        finally:
            consumer.close()

    async def follow(self, seen: Callable[[bytes], None]) -> None:
        ended = threading.Event()
        following = asyncio.ensure_future(asyncio.to_thread(self._follow, seen, ended))
        try:
            await asyncio.shield(following)
        finally:
            ended.set()
            await following

    def _follow(self, seen: Callable[[bytes], None], ended: threading.Event) -> None:
        consumer = self._consumer("live", f"follower{id(ended)}", "latest")
        try:
            while not ended.is_set():
                message = consumer.poll(_POLL_S)
                if message is not None and message.error() is None:
                    self._loop.call_soon_threadsafe(seen, message.value())
        finally:
            consumer.close()


def _settle(confirmed: "asyncio.Future[None]", error: Any) -> None:
    if confirmed.done():
        return
    if error is None:
        confirmed.set_result(None)
    else:
        confirmed.set_exception(RuntimeError(str(error)))


@contextlib.contextmanager
def _start() -> Iterator[Running]:
    with running_kafka() as kafka:
        yield Running(lambda: ConfluentClient(kafka.address), [kafka.pid], kafka.began)


CONFLUENT = System(
    "confluent",
    f"Kafka {VERSION}, confluent-kafka",
    "in the page cache of one broker, flushed by the system",
    _start,
)
