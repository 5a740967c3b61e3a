"""Messages that wait at brokers: for their time, or for the end of their transaction."""

from dataclasses import dataclass
from typing import Final, Literal

from skyrocket.client.core.errors import NotOffered
from skyrocket.console.api.endpoint import Call, Done, Family
from skyrocket.console.api.values import BadInput

family = Family("Delayed and transactions")

_MOST: Final = 500
_STEPS: Final = (
    (60_000, "1 min"),
    (600_000, "10 min"),
    (3_600_000, "1 h"),
    (6 * 3_600_000, "6 h"),
    (86_400_000, "1 d"),
)


@dataclass(frozen=True, slots=True)
class TimersWanted:
    """Of one topic, or all."""

    topic: str = ""


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
    rows: list[TimerRow]
    histogram: list[DueStep]  # of the rows
    is_complete: bool


@family.get("/api/timers")
async def timers(call: Call, wanted: TimersWanted) -> Timers:
    """Messages that wait for their time."""
    counts = dict((await call.parts.view.waiting.get()).timers or {})
    try:
        found = await call.admin.pending_timers(wanted.topic or None, most=_MOST)
    except NotOffered:
        return Timers(False, counts, [], [], is_complete=False)
    rows = [TimerRow(each.broker_name, each.message_id, each.topic, list(each.keys), each.due_ms) for each in found]
    return Timers(True, counts, rows, _histogram(rows, call.now_ms), is_complete=len(rows) < _MOST)


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
    return Done(f"message {wanted.message_id} was taken back")


@dataclass(frozen=True, slots=True)
class HalfRow:
    """One transaction that waits for its end."""

    broker: str
    transaction_id: str
    topic: str
    producer_group: str
    keys: list[str]
    age_ms: int
    checks: int
    half_offset: int


@dataclass(frozen=True, slots=True)
class Halves:
    """Oldest first; `offered` is false at brokers of Apache RocketMQ."""

    offered: bool
    rows: list[HalfRow]
    is_complete: bool


@family.get("/api/transactions")
async def transactions(call: Call) -> Halves:
    """Transactions whose producer has not said how they end."""
    try:
        found = await call.admin.open_transactions(most=_MOST)
    except NotOffered:
        return Halves(False, [], is_complete=False)
    rows = [
        HalfRow(
            each.broker_name,
            each.transaction_id,
            each.topic,
            each.producer_group,
            list(each.keys),
            each.age_ms,
            each.checks,
            each.half_offset,
        )
        for each in found
    ]
    return Halves(True, rows, is_complete=len(rows) < _MOST)


@dataclass(frozen=True, slots=True)
class EndWanted:
    """Which transaction, and how it shall end."""

    broker: str
    transaction_id: str
    half_offset: int
    outcome: Literal["commit", "rollback"]


@family.post("/api/transactions/end")
async def end_transaction(call: Call, wanted: EndWanted) -> Done:
    """An operator's word in place of the producer's."""
    found = await call.admin.open_transactions(transaction_id=wanted.transaction_id)
    for each in found:
        if each.broker_name == wanted.broker and each.half_offset == wanted.half_offset:
            await call.admin.end_transaction(each, commit=wanted.outcome == "commit")
            return Done(f"transaction {wanted.transaction_id}: {wanted.outcome}")
    raise BadInput(f"transaction {wanted.transaction_id} has ended meanwhile, or was checked: look at the list again")
