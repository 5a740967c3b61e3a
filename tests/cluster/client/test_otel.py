"""Spans as OpenTelemetry's own SDK records them."""

import asyncio
from collections.abc import Sequence
from pathlib import Path

import pytest
from opentelemetry import trace
from opentelemetry.sdk.trace import ReadableSpan, TracerProvider
from opentelemetry.sdk.trace.export import SimpleSpanProcessor
from opentelemetry.sdk.trace.export.in_memory_span_exporter import InMemorySpanExporter
from opentelemetry.trace import SpanKind, StatusCode

from skyrocket.client import (
    Message,
    Producer,
    ProducerSettings,
    PushConsumer,
    PushConsumerSettings,
    ReceivedMessage,
    ReconsumeLater,
    SendFailed,
    SendHook,
)
from skyrocket.client.tracing.otel import ConsumeSpans, SendSpans
from tests.cluster.servers import cluster
from tests.waiting import until

TOPIC = "Orders"


class Recorded:
    """A provider and what came of it."""

    def __init__(self) -> None:
        self.provider = TracerProvider()
        self._exporter = InMemorySpanExporter()
        self.provider.add_span_processor(SimpleSpanProcessor(self._exporter))

    def named(self, name: str) -> list[ReadableSpan]:
        return [span for span in self._exporter.get_finished_spans() if span.name == name]


def ids(spans: Sequence[ReadableSpan]) -> set[int]:
    return {span.context.span_id for span in spans if span.context is not None}


def linked(span: ReadableSpan) -> set[int]:
    return {link.context.span_id for link in span.links}


@pytest.mark.parametrize("is_plain", [False, True], ids=["coroutine", "function"])
async def test_a_trace_goes_from_the_sender_through_the_message_into_the_handler(
    tmp_path: Path, is_plain: bool
) -> None:
    recorded = Recorded()
    tracer = recorded.provider.get_tracer("application")
    got: list[ReceivedMessage] = []

    def note(message: ReceivedMessage) -> None:
        with tracer.start_as_current_span("inside"):
            got.append(message)

    async def note_async(message: ReceivedMessage) -> None:
        note(message)

    async with (
        cluster(tmp_path) as given,
        Producer("Shop", given.names, hooks=[SendSpans(recorded.provider)]) as producer,
    ):
        consumer = PushConsumer("Billing", given.names, hooks=[ConsumeSpans(recorded.provider)])
        consumer.subscribe(TOPIC, note if is_plain else note_async)
        with tracer.start_as_current_span("request") as request:
            message = Message(TOPIC, b"paid", tags="TagA", keys="o-1", properties={"a": "b"})
            receipt = await producer.send(message)
        assert message.properties == {"a": "b"}, "the application's message must not change"
        async with consumer:
            await until(lambda: bool(recorded.named(f"process {TOPIC}")))
    assert not trace.get_current_span().get_span_context().is_valid
    (create,), (send,) = recorded.named(f"create {TOPIC}"), recorded.named(f"send {TOPIC}")
    (process,), (inside,) = recorded.named(f"process {TOPIC}"), recorded.named("inside")
    assert create.parent is not None
    assert create.parent.span_id == request.get_span_context().span_id
    assert (create.kind, send.kind, process.kind) == (SpanKind.PRODUCER, SpanKind.CLIENT, SpanKind.CONSUMER)
    assert linked(send) == linked(process) == ids([create])
    assert process.parent is not None
    assert {process.parent.span_id} == ids([create])
    assert inside.parent is not None
    assert {inside.parent.span_id} == ids([process])
    assert got[0].properties["traceparent"].split("-")[1] == f"{request.get_span_context().trace_id:032x}"
    assert got[0].properties["a"] == "b"
    assert send.attributes is not None
    assert send.attributes["messaging.system"] == "rocketmq"
    assert send.attributes["messaging.destination.name"] == TOPIC
    assert send.attributes["messaging.message.id"] == receipt.message_id
    assert send.attributes["server.address"] == "127.0.0.1"
    assert process.attributes is not None
    assert process.attributes["messaging.operation.type"] == "process"
    assert process.attributes["messaging.consumer.group.name"] == "Billing"
    assert process.attributes["messaging.message.id"] == receipt.message_id
    assert process.attributes["messaging.message.body.size"] == 4
    assert process.attributes["messaging.rocketmq.message.tag"] == "TagA"
    assert process.attributes["messaging.rocketmq.message.keys"] == ("o-1",)


async def test_each_message_of_a_batch_has_a_context_and_requests_are_linked_to_them(tmp_path: Path) -> None:
    recorded = Recorded()
    settings = PushConsumerSettings(consume_message_batch_max_size=10)
    seen: list[int] = []

    async with (
        cluster(tmp_path) as given,
        Producer("Shop", given.names, hooks=[SendSpans(recorded.provider)]) as producer,
    ):
        consumer = PushConsumer("Billing", given.names, settings, hooks=[ConsumeSpans(recorded.provider)])

        @consumer.on(TOPIC, batch=True)
        async def handle(messages: list[ReceivedMessage]) -> None:
            seen.append(len(messages))

        await producer.send_batch([Message(TOPIC, b"%d" % i) for i in range(3)])
        async with consumer:
            await until(lambda: sum(seen) == 3)
        created = recorded.named(f"create {TOPIC}")
        (send,) = recorded.named(f"send {TOPIC}")
        assert len(created) == 3
        assert linked(send) == ids(created)
        assert send.attributes is not None
        assert send.attributes["messaging.batch.message_count"] == 3
        assert set().union(*map(linked, recorded.named(f"process {TOPIC}"))) == ids(created)
        await asyncio.gather(*[await producer.enqueue(Message(TOPIC, b"q")) for _ in range(2)])
        assert len(recorded.named(f"create {TOPIC}")) == 5


async def test_what_fails_is_marked_with_its_error(tmp_path: Path) -> None:
    recorded = Recorded()
    calls: list[int] = []

    async with cluster(tmp_path) as given:
        consumer = PushConsumer("Billing", given.names, hooks=[ConsumeSpans(recorded.provider)])

        @consumer.on(TOPIC)
        async def handle(message: ReceivedMessage) -> None:
            calls.append(message.reconsume_times)
            if message.body == b"boom":
                raise LookupError("no such order")
            raise ReconsumeLater

        hooks = [SendSpans(recorded.provider)]
        producer = Producer("Shop", given.names, ProducerSettings(retries=1, send_timeout=2), hooks=hooks)
        async with producer, consumer:
            await producer.send(Message(TOPIC, b"boom"))
            await producer.send(Message(TOPIC, b"later"))
            await until(lambda: len(recorded.named(f"process {TOPIC}")) >= 2)
            await consumer.stop()
            await given.stop_broker()
            with pytest.raises(SendFailed):
                await producer.send(Message(TOPIC, b"nobody is there"))
    failed = [span for span in recorded.named(f"send {TOPIC}") if span.status.status_code is StatusCode.ERROR]
    assert len(failed) == 2, "both attempts"
    kinds = {span.attributes["error.type"] for span in recorded.named(f"process {TOPIC}") if span.attributes}
    assert kinds == {"LookupError", "FAILED"}


async def test_a_hook_that_fails_to_prepare_does_not_keep_the_message_from_being_sent(tmp_path: Path) -> None:
    class Broken(SendHook):
        def prepare(self, group: str, message: Message) -> dict[str, str]:
            raise RuntimeError("no context today")

    async with cluster(tmp_path) as given, Producer("Shop", given.names, hooks=[Broken()]) as producer:
        assert (await producer.send(Message(TOPIC, b"x"))).is_durable
