"""Messages of a topic copied to another one: how many they would be, and how far the copies are that run."""

from dataclasses import dataclass
from typing import Final

from skyrocket.console.api.endpoint import Call, Done, Family
from skyrocket.console.api.topics import GroupOfTopic, groups_of
from skyrocket.console.api.values import BadInput
from skyrocket.console.cluster.copies import Copy, CopyOrder
from skyrocket.format.properties import whole_number
from skyrocket.model.words import said

family = Family("Topics")

_MOST: Final = 1_000_000


@dataclass(frozen=True, slots=True)
class CopyWanted:
    """What was stored from one time to before another, the oldest `most` of it."""

    target: str
    since_ms: int
    until_ms: int | None = None  # None: now
    most: int = 10_000
    per_second: float = 100.0  # 0: as fast as it goes


@dataclass(frozen=True, slots=True)
class CopyPlan:
    """What a copy would do."""

    messages: int  # stored in that time
    copied: int  # of them
    seconds: float | None  # at least; None: there is no limit of the rate
    groups: list[GroupOfTopic]  # of the other topic: they get the copies


@family.get("/api/topics/{topic}/copy")
async def preview_copy(call: Call, wanted: CopyWanted) -> CopyPlan:
    """How many messages a copy would send, how long it would take, and which groups would get them; changes nothing."""
    order, messages = await _checked(call, wanted)
    copied = min(messages, order.most)
    seconds = copied / order.per_second if order.per_second else None
    return CopyPlan(messages, copied, seconds, await groups_of(call, order.target))


async def _checked(call: Call, wanted: CopyWanted) -> tuple[CopyOrder, int]:
    if not 1 <= wanted.most <= _MOST:
        raise BadInput("most is {most}: 1 to {limit:,} are copied at once", most=wanted.most, limit=_MOST)
    if wanted.per_second < 0:
        raise BadInput("per_second is {per_second:g}: give a rate, or 0 for no limit", per_second=wanted.per_second)
    until_ms = call.now_ms if wanted.until_ms is None else min(wanted.until_ms, call.now_ms)
    if wanted.since_ms >= until_ms:
        raise BadInput("until_ms is not behind since_ms")
    source = call.path["topic"]
    if not wanted.target.strip():
        raise BadInput("target is empty: to which topic?")
    await call.admin.topic_configs(wanted.target)  # one that is not there is not found, rather than made in passing
    messages = await call.admin.count_between(source, wanted.since_ms / 1000, until_ms / 1000)
    return CopyOrder(source, wanted.target, wanted.since_ms, until_ms, wanted.most, wanted.per_second), messages


@dataclass(frozen=True, slots=True)
class CopyRow:
    """One copy, and how far it is."""

    id: int
    source: str
    target: str
    since_ms: int
    until_ms: int
    per_second: float
    messages: int  # to be copied
    copied: int
    state: str  # running, done, stopped, failed
    trouble: str
    began_ms: int
    ended_ms: int | None


@dataclass(frozen=True, slots=True)
class CopyRows:
    """Newest first."""

    rows: list[CopyRow]


@family.post("/api/topics/{topic}/copy")
async def copy_messages(call: Call, wanted: CopyWanted) -> CopyRow:
    """Begin to copy messages to another topic, one after the other; GET /api/copies/{id} tells how far it is."""
    order, messages = await _checked(call, wanted)
    audit, account, address, target = call.parts.audit, _account(call), call.address, f"/api/topics/{order.source}/copy"

    async def ended(copy: Copy) -> None:
        await audit.write(
            account,
            address,
            "copy ended",
            target,
            details=f'{{"id": {copy.id}}}',
            before="",
            after="",
            outcome=copy.outcome,
        )

    copy = call.parts.copies.start(call.admin.settings, order, min(messages, order.most), account, ended)
    call.before = {"id": copy.id, "messages": messages}
    await call.parts.copies.refused(copy)  # who may not write there hears it here
    return _row(copy)


@family.get("/api/copies")
async def copies(call: Call) -> CopyRows:
    """Copies that run, and the last that have ended since the console was started."""
    return CopyRows([_row(copy) for copy in call.parts.copies.all()])


@family.get("/api/copies/{id}")
async def copy_progress(call: Call) -> CopyRow:
    """How far one copy is."""
    return _row(_found(call))


@family.post("/api/copies/{id}/stop")
async def stop_copy(call: Call) -> Done:
    """Stop a copy; what was copied stays. Only who began it may, and the operator."""
    copy = _found(call)
    if call.session is not None and call.session.credentials is not None and copy.account != _account(call):
        raise BadInput(
            "copy {number} was begun by another account: that one, or the operator, may stop it", number=copy.id
        )
    await call.parts.copies.stop(copy.id)
    return Done(
        said(
            "copy {number} has ended after {copied} of {messages} messages",
            number=copy.id,
            copied=copy.copied,
            messages=copy.messages,
        )
    )


def _found(call: Call) -> Copy:
    number = call.path["id"]
    known = whole_number(number.encode()) if number.isascii() else None
    copy = None if known is None else call.parts.copies.find(known)
    if copy is None:
        raise BadInput("there is no copy {number}: /api/copies lists them", number=number)
    return copy


def _account(call: Call) -> str:
    return "" if call.session is None else call.session.account


def _row(copy: Copy) -> CopyRow:
    order = copy.order
    return CopyRow(
        copy.id,
        order.source,
        order.target,
        order.since_ms,
        order.until_ms,
        order.per_second,
        copy.messages,
        copy.copied,
        copy.state,
        copy.trouble,
        copy.began_ms,
        copy.ended_ms,
    )
