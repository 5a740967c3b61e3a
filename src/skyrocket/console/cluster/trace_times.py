"""How long sends, ways from the store to handlers, and handlers take: percentiles of what clients told lately."""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from skyrocket.format.trace import CallBegan, CallEnded, Sent, TraceEvent


@dataclass(frozen=True, slots=True)
class StageTimes:
    """One stage: sends of a topic, or what a group did with messages; times in ms."""

    stage: str  # send, wait (from the end of the send to the handler's begin) or consume
    name: str  # of the topic, or of the group
    count: int
    failures: int
    p50_ms: float
    p90_ms: float
    p99_ms: float
    slowest_ms: float


def stage_times(events: Iterable[TraceEvent]) -> list[StageTimes]:
    """Per topic and group, in the order of a message's life."""
    known = list(events)
    sends: dict[str, list[tuple[float, bool]]] = {}
    waits: dict[str, list[tuple[float, bool]]] = {}
    calls: dict[str, list[tuple[float, bool]]] = {}
    stored_ms: dict[str, int] = {}
    groups: dict[str, str] = {}
    for event in known:
        if isinstance(event, Sent):
            sends.setdefault(event.topic, []).append((event.cost_ms, event.succeeded))
            if event.succeeded:
                stored_ms[event.message_id] = event.timestamp + event.cost_ms
        elif isinstance(event, CallBegan):
            groups[event.request_id] = event.group
    for event in known:
        if isinstance(event, CallBegan) and event.retry_times == 0 and event.message_id in stored_ms:
            # Clocks of machines differ: a handler cannot begin before there is something to handle.
            waited = max(event.timestamp - stored_ms[event.message_id], 0)
            waits.setdefault(event.group, []).append((waited, True))
        elif isinstance(event, CallEnded):
            group = event.group or groups.get(event.request_id)
            if group is not None:
                calls.setdefault(group, []).append((event.cost_ms, event.succeeded))
    stages = (("send", sends), ("wait", waits), ("consume", calls))
    return [_times(stage, name, found) for stage, names in stages for name, found in sorted(names.items())]


def _times(stage: str, name: str, found: Sequence[tuple[float, bool]]) -> StageTimes:
    times = sorted(ms for ms, _ in found)
    failures = sum(not succeeded for _, succeeded in found)
    return StageTimes(stage, name, len(times), failures, *(percentile(times, share) for share in (0.5, 0.9, 0.99, 1.0)))


def percentile(ordered: Sequence[float], share: float) -> float:
    """The smallest value that this share of all does not pass."""
    place = max(-(-len(ordered) * round(share * 100) // 100) - 1, 0)
    return ordered[place]
