"""Handlers by decorator: which messages they get, and that they stay ordinary functions."""

import inspect
from pathlib import Path

from skyrocket import Message, Producer, PushConsumer, PushConsumerSettings, ReceivedMessage, blocking
from skyrocket.config.sections import BrokerConfig
from skyrocket.testing import LocalCluster
from tests.cluster.servers import cluster
from tests.waiting import until, wait_until


async def test_a_decorated_handler_gets_what_its_tags_or_its_condition_say(tmp_path: Path) -> None:
    paid: list[bytes] = []
    dear: list[bytes] = []
    several: list[list[bytes]] = []
    async with (
        cluster(tmp_path, config=BrokerConfig(property_filter=True)) as given,
        Producer("Shop", given.names) as producer,
    ):
        consumer = PushConsumer(
            "Billing", given.names, PushConsumerSettings(consume_message_batch_max_size=8, new_group_from_zero=True)
        )

        @consumer.on("Orders", tags="paid || refunded")
        async def order(message: ReceivedMessage) -> None:
            paid.append(message.body)

        @consumer.on("Offers", sql="price > 10")
        def offer(message: ReceivedMessage) -> None:
            dear.append(message.body)

        @consumer.on("Logs", batch=True)
        async def logs(messages: list[ReceivedMessage]) -> None:
            several.append([message.body for message in messages])

        for tag in ("paid", "new", "refunded"):
            await producer.send(Message("Orders", tag.encode(), tags=tag))
        for price in (5, 20):
            await producer.send(Message("Offers", b"%d" % price, properties={"price": str(price)}))
        await producer.send_batch([Message("Logs", b"%d" % i) for i in range(4)])
        async with consumer:
            await until(lambda: len(paid) == 2 and len(dear) == 1 and sum(map(len, several)) == 4)
    assert sorted(paid) == [b"paid", b"refunded"]
    assert dear == [b"20"]
    assert sorted(body for bodies in several for body in bodies) == [b"0", b"1", b"2", b"3"]
    assert (inspect.isfunction(offer), inspect.iscoroutinefunction(order)) == (True, True), "they stay as they are"


def test_a_blocking_consumer_has_the_same_decorator(rocketmq: LocalCluster) -> None:
    got: list[bytes] = []
    names = rocketmq.name_server_address
    with blocking.Producer("Shop", names) as producer:
        consumer = blocking.PushConsumer("Billing", names)

        @consumer.on("Orders", tags="paid")
        def order(message: ReceivedMessage) -> None:
            got.append(message.body)

        producer.send(Message("Orders", b"1", tags="new"))
        producer.send(Message("Orders", b"2", tags="paid"))
        with consumer:
            wait_until(lambda: got)
    assert got == [b"2"]
