"""What both kinds of tables are told: which batch it is, and when rows do not fit."""

from collections.abc import Mapping
from typing import NamedTuple

from skyrocket.errors import SkyrocketError


class BatchId(NamedTuple):
    """Which batch of which query; kept by the table with the rows."""

    query: str  # of the checkpoint, through all restarts
    number: int  # counts up


def check_columns(table: str, there: Mapping[str, object], given: Mapping[str, object]) -> None:
    """Raises SkyrocketError when rows have other columns than the table, or other types."""
    differing = sorted(name for name in there.keys() | given.keys() if there.get(name) != given.get(name))
    if differing:
        raise SkyrocketError(
            f"{table} has other columns than the rows: {', '.join(differing)}; change the SQL, or write elsewhere"
        )
