"""Administrators hear of success after the change is on disk."""

from collections.abc import Awaitable, Callable
from typing import Any, TypeAlias

from skyrocket.broker.state.saved_table import SavedTable
from skyrocket.protocol.codes import ResponseCode
from skyrocket.protocol.command import Body, RemotingCommand
from skyrocket.protocol.errors import SystemFailure

SaveTables: TypeAlias = Callable[..., Awaitable[None]]  # takes the tables; raises OSError


async def answer_when_saved(
    request: RemotingCommand, save: SaveTables, *tables: SavedTable[Any], remark: str | None = None, body: Body = b""
) -> RemotingCommand:
    """Success, when the files of these tables say what the tables say."""
    try:
        await save(*tables)
    except OSError as error:
        raise SystemFailure(
            f"the change is in force but could not be saved: {error}. Free or repair the broker's disk; "
            "it is saved as soon as that is possible"
        ) from error
    return request.answer(ResponseCode.SUCCESS, remark, None, body)
