"""A cluster with something to look at: topics, groups, dead letters, timers, half messages; and its console."""

import asyncio
import contextlib
import json
from collections.abc import AsyncIterator
from dataclasses import dataclass, replace
from typing import Any

from skyrocket.client import Message, PushConsumerSettings, TransactionProducer, TransactionState
from skyrocket.client.core.message import ReceivedMessage
from skyrocket.client.core.settings import Acl
from skyrocket.console.core.settings import ConsoleSettings
from skyrocket.console.server import Console
from skyrocket.testing.async_cluster import AsyncLocalCluster
from tests.waiting import until

INJECTION = '<img src=x onerror="document.title=1"><script>document.title=2</script>'
ROOT = Acl("rocketmq", "12345678")
WITH_USERS = {
    "authenticationEnabled": "true",
    "authorizationEnabled": "true",
    "initAuthenticationUser": '{"username":"rocketmq","password":"12345678"}',
    "innerClientAuthenticationCredentials": '{"accessKey":"rocketmq","secretKey":"12345678"}',
}


@dataclass
class Shop:
    """What tests look at."""

    cluster: AsyncLocalCluster
    console: Console


@contextlib.asynccontextmanager
async def shop(*, users: bool = False, orders: int = 200, **settings: Any) -> AsyncIterator[Shop]:
    """Orders that a group consumes, one that it gives up, one that is delayed, and a payment without an end."""
    own = {"recallMessageEnable": "true", "transactionCheckInterval": "600000", **(WITH_USERS if users else {})}
    async with AsyncLocalCluster(brokers=1 if users else 2, settings=own) as cluster:
        client = replace(cluster.client_settings, credentials=ROOT if users else None)
        console = Console(ConsoleSettings(client, port=0, **settings))
        if users:
            async with console:
                yield Shop(cluster, console)
            return
        for name in ("Orders", "Payments", "Shipments", "Refunds"):
            await cluster.create_topic(name)
        await cluster.create_group("billing", retries=0)
        sellers = TransactionProducer("sellers", client=client)
        sellers.checker(lambda _: TransactionState.UNKNOWN)
        billing = cluster.push_consumer("billing", settings=PushConsumerSettings(max_reconsume_times=0))
        billing.subscribe("Orders", _bill)
        async with sellers, billing, cluster.producer("shop") as producer, console:
            for number in range(orders):
                body = json.dumps({"order": number, "items": ["tea", "cup"], "note": INJECTION if number == 7 else ""})
                await producer.send(Message("Orders", body.encode(), "paid", f"o-{number}", {"city": INJECTION}))
            await producer.send(Message("Orders", b"broken", "paid", "o-broken"))
            await producer.send(Message("Shipments", b"later", keys="s-1", delay=7200))
            async with sellers.transaction(Message("Payments", b'{"paid": 12}', keys="p-1")) as payment:
                payment.leave_open()
            await until(lambda: cluster.dead_letters("billing"))
            await until(lambda: sum(cluster.offsets("billing").values()) > orders)
            yield Shop(cluster, console)


@contextlib.asynccontextmanager
async def packing(cluster: AsyncLocalCluster) -> AsyncIterator[None]:
    """A second group, which will try the broken order again."""
    consumer = cluster.push_consumer("packing")
    consumer.subscribe("Orders", _bill)
    async with consumer:
        yield


async def _bill(message: ReceivedMessage) -> None:
    await asyncio.sleep(0)
    if message.body == b"broken":
        raise ValueError("the order has no items")
