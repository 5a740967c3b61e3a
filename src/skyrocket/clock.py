"""The only place that asks the time; everyone else receives a Clock."""

import asyncio
import logging
import threading
import time
from collections.abc import Hashable
from typing import Final, Protocol

_logger = logging.getLogger(__name__)

GIVEN_BACK: Final = 0.01  # of the time that passes, while the wall clock is behind
_TOLD_FROM_MS: Final = 1000
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

    monotonic = staticmethod(time.monotonic)  # no call in between: it is asked for every chunk that a socket brings


class SteadyClock(RealPauses):
    """Wall time that never goes back, for what waits: a delay takes as long as it was asked for.

        the wall clock is set forward     followed at once
        the wall clock is set back        it goes on as if nothing had happened, but one part in a hundred slower, until
                                          the wall clock has caught up

    Any thread may ask.
    """

    def __init__(self, wall: Clock | None = None) -> None:
        self.wall: Clock = wall or SystemClock()
        self._lock = threading.Lock()
        self._now_ms = float(self.wall.now_ms())
        self._read_at = self.wall.monotonic()
        self._is_told = False

    def now_ms(self) -> int:
        with self._lock:
            wall_ms = self.wall.now_ms()  # first: what passes before the next line must not be added twice
            read_at = self.wall.monotonic()
            passed_ms = (read_at - self._read_at) * 1000
            ahead_ms = self._now_ms + passed_ms - wall_ms
            self._read_at = read_at
            self._now_ms += passed_ms - min(ahead_ms, passed_ms * GIVEN_BACK)
            if ahead_ms > _TOLD_FROM_MS and not self._is_told:
                _logger.warning(
                    "the wall clock was set back by_seconds=%.1f: what waits goes by the time that has passed, and the"
                    " broker's time comes nearer by a second in %d",
                    ahead_ms / 1000,
                    round(1 / GIVEN_BACK),
                )
            self._is_told = ahead_ms > _TOLD_FROM_MS
            return int(self._now_ms)

    def monotonic(self) -> float:
        return self.wall.monotonic()


def wall_clock(clock: Clock) -> Clock:
    """The clock that people and files go by."""
    return clock.wall if isinstance(clock, SteadyClock) else clock


def ahead_of_wall_ms(clock: Clock) -> int:
    """By how much a clock is ahead since the wall clock was set back; 0 when it was not."""
    return max(0, clock.now_ms() - clock.wall.now_ms()) if isinstance(clock, SteadyClock) else 0


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
