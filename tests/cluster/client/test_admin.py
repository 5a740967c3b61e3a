"""Admin against a real broker."""

import time
from pathlib import Path

import pytest

from skyrocket.client.admin.admin import Admin
from skyrocket.client.consumer.push_consumer import PushConsumer
from skyrocket.client.core.errors import BrokerRefused, ClientError, IllegalName, NoRoute, NotRunning, WrongUse
from skyrocket.client.core.message import Message
from skyrocket.client.core.settings import ClientSettings
from skyrocket.client.producer.producer import Producer
from skyrocket.model.message_queue import MessageQueue
from skyrocket.model.subscription_group import SubscriptionGroup
from tests.client_steps import soon
from tests.cluster.servers import cluster
from tests.waiting import until

TOPIC, GROUP = "Orders", "Billing"


async def test_topics_are_made_shown_and_removed(tmp_path: Path) -> None:
    async with cluster(tmp_path, "broker-a", "broker-b") as given, Admin(given.names) as admin:
        info = await admin.cluster()
        assert sorted(info.brokers) == ["broker-a", "broker-b"]
        await admin.create_topic(TOPIC, 3, attributes={"message.type": "NORMAL"})
        await admin.create_topic("Half", 2, broker="broker-b")
        await soon(admin, TOPIC, 6)
        await soon(admin, "Half", 2)
        assert {TOPIC, "Half"} <= set(await admin.topics())
        assert (await admin.topic_config(TOPIC)).read_queues == 3
        assert {queue.broker_name for queue in await admin.queues("Half")} == {"broker-b"}
        offsets = await admin.topic_offsets(TOPIC)
        assert len(offsets) == 6
        await admin.delete_topic(TOPIC)
        with pytest.raises(NoRoute, match="no route for topic Orders"):
            await admin.route(TOPIC)
        with pytest.raises(IllegalName, match="reserved for the system"):
            await admin.create_topic("TBW102")
        with pytest.raises(WrongUse, match="cluster Mars is not known; there are DefaultCluster"):
            await admin.create_topic(TOPIC, cluster="Mars")
        with pytest.raises(ClientError, match=r"no broker with a master .* under the name broker-z: start one"):
            await admin.create_topic(TOPIC, broker="broker-z")
    with pytest.raises(NotRunning, match="admin is stopped"):
        await admin.topics()


async def test_groups_are_made_shown_and_removed(tmp_path: Path) -> None:
    async with cluster(tmp_path) as given, Admin(given.names) as admin:
        await admin.create_group(SubscriptionGroup(GROUP, retry_max_times=3))
        assert (await admin.groups())[GROUP].retry_max_times == 3
        await admin.delete_group(GROUP)
        assert GROUP not in await admin.groups()


async def test_messages_are_found_by_key_and_by_either_id(tmp_path: Path) -> None:
    async with cluster(tmp_path) as given, Producer("Shop", given.names) as producer, Admin(given.names) as admin:
        receipts = [await producer.send(Message(TOPIC, b"%d" % i, keys=["all", f"k{i}"])) for i in range(3)]
        await soon(admin, TOPIC, 4)
        assert [message.body for message in await admin.query_by_key(TOPIC, "k1")] == [b"1"]
        assert sorted(message.body for message in await admin.query_by_key(TOPIC, "all")) == [b"0", b"1", b"2"]
        assert await admin.query_by_key(TOPIC, "nobody") == []
        for wanted in (receipts[2].message_id, receipts[2].offset_message_id):
            message = await admin.message(TOPIC, wanted)
            assert (message.body, message.broker_name, message.queue_id) == (
                b"2",
                "broker-a",
                receipts[2].queue.queue_id,
            )
        with pytest.raises(WrongUse, match=r"must be 32 .* hexadecimal digits"):
            await admin.message(TOPIC, "nonsense")
        with pytest.raises(ClientError, match=r"no message 7F.* in topic Orders"):
            await admin.message(TOPIC, receipts[2].offset_message_id[:-4] + "FFFF")
        with pytest.raises(
            ClientError, match="has this unique id, and it is no offset id: check id and topic"
        ) as unknown:
            await admin.message(TOPIC, "0" * 32)
        assert "connecting" not in str(unknown.value)


async def test_offsets_of_queues_and_groups(tmp_path: Path) -> None:
    async with cluster(tmp_path) as given, Producer("Shop", given.names) as producer, Admin(given.names) as admin:
        await admin.create_group(GROUP)
        before = time.time()
        for i in range(4):
            await producer.send(Message(TOPIC, b"%d" % i, sharding_key="order-1001"))
        await soon(admin, TOPIC, 4)
        queue = MessageQueue(TOPIC, "broker-a", 3)
        assert await admin.min_offset(queue) == 0
        assert await admin.max_offset(queue) == 4
        assert await admin.offset_at(queue, before - 1) == 0
        assert await admin.earliest_time(queue) >= round(before * 1000) - 1
        assert await admin.committed(GROUP, queue) is None
        await admin.set_offset(GROUP, queue, 3)
        assert await admin.committed(GROUP, queue) == 3
        moved = await admin.reset_offsets(GROUP, TOPIC, before - 1)
        assert moved[queue] == 0
        await admin.set_offset(GROUP, queue, 1)


async def test_the_lag_of_a_running_group(tmp_path: Path) -> None:
    got: list[bytes] = []
    async with cluster(tmp_path) as given, Producer("Shop", given.names) as producer, Admin(given.names) as admin:
        for i in range(4):
            await producer.send(Message(TOPIC, b"%d" % i))
        consumer = PushConsumer(GROUP, given.names)
        consumer.subscribe(TOPIC, lambda message: got.append(message.body))
        async with consumer:
            await until(lambda: sum(consumer.offsets_of(TOPIC).values()) == 4)
            for queue, offset in consumer.offsets_of(TOPIC).items():
                await consumer.commit_offset(queue, offset)
            await soon(admin, f"%RETRY%{GROUP}", 1)
            await producer.send(Message(TOPIC, b"x"))
            lags = [each for each in await admin.consumer_lag(GROUP, TOPIC) if each.queue.topic == TOPIC]
            assert len(lags) == 4
            assert sum(each.broker_offset for each in lags) == 5
            assert sum(each.lag for each in lags) in (0, 1)
        with pytest.raises(BrokerRefused, match="code 206 CONSUMER_NOT_ONLINE"):
            await admin.consumer_connections(GROUP)


async def test_a_namespace_hides_itself(tmp_path: Path) -> None:
    async with cluster(tmp_path) as given, Admin(client=ClientSettings(given.names, namespace="n")) as admin:
        await admin.create_topic(TOPIC, 2)
        await soon(admin, TOPIC, 2)
        assert await admin.topics() == [TOPIC]
        assert {queue.topic for queue in await admin.queues(TOPIC)} == {TOPIC}
        assert given.brokers["broker-a"].tables.topics.find(f"n%{TOPIC}") is not None
