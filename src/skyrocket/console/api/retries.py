"""What a group has failed to consume and will get again, and when."""

from dataclasses import dataclass
from typing import Final

from skyrocket.client.admin.admin import Admin
from skyrocket.client.core.errors import NoRoute
from skyrocket.client.core.names import retry_topic
from skyrocket.console.api.endpoint import Call, Family
from skyrocket.console.api.values import BadInput
from skyrocket.console.cluster.retries import Retry, RetryReader, retry_topics

family = Family("Groups")

_MOST: Final = 500


@dataclass(frozen=True, slots=True)
class RetriesWanted:
    """How many of them."""

    most: int = 200


@dataclass(frozen=True, slots=True)
class RetryRow:
    """One message that comes again; `attempts` is None for a timer, which tells neither it nor the body."""

    message_id: str
    topic: str  # where it came from; "": not told
    retry_topic: str
    broker: str
    is_due: bool  # it is in the retry topic and waits for a client alone
    due_ms: int
    attempts: int | None
    keys: list[str]
    tags: str | None
    preview: str


@dataclass(frozen=True, slots=True)
class RetriesOfGroup:
    """Soonest first; `is_complete` is false when there are more than were looked at."""

    topics: list[str]  # the retry topics that there are
    due: int
    waiting: int
    next_ms: int | None  # when the first of those that wait is due
    rows: list[RetryRow]
    is_complete: bool


@family.get("/api/groups/{group}/retries")
async def retries(call: Call, wanted: RetriesWanted) -> RetriesOfGroup:
    """Messages of the group's retry topics: those that are due, and those that wait for their time."""
    if not 1 <= wanted.most <= _MOST:
        raise BadInput("most is {most}: 1 to {limit} are shown at once", most=wanted.most, limit=_MOST)
    name, view = call.path["group"], call.parts.view
    figures = (await view.group_figures()).get(name)
    members = await view.members.get(name)
    consumed = {*(figures.topics if figures else ()), *(members.subscriptions if members else ())}
    known = {*await view.topics.get(), *await _young(call.admin, retry_topic(name))}
    topics = retry_topics(name, consumed, (await view.groups.get()).keys(), known)
    reader = RetryReader(call.admin, call.parts.settings.client.effective_namespace(), call.now_ms)
    counted = (await view.waiting.get()).timers or {}
    due = await reader.due(name, topics)
    waiting = await reader.waiting(topics)
    timers = await reader.timers([topic for topic in topics if topic in counted], _MOST)
    later = sorted([*waiting.rows, *timers.rows], key=lambda row: row.due_ms)
    bodies = [row.message for row in (*due.rows, *later) if row.message is not None]
    texts = await call.parts.decoder.previews(bodies)
    previews = {message.message_id: text for message, text in zip(bodies, texts, strict=True)}
    rows = [_row(row, previews, is_due=True) for row in due.rows] + [_row(row, previews, is_due=False) for row in later]
    return RetriesOfGroup(
        topics,
        len(due.rows),
        len(later),
        later[0].due_ms if later else None,
        rows[: wanted.most],
        is_complete=due.is_complete and waiting.is_complete and timers.is_complete and len(rows) <= wanted.most,
    )


async def _young(admin: Admin, topic: str) -> list[str]:
    """The topic, if there is one: a group's first failure may be younger than the list of topics."""
    try:
        await admin.route(topic)
    except NoRoute:
        return []
    return [topic]


def _row(row: Retry, previews: dict[str, str], *, is_due: bool) -> RetryRow:
    return RetryRow(
        row.message_id,
        row.topic,
        row.retry_topic,
        row.broker,
        is_due,
        row.due_ms,
        row.attempts,
        row.keys,
        row.tags,
        "" if row.message is None else previews[row.message.message_id],
    )
