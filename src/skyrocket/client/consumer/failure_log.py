"""One line for each message that was not consumed: which, by whom, the how-manieth time, and what becomes of it.

    a handler failed, the message comes again in 10s topic=Orders group=Billing message=… handler=shop.paid
    a handler failed, the message goes to %DLQ%Billing after 17 attempts topic=Orders …

A retry that a handler asked for itself is not a warning; a dead letter always is.
"""

import logging

from skyrocket.client.consumer.handlers import Outcome, ReconsumeLater
from skyrocket.client.consumer.retry_policy import delay_text
from skyrocket.client.core.message import ReceivedMessage
from skyrocket.errors import SkyrocketError
from skyrocket.model.topic import DLQ_PREFIX

_logger = logging.getLogger("skyrocket.client.consumer.handlers")


class FailureLog:
    """For one group."""

    def __init__(self, group: str) -> None:
        self._group = group

    def retried(self, message: ReceivedMessage, outcome: Outcome, most: int | None) -> None:
        """It went back; `most` retries are allowed, None: without end."""
        delay = delay_text(outcome.delay_level, message.reconsume_times)
        self._say(message, outcome, f"the message comes again in {delay}", most)

    def repeated(self, message: ReceivedMessage, outcome: Outcome, most: int | None, seconds: float) -> None:
        """In order: its queue waits for it."""
        self._say(message, outcome, f"its queue rests for {seconds:g} s, then it comes again", most)

    def dead(self, message: ReceivedMessage, outcome: Outcome) -> None:
        """It is a dead letter."""
        attempts = message.reconsume_times + 1
        fate = f"the message goes to {DLQ_PREFIX}{self._group} after {attempts} attempt{'s' * (attempts > 1)}"
        self._line(logging.WARNING, fate, message, outcome, str(attempts))

    def dropped(self, message: ReceivedMessage, outcome: Outcome) -> None:
        """Broadcasting has no retries."""
        self._line(logging.WARNING, "the message is dropped: broadcasting has no retries", message, outcome, "1 of 1")

    def stuck(self, message: ReceivedMessage, outcome: Outcome, seconds: float) -> None:
        """No broker took it back."""
        fate = f"no broker takes the message back, it is tried here again in {seconds:g} s"
        self._line(logging.WARNING, fate, message, outcome, str(message.reconsume_times + 1))

    def cut_off(self, count: int, seconds: float) -> None:
        """The consumer ends before its handlers did."""
        if count:
            text = "1 handler has" if count == 1 else f"{count} handlers have"
            _logger.warning(
                "%s not ended within %g s and will not be waited for, the messages come again group=%s",
                text,
                seconds,
                self._group,
            )

    def _say(self, message: ReceivedMessage, outcome: Outcome, fate: str, most: int | None) -> None:
        of = "" if most is None else f" of {most + 1}"
        level = logging.INFO if outcome.error is None else logging.WARNING
        self._line(level, fate, message, outcome, f"{message.reconsume_times + 1}{of}")

    def _line(self, level: int, fate: str, message: ReceivedMessage, outcome: Outcome, attempt: str) -> None:
        _logger.log(
            level,
            "a handler failed, %s topic=%s group=%s message=%s handler=%s attempt=%s reason=%s",
            fate,
            message.topic,
            self._group,
            message.message_id,
            outcome.handler or "-",
            attempt,
            _reason(outcome),
            exc_info=outcome.error,
        )


def _reason(outcome: Outcome) -> str:
    """Our own errors are sentences; of others the kind is half of what they say (`KeyError: 'x'`)."""
    cause = outcome.cause
    if cause is None or isinstance(cause, SkyrocketError | ReconsumeLater):
        return str(outcome.status if cause is None else cause)
    return f"{type(cause).__name__}: {cause}" if str(cause) else type(cause).__name__
