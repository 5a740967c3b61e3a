"""The application's functions: async or plain, for one message or many; and what their outcome means.

return None or CONSUME_SUCCESS        consumed
return RECONSUME_LATER, any exception  again later, with a delay that grows (concurrent) or after a moment (in order)
raise ReconsumeLater(delay_level=5)    the same with a delay of one's own choice
raise DeadLetter("why")                never again: to the group's dead-letter topic; `from e` names the cause there
a body that is not what it asks for    the same, without a call
raise SuspendCurrentQueue(seconds=2)   in order: the same message again after a while
return COMMIT or ROLLBACK              in order, auto_commit=False: all since the last commit is done, or comes again
"""

import asyncio
import contextvars
import inspect
from collections.abc import Awaitable, Callable, Sequence
from concurrent.futures import Executor
from dataclasses import dataclass
from enum import Enum
from typing import Any, Final, Protocol, TypeVar

from skyrocket.client.consumer.dead_letter_cause import type_name
from skyrocket.client.consumer.retry_policy import RetryPolicy, delay_seconds
from skyrocket.client.core.message import ReceivedMessage
from skyrocket.client.core.middleware import Middleware

current_message: contextvars.ContextVar[ReceivedMessage] = contextvars.ContextVar("skyrocket_current_message")
current_group: contextvars.ContextVar[str] = contextvars.ContextVar("skyrocket_current_group")

TO_DEAD_LETTERS: Final = -1
GIVEN_UP: Final = "given up by the handler"


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
        self.reason = reason or GIVEN_UP
        super().__init__(self.reason, delay_level=TO_DEAD_LETTERS, first_failed=first_failed)

    def __str__(self) -> str:
        """Logs and reports show this, so it names what it was raised from."""
        below = self.__cause__
        if below is None:
            return self.reason
        return f"{self.reason}; cause: {type_name(below)}: {below}".removesuffix(": ")


class UndecodableBody(DeadLetter):
    """The body is not what the handler asks for: nobody else could read it either."""

    count: int | None = None  # in a batch: how many

    def __str__(self) -> str:
        """What the decoder says is in the reason."""
        return self.reason


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
    count: int | None = None  # only so many failed, those behind them were not tried; None: all behind
    retries: int | None = None  # how often it may come again; None: as the consumer's settings say
    handler: str = ""

    @property
    def succeeded(self) -> bool:
        """A commit is the only outcome without failure."""
        return self.decision is ConsumeStatus.COMMIT


Run = Callable[[Any], Awaitable[Any]]
NO_POLICY: Final = RetryPolicy()


class Handler:
    """One application function with what is needed to call it."""

    def __init__(
        self,
        function: Callable[[Any], Any],
        executor: Callable[[], Executor],
        *,
        takes_list: bool,
        commits: bool = False,
        name: str = "",
        retry: RetryPolicy = NO_POLICY,
    ) -> None:
        self.function = function
        self.name = name
        self.takes_list = takes_list
        self._commits = commits  # itself, by COMMIT and ROLLBACK
        self._retry = retry
        self.is_async = inspect.iscoroutinefunction(function) or inspect.iscoroutinefunction(
            getattr(function, "__call__", None)  # noqa: B004 - an object with an async __call__
        )
        self._executor = executor
        self._run: Run = function if self.is_async else self._in_thread
        self.answering: Middleware | None = None  # sends what it returns

    def surround(self, around: Callable[[Run], Run]) -> None:
        """Let every call go through this: middleware."""
        self._run = around(self._run)

    async def call(self, messages: Sequence[ReceivedMessage]) -> Outcome | None:
        """Run it; None when all were consumed."""
        number = 0
        try:
            if self.takes_list:
                current_message.set(messages[0])
                outcome = _behind(judged(await self._run(list(messages)), commits=self._commits), len(messages))
                return None if outcome is None else self._fate(outcome, messages[0])
            for number, message in enumerate(messages):
                current_message.set(message)
                result = await self._run(message)
                if result is None:
                    continue
                outcome = judged(result, commits=self._commits)
                if outcome is not None:
                    outcome.first_failed, outcome.count = number, 1
                    return self._fate(_behind(outcome, number + 1), message)
        except Exception as error:  # noqa: BLE001 - the application's; it decides over the message's fate
            failed = outcome_of(error)
            if not self.takes_list:
                failed.first_failed, failed.count = number, 1
            return self._fate(failed, messages[min(failed.first_failed, len(messages) - 1)])
        return None

    def _fate(self, outcome: Outcome, message: ReceivedMessage) -> Outcome:
        """What this handler's policy says about a failure."""
        outcome.handler = self.name
        policy = self._retry
        if policy is NO_POLICY or outcome.succeeded:
            return outcome
        outcome.retries = policy.retries
        if outcome.error is not None and policy.is_hopeless(outcome.error):
            outcome.delay_level = TO_DEAD_LETTERS
        elif outcome.delay_level == 0 and policy.levels:
            outcome.delay_level = policy.level(message.reconsume_times)
            if outcome.suspend_seconds is None:
                outcome.suspend_seconds = delay_seconds(outcome.delay_level)
        return outcome

    def _in_thread(self, argument: Any) -> Awaitable[Any]:
        context = contextvars.copy_context()
        return asyncio.get_running_loop().run_in_executor(self._executor(), context.run, self.function, argument)


_O = TypeVar("_O", Outcome, Outcome | None)


def _behind(outcome: _O, next_number: int) -> _O:
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
    return Outcome(0, error=error, status="FAILED", cause=error)


def outcome_of(error: Exception) -> Outcome:
    """What an exception means."""
    if isinstance(error, ReconsumeLater):
        count = error.count if isinstance(error, UndecodableBody) else None
        return Outcome(error.first_failed, error.delay_level, status="FAILED", cause=_cause(error), count=count)
    if isinstance(error, SuspendCurrentQueue):
        return Outcome(0, suspend_seconds=error.seconds, status="FAILED", cause=error)
    return Outcome(0, error=error, status="EXCEPTION", cause=error)


def _cause(error: ReconsumeLater) -> Exception:
    """`raise ReconsumeLater() from e`: e is why. A dead letter with words of its own keeps them, beside e."""
    below = error.__cause__
    if isinstance(below, Exception) and not (isinstance(error, DeadLetter) and error.reason != GIVEN_UP):
        return below
    return error
