"""OpenTelemetry spans of what is sent and handled; needs the extra `skyrocket[otel]`.

    Producer("Shop", hooks=[SendSpans()])            PushConsumer("Billing", hooks=[ConsumeSpans()])

    create Orders   PRODUCER   one per message; its context travels in the message's properties (traceparent, as
        │                      RocketMQ's Java instrumentation writes it)
        ├─▶ send Orders      CLIENT     one per request to a broker, retries included; linked to what it carries
        └─▶ process Orders   CONSUMER   around the handler: child of the message's context; a list of messages is linked

Names and attributes are those of OpenTelemetry's semantic conventions for messaging.
"""

from collections.abc import Mapping, Sequence
from typing import Any, Final

from skyrocket.client.core.hooks import ConsumeContext, ConsumeHook, SendContext, SendHook
from skyrocket.client.core.message import Message, ReceivedMessage

try:
    from opentelemetry import context as otel_context
    from opentelemetry import propagate, trace
    from opentelemetry.context import Context
    from opentelemetry.trace import Link, Span, SpanKind, Status, StatusCode, TracerProvider
except ImportError as missing:
    raise ImportError("skyrocket.client.tracing.otel needs OpenTelemetry: pip install 'skyrocket[otel]'") from missing

_SPAN: Final = "skyrocket.span"
_TOKEN: Final = "skyrocket.token"
_SYSTEM: Final = "rocketmq"


class SendSpans(SendHook):
    """For producers; without a provider the global one counts."""

    def __init__(self, provider: TracerProvider | None = None) -> None:
        self._tracer = trace.get_tracer("skyrocket", tracer_provider=provider)

    def prepare(self, group: str, message: Message) -> Mapping[str, str]:
        """Create the message's context, below the current span."""
        attributes = _operation("create", "create", message.topic) | _of_message(message)
        span = self._tracer.start_span(f"create {message.topic}", kind=SpanKind.PRODUCER, attributes=attributes)
        carrier: dict[str, str] = {}
        propagate.inject(carrier, trace.set_span_in_context(span))
        span.end()
        return carrier

    def before_send(self, context: SendContext) -> None:
        """An attempt begins."""
        attributes = _operation("send", "send", context.message.topic)
        attributes["messaging.destination.partition.id"] = _partition(context.queue.broker_name, context.queue.queue_id)
        host, _, port = context.address.rpartition(":")
        attributes["server.address"] = host
        attributes["server.port"] = int(port)
        if context.count > 1:
            attributes["messaging.batch.message_count"] = context.count
        else:
            attributes |= _of_message(context.message)
            attributes["messaging.message.id"] = context.message_id
        context.extra[_SPAN] = self._tracer.start_span(
            f"send {context.message.topic}",
            kind=SpanKind.CLIENT,
            attributes=attributes,
            links=_links([each.properties for each in context.members or (context.message,)]),
        )

    def after_send(self, context: SendContext) -> None:
        """It has ended."""
        span: Span = context.extra.pop(_SPAN)
        if context.error is not None:
            _failed(span, context.error)
        span.end()


class ConsumeSpans(ConsumeHook):
    """For push consumers; the span is the current one while the handler runs, also in its thread."""

    def __init__(self, provider: TracerProvider | None = None) -> None:
        self._tracer = trace.get_tracer("skyrocket", tracer_provider=provider)

    def before_consume(self, context: ConsumeContext) -> None:
        """The handler is about to be called."""
        first = context.messages[0]
        attributes = _operation("process", "process", first.topic)
        attributes["messaging.consumer.group.name"] = context.group
        attributes["messaging.destination.partition.id"] = _partition(first.broker_name, first.queue_id)
        parent: Context | None = None
        if len(context.messages) == 1:
            attributes |= _of_message(first)
            attributes["messaging.message.id"] = first.message_id
            parent = propagate.extract(first.properties)
        else:
            attributes["messaging.batch.message_count"] = len(context.messages)
        span = self._tracer.start_span(
            f"process {first.topic}",
            parent,
            kind=SpanKind.CONSUMER,
            attributes=attributes,
            links=_links([message.properties for message in context.messages]),
        )
        context.extra[_SPAN] = span
        context.extra[_TOKEN] = otel_context.attach(trace.set_span_in_context(span))

    def after_consume(self, context: ConsumeContext) -> None:
        """It has returned or raised."""
        span: Span = context.extra.pop(_SPAN)
        otel_context.detach(context.extra.pop(_TOKEN))
        if context.error is not None:
            _failed(span, context.error)
        elif not context.succeeded:
            span.set_status(Status(StatusCode.ERROR, context.status))
            span.set_attribute("error.type", context.status)
        span.end()


def _operation(name: str, kind: str, topic: str) -> dict[str, Any]:
    return {
        "messaging.system": _SYSTEM,
        "messaging.operation.name": name,
        "messaging.operation.type": kind,
        "messaging.destination.name": topic,
    }


def _of_message(message: Message | ReceivedMessage) -> dict[str, Any]:
    attributes: dict[str, Any] = {"messaging.message.body.size": len(message.body)}
    if message.tags:
        attributes["messaging.rocketmq.message.tag"] = message.tags
    keys = message.keys.split() if isinstance(message.keys, str) else list(message.keys)
    if keys:
        attributes["messaging.rocketmq.message.keys"] = keys
    if message.sharding_key is not None:
        attributes["messaging.rocketmq.message.group"] = message.sharding_key
    return attributes


def _partition(broker_name: str, queue_id: int) -> str:
    return f"{broker_name}:{queue_id}"


def _links(carriers: Sequence[Mapping[str, str]]) -> list[Link]:
    contexts = (
        trace.get_current_span(propagate.extract(carrier, Context())).get_span_context() for carrier in carriers
    )
    return [Link(context) for context in contexts if context.is_valid]


def _failed(span: Span, error: Exception) -> None:
    span.record_exception(error)
    span.set_status(Status(StatusCode.ERROR, str(error)))
    span.set_attribute("error.type", type(error).__qualname__)
