"""Alerts: what fires, what was lately, and the rules."""

from dataclasses import dataclass, replace
from typing import Final, Literal

from skyrocket.console.alerts.news import News
from skyrocket.console.alerts.rules import KINDS, Kind, Rule
from skyrocket.console.alerts.watcher import Firing
from skyrocket.console.api.endpoint import Call, Done, Family
from skyrocket.console.api.values import BadInput
from skyrocket.model.words import counted

family = Family("Alerts")

_MOST_RULES: Final = 200
_LONGEST_MINUTES: Final = 7 * 24 * 60


@dataclass(frozen=True, slots=True)
class Alerts:
    """`news` are begins and ends, newest first."""

    firing: list[Firing]
    news: list[News]
    rules: list[Rule]


@family.get("/api/alerts")
async def alerts(call: Call) -> Alerts:
    """What fires now, what began and ended lately, and the rules."""
    watcher = call.parts.watcher
    return Alerts(watcher.firing(), list(watcher.news), list(watcher.rules))


@dataclass(frozen=True, slots=True)
class RuleWanted:
    """A rule, new or in place of the one with this id."""

    kind: str
    threshold: float
    subject: str = "*"
    minutes: int = 5
    severity: Literal["critical", "warning"] = "warning"


@family.put("/api/alerts/rules/{rule}")
async def put_rule(call: Call, wanted: RuleWanted) -> Done:
    """Add a rule or change it."""
    kind: Kind | None = next((each for each in KINDS if each == wanted.kind), None)
    if kind is None:
        raise BadInput(f"kind is {wanted.kind!r}: choose one of {', '.join(KINDS)}")
    if not 0 <= wanted.minutes <= _LONGEST_MINUTES:
        raise BadInput(f"minutes is {wanted.minutes}: 0 to {_LONGEST_MINUTES}")
    watcher, name = call.parts.watcher, call.path["rule"]
    rule = Rule(name, kind, wanted.threshold, wanted.subject, wanted.minutes, wanted.severity)
    others = [each for each in watcher.rules if each.id != name]
    if len(others) >= _MOST_RULES:
        raise BadInput(f"there are {_MOST_RULES} rules already: remove some")
    await watcher.keep([*others, rule])
    return Done(f"rule {name} is watched")


@dataclass(frozen=True, slots=True)
class MuteWanted:
    """For how long nothing is told of it; 0 ends it."""

    minutes: int


@family.post("/api/alerts/rules/{rule}/mute")
async def mute(call: Call, wanted: MuteWanted) -> Done:
    """Tell nothing of a rule for a while; it is still shown."""
    until_ms = call.now_ms + wanted.minutes * 60_000 if wanted.minutes > 0 else 0
    rule = _rule(call)
    rules = [replace(each, muted_until_ms=until_ms) if each is rule else each for each in call.parts.watcher.rules]
    await call.parts.watcher.keep(rules)
    return Done(
        f"rule {rule.id} is muted for {counted(wanted.minutes, 'minute')}"
        if until_ms
        else f"rule {rule.id} is told again"
    )


@family.delete("/api/alerts/rules/{rule}")
async def delete_rule(call: Call) -> Done:
    """Watch a rule no more."""
    rule = _rule(call)
    call.before = rule
    await call.parts.watcher.keep([each for each in call.parts.watcher.rules if each is not rule])
    return Done(f"rule {rule.id} was removed")


def _rule(call: Call) -> Rule:
    for rule in call.parts.watcher.rules:
        if rule.id == call.path["rule"]:
            return rule
    raise BadInput(f"there is no rule {call.path['rule']}: /api/alerts lists them")
