"""Counters as they stood at regular moments, so that one can tell what the last minute, hour and day brought.

A span remembers when its last samples were taken, for all items alike. An item remembers only those samples at which
its counters had changed, so ten thousand idle queues cost nothing when a sample is taken.
"""

from collections import deque
from collections.abc import Iterator, Sequence
from typing import Final

from skyrocket.protocol.bodies.statistics import StatsItem

MINUTE_MS: Final = 60_000
HOUR_MS: Final = 3_600_000
_AT_ONCE: Final = 1000

_Sample = tuple[int, int, int]  # number of the sample, sum, times; holds until the item's next sample


class Span:
    """The last samples: one every `period_ms`, `kept` of them. Number 0 lies one period before the first."""

    def __init__(self, place: int, period_ms: int, kept: int, now_ms: int) -> None:
        self.place = place  # among the spans of an item
        self.bit = 1 << place
        self.period_ms = period_ms
        self.number = 0  # of the newest sample
        self.due_ms = now_ms + period_ms
        self.changed: list[Item] = []  # since the newest sample
        self._taken_ms: deque[int] = deque(maxlen=kept)

    @property
    def first(self) -> int:
        """The number of the oldest sample that is remembered."""
        return self.number - max(len(self._taken_ms) - 1, 0)

    def take(self, now_ms: int) -> Iterator[None]:
        """A new sample of everything that has changed, in steps between which others may work."""
        if not self._taken_ms:
            self._taken_ms.append(now_ms - self.period_ms)
        self.number += 1
        self._taken_ms.append(now_ms)
        self.due_ms += self.period_ms
        if self.due_ms <= now_ms:  # the machine slept
            self.due_ms = now_ms + self.period_ms
        changed, self.changed = self.changed, []
        number, first, place, others = self.number, self.first, self.place, ~self.bit
        for begin in range(0, len(changed), _AT_ONCE):
            for item in changed[begin : begin + _AT_ONCE]:
                item.waits &= others
                samples = item.samples[place]
                samples.append((number, item.sum, item.times))
                while len(samples) > 1 and samples[1][0] <= first:
                    del samples[0]
            yield

    def milliseconds_since(self, number: int) -> int:
        """From a sample that is remembered to the newest."""
        return self._taken_ms[-1] - self._taken_ms[number - self.number - 1]


class Item:
    """One statistic: how much in all, in how many goes, and its samples in each span."""

    __slots__ = ("_born", "samples", "sum", "times", "waits")

    def __init__(self, spans: Sequence[Span]) -> None:
        self.sum = 0
        self.times = 0
        self.waits = 0  # a bit for each span that will take a sample of it
        self.samples: tuple[list[_Sample], ...] = tuple([] for _ in spans)
        self._born = tuple(span.number for span in spans)  # all samples up to these are zero

    def summary(self, span: Span) -> StatsItem:
        """What a span brought, between its first sample and its last."""
        first = max(self._born[span.place], span.first)
        if first >= span.number:
            return StatsItem()
        samples = self.samples[span.place]
        (_, sum_before, times_before), (_, sum_after, times_after) = _at(samples, first), _at(samples, span.number)
        total, times = sum_after - sum_before, times_after - times_before
        milliseconds = span.milliseconds_since(first)
        return StatsItem(
            sum=total,
            tps=total * 1000 / milliseconds if milliseconds > 0 else 0.0,
            average=total / times if times else 0.0,
        )


def _at(samples: Sequence[_Sample], number: int) -> _Sample:
    return next((sample for sample in reversed(samples) if sample[0] <= number), (0, 0, 0))
