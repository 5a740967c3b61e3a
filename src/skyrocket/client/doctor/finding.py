"""One thing that is wrong, where, and what to do about it."""

from dataclasses import dataclass
from enum import StrEnum


class Severity(StrEnum):
    """How bad it is; notes are no illness."""

    ERROR = "error"
    WARNING = "warning"
    NOTE = "note"


@dataclass(frozen=True, slots=True)
class Finding:
    """`code` is stable, for scripts and alerts."""

    code: str
    severity: Severity
    where: str  # a broker, a topic, a group
    what: str
    remedy: str


def error(code: str, where: object, what: str, remedy: str) -> Finding:
    return Finding(code, Severity.ERROR, str(where), what, remedy)


def warning(code: str, where: object, what: str, remedy: str) -> Finding:
    return Finding(code, Severity.WARNING, str(where), what, remedy)


def note(code: str, where: object, what: str, remedy: str) -> Finding:
    return Finding(code, Severity.NOTE, str(where), what, remedy)
