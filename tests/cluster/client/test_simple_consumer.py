"""SimpleConsumer against real brokers; invisible times pass by moving the brokers' clock."""

import asyncio
import time
from collections.abc import Coroutine
from dataclasses import replace
from typing import Any

import pytest

from skyrocket.client import (
    Admin,
    IllegalSubscription,
    Message,
    NoRoute,
    NotRunning,
    PopNotOffered,
    PoppedMessage,
    Producer,
    ReceiptExpired,
    SimpleConsumer,
    SimpleConsumerSettings,
    SqlFilter,
    WrongUse,
    cause_of,
)
from skyrocket.client.pop.acknowledgements import batch_entries
from skyrocket.client.pop.popped_message import popped_messages
from skyrocket.errors import DataError
from skyrocket.format.trace import CallBegan, CallEnded, Sent
from skyrocket.model.pop_retry import pop_retry_topic
from skyrocket.protocol.codes import RequestCode
from skyrocket.protocol.command import RemotingCommand
from skyrocket.protocol.errors import RequestNotSupported
from skyrocket.protocol.requests.pop import PopMessageAnswer
from skyrocket.remoting.peer import Peer
from skyrocket.testing import LocalCluster
from skyrocket.testing.async_cluster import AsyncLocalCluster
from tests.waiting import until

TOPIC, GROUP = "Orders", "Mail"
LATER = {"seconds": 35}  # the default invisible time, and what the broker needs to be sure


async def sent(mq: AsyncLocalCluster, *bodies: bytes, tags: str | None = None) -> None:
    async with mq.producer() as producer:
        for body in bodies:
            await producer.send(Message(TOPIC, body, tags=tags))


async def received(consumer: SimpleConsumer, count: int, **options: Any) -> list[PoppedMessage]:
    found: list[PoppedMessage] = []
    while len(found) < count:
        batch = await consumer.receive(**options)
        assert batch, f"only {len(found)} of {count} came"
        found += batch
    return found


def bodies(messages: list[PoppedMessage]) -> list[bytes]:
    return sorted(message.body for message in messages)


async def nothing_comes(mq: AsyncLocalCluster, consumer: SimpleConsumer, **distance: float) -> None:
    await mq.advance(**(distance or LATER))
    assert await consumer.receive(wait_seconds=0.1) == []


async def test_what_is_acknowledged_is_done_and_the_rest_comes_again() -> None:
    async with AsyncLocalCluster() as mq:
        await mq.create_topic(TOPIC)
        await sent(mq, b"1", b"2", b"3", b"4", b"5")
        async with mq.simple_consumer(GROUP, subscription={TOPIC: "*"}) as consumer:
            messages = await received(consumer, 5)
            assert bodies(messages) == [b"1", b"2", b"3", b"4", b"5"]
            by_body = {message.body: message for message in messages}
            await consumer.ack(by_body[b"1"])
            await consumer.ack(by_body[b"2"], by_body[b"3"], by_body[b"4"])
            assert await consumer.receive(wait_seconds=0) == []  # hidden
            await mq.advance(**LATER)
            (again,) = await received(consumer, 1)
            assert (again.body, again.topic, again.reconsume_times) == (b"5", TOPIC, 1)
            assert again.stored_topic == pop_retry_topic(GROUP, TOPIC)
            assert "POP_CK" not in again.properties
            await consumer.ack(again)
            await nothing_comes(mq, consumer)


async def test_retries_are_acknowledged_together_with_first_deliveries() -> None:
    async with AsyncLocalCluster() as mq:
        await mq.create_topic(TOPIC, queues=1)
        await sent(mq, b"1", b"2")
        async with mq.simple_consumer(GROUP, subscription={TOPIC: "*"}) as consumer:
            await received(consumer, 2)
            await mq.advance(**LATER)
            await sent(mq, b"3")
            messages = await received(consumer, 3)
            assert sorted(message.reconsume_times for message in messages) == [0, 1, 1]
            await consumer.ack(*messages)
            await nothing_comes(mq, consumer)


async def test_a_message_can_be_hidden_longer_and_given_back_at_once() -> None:
    async with AsyncLocalCluster() as mq:
        await mq.create_topic(TOPIC)
        await sent(mq, b"slow")
        async with mq.simple_consumer(GROUP, subscription={TOPIC: "*"}) as consumer:
            (message,) = await received(consumer, 1)
            first = message.receipt
            await consumer.change_invisible(message, 300)
            assert message.receipt != first
            await nothing_comes(mq, consumer, seconds=200)
            await consumer.change_invisible(message, 0)
            with pytest.raises(ReceiptExpired):
                await consumer.ack(message)
            await mq.advance(seconds=5)
            (again,) = await received(consumer, 1)
            assert again.body == b"slow"
            await consumer.change_invisible(again, 60)
            await consumer.ack(again)  # with the new receipt
            await nothing_comes(mq, consumer, seconds=100)


async def test_an_expired_receipt_is_refused_and_the_others_are_acknowledged() -> None:
    async with AsyncLocalCluster() as mq:
        await mq.create_topic(TOPIC)
        async with mq.simple_consumer(GROUP, subscription={TOPIC: "*"}) as consumer:
            await sent(mq, b"late")
            (late,) = await received(consumer, 1, invisible_seconds=0.2)
            await sent(mq, b"in time")
            (in_time,) = await received(consumer, 1)
            await asyncio.sleep(0.25)
            with pytest.raises(ReceiptExpired, match=f"message {late.message_id} expired .* hidden for 0.2 s"):
                await consumer.ack(late, in_time)
            for refused in (consumer.change_invisible(late, 5), consumer.to_dead_letters(late)):
                with pytest.raises(ReceiptExpired, match="call change_invisible while you work"):
                    await refused
            await mq.advance(**LATER)
            assert bodies(await received(consumer, 1)) == [b"late"]
            assert await consumer.receive(wait_seconds=0.1) == []
            assert mq.dead_letters(GROUP) == []


async def test_dead_letters_say_why_and_come_no_more() -> None:
    async with AsyncLocalCluster() as mq:
        await mq.create_topic(TOPIC)
        await sent(mq, b"poison")
        async with mq.simple_consumer(GROUP, subscription={TOPIC: "*"}) as consumer:  # a group that is new
            await received(consumer, 1)
            await mq.advance(**LATER)
            (message,) = await received(consumer, 1)
            await consumer.to_dead_letters(message, ValueError("no such customer"))
            await nothing_comes(mq, consumer)
        (dead,) = mq.dead_letters(GROUP)
        assert dead.body == b"poison"
        assert "POP_CK" not in dead.properties
        cause = cause_of(dead)
        assert cause is not None
        assert cause.error_message == "no such customer"


async def test_the_first_message_of_a_new_group_can_be_a_dead_letter_with_its_cause() -> None:
    async with AsyncLocalCluster() as mq:
        await mq.create_topic(TOPIC)
        routes = mq._serving().table.topics
        loop = asyncio.get_running_loop()
        for number in range(4):  # without the route of the retry topic a guess at its queues may be right
            group = f"{GROUP}-{number}"
            await sent(mq, b"poison")
            consumer = mq.simple_consumer(group, subscription={TOPIC: "*"})
            async with consumer:
                (message, *_) = await received(consumer, 1)
                retry_topic = f"%RETRY%{group}"
                await until(lambda topic=retry_topic: topic in routes)  # type: ignore[misc]
                loop.call_later(0.1, routes.__setitem__, retry_topic, routes.pop(retry_topic))
                await consumer.to_dead_letters(message, ValueError("too early"))
            (dead,) = mq.dead_letters(group)
            cause = cause_of(dead)
            assert cause is not None
            assert cause.error_message == "too early"


async def test_what_failed_too_often_becomes_a_dead_letter_by_itself() -> None:
    async with AsyncLocalCluster() as mq:
        await mq.create_topic(TOPIC)
        await mq.create_group(GROUP)
        await sent(mq, b"poison")
        settings = SimpleConsumerSettings(max_reconsume_times=1)
        async with mq.simple_consumer(GROUP, settings=settings, subscription={TOPIC: "*"}) as consumer:
            for times in (0, 1):
                (message,) = await received(consumer, 1)
                assert message.reconsume_times == times
                await mq.advance(**LATER)
            assert await consumer.receive(wait_seconds=0.5) == []
            assert [dead.body for dead in mq.dead_letters(GROUP)] == [b"poison"]
            await nothing_comes(mq, consumer)


async def test_messages_come_from_all_brokers_and_topics_in_turn() -> None:
    async with AsyncLocalCluster(brokers=2) as mq:
        for topic in (TOPIC, "Payments"):
            await mq.create_topic(topic, queues=1)
        async with mq.producer() as producer:
            for topic in (TOPIC, "Payments"):
                for queue in await producer.queues(topic):
                    for _ in range(20):
                        await producer.send(Message(topic, b"x"), queue=queue)
        wanted = {TOPIC: "*", "Payments": "*"}
        async with mq.simple_consumer(GROUP, subscription=wanted) as consumer:
            places = set()
            for _ in range(4):
                places |= {(each.topic, each.broker_name) for each in await consumer.receive(max_messages=5)}
            assert len(places) == 4  # although none was empty
            rest = await received(consumer, 60, max_messages=32)
            assert len(rest) == 60
            await consumer.ack(*rest)


async def test_a_receive_that_waits_is_woken_wherever_the_message_comes() -> None:
    async with AsyncLocalCluster(brokers=2) as mq:
        await mq.create_topic(TOPIC, queues=1)
        async with mq.producer() as producer, mq.simple_consumer(GROUP, subscription={TOPIC: "*"}) as consumer:
            for queue in await producer.queues(TOPIC):
                waiting = asyncio.ensure_future(consumer.receive(wait_seconds=300))  # longer than a test may take
                await asyncio.sleep(0.2)
                await producer.send(Message(TOPIC, b"news"), queue=queue)
                assert bodies(await waiting) == [b"news"]


async def test_a_receive_that_is_given_up_takes_nothing_with_it() -> None:
    async with AsyncLocalCluster() as mq:
        await mq.create_topic(TOPIC)
        async with mq.simple_consumer(GROUP, subscription={TOPIC: "*"}) as consumer:
            with pytest.raises(TimeoutError):
                await asyncio.wait_for(consumer.receive(wait_seconds=20), 0.2)
            await sent(mq, b"kept")
            assert bodies(await consumer.receive(wait_seconds=2)) == [b"kept"]


async def test_filters_count_for_first_deliveries_and_retries() -> None:
    async with AsyncLocalCluster(settings={"enablePropertyFilter": "true"}) as mq:
        await mq.create_topic(TOPIC)
        # "Aa" and "BB" have the same hash: the broker takes them for the same tag
        for tag in ("Aa", "BB", "C"):
            await sent(mq, tag.encode(), tags=tag)
        async with mq.simple_consumer(GROUP, subscription={TOPIC: "Aa || D"}) as consumer:
            assert bodies(await consumer.receive()) == [b"Aa"]
            assert await consumer.receive(wait_seconds=0.2) == []
            await mq.advance(**LATER)
            assert bodies(await received(consumer, 1)) == [b"Aa"]
            assert await consumer.receive(wait_seconds=0.2) == []
            retried = mq.messages(pop_retry_topic(GROUP, TOPIC))
            assert [message.body for message in retried] == [b"Aa"]  # the other was acknowledged
        sql = {TOPIC: SqlFilter("TAGS = 'C'")}
        async with mq.simple_consumer("Sql", subscription=sql) as consumer:
            assert bodies(await received(consumer, 1)) == [b"C"]


async def test_stopping_ends_a_receive_at_once_and_what_was_in_hand_comes_to_others() -> None:
    async with AsyncLocalCluster() as mq:
        await mq.create_topic(TOPIC)
        await sent(mq, b"open")
        consumer = mq.simple_consumer(GROUP, subscription={TOPIC: "*"})
        await consumer.start()
        await received(consumer, 1)
        async with Admin(client=mq.client_settings) as admin:
            members = await admin.consumer_connections(GROUP)
            assert members.consume_type == "CONSUME_POP"
        waiting = asyncio.ensure_future(consumer.receive(wait_seconds=60))
        await asyncio.sleep(0.1)
        began = time.monotonic()
        await consumer.stop()
        assert await waiting == []
        assert time.monotonic() - began < 30
        with pytest.raises(NotRunning, match="simple consumer Mail is stopped"):
            await consumer.receive()
        await mq.advance(**LATER)
        async with mq.simple_consumer(GROUP, subscription={TOPIC: "*"}) as other:
            assert bodies(await received(other, 1)) == [b"open"]


async def test_a_broker_that_is_gone_does_not_keep_the_others_from_giving() -> None:
    async with AsyncLocalCluster(brokers=2) as mq:
        await mq.create_topic(TOPIC, queues=1)
        gone, left = mq.broker_names
        async with mq.producer() as producer, mq.simple_consumer(GROUP, subscription={TOPIC: "*"}) as consumer:
            queues = {queue.broker_name: queue for queue in await producer.queues(TOPIC)}
            await mq.kill_broker(gone)
            for _ in range(3):
                await producer.send(Message(TOPIC, b"x"), queue=queues[left])
                await consumer.ack(*await received(consumer, 1, wait_seconds=5))


async def test_wrong_use_is_told() -> None:
    async with AsyncLocalCluster() as mq:
        with pytest.raises(IllegalSubscription, match="subscription is empty"):
            mq.simple_consumer(GROUP, subscription={})
        async with mq.simple_consumer(GROUP, subscription={"Nowhere": "*"}) as consumer:
            with pytest.raises(NoRoute, match="Nowhere"):
                await consumer.receive()
            wrong: list[tuple[Coroutine[Any, Any, object], str]] = [
                (consumer.receive(max_messages=33), "max_messages is 33: brokers hand out 1 to 32"),
                (consumer.receive(invisible_seconds=0), "invisible_seconds is 0"),
                (consumer.receive(wait_seconds=-1), "wait_seconds -1"),
            ]
            for call, text in wrong:
                with pytest.raises(WrongUse, match=text):
                    await call


def knows_no_pop(_: Peer, request: RemotingCommand) -> None:
    if request.code == RequestCode.POP_MESSAGE:
        raise RequestNotSupported.of(request.code)


async def test_a_server_without_pop_is_named_with_the_way_out() -> None:
    """RocketMQ 4.9 answers so; the long mode of test_three_servers.py asks the real one."""

    async with AsyncLocalCluster() as mq:
        await mq.create_topic(TOPIC)
        mq._running()[0].parts.router.check_with(knows_no_pop)
        async with mq.simple_consumer(GROUP, subscription={TOPIC: "*"}) as consumer:
            with pytest.raises(PopNotOffered, match=r"does not know pop .*since 5\.0: use PushConsumer"):
                await consumer.receive()


@pytest.mark.requirement("B008")
async def test_what_is_received_is_traced_each_time() -> None:
    async with AsyncLocalCluster(settings={"traceTopicEnable": "true"}) as mq:
        await mq.create_topic(TOPIC)
        client = replace(mq.client_settings, trace=True, instance_name="traced")
        async with Producer("Shop", client=client) as producer:
            receipt = await producer.send(Message(TOPIC, b"1", keys="o-1"))
        async with SimpleConsumer(GROUP, subscription={TOPIC: "*"}, client=client) as consumer:
            await received(consumer, 1)
            await mq.advance(**LATER)  # nobody has acknowledged it
            (again,) = await received(consumer, 1)
            await consumer.ack(again)
        async with mq.admin() as admin:
            async with asyncio.timeout(30):
                while len(events := await admin.trace(receipt.message_id)) < 5:
                    await asyncio.sleep(0.02)
    assert len([event for event in events if isinstance(event, Sent)]) == 1
    began = [event for event in events if isinstance(event, CallBegan)]
    ended = [event for event in events if isinstance(event, CallEnded)]
    assert {(event.group, event.retry_times, event.keys) for event in began} == {
        (GROUP, 0, "o-1"),
        (GROUP, 1, "o-1"),
    }
    assert {event.request_id for event in ended} == {event.request_id for event in began}
    assert all(event.succeeded for event in ended)


@pytest.mark.parametrize(
    ("start_offsets", "offsets"),
    [("0 0 1", "0 0 1"), ("", ""), ("0 0", "0 0 1"), ("0 0 x", "0 0 1"), ("0 0 1", "0 0 1,")],
)
def test_lists_that_contradict_the_messages_are_refused(start_offsets: str, offsets: str) -> None:
    answer = PopMessageAnswer(
        pop_time=1,
        invisible_time=1,
        revive_qid=0,
        rest_num=0,
        start_offset_info=start_offsets,
        msg_offset_info=offsets,
    )
    body = b"" if offsets else bytes(10)
    with pytest.raises(DataError):
        popped_messages(body, answer, TOPIC, GROUP, "broker-a", 0.0)


async def test_messages_of_one_check_point_share_an_entry_of_the_batch() -> None:
    async with AsyncLocalCluster() as mq:
        await mq.create_topic(TOPIC, queues=1)
        await sent(mq, b"1", b"2", b"3")
        async with mq.simple_consumer(GROUP, subscription={TOPIC: "*"}) as consumer:
            messages = await received(consumer, 3)
            (entry,) = batch_entries(GROUP, [messages[0], messages[2]])
            assert (entry.start_offset, entry.acked) == (0, frozenset({0, 2}))


def test_receive_and_acknowledge_without_an_event_loop() -> None:
    with LocalCluster() as mq:
        mq.create_topic(TOPIC)
        with mq.producer() as producer, mq.simple_consumer(GROUP, subscription={TOPIC: "*"}) as consumer:
            producer.send(Message(TOPIC, b"blocking"))
            (message,) = consumer.receive()
            consumer.change_invisible(message, 60)
            consumer.ack(message)
            mq.advance(seconds=70)
            assert consumer.receive(wait_seconds=0.1) == []
