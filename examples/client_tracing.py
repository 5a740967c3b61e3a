"""One trace from a request over a message into its handler. Run: python examples/client_tracing.py

Spans are printed here; an application would export them. Without OpenTelemetry's SDK nothing is run.
"""

import asyncio
import logging
import sys

from local_server import name_server

from skyrocket import Message, Producer, PushConsumer, ReceivedMessage

log = logging.getLogger("example")

try:
    from opentelemetry.sdk.trace import ReadableSpan, TracerProvider
    from opentelemetry.sdk.trace.export import SimpleSpanProcessor
    from opentelemetry.sdk.trace.export.in_memory_span_exporter import InMemorySpanExporter

    from skyrocket.client.tracing.otel import ConsumeSpans, SendSpans
except ImportError as missing:
    sys.stderr.write(f"skipped: this example needs opentelemetry-sdk ({missing})\n")
    raise SystemExit(0) from None


def shown(span: ReadableSpan) -> str:
    assert span.context is not None
    return f"{span.name:16} {span.kind.name:8} trace {span.context.trace_id:032x}"


async def main(names: str) -> None:
    spans = InMemorySpanExporter()
    provider = TracerProvider()  # an application sets a global one, and gives the hooks none
    provider.add_span_processor(SimpleSpanProcessor(spans))
    done = asyncio.Event()
    consumer = PushConsumer("Billing", names, hooks=[ConsumeSpans(provider)])

    @consumer.on("Orders")
    async def order(message: ReceivedMessage) -> None:
        done.set()

    async with Producer("Shop", names, hooks=[SendSpans(provider)]) as producer:
        with provider.get_tracer("shop").start_as_current_span("request"):
            await producer.send(Message("Orders", b"paid"))
        async with consumer:
            await asyncio.wait_for(done.wait(), 30)
    finished = spans.get_finished_spans()
    for span in finished:
        log.info("%s", shown(span))
    assert len({span.context.trace_id for span in finished if span.context is not None}) == 1


if __name__ == "__main__":
    logging.basicConfig(level=logging.INFO, format="%(message)s")
    with name_server() as address:
        asyncio.run(main(address))
