"""Slow and failing brokers rest for a while: how long, as a table; who rests, as a record.

Only with `send_latency_fault_enable`. A broker that answers slowly, fails or refuses is not available for the time that
its latency stands for; a failure counts as 10 s.
"""

from bisect import bisect_right
from collections import defaultdict
from dataclasses import dataclass
from typing import Final

LATENCY_MAX_MS: Final = (50, 100, 550, 1800, 3000, 5000, 15000)
NOT_AVAILABLE_MS: Final = (0, 0, 2000, 5000, 6000, 10000, 30000)
ISOLATION_LATENCY_MS: Final = 10_000
_SMOOTHING: Final = 0.2


def rest_ms(latency_ms: float) -> int:
    """How long a broker rests after so slow an answer."""
    step = bisect_right(LATENCY_MAX_MS, latency_ms)
    return NOT_AVAILABLE_MS[step - 1] if step else 0


@dataclass(slots=True)
class _Record:
    average_ms: float | None = None
    rests_until: float = 0.0
    is_reachable: bool = True


class BrokerFaults:
    """What sends have shown of each broker; times are monotonic seconds."""

    def __init__(self) -> None:
        self._records: defaultdict[str, _Record] = defaultdict(_Record)

    def succeeded(self, broker_name: str, seconds: float, now: float) -> None:
        """An answer came."""
        record = self._records[broker_name]
        latency_ms = seconds * 1000
        known = record.average_ms
        record.average_ms = latency_ms if known is None else known + _SMOOTHING * (latency_ms - known)
        record.is_reachable = True
        self._rest(record, latency_ms, now)

    def failed(self, broker_name: str, now: float, *, reachable: bool) -> None:
        """It refused, or there was no answer."""
        record = self._records[broker_name]
        record.is_reachable = reachable
        self._rest(record, ISOLATION_LATENCY_MS, now)

    def is_available(self, broker_name: str, now: float) -> bool:
        """Whether it does not rest."""
        return now >= self._records[broker_name].rests_until

    def is_reachable(self, broker_name: str) -> bool:
        """Whether its last answer was not a failure of the network."""
        return self._records[broker_name].is_reachable

    def average_ms(self, broker_name: str) -> float:
        """The moving average of its latency; 0 for one that was not tried."""
        return self._records[broker_name].average_ms or 0.0

    def _rest(self, record: _Record, latency_ms: float, now: float) -> None:
        rest = rest_ms(latency_ms)
        if rest:
            record.rests_until = max(record.rests_until, now + rest / 1000)
