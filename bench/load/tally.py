"""What one worker has counted."""

import re
from collections import Counter
from dataclasses import dataclass, field

from bench.load.histogram import Histogram

_NUMBER = re.compile(r"\d+")  # of a remark: the same refusal with another number is the same
_AT_ONCE = 8192
_KEPT_ERRORS = 20  # different texts


@dataclass
class Tally:
    """Requests and messages in the measured window, and acknowledged messages over the whole run."""

    begin_at: float = float("inf")  # of the measured window; until it is known all counts as warm-up
    end_at: float = float("inf")
    requests: int = 0
    messages: int = 0
    acknowledged: int = 0  # messages, warm-up and the last answers included
    unanswered: int = 0  # requests that had no answer when the run ended
    overdue: int = 0  # requests of an open loop that could not be sent in time at all
    errors: Counter[str] = field(default_factory=Counter)
    latencies: Histogram = field(default_factory=Histogram)
    # Latencies that are not in the histogram yet: numpy wants many at once.
    _uncounted: list[float] = field(default_factory=list, init=False)

    def answered(self, now: float, seconds: list[float], messages: int) -> None:
        """Successful answers that came together."""
        self.acknowledged += messages
        if self.begin_at <= now < self.end_at:
            self.requests += len(seconds)
            self.messages += messages
            self._uncounted += seconds
            if len(self._uncounted) >= _AT_ONCE:
                self._count()

    def _count(self) -> None:
        self.latencies.add(self._uncounted)
        self._uncounted.clear()

    def refused(self, now: float, code: int, remark: str | None) -> None:
        """An answer that refuses; in the warm-up it does not count: a server may need it."""
        if now >= self.begin_at:
            self.failed(f"code {code}: {_NUMBER.sub('…', remark or '')}")

    def failed(self, what: str) -> None:
        """Something that must not happen, as a connection that broke."""
        self.errors[what if what in self.errors or len(self.errors) < _KEPT_ERRORS else "others"] += 1

    def merge(self, other: "Tally") -> None:
        """Add what another worker counted."""
        self.requests += other.requests
        self.messages += other.messages
        self.acknowledged += other.acknowledged
        self.unanswered += other.unanswered
        self.overdue += other.overdue
        self.errors += other.errors
        self.latencies.merge(other.latencies)

    def as_json(self) -> dict[str, object]:
        """For the way from a worker to its parent."""
        self._count()
        return {
            "requests": self.requests,
            "messages": self.messages,
            "acknowledged": self.acknowledged,
            "unanswered": self.unanswered,
            "overdue": self.overdue,
            "errors": dict(self.errors),
            "latencies": self.latencies.as_json(),
        }

    @classmethod
    def from_json(cls, fields: dict[str, object]) -> "Tally":
        """What `as_json` gave."""
        errors, latencies = fields.pop("errors"), fields.pop("latencies")
        if not isinstance(errors, dict) or not isinstance(latencies, dict):
            raise TypeError("no tally")
        numbers = {name: int(str(value)) for name, value in fields.items()}
        return cls(errors=Counter(errors), latencies=Histogram.from_json(latencies), **numbers)
