"""How long things take, in classes that Prometheus can add up over servers: one bisection and two additions each."""

from bisect import bisect_left
from collections.abc import Sequence
from typing import Final

# Of servers: from half a millisecond to ten seconds, some 2.5 times longer each.
SERVER_BOUNDS: Final = (0.0005, 0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 2.5, 5.0, 10.0)
# Of programs that use them: a handler may take minutes.
CLIENT_BOUNDS: Final = (0.001, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 2.5, 5.0, 10.0, 30.0, 60.0, 300.0)


class Histogram:
    """Counts by upper bound in seconds; the last count has none."""

    __slots__ = ("bounds", "counts", "seconds")

    def __init__(self, bounds: Sequence[float] = SERVER_BOUNDS) -> None:
        self.bounds = bounds
        self.counts = [0] * (len(bounds) + 1)
        self.seconds = 0.0

    def add(self, seconds: float, times: int = 1) -> None:
        """So many took this long."""
        self.counts[bisect_left(self.bounds, seconds)] += times
        self.seconds += seconds * times
