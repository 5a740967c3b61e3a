"""Consumption in order by handlers that commit themselves, as with setAutoCommit(false) in Java."""

from pathlib import Path

import pytest

from skyrocket.client.consumer.handlers import ConsumeStatus, judged
from skyrocket.client.consumer.push_consumer import PushConsumer
from skyrocket.client.consumer.push_consumer_settings import PushConsumerSettings
from skyrocket.client.consumer.start_position import ConsumeFromWhere, MessageModel
from skyrocket.client.core.errors import WrongUse
from skyrocket.client.core.message import Message, ReceivedMessage
from skyrocket.client.producer.producer import Producer
from tests.cluster.servers import Cluster, cluster
from tests.waiting import until

TOPIC, GROUP = "Orders", "Billing"
FIRST = ConsumeFromWhere.CONSUME_FROM_FIRST_OFFSET
COMMIT, ROLLBACK, SUCCESS = ConsumeStatus.COMMIT, ConsumeStatus.ROLLBACK, ConsumeStatus.SUCCESS


def own_commits(batch: int = 1, suspend_seconds: float = 0.01) -> PushConsumerSettings:
    return PushConsumerSettings(
        orderly=True,
        auto_commit=False,
        consume_from=FIRST,
        consume_message_batch_max_size=batch,
        suspend_current_queue=suspend_seconds,
    )


async def send(producer: Producer, bodies: str) -> None:
    for body in bodies:
        await producer.send(Message(TOPIC, body.encode(), sharding_key="k"))


def committed(given: Cluster) -> int:
    broker = given.brokers["broker-a"]
    config = broker.tables.topics.find(TOPIC)
    assert config is not None
    return sum(broker.tables.offsets.committed(GROUP, TOPIC, queue_id) or 0 for queue_id in range(config.read_queues))


async def test_what_is_not_committed_comes_again_to_the_next_consumer(tmp_path: Path) -> None:
    async with cluster(tmp_path) as given, Producer("Shop", given.names) as producer:
        await send(producer, "abcdef")

        async def consumed(commit_at: bytes, last: bytes) -> bytes:
            got: list[bytes] = []
            consumer = PushConsumer(GROUP, given.names, own_commits())

            @consumer.on(TOPIC)
            async def handle(message: ReceivedMessage) -> ConsumeStatus:
                got.append(message.body)
                return COMMIT if message.body == commit_at else SUCCESS

            async with consumer:
                await until(lambda: got[-1:] == [last])
            return b"".join(got)

        assert await consumed(b"d", b"f") == b"abcdef"
        assert committed(given) == 4
        assert await consumed(b"f", b"f") == b"ef"
        assert committed(given) == 6


@pytest.mark.requirement("C151")
async def test_a_rollback_brings_back_all_since_the_last_commit_and_a_failure_only_its_message(tmp_path: Path) -> None:
    got: list[bytes] = []
    once: set[bytes] = set()

    def first_time(word: bytes) -> bool:
        is_new = word not in once
        once.add(word)
        return is_new

    async with cluster(tmp_path) as given, Producer("Shop", given.names) as producer:
        await send(producer, "abcdef")
        consumer = PushConsumer(GROUP, given.names, own_commits())

        @consumer.on(TOPIC)
        def handle(message: ReceivedMessage) -> ConsumeStatus | None:
            got.append(message.body)
            if message.body == b"d" and first_time(b"roll back"):
                return ROLLBACK
            if message.body == b"e" and first_time(b"fail"):
                return ConsumeStatus.SUSPEND_CURRENT_QUEUE_A_MOMENT
            return COMMIT if message.body in (b"b", b"f") else None

        async with consumer:
            await until(lambda: got[-1:] == [b"f"])
        assert b"".join(got) == b"abcdcdeef"
        assert committed(given) == 6


async def test_a_commit_within_a_piece_leaves_the_rest_to_the_next_call(tmp_path: Path) -> None:
    got: list[bytes] = []
    async with cluster(tmp_path) as given, Producer("Shop", given.names) as producer:
        await send(producer, "abcdef")
        consumer = PushConsumer(GROUP, given.names, own_commits(batch=4))

        @consumer.on(TOPIC)
        async def handle(message: ReceivedMessage) -> ConsumeStatus:
            got.append(message.body)
            return COMMIT if message.body in (b"b", b"e") else SUCCESS

        async with consumer:
            await until(lambda: got[-1:] == [b"f"])
        assert b"".join(got) == b"abcdef"
        assert committed(given) == 5


async def test_lists_are_committed_as_a_whole(tmp_path: Path) -> None:
    got: list[bytes] = []
    async with cluster(tmp_path) as given, Producer("Shop", given.names) as producer:
        await send(producer, "abcdef")
        consumer = PushConsumer(GROUP, given.names, own_commits(batch=4))

        @consumer.on(TOPIC, batch=True)
        async def handle(messages: list[ReceivedMessage]) -> ConsumeStatus:
            got.extend(message.body for message in messages)
            return COMMIT if len(got) == 6 else SUCCESS

        async with consumer:
            await until(lambda: len(got) == 6)
        assert b"".join(got) == b"abcdef"
        assert committed(given) == 6


def test_the_words_are_errors_where_offsets_are_committed_by_themselves() -> None:
    for word in (COMMIT, ROLLBACK):
        outcome = judged(word)
        assert outcome is not None
        assert not outcome.succeeded
        assert "auto_commit=False" in str(outcome.error)
    with pytest.raises(WrongUse, match="auto_commit=False is for orderly=True"):
        PushConsumerSettings(auto_commit=False)


@pytest.mark.requirement("C018")
def test_consumption_in_order_and_broadcasting_exclude_each_other() -> None:
    with pytest.raises(WrongUse, match="orderly=True and BROADCASTING exclude each other"):
        PushConsumerSettings(orderly=True, message_model=MessageModel.BROADCASTING)
