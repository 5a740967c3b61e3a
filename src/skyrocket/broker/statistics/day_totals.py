"""What had been counted when today and yesterday began, by the broker's local time."""

import time
from collections.abc import Callable

from skyrocket.clock import Clock


class DayTotals:
    """Remembers a count at midnight; a broker that was started since has counted nothing before."""

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
