"""A clock that stands still until it is told to go on."""

from skyrocket.clock import RealPauses

_START_MS = 1_760_000_000_000


class FakeClock(RealPauses):
    """A Clock for tests: two hours pass by `advance(hours=2)`; wall time may also be set, even back.

    Pauses take real time: a service looks at the clock as often as ever and finds what the test has set.
    """

    def __init__(self, now_ms: int = _START_MS) -> None:
        self._now_ms = now_ms
        self._monotonic = 0.0

    def now_ms(self) -> int:
        return self._now_ms

    def monotonic(self) -> float:
        return self._monotonic

    def advance(self, *, hours: float = 0, seconds: float = 0, ms: float = 0) -> None:
        """Let time pass."""
        passed_ms = hours * 3_600_000 + seconds * 1000 + ms
        assert passed_ms >= 0, "time does not go back by itself; use set"
        self._now_ms += int(passed_ms)
        self._monotonic += passed_ms / 1000

    def set(self, now_ms: int) -> None:
        """Set the wall time, as an operator or NTP would; the monotonic time does not notice."""
        self._now_ms = now_ms
