"""PushConsumer against real brokers: what is handled, and what is committed."""

import asyncio
import threading
import time
from collections import Counter
from datetime import UTC, datetime
from pathlib import Path

import pytest

from skyrocket.client.consumer.handlers import current_message
from skyrocket.client.consumer.push_consumer import PushConsumer
from skyrocket.client.consumer.push_consumer_settings import PushConsumerSettings
from skyrocket.client.consumer.start_position import ConsumeFromWhere
from skyrocket.client.consumer.subscription import SqlFilter
from skyrocket.client.core.errors import BrokerRefused
from skyrocket.client.core.message import Message, ReceivedMessage
from skyrocket.client.producer.producer import Producer
from skyrocket.config.sections import BrokerConfig
from skyrocket.protocol.codes import RequestCode
from tests.cluster.client.inside import assigned_queues
from tests.cluster.client.push_consumers import FIRST, GROUP, TOPIC, committed, seen_by_broker, send
from tests.cluster.servers import cluster
from tests.waiting import until


@pytest.mark.requirement("A063", "A065", "B020", "C012", "D019", "C108")
@pytest.mark.parametrize("orderly", [False, True])
@pytest.mark.parametrize("kind", ["async", "plain"])
async def test_every_message_is_handled_once_and_committed_at_the_end(tmp_path: Path, orderly: bool, kind: str) -> None:
    got: list[ReceivedMessage] = []
    threads: set[str] = set()
    async with cluster(tmp_path) as given, Producer("Shop", given.names) as producer:
        await send(producer, 50, tags="TagA")
        consumer = PushConsumer(GROUP, given.names, PushConsumerSettings(orderly=orderly))

        async def handle(message: ReceivedMessage) -> None:
            assert current_message.get() is message
            got.append(message)

        def handle_plainly(message: ReceivedMessage) -> None:
            assert current_message.get() is message
            threads.add(threading.current_thread().name)
            got.append(message)

        consumer.subscribe(TOPIC, handle if kind == "async" else handle_plainly)
        async with consumer:
            await until(lambda: len(got) >= 50)
            await send(producer, 50)
            await until(lambda: len(got) >= 100)
        assert Counter(message.body for message in got) == {b"%d" % i: 2 for i in range(50)}
        assert got[0].topic == TOPIC
        assert committed(given) == 100
        assert all(name.startswith("skyrocket-Billing") for name in threads)
        assert bool(threads) == (kind == "plain")


async def test_an_idle_consumer_stops_at_once_and_leaves_the_group(tmp_path: Path) -> None:
    async with cluster(tmp_path) as given, Producer("Shop", given.names) as producer:
        await send(producer, 1)
        for orderly in (False, True):
            consumer = PushConsumer(GROUP, given.names, PushConsumerSettings(orderly=orderly))
            consumer.subscribe(TOPIC, lambda message: None)
            await consumer.start()
            await until(lambda consumer=consumer: len(consumer.assignment) == 5)  # type: ignore[misc]
            began = time.monotonic()
            await consumer.stop()
            await consumer.stop()
            assert time.monotonic() - began < 10
            assert given.brokers["broker-a"].tables.consumers.find_group(GROUP) is None
            await asyncio.wait_for(consumer.wait_stopped(), 60)
        assert not [task for task in asyncio.all_tasks() if GROUP in task.get_name()]


@pytest.mark.requirement("B035", "C141")
async def test_tags_are_filtered(tmp_path: Path) -> None:
    got: list[str | None] = []
    async with cluster(tmp_path) as given, Producer("Shop", given.names) as producer:
        for tag in ("A", "B", "C", "A", None, "Aa", "BB"):  # the last two have the same hash
            await producer.send(Message(TOPIC, b"x", tags=tag))
        consumer = PushConsumer(GROUP, given.names)

        @consumer.on(TOPIC, tags="A || C || BB")
        async def handle(message: ReceivedMessage) -> None:
            got.append(message.tags)

        async with consumer:
            await until(lambda: len(got) >= 4)
            await until(lambda: sum(consumer.offsets_of(TOPIC).values()) == 7)
        assert sorted(map(str, got)) == ["A", "A", "BB", "C"]


@pytest.mark.requirement("A088")
async def test_stop_lets_running_handlers_finish_and_commits_them(tmp_path: Path) -> None:
    began: list[bytes] = []
    ended: list[bytes] = []
    async with cluster(tmp_path) as given, Producer("Shop", given.names) as producer:
        await send(producer, 30)
        consumer = PushConsumer(GROUP, given.names, PushConsumerSettings(max_concurrency=4))

        @consumer.on(TOPIC)
        async def handle(message: ReceivedMessage) -> None:
            began.append(message.body)
            await asyncio.sleep(0.1)
            ended.append(message.body)

        async with consumer:
            await until(lambda: len(began) >= 4)
        assert sorted(began) == sorted(ended)
        assert len(ended) < 30
        handled = list(ended)
        second = PushConsumer(GROUP, given.names)
        second.subscribe(TOPIC, lambda message: handled.append(message.body))
        async with second:
            await until(lambda: len(set(handled)) >= 30)
        assert set(handled) == {b"%d" % i for i in range(30)}


@pytest.mark.requirement("A081")
async def test_a_new_group_begins_where_it_is_told(tmp_path: Path) -> None:
    async with cluster(tmp_path) as given, Producer("Shop", given.names) as producer:
        await send(producer, 8)
        await asyncio.sleep(0.05)
        middle = datetime.now(UTC)
        await asyncio.sleep(0.05)
        await send(producer, 4, tags="late")
        expected = {
            ConsumeFromWhere.CONSUME_FROM_FIRST_OFFSET: 12,
            ConsumeFromWhere.CONSUME_FROM_TIMESTAMP: 4,
            ConsumeFromWhere.CONSUME_FROM_LAST_OFFSET: 0,
        }
        for number, (where, count) in enumerate(expected.items()):
            got: list[ReceivedMessage] = []
            settings = PushConsumerSettings(consume_from=where, consume_timestamp=middle, new_group_from_zero=False)
            consumer = PushConsumer(f"Group{number}", given.names, settings)
            consumer.subscribe(TOPIC, got.append)
            async with consumer:
                await until(lambda consumer=consumer: len(consumer.assignment) == 5)  # type: ignore[misc]
                await until(lambda got=got, count=count: len(got) >= count)  # type: ignore[misc]
                await asyncio.sleep(0.05)
            assert len(got) == count, where


@pytest.mark.requirement("A089")
async def test_a_queue_is_pulled_no_further_than_its_limits_allow(tmp_path: Path) -> None:
    started = 0
    release = asyncio.Event()
    async with cluster(tmp_path) as given, Producer("Shop", given.names) as producer:
        for _ in range(4):
            await producer.send_batch([Message(TOPIC, b"x")] * 100, queue=None)
        settings = PushConsumerSettings(pull_threshold_for_queue=40, pull_batch_size=16, max_concurrency=2)
        consumer = PushConsumer(GROUP, given.names, settings)

        @consumer.on(TOPIC)
        async def handle(message: ReceivedMessage) -> None:
            nonlocal started
            started += 1
            await release.wait()

        async with consumer:
            await until(lambda: started == 2)
            in_hand = assigned_queues(consumer).in_hand
            await until(lambda: max(process_queue.count for process_queue in in_hand.values()) > 40)
            await asyncio.sleep(0.1)
            assert max(process_queue.count for process_queue in in_hand.values()) <= 56
            release.set()
            await until(lambda: started >= 400)


async def test_a_consumer_survives_the_restart_of_its_broker(tmp_path: Path) -> None:
    got: Counter[bytes] = Counter()
    async with cluster(tmp_path) as given, Producer("Shop", given.names) as producer:
        await send(producer, 5)
        consumer = PushConsumer(GROUP, given.names)
        consumer.subscribe(TOPIC, lambda message: got.update([message.body]))
        async with consumer:
            await until(lambda: len(got) == 5)
            await given.stop_broker()
            await asyncio.sleep(0.3)
            await given.start_broker()
            for i in range(5, 10):
                await producer.send(Message(TOPIC, b"%d" % i), timeout=5)
            await until(lambda: len(got) == 10)


async def test_an_sql_filter_chooses_by_properties_and_a_broken_one_is_refused_at_the_start(tmp_path: Path) -> None:
    got: list[bytes] = []
    config = BrokerConfig(property_filter=True)
    async with cluster(tmp_path, config=config) as given, Producer("Shop", given.names) as producer:
        for i in range(6):
            await producer.send(Message(TOPIC, b"%d" % i, properties={"price": str(i)}))
        consumer = PushConsumer(GROUP, given.names, PushConsumerSettings(consume_from=FIRST))

        @consumer.on(TOPIC, sql="price > 3")
        async def handle(message: ReceivedMessage) -> None:
            got.append(message.body)

        async with consumer:
            await until(lambda: sum(consumer.offsets_of(TOPIC).values()) == 6)
        assert sorted(got) == [b"4", b"5"]
        broken = PushConsumer("Other", given.names)
        broken.subscribe(TOPIC, handle, SqlFilter("price >"))
        with pytest.raises(BrokerRefused, match=r"the filter 'price >' was refused by broker .* code 23"):
            await broken.start()


@pytest.mark.requirement("C115", "E015")
async def test_a_pull_names_its_queue_and_offset_and_wants_32_messages_that_are_handled_one_by_one(
    tmp_path: Path,
) -> None:
    got: list[int] = []
    async with cluster(tmp_path) as given, Producer("Shop", given.names) as producer:
        for _ in range(40):
            await producer.send(Message(TOPIC, b"x", sharding_key="k"))
        (queue_id,) = {each for each in range(4) if given.brokers["broker-a"].store.max_offset(TOPIC, each)}
        pulls = seen_by_broker(given, RequestCode.PULL_MESSAGE)
        consumer = PushConsumer(GROUP, given.names)
        consumer.subscribe(TOPIC, lambda messages: got.append(len(messages)), batch=True)
        async with consumer:
            await until(lambda: len(got) == 40)
        assert got == [1] * 40
        fields = [pull.ext_fields or {} for pull in pulls]
        asked = [each for each in fields if (each["topic"], each["queueId"]) == (TOPIC, str(queue_id))]
        assert list(dict.fromkeys(each["queueOffset"] for each in asked)) == ["0", "32", "40"]
        assert {(each["maxMsgNums"], each["consumerGroup"]) for each in asked} == {("32", GROUP)}
