"""LitePullConsumer against a real broker."""

import asyncio
import time
from collections import Counter
from pathlib import Path

import pytest

from skyrocket.client.consumer.lite_pull_consumer import LitePullConsumer
from skyrocket.client.consumer.lite_pull_settings import LitePullSettings
from skyrocket.client.consumer.subscription import SqlFilter
from skyrocket.client.core.errors import BrokerRefused, IllegalSubscription, NotRunning, WrongUse
from skyrocket.client.core.message import Message, ReceivedMessage
from skyrocket.client.core.settings import ClientSettings
from skyrocket.client.producer.producer import Producer
from skyrocket.config.sections import BrokerConfig
from skyrocket.errors import ConfigError
from skyrocket.model.message_queue import MessageQueue
from tests.cluster.servers import Cluster, cluster
from tests.waiting import until

TOPIC, GROUP = "Orders", "Report"
QUEUE = MessageQueue(TOPIC, "broker-a", 3)


async def fill(producer: Producer, count: int) -> None:
    """Into one queue, in order."""
    for i in range(count):
        await producer.send(Message(TOPIC, b"%d" % i, sharding_key="order-1001"))


async def drained(consumer: LitePullConsumer, count: int) -> list[ReceivedMessage]:
    found: list[ReceivedMessage] = []
    while len(found) < count:
        batch = await consumer.poll(5)
        assert batch, f"only {len(found)} of {count} came"
        found += batch
    return found


def committed(given: Cluster) -> int | None:
    return given.brokers["broker-a"].tables.offsets.committed(GROUP, TOPIC, 3)


@pytest.mark.requirement("A062", "B012", "D023")
async def test_what_was_polled_is_committed_and_not_polled_again(tmp_path: Path) -> None:
    async with cluster(tmp_path) as given, Producer("Shop", given.names) as producer:
        await fill(producer, 25)
        async with LitePullConsumer(GROUP, given.names, LitePullSettings(auto_commit=False)) as consumer:
            await consumer.subscribe(TOPIC)
            found = await drained(consumer, 25)
            assert [message.body for message in found] == [b"%d" % i for i in range(25)]
            assert await consumer.committed(QUEUE) in (None, 0)
            await consumer.commit()
            assert committed(given) == 25
            assert await consumer.committed(QUEUE) == 25
            assert await consumer.poll(0.05) == []
        await producer.send(Message(TOPIC, b"new", sharding_key="order-1001"))
        async with LitePullConsumer(GROUP, given.names) as consumer:
            await consumer.subscribe(TOPIC)
            assert [message.body for message in await drained(consumer, 1)] == [b"new"]
        assert committed(given) == 26  # auto commit at the end
        with pytest.raises(NotRunning, match="lite pull consumer Report is stopped"):
            await consumer.poll()


async def test_assigned_queues_can_be_sought(tmp_path: Path) -> None:
    async with cluster(tmp_path) as given, Producer("Shop", given.names) as producer:
        await fill(producer, 12)
        async with LitePullConsumer(GROUP, given.names) as consumer:
            with pytest.raises(IllegalSubscription, match="assign needs at least one queue"):
                await consumer.assign([])
            assert len(await consumer.message_queues(TOPIC)) == 4
            await consumer.assign([QUEUE])
            assert consumer.assignment == {QUEUE}
            await drained(consumer, 12)
            await consumer.seek(QUEUE, 5)
            assert [message.body for message in await drained(consumer, 7)] == [b"%d" % i for i in range(5, 12)]
            await consumer.seek_to_begin(QUEUE)
            assert (await consumer.poll(5, max_messages=3))[-1].body == b"2"
            assert (await consumer.poll(5, max_messages=1))[0].body == b"3"
            await consumer.seek_to_end(QUEUE)
            await producer.send(Message(TOPIC, b"end", sharding_key="order-1001"))
            assert [message.body for message in await drained(consumer, 1)] == [b"end"]
            with pytest.raises(WrongUse, match=r"offset 99 is not in .*: it has 0 to 13"):
                await consumer.seek(QUEUE, 99)
            with pytest.raises(WrongUse, match="is not assigned to lite pull consumer Report"):
                await consumer.seek(QUEUE._replace(queue_id=0), 0)
            with pytest.raises(WrongUse, match="it cannot subscribe as well"):
                await consumer.subscribe(TOPIC)
            assert await consumer.offset_for_timestamp(QUEUE, 0.0) == 0
            assert await consumer.offset_for_timestamp(QUEUE, time.time() + 60) in (12, 13)
            await consumer.commit({QUEUE: 4})
            assert committed(given) == 4


async def test_pause_keeps_a_queue_still(tmp_path: Path) -> None:
    async with cluster(tmp_path) as given, Producer("Shop", given.names) as producer:
        await fill(producer, 1)
        async with LitePullConsumer(GROUP, given.names) as consumer:
            await consumer.assign([QUEUE])
            await drained(consumer, 1)
            consumer.pause(QUEUE)
            await fill(producer, 1)  # ends the poll under way
            await drained(consumer, 1)
            await fill(producer, 1)
            assert await consumer.poll(0.2) == []
            consumer.resume(QUEUE)
            await drained(consumer, 1)


async def test_members_share_the_queues(tmp_path: Path) -> None:
    async with cluster(tmp_path) as given, Producer("Shop", given.names) as producer:
        await fill(producer, 1)
        async with LitePullConsumer(GROUP, given.names) as one, LitePullConsumer(GROUP, given.names) as two:
            await one.subscribe(TOPIC)
            await until(lambda: len(one.assignment) == 4)
            with pytest.raises(WrongUse, match="queues cannot be assigned as well"):
                await one.assign([QUEUE])
            await two.subscribe(TOPIC)
            await until(lambda: len(one.assignment) == len(two.assignment) == 2)
            assert not one.assignment & two.assignment
            await two.unsubscribe(TOPIC)
            assert two.assignment == set()


async def test_iteration_ends_when_the_consumer_stops(tmp_path: Path) -> None:
    async with cluster(tmp_path) as given, Producer("Shop", given.names) as producer:
        await fill(producer, 30)
        client = ClientSettings(given.names, namespace="")
        consumer = LitePullConsumer(GROUP, client=client)
        got: Counter[bytes] = Counter()
        await consumer.start()
        await consumer.subscribe(TOPIC)

        async def read() -> None:
            async for message in consumer:
                got[message.body] += 1

        reading = asyncio.create_task(read())
        await until(lambda: len(got) == 30)
        await consumer.stop()
        await asyncio.wait_for(reading, 2)
        assert set(got.values()) == {1}
        assert committed(given) == 30


def fetched(consumer: LitePullConsumer) -> int:
    return sum(queue.cached_messages for queue in consumer.running_info(with_stacks=False).queues.values())


async def test_no_more_is_fetched_ahead_than_allowed(tmp_path: Path) -> None:
    async with cluster(tmp_path) as given, Producer("Shop", given.names) as producer:
        await producer.send_batch([Message(TOPIC, b"x")] * 200)
        settings = LitePullSettings(pull_threshold_for_all=40, pull_batch_size=10)
        async with LitePullConsumer(GROUP, given.names, settings) as consumer:
            await consumer.subscribe(TOPIC)
            await until(lambda: fetched(consumer) >= 40)
            await asyncio.sleep(0.2)
            assert 40 <= fetched(consumer) <= 50
            await drained(consumer, 200)


async def test_without_auto_commit_nothing_is_committed_but_by_the_application(tmp_path: Path) -> None:
    settings = LitePullSettings(auto_commit=False, persist_interval=0.05, broker_suspend_max=0.1)
    async with cluster(tmp_path) as given, Producer("Shop", given.names) as producer:
        await fill(producer, 5)
        async with LitePullConsumer(GROUP, given.names, settings) as consumer:
            await consumer.subscribe(TOPIC)
            await drained(consumer, 5)
            await asyncio.sleep(0.5)  # pulls that find nothing, and several rounds of saving
        assert committed(given) in (None, 0)


async def test_automatic_commits_count_what_the_filter_left_out(tmp_path: Path) -> None:
    async with cluster(tmp_path) as given, Producer("Shop", given.names) as producer:
        await fill(producer, 5)
        async with LitePullConsumer(GROUP, given.names) as consumer:
            await consumer.subscribe(TOPIC, "NoSuchTag")
            await until(lambda: QUEUE in consumer.assignment and consumer.position(QUEUE) == 5)
        assert committed(given) == 5


async def test_queues_can_be_assigned_with_the_offset_to_begin_at(tmp_path: Path) -> None:
    async with cluster(tmp_path) as given, Producer("Shop", given.names) as producer:
        await fill(producer, 20)
        async with LitePullConsumer(GROUP, given.names) as consumer:
            await consumer.assign({QUEUE: 15})
            assert [message.queue_offset for message in await drained(consumer, 5)] == [15, 16, 17, 18, 19]
            await consumer.assign({QUEUE: 18})
            first = await consumer.poll(5, max_messages=1)
            assert [message.queue_offset for message in first] == [18]
            assert consumer.position(QUEUE) == 19
            with pytest.raises(WrongUse, match="is not assigned to lite pull consumer Report"):
                consumer.position(QUEUE._replace(queue_id=0))


async def test_a_filter_that_brokers_cannot_evaluate_is_refused_at_once(tmp_path: Path) -> None:
    config = BrokerConfig(property_filter=True)
    async with cluster(tmp_path, config=config) as given, Producer("Shop", given.names) as producer:
        await fill(producer, 1)
        async with LitePullConsumer(GROUP, given.names) as consumer:
            with pytest.raises(BrokerRefused, match=r"the filter 'a >' was refused"):
                await consumer.assign([QUEUE], SqlFilter("a >"))
        async with LitePullConsumer(GROUP, given.names) as consumer:
            with pytest.raises(BrokerRefused, match="correct the filter"):
                await consumer.subscribe(TOPIC, SqlFilter("a >"))


async def test_columns_are_what_messages_would_be_and_are_committed_like_them(tmp_path: Path) -> None:
    settings = LitePullSettings(auto_commit=False)
    async with cluster(tmp_path) as given, Producer("Shop", given.names) as producer:
        await fill(producer, 25)
        async with LitePullConsumer(GROUP, given.names, settings) as consumer:
            await consumer.subscribe(TOPIC)
            first = await consumer.poll_arrow(5, max_messages=3, columns=["queueOffset", "body"])
            assert first.to_pydict() == {"queueOffset": [0, 1, 2], "body": [b"0", b"1", b"2"]}
            assert [message.body for message in await consumer.poll(5, max_messages=2)] == [b"3", b"4"]
            await consumer.commit()
            assert committed(given) == 5
            rest: list[bytes] = []
            async for batch in consumer.arrow_batches(columns=["body"]):
                rest += batch.column("body").to_pylist()
                if len(rest) == 20:
                    break
            assert rest == [b"%d" % i for i in range(5, 25)]
            assert (await consumer.poll_arrow(0.01)).num_rows == 0
            await consumer.commit()
            assert committed(given) == 25
            with pytest.raises(ConfigError, match="did you mean 'body'"):
                await consumer.poll_arrow(0.01, columns=["bdy"])
            with pytest.raises(WrongUse, match="max_messages 0 is not positive"):
                await consumer.poll_arrow(0.01, 0)


async def test_columns_follow_filters_and_namespaces(tmp_path: Path) -> None:
    async with cluster(tmp_path) as given:
        client = ClientSettings(given.names, namespace="Shop")
        async with Producer("Till", client=client) as producer:
            await producer.send_batch([Message(TOPIC, b"%d" % i, tags="ab"[i % 2]) for i in range(20)])
        async with LitePullConsumer(GROUP, client=client) as consumer:
            await consumer.subscribe(TOPIC, "a")
            batch = await consumer.poll_arrow(10, columns=["topic", "tags", "body"])
            assert batch.to_pydict() == {
                "topic": [TOPIC] * 10,
                "tags": ["a"] * 10,
                "body": [b"%d" % i for i in range(0, 20, 2)],
            }
