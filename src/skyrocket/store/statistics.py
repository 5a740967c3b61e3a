"""Counts and times of the store, cheap enough to be kept for every message."""

from bisect import bisect_right
from collections.abc import Callable

# Upper bounds in ms of RocketMQ's latency classes; the last class has none.
LATENCY_BOUNDS_MS = (1, 10, 50, 100, 200, 500, 1000, 2000, 3000, 4000, 5000, 10_000)


class LatencyHistogram:
    """How many puts took how long; messages put together share their time."""

    bounds = tuple(bound / 1000 for bound in LATENCY_BOUNDS_MS)  # in seconds

    def __init__(self) -> None:
        self.seconds = 0.0  # of all together
        self.counts = [0] * (len(LATENCY_BOUNDS_MS) + 1)
        self.max_ms = 0.0
        self.on_slow: Callable[[float], None] | None = None  # told of puts of a millisecond or more, in their thread

    def add(self, milliseconds: float, messages: int = 1) -> None:
        self.seconds += milliseconds * messages / 1000
        if milliseconds < 1:  # nearly always
            self.counts[0] += messages
            return
        self.max_ms = max(self.max_ms, milliseconds)
        self.counts[bisect_right(LATENCY_BOUNDS_MS, milliseconds)] += messages
        if self.on_slow is not None:
            self.on_slow(milliseconds)

    @property
    def total(self) -> int:
        return sum(self.counts)


class Statistics:
    """Counters since the start; the broker makes rates of them."""

    def __init__(self) -> None:
        self.put_refused = 0
        self.get_found = 0  # reads that returned something
        self.get_missed = 0
        self.get_messages = 0
        self.put_latency = LatencyHistogram()

    @property
    def put_messages(self) -> int:
        return self.put_latency.total
