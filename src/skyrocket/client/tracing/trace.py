"""What is traced: sends, calls of handlers, ends of transactions, recalls; as RocketMQ's clients do it.

A message is traced when its broker says so: with TRACE_ON in its answer, or in the stored message's properties.
"""

import logging
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import replace
from typing import Final

from skyrocket.client.core.client_id import UNIQUE_KEYS
from skyrocket.client.core.hooks import ConsumeContext, ConsumeHook, SendContext, SendHook
from skyrocket.client.core.instance import ClientInstance
from skyrocket.client.core.message import Message, ReceivedMessage
from skyrocket.client.core.names import unwrap
from skyrocket.client.core.send_receipt import SendReceipt, SendStatus
from skyrocket.client.tracing.trace_dispatcher import TraceDispatcher
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
from skyrocket.model import property_names as names
from skyrocket.protocol.requests.transaction import COMMIT, ROLLBACK, EndTransaction

_logger = logging.getLogger(__name__)


_DEFAULT_REGION: Final = "DefaultRegion"
_BEGAN: Final = "trace began"
_CALL: Final = "trace call"
_OUTCOMES: Final = {
    "SUCCESS": CallOutcome.SUCCESS,
    "TIME_OUT": CallOutcome.TIME_OUT,
    "EXCEPTION": CallOutcome.EXCEPTION,
}
_STATES: Final = {COMMIT: "COMMIT_MESSAGE", ROLLBACK: "ROLLBACK_MESSAGE"}


class Tracer(SendHook, ConsumeHook):
    """Makes events of what one producer or consumer does."""

    def __init__(self, instance: ClientInstance, dispatcher: TraceDispatcher, group: str) -> None:
        self.dispatcher = dispatcher
        self._clock = instance.clock
        self._namespace = instance.namespace
        self._group = unwrap(instance.namespace, group)

    # ── sends ────────────────────────────────────────────────────────────────────────────────────────────────────────

    def before_send(self, context: SendContext) -> None:
        context.extra[_BEGAN] = self._clock.now_ms()

    def after_send(self, context: SendContext) -> None:
        receipt = context.receipt
        if receipt is None or receipt.region is None or not receipt.trace_on or self._is_own(context.message.topic):
            return
        began = context.extra[_BEGAN]
        cost_ms = max(self._clock.now_ms() - began, 0)
        self.dispatcher.append(tuple(self._sends(context, receipt, began, cost_ms)))

    def _sends(self, context: SendContext, receipt: SendReceipt, began: int, cost_ms: int) -> Iterator[Sent]:
        """RocketMQ has one event for a whole batch, which is found by none of its messages' ids: here each has one."""
        messages = context.members or (context.message,)
        ids = context.message_ids or (context.message_id,)
        offset_ids = receipt.offset_message_id.split(",")
        for number, (message, message_id) in enumerate(zip(messages, ids, strict=True)):
            yield Sent(
                began,
                receipt.region,
                self._group,
                unwrap(self._namespace, message.topic),
                message_id,
                message.tags or None,
                _keys(message),
                context.address,
                len(message.body),
                cost_ms,
                _kind(message, is_half=context.is_half),
                offset_ids[number] if number < len(offset_ids) else receipt.offset_message_id,
                receipt.status is SendStatus.SEND_OK,
            )

    def recalled(self, topic: str, message_id: str, region: str | None) -> None:
        """A broker has taken back a delayed message; one that names no region does not trace."""
        if region is not None:
            self.dispatcher.append(
                (Recalled(self._clock.now_ms(), region, self._group, topic, message_id, succeeded=True),)
            )

    # ── transactions ─────────────────────────────────────────────────────────────────────────────────────────────────

    def transaction_ended(
        self,
        message: Message | ReceivedMessage,
        address: str,
        message_id: str,
        request: EndTransaction,
        region: str | None,
    ) -> None:
        """A broker is told how a transaction ended."""
        if self._is_own(message.topic):
            return
        event = TransactionEnded(
            self._clock.now_ms(),
            region or _DEFAULT_REGION,
            self._group,
            unwrap(self._namespace, message.topic),
            message_id,
            message.tags or None,
            _keys(message),
            address,
            SendKind.TRANSACTION_END,
            request.transaction_id or message_id,
            _STATES.get(request.commit_or_rollback, "UNKNOW"),
            request.from_transaction_check,
        )
        self.dispatcher.append((event,))

    # ── calls of handlers ────────────────────────────────────────────────────────────────────────────────────────────

    def before_consume(self, context: ConsumeContext) -> None:
        now_ms = self._clock.now_ms()
        traced = self._traced(context.messages)
        request_id = UNIQUE_KEYS.next(now_ms)
        context.extra[_CALL] = now_ms, request_id, traced
        self.dispatcher.append(
            tuple(
                CallBegan(
                    now_ms,
                    message.properties.get("MSG_REGION", _DEFAULT_REGION),
                    self._group,
                    request_id,
                    message.message_id,
                    message.reconsume_times,
                    message.properties.get(names.KEYS),
                )
                for message in traced
            )
        )

    def after_consume(self, context: ConsumeContext) -> None:
        began, request_id, traced = context.extra[_CALL]
        now_ms = self._clock.now_ms()
        cost_ms = max(now_ms - began, 0) // max(len(traced), 1)
        outcome = _OUTCOMES.get(context.status, CallOutcome.FAILED)
        self.dispatcher.append(
            tuple(
                CallEnded(
                    request_id,
                    message.message_id,
                    cost_ms,
                    bool(context.succeeded),
                    message.properties.get(names.KEYS),
                    outcome,
                    now_ms,
                    self._group,
                )
                for message in traced
            )
        )

    def polled(self, messages: Sequence[ReceivedMessage]) -> None:
        """An application has taken messages itself; RocketMQ: that is a call that went well."""
        context = ConsumeContext(self._group, messages[0].queue, messages, True, "SUCCESS")
        self.before_consume(context)
        self.after_consume(context)

    def _traced(self, messages: Sequence[ReceivedMessage]) -> list[ReceivedMessage]:
        # Those of a batch bear neither region nor switch: RocketMQ loses their traces.
        return [
            message
            for message in messages
            if message.properties.get("TRACE_ON") != "false" and not self._is_own(message.topic)
        ]

    def _is_own(self, topic: str) -> bool:
        return topic == self.dispatcher.topic


def events_of(message_id: str, traces: Iterable[ReceivedMessage]) -> list[TraceEvent]:
    """What messages of a trace topic say about one message, in time's order; each event with its client's address."""
    events: list[TraceEvent] = []
    for trace in traces:
        try:
            told = decode_trace(trace.body)
        except DataError as error:
            _logger.warning("a trace cannot be read message=%s reason=%s", trace.offset_message_id, error)
            continue
        host = trace.born_host.rpartition(":")[0]
        events += [
            event if event.client_host else replace(event, client_host=host)
            for event in told
            if event.message_id == message_id
        ]
    began = {event.request_id: event.timestamp for event in events if isinstance(event, CallBegan)}

    def moment(event: TraceEvent) -> int:
        if event.timestamp is not None:
            return event.timestamp
        assert isinstance(event, CallEnded)  # in its older form
        return began.get(event.request_id, -1) + event.cost_ms

    return sorted(events, key=moment)


def _keys(message: Message | ReceivedMessage) -> str | None:
    return (message.keys if isinstance(message.keys, str) else " ".join(message.keys)) or None


def _kind(message: Message, *, is_half: bool) -> SendKind:
    if is_half:
        return SendKind.HALF
    if message.delay_level or message.delay is not None or message.deliver_at is not None:
        return SendKind.DELAY
    return SendKind.NORMAL
