"""Work over very many queues, in slices: the loop serves others between one slice and the next.

All walks of one turn of the loop share a slice. Those that it is enough for end at once; the others go on in later
turns, one after the other, so a turn is no longer for a hundred long walks than for one.
"""

import asyncio
from collections.abc import Callable, Iterable, Iterator
from typing import Final, TypeVar

from skyrocket.clock import Clock
from skyrocket.protocol.errors import SystemBusy

T = TypeVar("T")
R = TypeVar("R")

_SLICE_SECONDS: Final = 0.005
_MAX_WAITING: Final = 64


class Slices:
    """Shared by all who walk through the queues of a broker."""

    def __init__(self, clock: Clock) -> None:
        self._clock = clock
        self._until: float | None = None  # when the slice of this turn ends; None before anybody has walked in it
        self._goes_on = asyncio.Lock()
        self._waiting = 0

    async def map(self, visit: Callable[[T], R], items: Iterable[T]) -> list[R]:
        """What a function says of each; others may change what it sees between two calls. Raises SystemBusy."""
        found: list[R] = []
        walk = iter(items)
        if self._ended(visit, walk, found):
            return found
        if self._waiting >= _MAX_WAITING:
            raise SystemBusy(f"[OVERLOAD]{self._waiting} requests over very many queues wait already, try again later")
        self._waiting += 1
        try:
            async with self._goes_on:
                while True:
                    await asyncio.sleep(0)
                    if self._ended(visit, walk, found):
                        return found
        finally:
            self._waiting -= 1

    async def in_thread(self, work: Callable[[], R]) -> R:
        """One piece that cannot be cut, such as the JSON of a long table: beside the loop, one at a time."""
        async with self._goes_on:
            return await asyncio.to_thread(work)

    def _ended(self, visit: Callable[[T], R], walk: Iterator[T], found: list[R]) -> bool:
        """Go on for as long as the turn's slice lasts; whether that was enough."""
        now = self._clock.monotonic()
        if self._until is None:
            self._until = now + _SLICE_SECONDS
            asyncio.get_running_loop().call_soon(self._next_turn)
        elif now >= self._until:
            return False
        for item in walk:
            found.append(visit(item))
            if self._clock.monotonic() >= self._until:
                return False
        return True

    def _next_turn(self) -> None:
        self._until = None
