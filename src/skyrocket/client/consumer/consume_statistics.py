"""How fast a consumer is, per topic: what tools show as `consumerStatus`.

Totals only grow. They are sampled every ten seconds, and every ten minutes for the longer window; a rate is the
difference between now and the oldest sample that is kept:

    samples   ●····●····●····●····●····●····●  now        seven of them: one minute, or one hour

A retry topic has rates of its own, as in RocketMQ.
"""

from collections import deque
from collections.abc import Callable
from typing import Final, NamedTuple

from skyrocket.protocol.bodies.running_info import ConsumeStatus

SAMPLE_SECONDS: Final = 10.0
_SAMPLES: Final = 7
_MINUTE_SAMPLES_PER_HOUR_SAMPLE: Final = 60  # one every ten minutes


class Totals(NamedTuple):
    """Everything since the start; times are in milliseconds."""

    at: float  # monotonic seconds
    pulls: int = 0
    pull_ms: float = 0.0
    pulled: int = 0
    calls: int = 0
    call_ms: float = 0.0
    succeeded: int = 0
    failed: int = 0


class _TopicTotals:
    __slots__ = ("call_ms", "calls", "failed", "hour", "minute", "pull_ms", "pulled", "pulls", "succeeded")

    def __init__(self, now: float) -> None:
        self.pulls = self.pulled = self.calls = self.succeeded = self.failed = 0
        self.pull_ms = self.call_ms = 0.0
        self.minute = deque((Totals(now),), _SAMPLES)
        self.hour = deque((Totals(now),), _SAMPLES)

    def now(self, at: float) -> Totals:
        return Totals(at, self.pulls, self.pull_ms, self.pulled, self.calls, self.call_ms, self.succeeded, self.failed)


class ConsumeStatistics:
    """Of one consumer; `monotonic` gives seconds."""

    def __init__(self, monotonic: Callable[[], float]) -> None:
        self._monotonic = monotonic
        self._topics: dict[str, _TopicTotals] = {}
        self._rounds = 0

    def pulled(self, topic: str, seconds: float, count: int) -> None:
        """A pull brought so many messages; it took so long, the wait for them at the broker included."""
        totals = self._of(topic)
        totals.pulls += 1
        totals.pull_ms += seconds * 1000
        totals.pulled += count

    def consumed(self, topic: str, seconds: float, succeeded: int, failed: int) -> None:
        """A call of the handler has ended."""
        totals = self._topics.get(topic) or self._of(topic)
        totals.calls += 1
        totals.call_ms += seconds * 1000
        totals.succeeded += succeeded
        totals.failed += failed

    async def sample(self) -> None:
        """To be called every SAMPLE_SECONDS."""
        self._rounds += 1
        now = self._monotonic()
        for totals in self._topics.values():
            totals.minute.append(totals.now(now))
            if self._rounds % _MINUTE_SAMPLES_PER_HOUR_SAMPLE == 0:
                totals.hour.append(totals.now(now))

    def status(self, topic: str) -> ConsumeStatus:
        """The last minute of a topic; failed messages count for an hour, as does the time of calls that are rare."""
        totals = self._topics.get(topic)
        if totals is None:
            return ConsumeStatus()
        now = totals.now(self._monotonic())
        minute, hour = totals.minute[0], totals.hour[0]
        seconds = now.at - minute.at
        calls_since = minute if now.calls > minute.calls else hour
        return ConsumeStatus(
            pull_rt=_ratio(now.pull_ms - minute.pull_ms, now.pulls - minute.pulls),
            pull_tps=_ratio(now.pulled - minute.pulled, seconds),
            consume_rt=_ratio(now.call_ms - calls_since.call_ms, now.calls - calls_since.calls),
            consume_ok_tps=_ratio(now.succeeded - minute.succeeded, seconds),
            consume_failed_tps=_ratio(now.failed - minute.failed, seconds),
            consume_failed_messages=now.failed - hour.failed,
        )

    def _of(self, topic: str) -> _TopicTotals:
        totals = self._topics.get(topic)
        if totals is None:
            totals = self._topics[topic] = _TopicTotals(self._monotonic())
        return totals


def _ratio(value: float, by: float) -> float:
    return value / by if by > 0 else 0.0
