"""A consumer that is stopped while it gives queues to another member: what it has consumed is committed."""

import asyncio
from collections.abc import Awaitable, Callable, Iterable
from pathlib import Path

import pytest

from skyrocket.client.consumer.lite_pull_consumer import LitePullConsumer
from skyrocket.client.consumer.lite_pull_settings import LitePullSettings
from skyrocket.client.consumer.push_consumer import PushConsumer
from skyrocket.client.consumer.push_consumer_settings import PushConsumerSettings
from skyrocket.client.consumer.remote_offsets import RemoteOffsets
from skyrocket.client.core.settings import ClientSettings
from skyrocket.client.producer.producer import Producer
from skyrocket.model.message_queue import MessageQueue
from skyrocket.protocol.requests.clients import HeartBeat
from skyrocket.remoting.client import RemotingClient
from tests.cluster.broker.broker_fixture import heartbeat
from tests.cluster.client.push_consumers import FIRST, GROUP, TOPIC, committed, send
from tests.cluster.servers import Cluster, cluster
from tests.waiting import until

COUNT = 8  # two in each queue
NEVER = 600.0


async def pushed(given: Cluster) -> PushConsumer:
    """One that has consumed all."""
    got: list[bytes] = []
    consumer = PushConsumer(GROUP, given.names, PushConsumerSettings(consume_from=FIRST, persist_interval=NEVER))
    consumer.subscribe(TOPIC, lambda message: got.append(message.body))
    await consumer.start()
    await until(lambda: len(got) == COUNT)
    return consumer


async def polled(given: Cluster) -> LitePullConsumer:
    consumer = LitePullConsumer(GROUP, given.names, LitePullSettings(consume_from=FIRST, persist_interval=NEVER))
    await consumer.start()
    await consumer.subscribe(TOPIC)
    got = 0
    while got < COUNT:
        got += len(await consumer.poll(1.0))
    return consumer


@pytest.mark.parametrize("consumed", [pushed, polled])
async def test_queues_that_are_given_away_are_saved_at_the_end(
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    consumed: Callable[[Cluster], Awaitable[PushConsumer | LitePullConsumer]],
) -> None:
    persist = RemoteOffsets.persist
    is_giving = asyncio.Event()

    async def slowly(self: RemoteOffsets, queues: Iterable[MessageQueue], *, confirmed: bool = False) -> None:
        if not confirmed:
            is_giving.set()
            await asyncio.Event().wait()
        await persist(self, queues, confirmed=confirmed)

    async with cluster(tmp_path) as given, Producer("Shop", given.names) as producer:
        await send(producer, COUNT)
        consumer = await consumed(given)
        monkeypatch.setattr(RemoteOffsets, "persist", slowly)
        async with RemotingClient() as another:
            address = str(given.brokers["broker-a"].identity.address)
            await another.call(address, HeartBeat(), heartbeat("another", GROUP))
            await asyncio.wait_for(is_giving.wait(), 30)
            await consumer.stop()
            assert committed(given) == COUNT


async def test_queues_whose_giving_away_was_cut_short_are_not_set_back_at_the_end(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    async def never(self: RemoteOffsets, queues: Iterable[MessageQueue], *, confirmed: bool = False) -> None:
        await asyncio.Event().wait()

    async with cluster(tmp_path) as given, Producer("Shop", given.names) as producer:
        await send(producer, COUNT)
        consumer = await polled(given)
        with monkeypatch.context() as patched:
            patched.setattr(RemoteOffsets, "persist", never)
            with pytest.raises(TimeoutError):
                await asyncio.wait_for(consumer.unsubscribe(TOPIC), 0.2)
        await send(producer, COUNT)
        instance = ClientSettings(given.names, instance_name="another")
        async with LitePullConsumer(GROUP, settings=LitePullSettings(consume_from=FIRST), client=instance) as another:
            await another.assign(await another.message_queues(TOPIC))
            got = 0
            while got < 2 * COUNT:
                got += len(await another.poll(1.0))
        assert committed(given) == 2 * COUNT
        await consumer.stop()
        assert committed(given) == 2 * COUNT
