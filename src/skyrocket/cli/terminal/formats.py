"""How received messages are shown: a line of text, JSON or CSV, the bare body, or a table as wide as the terminal.

Whatever could command a terminal is escaped; `body` alone writes bytes as they are.
"""

import json
import shutil
from collections.abc import Callable
from typing import Final

from rich.cells import cell_len, set_cell_size

from skyrocket.cli.output.rows import csv_lines
from skyrocket.cli.output.text import visible, visible_body, visible_json
from skyrocket.cli.terminal.json_lines import described, iso
from skyrocket.cli.terminal.options import Format
from skyrocket.client import ReceivedMessage

_WIDTHS: Final = {"stored at": 29, "queue": 18, "offset": 10, "tags": 12, "keys": 20, "bytes": 8}
_NARROWEST_BODY: Final = 20


def text_line(message: ReceivedMessage) -> str:
    """Time, place, tags and keys if there are any, body."""
    place = f"{message.broker_name}:{message.queue_id}@{message.queue_offset}"
    marks = [f"[{visible(message.tags)}]"] if message.tags else []
    if message.keys:
        marks.append(f"({visible(' '.join(message.keys))})")
    return " ".join((iso(message.store_timestamp), place, *marks, visible_body(message.body)))


def json_line(message: ReceivedMessage) -> str:
    return visible_json(json.dumps(described(message), ensure_ascii=False, separators=(",", ":")))


def table_heading(width: int) -> str:
    return _row([*_WIDTHS, "body"], width)


def table_row(message: ReceivedMessage, width: int) -> str:
    return _row([*_cells(message), visible_body(message.body[: 4 * width])], width)


def wide_row(message: ReceivedMessage) -> str:
    """Nothing is cut."""
    cells = [*_cells(message), visible_body(message.body)]
    sizes = [*_WIDTHS.values(), 0]
    return " ".join(cell + " " * (size - cell_len(cell)) for cell, size in zip(cells, sizes, strict=True)).rstrip()


def _cells(message: ReceivedMessage) -> list[str]:
    return [
        iso(message.store_timestamp),
        f"{message.broker_name}:{message.queue_id}",
        str(message.queue_offset),
        visible(message.tags or ""),
        visible(" ".join(message.keys)),
        str(len(message.body)),
    ]


def _csv_row(message: ReceivedMessage) -> str:
    return csv_lines([[*_cells(message), visible_body(message.body)]])


def _row(cells: list[str], width: int) -> str:
    room = max(width - sum(_WIDTHS.values()) - len(_WIDTHS), _NARROWEST_BODY)
    sized = [set_cell_size(cell, size) for cell, size in zip(cells, [*_WIDTHS.values(), room], strict=True)]
    return " ".join(sized).rstrip()


def output_of(wanted: Format) -> tuple[bytes, Callable[[ReceivedMessage], bytes]]:
    """What stands above all, and what is written for each message."""
    if wanted is Format.BODY:
        return b"", lambda message: message.body + b"\n"
    if wanted is Format.TABLE:
        width = shutil.get_terminal_size((160, 24)).columns
        return _encoded(table_heading(width)), lambda message: _encoded(table_row(message, width))
    if wanted is Format.WIDE:
        return _encoded(" ".join(name.ljust(size) for name, size in _WIDTHS.items()) + " body"), _lines_of(wide_row)
    if wanted is Format.CSV:
        heading = csv_lines([[name.replace(" ", "_") for name in (*_WIDTHS, "body")]])
        return heading.encode(), lambda message: _csv_row(message).encode("utf-8", "backslashreplace")
    return b"", _lines_of(json_line if wanted in (Format.JSON, Format.JSONL) else text_line)


def _lines_of(line: Callable[[ReceivedMessage], str]) -> Callable[[ReceivedMessage], bytes]:
    return lambda message: _encoded(line(message))


def _encoded(line: str) -> bytes:
    return line.encode("utf-8", "backslashreplace") + b"\n"
