"""A view: rows under headings, the same for a table that people read and for JSON lines that programs read."""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Any

Row = Mapping[str, Any]


# Messages come from strangers: what a terminal would obey is shown as a picture of itself.
_PICTURES = {code: 0x2400 + code for code in range(32)} | {0x7F: 0x2421} | dict.fromkeys(range(0x80, 0xA0), 0xFFFD)


def as_text(value: Any) -> str:
    """A value as a table shows it."""
    if value is None:
        return ""
    text = " ".join(str(item) for item in value) if isinstance(value, list | tuple) else str(value)
    return text.translate(_PICTURES)


def as_time(value: Any) -> str:
    """Milliseconds since 1970 as a date in UTC."""
    if not isinstance(value, int) or value <= 0:
        return as_text(value) if value else "–"
    try:
        moment = datetime.fromtimestamp(value / 1000, UTC)
    except (OverflowError, ValueError, OSError):
        return str(value)
    return moment.strftime("%Y-%m-%d %H:%M:%S.") + f"{value % 1000:03d}"


def as_bytes(value: Any) -> str:
    """A number of bytes in the largest unit that keeps it above 1."""
    size = float(value)
    for unit in ("B", "KiB", "MiB", "GiB"):
        if size < 1024:
            return f"{size:.0f} {unit}" if size == int(size) else f"{size:.1f} {unit}"
        size /= 1024
    return f"{size:.1f} TiB"


@dataclass(frozen=True, slots=True)
class Column:
    """One column of a table: the row's key, the heading, and how the value is written."""

    key: str
    heading: str
    kind: str = "text"  # text, number, time

    def show(self, value: Any) -> str:
        if self.kind == "time":
            return as_time(value)
        return as_text(value)

    @property
    def is_number(self) -> bool:
        return self.kind == "number"


@dataclass(frozen=True, slots=True)
class View:
    """Rows of one kind; a table shows `columns`, JSON lines show everything in a row."""

    name: str
    title: str
    columns: tuple[Column, ...]
    rows: Iterable[Row]
    when_empty: str = "nothing"
