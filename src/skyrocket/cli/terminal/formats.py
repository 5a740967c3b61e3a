"""How received messages are shown: a line of text, a line of JSON, the bare body, or a table as wide as the terminal.

In text and tables whatever could command a terminal is escaped; `body` writes bytes as they are.
"""

import json
import shutil
from collections.abc import Callable
from typing import Final

from rich.cells import set_cell_size

from skyrocket.cli.output.text import visible, visible_body
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
    return json.dumps(described(message), ensure_ascii=False, separators=(",", ":"))


def table_heading(width: int) -> str:
    return _row([*_WIDTHS, "body"], width)


def table_row(message: ReceivedMessage, width: int) -> str:
    cells = [
        iso(message.store_timestamp),
        f"{message.broker_name}:{message.queue_id}",
        str(message.queue_offset),
        visible(message.tags or ""),
        visible(" ".join(message.keys)),
        str(len(message.body)),
        visible_body(message.body[: 4 * width]),
    ]
    return _row(cells, width)


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
    line = json_line if wanted is Format.JSON else text_line
    return b"", lambda message: _encoded(line(message))


def _encoded(line: str) -> bytes:
    return line.encode("utf-8", "backslashreplace") + b"\n"
