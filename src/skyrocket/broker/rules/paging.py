"""Pages of a table by name, for peers that copy it in pieces."""

from collections.abc import Mapping
from typing import TypeVar

from skyrocket.model.data_version import DataVersion
from skyrocket.protocol.bodies.topics import DATA_VERSION
from skyrocket.protocol.errors import MalformedBody
from skyrocket.protocol.requests.table_pages import PAGE_ROWS

Row = TypeVar("Row")


def page_of(
    table: Mapping[str, Row], first: int | None, count: int | None, their_version: str | None, version: DataVersion
) -> dict[str, Row]:
    """Rows from a place on in the order of names; everything for who does not ask for pages.

    Whoever began with another version of the table gets its first page.
    """
    if first is None and count is None and their_version is None:
        return dict(table)
    start = max(first or 0, 0) if _same(their_version, version) else 0
    size = PAGE_ROWS if count is None or count <= 0 else min(count, PAGE_ROWS)
    return {name: table[name] for name in sorted(table)[start : start + size]}


def _same(text: str | None, version: DataVersion) -> bool:
    if not text:
        return False
    try:
        return DATA_VERSION.decode(text.encode()) == version
    except MalformedBody:
        return False
