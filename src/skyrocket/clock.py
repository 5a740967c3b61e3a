"""The only place that asks the time; everyone else receives a Clock."""

import time
from typing import Protocol


class Clock(Protocol):
    """Wall time for what is stored, monotonic time for what is measured."""

    def now_ms(self) -> int: ...

    def monotonic(self) -> float: ...


class SystemClock:
    """The machine's clock."""

    def now_ms(self) -> int:
        return time.time_ns() // 1_000_000

    def monotonic(self) -> float:
        return time.monotonic()
