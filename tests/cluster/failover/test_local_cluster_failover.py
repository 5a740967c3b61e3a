"""`LocalCluster(replicas=3, failover=True)`: what users' tests do with it."""

import itertools

import pytest

from skyrocket.client import Message
from skyrocket.testing import AsyncLocalCluster
from skyrocket.testing.broker_host import BrokerDown


async def test_each_killed_master_is_replaced_and_all_messages_stay() -> None:
    async with AsyncLocalCluster(replicas=3, failover=True) as mq:
        await mq.create_topic("Orders")
        bodies, masters = [], [await mq.await_master()]
        async with mq.producer() as producer:
            for number in range(3):
                bodies.append(b"order %d" % number)
                receipt = await producer.send(Message("Orders", bodies[-1]))
                assert receipt.is_durable
                await mq.kill_master()
                masters.append(await mq.await_master())
                await mq.start_broker()
            await mq.advance(hours=1)
        assert all(before != after for before, after in itertools.pairwise(masters))
        assert mq.broker_addresses == {"broker-a": masters[-1]}
        assert [message.body for message in mq.messages("Orders")] == bodies


async def test_a_delayed_message_is_delivered_by_the_next_master() -> None:
    async with AsyncLocalCluster(replicas=3, failover=True) as mq:
        await mq.create_topic("Orders")
        async with mq.producer() as producer:
            await producer.send(Message("Orders", b"later", delay_level=18))  # two hours
        await mq.kill_master()
        await mq.advance(hours=2)
        assert [message.body for message in mq.messages("Orders")] == [b"later"]


async def test_wrong_use_is_told() -> None:
    with pytest.raises(ValueError, match="give replicas=3"):
        AsyncLocalCluster(failover=True)
    async with AsyncLocalCluster(replicas=2, failover=True) as mq:
        with pytest.raises(BrokerDown, match="runs already"):
            await mq.start_broker()
        await mq.kill_master()
        with pytest.raises(ValueError, match="has no slave"):
            await mq.kill_master()
