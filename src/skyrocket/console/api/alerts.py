"""Alerts: what fires, what was lately, the rules, and what is muted."""

from dataclasses import dataclass
from typing import Final, Literal

from skyrocket.console.alerts.mutes import WHOLE_RULE, Mute, with_mute
from skyrocket.console.alerts.news import News
from skyrocket.console.alerts.rules import KINDS, Kind, Rule
from skyrocket.console.alerts.watcher import Firing
from skyrocket.console.api.access import MayWanted, verdict
from skyrocket.console.api.endpoint import Call, Done, Family
from skyrocket.console.api.values import BadInput
from skyrocket.console.login.tokens import TokenRefused
from skyrocket.model.words import said, said_of

family = Family("Alerts")

_MOST_RULES: Final = 200
_LONGEST_MINUTES: Final = 7 * 24 * 60
_MOST_MUTES: Final = 500
_LONGEST_MUTE_MINUTES: Final = 366 * 24 * 60


@dataclass(frozen=True, slots=True)
class Alerts:
    """`news` are begins and ends, newest first."""

    firing: list[Firing]
    news: list[News]
    rules: list[Rule]
    mutes: list[Mute]


@family.get("/api/alerts")
async def alerts(call: Call) -> Alerts:
    """What fires now, what began and ended lately, the rules, and what is muted."""
    watcher = call.parts.watcher
    mutes = [each for each in watcher.mutes if each.until_ms > call.now_ms]
    return Alerts(watcher.firing(), list(watcher.news), list(watcher.rules), mutes)


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
    await _check_may_silence(call)
    kind: Kind | None = next((each for each in KINDS if each == wanted.kind), None)
    if kind is None:
        raise BadInput("kind is {kind!r}: choose one of {names}", kind=wanted.kind, names=", ".join(KINDS))
    if not 0 <= wanted.minutes <= _LONGEST_MINUTES:
        raise BadInput("minutes is {minutes}: 0 to {limit}", minutes=wanted.minutes, limit=_LONGEST_MINUTES)
    if wanted.threshold <= 0:
        raise BadInput("threshold is {threshold}: it must be above 0", threshold=wanted.threshold)
    watcher, name = call.parts.watcher, call.path["rule"]
    call.before = next((each for each in watcher.rules if each.id == name), None)
    rule = Rule(name, kind, wanted.threshold, wanted.subject, wanted.minutes, wanted.severity)
    others = [each for each in watcher.rules if each.id != name]
    if len(others) >= _MOST_RULES:
        raise BadInput("there are {limit} rules already: remove some", limit=_MOST_RULES)
    await watcher.keep([*others, rule])
    call.after = rule
    return Done(said("rule {rule} is watched", rule=name))


@dataclass(frozen=True, slots=True)
class MuteWanted:
    """For how long nothing is told; 0 ends it. `name` is a pattern: one group or broker, or all of the rule."""

    minutes: int
    name: str = WHOLE_RULE


@family.post("/api/alerts/rules/{rule}/mute")
async def mute(call: Call, wanted: MuteWanted) -> Done:
    """Tell nothing of a rule, or of one name of it, for a while; it is still shown."""
    await _check_may_silence(call)
    watcher, rule = call.parts.watcher, _rule(call)
    if not 0 <= wanted.minutes <= _LONGEST_MUTE_MINUTES:
        raise BadInput("minutes is {minutes}: 0 to {limit}", minutes=wanted.minutes, limit=_LONGEST_MUTE_MINUTES)
    if not wanted.name:
        raise BadInput("name is empty: give a group or broker, a pattern as shop-*, or * for the whole rule")
    call.before = [each for each in watcher.mutes if each.rule == rule.id]
    until_ms = call.now_ms + wanted.minutes * 60_000
    mutes = with_mute(
        watcher.mutes,
        Mute(rule.id, wanted.name, until_ms, call.session.account if call.session is not None else ""),
        call.now_ms,
    )
    if len(mutes) > _MOST_MUTES:
        raise BadInput("{limit} mutes are there already: end some, or mute a whole rule", limit=_MOST_MUTES)
    await watcher.keep_mutes(mutes)
    call.after = [each for each in mutes if each.rule == rule.id]
    what = said("rule {rule}", rule=rule.id)
    if wanted.name != WHOLE_RULE:
        what = said("{name} of rule {rule}", name=wanted.name, rule=rule.id)
    if not wanted.minutes:
        return Done(said("{what} is told again", what=what))
    minutes = said_of(wanted.minutes, "{n:,} minute", "{n:,} minutes")
    return Done(said("{what} is muted for {minutes}", what=what, minutes=minutes))


@family.delete("/api/alerts/rules/{rule}")
async def delete_rule(call: Call) -> Done:
    """Watch a rule no more."""
    await _check_may_silence(call)
    rule = _rule(call)
    call.before = rule
    await call.parts.watcher.keep([each for each in call.parts.watcher.rules if each is not rule])
    return Done(said("rule {rule} was removed", rule=rule.id))


def _rule(call: Call) -> Rule:
    for rule in call.parts.watcher.rules:
        if rule.id == call.path["rule"]:
            return rule
    raise BadInput("there is no rule {rule}: /api/alerts lists them", rule=call.path["rule"])


async def _check_may_silence(call: Call) -> None:
    """Rules are the console's own and no broker is asked, so it asks itself; raises TokenRefused.

    Who may not change the cluster shall not keep its alerts from others.
    """
    session = call.session
    if session is None or session.credentials is None:  # the operator, or a token that may change
        return
    known = (await call.parts.view.settings.get()).values()
    if known and not any(each.get("authorizationEnabled") == "true" for each in known):
        return  # brokers allow every account everything, or know more of those in their files than they tell
    admin = call.parts.accounts.own.admin
    told = [
        await verdict(admin, MayWanted(session.account, f"Cluster:{name}", "Update"))
        for name in (await call.parts.view.cluster.get()).clusters
    ]
    if not told or not all(each.allowed for each in told):
        raise TokenRefused(
            "alert rules are for who may change the cluster: {account} has no right to Update it",
            account=session.account,
        )
