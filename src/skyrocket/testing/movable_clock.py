"""A clock that goes on like the machine's and can be moved forward; who pauses by it is moved along.

    services ─▶ sleep, sleep_until ─▶ wait here, each with the time at which it wakes
                                          ▲
    advance ─▶ move_to ──────────────────┘ who has slept enough by then is woken; returns when all sleep again

Everything but asking the time happens in one event loop.
"""

import asyncio
import bisect
import sys
import time
from dataclasses import dataclass
from typing import Any, Final

from skyrocket.clock import look_again_after
from skyrocket.store.disk import Disk

WORK_SECONDS: Final = 10.0


# Linux: CLOCK_REALTIME_COARSE, some milliseconds behind and without a name in Python. Files get their times from it.
_FILE_CLOCK: Final = 5 if sys.platform == "linux" else time.CLOCK_REALTIME


def file_time_ms() -> int:
    """The time that a file which is written now would get."""
    return time.clock_gettime_ns(_FILE_CLOCK) // 1_000_000


class ServiceStuck(AssertionError):
    """A service did not come to rest after the clock was moved."""


@dataclass(slots=True, eq=False)
class _Sleeper:
    task: "asyncio.Task[Any]"
    woken: "asyncio.Future[None]"
    until: float  # monotonic, of this clock
    due_ms: int | None
    looks_again: bool  # whenever the clock is moved


class MovableClock:
    """Real time plus what it was moved by."""

    def __init__(self) -> None:
        self._moved_ms = 0
        # What the distance was from which real time on: for times that the machine noted, those of files.
        self._moves: list[tuple[int, int]] = []
        self._sleepers: dict[_Sleeper, None] = {}
        self._working: dict[asyncio.Task[Any], None] = {}  # services that do not sleep now
        self._seen: set[asyncio.Task[Any]] = set()

    # ── the time ─────────────────────────────────────────────────────────────────────────────────────────────────────

    def now_ms(self) -> int:
        return time.time_ns() // 1_000_000 + self._moved_ms

    def monotonic(self) -> float:
        return time.monotonic() + self._moved_ms / 1000

    def from_file_ms(self, real_ms: int) -> int:
        """What this clock showed when the kernel gave a file this time."""
        at = bisect.bisect_right(self._moves, (real_ms, 1 << 62))
        return real_ms + (self._moves[at - 1][1] if at else 0)

    # ── pauses ───────────────────────────────────────────────────────────────────────────────────────────────────────

    async def sleep(self, seconds: float) -> None:
        await self._pause(seconds, None, looks_again=False)

    async def sleep_until(self, due_ms: int | None, at_most: float) -> None:
        await self._pause(look_again_after(due_ms, self.now_ms(), at_most), due_ms, looks_again=True)

    async def _pause(self, seconds: float, due_ms: int | None, *, looks_again: bool) -> None:
        loop, task = asyncio.get_running_loop(), asyncio.current_task()
        assert task is not None
        if task not in self._seen:
            self._seen.add(task)
            task.add_done_callback(self._ended)
        self._working.pop(task, None)
        sleeper = _Sleeper(task, loop.create_future(), self.monotonic() + seconds, due_ms, looks_again)
        self._sleepers[sleeper] = None
        timer = loop.call_later(seconds, self._wake, sleeper)
        try:
            await sleeper.woken
        finally:
            timer.cancel()
            self._sleepers.pop(sleeper, None)

    def _wake(self, sleeper: _Sleeper) -> None:
        if sleeper in self._sleepers and not sleeper.woken.done():  # else its task is being cancelled
            del self._sleepers[sleeper]
            self._working[sleeper.task] = None
            sleeper.woken.set_result(None)

    def _ended(self, task: "asyncio.Task[Any]") -> None:
        self._seen.discard(task)
        self._working.pop(task, None)

    # ── moves ────────────────────────────────────────────────────────────────────────────────────────────────────────

    def next_due_ms(self) -> int | None:
        """The first moment that a service waits for."""
        return min((sleeper.due_ms for sleeper in self._sleepers if sleeper.due_ms is not None), default=None)

    async def move_to(self, now_ms: int) -> None:
        """Let it be so late, wake who has slept enough, and wait until all sleep again. Raises ServiceStuck."""
        distance = now_ms - self.now_ms()
        if distance > 0:
            self._moved_ms += distance
            real_ms = file_time_ms()
            if self._moves and self._moves[-1][0] == real_ms:
                self._moves.pop()
            self._moves.append((real_ms, self._moved_ms))
        now = self.monotonic()
        for sleeper in sorted(self._sleepers, key=lambda sleeper: sleeper.until):
            if sleeper.looks_again or sleeper.until <= now:
                self._wake(sleeper)
        await self._all_asleep()

    async def look_again(self) -> None:
        """Let services that look for what is due do so now."""
        await self.move_to(self.now_ms())

    async def _all_asleep(self) -> None:
        deadline = time.monotonic() + WORK_SECONDS
        turns = 0
        while self._working:
            if time.monotonic() > deadline:
                names = ", ".join(sorted(task.get_name() for task in self._working))
                raise ServiceStuck(f"{WORK_SECONDS:g} s after the clock was moved these still work: {names}")
            turns += 1
            await asyncio.sleep(0 if turns < 100 else 0.001)


class MovedDisk(Disk):
    """The real disk, seen from a moved clock: for stores that live as long as a test."""

    def __init__(self, clock: MovableClock) -> None:
        super().__init__()
        self._clock = clock

    def modified_ms(self, path: str) -> int:
        return self._clock.from_file_ms(super().modified_ms(path))

    def used_ratio(self, path: str) -> float:
        """How full a developer's disk is must not decide over a test; a write that finds no room still fails."""
        return 0.0
