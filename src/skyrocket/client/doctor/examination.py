"""All checks over all facts."""

from skyrocket.client.admin.admin import Admin
from skyrocket.client.doctor import group_checks, server_checks, topic_checks
from skyrocket.client.doctor.facts import ClusterFacts
from skyrocket.client.doctor.finding import Finding, Severity
from skyrocket.client.doctor.gathering import Gatherer, Scope

_ORDER = list(Severity)


def findings_of(facts: ClusterFacts) -> list[Finding]:
    """What is wrong, the worst first."""
    checks = (*server_checks.CHECKS, *topic_checks.CHECKS, *group_checks.CHECKS)
    found = [finding for check in checks for finding in check(facts)]
    return sorted(found, key=lambda each: (_ORDER.index(each.severity), each.code, each.where))


async def examine(admin: Admin, scope: Scope) -> tuple[ClusterFacts, list[Finding]]:
    """Look, and judge."""
    facts = await Gatherer(admin, scope).gather()
    return facts, findings_of(facts)
