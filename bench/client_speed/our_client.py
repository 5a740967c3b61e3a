"""Our client: single sends, automatic batches, and consumption with a trivial handler."""

import asyncio
import time
from collections.abc import Callable

from skyrocket.client import (
    ConsumeFromWhere,
    Message,
    Producer,
    ProducerSettings,
    PushConsumer,
    PushConsumerSettings,
    ReceivedMessage,
)
from skyrocket.client.producer.accumulator import PendingSend

AUTO_BATCH = ProducerSettings(auto_batch=True, auto_batch_delay=0.002, max_in_flight=4096)


async def sends(producer: Producer, message: Callable[[], Message], seconds: float, in_flight: int) -> int:
    """Coroutines that send one message after the other."""
    deadline, count = time.perf_counter() + seconds, 0

    async def one() -> None:
        nonlocal count
        while time.perf_counter() < deadline:
            await producer.send(message())
            count += 1

    await asyncio.gather(*(one() for _ in range(in_flight)))
    return count


async def enqueues(producer: Producer, message: Callable[[], Message], seconds: float) -> int:
    """One coroutine that queues messages as fast as it can; all are confirmed at the end."""
    deadline, count = time.perf_counter() + seconds, 0
    pending: list[PendingSend] = []
    while time.perf_counter() < deadline:
        pending += [await producer.enqueue(message()) for _ in range(500)]
        count += 500
        await asyncio.sleep(0)
    await producer.flush()
    for each in pending[:: max(len(pending) // 1000, 1)]:
        await each
    await pending[-1]
    return count


async def consumption(names: str, topic: str, group: str, total: int) -> int:
    """A new group reads all there is."""
    count = 0
    done = asyncio.Event()
    settings = PushConsumerSettings(consume_from=ConsumeFromWhere.CONSUME_FROM_FIRST_OFFSET)
    consumer = PushConsumer(group, names, settings)

    @consumer.on(topic)
    async def handle(_: ReceivedMessage) -> None:
        nonlocal count
        count += 1
        if count == total:
            done.set()

    async with consumer:
        await asyncio.wait_for(done.wait(), 120)
    return count
