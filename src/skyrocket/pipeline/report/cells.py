"""How the value of a cell is read by people: the same text in the terminal and in the browser."""

from datetime import date, datetime
from typing import Any, Final

_MOST_CHARACTERS: Final = 200
_MOST_ITEMS: Final = 5
_TRACEBACK: Final = "Traceback (most recent call last)"


def cell_text(value: Any) -> str:
    """A short text on one line."""
    if value is None:
        return "–"
    if isinstance(value, bool):
        return "yes" if value else "no"
    if isinstance(value, int):
        return f"{value:,}"
    if isinstance(value, float):
        return _number(value)
    if isinstance(value, datetime):
        return value.isoformat(" ", "milliseconds")
    if isinstance(value, date):
        return value.isoformat()
    if isinstance(value, bytes):
        return _line(value.decode("utf-8", "backslashreplace"))
    if isinstance(value, list):
        return _items([cell_text(each) for each in value])
    if isinstance(value, dict):
        return _items([f"{name}={cell_text(each)}" for name, each in value.items()])
    text = str(value)
    if text.startswith(_TRACEBACK):
        return _end(" ".join(text.split()))  # its end has the frame that raised, and what
    return _line(text)


def is_number(value: Any) -> bool:
    """Whether it stands on the right side of its cell."""
    return isinstance(value, int | float) and not isinstance(value, bool)


def _number(value: float) -> str:
    if value != value or value in (float("inf"), float("-inf")):
        return str(value)
    if value == round(value) and abs(value) < 1e15:
        return f"{value:,.0f}"
    return f"{value:,.3g}" if abs(value) < 1 else f"{value:,.2f}"


def _items(texts: list[str]) -> str:
    more = f", … {len(texts) - _MOST_ITEMS} more" if len(texts) > _MOST_ITEMS else ""
    return _line(", ".join(texts[:_MOST_ITEMS]) + more)


def _line(text: str) -> str:
    text = "".join(letter if letter.isprintable() else " " for letter in text)
    return text if len(text) <= _MOST_CHARACTERS else text[: _MOST_CHARACTERS - 1] + "…"


def _end(text: str) -> str:
    text = "".join(letter if letter.isprintable() else " " for letter in text)
    return text if len(text) <= _MOST_CHARACTERS else "…" + text[1 - _MOST_CHARACTERS :]
