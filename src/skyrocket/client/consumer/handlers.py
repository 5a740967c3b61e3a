"""The application's functions: async or plain, for one message or many; and what their outcome means.

return None or CONSUME_SUCCESS        consumed
return RECONSUME_LATER, any exception  again later, with a delay that grows (concurrent) or after a moment (in order)
raise ReconsumeLater(delay_level=5)    the same with a delay of one's own choice
raise DeadLetter("why")                never again: to the group's dead-letter topic
raise SuspendCurrentQueue(seconds=2)   in order: the same message again after a while
return COMMIT or ROLLBACK              in order, auto_commit=False: all since the last commit is done, or comes again
"""

import asyncio
import contextvars
import inspect
import logging
from collections.abc import Awaitable, Callable, Sequence
from concurrent.futures import Executor
from dataclasses import dataclass
from enum import Enum
from typing import Any, Final, Protocol

from skyrocket.client.core.message import ReceivedMessage

_logger = logging.getLogger(__name__)


current_message: contextvars.ContextVar[ReceivedMessage] = contextvars.ContextVar("skyrocket_current_message")
current_group: contextvars.ContextVar[str] = contextvars.ContextVar("skyrocket_current_group")

TO_DEAD_LETTERS: Final = -1


class HandlerWrapper(Protocol):
    """What `once=` takes: `exactly_once.Once` makes a handler of message and connection one of the message alone."""

    def wrap(self, handler: Callable[[ReceivedMessage, Any], Any]) -> Callable[[ReceivedMessage], Any]: ...


class ConsumeStatus(Enum):
    """For those who prefer a status to an exception; RocketMQ's names of both kinds of listeners."""

    CONSUME_SUCCESS = "CONSUME_SUCCESS"
    RECONSUME_LATER = "RECONSUME_LATER"
    SUCCESS = "SUCCESS"
    SUSPEND_CURRENT_QUEUE_A_MOMENT = "SUSPEND_CURRENT_QUEUE_A_MOMENT"
    COMMIT = "COMMIT"
    ROLLBACK = "ROLLBACK"


class ReconsumeLater(Exception):
    """Give it to me again. In a batch the messages before `first_failed` count as consumed."""

    def __init__(self, reason: str = "", *, delay_level: int = 0, first_failed: int = 0) -> None:
        self.delay_level = delay_level
        self.first_failed = first_failed
        super().__init__(reason or "to be consumed again")


class DeadLetter(ReconsumeLater):
    """Do not give it to me again."""

    def __init__(self, reason: str = "", *, first_failed: int = 0) -> None:
        super().__init__(reason or "given up by the handler", delay_level=TO_DEAD_LETTERS, first_failed=first_failed)


class SuspendCurrentQueue(Exception):
    """In order: wait, then the same message again."""

    def __init__(self, seconds: float | None = None) -> None:
        self.seconds = seconds
        super().__init__("the queue is suspended")


@dataclass(slots=True)
class Outcome:
    """What became of a call: messages from `first_failed` on were not consumed."""

    first_failed: int
    delay_level: int = 0
    suspend_seconds: float | None = None
    error: Exception | None = None
    status: str = "SUCCESS"
    cause: Exception | None = None  # what was raised, also when it only asked to have the message again
    decision: ConsumeStatus | None = None  # COMMIT or ROLLBACK of a handler that commits itself

    @property
    def succeeded(self) -> bool:
        """A commit is the only outcome without failure."""
        return self.decision is ConsumeStatus.COMMIT


class Handler:
    """One application function with what is needed to call it."""

    def __init__(
        self,
        function: Callable[[Any], Any],
        executor: Callable[[], Executor],
        *,
        takes_list: bool,
        commits: bool = False,
    ) -> None:
        self.function = function
        self.takes_list = takes_list
        self._commits = commits  # itself, by COMMIT and ROLLBACK
        self.is_async = inspect.iscoroutinefunction(function) or inspect.iscoroutinefunction(
            getattr(function, "__call__", None)  # noqa: B004 - an object with an async __call__
        )
        self._executor = executor

    async def call(self, messages: Sequence[ReceivedMessage]) -> Outcome | None:
        """Run it; None when all were consumed."""
        try:
            if self.takes_list:
                current_message.set(messages[0])
                return _behind(judged(await self._run(list(messages)), commits=self._commits), len(messages))
            for number, message in enumerate(messages):
                current_message.set(message)
                outcome = judged(await self._run(message), commits=self._commits)
                if outcome is not None:
                    outcome.first_failed = number
                    return _behind(outcome, number + 1)
        except Exception as error:  # noqa: BLE001 - the application's; it decides over the message's fate
            failed = outcome_of(error)
            if not self.takes_list:
                failed.first_failed = number
            return failed
        return None

    def _run(self, argument: Any) -> Awaitable[Any]:
        if self.is_async:
            result: Awaitable[Any] = self.function(argument)
            return result
        context = contextvars.copy_context()
        return asyncio.get_running_loop().run_in_executor(self._executor(), context.run, self.function, argument)


def _behind(outcome: Outcome | None, next_number: int) -> Outcome | None:
    """A commit counts for what came before it, and for the message that brought it."""
    if outcome is not None and outcome.succeeded:
        outcome.first_failed = next_number
    return outcome


def judged(result: Any, *, commits: bool = False) -> Outcome | None:
    """What a returned value means."""
    if commits and result in (ConsumeStatus.COMMIT, ConsumeStatus.ROLLBACK):
        return Outcome(0, status="SUCCESS" if result is ConsumeStatus.COMMIT else "FAILED", decision=result)
    if result is None or result in (ConsumeStatus.CONSUME_SUCCESS, ConsumeStatus.SUCCESS):
        return None
    if result is ConsumeStatus.RECONSUME_LATER or result is ConsumeStatus.SUSPEND_CURRENT_QUEUE_A_MOMENT:
        return Outcome(0, status="FAILED")
    if result in (ConsumeStatus.COMMIT, ConsumeStatus.ROLLBACK):
        error = TypeError(
            f"a handler returned {result}: only one that consumes in order with auto_commit=False commits itself"
        )
    else:
        error = TypeError(f"a handler returned {result!r}: return None or a ConsumeStatus, or raise ReconsumeLater")
    _logger.error("%s", error)
    return Outcome(0, error=error, status="FAILED", cause=error)


def outcome_of(error: Exception) -> Outcome:
    """What an exception means."""
    if isinstance(error, ReconsumeLater):
        return Outcome(error.first_failed, error.delay_level, status="FAILED", cause=error)
    if isinstance(error, SuspendCurrentQueue):
        return Outcome(0, suspend_seconds=error.seconds, status="FAILED", cause=error)
    _logger.warning("a handler failed, the message will come again", exc_info=error)
    return Outcome(0, error=error, status="EXCEPTION", cause=error)
