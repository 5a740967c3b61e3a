"""Transactions that wait for their end, and those that brokers gave up."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any, Final, Literal

from skyrocket.client.admin.waiting_messages import OpenTransaction
from skyrocket.client.core.errors import NotOffered
from skyrocket.console.api.endpoint import Call, Done, Family
from skyrocket.console.api.paging import ordered
from skyrocket.console.api.values import BadInput
from skyrocket.model.words import said

family = Family("Transactions")

_MOST: Final = 500


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
    """`offered` is false at brokers of Apache RocketMQ."""

    offered: bool
    rows: list[HalfRow]
    is_complete: bool


_SORTS: Final[Mapping[str, Callable[[HalfRow], Any]]] = {
    "age": lambda row: row.age_ms,
    "checks": lambda row: (row.checks, row.age_ms),
    "group": lambda row: (row.producer_group, -row.age_ms),
    "topic": lambda row: (row.topic, -row.age_ms),
}


@dataclass(frozen=True, slots=True)
class HalvesWanted:
    """`sort` is age, checks, group or topic, with - the largest first; of one producer group, or all."""

    sort: str = "-age"
    producer_group: str = ""


@family.get("/api/transactions")
async def transactions(call: Call, wanted: HalvesWanted) -> Halves:
    """Transactions whose producer has not said how they end."""
    try:
        found = await call.admin.open_transactions(producer_group=wanted.producer_group or None, most=_MOST)
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
    return Halves(True, ordered(rows, wanted.sort, _SORTS), is_complete=len(rows) < _MOST)


@dataclass(frozen=True, slots=True)
class CheckWanted:
    """Which transaction."""

    broker: str
    transaction_id: str
    half_offset: int


@family.post("/api/transactions/check")
async def check_transaction(call: Call, wanted: CheckWanted) -> Done:
    """Have its producer asked now, rather than when it is its turn."""
    await call.admin.check_transaction(await _open(call, wanted))
    return Done(said("a producer is asked about transaction {transaction_id}", transaction_id=wanted.transaction_id))


@dataclass(frozen=True, slots=True)
class EndWanted(CheckWanted):
    """Which transaction, and how it shall end."""

    outcome: Literal["commit", "rollback"]


@family.post("/api/transactions/end")
async def end_transaction(call: Call, wanted: EndWanted) -> Done:
    """An operator's word in place of the producer's."""
    is_commit = wanted.outcome == "commit"
    await call.admin.end_transaction(await _open(call, wanted), commit=is_commit)
    if is_commit:
        return Done(said("transaction {transaction_id}: commit", transaction_id=wanted.transaction_id))
    return Done(said("transaction {transaction_id}: rollback", transaction_id=wanted.transaction_id))


async def _open(call: Call, wanted: CheckWanted) -> OpenTransaction:
    for each in await call.admin.open_transactions(transaction_id=wanted.transaction_id):
        if each.broker_name == wanted.broker and each.half_offset == wanted.half_offset:
            return each
    raise BadInput(
        "transaction {transaction_id} has ended meanwhile, or was checked: look at the list again",
        transaction_id=wanted.transaction_id,
    )


# ── those that were given up ─────────────────────────────────────────────────────────────────────────────────────────


@dataclass(frozen=True, slots=True)
class GivenUpRow:
    """One transaction whose producers never said how it ends."""

    broker: str
    transaction_id: str
    topic: str
    producer_group: str
    keys: list[str]
    given_up_ms: int
    checks: int
    offset_message_id: str


@dataclass(frozen=True, slots=True)
class GivenUp:
    """The newest first."""

    rows: list[GivenUpRow]


@family.get("/api/transactions/given-up")
async def given_up(call: Call) -> GivenUp:
    """Transactions that brokers discarded after too many checks; one that was opened again stays here."""
    return GivenUp(
        [
            GivenUpRow(
                each.broker_name,
                each.transaction_id,
                each.topic,
                each.producer_group,
                list(each.keys),
                each.given_up_ms,
                each.checks,
                each.offset_message_id,
            )
            for each in await call.admin.given_up_transactions()
        ]
    )


@dataclass(frozen=True, slots=True)
class ResumeWanted:
    """Which of those that were given up."""

    broker: str
    offset_message_id: str


@family.post("/api/transactions/given-up/resume")
async def resume_transaction(call: Call, wanted: ResumeWanted) -> Done:
    """Open a discarded transaction again: its producers are asked from the beginning."""
    for each in await call.admin.given_up_transactions():
        if (each.broker_name, each.offset_message_id) == (wanted.broker, wanted.offset_message_id):
            await call.admin.resume_transaction(each)
            return Done(said("transaction {transaction_id} is open again", transaction_id=each.transaction_id))
    raise BadInput("it is not among the newest that were given up: look at the list again")
