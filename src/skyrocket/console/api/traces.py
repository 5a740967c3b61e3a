"""Traces: the way of a message from its send to every consumption, as clients have told it."""

from dataclasses import dataclass

from skyrocket.client.core.errors import NoRoute
from skyrocket.client.tracing.optional_tracer import TRACE_TOPIC
from skyrocket.console.api.endpoint import Call, Family
from skyrocket.format.trace import CallBegan, CallEnded, Recalled, Sent, TraceEvent, TransactionEnded

family = Family("Traces")


@dataclass(frozen=True, slots=True)
class TraceWanted:
    """`trace_topic`: where clients tell it, if not RMQ_SYS_TRACE_TOPIC."""

    trace_topic: str = TRACE_TOPIC


@dataclass(frozen=True, slots=True)
class Step:
    """A send, a consumption, the end of a transaction or a recall."""

    kind: str
    message_id: str
    group: str
    began_ms: int | None
    cost_ms: int | None
    succeeded: bool | None  # None: not ended, or not told
    host: str
    says: str


@dataclass(frozen=True, slots=True)
class Trace:
    """In time's order; `trouble` says why there is nothing."""

    steps: list[Step]
    trouble: str


@family.get("/api/traces/{message_id}")
async def trace(call: Call, wanted: TraceWanted) -> Trace:
    """What clients told about a message, by its id or a key."""
    try:
        events = await call.admin.trace(call.path["message_id"], topic=wanted.trace_topic)
    except NoRoute:
        return Trace([], f"there is no trace topic {wanted.trace_topic}: no client of this cluster traces")
    return Trace(steps(events), "")


def steps(events: list[TraceEvent]) -> list[Step]:
    """One step for a call that began and ended."""
    ended = {event.request_id: event for event in events if isinstance(event, CallEnded)}
    found = []
    for event in events:
        if isinstance(event, Sent):
            says = f"{event.kind.name.lower()}, {event.body_length} bytes to {event.store_host}"
            found.append(_step("send", event, event.timestamp, event.cost_ms, event.succeeded, says))
        elif isinstance(event, CallBegan):
            end = ended.get(event.request_id)
            says = f"attempt {event.retry_times + 1}" + (f", {end.outcome.name.lower()}" if end is not None else "")
            cost, succeeded = (None, None) if end is None else (end.cost_ms, end.succeeded)
            found.append(_step("consume", event, event.timestamp, cost, succeeded, says))
        elif isinstance(event, TransactionEnded):
            says = f"{event.state}{' after a check' if event.from_check else ''}"
            found.append(_step("transaction", event, event.timestamp, None, event.state != "ROLLBACK_MESSAGE", says))
        elif isinstance(event, Recalled):
            found.append(_step("recall", event, event.timestamp, None, event.succeeded, ""))
    return sorted(found, key=lambda step: step.began_ms or 0)


def _step(
    kind: str,
    event: Sent | CallBegan | TransactionEnded | Recalled,
    began_ms: int,
    cost_ms: int | None,
    succeeded: bool | None,
    says: str,
) -> Step:
    return Step(kind, event.message_id, event.group, began_ms, cost_ms, succeeded, event.client_host, says)
