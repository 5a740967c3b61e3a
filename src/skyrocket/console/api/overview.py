"""The first page: is everything up, how much comes and goes, what waits."""

import asyncio
from dataclasses import dataclass
from itertools import islice
from typing import Final

from skyrocket.console.alerts.news import News
from skyrocket.console.api.endpoint import Call, Family
from skyrocket.console.cluster import findings
from skyrocket.console.cluster.findings import Finding
from skyrocket.console.cluster.runtime import BrokerState
from skyrocket.console.history.series import HOUR_MS, Sample
from skyrocket.model.system_groups import is_system_group

family = Family("Overview")

_TOP: Final = 5
_MOST_FINDINGS: Final = 200
_ABOUT_ACCOUNTS: Final = frozenset({"default-password"})  # not for everybody to know
_ORDER: Final = {"critical": 0, "warning": 1, "note": 2}


@dataclass(frozen=True, slots=True)
class LateGroup:
    """A group that is behind."""

    group: str
    lag: int
    late_ms: int | None
    out_per_second: float | None


@dataclass(frozen=True, slots=True)
class Overview:
    """Of one cluster, or of all that the name servers know."""

    clusters: list[str]
    brokers: list[BrokerState]
    topics: int
    groups: int
    in_per_second: float
    out_per_second: float
    in_today: int
    out_today: int
    lag: int
    dead_letters: float | None  # None until the first sample
    dead_letters_before: float | None  # an hour ago
    delayed: int | None  # None: these brokers do not tell
    half_messages: int | None
    late_groups: list[LateGroup]
    findings: list[Finding]
    firing: int  # alerts that go on
    recent_alerts: list[News]  # that began or ended, newest first
    in_history: list[Sample]  # of the last hour
    out_history: list[Sample]
    lag_history: list[Sample]
    updated_ms: int


@dataclass(frozen=True, slots=True)
class Health:
    """The strip on every page: what is seen at once, and what the doctor's checks found when they were last made."""

    critical: int
    warnings: int
    notes: int
    findings: list[Finding]
    examined_ms: int | None  # when the doctor's checks were made; None: they are under way for the first time


@family.get("/api/overview")
async def overview(call: Call) -> Overview:
    """Brokers, rates, lag and what should be looked at."""
    view, series, now = call.parts.view, call.parts.series, call.now_ms
    cluster, brokers, topics, groups, figures, waiting = await asyncio.gather(
        view.cluster.get(),
        view.brokers.get(),
        view.topics.get(),
        view.groups.get(),
        view.group_figures(),
        view.waiting.get(),
    )
    ours = {name: each for name, each in figures.items() if not is_system_group(name)}
    late = sorted(ours.items(), key=lambda each: (each[1].late_ms or 0, each[1].lag), reverse=True)[:_TOP]
    dead = await series.between("dead:cluster", now - HOUR_MS, now)
    masters = [broker for broker in brokers if broker.role == "master"]
    return Overview(
        sorted(cluster.clusters),
        brokers,
        sum(shape.kind not in ("SYSTEM", "RETRY", "DLQ") for shape in topics.values()),
        sum(not is_system_group(name) for name in groups),
        sum(broker.in_per_second for broker in masters),
        sum(broker.out_per_second for broker in brokers),
        sum(broker.in_today for broker in masters),
        sum(broker.out_today for broker in brokers),
        sum(each.lag for each in ours.values()),
        dead[-1].value if dead else None,
        dead[0].value if dead else None,
        None if waiting.timers is None else sum(waiting.timers.values()),
        waiting.halves,
        [LateGroup(name, each.lag, each.late_ms, view.out_per_second(name)) for name, each in late if each.lag],
        await all_findings(call),
        len(call.parts.watcher.firing()),
        list(islice(call.parts.watcher.news, _TOP)),
        await series.between("in:cluster", now - HOUR_MS, now),
        await series.between("out:cluster", now - HOUR_MS, now),
        await series.between("lag:cluster", now - HOUR_MS, now),
        now,
    )


@family.get("/api/health")
async def health(call: Call) -> Health:
    """What should be looked at, worst first."""
    found = await all_findings(call)
    count = {severity: sum(each.severity == severity for each in found) for severity in _ORDER}
    return Health(count["critical"], count["warning"], count["note"], found, call.parts.view.checkup.examined_ms)


async def all_findings(call: Call) -> list[Finding]:
    """From the shared answers and the doctor's last examination; at most some hundred."""
    view = call.parts.view
    brokers, figures = await view.brokers.get(), await view.group_figures()
    rates = {group: view.out_per_second(group) for group in figures}
    examined = view.checkup.look()
    if call.session is None:
        examined = [each for each in examined if each.code not in _ABOUT_ACCOUNTS]
    found = [*findings.of_brokers(brokers), *findings.of_groups(figures, rates), *examined]
    return sorted(found, key=lambda each: _ORDER[each.severity])[:_MOST_FINDINGS]
