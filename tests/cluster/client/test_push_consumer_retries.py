"""PushConsumer against real brokers: messages that fail, are late, or go nowhere."""

import asyncio
from pathlib import Path

import pytest

from skyrocket.broker.registration.feature import RegistrationFeature
from skyrocket.client.admin.admin import Admin
from skyrocket.client.consumer.handlers import ConsumeStatus, DeadLetter, ReconsumeLater
from skyrocket.client.consumer.push_consumer import PushConsumer
from skyrocket.client.consumer.push_consumer_settings import PushConsumerSettings
from skyrocket.client.consumer.send_back import SendBack
from skyrocket.client.consumer.start_position import MessageModel
from skyrocket.client.core.errors import WrongUse
from skyrocket.client.core.message import Message, ReceivedMessage, decode_messages
from skyrocket.client.core.settings import ClientSettings
from skyrocket.client.producer.producer import Producer
from skyrocket.protocol.codes import RequestCode
from tests.cluster.client.inside import instance_of
from tests.cluster.client.push_consumers import FIRST, GROUP, TOPIC, committed, seen_by_broker, send
from tests.cluster.servers import Cluster, cluster
from tests.waiting import until


@pytest.mark.requirement("A083", "C036", "C041", "C118")
async def test_what_fails_comes_again_and_is_then_committed(tmp_path: Path) -> None:
    seen: list[tuple[bytes, int, str]] = []
    ids: dict[bytes, set[str]] = {}
    async with cluster(tmp_path) as given, Producer("Shop", given.names) as producer:
        await send(producer, 5)
        consumer = PushConsumer(GROUP, given.names)

        @consumer.on(TOPIC)
        async def handle(message: ReceivedMessage) -> ConsumeStatus | None:
            seen.append((message.body, message.reconsume_times, message.topic))
            ids.setdefault(message.body, set()).add(message.message_id)
            if message.reconsume_times == 0 and message.body == b"3":
                raise ReconsumeLater(delay_level=1)
            return ConsumeStatus.CONSUME_SUCCESS

        async with consumer:
            await until(lambda: len(seen) >= 6)
        assert seen[-1] == (b"3", 1, TOPIC)
        assert all(len(same) == 1 for same in ids.values())
        assert committed(given) == 5
        assert committed(given, topic=f"%RETRY%{GROUP}") == 1


@pytest.mark.requirement("C036", "C123")
@pytest.mark.parametrize("orderly", [False, True])
async def test_what_fails_for_good_goes_to_the_dead_letters(tmp_path: Path, orderly: bool) -> None:
    got: list[bytes] = []
    async with cluster(tmp_path) as given, Producer("Shop", given.names) as producer:
        await send(producer, 3)
        consumer = PushConsumer(GROUP, given.names, PushConsumerSettings(orderly=orderly))

        @consumer.on(TOPIC)
        async def handle(message: ReceivedMessage) -> None:
            got.append(message.body)
            if message.body == b"1":
                raise DeadLetter("poison")

        async with consumer:
            await until(lambda: len(got) >= 3)
            await until(lambda: given.brokers["broker-a"].tables.topics.find(f"%DLQ%{GROUP}") is not None)
        assert sorted(got) == [b"0", b"1", b"2"]
        assert committed(given) == 3
        assert given.brokers["broker-a"].store.max_offset(f"%DLQ%{GROUP}", 0) == 1


async def test_in_order_too_many_failures_end_in_the_dead_letters(tmp_path: Path) -> None:
    got: list[bytes] = []
    async with cluster(tmp_path) as given, Producer("Shop", given.names) as producer:
        for i in range(3):
            await producer.send(Message(TOPIC, b"%d" % i, sharding_key="k"))
        settings = PushConsumerSettings(orderly=True, suspend_current_queue=0.01, max_reconsume_times=2)
        consumer = PushConsumer(GROUP, given.names, settings)

        @consumer.on(TOPIC)
        async def handle(message: ReceivedMessage) -> None:
            got.append(message.body)
            if message.body == b"1":
                raise ValueError("never")

        async with consumer:
            await until(lambda: b"2" in got)
            await until(lambda: given.brokers["broker-a"].store.max_offset(f"%DLQ%{GROUP}", 0) == 1)
        assert got == [b"0", b"1", b"1", b"1", b"2"]


@pytest.mark.requirement("C013", "C117")
async def test_batches_are_handed_over_as_lists_and_may_fail_from_the_middle(tmp_path: Path) -> None:
    pieces: list[list[bytes]] = []
    async with cluster(tmp_path) as given, Producer("Shop", given.names) as producer:
        for i in range(10):
            await producer.send(Message(TOPIC, b"%d" % i, sharding_key="k"))
        settings = PushConsumerSettings(consume_message_batch_max_size=4, max_concurrency=1)
        consumer = PushConsumer(GROUP, given.names, settings)

        @consumer.on(TOPIC, batch=True)
        async def handle(messages: list[ReceivedMessage]) -> None:
            pieces.append([message.body for message in messages])
            if len(pieces) == 1:
                raise ReconsumeLater(first_failed=3, delay_level=1)

        async with consumer:
            await until(lambda: sum(map(len, pieces)) >= 11)
        assert [len(piece) for piece in pieces] == [4, 4, 2, 1]
        assert pieces[3] == [b"3"]
        assert committed(given) == 10


@pytest.mark.requirement("A078", "B041", "C118", "C127")
async def test_one_slow_message_holds_back_the_committed_offset(tmp_path: Path) -> None:
    done: list[int] = []
    release = asyncio.Event()
    async with cluster(tmp_path) as given, Producer("Shop", given.names) as producer:
        for i in range(10):
            await producer.send(Message(TOPIC, b"%d" % i, sharding_key="order-1001"))
        consumer = PushConsumer(GROUP, given.names, PushConsumerSettings(persist_interval=0.02))

        @consumer.on(TOPIC)
        async def handle(message: ReceivedMessage) -> None:
            if message.queue_offset == 4:
                await release.wait()
            done.append(message.queue_offset)

        async with consumer:
            await until(lambda: len(done) == 9)
            await until(lambda: committed(given) == 4)
            release.set()
            await until(lambda: committed(given) == 10)


@pytest.mark.requirement("C127")
async def test_what_is_finished_is_committed_without_another_pull(tmp_path: Path) -> None:
    began, release = asyncio.Event(), asyncio.Event()
    async with cluster(tmp_path) as given, Producer("Shop", given.names) as producer:
        await send(producer, 1)
        consumer = PushConsumer(GROUP, given.names, PushConsumerSettings(persist_interval=0.05))

        @consumer.on(TOPIC)
        async def handle(message: ReceivedMessage) -> None:
            consumer.pause()  # pulls carry offsets, too
            began.set()
            await release.wait()

        async with consumer:
            await began.wait()
            release.set()
            await until(lambda: committed(given) == 1)


@pytest.mark.requirement("C042")
async def test_broadcasting_drops_what_fails(tmp_path: Path) -> None:
    got: list[bytes] = []
    async with cluster(tmp_path) as given, Producer("Shop", given.names) as producer:
        settings = PushConsumerSettings(
            message_model=MessageModel.BROADCASTING, consume_from=FIRST, local_offsets=tmp_path / "offsets"
        )
        await send(producer, 3)
        sent_back = seen_by_broker(given, RequestCode.CONSUMER_SEND_MSG_BACK)
        consumer = PushConsumer(GROUP, given.names, settings)

        @consumer.on(TOPIC)
        async def handle(message: ReceivedMessage) -> None:
            got.append(message.body)
            raise ValueError("nobody will see it again")

        async with consumer:
            await until(lambda: len(got) == 3)
            await until(lambda: sum(consumer.offsets_of(TOPIC).values()) == 3)
            broker = given.brokers["broker-a"]
            # Neither sent back nor sent again: nothing is in the retry topic, and nothing waits for its level.
            assert broker.store.max_offset(f"%RETRY%{GROUP}", 0) == 0
            assert [broker.store.max_offset("SCHEDULE_TOPIC_XXXX", level) for level in range(18)] == [0] * 18
            assert (sent_back, committed(given), len(got)) == ([], 0, 3)


@pytest.mark.requirement("C125", "C074")
async def test_a_message_that_the_broker_does_not_take_back_is_sent_to_the_retry_topic(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    async def refused(*_: object) -> None:
        raise WrongUse("not taken back")

    monkeypatch.setattr(SendBack, "_to_broker", refused)
    async with cluster(tmp_path) as given, Producer("Shop", given.names) as producer:
        await send(producer, 1)
        consumer = PushConsumer(GROUP, given.names, PushConsumerSettings(max_reconsume_times=3))

        @consumer.on(TOPIC)
        async def handle(message: ReceivedMessage) -> None:
            raise ValueError("once more")

        async with consumer:
            waiting = given.brokers["broker-a"].store
            await until(lambda: waiting.max_offset("SCHEDULE_TOPIC_XXXX", 2) == 1)  # level 3
            await until(lambda: sum(consumer.offsets_of(TOPIC).values()) == 1)
        (record,) = decode_messages(b"".join(waiting.get("SCHEDULE_TOPIC_XXXX", 2, 0, 1).slices), "broker-a")
        assert record.properties["REAL_TOPIC"] == f"%RETRY%{GROUP}"
        assert record.properties["RETRY_TOPIC"] == TOPIC
        assert record.reconsume_times == 1
        assert record.properties["ORIGIN_MESSAGE_ID"] == record.message_id


async def test_a_message_that_can_go_nowhere_stays_in_hand(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    async def fails(*_: object) -> bool:
        return False

    calls = 0
    monkeypatch.setattr(SendBack, "send", fails)
    monkeypatch.setattr("skyrocket.client.consumer.concurrent_consumption.RESUBMIT_SECONDS", 0.05)
    async with cluster(tmp_path) as given, Producer("Shop", given.names) as producer:
        await send(producer, 1)
        consumer = PushConsumer(GROUP, given.names)

        @consumer.on(TOPIC)
        async def handle(message: ReceivedMessage) -> None:
            nonlocal calls
            calls += 1
            assert message.reconsume_times == calls - 1
            if calls < 3:
                raise ValueError("once more")

        async with consumer:
            await until(lambda: calls == 3)
        assert committed(given) == 1


@pytest.mark.requirement("C116")
async def test_a_handler_that_takes_too_long_does_not_hold_back_its_queue(tmp_path: Path) -> None:
    release = asyncio.Event()
    async with cluster(tmp_path) as given, Producer("Shop", given.names) as producer:
        await send(producer, 1)
        settings = PushConsumerSettings(consume_timeout=0.1, persist_interval=0.05)
        consumer = PushConsumer(GROUP, given.names, settings)

        @consumer.on(TOPIC)
        async def handle(message: ReceivedMessage) -> None:
            await release.wait()

        async with consumer:
            await until(lambda: given.brokers["broker-a"].store.max_offset("SCHEDULE_TOPIC_XXXX", 2) == 1)
            release.set()
            await until(lambda: committed(given) == 1)


@pytest.mark.requirement("C106")
async def test_only_a_group_that_shares_messages_has_a_retry_topic(tmp_path: Path) -> None:
    async with cluster(tmp_path) as given, Producer("Shop", given.names) as producer:
        await send(producer, 1)
        for model, topics in (("CLUSTERING", {TOPIC, f"%RETRY%{GROUP}"}), ("BROADCASTING", {TOPIC})):
            settings = PushConsumerSettings(MessageModel(model), local_offsets=tmp_path / "offsets")
            consumer = PushConsumer(GROUP, given.names, settings)
            consumer.subscribe(TOPIC, lambda message: None)
            async with consumer, Admin(given.names) as admin:
                await until(lambda consumer=consumer: len(consumer.assignment) >= 4)  # type: ignore[misc]
                info = await admin.running_info(GROUP, instance_of(consumer).client_id)
                assert {each.topic for each in info.subscriptions} == topics


@pytest.mark.requirement("C043")
async def test_what_failed_at_one_member_may_come_again_at_another(tmp_path: Path) -> None:
    first: dict[bytes, str] = {}
    again: dict[bytes, str] = {}

    def member(given: Cluster, name: str) -> PushConsumer:
        client = ClientSettings(given.names, instance_name=name)
        consumer = PushConsumer(GROUP, client=client, settings=PushConsumerSettings(consume_from=FIRST))

        @consumer.on(TOPIC)
        async def handle(message: ReceivedMessage) -> None:
            (again if message.reconsume_times else first)[message.body] = name
            if not message.reconsume_times:
                raise ReconsumeLater(delay_level=1)

        return consumer

    async with cluster(tmp_path) as given, Producer("Shop", given.names) as producer:
        given.brokers["broker-a"].tables.topics.ensure(TOPIC, 4)
        await given.brokers["broker-a"].feature(RegistrationFeature).registration.register()
        async with member(given, "one") as one, member(given, "two") as two:
            await until(lambda: all(sum(q.topic == TOPIC for q in m.assignment) == 2 for m in (one, two)))
            for number, queue in enumerate(await producer.queues(TOPIC)):
                await producer.send(Message(TOPIC, b"%d" % number), queue=queue)
            await until(lambda: len(again) == 4)
        assert set(first.values()) == {"one", "two"}
        assert len(set(again.values())) == 1  # the retry topic has one queue
