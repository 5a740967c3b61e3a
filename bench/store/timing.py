"""Fair timing on a noisy machine.

Other processes run, the clock of the processor changes, and memory that a virtual machine touches for the first time
costs many times what it costs later. Therefore everything stays on one core, memory and files are touched first, floor
and subject take turns, and processor time is taken beside wall time. An absolute value is that of the best round,
because noise only ever adds; a ratio is the median of the ratios of neighbouring rounds, because what disturbed the one
most likely disturbed the other.
"""

import gc
import mmap
import os
import statistics
import time
from collections.abc import Callable
from dataclasses import dataclass
from types import TracebackType

PAGE = 4096


def pin_to_one_core() -> int | None:
    """Keep this process and its children on one core; its number, or None where the system cannot."""
    if not hasattr(os, "sched_setaffinity"):
        return None
    core = max(os.sched_getaffinity(0))
    os.sched_setaffinity(0, {core})
    return core


def warm_memory(length: int) -> None:
    """Touch memory once and give it back: the next one who gets these pages finds them backed by the host."""
    with mmap.mmap(-1, length) as memory:
        for position in range(0, length, PAGE):
            memory[position] = 1


def warm_file(path: str, start: int, length: int) -> None:
    """Bring a part of a file into the page cache, ready to be written; its content stays."""
    fd = os.open(path, os.O_RDWR)
    try:
        with mmap.mmap(fd, os.fstat(fd).st_size) as content:
            warm_map(content, start, length)
    finally:
        os.close(fd)


def warm_map(content: mmap.mmap, start: int, length: int) -> None:
    """Touch the pages of a map, for writing; its content stays."""
    for position in range(start - start % PAGE, min(start + length, len(content)), PAGE):
        content[position] = content[position]


@dataclass(frozen=True, slots=True)
class Round:
    """One timed piece of work."""

    units: int
    wall_seconds: float
    cpu_seconds: float

    @property
    def wall(self) -> float:
        """Seconds per unit."""
        return self.wall_seconds / self.units

    @property
    def cpu(self) -> float:
        """Processor seconds per unit, of all threads."""
        return self.cpu_seconds / self.units


class Stopwatch:
    """Times what happens inside of `with`; several such pieces add up."""

    def __init__(self) -> None:
        self._wall_seconds = 0.0
        self._cpu_seconds = 0.0
        self._began = (0.0, 0.0)

    def __enter__(self) -> "Stopwatch":
        self._began = time.perf_counter(), time.process_time()
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, at: TracebackType | None) -> None:
        self._cpu_seconds += time.process_time() - self._began[1]
        self._wall_seconds += time.perf_counter() - self._began[0]

    def round(self, units: int) -> Round:
        return Round(units, self._wall_seconds, self._cpu_seconds)


@dataclass(frozen=True, slots=True)
class Series:
    """All rounds of one subject."""

    rounds: list[Round]

    @property
    def cpu(self) -> float:
        """Processor seconds per unit in the best round."""
        return min(each.cpu for each in self.rounds)

    @property
    def wall(self) -> float:
        """Seconds per unit in the best round."""
        return min(each.wall for each in self.rounds)

    @property
    def spread(self) -> float:
        """By which part the median round was slower than the best, in processor time."""
        return statistics.median(each.cpu for each in self.rounds) / self.cpu - 1

    @property
    def wall_spread(self) -> float:
        return statistics.median(each.wall for each in self.rounds) / self.wall - 1


def cpu_ratio(above: Series, below: Series) -> float:
    """How the processor times of two subjects that took turns compare."""
    return statistics.median(a.cpu / b.cpu for a, b in zip(above.rounds, below.rounds, strict=True))


def wall_ratio(above: Series, below: Series) -> float:
    return statistics.median(a.wall / b.wall for a, b in zip(above.rounds, below.rounds, strict=True))


def take_turns(rounds: int, *subjects: Callable[[], Round]) -> list[Series]:
    """Run the subjects one after the other, so many times over; garbage is collected in between."""
    results: list[list[Round]] = [[] for _ in subjects]
    for _ in range(rounds):
        for subject, result in zip(subjects, results, strict=True):
            gc.collect()
            result.append(subject())
    return [Series(result) for result in results]
