"""Priorities and types of messages: what the client refuses, where brokers put them, what pop gives first."""

from collections.abc import Awaitable
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest

from skyrocket.client.admin.admin import Admin
from skyrocket.client.core.errors import SendFailed
from skyrocket.client.core.message import Message, decode_messages
from skyrocket.client.producer.producer import Producer
from skyrocket.client.producer.transaction import TransactionProducer, TransactionState
from skyrocket.config.sections import BrokerConfig
from skyrocket.errors import MessageRefused
from skyrocket.model.subscription_group import SubscriptionGroup
from skyrocket.protocol.errors import MessageIllegal
from skyrocket.protocol.requests.pop import PopMessage
from skyrocket.remoting.client import RemotingClient
from tests.client_steps import soon
from tests.cluster.servers import Cluster, cluster

TOPIC, GROUP = "Orders", "Billing"


async def popped(given: Cluster, most: int) -> list[bytes]:
    """What one pop gives, in its order."""
    request = PopMessage(
        consumer_group=GROUP,
        topic=TOPIC,
        queue_id=-1,
        max_msg_nums=most,
        invisible_time=60_000,
        poll_time=0,
        init_mode=0,
        exp_type="TAG",
        exp="*",
        born_time=0,
    )
    client = RemotingClient()
    try:
        reply = await client.call(str(given.brokers["broker-a"].identity.address), request, timeout_seconds=5)
    finally:
        await client.close()
    return [message.body for message in decode_messages(bytes(reply.body), "broker-a")]


@pytest.mark.requirement("B007", "D017")
async def test_a_priority_chooses_the_queue_and_pop_gives_the_highest_first(tmp_path: Path) -> None:
    async with cluster(tmp_path) as given, Producer("Shop", given.names) as producer, Admin(given.names) as admin:
        await admin.create_topic(TOPIC, 4, attributes={"message.type": "PRIORITY"})
        await admin.create_group(SubscriptionGroup(GROUP))
        await soon(admin, TOPIC, 4)
        queues = {}
        for priority in (1, 0, 5, 3, 2, 4, 1):
            receipt = await producer.send(Message(TOPIC, b"%d" % priority, priority=priority))
            queues[priority] = receipt.queue.queue_id
            stored = await admin.message(TOPIC, receipt.message_id)
            assert stored.priority == priority
        assert queues == {0: 0, 1: 1, 2: 2, 3: 3, 4: 3, 5: 3}
        plain = await producer.send(Message(TOPIC, b"plain"))
        assert (await admin.message(TOPIC, plain.message_id)).priority is None
        assert await popped(given, 3) == [b"5", b"3", b"4"]
        assert [body for body in await popped(given, 32) if body != b"plain"] == [b"2", b"1", b"1", b"0"]


async def test_what_brokers_would_ignore_is_refused_by_the_client(tmp_path: Path) -> None:
    async with cluster(tmp_path) as given, Producer("Shop", given.names) as producer:
        for wrong in (-1, 1 << 31, True, 1.5, "1"):
            with pytest.raises(MessageRefused, match=r"the priority is .*: give a whole number from 0 \(lowest\)"):
                await producer.send(Message(TOPIC, b"x", priority=wrong))  # type: ignore[arg-type]
        others: list[dict[str, Any]] = [
            {"sharding_key": "k"},
            {"delay_level": 1},
            {"delay": 0.0},
            {"deliver_at": datetime.now(UTC)},
        ]
        for other in others:
            with pytest.raises(MessageRefused, match="cannot be delayed or have a sharding key"):
                await producer.send(Message(TOPIC, b"x", priority=0, **other))
        with pytest.raises(MessageRefused, match="a message with a priority cannot be part of a batch"):
            await producer.send_batch([Message(TOPIC, b"x", priority=0)])
        with pytest.raises(MessageRefused, match="a message with a priority cannot be part of a batch"):
            await producer.enqueue(Message(TOPIC, b"x", priority=0))
        halves = TransactionProducer("Halves", given.names)
        halves.checker(lambda message: TransactionState.ROLLBACK)
        async with halves:
            with pytest.raises(MessageRefused, match="a transactional message cannot have a priority"):
                async with halves.transaction(Message(TOPIC, b"x", priority=0)):
                    pass


KINDS: dict[str, dict[str, Any]] = {
    "NORMAL": {},
    "FIFO": {"sharding_key": "k"},
    "DELAY": {"delay_level": 1},
    "PRIORITY": {"priority": 1},
}


async def refusal(send: Awaitable[object]) -> str | None:
    """What a broker says against a send, None when it takes it."""
    try:
        await send
    except SendFailed as failed:
        error = failed.attempts[-1].error
        assert isinstance(error, MessageIllegal)
        return error.remark
    return None


async def test_a_broker_that_checks_types_takes_only_those_of_the_topic(tmp_path: Path) -> None:
    config = BrokerConfig(check_message_types=True, allow_mixed_type=True)
    async with cluster(tmp_path, config=config) as given, Admin(given.names) as admin:
        producer = TransactionProducer("Shop", given.names)
        producer.checker(lambda message: TransactionState.ROLLBACK)
        async with producer:
            for topic_type in ("NORMAL", "FIFO", "DELAY", "PRIORITY", "TRANSACTION", "MIXED"):
                topic = f"{topic_type}-topic"
                await admin.create_topic(topic, 2, attributes={"message.type": topic_type})
                await soon(admin, topic, 2)
                for kind, fields in 3 * [*KINDS.items()]:  # the later ones look like earlier ones
                    remark = await refusal(producer.send(Message(topic, b"x", **fields)))
                    if topic_type in (kind, "MIXED"):
                        assert remark is None
                    else:
                        assert remark is not None
                        assert remark.startswith(
                            f"TopicMessageType validate failed, the expected type is {topic_type}, "
                            f"but actual type is {kind}"
                        )
                        assert topic in remark

                remark = await refusal(producer.transaction(Message(topic, b"x")).__aenter__())
                assert (remark is None) == (topic_type in ("TRANSACTION", "MIXED"))
            ordered = [Message("FIFO-topic", b"x", sharding_key="k"), Message("FIFO-topic", b"x")]
            assert await refusal(producer.send_batch(ordered[:1])) is None
            remark = await refusal(producer.send_batch(ordered))
            assert remark is not None
            assert "the expected type is FIFO, but actual type is NORMAL" in remark


async def test_like_rocketmqs_a_broker_checks_no_types_by_default(tmp_path: Path) -> None:
    async with cluster(tmp_path) as given, Admin(given.names) as admin, Producer("Shop", given.names) as producer:
        await admin.create_topic(TOPIC, 2, attributes={"message.type": "FIFO"})
        await soon(admin, TOPIC, 2)
        for fields in KINDS.values():
            await producer.send(Message(TOPIC, b"x", **fields))
        assert (await admin.topic_config(TOPIC)).message_type == "FIFO"
