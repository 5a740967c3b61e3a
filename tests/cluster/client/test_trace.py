"""Traces of our own clients, as Admin reads them from a real broker."""

from pathlib import Path

import pytest
from hypothesis import given as for_all
from hypothesis import strategies as st

from skyrocket.client.admin.admin import Admin
from skyrocket.client.consumer.handlers import ReconsumeLater
from skyrocket.client.consumer.lite_pull_consumer import LitePullConsumer
from skyrocket.client.consumer.lite_pull_settings import LitePullSettings
from skyrocket.client.consumer.push_consumer import PushConsumer
from skyrocket.client.consumer.push_consumer_settings import PushConsumerSettings
from skyrocket.client.consumer.start_position import ConsumeFromWhere
from skyrocket.client.core.errors import IllegalName, NoRoute
from skyrocket.client.core.message import Message, ReceivedMessage
from skyrocket.client.core.settings import ClientSettings
from skyrocket.client.producer.producer import Producer
from skyrocket.client.producer.transaction import TransactionProducer, TransactionState
from skyrocket.client.tracing.optional_tracer import TRACE_TOPIC
from skyrocket.client.tracing.trace_dispatcher import packed
from skyrocket.config.sections import BrokerConfig
from skyrocket.format.trace import (
    CallBegan,
    CallEnded,
    CallOutcome,
    Recalled,
    SendKind,
    Sent,
    TransactionEnded,
    decode_trace,
)
from tests.client_steps import told
from tests.cluster.servers import cluster
from tests.waiting import until

TOPIC, GROUP = "Orders", "Billing"
TRACED = BrokerConfig(trace_topic_enable=True)
FROM_FIRST = PushConsumerSettings(consume_from=ConsumeFromWhere.CONSUME_FROM_FIRST_OFFSET)


@pytest.mark.requirement("B008")
async def test_a_message_is_traced_from_its_producer_to_its_consumer(tmp_path: Path) -> None:
    async with cluster(tmp_path, config=TRACED) as given, Admin(given.names) as admin:
        assert (await admin.topic_config(TRACE_TOPIC)).write_queues == 1
        client = ClientSettings(given.names, namespace="ns", trace=True)
        consumer = PushConsumer(GROUP, settings=FROM_FIRST, client=client)

        @consumer.on(TOPIC)
        async def handle(message: ReceivedMessage) -> None:
            if message.body == b"broken":
                raise ValueError("not today")
            if not message.reconsume_times:
                raise ReconsumeLater(delay_level=1)

        async with Producer("Shop", client=client) as producer, consumer:
            receipt = await producer.send(Message(TOPIC, b"paid", tags="A", keys=["o-1", "o-2"]))
            sent, began, failed, again, succeeded = await told(admin, receipt.message_id, 5)
            assert isinstance(sent, Sent)
            assert sent.timestamp <= (began.timestamp or 0)
            assert (sent.region, sent.group, sent.topic) == ("DefaultRegion", "Shop", TOPIC)
            assert (sent.tags, sent.keys, sent.body_length) == ("A", "o-1 o-2", 4)
            assert (sent.kind, sent.succeeded) == (SendKind.NORMAL, True)
            assert sent.store_host == str(given.brokers["broker-a"].identity.address)
            assert sent.offset_message_id == receipt.offset_message_id
            assert sent.client_host == "127.0.0.1"
            assert isinstance(began, CallBegan)
            assert isinstance(again, CallBegan)
            assert isinstance(failed, CallEnded)
            assert isinstance(succeeded, CallEnded)
            assert (began.group, began.retry_times, again.retry_times) == (GROUP, 0, 1)
            assert (failed.request_id, failed.outcome, failed.succeeded) == (
                began.request_id,
                CallOutcome.FAILED,
                False,
            )
            assert (succeeded.request_id, succeeded.outcome, succeeded.succeeded) == (
                again.request_id,
                CallOutcome.SUCCESS,
                True,
            )
            assert await admin.trace("o-2") == []  # a key is no id
            broken = await producer.send(Message(TOPIC, b"broken"))
            _, _, raised = await told(admin, broken.message_id, 3)
            assert isinstance(raised, CallEnded)
            assert raised.outcome is CallOutcome.EXCEPTION
            assert (producer.dropped_traces, consumer.dropped_traces) == (0, 0)


async def test_every_message_of_a_batch_is_traced_and_all_is_told_before_the_end(tmp_path: Path) -> None:
    async with cluster(tmp_path, config=TRACED) as given, Admin(given.names) as admin:
        client = ClientSettings(given.names, trace=True)
        async with Producer("Shop", client=client) as producer:
            together = await producer.send_batch([Message(TOPIC, b"%d" % i, keys=f"k{i}") for i in range(3)])
            pending = [await producer.enqueue(Message(TOPIC, b"later", tags=f"t{i}")) for i in range(2)]
            automatic = [await one for one in pending]
        got: list[bytes] = []
        consumer = PushConsumer(GROUP, settings=FROM_FIRST, client=client)
        consumer.subscribe(TOPIC, lambda message: got.append(message.body))
        async with consumer:
            await until(lambda: len(got) == 5)
        for number, receipt in enumerate(together):
            sent, began, ended = await admin.trace(receipt.message_id)
            assert isinstance(began, CallBegan)
            assert isinstance(ended, CallEnded)
            assert (began.region, began.keys) == ("DefaultRegion", f"k{number}")
            assert isinstance(sent, Sent)
            assert (sent.keys, sent.offset_message_id) == (f"k{number}", receipt.offset_message_id)
        for number, receipt in enumerate(automatic):
            sent, _, _ = await admin.trace(receipt.message_id)
            assert isinstance(sent, Sent)
            assert (sent.tags, sent.body_length) == (f"t{number}", 5)


async def test_transactions_recalls_and_delays_are_traced(tmp_path: Path) -> None:
    config = BrokerConfig(
        trace_topic_enable=True,
        recall=True,
        transaction_timeout_ms=200,
        transaction_check_interval_ms=200,
    )
    async with cluster(tmp_path, config=config) as given, Admin(given.names) as admin:
        producer = TransactionProducer("Shop", client=ClientSettings(given.names, trace=True))
        producer.checker(lambda message: TransactionState.ROLLBACK)
        async with producer:
            async with producer.transaction(Message(TOPIC, b"half", keys="o-1")) as committed:
                pass
            async with producer.transaction(Message(TOPIC, b"open", tags="A")) as opened:
                opened.leave_open()
            half, end = await told(admin, committed.transaction_id, 2)
            assert isinstance(half, Sent)
            assert isinstance(end, TransactionEnded)
            assert (half.kind, half.topic) == (SendKind.HALF, TOPIC)
            assert (end.state, end.from_check, end.topic, end.keys) == ("COMMIT_MESSAGE", False, TOPIC, "o-1")
            _, left, checked = await told(admin, opened.transaction_id, 3)
            assert isinstance(left, TransactionEnded)
            assert isinstance(checked, TransactionEnded)
            assert (left.state, left.from_check) == ("UNKNOW", False)
            assert (checked.state, checked.from_check, checked.topic) == ("ROLLBACK_MESSAGE", True, TOPIC)
            assert (checked.region, checked.tags) == ("DefaultRegion", "A")
            delayed = await producer.send(Message(TOPIC, b"later", delay=60))
            assert delayed.recall_handle is not None
            await producer.recall(TOPIC, delayed.recall_handle)
            waits, recalled = await told(admin, delayed.message_id, 2)
            assert isinstance(waits, Sent)
            assert waits.kind is SendKind.DELAY
            assert isinstance(recalled, Recalled)
            assert (recalled.topic, recalled.group, recalled.succeeded) == (TOPIC, "Shop", True)


async def test_a_topic_of_ones_own_takes_the_traces_of_a_polling_consumer(tmp_path: Path) -> None:
    async with cluster(tmp_path) as given, Admin(given.names) as admin:
        client = ClientSettings(given.names, trace="Footprints")
        async with Producer("Shop", client=client) as producer:
            receipt = await producer.send(Message(TOPIC, b"paid"))
            footprint = await producer.send(Message("Footprints", b"of ours"))  # never traced
            settings = LitePullSettings(consume_from=ConsumeFromWhere.CONSUME_FROM_FIRST_OFFSET)
            async with LitePullConsumer(GROUP, settings=settings, client=client) as consumer:
                await consumer.subscribe(TOPIC)
                while not await consumer.poll(1.0):
                    pass
        events = await told(admin, receipt.message_id, 3, "Footprints")
        assert [type(event) for event in events] == [Sent, CallBegan, CallEnded]
        assert await admin.trace(footprint.message_id, topic="Footprints") == []
        with pytest.raises(NoRoute, match=TRACE_TOPIC):
            await admin.trace(receipt.message_id)


async def test_a_broker_can_switch_traces_off(tmp_path: Path) -> None:
    config = BrokerConfig(trace_topic_enable=True, trace_on=False)
    got: list[bytes] = []
    async with cluster(tmp_path, config=config) as given, Admin(given.names) as admin:
        client = ClientSettings(given.names, trace=True)
        consumer = PushConsumer(GROUP, settings=FROM_FIRST, client=client)
        consumer.subscribe(TOPIC, lambda message: got.append(message.body))
        async with Producer("Shop", client=client) as producer, consumer:
            receipt = await producer.send(Message(TOPIC, b"paid"))
            await until(lambda: got == [b"paid"])
        assert receipt.trace_on is False
        assert sum(each.max_offset for each in (await admin.topic_offsets(TRACE_TOPIC)).values()) == 0


async def test_an_application_does_not_notice_that_traces_cannot_be_sent(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    config = BrokerConfig(auto_create_topic=False)
    async with cluster(tmp_path, config=config) as given, Admin(given.names) as admin:
        await admin.create_topic(TOPIC, 2)
        client = ClientSettings(given.names, trace=True)
        async with Producer("Shop", client=client) as producer:
            for _ in range(30):
                await producer.send(Message(TOPIC, b"paid"))
            await until(lambda: producer.dropped_traces > 0)
        assert producer.dropped_traces == 30
    lines = [record for record in caplog.records if "traces are dropped" in record.getMessage()]
    assert 1 <= len(lines) <= 2  # not one for each
    assert "no route for topic RMQ_SYS_TRACE_TOPIC" in lines[0].getMessage()


async def test_what_does_not_fit_into_the_queue_is_dropped_at_once(tmp_path: Path) -> None:
    async with cluster(tmp_path, config=TRACED) as given:
        async with Producer("Shop", client=ClientSettings(given.names, trace=True)) as producer:
            tracer = producer._tracer
            assert tracer is not None
            for number in range(2050):  # nothing else runs meanwhile
                tracer.recalled(TOPIC, f"id-{number}", "R")
            assert producer.dropped_traces == 2
        assert producer.dropped_traces == 2  # the others were told before the end
        tracer.recalled(TOPIC, "late", "R")
        assert producer.dropped_traces == 3


names = st.text("abc ü", max_size=12)


@for_all(
    st.lists(st.builds(CallBegan, st.just(1), st.just("R"), st.just("G"), names, names, st.just(0), names)),
    st.integers(1, 200),
    st.integers(1, 60),
)
def test_no_event_is_lost_or_moved_when_traces_are_cut_into_messages(
    events: list[CallBegan], max_body: int, max_keys: int
) -> None:
    parts = list(packed(events, max_body, max_keys))
    assert [event for body, _, _ in parts for event in decode_trace(body)] == events
    for body, keys, count in parts:
        inside = decode_trace(body)
        assert len(inside) == count
        assert count == 1 or len(" ".join(keys).encode()) <= max_keys
        assert count == 1 or len(body.decode()) <= max_body
        assert {event.message_id for event in inside} <= set(keys)


def test_a_trace_topic_with_an_impossible_name_is_refused_at_once() -> None:
    with pytest.raises(IllegalName, match="topic 'my traces' contains ' '"):
        ClientSettings("127.0.0.1:9876", trace="my traces")
