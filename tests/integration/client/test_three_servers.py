"""One suite, three servers: Skyrocket, Apache RocketMQ 5.4.0 and 4.9.7, with the same assertions.

Skyrocket is in `make test`; Apache needs Java and is the long mode, `make interop-client`. Servers that go away
are in test_kill.py, groups shared with Java consumers in test_mixed_groups.py.
"""

import asyncio
import contextlib
import time
from collections import Counter
from collections.abc import Awaitable, Iterator
from pathlib import Path

import pytest

from skyrocket.client import (
    Admin,
    DeadLetter,
    LitePullConsumer,
    LitePullSettings,
    Message,
    MessageModel,
    MessageQueue,
    NoRoute,
    PopNotOffered,
    PoppedMessage,
    Producer,
    ProducerSettings,
    PushConsumer,
    PushConsumerSettings,
    ReceiptExpired,
    ReceivedMessage,
    ReconsumeLater,
    RequestTimeout,
    SendStatus,
    SimpleConsumer,
    SimpleConsumerSettings,
    TransactionProducer,
    TransactionState,
    WrongUse,
)
from skyrocket.config.sections import StoreConfig
from skyrocket.format.compression import CompressionType
from tests.client_steps import FIRST, everything, fresh, made
from tests.integration.client.servers import OURS, SERVER_PARAMETERS, apache_or_skip, registered
from tests.interop.rocketmq_broker import running_broker
from tests.interop.standalone import running_standalone
from tests.loops import run_bounded
from tests.waiting import until

PERSIST_SECONDS = 0.2
SEND_SECONDS = 0.005


@pytest.fixture(scope="module", params=SERVER_PARAMETERS)
def names(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    """The name server of a running cluster."""
    folder: Path = tmp_path_factory.mktemp("store")
    with contextlib.ExitStack() as stack:
        if request.param == OURS:
            yield stack.enter_context(running_standalone(folder)).name_server
            return
        apache = apache_or_skip(request.param)
        address = stack.enter_context(running_broker(apache, folder, StoreConfig())).name_server
        run_bounded(registered(address))
        yield address


async def test_every_way_to_send(names: str) -> None:
    topic, group = fresh("Sends"), fresh("Reader")
    await made(names, topic)
    async with Producer("Shop", names) as producer:
        receipt = await producer.send(Message(topic, b"single", tags="TagA", keys="k1", properties={"a": "b"}))
        assert receipt.status is SendStatus.SEND_OK
        assert receipt.queue.topic == topic
        ordered = [await producer.send(Message(topic, b"in order", sharding_key="order-1001")) for _ in range(3)]
        assert {each.queue.queue_id for each in ordered} == {3}
        chosen = await producer.send(Message(topic, b"chosen"), queue=MessageQueue(topic, receipt.queue.broker_name, 1))
        assert chosen.queue.queue_id == 1
        batch = await producer.send_batch([Message(topic, b"batch %d" % i, tags="TagB") for i in range(5)])
        assert [each.queue_offset - batch[0].queue_offset for each in batch] == [0, 1, 2, 3, 4]
        await producer.send_oneway(Message(topic, b"oneway"))
        pending = [await producer.enqueue(Message(topic, b"queued %d" % i)) for i in range(4)]
        assert len({(await each).message_id for each in pending}) == 4
    for kind in CompressionType:
        async with Producer("Shop", names, ProducerSettings(compress_type=kind)) as producer:
            await producer.send(Message(topic, b"large " * 2000 + kind.name.encode()))
    found = await everything(names, group, topic, 18)
    bodies = Counter(message.body for message in found)
    assert bodies[b"single"] == bodies[b"chosen"] == bodies[b"oneway"] == 1
    assert bodies[b"in order"] == 3
    assert sum(body.startswith(b"batch") for body in bodies) == 5
    assert sum(body.startswith(b"queued") for body in bodies) == 4
    assert sum(body.startswith(b"large") and len(body) > 12000 for body in bodies) == 3
    single = next(message for message in found if message.body == b"single")
    assert (single.tags, single.keys, single.properties["a"]) == ("TagA", ["k1"], "b")
    assert single.message_id == receipt.message_id
    assert single.offset_message_id == receipt.offset_message_id


@pytest.mark.parametrize("orderly", [pytest.param(False, id="concurrent"), pytest.param(True, id="orderly")])
async def test_push_consumers_get_everything_once_and_commit(names: str, orderly: bool) -> None:
    topic, group = fresh("Push"), fresh("Billing")
    await made(names, topic)
    got: list[tuple[int, int]] = []
    async with Producer("Shop", names) as producer, Admin(names) as admin:
        await asyncio.gather(*(producer.send(Message(topic, b"%d" % i)) for i in range(100)))
        consumer = PushConsumer(group, names, PushConsumerSettings(orderly=orderly, consume_from=FIRST))

        @consumer.on(topic)
        async def handle(message: ReceivedMessage) -> None:
            got.append((message.queue_id, message.queue_offset))

        async with consumer:
            await until(lambda: len(got) >= 100)
            await asyncio.gather(*(producer.send(Message(topic, b"%d" % i)) for i in range(100)))
            await until(lambda: len(got) >= 200)
        assert len(set(got)) == len(got) == 200
        if orderly:
            for queue_id in range(4):
                offsets = [offset for number, offset in got if number == queue_id]
                assert offsets == sorted(offsets)
        queues = await admin.queues(topic)
        assert sum([await admin.committed(group, queue) or 0 for queue in queues]) == 200


async def test_failed_messages_come_again_and_dead_letters_stay(names: str) -> None:
    topic, group = fresh("Retry"), fresh("Billing")
    await made(names, topic)
    seen: list[tuple[bytes, int, str]] = []
    async with Producer("Shop", names) as producer, Admin(names) as admin:
        consumer = PushConsumer(group, names, PushConsumerSettings(consume_from=FIRST))

        @consumer.on(topic)
        async def handle(message: ReceivedMessage) -> None:
            seen.append((message.body, message.reconsume_times, message.topic))
            if message.body == b"again" and message.reconsume_times == 0:
                raise ReconsumeLater(delay_level=1)
            if message.body == b"poison":
                raise DeadLetter

        async with consumer:
            for body in (b"again", b"good", b"poison"):
                await producer.send(Message(topic, body))
            await until(lambda: (b"again", 1, topic) in seen)
        assert Counter(body for body, _, _ in seen) == {b"again": 2, b"good": 1, b"poison": 1}
        for _ in range(100):
            with contextlib.suppress(NoRoute):
                dead = MessageQueue(f"%DLQ%{group}", (await admin.queues(topic))[0].broker_name, 0)
                if await admin.max_offset(dead) == 1:
                    break
            await asyncio.sleep(0.2)
        else:
            raise AssertionError("no dead letter")


async def test_tags_and_broadcasting(names: str, tmp_path: Path) -> None:
    topic = fresh("Tags")
    await made(names, topic)
    got: dict[str, Counter[str | None]] = {"cluster": Counter(), "one": Counter(), "two": Counter()}
    async with Producer("Shop", names) as producer:
        for tag in ("A", "B", "C") * 5:
            await producer.send(Message(topic, b"x", tags=tag))
        consumers = []
        for name in got:
            broadcast = name != "cluster"
            settings = PushConsumerSettings(
                consume_from=FIRST,
                message_model=MessageModel.BROADCASTING if broadcast else MessageModel.CLUSTERING,
                local_offsets=tmp_path / name,
            )
            consumer = PushConsumer(fresh(name), names, settings)
            consumer.subscribe(topic, lambda message, name=name: got[name].update([message.tags]), "A || C")
            consumers.append(consumer)
        async with contextlib.AsyncExitStack() as stack:
            for consumer in consumers:
                await stack.enter_async_context(consumer)
            await until(lambda: all(counts.total() >= 10 for counts in got.values()))
        assert all(counts == {"A": 5, "C": 5} for counts in got.values())


async def test_a_group_grows_from_one_to_three_and_shrinks_again_without_loss(names: str) -> None:
    topic, group = fresh("Share"), fresh("Billing")
    await made(names, topic, 8)
    got: Counter[bytes] = Counter()
    members: list[PushConsumer] = []
    sent = 0
    may_come_twice = 0

    async def handle(message: ReceivedMessage) -> None:
        got[message.body] += 1

    async def join() -> None:
        settings = PushConsumerSettings(consume_from=FIRST, persist_interval=PERSIST_SECONDS)
        consumer = PushConsumer(group, names, settings)
        consumer.subscribe(topic, handle)
        await consumer.start()
        members.append(consumer)

    async def change(*steps: Awaitable[None], share: list[int]) -> None:
        """What may be consumed twice: what came until the change was over, and what was not committed before it."""
        nonlocal may_come_twice
        before = sent
        for step in steps:
            await step
        await until(lambda: shares() == share)
        may_come_twice += sent - before + round(2 * PERSIST_SECONDS / SEND_SECONDS) + 100

    def shares() -> list[int]:
        return sorted(sum(queue.topic == topic for queue in member.assignment) for member in members)

    async with Producer("Shop", names) as producer:

        async def keep_sending() -> None:
            nonlocal sent
            while True:
                await producer.send(Message(topic, b"%d" % sent))
                sent += 1
                await asyncio.sleep(SEND_SECONDS)

        await join()
        sending = asyncio.create_task(keep_sending())
        await until(lambda: shares() == [8])
        await change(join(), join(), share=[2, 3, 3])
        await asyncio.sleep(0.5)
        await change(members.pop(0).stop(), share=[4, 4])
        await asyncio.sleep(0.5)
        await change(members.pop().stop(), share=[8])
        sending.cancel()
        await asyncio.gather(sending, return_exceptions=True)
        await until(lambda: {b"%d" % i for i in range(sent)} <= set(got))
        await members.pop().stop()
        got.pop(b"%d" % sent, None)  # was under way when sending ended
        assert set(got) == {b"%d" % i for i in range(sent)}
        assert max(got.values()) <= 5  # once, and once more for each of four changes
        assert got.total() - len(got) <= may_come_twice


async def test_lite_pull_seeks_and_commits(names: str) -> None:
    topic, group = fresh("Lite"), fresh("Report")
    await made(names, topic, 1)
    async with Producer("Shop", names) as producer:
        for i in range(20):
            await producer.send(Message(topic, b"%d" % i))
    settings = LitePullSettings(consume_from=FIRST, auto_commit=False)
    async with LitePullConsumer(group, names, settings) as reader:
        await reader.subscribe(topic)
        bodies: list[bytes] = []
        while len(bodies) < 20:
            bodies += [message.body for message in await reader.poll(10)]
        assert bodies == [b"%d" % i for i in range(20)]
        (queue,) = reader.assignment
        await reader.seek(queue, 15)
        assert (await reader.poll(10, max_messages=1))[0].body == b"15"
        await reader.commit()
        assert await reader.committed(queue) == 16
    async with Admin(names) as admin:
        assert await admin.committed(group, queue) == 16


async def test_queries_find_messages(names: str) -> None:
    topic = fresh("Query")
    await made(names, topic)
    async with Producer("Shop", names) as producer, Admin(names) as admin:
        receipts = [await producer.send(Message(topic, b"%d" % i, keys=[f"key{i}"])) for i in range(3)]
        for _ in range(100):
            if await admin.query_by_key(topic, "key1"):
                break
            await asyncio.sleep(0.1)
        assert [message.body for message in await admin.query_by_key(topic, "key1")] == [b"1"]
        assert (await admin.message(topic, receipts[2].message_id)).body == b"2"
        assert (await admin.message(topic, receipts[0].offset_message_id)).body == b"0"
        assert topic in await admin.topics()
        assert len(await admin.topic_offsets(topic)) == 4


async def test_offsets_are_reset_while_consuming(names: str) -> None:
    topic, group = fresh("Reset"), fresh("Billing")
    await made(names, topic, 1)
    got: Counter[bytes] = Counter()
    async with Producer("Shop", names) as producer, Admin(names) as admin:
        consumer = PushConsumer(group, names, PushConsumerSettings(consume_from=FIRST, persist_interval=0.1))
        consumer.subscribe(topic, lambda message: got.update([message.body]))
        async with consumer:
            for i in range(5):
                await producer.send(Message(topic, b"%d" % i))
            await until(lambda: got.total() >= 5)
            await asyncio.sleep(0.5)
            await admin.reset_offsets(group, topic, 0.0)
            await producer.send(Message(topic, b"new"))
            await until(lambda: all(got[b"%d" % i] >= 2 for i in range(5)) and got[b"new"] >= 1)


async def test_transactions_are_seen_when_committed(names: str) -> None:
    topic, group = fresh("Transactions"), fresh("Billing")
    await made(names, topic)
    got: list[bytes] = []
    producer = TransactionProducer(fresh("Shop"), names)
    producer.checker(lambda message: TransactionState.UNKNOWN)
    consumer = PushConsumer(group, names, PushConsumerSettings(consume_from=FIRST))
    consumer.subscribe(topic, lambda message: got.append(message.body))
    async with producer, consumer:
        async with producer.transaction(Message(topic, b"committed")) as transaction:
            assert len(transaction.transaction_id) == 32
            await asyncio.sleep(0.3)
            assert got == []
        async with producer.transaction(Message(topic, b"rolled back")) as transaction:
            transaction.roll_back()
        with pytest.raises(ValueError, match="local"):
            async with producer.transaction(Message(topic, b"open")):
                raise ValueError("local")
        async with producer.transaction(Message(topic, b"committed too")):
            pass
        await until(lambda: len(got) == 2)
        await asyncio.sleep(0.5)
    assert sorted(got) == [b"committed", b"committed too"]


async def test_a_request_gets_its_reply(names: str) -> None:
    topic, group = fresh("Requests"), fresh("Answering")
    await made(names, topic)
    async with Producer(fresh("Asking"), names) as producer, Producer(fresh("Replying"), names) as replier:
        consumer = PushConsumer(group, names, PushConsumerSettings(consume_from=FIRST))

        @consumer.on(topic)
        async def answer(message: ReceivedMessage) -> None:
            if message.body != b"silence":
                await replier.reply(message, b"re: " + message.body)

        async with consumer:
            await until(lambda: len(consumer.assignment) >= 4)
            reply = await producer.request(Message(topic, b"ping"), timeout=15)
            assert reply.body == b"re: ping"
            more = await asyncio.gather(*(producer.request(Message(topic, b"%d" % i), timeout=15) for i in range(10)))
            assert [each.body for each in more] == [b"re: %d" % i for i in range(10)]
            with pytest.raises(RequestTimeout, match=f"no reply to a message for topic {topic} within 300 ms"):
                await producer.request(Message(topic, b"silence"), timeout=0.3)
            with pytest.raises(WrongUse, match="asks for no reply: it was not sent with"):
                await replier.reply(reply, b"x")


async def test_delayed_messages_come_later(names: str) -> None:
    topic, group = fresh("Delayed"), fresh("Billing")
    await made(names, topic)
    got: dict[bytes, float] = {}
    consumer = PushConsumer(group, names, PushConsumerSettings(consume_from=FIRST))
    consumer.subscribe(topic, lambda message: got.setdefault(message.body, time.monotonic()) and None)
    async with Producer("Shop", names) as producer, consumer:
        sent = time.monotonic()
        await producer.send(Message(topic, b"in a second", delay_level=1))
        await producer.send(Message(topic, b"now"))
        await until(lambda: len(got) == 2)
    assert got[b"now"] - sent < got[b"in a second"] - sent
    assert got[b"in a second"] - sent >= 0.9


async def test_receive_acknowledge_hide_and_give_up(names: str, request: pytest.FixtureRequest) -> None:
    """Pop; 4.9 has none, and says so."""
    has_pop = request.node.callspec.params["names"] != "4.9.7"

    topic, group = fresh("Popped"), fresh("Simple")
    await made(names, topic)
    async with Admin(names) as admin:
        await admin.create_group(group)
    async with Producer("Shop", names) as producer:
        for i in range(6):
            await producer.send(Message(topic, b"%d" % i, tags="TagA" if i else "TagB"))
    settings = SimpleConsumerSettings(FIRST)
    async with SimpleConsumer(group, names, settings, subscription={topic: "TagA"}) as consumer:
        if not has_pop:
            with pytest.raises(PopNotOffered, match="use PushConsumer or LitePullConsumer"):
                await consumer.receive()
            return
        found: dict[bytes, PoppedMessage] = {}
        while len(found) < 5:
            batch = await consumer.receive(invisible_seconds=6)
            assert batch, f"only {sorted(found)} came"
            found.update({message.body: message for message in batch})
        assert sorted(found) == [b"%d" % i for i in range(1, 6)]
        await consumer.ack(found[b"1"])
        await consumer.ack(found[b"2"], found[b"3"])
        await consumer.to_dead_letters(found[b"4"], ValueError("nobody wants it"))
        await consumer.change_invisible(found[b"5"], 1)
        (again,) = await consumer.receive(wait_seconds=20)
        assert (again.body, again.topic, again.reconsume_times) == (b"5", topic, 1)
        with pytest.raises(ReceiptExpired):
            await consumer.ack(found[b"5"])
        await consumer.ack(again)
        assert await consumer.receive(wait_seconds=6) == []  # longer than the first were hidden
    reader = LitePullConsumer(fresh("Undertaker"), names, LitePullSettings(consume_from=FIRST))
    async with reader:
        await reader.subscribe(f"%DLQ%{group}")
        assert [message.body for message in await reader.poll(20)] == [b"4"]
