"""PushConsumer against real brokers: what users and tools can ask of a running one."""

import asyncio
import re
from pathlib import Path

import pytest

from skyrocket.broker.pull.feature import PullFeature
from skyrocket.client.admin.admin import Admin
from skyrocket.client.consumer.handlers import ReconsumeLater
from skyrocket.client.consumer.push_consumer import PushConsumer
from skyrocket.client.consumer.push_consumer_settings import PushConsumerSettings
from skyrocket.client.core.errors import AlreadyStarted, GroupInUse, IllegalSubscription, WrongUse
from skyrocket.client.core.hooks import ConsumeContext, ConsumeHook
from skyrocket.client.core.message import Message, ReceivedMessage
from skyrocket.client.core.settings import ClientSettings
from skyrocket.client.producer.producer import Producer
from skyrocket.config.sections import BrokerConfig
from skyrocket.model.message_queue import MessageQueue
from skyrocket.protocol.bodies.offsets import ConsumerStatus
from skyrocket.protocol.bodies.running_info import DirectConsumption
from skyrocket.protocol.requests.offsets import GetConsumerStatus
from skyrocket.protocol.requests.server_to_client import ConsumeMessageDirectly
from tests.cluster.client.inside import assigned_queues, instance_of
from tests.cluster.client.push_consumers import FIRST, GROUP, TOPIC, committed, send
from tests.cluster.servers import cluster
from tests.waiting import until


async def test_pause_stops_pulling_and_resume_goes_on(tmp_path: Path) -> None:
    got: list[bytes] = []
    async with cluster(tmp_path) as given, Producer("Shop", given.names) as producer:
        await send(producer, 4)
        consumer = PushConsumer(GROUP, given.names)
        consumer.subscribe(TOPIC, lambda message: got.append(message.body))
        async with consumer:
            await until(lambda: len(got) == 4)
            await until(
                lambda: given.brokers["broker-a"].feature(PullFeature).polling.held_count == 5
            )  # of four queues, and retries
            consumer.pause()
            await send(producer, 4)  # ends the polls under way
            await until(lambda: len(got) == 8)
            await send(producer, 4)
            await asyncio.sleep(0.2)
            assert len(got) == 8
            consumer.resume()
            await until(lambda: len(got) == 12)


@pytest.mark.requirement("C129")
async def test_subscriptions_can_change_while_running(tmp_path: Path) -> None:
    got: list[str] = []
    async with cluster(tmp_path) as given, Producer("Shop", given.names) as producer:
        await send(producer, 1, topic="A")
        await send(producer, 1, topic="B")
        consumer = PushConsumer(GROUP, given.names)
        consumer.subscribe("A", lambda message: got.append(message.topic))
        async with consumer:
            await until(lambda: got == ["A"])
            consumer.subscribe("B", lambda message: got.append(message.topic))
            await until(lambda: got == ["A", "B"])
            consumer.unsubscribe("A")
            await until(lambda: {queue.topic for queue in consumer.assignment} == {"B", f"%RETRY%{GROUP}"})


async def test_a_topic_that_appears_later_is_consumed(tmp_path: Path) -> None:
    got: list[bytes] = []
    async with cluster(tmp_path) as given, Producer("Shop", given.names) as producer:
        consumer = PushConsumer(GROUP, given.names, PushConsumerSettings(consume_from=FIRST))
        consumer.subscribe("Later", lambda message: got.append(message.body))
        async with consumer:
            await asyncio.sleep(0.1)
            await producer.send(Message("Later", b"x"))
            await until(lambda: got == [b"x"])


async def test_hooks_see_what_handlers_did(tmp_path: Path) -> None:
    seen: list[tuple[bool | None, str]] = []

    class Hook(ConsumeHook):
        def after_consume(self, context: ConsumeContext) -> None:
            seen.append((context.succeeded, context.status))

    async with cluster(tmp_path) as given, Producer("Shop", given.names) as producer:
        await send(producer, 1)
        consumer = PushConsumer(GROUP, given.names, hooks=[Hook()])

        @consumer.on(TOPIC)
        async def handle(message: ReceivedMessage) -> None:
            if message.reconsume_times == 0:
                raise ReconsumeLater(delay_level=1)

        async with consumer:
            await until(lambda: len(seen) == 2)
        assert seen == [(False, "FAILED"), (True, "SUCCESS")]


@pytest.mark.requirement("C085")
async def test_namespaced_groups_see_plain_names(tmp_path: Path) -> None:
    got: list[tuple[str, int]] = []
    async with cluster(tmp_path) as given:
        client = ClientSettings(given.names, namespace="ns1")
        consumer = PushConsumer(GROUP, client=client, settings=PushConsumerSettings(consume_from=FIRST))

        @consumer.on(TOPIC)
        async def handle(message: ReceivedMessage) -> None:
            got.append((message.topic, message.reconsume_times))
            if message.reconsume_times == 0:
                raise ReconsumeLater(delay_level=1)

        async with Producer("Shop", client=client) as producer:
            await producer.send(Message(TOPIC, b"x"))
            async with consumer:
                await until(lambda: len(got) == 2)
        assert got == [(TOPIC, 0), (TOPIC, 1)]
        assert given.brokers["broker-a"].tables.topics.find(f"%RETRY%ns1%{GROUP}") is not None


@pytest.mark.requirement("C107")
async def test_wrong_use_is_named(tmp_path: Path) -> None:
    with pytest.raises(WrongUse, match="pull_batch_size=0 is out of range: it must be between 1 and 1024"):
        PushConsumerSettings(pull_batch_size=0)
    with pytest.raises(WrongUse, match="'tomorrow' is not of the form 20260131235959"):
        PushConsumerSettings(consume_timestamp="tomorrow")
    async with cluster(tmp_path) as given:
        empty = PushConsumer(GROUP, given.names)
        with pytest.raises(IllegalSubscription, match=r"has no subscription: add one with @consumer.on\(topic\)"):
            await empty.start()
        client = ClientSettings(given.names, instance_name="shared")
        one, two = PushConsumer(GROUP, client=client), PushConsumer(GROUP, client=client)
        for consumer in (one, two):
            consumer.subscribe(TOPIC, lambda message: None)
        async with one:
            with pytest.raises(GroupInUse, match=r"consumer group Billing is already used by client .*@shared: stop"):
                await two.start()
            with pytest.raises(AlreadyStarted, match="push consumer Billing was already started"):
                await one.start()
            assert instance_of(one).consumers[GROUP] is one


@pytest.mark.requirement("A094")
@pytest.mark.parametrize("by", ["broker", "push to clients"])
async def test_offsets_are_reset_from_outside_while_running(tmp_path: Path, by: str) -> None:
    got: list[bytes] = []
    config = BrokerConfig(server_side_reset=by == "broker")
    async with cluster(tmp_path, config=config) as given, Producer("Shop", given.names) as producer:
        await send(producer, 6)
        consumer = PushConsumer(GROUP, given.names, PushConsumerSettings(persist_interval=0.05))
        consumer.subscribe(TOPIC, lambda message: got.append(message.body))
        async with consumer, Admin(given.names) as admin:
            await until(lambda: len(got) == 6)
            await until(lambda: committed(given) == 6)
            await admin.reset_offsets(GROUP, TOPIC, 0.0)
            if by == "broker":  # heard with the next pull: end those that wait
                for queue in await producer.queues(TOPIC):
                    await producer.send(Message(TOPIC, b"new"), queue=queue)
                await until(lambda: got.count(b"new") == 4)
            await until(lambda: sum(body != b"new" for body in got) == 12)
            got.clear()
            await consumer.reset_to(0.0)
            await until(lambda: sum(body != b"new" for body in got) == 6)


@pytest.mark.requirement("C106")
async def test_tools_can_ask_a_running_consumer(tmp_path: Path) -> None:
    got: list[bytes] = []
    async with cluster(tmp_path) as given, Producer("Shop", given.names) as producer:
        await send(producer, 2)
        consumer = PushConsumer(GROUP, given.names)
        consumer.subscribe(TOPIC, lambda message: got.append(message.body), "*")
        async with consumer, Admin(given.names) as admin:
            await until(lambda: len(got) == 2)
            (member,) = (await admin.consumer_connections(GROUP)).connections
            assert member.client_id == instance_of(consumer).client_id
            info = await admin.running_info(GROUP, member.client_id, with_stacks=True)
            assert set(info.queues) == consumer.assignment
            assert info.properties["PROP_CONSUMEORDERLY"] == "false"
            assert "skyrocket" in (info.jstack or "")
            assert {each.topic for each in info.subscriptions} == {TOPIC, f"%RETRY%{GROUP}"}
            assert consumer.offsets_of(TOPIC).keys() <= set(consumer.assignment)
            queue = MessageQueue(TOPIC, "broker-a", 0)
            with pytest.raises(WrongUse, match="negative"):
                await consumer.commit_offset(queue, -1)
            await consumer.commit_offset(queue, 0)
            assert given.brokers["broker-a"].tables.offsets.committed(GROUP, TOPIC, 0) == 0


@pytest.mark.requirement("C166")
@pytest.mark.parametrize("orderly", [False, True])
async def test_tools_see_how_fast_a_consumer_pulls_and_consumes(tmp_path: Path, orderly: bool) -> None:
    calls = 0
    async with cluster(tmp_path) as given, Producer("Shop", given.names) as producer:
        for number in range(12):
            await producer.send(Message(TOPIC, b"%d" % number))
        settings = PushConsumerSettings(orderly=orderly, suspend_current_queue=0.01)
        consumer = PushConsumer(GROUP, given.names, settings)

        @consumer.on(TOPIC)
        async def handle(message: ReceivedMessage) -> None:
            nonlocal calls
            calls += 1
            await asyncio.sleep(0.01)
            if message.body == b"5" and message.reconsume_times == 0:
                raise ValueError("not at first")

        async with consumer, Admin(given.names) as admin:
            await until(lambda: sum(consumer.offsets_of(TOPIC).values()) == 12)
            status = (await admin.running_info(GROUP, instance_of(consumer).client_id)).status
            assert set(status) == {TOPIC, f"%RETRY%{GROUP}"}
            found = status[TOPIC]
            assert found.consume_rt >= 9
            assert found.pull_rt > 0
            # Eleven of the twelve were consumed at their first call; in order the twelfth came again in its own queue.
            assert found.consume_failed_messages == 1
            ratio = found.consume_ok_tps / found.consume_failed_tps
            assert round(ratio) == (12 if orderly else 11)
            assert round(found.pull_tps / found.consume_failed_tps) == 12


@pytest.mark.requirement("C168")
async def test_a_message_says_when_its_handler_was_called(tmp_path: Path) -> None:
    stamps: list[tuple[int, str, int]] = []
    async with cluster(tmp_path) as given, Producer("Shop", given.names) as producer:
        await producer.send(Message(TOPIC, b"x", keys="k"))
        consumer = PushConsumer(GROUP, given.names, PushConsumerSettings(orderly=True, suspend_current_queue=0.05))

        @consumer.on(TOPIC)
        async def handle(message: ReceivedMessage) -> None:
            stamp = message.properties["CONSUME_START_TIME"]
            stamps.append((message.consume_start_ms, stamp, message.store_timestamp))
            if len(stamps) == 1:
                raise ValueError("again, with properties that were read before")

        async with consumer:
            await until(lambda: len(stamps) == 2)
    assert all(text == str(began) and began >= stored for began, text, stored in stamps)
    assert stamps[0][0] < stamps[1][0]


@pytest.mark.requirement("C167", "C160")
async def test_a_consumer_logs_why_it_does_not_pull(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    release = asyncio.Event()
    async with cluster(tmp_path) as given, Producer("Shop", given.names) as producer:
        await producer.send_batch([Message(TOPIC, b"x")] * 100)
        consumer = PushConsumer(GROUP, given.names, PushConsumerSettings(pull_threshold_for_queue=40))

        @consumer.on(TOPIC)
        async def handle(message: ReceivedMessage) -> None:
            await release.wait()

        async with consumer:
            await until(lambda: "so do flow control" in caplog.text)
            await asyncio.sleep(0.1)
            release.set()
            await until(lambda: sum(consumer.offsets_of(TOPIC).values()) == 100)
        said = [each.getMessage() for each in caplog.records if "so do flow control" in each.getMessage()]
        assert len(said) == 1  # and then every thousandth time
        assert re.fullmatch(
            r"the cached message count exceeds the threshold 40, so do flow control, minOffset=0, maxOffset=63, "
            rf"count=64, size=0 MiB, queue=.*{TOPIC}.* group={GROUP} flowControlTimes=0",
            said[0],
        )


@pytest.mark.requirement("C160")
async def test_in_order_a_consumer_logs_that_it_waits_for_its_lock(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    async with cluster(tmp_path) as given, Producer("Shop", given.names) as producer:
        await producer.send(Message(TOPIC, b"x"))
        consumer = PushConsumer(GROUP, given.names, PushConsumerSettings(orderly=True))
        consumer.subscribe(TOPIC, lambda message: None)
        async with consumer:
            await until(lambda: len(consumer.assignment) == 5)
            for process_queue in assigned_queues(consumer).in_hand.values():
                process_queue.is_locked = False
            await producer.send(Message(TOPIC, b"x"), queue=MessageQueue(TOPIC, "broker-a", 0))
            await until(lambda: "pull message later because not locked in broker" in caplog.text)


@pytest.mark.requirement("C055")
async def test_received_messages_tell_how_far_behind_they_are(tmp_path: Path) -> None:
    lags: list[int] = []
    async with cluster(tmp_path) as given, Producer("Shop", given.names) as producer:
        for _ in range(4):
            await producer.send(Message(TOPIC, b"x", sharding_key="k"))
        consumer = PushConsumer(GROUP, given.names)
        consumer.subscribe(
            TOPIC, lambda message: lags.append(int(message.properties["MAX_OFFSET"]) - message.queue_offset)
        )
        async with consumer:
            await until(lambda: len(lags) == 4)
        assert sorted(lags) == [1, 2, 3, 4]


async def test_tools_can_have_a_message_consumed_and_offsets_shown(tmp_path: Path) -> None:
    got: list[bytes] = []
    async with cluster(tmp_path) as given, Producer("Shop", given.names) as producer:
        receipt = await producer.send(Message(TOPIC, b"x"))
        consumer = PushConsumer(GROUP, given.names)

        @consumer.on(TOPIC)
        async def handle(message: ReceivedMessage) -> None:
            got.append(message.body)
            if len(got) == 3:
                raise ValueError("not a third time")

        async with consumer, Admin(given.names) as admin:
            await until(lambda: len(got) == 1)
            address = str(given.brokers["broker-a"].identity.address)
            results = []
            for _ in range(2):
                request = ConsumeMessageDirectly(
                    consumer_group=GROUP,
                    client_id=instance_of(consumer).client_id,
                    msg_id=receipt.offset_message_id,
                    broker_name="broker-a",
                    topic=TOPIC,
                )
                reply = await instance_of(admin).remoting.call(address, request)
                results.append(DirectConsumption.decode(reply.body))
            assert [result.result for result in results] == ["CR_SUCCESS", "CR_THROW_EXCEPTION"]
            assert results[1].remark == "ValueError('not a third time')"
            status = await instance_of(admin).remoting.call(address, GetConsumerStatus(topic=TOPIC, group=GROUP))
            by_client = ConsumerStatus.decode(status.body).by_client
            assert sum(by_client[instance_of(consumer).client_id].values()) == 1
        assert len(got) == 3
