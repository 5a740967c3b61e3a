"""An alert that began or ended, as all who are told hear of it."""

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class News:
    """An alert that began or ended."""

    at_ms: int
    rule: str
    kind: str
    name: str
    severity: str
    value: float
    threshold: float
    is_firing: bool
