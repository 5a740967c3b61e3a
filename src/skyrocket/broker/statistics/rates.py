"""How fast the store is being written and read: per second, over the last 10 seconds, minute and 10 minutes."""

from collections import deque
from collections.abc import Callable
from typing import Final, NamedTuple

from skyrocket.clock import Clock

SPANS_SECONDS: Final = (10, 60, 600)


class Traffic(NamedTuple):
    """Counts since the start."""

    put: int  # messages
    found: int  # reads that found some
    missed: int  # reads that found none
    transferred: int  # messages read


class _Sample(NamedTuple):
    taken_at: float  # monotonic
    traffic: Traffic


class Rates:
    """Samples of the counts, one a second."""

    def __init__(self, clock: Clock, read: Callable[[], Traffic]) -> None:
        self._clock = clock
        self._read = read
        self._samples: deque[_Sample] = deque(maxlen=SPANS_SECONDS[-1] + 1)

    def sample(self) -> None:
        """Remember the counts; called about once a second."""
        self._samples.append(_Sample(self._clock.monotonic(), self._read()))

    def per_second(self, count: Callable[[Traffic], int]) -> tuple[float, ...]:
        """A rate for each span. A broker that is younger than a span tells of the time it has lived."""
        return tuple(self._over(count, seconds) for seconds in SPANS_SECONDS)

    def _over(self, count: Callable[[Traffic], int], samples: int) -> float:
        if len(self._samples) < 2:
            return 0.0
        end, begin = self._samples[-1], self._samples[max(-samples - 1, -len(self._samples))]
        seconds = end.taken_at - begin.taken_at
        return (count(end.traffic) - count(begin.traffic)) / seconds if seconds > 0 else 0.0
