"""What is measured, and how fast it grows."""

import math
import statistics
from collections.abc import Iterable, Sequence
from dataclasses import asdict, dataclass
from typing import Any

MOST_EXPONENT = 1.0  # linear


@dataclass(frozen=True)
class Point:
    """One server with so many of something."""

    of: str  # what there are many of
    doing: str  # what the load does meanwhile
    count: int
    rate: float  # messages per second
    cpu_us: float  # of the server, per message
    memory_mb: float  # anonymous: what the server has for itself, without pages of its files
    p99_ms: float


@dataclass(frozen=True)
class Line:
    """The same for several sizes, smallest first."""

    of: str
    doing: str
    points: tuple[Point, ...]

    @property
    def cpu_exponent(self) -> float:
        """With which power of the number the processor time of a message grows; 0: not at all, 1: linear."""
        return self._exponent([point.cpu_us for point in self.points])

    @property
    def memory_exponent(self) -> float:
        """The same for memory."""
        return self._exponent([point.memory_mb for point in self.points])

    @property
    def is_worse_than_linear(self) -> bool:
        return max(self.cpu_exponent, self.memory_exponent) > MOST_EXPONENT

    def _exponent(self, values: Sequence[float]) -> float:
        """The steepest tenfold counts: what grows once and then no more, as at a limit, is no slope."""
        pairs = list(zip(self.points, values, strict=True))
        return max((_slope(pairs[:number], pair) for number, pair in enumerate(pairs) if number), default=0.0)


def _slope(before: Sequence[tuple[Point, float]], last: tuple[Point, float]) -> float:
    """Compared with the nearest that has a tenth or less; with the nearest of all when none has."""
    point, value = last
    tenths = [pair for pair in before if pair[0].count * 10 <= point.count]
    smaller, its_value = (tenths or before)[-1]
    return math.log(value / its_value) / math.log(point.count / smaller.count)


def lines_of(points: Iterable[Point]) -> list[Line]:
    """Medians of the rounds, as lines."""
    rounds: dict[tuple[str, str], dict[int, list[Point]]] = {}
    for point in points:
        rounds.setdefault((point.of, point.doing), {}).setdefault(point.count, []).append(point)
    return [
        Line(*name, tuple(_median(by_count[count]) for count in sorted(by_count))) for name, by_count in rounds.items()
    ]


def _median(points: Sequence[Point]) -> Point:
    first = points[0]
    rate, cpu_us, memory_mb, p99_ms = (
        statistics.median(values)
        for values in zip(*((each.rate, each.cpu_us, each.memory_mb, each.p99_ms) for each in points), strict=True)
    )
    return Point(first.of, first.doing, first.count, rate, cpu_us, memory_mb, p99_ms)


def table(lines: Sequence[Line]) -> str:
    """For people."""
    rows = [f"{'':<40} {'messages/s':>12} {'µs of the server':>17} {'memory MB':>10} {'p99 ms':>8}"]
    for line in lines:
        rows += [
            f"{f'{point.count:,} {line.of}: {line.doing}':<40} {point.rate:>12,.0f} {point.cpu_us:>17.1f}"
            f" {point.memory_mb:>10.0f} {point.p99_ms:>8.1f}"
            for point in line.points
        ]
        rows.append(
            f"  grows with the power {line.cpu_exponent:.2f} (µs) and {line.memory_exponent:.2f} (memory)"
            + (": WORSE THAN LINEAR" if line.is_worse_than_linear else "")
        )
    return "\n".join(rows)


def as_json(lines: Sequence[Line]) -> list[dict[str, Any]]:
    """For programs."""
    return [asdict(point) for line in lines for point in line.points]
