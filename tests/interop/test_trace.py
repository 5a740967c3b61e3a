"""Message traces: ours in the eyes of Apache's mqadmin, and those of RocketMQ's Java clients in ours."""

import asyncio
import re
from pathlib import Path

import pytest

from skyrocket.client import blocking
from skyrocket.client.admin.admin import Admin
from skyrocket.client.consumer.push_consumer import PushConsumer
from skyrocket.client.consumer.push_consumer_settings import PushConsumerSettings
from skyrocket.client.consumer.start_position import ConsumeFromWhere
from skyrocket.client.core.errors import NoRoute
from skyrocket.client.core.message import Message
from skyrocket.client.core.settings import ClientSettings
from skyrocket.client.producer.producer import Producer
from skyrocket.client.producer.transaction import TransactionProducer, TransactionState
from skyrocket.format.trace import CallBegan, CallEnded, CallOutcome, SendKind, Sent, TraceEvent, TransactionEnded
from tests.interop.apache import VERSIONS, Apache, Unavailable, obtain
from tests.interop.apache_admin import admin_outputs
from tests.interop.client_program import running_client
from tests.interop.standalone import running_standalone
from tests.loops import run_bounded
from tests.waiting import wait_until

pytestmark = [pytest.mark.interop, pytest.mark.slow, pytest.mark.timeout(300)]

TOPIC, PRODUCERS, CONSUMERS = "TraceOrders", "TraceShop", "TraceBilling"
TRACED = {"traceTopicEnable": "true"}
FROM_FIRST = PushConsumerSettings(consume_from=ConsumeFromWhere.CONSUME_FROM_FIRST_OFFSET)


def rocketmq(version: str) -> Apache:
    try:
        return obtain(version)
    except Unavailable as reason:
        pytest.skip(str(reason))


async def told(admin: Admin, message_id: str, count: int) -> list[TraceEvent]:
    """The events of a message, once there are as many."""
    found: list[TraceEvent] = []
    for _ in range(300):
        found = await admin.trace(message_id)
        if len(found) >= count:
            break
        await asyncio.sleep(0.1)
    assert len(found) == count, found
    return found


@pytest.mark.requirement("B008")
@pytest.mark.parametrize("version", VERSIONS)
def test_mqadmin_shows_our_traces(tmp_path: Path, version: str) -> None:
    apache = rocketmq(version)

    async def main(name_server: str) -> list[str]:
        client = ClientSettings(name_server, trace=True)
        consumer = PushConsumer(CONSUMERS, settings=FROM_FIRST, client=client)

        @consumer.on(TOPIC)
        async def handle(message: object) -> None:
            await asyncio.sleep(0.02)

        halves = TransactionProducer("TraceHalves", client=client)
        halves.checker(lambda message: TransactionState.ROLLBACK)
        async with Admin(name_server) as admin, Producer(PRODUCERS, client=client) as producer, halves, consumer:
            receipt = await producer.send(Message(TOPIC, b"paid", tags="A", keys="o-1"))
            (batched, _) = await producer.send_batch([Message(TOPIC, b"one"), Message(TOPIC, b"two")])
            async with halves.transaction(Message(TOPIC, b"half", keys="o-2")) as transaction:
                pass
            ids = [receipt.message_id, batched.message_id, transaction.transaction_id]
            for message_id, count in zip(ids, (3, 3, 4), strict=True):
                await told(admin, message_id, count)
            return ids

    with running_standalone(tmp_path, TRACED) as server:
        with blocking.Admin(server.name_server) as admin:
            admin.create_topic(TOPIC, 2)
            wait_until(lambda: _is_there(admin), "the topic has a route")
        ids = run_bounded(main(server.name_server))
        shown = admin_outputs(apache, [f"queryMsgTraceById -n {server.name_server} -i {each}" for each in ids])
    moment = r"\d{4}-\d\d-\d\d \d\d:\d\d:\d\d"
    for printed, group in zip(shown, (PRODUCERS, PRODUCERS, "TraceHalves"), strict=True):
        assert re.search(rf"^Pub +{group} +127\.0\.0\.1 +{moment} +\d+ms +success", printed, re.MULTILINE), printed
        assert re.search(rf"^Sub +{CONSUMERS} +127\.0\.0\.1 +{moment} +\d+ms +success", printed, re.MULTILINE), printed


@pytest.mark.parametrize("version", VERSIONS)
def test_we_read_the_traces_of_rocketmqs_clients(tmp_path: Path, version: str) -> None:
    apache = rocketmq(version)
    with running_standalone(tmp_path, TRACED) as server, blocking.Admin(server.name_server) as admin:
        admin.create_topic(TOPIC, 2)
        wait_until(lambda: _is_there(admin), "the topic has a route")
        command = apache.command("TraceClient", server.name_server, PRODUCERS, CONSUMERS, home=tmp_path)
        with running_client(command, {}, tmp_path) as client:
            plain = client.do("send", topic=TOPIC, body="paid", key="o-1")
            half = client.do("commit", topic=TOPIC, body="half", key="o-2")
            client.do("consume", topic=TOPIC)
            wait_until(lambda: client.do("consumed") == 2, "both are consumed")
            wait_until(lambda: len(admin.trace(plain)) == 3, "the plain one is traced")
            wait_until(lambda: len(admin.trace(half)) == 4, "the half is traced")
        sent, began, ended = admin.trace(plain)
        assert isinstance(sent, Sent)
        assert (sent.group, sent.topic, sent.tags, sent.keys) == (PRODUCERS, TOPIC, "TagA", "o-1")
        assert (sent.kind, sent.body_length, sent.succeeded, sent.store_host) == (
            SendKind.NORMAL,
            4,
            True,
            server.broker,
        )
        assert isinstance(began, CallBegan)
        assert isinstance(ended, CallEnded)
        assert (began.group, began.request_id, ended.outcome) == (CONSUMERS, ended.request_id, CallOutcome.SUCCESS)
        events = admin.trace(half)
        kinds = [event.kind for event in events if isinstance(event, Sent)]
        assert kinds == [SendKind.HALF]
        (end,) = [event for event in events if isinstance(event, TransactionEnded)]
        assert (end.state, end.from_check, end.group, end.topic) == ("COMMIT_MESSAGE", False, PRODUCERS, TOPIC)
        assert (end.kind, end.transaction_id) == (SendKind.TRANSACTION_END, half)


def _is_there(admin: blocking.Admin) -> bool:
    try:
        return len(admin.queues(TOPIC)) == 2
    except NoRoute:
        return False
