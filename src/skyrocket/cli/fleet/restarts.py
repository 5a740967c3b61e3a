"""When a broker that died is started again: soon, later after each death, and a few times a minute at most."""

from collections import deque
from typing import Final, NamedTuple

FIRST_PAUSE_SECONDS: Final = 0.5
LONGEST_PAUSE_SECONDS: Final = 10.0
STABLE_SECONDS: Final = 60.0  # who lived so long is trusted again
PER_MINUTE: Final = 5
_MINUTE: Final = 60.0


class Pause(NamedTuple):
    """How long to wait before the next start."""

    seconds: float
    is_bound_reached: bool


class Restarts:
    """The deaths of one broker."""

    def __init__(self) -> None:
        self._next_pause = FIRST_PAUSE_SECONDS
        self._starts: deque[float] = deque(maxlen=PER_MINUTE)

    def pause_after(self, now: float, lived_seconds: float) -> Pause:
        """Note a death at this time; the caller waits and starts."""
        if lived_seconds >= STABLE_SECONDS:
            self._next_pause = FIRST_PAUSE_SECONDS
        pause = self._next_pause
        self._next_pause = min(2 * pause, LONGEST_PAUSE_SECONDS)
        until_allowed = self._starts[0] + _MINUTE - now if len(self._starts) == PER_MINUTE else 0.0
        chosen = Pause(max(pause, until_allowed), until_allowed > pause)
        self._starts.append(now + chosen.seconds)
        return chosen
