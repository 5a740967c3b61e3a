"""One measured figure, and whether it is what was asked for."""

from dataclasses import dataclass, field
from enum import Enum


class Kind(Enum):
    """Which way is good."""

    AT_LEAST = "≥"
    AT_MOST = "≤"


@dataclass(frozen=True, slots=True)
class Target:
    """A bound on the ratio of a figure if it has one, else on its value."""

    kind: Kind
    bound: float

    def met(self, measured: float) -> bool:
        return measured >= self.bound if self.kind is Kind.AT_LEAST else measured <= self.bound

    def score(self, measured: float) -> float:
        """1 exactly on target, more is better."""
        return measured / self.bound if self.kind is Kind.AT_LEAST else self.bound / max(measured, 1e-9)


@dataclass(frozen=True, slots=True)
class Figure:
    """One line of the table. Ratios compare processor times of one run unless `name` says otherwise."""

    section: str
    name: str
    value: float
    unit: str
    ratio: float | None = None
    ratio_to: str = ""
    target: Target | None = None
    spread: float | None = None  # median round against the best
    details: dict[str, float] = field(default_factory=dict)

    @property
    def judged(self) -> float:
        """What the target is about."""
        return self.value if self.ratio is None else self.ratio

    @property
    def met(self) -> bool | None:
        return None if self.target is None else self.target.met(self.judged)

    @property
    def score(self) -> float | None:
        return None if self.target is None else self.target.score(self.judged)


def at_least(bound: float) -> Target:
    return Target(Kind.AT_LEAST, bound)


def at_most(bound: float) -> Target:
    return Target(Kind.AT_MOST, bound)
