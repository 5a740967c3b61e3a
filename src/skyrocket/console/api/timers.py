"""Messages that wait for their time."""

from dataclasses import dataclass
from typing import Final

from skyrocket.client.admin.waiting_messages import PendingTimer
from skyrocket.console.api.endpoint import Call, Done, Family
from skyrocket.console.cluster.view import MOST_TIMERS
from skyrocket.model.words import said

family = Family("Delayed")

_MOST: Final = 500
_LATE_MS: Final = 60_000  # what was due and is still there a minute later is no answer that is a little old
_STEPS: Final = (
    (60_000, "1 min"),
    (600_000, "10 min"),
    (3_600_000, "1 h"),
    (6 * 3_600_000, "6 h"),
    (86_400_000, "1 d"),
)


@dataclass(frozen=True, slots=True)
class TimersWanted:
    """Of one topic, or all; with one key or message id, or all."""

    topic: str = ""
    key: str = ""


@dataclass(frozen=True, slots=True)
class TimerRow:
    """One message that waits for its time."""

    broker: str
    message_id: str
    topic: str
    keys: list[str]
    due_ms: int


@dataclass(frozen=True, slots=True)
class DueStep:
    """How many are due within a time, and not before the step in front of it."""

    within: str
    messages: int


@dataclass(frozen=True, slots=True)
class Timers:
    """Soonest first; `offered` is false where brokers tell numbers alone (Apache RocketMQ)."""

    offered: bool
    counts: dict[str, int]  # by topic
    rows: list[TimerRow]  # the first ones
    histogram: list[DueStep]  # of all that were looked at
    looked_at: int
    is_complete: bool  # whether the histogram has all


@family.get("/api/timers")
async def timers(call: Call, wanted: TimersWanted) -> Timers:
    """Messages that wait for their time."""
    view, now_ms = call.parts.view, call.now_ms
    counts = dict((await view.waiting.get()).timers or {})
    if wanted.key:  # brokers' index finds it among any number, at Apache's too
        found = [each for each in await call.admin.find_timers(wanted.key) if each.due_ms > now_ms]
        rows = [_row(each) for each in found if wanted.topic in ("", each.topic)]
        return Timers(True, counts, rows, _histogram(rows, now_ms), len(rows), is_complete=True)
    pending = await view.timers.get(wanted.topic)
    if pending is None:
        return Timers(False, counts, [], [], 0, is_complete=False)
    rows = [_row(each) for each in pending if each.due_ms > now_ms - _LATE_MS]
    histogram = _histogram(rows, now_ms)
    return Timers(True, counts, rows[:_MOST], histogram, len(rows), is_complete=len(pending) < MOST_TIMERS)


def _row(timer: PendingTimer) -> TimerRow:
    return TimerRow(timer.broker_name, timer.message_id, timer.topic, list(timer.keys), timer.due_ms)


def _histogram(rows: list[TimerRow], now_ms: int) -> list[DueStep]:
    steps, before = [], float("-inf")
    for step_ms, name in (*_STEPS, (float("inf"), "later")):
        steps.append(DueStep(name, sum(before < row.due_ms - now_ms <= step_ms for row in rows)))
        before = step_ms
    return steps


@dataclass(frozen=True, slots=True)
class RecallWanted:
    """A message that waits."""

    message_id: str


@family.post("/api/timers/recall")
async def recall(call: Call, wanted: RecallWanted) -> Done:
    """Take back a message that waits for its time."""
    await call.admin.recall(wanted.message_id)
    return Done(said("message {message_id} was taken back", message_id=wanted.message_id))
