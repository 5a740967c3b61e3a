"""Rows and objects in the form that was asked for: table, wide, json, jsonl or csv.

A row is a mapping whose keys are those of JSON, stable for scripts. Columns say which of them a table shows, under
which heading, and which only a wide one does; JSON, JSON lines and CSV have all of them.
"""

import csv
import io
import json
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from enum import Enum
from typing import Any, Final

from rich.cells import cell_len

from skyrocket.cli.output.text import visible, visible_json

Row = Mapping[str, Any]

_GAP: Final = "  "


class Output(Enum):
    """The forms."""

    TABLE = "table"
    WIDE = "wide"
    JSON = "json"
    JSONL = "jsonl"
    CSV = "csv"

    @property
    def is_for_people(self) -> bool:
        return self in (Output.TABLE, Output.WIDE)


@dataclass(frozen=True, slots=True)
class Column:
    """One column: its key in a row, and how a table shows it."""

    key: str
    heading: str = ""
    wide: bool = False  # only shown by a wide table
    number: bool = False  # aligned to the right

    @property
    def title(self) -> str:
        return self.heading or self.key.upper()


def rendered(columns: Sequence[Column], rows: Iterable[Row], output: Output) -> str:
    """All of it, with the line's end behind the last line; nothing for a list without rows in JSON lines."""
    rows = list(rows)
    if output is Output.JSON:
        return _json([_all_of(columns, row) for row in rows], indent=2) + "\n"
    if output is Output.JSONL:
        return "".join(_json(_all_of(columns, row)) + "\n" for row in rows)
    if output is Output.CSV:
        return csv_lines([[column.key for column in columns]] + [[row.get(c.key) for c in columns] for row in rows])
    shown = [column for column in columns if output is Output.WIDE or not column.wide]
    return table_text(
        [column.title for column in shown],
        [[cell(row.get(column.key)) for column in shown] for row in rows],
        {at for at, column in enumerate(shown) if column.number},
    )


def rendered_object(fields: Row, output: Output) -> str:
    """One object: a line per field, or JSON."""
    if output is Output.JSON:
        return _json(fields, indent=2) + "\n"
    if output is Output.JSONL:
        return _json(fields) + "\n"
    if output is Output.CSV:
        return csv_lines([["key", "value"], *([key, value] for key, value in fields.items())])
    width = max((cell_len(visible(key)) for key in fields), default=0)
    return "".join(f"{_padded(visible(key), width)}{_GAP}{cell(value)}\n" for key, value in fields.items())


def table_text(titles: Sequence[str], rows: Sequence[Sequence[str]], numbers: set[int]) -> str:
    """Columns as wide as their widest cell; numbers stand to the right."""
    widths = [max(map(cell_len, cells)) for cells in zip(titles, *rows, strict=True)]
    return "".join(
        _GAP.join(
            _padded(text, width, right=at in numbers) for at, (text, width) in enumerate(zip(line, widths, strict=True))
        ).rstrip()
        + "\n"
        for line in [titles, *rows]
    )


def cell(value: Any) -> str:
    """A value as a table shows it, on one line and without anything that could command a terminal."""
    if value is None or value == "":
        return "-"
    if isinstance(value, bool):
        return "yes" if value else "no"
    if isinstance(value, float):
        return f"{value:.2f}"
    if isinstance(value, datetime):
        return moment_text(value)
    if isinstance(value, Mapping):
        return visible(",".join(f"{key}={each}" for key, each in value.items())) or "-"
    if isinstance(value, list | tuple | set | frozenset):
        return visible(",".join(map(str, value))) or "-"
    return visible(str(value))


def moment_text(moment: datetime) -> str:
    """Local time to the second."""
    return moment.astimezone().strftime("%Y-%m-%d %H:%M:%S")


def _all_of(columns: Sequence[Column], row: Row) -> Row:
    """The columns' keys first, then what else the row has."""
    return {**{column.key: row.get(column.key) for column in columns}, **row}


def _json(value: Any, indent: int | None = None) -> str:
    return visible_json(json.dumps(value, ensure_ascii=False, indent=indent, default=_json_value))


def _json_value(value: Any) -> Any:
    if isinstance(value, datetime):
        return value.astimezone().isoformat(timespec="milliseconds")
    if isinstance(value, set | frozenset):
        return sorted(value)
    raise TypeError(f"{value!r} cannot be written as JSON")


def csv_lines(lines: Iterable[Iterable[Any]]) -> str:
    """Each with its end."""
    text = io.StringIO()
    csv.writer(text, lineterminator="\n").writerows([_csv_cell(value) for value in line] for line in lines)
    return text.getvalue()


def _csv_cell(value: Any) -> str:
    if value is None:
        return ""
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, datetime):
        return str(_json_value(value))
    if isinstance(value, Mapping | list | tuple | set | frozenset):
        return _json(value)
    return visible(str(value))


def _padded(text: str, width: int, *, right: bool = False) -> str:
    blanks = " " * (width - cell_len(text))
    return blanks + text if right else text + blanks
