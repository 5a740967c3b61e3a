"""Time and chance of one run: events in the order of their moments, everything drawn from one seed."""

import heapq
import itertools
from collections.abc import Callable
from random import Random

Action = Callable[[], None]


class World:
    """Owns the clock, the random numbers and the history."""

    def __init__(self, seed: int) -> None:
        self.random = Random(seed)
        self.now = 0.0
        self.history: list[str] = []
        self._events: list[tuple[float, int, Action]] = []
        self._numbers = itertools.count()

    def after(self, seconds: float, action: Action) -> None:
        """Do something later; what happens at the same moment happens in the order in which it was asked for."""
        heapq.heappush(self._events, (self.now + seconds, next(self._numbers), action))

    def note(self, text: str) -> None:
        self.history.append(f"{self.now:9.3f}  {text}")

    def run(self, until: float) -> None:
        """Let time pass."""
        while self._events and self._events[0][0] <= until:
            self.now, _, action = heapq.heappop(self._events)
            action()
        self.now = until
