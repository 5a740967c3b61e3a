"""The record of changes."""

from dataclasses import dataclass

from skyrocket.console.api.endpoint import Call, Family
from skyrocket.console.login.audit import AuditEntry

family = Family("Audit")


@dataclass(frozen=True, slots=True)
class AuditWanted:
    """A page: those older than an entry."""

    search: str = ""
    before_id: int | None = None


@dataclass(frozen=True, slots=True)
class AuditPage:
    """Newest first."""

    rows: list[AuditEntry]


@family.get("/api/audit", secret=True)
async def audit(call: Call, wanted: AuditWanted) -> AuditPage:
    """Who asked for which change, and what became of it."""
    return AuditPage(await call.parts.audit.entries(wanted.search, wanted.before_id))
