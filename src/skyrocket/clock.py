"""The only place that asks the time; everyone else receives a Clock."""

import asyncio
import time
from collections.abc import Hashable
from typing import Final, Protocol

_SILENCE_SECONDS: Final = 60.0
_MAX_KNOWN: Final = 1000


class Clock(Protocol):
    """Wall time for what is stored, monotonic time for what is measured."""

    def now_ms(self) -> int: ...

    def monotonic(self) -> float: ...


class ServiceClock(Clock, Protocol):
    """A clock that services pause by: where a test moves the time, it moves their pauses as well.

    A service that has messages waiting for a moment says so with `sleep_until`: a clock that is moved far stops at each
    such moment, so that everything happens in order.
    """

    async def sleep(self, seconds: float) -> None:
        """Until so much time has passed."""

    async def sleep_until(self, due_ms: int | None, at_most: float) -> None:
        """Until something is due (None: nothing is known to be), but look again after `at_most` seconds."""


class RealPauses:
    """Pauses that take as long as they say."""

    async def sleep(self, seconds: float) -> None:
        await asyncio.sleep(seconds)

    async def sleep_until(self, due_ms: int | None, at_most: float) -> None:
        await asyncio.sleep(look_again_after(due_ms, self.now_ms(), at_most))

    def now_ms(self) -> int:
        raise NotImplementedError


class SystemClock(RealPauses):
    """The machine's clock."""

    def now_ms(self) -> int:
        return time.time_ns() // 1_000_000

    def monotonic(self) -> float:
        return time.monotonic()


def look_again_after(due_ms: int | None, now_ms: int, at_most: float) -> float:
    """Seconds of such a pause; what is overdue was not taken, and is tried again after a moment."""
    return at_most if due_ms is None else min(at_most, max(due_ms - now_ms, 1) / 1000)


class Seldom:
    """Says of the same thing once a minute that it may be said: nobody can fill a log with it."""

    def __init__(self, clock: Clock) -> None:
        self._clock = clock
        self._silent_until: dict[Hashable, float] = {}

    def may_say(self, key: Hashable) -> bool:
        """Whether a minute has passed since this was true for the key."""
        now = self._clock.monotonic()
        if now < self._silent_until.get(key, 0.0):
            return False
        if len(self._silent_until) >= _MAX_KNOWN:
            self._silent_until.clear()
        self._silent_until[key] = now + _SILENCE_SECONDS
        return True
