"""Quotas of accounts and namespaces with what is used of them: shown, set and taken away in the name of who asks."""

from dataclasses import dataclass
from typing import Literal

from skyrocket.client.core.errors import NotOffered
from skyrocket.console.api.endpoint import Call, Done, Family
from skyrocket.console.telling.counts import brokers
from skyrocket.console.telling.told_error import told
from skyrocket.model.quota import ACCOUNT, NAMESPACE
from skyrocket.model.words import Phrase, Said, said

family = Family("Quotas")


@dataclass(frozen=True, slots=True)
class QuotaLine:
    """One limit at one broker."""

    subject: str  # account or namespace
    name: str  # "*": each without a quota of its own
    quota: str
    limit: int
    used: float
    exceeded: int
    broker: str


@dataclass(frozen=True, slots=True)
class QuotaPage:
    """All quotas; `trouble` says why there are none."""

    quotas: list[QuotaLine]
    trouble: str
    trouble_phrase: Phrase | None = None  # for who says it in another language


@family.get("/api/quotas", secret=True)
async def quotas(call: Call) -> QuotaPage:
    """Quotas as masters have them, and their use."""
    try:
        found = await call.admin.quotas()
    except NotOffered as error:
        why = told(error)
        return QuotaPage([], why.error, why.phrase)
    return QuotaPage(
        [
            QuotaLine(
                row.subject_type,
                row.name,
                use.kind,
                use.limit,
                round(use.used, 1),
                use.exceeded,
                place.broker_name,
            )
            for place, rows in found.items()
            for row in rows
            for use in row.uses
        ],
        "",
    )


@dataclass(frozen=True, slots=True)
class QuotaWanted:
    """One limit of an account or a namespace; null takes it away."""

    subject: Literal["account", "namespace"]
    name: str  # "*": each without a quota of its own; "": clients without an account, topics without a namespace
    quota: str
    limit: int | None


@family.put("/api/quotas")
async def set_quota(call: Call, wanted: QuotaWanted) -> Done:
    """Set a limit on all masters, or take it away; other limits stay."""
    account = wanted.name if wanted.subject == ACCOUNT else None
    namespace = wanted.name if wanted.subject == NAMESPACE else None
    call.before = await _limits(call, wanted)
    places = await call.admin.set_quota({wanted.quota: wanted.limit}, account=account, namespace=namespace)
    if wanted.limit is None:
        return Done(
            said(
                "{quota} of {subject} is not limited any more on {brokers}",
                quota=wanted.quota,
                subject=_subject(wanted),
                brokers=brokers(places),
            )
        )
    return Done(
        said(
            "{quota} of {subject} is {limit} on {brokers}",
            quota=wanted.quota,
            subject=_subject(wanted),
            limit=wanted.limit,
            brokers=brokers(places),
        )
    )


async def _limits(call: Call, wanted: QuotaWanted) -> dict[str, int]:
    """By broker, as they are now."""
    return {
        place.broker_name: use.limit
        for place, rows in (await call.admin.quotas()).items()
        for row in rows
        for use in row.uses
        if (row.subject_type, row.name, use.kind) == (wanted.subject, wanted.name, wanted.quota)
    }


def _subject(wanted: QuotaWanted) -> Said:
    """As `shown` of model.quota has it, for every language."""
    if wanted.subject == ACCOUNT:
        return said("account {name}", name=wanted.name or "anonymous")
    return said("namespace {name}", name=wanted.name) if wanted.name else said("topics without a namespace")
