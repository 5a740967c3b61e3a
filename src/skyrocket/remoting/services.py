"""Loops that run beside a server for as long as it lives; one that dies is seen, run again, and in the end believed.

    ends with an error ─▶ logged ─▶ run again after 1, 2, 4, … 30 s ─▶ … ─▶ six deaths within five minutes: failed()

A single bad moment (a disk that hesitates, a table in an odd state) must not take a server's messages away from all its
clients; a loop that cannot live at all must not be missing in silence either: who waits for `failed` stops the program.
"""

import asyncio
import logging
from collections import deque
from collections.abc import Callable, Coroutine
from typing import Any, Final, NoReturn

from skyrocket.clock import Clock, SystemClock
from skyrocket.errors import SkyrocketError

_logger = logging.getLogger(__name__)

Work = Callable[[], Coroutine[Any, Any, None]]

FIRST_PAUSE_SECONDS: Final = 1.0
LONGEST_PAUSE_SECONDS: Final = 30.0
DEATHS_AT_MOST: Final = 5
WITHIN_SECONDS: Final = 300.0


class ServiceFailed(SkyrocketError):
    """A service died again and again."""


class Services:
    """The loops of one owner, which must call `end`."""

    def __init__(self, clock: Clock | None = None, *, first_pause_seconds: float = FIRST_PAUSE_SECONDS) -> None:
        self._clock = clock or SystemClock()
        self._first_pause_seconds = first_pause_seconds
        self._tasks: list[asyncio.Task[None]] = []
        self._gave_up = asyncio.Event()
        self._failure: ServiceFailed | None = None

    def start(self, work: Work, name: str | None = None) -> None:
        """Run a loop until `end`; `work` makes a new one after a death."""
        name = name or work.__qualname__
        self._tasks.append(asyncio.create_task(self._keep_alive(work, name), name=name))

    async def failed(self) -> NoReturn:
        """Wait for a service that cannot live; raises ServiceFailed."""
        await self._gave_up.wait()
        assert self._failure is not None
        raise self._failure

    async def end(self) -> None:
        """Cancel all loops and wait for them."""
        for task in self._tasks:
            task.cancel()
        await asyncio.gather(*self._tasks, return_exceptions=True)
        self._tasks.clear()

    async def _keep_alive(self, work: Work, name: str) -> None:
        deaths: deque[float] = deque()
        while True:
            try:
                return await work()
            except Exception as error:  # a service loop is an edge: whatever it died of, it is run again
                now = self._clock.monotonic()
                deaths.append(now)
                while now - deaths[0] > WITHIN_SECONDS:
                    deaths.popleft()
                if len(deaths) > DEATHS_AT_MOST:
                    return self._give_up(name, len(deaths), error)
                pause = min(self._first_pause_seconds * 2 ** (len(deaths) - 1), LONGEST_PAUSE_SECONDS)
                _logger.error(
                    "a service died and is run again service=%s deaths=%d pause_s=%g",
                    name,
                    len(deaths),
                    pause,
                    exc_info=error,
                )
            await asyncio.sleep(pause)

    def _give_up(self, name: str, deaths: int, error: Exception) -> None:
        _logger.error("a service cannot live service=%s deaths=%d", name, deaths, exc_info=error)
        self._failure = self._failure or ServiceFailed(
            f"{name} died {deaths} times within {WITHIN_SECONDS:g} s, at last of {type(error).__name__}: {error}. "
            "Nothing works for long without it, so the program stops; the log above shows each death"
        )
        self._gave_up.set()
