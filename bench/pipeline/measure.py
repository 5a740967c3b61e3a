"""Times of the same work, best of several, and lines that show them beside the floor."""

import time
from collections.abc import Callable
from typing import NamedTuple


class Rate(NamedTuple):
    """Messages and bytes of log in so many seconds."""

    what: str
    messages: int
    log_bytes: int
    seconds: float
    spec: float | None = None  # million messages per second that the design measured, on a quiet machine

    @property
    def million_per_s(self) -> float:
        return self.messages / self.seconds / 1e6

    @property
    def mb_per_s(self) -> float:
        return self.log_bytes / self.seconds / 1e6


def best_of(times: int, work: Callable[[], object]) -> float:
    """Seconds of the fastest run."""
    best = float("inf")
    for _ in range(times):
        start = time.perf_counter()
        work()
        best = min(best, time.perf_counter() - start)
    return max(best, 1e-9)


def cpu_of(times: int, work: Callable[[], object]) -> float:
    """Seconds of processor time of the cheapest run: for work of one thread, whatever else the machine does."""
    best = float("inf")
    for _ in range(times):
        start = time.process_time()
        work()
        best = min(best, time.process_time() - start)
    return max(best, 1e-9)


def show(floor: Rate, rates: list[Rate]) -> None:
    """A line each: rate, ratio to the floor, ratio to the design's figure."""
    print(f"{'':44} {'M msg/s':>8} {'MB/s':>8} {'of floor':>9} {'of design':>10}")
    for rate in [floor, *rates]:
        of_floor = f"{floor.seconds / rate.seconds * rate.log_bytes / floor.log_bytes:9.3f}"
        of_design = f"{rate.million_per_s / rate.spec:10.2f}" if rate.spec else f"{'–':>10}"
        print(f"{rate.what:44} {rate.million_per_s:8.3f} {rate.mb_per_s:8.0f} {of_floor} {of_design}", flush=True)
