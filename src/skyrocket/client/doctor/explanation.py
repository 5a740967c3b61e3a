"""Why a group does not consume: the way of a message from the name server to the handler, step by step.

name server → route → broker's address → permission → group allowed → client → subscription → queues → lag
"""

from dataclasses import dataclass
from typing import Final

from skyrocket.client.doctor.facts import ClusterFacts, GroupFacts
from skyrocket.client.doctor.finding import Finding, note
from skyrocket.client.doctor.gathering import is_of_applications
from skyrocket.client.doctor.group_checks import COMMIT_SECONDS
from skyrocket.model.permission import PERM_READ
from skyrocket.model.topic import RETRY_PREFIX
from skyrocket.model.words import counted

_STEPS: Final = {
    "name server": ("name-server-down", "name-servers-differ", "no-brokers"),
    "brokers reachable": ("broker-unreachable", "no-rights", "no-master", "broker-twice", "loopback-address"),
    "route": ("route-missing", "no-such-topic", "topic-on-one-broker", "topic-differs"),
    "permission": ("topic-not-readable", "broker-not-writable", "writes-paused", "topic-not-writable"),
    "group allowed": ("group-disabled", "group-missing", "group-differs"),
    "clients": ("no-client", "client-stuck", "old-clients"),
    "subscription": ("subscriptions-differ",),
    "queues": ("queue-without-owner", "more-clients-than-queues", "queues-differ"),
    "lag": (
        "queues-behind",
        "messages-expired",
        "offset-beyond-end",
        "lag-near-retention",
        "lag-growing",
        "queue-skewed",
    ),
    "failures": ("retry-topic-closed", "dead-letters", "retries-waiting"),
}
_ALMOST: Final = 0.8  # rates of two looks are rough


@dataclass(frozen=True, slots=True)
class Step:
    """One step of the way, and what is wrong there."""

    name: str
    findings: tuple[Finding, ...]


@dataclass(frozen=True, slots=True)
class Outlook:
    """How late a group is, why, and when it will have caught up."""

    lag: int
    behind_seconds: float | None  # age of the last consumed message, None: not known
    in_per_second: float
    out_per_second: float
    cause: str
    gone_in_seconds: float | None  # None: never at these rates


def steps_of(facts: ClusterFacts, group: GroupFacts, findings: list[Finding]) -> list[Step]:
    """The way with what was found at each step; findings of other groups and topics are left out."""
    topics = {each.queue.topic for each in group.lags} | set(group.members.subscriptions if group.members else ())
    others = (set(facts.topics) - topics) | (set(facts.groups) - {group.name})
    mine = [each for each in findings if each.where not in others]
    if group.client_count == 0 and not any(each.code == "no-client" for each in mine):
        mine.append(_nobody(group))
    return [Step(name, tuple(each for each in mine if each.code in codes)) for name, codes in _STEPS.items()]


def _nobody(group: GroupFacts) -> Finding:
    """Said to who asks for the group: as long as nothing waits for it, nobody has to be there."""
    so_far = "it has consumed all that came" if group.lags else "it has consumed nothing so far"
    remedy = "start its consumers; if they run, their own log says which group, name servers and topics they have"
    return note("no-client", group.name, "no client runs, {so_far}", remedy, so_far=so_far)


def outlook_of(facts: ClusterFacts, group: GroupFacts) -> Outlook:
    """From two looks at offsets, and from what clients tell of their rates."""
    lags = [each for each in group.lags if not each.queue.topic.startswith(RETRY_PREFIX)]
    lag = sum(max(each.lag, 0) for each in lags)
    late = [group.late_ms(each, facts.now_ms) for each in lags]
    known = [each for each in late if each is not None]
    behind = max(known, default=0) / 1000 if len(known) == len(late) else None
    seconds = facts.sample_seconds
    came = sum(
        each.broker_offset - group.earlier[each.queue].broker_offset for each in lags if each.queue in group.earlier
    )
    done = sum(
        each.consumer_offset - group.earlier[each.queue].consumer_offset for each in lags if each.queue in group.earlier
    )
    told = sum(
        status.consume_ok_tps
        for info in group.infos.values()
        for topic, status in info.status.items()
        if not topic.startswith(RETRY_PREFIX)
    )
    in_rate = came / seconds if seconds > 0 else 0.0
    out_rate = max(done / seconds if seconds > 0 else 0.0, told, 0.0)  # a group that was set back has consumed nothing
    gone = None
    if lag == 0:
        gone = 0.0
    elif _keeps_up(lag, in_rate, out_rate):
        gone = lag / out_rate
    elif out_rate > in_rate and not _stopped_queues(group):
        gone = lag / (out_rate - in_rate)
    return Outlook(lag, behind, in_rate, out_rate, _cause(facts, group, lag, in_rate, out_rate), gone)


def _keeps_up(lag: int, in_rate: float, out_rate: float) -> bool:
    """Clients say every few seconds how far they are: what came since then is on its way, and does not wait."""
    return 0 < lag <= in_rate * COMMIT_SECONDS and out_rate >= _ALMOST * in_rate


def _cause(facts: ClusterFacts, group: GroupFacts, lag: int, in_rate: float, out_rate: float) -> str:
    if lag == 0:
        return "it keeps up" if group.client_count else "nothing waits for it, and no client runs"
    if group.configs and not any(config.may_consume for config in group.configs.values()):
        return "brokers do not let the group consume"
    if group.client_count == 0:
        return "no client runs"
    assert group.members is not None
    wanted = {topic for topic in group.members.subscriptions if is_of_applications(topic)}
    unwanted = {
        each.queue.topic for each in group.lags if each.lag > 0 and is_of_applications(each.queue.topic)
    } - wanted
    if unwanted and not any(each.lag > 0 and each.queue.topic in wanted for each in group.lags):
        return f"its clients do not subscribe to {', '.join(sorted(unwanted))} any more"
    slow_ms = max((status.consume_rt for info in group.infos.values() for status in info.status.values()), default=0.0)
    stopped = _stopped_queues(group)
    if stopped:
        return (
            f"{counted(len(stopped), 'queue stands', 'queues stand')} still while others move: {', '.join(stopped[:3])}"
        )
    if unreadable := _unreadable(facts, group):
        return f"nobody may read {', '.join(unreadable)}"
    if out_rate == 0:
        return "its clients are there but consume nothing: their handlers hang, or fail every time"
    if _keeps_up(lag, in_rate, out_rate):
        return "it keeps up: what waits came within seconds"
    shares = sorted((max(each.lag, 0) for each in group.lags), reverse=True)
    if len(shares) >= 4 and shares[0] > 0.8 * lag:
        return "one queue has most of the lag: its sharding key is uneven, or its client is slow"
    if out_rate > in_rate:
        return f"it catches up; its handlers take {slow_ms:.0f} ms for each"
    return f"its handlers are slower than messages come ({slow_ms:.0f} ms for each)"


def _unreadable(facts: ClusterFacts, group: GroupFacts) -> list[str]:
    waiting = {each.queue.topic for each in group.lags if each.lag > 0} & facts.topics.keys()
    return sorted(
        topic for topic in waiting if not any(config.permission & PERM_READ for config in facts.topics[topic].values())
    )


def _stopped_queues(group: GroupFacts) -> list[str]:
    """Those that had messages waiting and did not move between the two looks, while others did."""
    looks = [(group.earlier[each.queue], each) for each in group.lags if each.queue in group.earlier]
    if not any(now.consumer_offset > before.consumer_offset for before, now in looks):
        return []
    return [
        f"{now.queue.broker_name}:{now.queue.queue_id}"
        for before, now in looks
        if before.lag > 0 and now.consumer_offset == before.consumer_offset
    ]
