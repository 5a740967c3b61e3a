"""A master that is killed and comes back: its slave does its work meanwhile, and nothing is lost or comes again."""

import asyncio
from collections import Counter
from collections.abc import Awaitable, Callable
from pathlib import Path

import pytest

from skyrocket.client import (
    ClientError,
    Message,
    MessageQueue,
    PoppedMessage,
    Producer,
    ReceivedMessage,
    SimpleConsumer,
    SimpleConsumerSettings,
    TransactionProducer,
    TransactionState,
)
from skyrocket.remoting.errors import RemotingError
from tests.client_steps import FIRST
from tests.integration.acting_set import acting_set
from tests.integration.seen_messages import GROUP, TOPIC, Seen, numbered, received, send
from tests.waiting import SECONDS, until

pytestmark = pytest.mark.timeout(240)


async def test_a_group_goes_on_at_the_acting_slave_and_then_at_the_master_where_it_stopped(tmp_path: Path) -> None:
    first, second, third, fourth = (numbered(kind, 40) for kind in ("first", "second", "third", "fourth"))
    async with acting_set(tmp_path) as given, Producer("Selling", client=given.client) as producer:
        seen = Seen(given.client)
        assert (await send(producer, *first)).keys() == {"broker-a", "broker-b"}
        async with seen.consuming():
            await seen.has(message.body for message in first)
        at_a = (await send(producer, *second))["broker-a"]
        assert at_a
        await given.copied()
        await given.lose_master()
        async with seen.consuming():
            await seen.has(message.body for message in second)
            assert (await send(producer, *third)).keys() == {"broker-b"}
            await seen.has(message.body for message in third)
        await given.bring_back_master()
        async with seen.consuming():
            await send(producer, *fourth)
            await seen.has(message.body for message in fourth)
        assert set(seen.bodies.values()) == {1}
        assert len(seen.messages) == 160


@pytest.mark.slow
async def test_what_waits_is_delivered_once_by_the_slave_through_another_master_or_by_the_master_that_is_back(
    tmp_path: Path,
) -> None:
    early = [*numbered("level", 8, delay_level=2), *numbered("timer", 8, delay=12.0)]
    late = [*numbered("late level", 8, delay_level=3), *numbered("late timer", 8, delay=32.0)]
    async with acting_set(tmp_path, messageDelayLevel="1s 12s 32s") as given:
        async with Producer("Selling", client=given.client) as producer:
            taken = await send(producer, *early, *late)
        assert taken["broker-a"] >= 8
        await given.copied()
        seen = Seen(given.client)
        async with seen.consuming():
            await given.lose_master()
            assert not seen.messages
            await seen.has(message.body for message in early)
            assert {seen.of(message.body) for message in early} == {"broker-b"}
            await given.bring_back_master()
            assert not seen.bodies.keys() & {message.body for message in late}
            await seen.has(message.body for message in late)
            await asyncio.sleep(3)
        assert set(seen.bodies.values()) == {1}
        assert {seen.of(message.body) for message in late} == {"broker-a", "broker-b"}


async def test_a_half_message_is_checked_by_another_master_and_not_again_by_the_one_that_is_back(
    tmp_path: Path,
) -> None:
    asked: Counter[bytes] = Counter()
    sent: dict[str, list[bytes]] = {"broker-a": [], "broker-b": []}

    def check(message: ReceivedMessage) -> TransactionState:
        asked[message.body] += 1
        return TransactionState.COMMIT if message.body.startswith(b"kept") else TransactionState.ROLLBACK

    async with acting_set(tmp_path, transactionTimeOut=8000) as given:
        producer = TransactionProducer("Paying", client=given.client)
        producer.checker(check)
        seen = Seen(given.client)
        async with producer, seen.consuming():
            for message in (*numbered("kept", 8), *numbered("dropped", 8)):
                async with producer.transaction(message) as transaction:
                    transaction.leave_open()
                sent[transaction.receipt.queue.broker_name].append(message.body)
            assert any(body.startswith(b"kept") for body in sent["broker-a"])
            await given.copied()
            await given.lose_master()
            await until(lambda: len(asked) == 16)
            kept = {body for body in asked if body.startswith(b"kept")}
            await seen.has(kept)
            assert {seen.of(body) for body in kept} == {"broker-b"}
            before = asked.copy()
            await given.bring_back_master()
            await asyncio.sleep(6)
        assert seen.bodies == dict.fromkeys(kept, 1)
        assert asked == before


@pytest.mark.slow
async def test_acknowledgements_and_changed_times_of_popped_messages_count_through_kill_and_return(
    tmp_path: Path,
) -> None:
    async with acting_set(tmp_path) as given, Producer("Selling", client=given.client) as producer:
        queue = MessageQueue(TOPIC, "broker-a", 0)
        for body in (b"done", b"done later", b"hidden", b"lost"):
            await producer.send(Message(TOPIC, body), queue=queue)
        settings = SimpleConsumerSettings(consume_from=FIRST)
        consumer = SimpleConsumer(GROUP, settings=settings, subscription={TOPIC: "*"}, client=given.client)
        async with consumer:
            popped: dict[bytes, PoppedMessage] = {}
            while len(popped) < 4:
                popped |= {each.body: each for each in await consumer.receive(invisible_seconds=15.0)}
            await consumer.ack(popped[b"done"])
            await given.copied()
            await given.lose_master()
            await until_done(lambda: consumer.ack(popped[b"done later"]))
            await until_done(lambda: consumer.change_invisible(popped[b"hidden"], 35.0))
            again = [await received(consumer)]
            await given.bring_back_master()
            again.append(await received(consumer))
            assert [(each.body, each.reconsume_times) for each in again] == [(b"lost", 1), (b"hidden", 1)]
            assert {each.broker_name for each in again} == {"broker-b"}
            assert await consumer.receive(wait_seconds=6.0) == []


async def until_done(work: Callable[[], Awaitable[None]]) -> None:
    """The client hears a moment later than the slave that this one acts."""
    async with asyncio.timeout(SECONDS):
        while True:
            try:
                return await work()
            except (ClientError, RemotingError):
                await asyncio.sleep(0.1)
