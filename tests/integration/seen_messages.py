"""Numbered messages of one topic, and a group that notes what it is given."""

import asyncio
import contextlib
from collections import Counter
from collections.abc import AsyncIterator, Iterable

from skyrocket.client import (
    ClientSettings,
    Message,
    PoppedMessage,
    Producer,
    PushConsumer,
    PushConsumerSettings,
    ReceivedMessage,
    SimpleConsumer,
)
from tests.client_steps import FIRST
from tests.waiting import SECONDS, until

TOPIC, GROUP = "Orders", "Shop"


class Seen:
    """What a group was given, however many of its consumers came and went."""

    def __init__(self, client: ClientSettings) -> None:
        self._client = client
        self.messages: list[ReceivedMessage] = []

    @contextlib.asynccontextmanager
    async def consuming(self) -> AsyncIterator[None]:
        settings = PushConsumerSettings(consume_from=FIRST, persist_interval=0.2)
        consumer = PushConsumer(GROUP, settings=settings, client=self._client)
        consumer.subscribe(TOPIC, self.messages.append)
        async with consumer:
            yield

    @property
    def bodies(self) -> Counter[bytes]:
        return Counter(message.body for message in self.messages)

    async def has(self, bodies: Iterable[bytes]) -> None:
        wanted = set(bodies)
        await until(lambda: wanted <= self.bodies.keys(), f"{len(wanted)} messages")

    def of(self, body: bytes) -> str:
        """The set that has delivered a message last."""
        return [message.broker_name for message in self.messages if message.body == body][-1]


async def send(producer: Producer, *messages: Message) -> Counter[str]:
    """How many each set has taken."""
    receipts = await asyncio.gather(*(producer.send(message, timeout=10) for message in messages))
    return Counter(receipt.queue.broker_name for receipt in receipts)


def numbered(kind: str, count: int, **changes: object) -> list[Message]:
    return [Message(TOPIC, b"%s %d" % (kind.encode(), number), **changes) for number in range(count)]  # type: ignore[arg-type]


async def received(consumer: SimpleConsumer) -> PoppedMessage:
    """The next message, acknowledged."""
    async with asyncio.timeout(SECONDS):
        while True:
            for popped in await consumer.receive(max_messages=1, wait_seconds=5.0):
                await consumer.ack(popped)
                return popped
