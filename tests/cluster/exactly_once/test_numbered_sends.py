"""Producer idempotence: however often a message is sent, it is stored once, and the receipt is the first one's."""

import asyncio
from collections.abc import Callable
from typing import Any

import pytest

from skyrocket.client import Message, Producer, ProducerSettings, SendReceipt, WrongUse
from skyrocket.client.sending.retrying_sender import RetryingSender
from skyrocket.client.sending.send_number import SendNumber
from skyrocket.remoting.errors import ConnectionLost
from skyrocket.testing import LocalCluster

IDEMPOTENT = ProducerSettings(idempotent=True)


def same(first: SendReceipt, second: SendReceipt) -> bool:
    return (first.message_id, first.offset_message_id, first.queue, first.queue_offset) == (
        second.message_id,
        second.offset_message_id,
        second.queue,
        second.queue_offset,
    )


@pytest.fixture
def lost_answers(monkeypatch: pytest.MonkeyPatch) -> Callable[[int], None]:
    """The next answers do not arrive, although the broker has sent them."""
    left = 0
    ask = RetryingSender._ask

    async def ask_in_vain(self: RetryingSender, address: str, *rest: Any) -> SendReceipt:
        nonlocal left
        receipt = await ask(self, address, *rest)
        if left:
            left -= 1
            raise ConnectionLost(address, "the cable was cut")
        return receipt

    def lose(count: int) -> None:
        nonlocal left
        left = count

    monkeypatch.setattr(RetryingSender, "_ask", ask_in_vain)
    return lose


@pytest.mark.requirement("A086")
@pytest.mark.rocketmq(brokers=2)
@pytest.mark.parametrize("idempotent", [True, False])
def test_a_retry_after_a_lost_answer_is_stored_once_if_the_producer_wants_it(
    rocketmq: LocalCluster, lost_answers: Callable[[int], None], idempotent: bool
) -> None:
    rocketmq.create_topic("Orders", queues=4)
    with rocketmq.producer(settings=ProducerSettings(idempotent=idempotent)) as producer:
        producer.send(Message("Orders", b"before", properties={"a": "b"}, flag=1))
        lost_answers(2)
        receipt = producer.send(Message("Orders", b"paid", keys="o-1", flag=1))
        assert receipt.attempts == 3
        producer.send(Message("Orders", b"after", flag=1))
    bodies = sorted(message.body for message in rocketmq.messages("Orders"))
    copies = 1 if idempotent else 3
    assert bodies == sorted([b"before", *[b"paid"] * copies, b"after"])
    paid = [message for message in rocketmq.messages("Orders") if message.body == b"paid"]
    if idempotent:
        assert paid[0].offset_message_id == receipt.offset_message_id
        assert (paid[0].queue_offset, paid[0].queue_id) == (receipt.queue_offset, receipt.queue.queue_id)


@pytest.mark.parametrize("flush", ["ASYNC_FLUSH", "SYNC_FLUSH"])
async def test_many_at_once_lose_answers_and_each_is_there_once(
    lost_answers: Callable[[int], None], flush: str
) -> None:
    async with LocalCluster(settings={"flushDiskType": flush}) as mq:
        await mq.create_topic("Orders", queues=4)
        async with mq.producer(settings=IDEMPOTENT) as producer:
            lost_answers(60)
            sends = (producer.send(Message("Orders", b"%d" % number)) for number in range(200))
            results = await asyncio.gather(*sends)
        assert len({receipt.offset_message_id for receipt in results}) == 200
        assert sorted(int(message.body) for message in mq.messages("Orders")) == list(range(200))


@pytest.mark.parametrize("kind", ["plain", "delayed", "timer"])
@pytest.mark.parametrize("end", ["kill_broker", "stop_broker"])
def test_a_broker_that_starts_again_still_knows_what_it_has(rocketmq: LocalCluster, kind: str, end: str) -> None:
    rocketmq.create_topic("Orders", queues=4)
    given: dict[str, Any] = {"plain": {}, "delayed": {"delay_level": 3}, "timer": {"delay": 30}}[kind]
    message = Message("Orders", b"paid", keys="o-1", **given)
    number = SendNumber("till 7", 1)
    with rocketmq.producer() as producer:
        for other in range(20):
            producer.send(Message("Orders", b"other %d" % other))
        first = producer.send_numbered(message, number, unique_key="A1B2C3")
        assert same(first, producer.send_numbered(message, number, unique_key="A1B2C3"))
        getattr(rocketmq, end)()
        rocketmq.start_broker()
        assert same(first, producer.send_numbered(message, number, unique_key="A1B2C3", timeout=10))
        second = producer.send_numbered(message, SendNumber("till 7", 2), unique_key="D4E5F6")
        assert not same(first, second)
    rocketmq.advance(minutes=1)
    assert len([each for each in rocketmq.messages("Orders") if each.body == b"paid"]) == 2


@pytest.mark.rocketmq(settings={"producerDuplicateWindow": 5})
def test_what_is_older_than_the_window_is_stored_again(rocketmq: LocalCluster) -> None:
    rocketmq.create_topic("Orders", queues=1)
    with rocketmq.producer() as producer:
        keys = [f"K{number}" for number in range(6)]
        for number, key in enumerate(keys):
            producer.send_numbered(Message("Orders", key.encode()), SendNumber("till", number), unique_key=key)
        for number in (0, 5):
            again = Message("Orders", keys[number].encode())
            producer.send_numbered(again, SendNumber("till", number), unique_key=keys[number])
    assert [message.body for message in rocketmq.messages("Orders")] == [
        b"K0",
        b"K1",
        b"K2",
        b"K3",
        b"K4",
        b"K5",
        b"K0",
    ]


@pytest.mark.rocketmq(brokers=2)
def test_a_broker_that_was_never_reached_is_passed_over(rocketmq: LocalCluster) -> None:
    rocketmq.create_topic("Orders", queues=1)
    gone = rocketmq.broker_names[0]
    with rocketmq.producer(settings=IDEMPOTENT) as producer:
        producer.send(Message("Orders", b"x"))
        rocketmq.kill_broker(gone)
        for _ in range(4):
            assert producer.send(Message("Orders", b"x")).queue.broker_name != gone


def test_numbers_and_batches_exclude_each_other() -> None:
    with pytest.raises(WrongUse, match="idempotent and auto_batch exclude each other"):
        ProducerSettings(idempotent=True, auto_batch=True)
    assert Producer("Shop", "127.0.0.1:1", ProducerSettings()).settings.idempotent is False
