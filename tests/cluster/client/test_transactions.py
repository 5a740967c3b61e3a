"""Transactions against a real broker: the block decides, else the checker."""

import asyncio
from pathlib import Path

import pytest

from skyrocket.client.consumer.push_consumer import PushConsumer
from skyrocket.client.consumer.push_consumer_settings import PushConsumerSettings
from skyrocket.client.consumer.start_position import ConsumeFromWhere
from skyrocket.client.core.errors import WrongUse
from skyrocket.client.core.message import Message, ReceivedMessage
from skyrocket.client.core.settings import ClientSettings
from skyrocket.client.producer.transaction import TransactionProducer, TransactionState
from skyrocket.config.sections import BrokerConfig
from skyrocket.errors import MessageRefused
from tests.cluster.servers import cluster
from tests.waiting import until

TOPIC = "Orders"
QUICK = BrokerConfig(transaction_timeout_ms=200, transaction_check_interval_ms=200)


@pytest.mark.requirement("C005", "C028")
@pytest.mark.parametrize("kind", ["async", "plain"])
async def test_what_was_left_open_is_decided_by_the_checker(tmp_path: Path, kind: str) -> None:
    got: list[bytes] = []
    asked: list[tuple[bytes, str]] = []

    def check(message: ReceivedMessage) -> TransactionState:
        asked.append((message.body, message.topic))
        if message.body == b"broken":
            raise ValueError("the database is away")
        return TransactionState.COMMIT if message.body == b"done" else TransactionState.ROLLBACK

    async def check_later(message: ReceivedMessage) -> TransactionState:
        return check(message)

    async with cluster(tmp_path, config=QUICK) as given:
        client = ClientSettings(given.names, namespace="ns")
        producer = TransactionProducer("Shop", client=client)
        producer.checker(check if kind == "plain" else check_later)
        settings = PushConsumerSettings(consume_from=ConsumeFromWhere.CONSUME_FROM_FIRST_OFFSET)
        consumer = PushConsumer("Billing", settings=settings, client=client)
        consumer.subscribe(TOPIC, lambda message: got.append(message.body))
        async with producer, consumer:
            for body in (b"done", b"undone", b"broken"):
                async with producer.transaction(Message(TOPIC, body)) as transaction:
                    transaction.leave_open()
            await until(lambda: {body for body, _ in asked} == {b"done", b"undone", b"broken"})
            await until(lambda: got == [b"done"])
            assert {topic for _, topic in asked} == {TOPIC}
            times = sum(body == b"broken" for body, _ in asked)
            await until(lambda: sum(body == b"broken" for body, _ in asked) > times)  # asked again


@pytest.mark.requirement("C028")
async def test_wrong_use_is_named(tmp_path: Path) -> None:
    async with cluster(tmp_path) as given:
        producer = TransactionProducer("Shop", given.names)
        with pytest.raises(WrongUse, match="producer Shop has no checker: register one with"):
            await producer.start()

        @producer.checker
        async def check(message: ReceivedMessage) -> TransactionState:
            await asyncio.sleep(0)
            return TransactionState.UNKNOWN

        async with producer:
            with pytest.raises(MessageRefused, match="a transactional message cannot be delayed"):
                async with producer.transaction(Message(TOPIC, b"x", delay_level=1)):
                    pass
