"""Producer against real brokers: every way to send, retries, bounds, the end."""

import asyncio
from concurrent.futures import Future
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from skyrocket.client import blocking
from skyrocket.client.admin.admin import Admin
from skyrocket.client.consumer.handlers import ReconsumeLater
from skyrocket.client.consumer.push_consumer import PushConsumer
from skyrocket.client.core.errors import (
    AlreadyStarted,
    BrokerAbsent,
    BrokerRefused,
    NoRoute,
    NotRunning,
    RequestTimeout,
    SendFailed,
    TooManyInFlight,
    WrongUse,
)
from skyrocket.client.core.hooks import SendContext, SendHook
from skyrocket.client.core.message import Message, ReceivedMessage
from skyrocket.client.core.send_receipt import SendReceipt, SendStatus
from skyrocket.client.core.settings import ClientSettings
from skyrocket.client.producer.producer import Producer
from skyrocket.client.producer.producer_settings import ProducerSettings
from skyrocket.client.sending.queue_selector import select_by_hash
from skyrocket.config.sections import BrokerConfig
from skyrocket.errors import MessageRefused
from skyrocket.format.compression import CompressionType
from skyrocket.format.sys_flag import COMPRESSED
from skyrocket.model.message_queue import MessageQueue
from skyrocket.protocol.requests.messaging import ConsumerSendMsgBack
from skyrocket.protocol.requests.route import GetRouteInfoByTopic
from skyrocket.remoting.client import RemotingClient
from tests.cluster.client.inside import instance_of, known_topics, sends_in_flight
from tests.cluster.servers import Cluster, cluster
from tests.ports import free_port
from tests.waiting import until

TOPIC = "Orders"


async def stored(given: Cluster, *, topic: str = TOPIC) -> list[ReceivedMessage]:
    """All messages of a topic, read from the brokers' stores."""
    from skyrocket.client.core.message import decode_messages

    found: list[ReceivedMessage] = []
    for name, broker in given.brokers.items():
        config = broker.tables.topics.find(topic)
        for queue_id in range(config.read_queues if config is not None else 0):
            offset = 0
            while slices := broker.store.get(topic, queue_id, offset, 32).slices:
                messages = decode_messages(b"".join(slices), name)
                found += messages
                offset = messages[-1].queue_offset + 1
    return found


@pytest.mark.requirement("A039", "C009", "C045", "C092")
async def test_a_send_says_where_the_message_is(tmp_path: Path) -> None:
    async with cluster(tmp_path) as given, Producer("Shop", given.names) as producer:
        receipt = await producer.send(
            Message(TOPIC, b"paid", tags="TagA", keys=["o-1", "o-2"], properties={"region": "eu"}, flag=7)
        )
        assert receipt.status is SendStatus.SEND_OK
        assert receipt.is_durable
        assert receipt.attempts == 1
        assert receipt.queue.topic == TOPIC
        assert receipt.queue.broker_name == "broker-a"
        assert receipt.queue_offset == 0
        (message,) = await stored(given)
        assert (message.body, message.tags, message.keys, message.flag) == (b"paid", "TagA", ["o-1", "o-2"], 7)
        assert message.properties["region"] == "eu"
        assert message.message_id == receipt.message_id
        assert message.offset_message_id == receipt.offset_message_id


@pytest.mark.requirement("A042", "B039", "C077", "B019", "C001")
async def test_queues_take_turns(tmp_path: Path) -> None:
    async with cluster(tmp_path, "broker-a", "broker-b") as given:
        async with Admin(given.names) as admin:
            await admin.create_topic(TOPIC, 2)
        async with Producer("Shop", given.names) as producer:
            await until_known(producer, 4)
            receipts = [await producer.send(Message(TOPIC, b"x")) for _ in range(8)]
            counts = [sum(each.queue == queue for each in receipts) for queue in await producer.queues(TOPIC)]
            assert counts == [2, 2, 2, 2]


async def test_a_list_that_is_longer_than_the_counter_of_message_ids_has_none_twice(tmp_path: Path) -> None:
    async with cluster(tmp_path) as given, Producer("Shop", given.names) as producer:
        receipts = await producer.send_batch([Message(TOPIC, b"x")] * 70_000, timeout=60)
        assert len({each.message_id for each in receipts}) == 70_000


async def until_known(producer: Producer, count: int) -> None:
    """Brokers register a new topic a moment after it was made."""
    for _ in range(2000):
        try:
            if len(await producer.queues(TOPIC)) == count:
                return
        except NoRoute:
            pass
        known_topics(producer).clear()
        instance_of(producer).routes.clear()
        await asyncio.sleep(0.02)
    raise AssertionError("the topic did not appear")


@pytest.mark.requirement("A044", "E018", "E019", "E020")
@pytest.mark.parametrize("kind", list(CompressionType))
async def test_large_bodies_travel_compressed_and_arrive_whole(tmp_path: Path, kind: CompressionType) -> None:
    settings = ProducerSettings(compress_type=kind)
    async with cluster(tmp_path) as given, Producer("Shop", given.names, settings) as producer:
        message = Message(TOPIC, b"a" * 4096)
        await producer.send(message)
        await producer.send(Message(TOPIC, b"b" * 4095))
        found = {each.born_timestamp: each for each in await stored(given)}
        sizes = sorted(each.stored_body_size for each in found.values())
        assert sizes[0] < 200
        assert sizes[1] == 4095
        assert sorted(each.body for each in await stored(given)) == [b"a" * 4096, b"b" * 4095]
        assert message.body == b"a" * 4096


@pytest.mark.requirement("E018")
async def test_a_batch_is_not_compressed(tmp_path: Path) -> None:
    async with cluster(tmp_path) as given, Producer("Shop", given.names) as producer:
        await producer.send_batch([Message(TOPIC, b"a" * 5000), Message(TOPIC, b"b" * 5000)])
        assert [(each.stored_body_size, each.sys_flag & COMPRESSED) for each in await stored(given)] == [(5000, 0)] * 2


@pytest.mark.requirement("E002")
async def test_a_new_topic_has_four_queues_on_each_broker_numbered_from_0(tmp_path: Path) -> None:
    async with cluster(tmp_path, "broker-a", "broker-b") as given, Producer("Shop", given.names) as producer:
        queues = await producer.queues(TOPIC)
        wanted = [MessageQueue(TOPIC, name, number) for name in ("broker-a", "broker-b") for number in range(4)]
        assert sorted(queues) == wanted
        for queue in queues:
            assert (await producer.send(Message(TOPIC, b"x"), queue=queue)).queue == queue
        for broker in given.brokers.values():
            config = broker.tables.topics.find(TOPIC)
            assert config is not None
            assert (config.read_queues, config.write_queues) == (4, 4)
            assert [broker.store.max_offset(TOPIC, number) for number in range(5)] == [1, 1, 1, 1, 0]


@pytest.mark.requirement("C172")
async def test_a_send_that_nobody_waits_for_has_its_own_number_of_retries(tmp_path: Path) -> None:
    settings = ProducerSettings(retries=0, async_retries=4, send_timeout=10.0)

    def attempts(receipt: "Future[SendReceipt]") -> int:
        with pytest.raises(SendFailed) as failed:
            receipt.result(60)
        return len(failed.value.attempts)

    async with cluster(tmp_path) as given:
        with blocking.Producer("Shop", given.names, settings) as producer:
            await asyncio.to_thread(producer.send, Message(TOPIC, b"x"))
            await given.stop_broker()
            sends = [producer.send_nowait(Message(TOPIC, b"x")), producer.send_nowait(Message(TOPIC, b"x"), retries=1)]
            assert [await asyncio.to_thread(attempts, each) for each in sends] == [5, 2]
            with pytest.raises(SendFailed) as waited_for:
                await asyncio.to_thread(producer.send, Message(TOPIC, b"x"))
            assert len(waited_for.value.attempts) == 1


@pytest.mark.requirement("C014", "B037")
async def test_equal_sharding_keys_go_to_the_queue_that_java_would_choose(tmp_path: Path) -> None:
    async with cluster(tmp_path) as given, Producer("Shop", given.names) as producer:
        receipts = [await producer.send(Message(TOPIC, b"x", sharding_key="order-1001")) for _ in range(3)]
        assert [receipt.queue.queue_id for receipt in receipts] == [3, 3, 3]
        assert [receipt.queue_offset for receipt in receipts] == [0, 1, 2]
        receipt = await producer.send(Message(TOPIC, b"x"), selector=select_by_hash, argument="order-1002")
        assert receipt.queue.queue_id == 0
        receipt = await producer.send(Message(TOPIC, b"x"), queue=MessageQueue(TOPIC, "broker-a", 2))
        assert receipt.queue.queue_id == 2
        with pytest.raises(WrongUse, match="none of the 4 queues"):
            await producer.send(
                Message(TOPIC, b"x"), selector=lambda queues, message, argument: queues[0]._replace(queue_id=9)
            )
        with pytest.raises(WrongUse, match="belongs to another topic"):
            await producer.send(Message(TOPIC, b"x"), queue=MessageQueue("Other", "broker-a", 2))


@pytest.mark.requirement("C021", "C093")
async def test_a_batch_has_a_receipt_for_each_message_and_is_split_by_size(tmp_path: Path) -> None:
    settings = ProducerSettings(max_batch_bytes=1000)
    async with cluster(tmp_path) as given, Producer("Shop", given.names, settings) as producer:
        messages = [Message(TOPIC, b"%03d" % i + b"x" * 200, tags="T") for i in range(10)]
        receipts = await producer.send_batch(messages, queue=MessageQueue(TOPIC, "broker-a", 1))
        assert [receipt.queue_offset for receipt in receipts] == list(range(10))
        assert len({receipt.message_id for receipt in receipts}) == 10
        found = await stored(given)
        assert [each.body for each in found] == [message.body for message in messages]
        assert [each.message_id for each in found] == [receipt.message_id for receipt in receipts]
        assert [each.offset_message_id for each in found] == [receipt.offset_message_id for receipt in receipts]
        assert await producer.send_batch([]) == []
        with pytest.raises(MessageRefused, match="has one topic"):
            await producer.send_batch([Message("A", b"x"), Message("B", b"x")])
        with pytest.raises(MessageRefused, match="delayed message"):
            await producer.send_batch([Message("A", b"x", delay_level=3)])


async def test_singles_that_come_together_travel_together(tmp_path: Path) -> None:
    settings = ProducerSettings(auto_batch=True, auto_batch_bytes=1 << 20, auto_batch_delay=0.005)
    async with cluster(tmp_path) as given, Producer("Shop", given.names, settings) as producer:
        receipts = await asyncio.gather(*(producer.send(Message(TOPIC, b"%d" % i)) for i in range(50)))
        assert [receipt.queue_offset for receipt in receipts] == list(range(50))
        assert len({receipt.queue for receipt in receipts}) == 1
        by_id = {each.message_id: each.body for each in await stored(given)}
        assert [by_id[receipt.message_id] for receipt in receipts] == [b"%d" % i for i in range(50)]
        pending = [await producer.enqueue(Message(TOPIC, b"later")) for _ in range(3)]
        assert not pending[0].is_done
        await producer.flush()
        assert len({(await each).message_id for each in pending}) == 3
        with pytest.raises(MessageRefused, match="delayed"):
            await producer.enqueue(Message(TOPIC, b"x", delay_level=1))


async def test_a_batch_that_fails_tells_every_message(tmp_path: Path) -> None:
    settings = ProducerSettings(auto_batch=True, auto_batch_delay=0.001, send_timeout=3, retries=0)
    async with cluster(tmp_path) as given, Producer("Shop", given.names, settings) as producer:
        await producer.send(Message(TOPIC, b"x"))
        await given.stop_broker()
        outcomes = await asyncio.gather(
            *(producer.send(Message(TOPIC, b"x")) for _ in range(3)), return_exceptions=True
        )
        assert [type(outcome) for outcome in outcomes] == [SendFailed] * 3


@pytest.mark.requirement("C011")
async def test_a_oneway_send_is_stored_without_an_answer(tmp_path: Path) -> None:
    async with cluster(tmp_path) as given:
        async with Producer("Shop", given.names) as producer:
            for i in range(200):
                await producer.send_oneway(Message(TOPIC, b"%d" % i))
            await producer.send(Message(TOPIC, b"last"))
        assert len(await stored(given)) == 201


@pytest.mark.requirement("C052", "C087", "B019")
async def test_a_send_is_tried_on_another_broker(tmp_path: Path) -> None:
    settings = ProducerSettings(send_timeout=5)
    async with cluster(tmp_path, "broker-a", "broker-b") as given:
        producer = Producer("Shop", given.names, settings)
        async with producer:
            assert len(await producer.queues(TOPIC)) == 8
            await given.brokers["broker-a"].parts.server.stop()  # without goodbye at the name server
            receipts = [await producer.send(Message(TOPIC, b"x")) for _ in range(8)]
            assert {receipt.queue.broker_name for receipt in receipts} == {"broker-b"}
            assert max(receipt.attempts for receipt in receipts) == 2


async def test_brokers_that_failed_rest_with_fault_avoidance(tmp_path: Path) -> None:
    settings = ProducerSettings(send_latency_fault_enable=True, send_timeout=5)
    async with cluster(tmp_path, "broker-a", "broker-b") as given:
        producer = Producer("Shop", given.names, settings)
        async with producer:
            await given.brokers["broker-a"].parts.server.stop()
            receipts = [await producer.send(Message(TOPIC, b"x")) for _ in range(12)]
            assert {receipt.queue.broker_name for receipt in receipts} == {"broker-b"}
            assert sum(receipt.attempts - 1 for receipt in receipts) <= 1


async def test_a_broker_that_comes_back_is_used_again(tmp_path: Path) -> None:
    async with (
        cluster(tmp_path) as given,
        Producer("Shop", given.names, ProducerSettings(send_timeout=30, retries=1000)) as producer,
    ):
        await producer.send(Message(TOPIC, b"before"))
        await given.stop_broker()
        sending = asyncio.create_task(producer.send(Message(TOPIC, b"while it is away")))
        await asyncio.sleep(0.2)
        await given.start_broker()
        receipt = await sending
        assert receipt.attempts > 1
        assert sorted(each.body for each in await stored(given)) == [b"before", b"while it is away"]


@pytest.mark.requirement("C052")
async def test_when_all_attempts_fail_the_error_lists_them(tmp_path: Path) -> None:
    async with (
        cluster(tmp_path) as given,
        Producer("Shop", given.names, ProducerSettings(send_timeout=3.0)) as producer,
    ):
        await producer.send(Message(TOPIC, b"x"))
        await given.stop_broker()
        with pytest.raises(SendFailed) as caught:
            await producer.send(Message(TOPIC, b"x"))
        assert len(caught.value.attempts) == 3
        text = str(caught.value)
        assert text.startswith(f"message for topic {TOPIC} was not confirmed within ")
        assert "3 attempts: 1) broker-a after" in text


async def test_a_refusal_that_no_other_broker_would_revoke_is_not_tried_again(tmp_path: Path) -> None:
    async with cluster(tmp_path) as given:
        settings = ProducerSettings(max_message_size=8 << 20, compress_over=1 << 30)
        async with Producer("Shop", given.names, settings) as producer:
            with pytest.raises(SendFailed) as caught:
                await producer.send(Message(TOPIC, b"x" * (5 << 20)))
            assert len(caught.value.attempts) == 1
            assert caught.value.code == 13


@pytest.mark.requirement("C075")
async def test_a_topic_that_nobody_may_create_has_no_route(tmp_path: Path) -> None:
    async with cluster(tmp_path, config=BrokerConfig(auto_create_topic=False)) as given:
        producer = Producer("Shop", given.names)
        async with producer:
            with pytest.raises(NoRoute) as caught:
                await producer.send(Message("Missing", b"x"))
            assert str(caught.value).startswith(
                f"no route for topic Missing: the name server {given.names} knows no broker for it; create it with "
                "Admin.create_topic('Missing')"
            )


@pytest.mark.parametrize("hooks", [(), (SendHook(),)], ids=["plain", "hooked"])
async def test_more_sends_than_allowed_wait_their_turn(tmp_path: Path, hooks: tuple[SendHook, ...]) -> None:
    settings = ProducerSettings(max_in_flight=4, gather_sends=False)
    async with cluster(tmp_path) as given, Producer("Shop", given.names, settings, hooks=hooks) as producer:
        address = str(given.brokers["broker-a"].identity.address)
        await producer.send(Message(TOPIC, b"x"))
        connection = instance_of(producer).remoting.connection(address)
        assert connection is not None
        sending = asyncio.gather(*(producer.send(Message(TOPIC, b"x")) for _ in range(100)))
        most = 0
        while not sending.done():
            most = max(most, connection.calls_in_flight)
            await asyncio.sleep(0)
        assert len(await sending) == 100
        assert most == 4
        for _ in range(4):
            sends_in_flight(producer).enter_anyway(1)
        with pytest.raises(TooManyInFlight, match="4 sends with 4 bytes are in flight"):
            await producer.send(Message(TOPIC, b"x"), timeout=0.05)
        for _ in range(4):
            sends_in_flight(producer).leave(1)
        await producer.send(Message(TOPIC, b"x"), timeout=20)


@pytest.mark.requirement("C076")
async def test_hooks_see_every_attempt_and_may_forbid(tmp_path: Path) -> None:
    seen: list[tuple[str, object]] = []

    class Hook(SendHook):
        def allow_send(self, context: SendContext) -> None:
            if context.message.body == b"forbidden":
                raise PermissionError("not this one")

        def before_send(self, context: SendContext) -> None:
            seen.append(("before", context.message.body))
            raise RuntimeError("a hook that fails changes nothing")

        def after_send(self, context: SendContext) -> None:
            assert context.receipt is not None
            seen.append(("after", context.receipt.queue_offset))

    async with cluster(tmp_path) as given, Producer("Shop", given.names, hooks=[Hook()]) as producer:
        await producer.send(Message(TOPIC, b"x"))
        assert seen == [("before", b"x"), ("after", 0)]
        with pytest.raises(PermissionError):
            await producer.send(Message(TOPIC, b"forbidden"))


async def test_stop_waits_for_what_is_under_way_and_refuses_the_rest(tmp_path: Path) -> None:
    async with cluster(tmp_path) as given:
        producer = Producer("Shop", given.names, ProducerSettings(auto_batch_delay=5.0))
        with pytest.raises(NotRunning, match="producer Shop is not started: use it inside `async with`"):
            await producer.send(Message(TOPIC, b"x"))
        await producer.start()
        with pytest.raises(AlreadyStarted, match="was already started"):
            await producer.start()
        pending = await producer.enqueue(Message(TOPIC, b"waits for five seconds"))
        sends = [asyncio.create_task(producer.send(Message(TOPIC, b"%d" % i))) for i in range(20)]
        await asyncio.sleep(0)
        await producer.stop()
        await producer.stop()
        assert pending.is_done
        assert len(await asyncio.gather(*sends)) == 20
        with pytest.raises(NotRunning, match="stopped"):
            await producer.send(Message(TOPIC, b"x"))
        assert len(await stored(given)) == 21


async def test_a_namespace_stands_before_topic_and_group_but_not_in_receipts(tmp_path: Path) -> None:
    async with cluster(tmp_path) as given:
        client = ClientSettings(given.names, namespace="shop1")
        async with Producer("Shop", client=client) as producer:
            assert producer.group == "shop1%Shop"
            receipt = await producer.send(Message(TOPIC, b"x"))
            assert receipt.queue.topic == TOPIC
            assert [queue.topic for queue in await producer.queues(TOPIC)] == [TOPIC] * 4
            (message,) = await stored(given, topic="shop1%Orders")
            assert message.properties["INSTANCE_ID"] == "shop1"


@pytest.mark.requirement("C073")
async def test_members_with_one_instance_name_share_connections(tmp_path: Path) -> None:
    async with cluster(tmp_path) as given:
        client = ClientSettings(given.names, instance_name="one")
        async with Producer("A", client=client) as first, Producer("B", client=client) as second:
            assert instance_of(first) is instance_of(second)
            assert instance_of(first).client_id.endswith("@one")
        other = replace(client, instance_name="DEFAULT", unit_name="unit7")
        async with Producer("A", client=other) as first, Producer("B", client=other) as second:
            assert instance_of(first) is not instance_of(second)
            assert instance_of(first).client_id.endswith("@unit7")


async def test_a_producer_is_known_to_its_broker_while_it_runs(tmp_path: Path) -> None:
    async with cluster(tmp_path) as given, Admin(given.names) as admin:
        async with Producer("Shop", given.names) as producer:
            await producer.send(Message(TOPIC, b"x"))
            await instance_of(producer).beat_all()
            (connection,) = (await admin.producer_connections("Shop", TOPIC)).connections
            assert connection.client_id == instance_of(producer).client_id
            assert connection.language == "PYTHON"
        with pytest.raises(BrokerRefused, match="asking for producers of group Shop was refused"):
            await admin.producer_connections("Shop", TOPIC)


def test_a_broker_without_a_master_address_is_absent() -> None:
    text = str(BrokerAbsent("broker-a", TOPIC))
    assert text.startswith(
        "broker broker-a of topic Orders has no master in the route: it is down or was removed; start it"
    )


@pytest.mark.requirement("B037")
async def test_a_message_in_order_goes_to_no_other_broker(tmp_path: Path) -> None:
    async with cluster(tmp_path, "broker-a", "broker-b") as given, Producer("Shop", given.names) as producer:
        keys = {queue.broker_name: str(key) for key in range(50) for queue in [await queue_for(producer, str(key))]}
        await given.brokers["broker-a"].parts.server.stop()
        with pytest.raises(SendFailed) as caught:
            await producer.send(Message(TOPIC, b"x", sharding_key=keys["broker-a"]), timeout=0.5)
        assert {attempt.broker_name for attempt in caught.value.attempts} == {"broker-a"}
        receipt = await producer.send(Message(TOPIC, b"x", sharding_key=keys["broker-b"]))
        assert (receipt.queue.broker_name, receipt.attempts) == ("broker-b", 1)


async def queue_for(producer: Producer, key: str) -> MessageQueue:
    return select_by_hash(await producer.queues(TOPIC), Message(TOPIC, b"x"), key)


@pytest.mark.requirement("C010")
async def test_a_send_that_nobody_awaits_calls_back(tmp_path: Path) -> None:
    receipts: list[SendStatus] = []
    errors: list[str] = []

    def done(sending: asyncio.Task[SendReceipt]) -> None:
        error = sending.exception()
        receipts.append(sending.result().status) if error is None else errors.append(type(error).__name__)

    async with cluster(tmp_path) as given, Producer("Shop", given.names) as producer:
        bodies = [b"%d" % number for number in range(20)] + [bytes(5 << 20)]
        tasks = [asyncio.create_task(producer.send(Message(TOPIC, body))) for body in bodies]
        for task in tasks:
            task.add_done_callback(done)
        assert not receipts
        await asyncio.wait(tasks)
        assert (receipts, errors) == ([SendStatus.SEND_OK] * 20, ["MessageRefused"])
        assert len(await stored(given)) == 20


def asked_by(monkeypatch: pytest.MonkeyPatch, method: str) -> list[tuple[Any, Any]]:
    """Grows with every call of this method of any client: who was asked, and what."""
    own, asked = getattr(RemotingClient, method), list[tuple[Any, Any]]()

    async def call(client: RemotingClient, whom: Any, request: Any, *rest: Any, **options: Any) -> Any:
        asked.append((whom, request))
        return await own(client, whom, request, *rest, **options)

    monkeypatch.setattr(RemotingClient, method, call)
    return asked


@pytest.mark.requirement("C154")
async def test_the_template_topic_is_asked_for_also_when_brokers_create_no_topics(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    async with cluster(tmp_path, config=BrokerConfig(auto_create_topic=False)) as given:
        asked = asked_by(monkeypatch, "call_any")
        async with Producer("Shop", given.names) as producer:
            with pytest.raises(NoRoute):
                await producer.send(Message("Missing", b"x"))
        routes = [each.topic for _, each in asked if isinstance(each, GetRouteInfoByTopic)]
        assert routes[:2] == ["Missing", "TBW102"]


@pytest.mark.requirement("C084")
@pytest.mark.parametrize("vip", [False, True])
async def test_sends_and_what_is_sent_back_may_go_over_the_vip_port(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, vip: bool
) -> None:
    times: list[int] = []

    def handle(message: ReceivedMessage) -> None:
        times.append(message.reconsume_times)
        if not message.reconsume_times:
            raise ReconsumeLater(delay_level=1)

    async with cluster(tmp_path) as given:
        await given.stop_broker()
        given.ports["broker-a"] = port = free_port()
        await given.start_broker()
        client, asked = ClientSettings(given.names, vip_channel=vip), asked_by(monkeypatch, "call")
        async with Producer("Shop", client=client) as producer:
            await producer.send(Message(TOPIC, b"x"))
            assert (instance_of(producer).remoting.connection(f"127.0.0.1:{port - 2}") is not None) == vip
        consumer = PushConsumer("Billing", client=client)
        consumer.subscribe(TOPIC, handle)
        async with consumer:
            await until(lambda: times == [0, 1])
        sent_back = [address for address, each in asked if isinstance(each, ConsumerSendMsgBack)]
        assert sent_back == [f"127.0.0.1:{port - 2 if vip else port}"]


async def test_a_request_that_makes_its_topic_names_the_client_first(tmp_path: Path) -> None:
    """Else the reply would find nobody, and come only with the next delivery."""
    async with cluster(tmp_path) as given, Producer("Shop", given.names) as producer:
        with pytest.raises(RequestTimeout):
            await producer.request(Message("NewQuestions", b"?"), timeout=0.1)
        assert producer._instance.is_known_to(f"127.0.0.1:{given.ports['broker-a']}")
