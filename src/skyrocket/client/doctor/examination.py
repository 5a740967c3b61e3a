"""All checks over all facts."""

from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Final

from skyrocket.client.admin.admin import Admin
from skyrocket.client.doctor import group_checks, server_checks, topic_checks
from skyrocket.client.doctor.facts import ClusterFacts
from skyrocket.client.doctor.finding import Finding, Severity
from skyrocket.client.doctor.gathering import Gatherer, Scope

_ORDER = list(Severity)
CHECKS: Final[Mapping[str, Sequence[Callable[[ClusterFacts], Iterator[Finding]]]]] = {
    "broker": server_checks.CHECKS,
    "topic": topic_checks.CHECKS,
    "group": group_checks.CHECKS,
}


def findings_of(facts: ClusterFacts) -> list[Finding]:
    """What is wrong, the worst first."""
    found = [finding for checks in CHECKS.values() for check in checks for finding in check(facts)]
    return sorted(found, key=lambda each: (_ORDER.index(each.severity), each.code, each.where))


async def examine(admin: Admin, scope: Scope) -> tuple[ClusterFacts, list[Finding]]:
    """Look, and judge."""
    facts = await Gatherer(admin, scope).gather()
    return facts, findings_of(facts)
