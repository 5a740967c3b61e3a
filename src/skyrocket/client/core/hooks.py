"""Hooks see every send and every call of a handler. What they raise is logged, but not in `allow_send`.

prepare ─▶ encoding ─▶ for each attempt: allow_send ─▶ before_send ─▶ the broker ─▶ after_send
                                         before_consume ─▶ the handler ─▶ after_consume
"""

import logging
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

from skyrocket.client.core.message import Message, ReceivedMessage
from skyrocket.client.core.send_receipt import SendReceipt
from skyrocket.model.message_queue import MessageQueue

_logger = logging.getLogger(__name__)


@dataclass(slots=True)
class SendContext:
    """One attempt of a send."""

    group: str
    message: Message  # of a batch the first
    queue: MessageQueue
    address: str
    message_id: str
    count: int = 1  # messages in the request
    members: Sequence[Message] = ()  # those of a batch; automatic batches have them only when they are traced
    message_ids: Sequence[str] = ()  # of a batch: one for each message
    is_half: bool = False  # of a transaction
    receipt: SendReceipt | None = None
    error: Exception | None = None
    extra: dict[str, Any] = field(default_factory=dict)  # the hooks' own


class SendHook:
    """Override what is of interest."""

    def prepare(self, group: str, message: Message) -> Mapping[str, str] | None:
        """Once for every message before it is encoded: properties to add. The message itself must stay as it is."""
        return None

    def allow_send(self, context: SendContext) -> None:
        """Raise to forbid it."""

    def before_send(self, context: SendContext) -> None:
        """Before an attempt."""

    def after_send(self, context: SendContext) -> None:
        """After it: `receipt` or `error` is set."""


@dataclass(slots=True)
class ConsumeContext:
    """One call of a handler."""

    group: str
    queue: MessageQueue
    messages: Sequence[ReceivedMessage]
    succeeded: bool | None = None
    status: str = ""
    error: Exception | None = None  # what the handler raised, unless it only asked to have the message again
    extra: dict[str, Any] = field(default_factory=dict)
    handler: str = ""  # module and name; empty for hooks where the messages of a call go to different handlers


class ConsumeHook:
    """Override what is of interest."""

    def before_consume(self, context: ConsumeContext) -> None:
        """Before the handler is called."""

    def after_consume(self, context: ConsumeContext) -> None:
        """After it: `succeeded` and `status` are set."""


def preparing(hooks: Sequence[SendHook]) -> tuple[SendHook, ...]:
    """Those that want to see messages before they are encoded."""
    return tuple(hook for hook in hooks if type(hook).prepare is not SendHook.prepare)


def prepared(hooks: Sequence[SendHook], group: str, message: Message) -> Message:
    """A copy with what the hooks add."""
    added: dict[str, str] = {}
    for hook in hooks:
        try:
            added |= hook.prepare(group, message) or {}
        except Exception:
            _logger.exception("a hook failed hook=%r", hook)
    return replace(message, properties={**message.properties, **added}) if added else message


def run_hooks(calls: Iterable[Callable[[Any], None]], context: object) -> None:
    """Call all; one that fails does not keep the others from running."""
    for call in calls:
        try:
            call(context)
        except Exception:
            _logger.exception("a hook failed hook=%r", call)
