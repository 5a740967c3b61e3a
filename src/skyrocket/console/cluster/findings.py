"""What an operator should look at, from what the view knows anyway: the strip on every page, with `checkup`'s."""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Final

from skyrocket.console.cluster.groups import GroupFigures
from skyrocket.console.cluster.runtime import BrokerState
from skyrocket.model.system_groups import is_system_group
from skyrocket.model.words import Phrase, phrase_of, said, said_of

_FULL_DISK: Final = 0.85  # brokers refuse writes from 0.9 on
_FILLING_DISK: Final = 0.75  # and delete early from here
_LATE_MS: Final = 15 * 60_000
_MUCH_LAG: Final = 10_000
# Codes of the doctor that are found here every few seconds, rather than by an examination.
SEEN_AT_ONCE: Final = frozenset({"broker-unreachable", "disk-full", "disk-filling"})


@dataclass(frozen=True, slots=True)
class Finding:
    """One thing that is not as it should be."""

    code: str  # as `skyrocket doctor` has it
    severity: str  # critical, warning or note
    subject: str  # broker, topic or group
    name: str
    says: str  # the cause
    remedy: str  # the next step
    says_phrase: Phrase  # both, for who says them in another language
    remedy_phrase: Phrase


def finding(code: str, severity: str, subject: str, name: str, says: str, remedy: str) -> Finding:
    """With the phrases that the two texts are made of."""
    return Finding(code, severity, subject, name, says, remedy, phrase_of(says), phrase_of(remedy))


def of_brokers(brokers: Iterable[BrokerState]) -> Iterable[Finding]:
    """Brokers that do not answer, and disks that fill."""
    for broker in brokers:
        name = f"{broker.broker}:{broker.broker_id}"
        if not broker.is_up:
            remedy = "start it, or look at its log; a slave serves readers meanwhile if there is one"
            says = said("does not answer: {trouble}", trouble=broker.trouble)
            yield finding("broker-unreachable", "critical", "broker", name, says, remedy)
        elif broker.disk_ratio is not None and broker.disk_ratio >= _FILLING_DISK:
            is_full = broker.disk_ratio >= _FULL_DISK
            code, severity = ("disk-full", "critical") if is_full else ("disk-filling", "warning")
            says = said("the disk of its log is {ratio:.0%} full", ratio=broker.disk_ratio)
            yield finding(code, severity, "broker", name, says, "lower fileReservedTime, add a disk, or move topics")


def of_groups(figures: Mapping[str, GroupFigures], rates: Mapping[str, float | None]) -> Iterable[Finding]:
    """Groups that fall behind."""
    for group, state in figures.items():
        if is_system_group(group) or not state.lag:
            continue
        late_minutes = (state.late_ms or 0) // 60_000
        wait = said_of(state.lag, "{n:,} message waits", "{n:,} messages wait")
        late = said_of(late_minutes, "{n:,} minute", "{n:,} minutes")
        if rates.get(group) == 0 and (state.late_ms or 0) > _LATE_MS:
            says = said("{wait} and nothing was consumed; the oldest for {late}", wait=wait, late=late)
            remedy = "look whether clients are connected, and at their queues"
            yield finding("group-stopped", "warning", "group", group, says, remedy)
        elif (state.late_ms or 0) > _LATE_MS or state.lag > _MUCH_LAG:
            says = said("{wait}, {late} late", wait=wait, late=late) if late_minutes else wait
            remedy = "add clients up to the number of queues, or speed up the handler"
            yield finding("group-late", "note", "group", group, says, remedy)
