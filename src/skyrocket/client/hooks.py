"""Hooks see every send and every call of a handler. What they raise is logged, but not in `allow_send`."""

import logging
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field
from typing import Any

from skyrocket.client.message import Message, ReceivedMessage
from skyrocket.client.receipt import SendReceipt
from skyrocket.model.message_queue import MessageQueue

_logger = logging.getLogger(__name__)


@dataclass(slots=True)
class SendContext:
    """One attempt of a send."""

    group: str
    message: Message
    queue: MessageQueue
    address: str
    message_id: str
    receipt: SendReceipt | None = None
    error: Exception | None = None
    extra: dict[str, Any] = field(default_factory=dict)  # the hooks' own


class SendHook:
    """Override what is of interest."""

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
    extra: dict[str, Any] = field(default_factory=dict)


class ConsumeHook:
    """Override what is of interest."""

    def before_consume(self, context: ConsumeContext) -> None:
        """Before the handler is called."""

    def after_consume(self, context: ConsumeContext) -> None:
        """After it: `succeeded` and `status` are set."""


def run_hooks(calls: Iterable[Callable[[Any], None]], context: object) -> None:
    """Call all; one that fails does not keep the others from running."""
    for call in calls:
        try:
            call(context)
        except Exception:
            _logger.exception("a hook failed hook=%r", call)
