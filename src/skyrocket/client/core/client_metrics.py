"""Prometheus metrics of a client, as middleware: use the same object for all producers and consumers of a process.

    metrics = ClientMetrics()
    consumer.use(metrics)
    producer.use(metrics)
    text = metrics.page()          # for your own HTTP server; `skyrocket worker --port` serves it

Counters only grow, so rates and means are a matter of the query:
    rate(skyrocket_client_handler_seconds_total[5m]) / rate(skyrocket_client_handler_calls_total[5m])
"""

import time
from collections import Counter, defaultdict
from collections.abc import Callable, Iterable, Mapping
from typing import Any, Protocol, TypeVar

from skyrocket.client.core.hooks import ConsumeContext
from skyrocket.client.core.middleware import Middleware, Proceed, Sending
from skyrocket.observability.exposition import Kind, Metric, render
from skyrocket.observability.histogram import CLIENT_BOUNDS, Histogram

Key = TypeVar("Key", bound=tuple[str, ...])


class Observed(Protocol):
    """A consumer whose queues are told of."""

    group: str

    def in_hand(self) -> dict[str, tuple[int, int]]: ...


class ClientMetrics(Middleware):
    """Counts calls of handlers and sends, by topic and result."""

    def __init__(self, monotonic: Callable[[], float] = time.monotonic) -> None:
        self._monotonic = monotonic
        self._calls: Counter[tuple[str, str, str, str]] = Counter()
        self._messages: Counter[tuple[str, str, str, str]] = Counter()
        self._call_seconds: defaultdict[tuple[str, str, str], float] = defaultdict(float)
        self._running: Counter[tuple[str, str, str]] = Counter()
        self._sends: Counter[tuple[str, str, str]] = Counter()
        self._send_seconds: defaultdict[tuple[str, str], float] = defaultdict(float)
        self._handler_latency: dict[tuple[str, str, str], Histogram] = {}
        self._send_latency: dict[tuple[str, str], Histogram] = {}
        self._consumers: list[Observed] = []

    def observe(self, consumer: Observed) -> None:
        """Tell also how many queues and messages this consumer has in hand."""
        self._consumers.append(consumer)

    async def consume(self, call: ConsumeContext, proceed: Proceed) -> Any:
        where = (call.group, call.messages[0].topic, call.handler)
        began = self._monotonic()
        self._running[where] += 1
        result = "failed"
        try:
            found = await proceed()
            result = "consumed" if found is None or getattr(found, "name", "").endswith("SUCCESS") else "failed"
            return found
        finally:
            self._running[where] -= 1
            took = self._monotonic() - began
            self._call_seconds[where] += took
            _of(self._handler_latency, where).add(took)
            self._calls[*where, result] += 1
            self._messages[*where, result] += len(call.messages)

    async def send(self, sending: Sending, proceed: Proceed) -> Any:
        topic = sending.messages[0].topic
        began = self._monotonic()
        result = "failed"
        try:
            found = await proceed()
            result = "sent"
            return found
        finally:
            self._sends[sending.group, topic, result] += len(sending.messages)
            took = self._monotonic() - began
            self._send_seconds[sending.group, topic] += took
            _of(self._send_latency, (sending.group, topic)).add(took)

    def metrics(self) -> Iterable[Metric]:
        """All that was counted."""
        by_result = ("group", "topic", "handler", "result")
        yield _metric("handler_calls_total", "Calls of handlers that have ended", by_result, self._calls)
        yield _metric("handler_messages_total", "Messages that handlers were called with", by_result, self._messages)
        yield _metric("handler_seconds_total", "Time in handlers", by_result[:3], self._call_seconds)
        yield _metric("handlers_running", "Calls that have not ended", by_result[:3], self._running, Kind.GAUGE)
        yield _metric("sent_messages_total", "Messages sent", ("group", "topic", "result"), self._sends)
        yield _metric("send_seconds_total", "Time of sends, retries included", ("group", "topic"), self._send_seconds)
        yield _histograms("handler_latency_seconds", "Time of calls of handlers", by_result[:3], self._handler_latency)
        yield _histograms("send_latency_seconds", "Time of sends", ("group", "topic"), self._send_latency)
        queues: Counter[tuple[str, str]] = Counter()
        messages: Counter[tuple[str, str]] = Counter()
        for consumer in self._consumers:
            for topic, (count, fetched) in consumer.in_hand().items():
                queues[consumer.group, topic] += count
                messages[consumer.group, topic] += fetched
        yield _metric("queues_in_hand", "Queues that this process consumes", ("group", "topic"), queues, Kind.GAUGE)
        yield _metric("messages_in_hand", "Messages fetched and not done", ("group", "topic"), messages, Kind.GAUGE)

    def page(self) -> bytes:
        """In Prometheus' text format."""
        return render(self.metrics(), {})


def _of(histograms: dict[Key, Histogram], key: Key) -> Histogram:
    found = histograms.get(key)
    if found is None:
        found = histograms[key] = Histogram(CLIENT_BOUNDS)
    return found


def _histograms(name: str, help_text: str, labels: tuple[str, ...], histograms: Mapping[Key, Histogram]) -> Metric:
    metric = Metric(f"skyrocket_client_{name}", Kind.HISTOGRAM, help_text)
    for key, found in histograms.items():
        metric.add_all(found, **dict(zip(labels, key, strict=True)))
    return metric


def _metric(
    name: str, help_text: str, labels: tuple[str, ...], numbers: Mapping[Any, float], kind: Kind = Kind.COUNTER
) -> Metric:
    metric = Metric(f"skyrocket_client_{name}", kind, help_text)
    for key, number in numbers.items():
        metric.add(number, **dict(zip(labels, key, strict=True)))
    return metric
