"""Traces: the way of a message from its send to every consumption, as clients have told it."""

from dataclasses import dataclass
from typing import Final

from skyrocket.client.core.errors import BrokerRefused, NoRoute
from skyrocket.client.tracing.optional_tracer import TRACE_TOPIC
from skyrocket.console.api.endpoint import Call, Family
from skyrocket.console.cluster.message_search import MessageFilter, newest
from skyrocket.console.cluster.trace_times import StageTimes, stage_times
from skyrocket.errors import DataError
from skyrocket.format.trace import (
    CallBegan,
    CallEnded,
    CallOutcome,
    Recalled,
    SendKind,
    Sent,
    TraceEvent,
    TransactionEnded,
    decode_trace,
)
from skyrocket.model.words import Phrase, Said, phrase_of, said, said_of
from skyrocket.remoting.errors import RemotingError

family = Family("Traces")

_MOST_LOOKED_UP: Final = 16
_MOST_READ: Final = 500
_KINDS: Final = {
    SendKind.NORMAL: said("normal message"),
    SendKind.HALF: said("half message"),
    SendKind.TRANSACTION_END: said("end of a transaction"),
    SendKind.DELAY: said("delayed message"),
    SendKind.ORDER: said("ordered message"),
}
_OUTCOMES: Final = {
    CallOutcome.SUCCESS: said("succeeded"),
    CallOutcome.TIME_OUT: said("timed out"),
    CallOutcome.EXCEPTION: said("raised an exception"),
    CallOutcome.RETURNED_NULL: said("returned nothing"),
    CallOutcome.FAILED: said("failed"),
}


@dataclass(frozen=True, slots=True)
class TraceWanted:
    """`trace_topic`: where clients tell it, if not RMQ_SYS_TRACE_TOPIC."""

    trace_topic: str = TRACE_TOPIC


@dataclass(frozen=True, slots=True)
class Step:
    """A send, a store, a consumption, the end of a transaction or a recall."""

    kind: str
    message_id: str
    group: str
    began_ms: int | None
    cost_ms: int | None
    succeeded: bool | None  # None: not ended, or not told
    host: str
    says: str
    says_phrase: Phrase  # for who says it in another language


@dataclass(frozen=True, slots=True)
class Trace:
    """In time's order; `trouble` says why there is nothing."""

    steps: list[Step]
    trouble: str
    trouble_phrase: Phrase | None = None  # for who says it in another language


@dataclass(frozen=True, slots=True)
class TimesWanted:
    """Of a span of time; without one of what was told last."""

    trace_topic: str = TRACE_TOPIC
    from_ms: int | None = None
    to_ms: int | None = None


@dataclass(frozen=True, slots=True)
class TraceTimes:
    """Percentiles by stage; `read` messages of the trace topic were looked at, `trouble` says why there are none."""

    rows: list[StageTimes]
    read: int
    from_ms: int | None
    to_ms: int | None
    trouble: str
    trouble_phrase: Phrase | None = None  # for who says it in another language


@family.get("/api/traces")
async def trace_times(call: Call, wanted: TimesWanted) -> TraceTimes:
    """How long sends, waits for a handler and handlers took, as clients told it lately."""
    try:
        found = await newest(
            call.admin,
            wanted.trace_topic,
            MessageFilter(),
            from_ms=wanted.from_ms,
            to_ms=wanted.to_ms,
            queue=None,
            most=_MOST_READ,
        )
    except NoRoute:
        why = _no_topic(wanted.trace_topic)
        return TraceTimes([], 0, None, None, why, why.phrase)
    events: list[TraceEvent] = []
    for message in found.messages:
        try:
            events += decode_trace(message.body)
        except DataError:  # somebody wrote something else there
            continue
    times = [message.store_timestamp for message in found.messages]
    return TraceTimes(stage_times(events), len(found.messages), min(times, default=None), max(times, default=None), "")


def _no_topic(name: str) -> Said:
    return said("there is no trace topic {name}: no client of this cluster traces", name=name)


@family.get("/api/traces/{message_id}")
async def trace(call: Call, wanted: TraceWanted) -> Trace:
    """What clients told about a message, by its id or a key."""
    try:
        events = await call.admin.trace(call.path["message_id"], topic=wanted.trace_topic)
    except NoRoute:
        why = _no_topic(wanted.trace_topic)
        return Trace([], why, why.phrase)
    stored = await _stored(call, events)
    return Trace(sorted([*steps(events), *stored], key=_order), "")


def _order(step: Step) -> tuple[int, bool]:
    """By time; what is consumed in the millisecond in which it was stored was stored first."""
    return step.began_ms or 0, step.kind == "consume"


async def _stored(call: Call, events: list[TraceEvent]) -> list[Step]:
    """When brokers stored what was sent: that is in the messages, which clients cannot tell."""
    sent = {event.message_id: event for event in events if isinstance(event, Sent) and event.succeeded}
    found = []
    for message_id, event in list(sent.items())[:_MOST_LOOKED_UP]:
        try:
            copies = await call.admin.query_by_unique_key(event.topic, message_id)
        except (NoRoute, BrokerRefused, RemotingError):  # the topic or its broker is gone, and the trace is not
            continue
        for copy in copies:
            says = said(
                "{topic}, queue {queue} at {broker}, offset {offset}",
                topic=copy.topic,
                queue=copy.queue_id,
                broker=copy.broker_name,
                offset=copy.queue_offset,
            )
            began_ms, host = copy.store_timestamp, copy.store_host
            found.append(Step("store", message_id, "", began_ms, None, True, host, says, says.phrase))
    return found


def steps(events: list[TraceEvent]) -> list[Step]:
    """One step for a call that began and ended."""
    ended = {event.request_id: event for event in events if isinstance(event, CallEnded)}
    found = []
    for event in events:
        if isinstance(event, Sent):
            found.append(_step("send", event, event.timestamp, event.cost_ms, event.succeeded, _of_send(event)))
        elif isinstance(event, CallBegan):
            end = ended.get(event.request_id)
            cost, succeeded = (None, None) if end is None else (end.cost_ms, end.succeeded)
            found.append(_step("consume", event, event.timestamp, cost, succeeded, _of_call(event, end)))
        elif isinstance(event, TransactionEnded):
            says = said("{state} after a check", state=event.state) if event.from_check else event.state
            found.append(_step("transaction", event, event.timestamp, None, event.state != "ROLLBACK_MESSAGE", says))
        elif isinstance(event, Recalled):
            found.append(_step("recall", event, event.timestamp, None, event.succeeded, ""))
    return sorted(found, key=lambda step: step.began_ms or 0)


def _of_send(event: Sent) -> Said:
    size = said_of(event.body_length, "{n:,} byte", "{n:,} bytes")
    return said(
        "{kind} of {size} for {topic} to {host}",
        kind=_KINDS[event.kind],
        size=size,
        topic=event.topic,
        host=event.store_host,
    )


def _of_call(began: CallBegan, end: CallEnded | None) -> Said:
    number = began.retry_times + 1
    if end is None:
        return said("attempt {number}", number=number)
    return said("attempt {number}, {outcome}", number=number, outcome=_OUTCOMES[end.outcome])


def _step(
    kind: str,
    event: Sent | CallBegan | TransactionEnded | Recalled,
    began_ms: int,
    cost_ms: int | None,
    succeeded: bool | None,
    says: str,
) -> Step:
    host = event.client_host
    return Step(kind, event.message_id, event.group, began_ms, cost_ms, succeeded, host, says, phrase_of(says))
