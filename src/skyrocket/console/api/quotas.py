"""Quotas of accounts and namespaces with what is used of them; `skyrocket quota` and Admin change them."""

from dataclasses import dataclass

from skyrocket.client.core.errors import NotOffered
from skyrocket.console.api.endpoint import Call, Family

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


@family.get("/api/quotas", secret=True)
async def quotas(call: Call) -> QuotaPage:
    """Quotas as masters have them, and their use."""
    try:
        found = await call.admin.quotas()
    except NotOffered as error:
        return QuotaPage([], str(error))
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
