"""Sends to a queue of the application's choice, whose broker leaves and comes back."""

import asyncio
from contextlib import suppress

import pytest

from skyrocket.client import Message, NoRoute, Producer
from skyrocket.model.message_queue import MessageQueue
from skyrocket.testing.async_cluster import AsyncLocalCluster
from tests.waiting import until

AT_B = MessageQueue("Orders", "broker-b", 0)


async def without_b(cluster: AsyncLocalCluster, producer: Producer) -> None:
    """The producer has heard that broker-b has left."""
    await producer.send(Message("Orders", b"before"), queue=AT_B)
    await cluster.stop_broker("broker-b")
    await until(lambda: "broker-b" not in {queue.broker_name for queue in cluster_queues(cluster)})
    await producer._instance.refresh_routes()


def cluster_queues(cluster: AsyncLocalCluster) -> list[MessageQueue]:
    return [MessageQueue("Orders", broker.identity.broker_name, 0) for broker in cluster._running()]


async def test_the_first_send_after_its_broker_came_back_finds_it() -> None:
    async with AsyncLocalCluster(brokers=2) as cluster, cluster.producer() as producer:
        await cluster.create_topic("Orders", queues=1)
        await without_b(cluster, producer)
        with pytest.raises(NoRoute, match="queue 0 of broker broker-b"):
            await producer.send(Message("Orders", b"nobody there"), queue=AT_B)
        await cluster.start_broker("broker-b")
        receipt = await producer.send(Message("Orders", b"after"), queue=AT_B)
    assert (receipt.queue, receipt.queue_offset) == (AT_B, 1)


async def test_an_application_that_tries_again_at_once_lets_its_other_tasks_run() -> None:
    async with AsyncLocalCluster(brokers=2) as cluster, cluster.producer() as producer:
        await cluster.create_topic("Orders", queues=1)
        await without_b(cluster, producer)
        turns = 0

        async def count() -> None:
            nonlocal turns
            while True:
                await asyncio.sleep(0)
                turns += 1

        other = asyncio.create_task(count())
        await asyncio.sleep(0)
        before = turns
        for _ in range(20):
            with suppress(NoRoute):
                await producer.send(Message("Orders", b"nobody there"), queue=AT_B)
        other.cancel()
    assert turns - before >= 20
