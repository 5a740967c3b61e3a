"""Administrators hear of success after the change is on disk."""

from collections.abc import Awaitable, Callable
from typing import Any, TypeAlias

from skyrocket.broker.state.saved_table import SavedTable
from skyrocket.protocol.errors import SystemFailure

SaveTables: TypeAlias = Callable[..., Awaitable[None]]  # takes the tables; raises OSError


async def saved(save: SaveTables, *tables: SavedTable[Any]) -> None:
    """Return when the files of these tables say what the tables say; raises SystemFailure."""
    try:
        await save(*tables)
    except OSError as error:
        raise SystemFailure(
            f"the change is in force but could not be saved: {error}. Free or repair the broker's disk; "
            "it is saved as soon as that is possible"
        ) from error
