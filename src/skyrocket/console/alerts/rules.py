"""When an alert begins and ends: a value must be too high for a while, and well below the threshold for as long.

quiet ──too high──▶ pending ──for `minutes`──▶ firing ──below 80 % for `minutes`──▶ quiet
"""

from dataclasses import dataclass
from enum import StrEnum
from fnmatch import fnmatchcase
from typing import Final, Literal, get_args

_WELL_BELOW: Final = 0.8

Kind = Literal[
    "lag",
    "late_seconds",
    "no_client",
    "dead_letters_per_hour",
    "disk",
    "broker_down",
    "name_server_down",
    "slave_behind_bytes",
    "skew",
    "stuck_seconds",
    "delayed",
]
KINDS: Final[tuple[Kind, ...]] = get_args(Kind)


@dataclass(frozen=True, slots=True)
class Rule:
    """What is watched: `subject` is a pattern of names (groups, brokers, topics) as `shop-*`."""

    id: str
    kind: Kind
    threshold: float
    subject: str = "*"
    minutes: int = 5
    severity: Literal["critical", "warning"] = "warning"

    def is_about(self, name: str) -> bool:
        """Whether it watches this one."""
        return fnmatchcase(name, self.subject)


DEFAULT_RULES: Final = (
    Rule("broker-down", "broker_down", 1, minutes=1, severity="critical"),
    Rule("name-server-down", "name_server_down", 1, minutes=1, severity="critical"),
    Rule("disk-full", "disk", 0.85, minutes=1, severity="critical"),
    Rule("slave-behind", "slave_behind_bytes", 64 * 1024 * 1024, minutes=5),
    Rule("group-late", "late_seconds", 900, minutes=5),
    Rule("group-lag", "lag", 100_000, minutes=5),
    Rule("no-client", "no_client", 1, minutes=5),
    Rule("queue-skewed", "skew", 0.8, minutes=5),
    Rule("queue-stuck", "stuck_seconds", 600, minutes=1),
    Rule("dead-letters", "dead_letters_per_hour", 1, minutes=1),
)


class Phase(StrEnum):
    """Where an alert is."""

    QUIET = "quiet"
    PENDING = "pending"
    FIRING = "firing"


@dataclass(slots=True)
class Watch:
    """One rule and one name."""

    phase: Phase = Phase.QUIET
    since_ms: int = 0  # of the phase
    value: float = 0.0
    well_since_ms: int | None = None  # while it fires: since when the value is well below
    is_told: bool = False  # whether its beginning was told: who has heard of it hears of its end

    def look(self, rule: Rule, value: float, now_ms: int) -> Phase | None:
        """The phase that has just begun, None if it goes on."""
        self.value = value
        self.since_ms = min(self.since_ms, now_ms)  # the clock may be set back
        patience_ms = rule.minutes * 60_000
        if self.phase is Phase.FIRING:
            if value > rule.threshold * _WELL_BELOW:
                self.well_since_ms = None
                return None
            if self.well_since_ms is None or self.well_since_ms > now_ms:
                self.well_since_ms = now_ms
            return self._begin(Phase.QUIET, now_ms) if now_ms - self.well_since_ms >= patience_ms else None
        if value < rule.threshold:
            return self._begin(Phase.QUIET, now_ms) if self.phase is Phase.PENDING else None
        if self.phase is Phase.QUIET:
            self._begin(Phase.PENDING, now_ms)
        return self._begin(Phase.FIRING, now_ms) if now_ms - self.since_ms >= patience_ms else None

    def _begin(self, phase: Phase, now_ms: int) -> Phase:
        self.phase, self.since_ms, self.well_since_ms = phase, now_ms, None
        return phase
