"""One thing that is wrong, where, and what to do about it.

What and remedy are templates, so that the console can say them in other languages; they share values, with `where`:
`warning("timer-behind", place, "its timer is {behind:.0f} s behind", "look at the disk of {where}", behind=12.0)`.
"""

from dataclasses import dataclass
from enum import StrEnum

from skyrocket.model.words import Said, said


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
    what: Said
    remedy: Said


def error(code: str, where: object, what: str, remedy: str, **values: object) -> Finding:
    return _finding(code, Severity.ERROR, where, what, remedy, values)


def warning(code: str, where: object, what: str, remedy: str, **values: object) -> Finding:
    return _finding(code, Severity.WARNING, where, what, remedy, values)


def note(code: str, where: object, what: str, remedy: str, **values: object) -> Finding:
    return _finding(code, Severity.NOTE, where, what, remedy, values)


def _finding(
    code: str, severity: Severity, where: object, what: str, remedy: str, values: dict[str, object]
) -> Finding:
    what, remedy = (text if isinstance(text, Said) else said(text, where=where, **values) for text in (what, remedy))
    return Finding(code, severity, str(where), what, remedy)
