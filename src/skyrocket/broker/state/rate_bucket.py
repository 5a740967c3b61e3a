"""So many a second, and four times as many at once."""

from typing import Final

from skyrocket.clock import Clock

_SECONDS_AT_ONCE: Final = 4.0


class RateBucket:
    """Full at the beginning; whoever takes finds it filling up again."""

    __slots__ = ("_at_once", "_clock", "_filled_at", "_left", "_per_second")

    def __init__(self, clock: Clock, per_second: float) -> None:
        self._clock = clock
        self._per_second = per_second
        self._at_once = self._left = max(per_second * _SECONDS_AT_ONCE, 1.0)
        self._filled_at = clock.monotonic()

    def take(self) -> bool:
        """Whether there is one more."""
        now = self._clock.monotonic()
        self._left = min(self._left + (now - self._filled_at) * self._per_second, self._at_once)
        self._filled_at = now
        if self._left < 1:
            return False
        self._left -= 1
        return True
