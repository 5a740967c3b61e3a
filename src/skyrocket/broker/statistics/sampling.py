"""Looks at every counter once a second, for as long as the broker runs."""

import asyncio
import time
from collections import deque
from collections.abc import Callable, Iterator
from typing import Final, NamedTuple

from skyrocket.broker.state.counters import BROKER_GET_NUMS, BROKER_PUT_NUMS, Counters
from skyrocket.clock import Clock, ServiceClock
from skyrocket.store.statistics import Statistics

_PERIOD_SECONDS: Final = 1.0
_TIDY_SECONDS: Final = 600.0
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
    """How fast the store is being written and read, by a sample of the counts each second."""

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


class DayTotals:
    """What had been counted when today and yesterday began, by the local time; 0 before the broker started."""

    def __init__(self, clock: Clock) -> None:
        self.this_morning = 0
        self.yesterday_morning = 0
        self._clock = clock
        self._day = self._today()

    def look(self, total: Callable[[], int]) -> None:
        """To be called now and then; it asks for the count when a day begins."""
        today = self._today()
        if today != self._day:
            self._day = today
            self.yesterday_morning, self.this_morning = self.this_morning, total()

    def _today(self) -> tuple[int, int]:
        local = time.localtime(self._clock.now_ms() / 1000)
        return local.tm_year, local.tm_yday


class Sampling:
    """Rates, items and the totals of days."""

    def __init__(
        self,
        clock: ServiceClock,
        store_statistics: Statistics,
        counters: Counters,
        tidy: Callable[[], None] = lambda: None,
    ) -> None:
        self.started_ms = clock.now_ms()
        self.counters = counters
        self.rates = Rates(clock, lambda: traffic(store_statistics))
        self.puts_by_day = DayTotals(clock)
        self.gets_by_day = DayTotals(clock)
        self._clock = clock
        self._tidy = tidy  # drops what nobody will ask for again
        self._next_tidying = clock.monotonic() + _TIDY_SECONDS

    def sample(self) -> None:
        """Take what is due."""
        for _ in self._steps():
            pass

    def _steps(self) -> Iterator[None]:
        self.rates.sample()
        yield from self.counters.sample()
        self.puts_by_day.look(lambda: self.counters.total(BROKER_PUT_NUMS))
        self.gets_by_day.look(lambda: self.counters.total(BROKER_GET_NUMS))
        if self._clock.monotonic() >= self._next_tidying:
            self._next_tidying = self._clock.monotonic() + _TIDY_SECONDS
            self._tidy()

    async def run(self) -> None:
        """Sample until cancelled; with many items others are served in between."""
        while True:
            for _ in self._steps():
                await asyncio.sleep(0)
            await self._clock.sleep(_PERIOD_SECONDS)


def traffic(statistics: Statistics) -> Traffic:
    """What the store has counted."""
    return Traffic(statistics.put_messages, statistics.get_found, statistics.get_missed, statistics.get_messages)
