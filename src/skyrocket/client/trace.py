"""What is traced: sends, calls of handlers, ends of transactions, recalls; as RocketMQ's clients do it.

A message is traced when its broker says so: with TRACE_ON in its answer, or in the stored message's properties.
"""

from collections.abc import Iterator, Sequence
from typing import Final

from skyrocket.client.client_id import UNIQUE_KEYS
from skyrocket.client.hooks import ConsumeContext, ConsumeHook, SendContext, SendHook
from skyrocket.client.instance import ClientInstance
from skyrocket.client.message import Message, ReceivedMessage
from skyrocket.client.names import unwrap
from skyrocket.client.receipt import SendReceipt, SendStatus
from skyrocket.client.trace_dispatcher import TraceDispatcher
from skyrocket.format.trace import CallBegan, CallEnded, CallOutcome, Recalled, SendKind, Sent, TransactionEnded
from skyrocket.model import property_names as names
from skyrocket.protocol.requests.transaction import COMMIT, ROLLBACK

TRACE_TOPIC: Final = "RMQ_SYS_TRACE_TOPIC"
PRODUCE: Final = "PRODUCE"
CONSUME: Final = "CONSUME"

_DEFAULT_REGION: Final = "DefaultRegion"
_BEGAN: Final = "trace began"
_CALL: Final = "trace call"
_OUTCOMES: Final = {
    "SUCCESS": CallOutcome.SUCCESS,
    "TIME_OUT": CallOutcome.TIME_OUT,
    "EXCEPTION": CallOutcome.EXCEPTION,
}
_STATES: Final = {COMMIT: "COMMIT_MESSAGE", ROLLBACK: "ROLLBACK_MESSAGE"}


def tracer_of(instance: ClientInstance, group: str, role: str) -> "Tracer | None":
    """For a producer or consumer of this client; None when nothing is to be traced."""
    wanted = instance.settings.trace
    if not wanted:
        return None
    topic = wanted if isinstance(wanted, str) else TRACE_TOPIC
    return Tracer(instance, TraceDispatcher(instance, topic, group, role), group)


class Tracer(SendHook, ConsumeHook):
    """Makes events of what one producer or consumer does."""

    def __init__(self, instance: ClientInstance, dispatcher: TraceDispatcher, group: str) -> None:
        self.dispatcher = dispatcher
        self._clock = instance.clock
        self._namespace = instance.namespace
        self._group = unwrap(instance.namespace, group)

    def start(self) -> None:
        """Begin to send what is traced."""
        self.dispatcher.start()

    async def close(self) -> None:
        """Send what is left."""
        await self.dispatcher.close()

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
        places = receipt.offset_message_id.split(",")
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
                places[number] if number < len(places) else receipt.offset_message_id,
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
        transaction_id: str,
        state: int,
        *,
        region: str | None,
        from_check: bool,
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
            transaction_id,
            _STATES.get(state, "UNKNOW"),
            from_check,
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
                    message.properties["MSG_REGION"],
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

    def _traced(self, messages: Sequence[ReceivedMessage]) -> list[ReceivedMessage]:
        return [
            message
            for message in messages
            if message.properties.get("TRACE_ON") != "false"
            and "MSG_REGION" in message.properties
            and not self._is_own(message.topic)
        ]

    def _is_own(self, topic: str) -> bool:
        return topic == self.dispatcher.topic


def _keys(message: Message | ReceivedMessage) -> str | None:
    return (message.keys if isinstance(message.keys, str) else " ".join(message.keys)) or None


def _kind(message: Message, *, is_half: bool) -> SendKind:
    if is_half:
        return SendKind.HALF
    if message.delay_level or message.delay is not None or message.deliver_at is not None:
        return SendKind.DELAY
    return SendKind.NORMAL
