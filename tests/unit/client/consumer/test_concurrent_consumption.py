"""Workers: as many handlers at once as allowed, messages in order, and no more workers awake than there is to do."""

import asyncio
from collections.abc import Callable, Iterable
from concurrent.futures import Executor
from typing import Any

import pytest

from skyrocket.client.consumer.concurrent_consumption import ConcurrentConsumption
from skyrocket.client.consumer.consume_statistics import ConsumeStatistics
from skyrocket.client.consumer.handlers import Handler
from skyrocket.client.consumer.offset_store import OffsetStore
from skyrocket.client.consumer.process_queue import ProcessQueue
from skyrocket.client.consumer.push_consumer_settings import PushConsumerSettings
from skyrocket.client.core.message import ReceivedMessage, decode_messages
from skyrocket.model.message_queue import MessageQueue
from skyrocket.testing.clock import FakeClock
from tests.unit.client.consumer.test_pulled_answer import record

QUEUE = MessageQueue("Orders", "broker-a", 3)


class InMemory(OffsetStore):
    """Offsets that go nowhere."""

    async def stored(self, queue: MessageQueue) -> int | None:
        return self.in_memory(queue)

    async def persist(self, queues: Iterable[MessageQueue], *, confirmed: bool = False) -> None:
        pass


def no_threads() -> Executor:
    raise AssertionError("an async handler needs no thread")


def consumption(
    function: Callable[[Any], Any], *, concurrency: int, batch: int = 1
) -> tuple[ConcurrentConsumption, InMemory]:
    handler = Handler(function, no_threads, takes_list=batch > 1)
    settings = PushConsumerSettings(max_concurrency=concurrency, consume_message_batch_max_size=batch)
    clock, offsets = FakeClock(), InMemory()
    statistics = ConsumeStatistics(clock.monotonic)
    made = ConcurrentConsumption("G", lambda _: handler, offsets, None, settings, clock, statistics)
    return made, offsets


def pulled(*offsets: int) -> list[ReceivedMessage]:
    return decode_messages(b"".join(record(offset, b"%d" % offset) for offset in offsets), "broker-a", 3)


async def turns(count: int) -> None:
    for _ in range(count):
        await asyncio.sleep(0)


async def test_handlers_that_wait_run_at_once_up_to_the_limit_and_the_next_follow_when_one_ends() -> None:
    running: list[int] = []
    may_end = asyncio.Semaphore(0)

    async def handle(message: ReceivedMessage) -> None:
        running.append(message.queue_offset)
        await may_end.acquire()

    consuming, offsets = consumption(handle, concurrency=5)
    consuming.start()
    await turns(1)
    consuming.arrived(ProcessQueue(QUEUE), pulled(*range(8)))
    await turns(20)
    assert running == [0, 1, 2, 3, 4]
    may_end.release()
    await turns(5)
    assert running == [0, 1, 2, 3, 4, 5]
    for _ in range(7):
        may_end.release()
    await turns(20)
    assert running == list(range(8))
    assert offsets.in_memory(QUEUE) == 8
    await consuming.stop(1)


async def test_messages_of_several_pulls_are_shared_by_workers_that_are_free() -> None:
    running: list[int] = []
    for_ever = asyncio.Event()

    async def handle(message: ReceivedMessage) -> None:
        running.append(message.queue_offset)
        await for_ever.wait()

    consuming, _ = consumption(handle, concurrency=6)
    consuming.start()
    await turns(1)
    process_queue = ProcessQueue(QUEUE)
    for offset in range(4):  # one at a time, in one turn
        consuming.arrived(process_queue, pulled(offset))
    await turns(20)
    assert running == [0, 1, 2, 3]
    consuming.arrived(process_queue, pulled(4, 5, 6))
    await turns(20)
    assert running == [0, 1, 2, 3, 4, 5]
    for_ever.set()
    await turns(5)
    assert running == list(range(7))
    await consuming.stop(1)


@pytest.mark.parametrize("size", [2, 3, 5, 32])
async def test_lists_are_cut_in_order(size: int) -> None:
    calls: list[list[int]] = []

    async def handle(messages: list[ReceivedMessage]) -> None:
        calls.append([message.queue_offset for message in messages])

    consuming, offsets = consumption(handle, concurrency=1, batch=size)
    consuming.start()
    await turns(1)
    consuming.arrived(ProcessQueue(QUEUE), pulled(*range(10)))
    await turns(5)
    assert calls == [list(range(at, min(at + size, 10))) for at in range(0, 10, size)]
    assert offsets.in_memory(QUEUE) == 10
    await consuming.stop(1)


async def test_what_is_left_of_a_queue_that_was_dropped_is_not_consumed() -> None:
    seen: list[int] = []
    process_queue = ProcessQueue(QUEUE)

    async def handle(message: ReceivedMessage) -> None:
        seen.append(message.queue_offset)
        process_queue.drop()

    consuming, offsets = consumption(handle, concurrency=3)
    consuming.start()
    await turns(1)
    consuming.arrived(process_queue, pulled(*range(10)))
    await turns(10)
    assert seen == [0]
    assert offsets.in_memory(QUEUE) is None
    await consuming.stop(1)
