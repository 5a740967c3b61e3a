"""Sends many messages at once; results come in the order of the input, the first failure ends it."""

import asyncio
import sys
from collections import deque
from collections.abc import Awaitable, Callable
from typing import Final, Self

from rich.console import Console
from rich.progress import MofNCompleteColumn, Progress, SpinnerColumn, TextColumn

from skyrocket.client import Message, Producer, SendReceipt, WrongUse
from skyrocket.clock import Clock
from skyrocket.errors import ConfigError, MessageRefused, SkyrocketError

_QUIET_SECONDS: Final = 1.0
_BATCHED_IN_FLIGHT: Final = 10_000


class Sending:
    """A window of sends under way.

    Messages with one sharding key wait for each other: a retry must not overtake. With `batched`, messages that come
    together travel together; those with a delay or a sharding key still travel alone.
    """

    def __init__(
        self,
        producer: Producer,
        clock: Clock,
        confirmed: Callable[[SendReceipt], None],
        *,
        in_flight: int = 32,
        rate: float | None = None,
        batched: bool = False,
        failed: Callable[[SkyrocketError], None] | None = None,
    ) -> None:
        self.count = 0
        self.failures = 0
        self._producer = producer
        self._clock = clock
        self._confirmed = confirmed
        self._in_flight = _BATCHED_IN_FLIGHT if batched else in_flight
        self._interval = 1 / rate if rate else 0.0
        self._batched = batched
        self._failed = failed  # None: a failure is raised
        self._next_at = clock.monotonic()
        self._window: deque[tuple[Awaitable[SendReceipt], str | None, str]] = deque()
        self._of_key: dict[str, Awaitable[SendReceipt]] = {}

    async def send(self, message: Message, place: str) -> None:
        """Begin a send; raises what an earlier one came to, with the place where that was read."""
        await self._keep_rate()
        while len(self._window) >= self._in_flight or message.sharding_key in self._of_key:
            await self._settle()
        key = message.sharding_key
        is_single = (
            key is not None or message.delay_level or message.delay is not None or message.deliver_at is not None
        )
        pending: Awaitable[SendReceipt]
        if self._batched and not is_single:
            try:
                pending = await self._producer.enqueue(message)
            except SkyrocketError as error:
                self._fail(error, place)
                return
        else:
            pending = asyncio.ensure_future(self._producer.send(message))
        self._window.append((pending, key, place))
        if key is not None:
            self._of_key[key] = pending
        while self._window and _is_done(self._window[0][0]):
            await self._settle()

    async def finish(self) -> None:
        """Wait for all that is under way; raises what one came to."""
        while self._window:
            await self._settle()

    async def abandon(self) -> None:
        """After a failure or Ctrl-C: wait for the rest, count, complain no more."""
        self._failed = self._failed or (lambda error: None)
        await self.finish()

    async def _settle(self) -> None:
        pending, key, place = self._window[0]
        if isinstance(pending, asyncio.Future):
            await asyncio.wait((pending,))  # who cancels us does not cancel the send
        try:
            receipt = await pending
        except SkyrocketError as error:
            self._forget(key)
            self._fail(error, place)
            return
        self._forget(key)
        self.count += 1
        self._confirmed(receipt)

    def _fail(self, error: SkyrocketError, place: str) -> None:
        self.failures += 1
        kind = ConfigError if isinstance(error, MessageRefused | WrongUse) else SkyrocketError
        told = kind(f"{place}: {error}")
        if self._failed is None:
            raise told from error
        self._failed(told)

    def _forget(self, key: str | None) -> None:
        self._window.popleft()
        if key is not None:
            del self._of_key[key]

    async def _keep_rate(self) -> None:
        if self._interval:
            now = self._clock.monotonic()
            if now < self._next_at:
                await asyncio.sleep(self._next_at - now)
            self._next_at = max(self._next_at, now - 1.0) + self._interval  # a pause is not made up for


def _is_done(pending: Awaitable[SendReceipt]) -> bool:
    if isinstance(pending, asyncio.Future):
        return pending.done()
    return bool(getattr(pending, "is_done", False))


class SendProgress:
    """A counter on stderr: on a terminal only, and not before a second has passed."""

    def __init__(self, clock: Clock, *, is_wanted: bool) -> None:
        self._clock = clock
        self._is_wanted = is_wanted and sys.stderr.isatty()
        self._begin = clock.monotonic()
        self._count = 0
        self._bar: Progress | None = None

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        if self._bar is not None:
            self._bar.stop()

    def advance(self) -> None:
        """One more was confirmed."""
        self._count += 1
        if not self._is_wanted:
            return
        seconds = self._clock.monotonic() - self._begin
        if self._bar is None and seconds > _QUIET_SECONDS:
            columns = (SpinnerColumn(), MofNCompleteColumn(), TextColumn("messages, {task.fields[rate]:.0f}/s"))
            self._bar = Progress(*columns, console=Console(stderr=True), transient=True)
            self._bar.add_task("send", total=None, rate=0.0)
            self._bar.start()
        if self._bar is not None and self._count % 100 == 0:
            self._bar.update(self._bar.task_ids[0], completed=self._count, rate=self._count / seconds)
