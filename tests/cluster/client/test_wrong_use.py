"""Wrong use gets an error that names the cause and the next step; here every text in full."""

import logging
from collections.abc import Awaitable
from pathlib import Path

import pytest

from skyrocket.client import (
    Admin,
    AlreadyStarted,
    IllegalName,
    LitePullConsumer,
    Message,
    NoNameServer,
    NoRoute,
    NotRunning,
    NotWritable,
    Producer,
    ProducerSettings,
    PushConsumer,
    PushConsumerSettings,
    RouteTooWide,
    SendFailed,
)
from skyrocket.client.core.errors import Attempt
from skyrocket.config.sections import BrokerConfig
from skyrocket.errors import MessageRefused
from skyrocket.model.subscription_group import SubscriptionGroup
from skyrocket.protocol.errors import error_of
from tests.cluster.servers import cluster
from tests.waiting import until

ORDERS = Message("Orders", b"x")
LARGE = Message("Orders", bytes(5 << 20))


async def said(kind: type[Exception], work: Awaitable[object]) -> str:
    """The text of the error that it must end in."""
    with pytest.raises(kind) as caught:
        await work
    assert type(caught.value) is kind
    return str(caught.value)


async def test_an_unknown_topic_for_producers_and_consumers(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    async with cluster(tmp_path, config=BrokerConfig(auto_create_topic=False)) as given:
        text = (
            f"no route for topic Missing: the name server {given.names} knows no broker for it; create it with "
            "Admin.create_topic('Missing') or `skyrocket topic create Missing`, or let brokers create topics "
            "(autoCreateTopicEnable=true)"
        )
        async with Producer("Shop", given.names) as producer:
            assert await said(NoRoute, producer.send(Message("Missing", b"x"))) == text
            assert await said(NoRoute, producer.send_oneway(Message("Missing", b"x"))) == text
            assert await said(NoRoute, producer.send_batch([Message("Missing", b"x")])) == text
            pending = await producer.enqueue(Message("Missing", b"x"))
            assert await said(NoRoute, pending) == text
        consumer = PushConsumer("Billing", given.names)
        consumer.subscribe("Missing", lambda message: None)
        with caplog.at_level(logging.WARNING):
            async with consumer, LitePullConsumer("Report", given.names) as reader:
                assert "create it with Admin.create_topic('Missing')" in await said(
                    NoRoute, reader.message_queues("Missing")
                )
        heard = [record.getMessage() for record in caplog.records]
        assert any(text.startswith("a subscribed topic is not there yet: no route for topic Missing") for text in heard)


async def test_a_topic_that_may_not_be_written(tmp_path: Path) -> None:
    async with cluster(tmp_path) as given, Admin(given.names) as admin, Producer("Shop", given.names) as producer:
        await admin.create_topic("Archive", 4, permission=4)
        assert await said(NotWritable, producer.send(Message("Archive", b"x"))) == (
            "topic Archive cannot be written to: broker-a has perm 4, 4 write queues and a master; writing needs a "
            "master, write queues and perm 6 (or 2): Admin.create_topic('Archive', permission=6), "
            "brokerPermission=6, `skyrocket broker resume-writes` where they were paused, or start the master"
        )
        await admin.create_topic("Archive", 4)  # as the text says
        assert (await producer.send(Message("Archive", b"x"))).is_durable


async def test_a_topic_with_more_queues_than_a_client_can_hold(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("skyrocket.client.admin.topic_admin.MOST_QUEUES", 1_000_000)  # a tool of somebody else's
    wide = BrokerConfig(max_topic_queues=1_000_000)
    async with (
        cluster(tmp_path, config=wide) as given,
        Admin(given.names) as admin,
        Producer("Shop", given.names) as producer,
    ):
        await admin.create_topic("Wide", 100_001)
        assert await said(RouteTooWide, producer.send(Message("Wide", b"x"))) == (
            "the route of topic Wide has 100001 queues, and a client takes 100000 at most: somebody gave the topic "
            "a wrong number of queues, or the name server is not yours; look at it with `mqadmin topicRoute` and "
            "lower the numbers with `mqadmin updateTopic`"
        )


async def test_a_group_that_may_not_consume(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    async with cluster(tmp_path) as given, Admin(given.names) as admin:
        await admin.create_topic("Orders", 1)
        await admin.create_group(SubscriptionGroup("Closed", may_consume=False))
        consumer = PushConsumer("Closed", given.names)
        consumer.subscribe("Orders", lambda message: None)
        async with consumer:
            await until(lambda: any(CLOSED in record.getMessage() for record in caplog.records))


CLOSED = (
    "code 16 NO_PERMISSION, subscription group no permission, Closed "
    "(check the permission (perm) of broker and topic, the group, and the access rules)"
)


def test_a_send_that_a_broker_forbids() -> None:
    refusal = error_of(16, "the broker[10.0.0.1] sending message is forbidden", None)
    assert str(SendFailed("Orders", [Attempt("broker-a", "10.0.0.1:10911", 0.004, refusal)], 0.005)) == (
        "message for topic Orders was not confirmed within 5 ms, 1 attempt: 1) broker-a after 4 ms: code 16 "
        "NO_PERMISSION, the broker[10.0.0.1] sending message is forbidden (check the permission (perm) of broker and "
        "topic, the group, and the access rules)"
    )


@pytest.mark.requirement("C086")
async def test_a_message_that_is_too_large_for_the_client_or_for_the_broker(tmp_path: Path) -> None:
    async with cluster(tmp_path) as given:
        text = (
            "the body of a message for topic Orders has 5242880 bytes; max_message_size is 4194304: send less, or "
            "raise it here and maxMessageSize at the brokers"
        )
        async with Producer("Shop", given.names) as producer:
            assert await said(MessageRefused, producer.send(LARGE)) == text
            assert await said(MessageRefused, producer.enqueue(LARGE)) == text
            assert await said(MessageRefused, producer.send(Message("Orders", b""))) == (
                "the body of a message for topic Orders is empty: brokers refuse that"
            )
            assert await said(MessageRefused, producer.send(Message("Orders", "text"))) == (  # type: ignore[arg-type]
                "the body of a message for topic Orders is str, not bytes: encode it, or use Message.json"
            )
        settings = ProducerSettings(max_message_size=8 << 20, compress_over=1 << 30)
        async with Producer("Shop", given.names, settings) as producer:
            refused = await said(SendFailed, producer.send(LARGE))
            assert "code 13 MESSAGE_ILLEGAL, the message is illegal, maybe msg body or properties length" in refused
            assert refused.endswith(" (the message breaks a limit of the broker: name, properties or size)")


@pytest.mark.parametrize("kind", [Producer, PushConsumer, LitePullConsumer])
def test_a_group_name_that_brokers_would_refuse(kind: "type[Producer | PushConsumer | LitePullConsumer]") -> None:
    for name, text in {
        "": "the group is blank: give it a name",
        "a b": "group 'a b' contains ' ': only letters, digits and",
        "g" * 256: "has 256 characters; 120 are allowed",
        "DEFAULT_CONSUMER": "RocketMQ's default that nobody may use: choose a name of your own",
    }.items():
        with pytest.raises(IllegalName) as caught:
            kind(name, "127.0.0.1:9876")
        assert text in str(caught.value)


async def test_two_consumers_of_a_group_that_subscribe_to_different_things(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:

    def warnings() -> list[str]:
        return [each.getMessage() for each in caplog.records if "subscribe to different things" in each.getMessage()]

    async with cluster(tmp_path) as given, Admin(given.names) as admin:
        await admin.create_topic("Orders", 4)
        one, two = PushConsumer("Billing", given.names), PushConsumer("Billing", given.names)
        one.subscribe("Orders", lambda message: None, "TagA")
        two.subscribe("Orders", lambda message: None, "TagB")
        async with one, two:
            await until(lambda: bool(warnings()))  # by itself, while both are running
    assert warnings()[0] in {
        "members of consumer group Billing subscribe to different things, so messages get lost: topic Orders: here "
        f"'{here}' (TAG), another member has '{there}' (TAG). Give all members the same subscriptions, or different "
        "groups"
        for here, there in (("TagA", "TagB"), ("TagB", "TagA"))
    }


async def test_a_member_that_is_started_twice_or_used_too_early_or_too_late(tmp_path: Path) -> None:
    async with cluster(tmp_path) as given:
        consumer = PushConsumer("Billing", given.names, PushConsumerSettings())
        consumer.subscribe("Orders", lambda message: None)
        producer = Producer("Shop", given.names)
        assert await said(NotRunning, producer.send(ORDERS)) == (
            "producer Shop is not started: use it inside `async with`, or between `await start()` and `await stop()`"
        )
        for member, name in ((producer, "producer Shop"), (consumer, "push consumer Billing")):
            await member.start()
            assert await said(AlreadyStarted, member.start()) == (
                f"{name} was already started (it is running): make a new one instead of starting it again"
            )
            await member.stop()
            assert await said(AlreadyStarted, member.start()) == (
                f"{name} was already started (it is stopped): make a new one instead of starting it again"
            )
        assert "producer Shop is stopped: use it inside" in await said(NotRunning, producer.send(ORDERS))


async def test_no_name_server_answers(tmp_path: Path) -> None:
    nowhere = "127.0.0.1:1"
    advice = "name_servers= in a program) and that one of them runs (`skyrocket namesrv`)"
    async with Producer("Shop", nowhere) as producer:
        text = await said(NoNameServer, producer.send(ORDERS))
        assert text.startswith("no name server answered (127.0.0.1:1: could not connect: nothing listens there): ")
        assert advice in text
    consumer = PushConsumer("Billing", nowhere)
    consumer.subscribe("Orders", lambda message: None)
    assert advice in await said(NoNameServer, consumer.start())
    async with Admin(nowhere) as admin:
        assert advice in await said(NoNameServer, admin.topics())
