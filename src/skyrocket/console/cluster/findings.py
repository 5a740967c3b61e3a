"""What an operator should look at, from what the view knows anyway: the strip on every page."""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Final

from skyrocket.console.cluster.groups import GroupFigures
from skyrocket.console.cluster.runtime import BrokerState
from skyrocket.console.cluster.topics import TopicShape
from skyrocket.model.system_groups import is_system_group
from skyrocket.model.words import counted

_FULL_DISK: Final = 0.85  # brokers refuse writes from 0.9 on
_FILLING_DISK: Final = 0.75  # and delete early from here
_LATE_MS: Final = 15 * 60_000
_MUCH_LAG: Final = 10_000


@dataclass(frozen=True, slots=True)
class Finding:
    """One thing that is not as it should be."""

    severity: str  # critical, warning or note
    subject: str  # broker, topic or group
    name: str
    says: str  # the cause
    remedy: str  # the next step


def of_brokers(brokers: Iterable[BrokerState]) -> Iterable[Finding]:
    """Brokers that do not answer, and disks that fill."""
    for broker in brokers:
        name = f"{broker.broker}:{broker.broker_id}"
        if not broker.is_up:
            remedy = "start it, or look at its log; a slave serves readers meanwhile if there is one"
            yield Finding("critical", "broker", name, f"does not answer: {broker.trouble}", remedy)
        elif broker.disk_ratio is not None and broker.disk_ratio >= _FILLING_DISK:
            severity = "critical" if broker.disk_ratio >= _FULL_DISK else "warning"
            says = f"the disk of its log is {broker.disk_ratio:.0%} full"
            yield Finding(severity, "broker", name, says, "lower fileReservedTime, add a disk, or move topics")


def of_groups(figures: Mapping[str, GroupFigures], rates: Mapping[str, float | None]) -> Iterable[Finding]:
    """Groups that fall behind."""
    for group, state in figures.items():
        if is_system_group(group) or not state.lag:
            continue
        late_minutes = (state.late_ms or 0) // 60_000
        wait, late = counted(state.lag, "message waits", "messages wait"), counted(late_minutes, "minute")
        if rates.get(group) == 0 and (state.late_ms or 0) > _LATE_MS:
            says = f"{wait} and nothing was consumed; the oldest for {late}"
            yield Finding("warning", "group", group, says, "look whether clients are connected, and at their queues")
        elif (state.late_ms or 0) > _LATE_MS or state.lag > _MUCH_LAG:
            says = wait + (f", {late} late" if late_minutes else "")
            yield Finding(
                "note", "group", group, says, "add clients up to the number of queues, or speed up the handler"
            )


def of_topics(topics: Iterable[TopicShape], masters: int) -> Iterable[Finding]:
    """Topics that are not where they should be, or only half there."""
    for topic in topics:
        if topic.kind in ("SYSTEM", "RETRY", "DLQ"):
            continue
        if topic.read_queues != topic.write_queues:
            says = f"{counted(topic.read_queues, 'queue is', 'queues are')} read and {topic.write_queues} written"
            yield Finding("note", "topic", topic.name, says, "make both numbers equal once the old queues are empty")
        if masters > 1 and len(topic.brokers) == 1:
            says = f"is on {topic.brokers[0]} alone"
            yield Finding("note", "topic", topic.name, says, "create it on the other brokers as well")
