"""`LocalCluster(replicas=2)`: what users' tests see of a set whose master dies."""

import pytest

from skyrocket.client import Message, ReceivedMessage
from skyrocket.client.core.send_receipt import SendStatus
from skyrocket.testing import AsyncLocalCluster
from tests.waiting import until


@pytest.mark.requirement("E011")
async def test_consumers_go_on_at_the_slave_when_the_master_is_killed_and_come_back() -> None:
    async with AsyncLocalCluster(replicas=2) as mq:
        await mq.create_topic("Orders", queues=2)
        await mq.create_group("Shop")
        async with mq.producer() as producer:
            for number in range(10):
                receipt = await producer.send(Message("Orders", b"%d" % number))
                assert (receipt.status, receipt.replicas) == (SendStatus.SEND_OK, 2)
        await mq.kill_master()
        assert len(mq.messages("Orders")) == 10
        seen: list[bytes] = []

        async def take(message: ReceivedMessage) -> None:
            seen.append(message.body)

        consumer = mq.push_consumer("Shop")
        consumer.subscribe("Orders", take)
        async with consumer:
            await until(lambda: sorted(seen) == [b"%d" % number for number in range(10)])
            await until(lambda: sum(mq.offsets("Shop").values()) == 10)
            await mq.start_broker()
            async with mq.producer() as producer:
                await producer.send(Message("Orders", b"back"))
            await until(lambda: b"back" in seen)
