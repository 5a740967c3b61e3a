"""Work over very many queues, in slices: the loop serves others between one slice and the next.

A short walk ends within its first slice and waits for nothing. Of long ones only one at a time goes on, so a turn of
the loop is no longer for a hundred of them than for one.
"""

import asyncio
from collections.abc import Callable, Iterable, Iterator
from typing import Final, TypeVar

from skyrocket.clock import Clock

T = TypeVar("T")
R = TypeVar("R")

_SLICE_SECONDS: Final = 0.005


class Slices:
    """Shared by all who walk through the queues of a broker."""

    def __init__(self, clock: Clock) -> None:
        self._clock = clock
        self._long_walk = asyncio.Lock()

    async def map(self, visit: Callable[[T], R], items: Iterable[T]) -> list[R]:
        """What a function says of each; it must not rely on others standing still between two calls."""
        found: list[R] = []
        walk = iter(items)
        if self._ended(visit, walk, found):
            return found
        async with self._long_walk:
            while True:
                await asyncio.sleep(0)
                if self._ended(visit, walk, found):
                    return found

    def _ended(self, visit: Callable[[T], R], walk: Iterator[T], found: list[R]) -> bool:
        until = self._clock.monotonic() + _SLICE_SECONDS
        for item in walk:
            found.append(visit(item))
            if self._clock.monotonic() >= until:
                return False
        return True
