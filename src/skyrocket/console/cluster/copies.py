"""Messages on their way from one topic to another: copies that run beside the pages, a few at a time."""

import asyncio
import contextlib
import itertools
from collections.abc import Awaitable, Callable
from dataclasses import dataclass, field
from typing import Final, Literal

from skyrocket.client.admin.admin import Admin
from skyrocket.client.core.errors import WrongUse
from skyrocket.client.core.settings import ClientSettings
from skyrocket.clock import Clock
from skyrocket.errors import SkyrocketError
from skyrocket.model.words import counted

_MOST_AT_ONCE: Final = 4
_MOST_KEPT: Final = 50
_FIRST_SECONDS: Final = 3.0


@dataclass(frozen=True, slots=True)
class CopyOrder:
    """What was stored in a while, to another topic."""

    source: str
    target: str
    since_ms: int
    until_ms: int
    most: int
    per_second: float  # 0: no limit


@dataclass(slots=True)
class Copy:
    """How far one is."""

    id: int
    order: CopyOrder
    messages: int  # that there were when it began
    began_ms: int
    account: str
    copied: int = 0
    state: Literal["running", "done", "stopped", "failed"] = "running"
    trouble: str = ""
    ended_ms: int | None = None
    error: SkyrocketError | None = None
    begun: asyncio.Event = field(default_factory=asyncio.Event)  # a first message was copied, or none will be

    @property
    def outcome(self) -> str:
        """For the audit."""
        told = f"{counted(self.copied, 'message')} of {self.messages} copied"
        return f"{self.state}: {told}{': ' + self.trouble if self.trouble else ''}"


Ended = Callable[[Copy], Awaitable[None]]


class Copies:
    """Those that run, and the last that have ended; they are gone with the process."""

    def __init__(self, clock: Clock) -> None:
        self._clock = clock
        self._copies: dict[int, Copy] = {}
        self._tasks: dict[int, asyncio.Task[None]] = {}
        self._numbers = itertools.count(1)

    def all(self) -> list[Copy]:
        """The newest first."""
        return list(reversed(self._copies.values()))

    def find(self, number: int) -> Copy | None:
        """One of them."""
        return self._copies.get(number)

    def start(self, settings: ClientSettings, order: CopyOrder, messages: int, account: str, ended: Ended) -> Copy:
        """Begin one, in the name of an account; `ended` hears of its end. Raises WrongUse when enough of them run."""
        if len(self._tasks) >= _MOST_AT_ONCE:
            raise WrongUse("{limit} copies run already: wait for one to end, or stop it", limit=_MOST_AT_ONCE)
        copy = Copy(next(self._numbers), order, messages, self._clock.now_ms(), account)
        self._copies[copy.id] = copy
        while len(self._copies) > _MOST_KEPT:
            del self._copies[next(number for number in self._copies if number not in self._tasks)]
        self._tasks[copy.id] = asyncio.create_task(self._run(copy, settings, ended), name=f"console-copy-{copy.id}")
        return copy

    async def refused(self, copy: Copy) -> None:
        """Wait a moment for the first message; raises why not even that one could be copied."""
        with contextlib.suppress(TimeoutError):
            await asyncio.wait_for(copy.begun.wait(), _FIRST_SECONDS)
        if copy.error is not None and copy.copied == 0:
            raise copy.error

    async def stop(self, number: int) -> None:
        """What was copied stays."""
        task = self._tasks.get(number)
        if task is not None:
            task.cancel()
            await asyncio.gather(task, return_exceptions=True)

    async def end(self) -> None:
        """Stop all."""
        for number in list(self._tasks):
            await self.stop(number)

    async def _run(self, copy: Copy, settings: ClientSettings, ended: Ended) -> None:
        def told(copied: int) -> None:
            copy.copied = copied
            copy.begun.set()

        order = copy.order
        try:
            # Its own: the account that began it may log out meanwhile.
            async with Admin(client=settings) as admin:
                await admin.copy_messages(
                    order.source,
                    order.target,
                    order.since_ms / 1000,
                    order.until_ms / 1000,
                    most=order.most,
                    rate=order.per_second,
                    told=told,
                )
            copy.state = "done"
        except SkyrocketError as error:
            copy.state, copy.trouble, copy.error = "failed", str(error), error
        except asyncio.CancelledError:
            copy.state = "stopped"
            raise
        finally:
            copy.ended_ms = self._clock.now_ms()
            del self._tasks[copy.id]
            copy.begun.set()
            await ended(copy)
