"""Tests of an application, with the fixtures of Skyrocket. Run: python -m pytest examples/testing_with_pytest.py"""

import asyncio
import sys

import pytest

from skyrocket.client import Message
from skyrocket.testing import LocalCluster


def test_an_order_is_stored(rocketmq: LocalCluster) -> None:
    rocketmq.create_topic("Orders")
    with rocketmq.producer() as producer:
        producer.send(Message("Orders", b"order 1", tags="paid", keys="o-1"))
    (message,) = rocketmq.messages("Orders")
    assert (message.body, message.tags, message.keys) == (b"order 1", "paid", ["o-1"])


def test_a_reminder_comes_after_half_an_hour(rocketmq: LocalCluster) -> None:
    rocketmq.create_topic("Reminders")
    with rocketmq.producer() as producer:
        producer.send(Message("Reminders", b"pay!", delay_level=16))
    rocketmq.advance(minutes=29)
    assert rocketmq.messages("Reminders") == []
    rocketmq.advance(minutes=1)
    assert len(rocketmq.messages("Reminders")) == 1


@pytest.mark.rocketmq(brokers=2, settings={"autoCreateTopicEnable": False})
def test_a_producer_goes_on_when_a_broker_is_killed(rocketmq: LocalCluster) -> None:
    rocketmq.create_topic("Orders", queues=1)
    with rocketmq.producer() as producer:
        producer.send(Message("Orders", b"order 1"))
        rocketmq.kill_broker("broker-a")
        producer.send(Message("Orders", b"order 2"))
        rocketmq.start_broker("broker-a")
    assert len(rocketmq.messages("Orders")) == 2


def test_many_tests_share_a_cluster(rocketmq_session: LocalCluster) -> None:
    topic = rocketmq_session.unique_topic("Orders")
    with rocketmq_session.producer() as producer:
        producer.send(Message(topic, b"order 1"))
    assert len(rocketmq_session.messages(topic)) == 1


def test_an_asyncio_application() -> None:
    async def main() -> None:
        async with LocalCluster() as mq:
            topic = await mq.unique_topic("Orders")
            async with mq.producer() as producer:
                await producer.send(Message(topic, b"order 1", delay_level=3))
            await mq.advance(seconds=10)
            assert [message.body for message in mq.messages(topic)] == [b"order 1"]

    asyncio.run(main())


if __name__ == "__main__":
    sys.exit(pytest.main([__file__, "-q", "-p", "no:cacheprovider"]))
