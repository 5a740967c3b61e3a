"""Numbers over time."""

from dataclasses import dataclass
from typing import Final

from skyrocket.console.api.endpoint import Call, Family
from skyrocket.console.api.values import BadInput
from skyrocket.console.history.series import HOUR_MS, Sample, thinned

family = Family("History")

_LONGEST_HOURS: Final = 366 * 24
_MOST_SAMPLES: Final = 1500


@dataclass(frozen=True, slots=True)
class HistoryWanted:
    """`series`: in:cluster, out:cluster, lag:cluster, dead:cluster, in:topic:T, lag:group:G, late:group:G (seconds),
    out:group:G, dead:group:G, in:broker:B:0, out:broker:B:0, disk:broker:B:0."""

    series: str
    hours: float = 1.0


@dataclass(frozen=True, slots=True)
class History:
    """Minutes for a week, hours before; in longer spans one stands for several: worst of a lag, mean of a rate."""

    series: str
    from_ms: int
    to_ms: int
    samples: list[Sample]


@family.get("/api/history")
async def history(call: Call, wanted: HistoryWanted) -> History:
    """One series over the last hours."""
    if not 0 < wanted.hours <= _LONGEST_HOURS:
        raise BadInput("hours is {hours:g}: 0 to {limit} are kept", hours=wanted.hours, limit=_LONGEST_HOURS)
    to_ms = call.now_ms
    from_ms = to_ms - round(wanted.hours * HOUR_MS)
    samples = await call.parts.series.between(wanted.series, from_ms, to_ms)
    return History(wanted.series, from_ms, to_ms, thinned(wanted.series, samples, _MOST_SAMPLES))
