"""Writes the broker's tables to disk, beside the event loop: topics and groups soon after a change, offsets every 5 s.

One write after the other: two of the same table at once would mix up the file and its backup.
"""

import asyncio
import logging
from collections.abc import Awaitable, Callable, Sequence
from typing import Any, Final, TypeAlias

from skyrocket.broker.state.consumer_offsets import ConsumerOffsetTable
from skyrocket.broker.state.saved_table import SavedTable
from skyrocket.clock import ServiceClock, SystemClock
from skyrocket.protocol.errors import SystemFailure

_logger = logging.getLogger(__name__)

_TICK_SECONDS: Final = 0.1


class Persistence:
    """Saves what is dirty."""

    def __init__(
        self,
        tables: Sequence[SavedTable[Any]],
        offsets: ConsumerOffsetTable,
        offset_interval_seconds: float = 5.0,
        clock: ServiceClock | None = None,
    ) -> None:
        self._tables = tuple(tables)
        self._offsets = offsets
        self._seldom: tuple[SavedTable[Any], ...] = (offsets,)
        self.offset_interval_seconds = offset_interval_seconds
        self._clock = clock or SystemClock()
        self._turn = asyncio.Lock()
        # Called, maybe in another thread, before offsets are written: what they rest on must be on disk before them.
        self.before_offsets: Callable[[], None] = lambda: None

    def also_save(self, table: SavedTable[Any]) -> None:
        """One more table, of a feature: soon after a change, or as seldom as offsets."""
        if table.saved_with_offsets:
            self._seldom += (table,)
        else:
            self._tables += (table,)

    async def run(self) -> None:
        """Save until cancelled."""
        clock = self._clock
        next_offsets = clock.monotonic() + self.offset_interval_seconds
        while True:
            await clock.sleep(_TICK_SECONDS)
            due: list[SavedTable[Any]] = [table for table in self._tables if table.dirty]
            if clock.monotonic() >= next_offsets:
                next_offsets = clock.monotonic() + self.offset_interval_seconds
                due += [table for table in self._seldom if table.dirty]
            for table in due:
                await self._save(table)

    async def _save(self, table: SavedTable[Any]) -> None:
        try:
            await self.save_now(table)
        except OSError as error:
            _logger.error("a table could not be saved table=%s reason=%s", type(table).__name__, error)

    async def save_now(self, *tables: SavedTable[Any]) -> None:
        """Return when the files say at least what the tables say now; raises OSError.

        Many who wait at the same time share a write: whose turn comes later finds the table clean.
        """
        for table in tables:
            async with self._turn:
                if table.dirty:
                    await _written(asyncio.ensure_future(asyncio.to_thread(self._writing(table))))

    def _writing(self, table: SavedTable[Any]) -> Callable[[], None]:
        write = table.begin_save()
        if table is not self._offsets:
            return write

        def write_after() -> None:
            try:
                self.before_offsets()
            except BaseException:
                table.dirty = True
                raise
            write()

        return write_after

    def save_all(self) -> None:
        """Save everything that is dirty, now; what cannot be written is logged."""
        for table in (*self._tables, *self._seldom):
            if table.dirty:
                try:
                    self._writing(table)()
                except OSError as error:
                    _logger.error("a table could not be saved table=%s reason=%s", type(table).__name__, error)


async def _written(writing: "asyncio.Future[None]") -> None:
    try:
        await asyncio.shield(writing)
    except asyncio.CancelledError:
        await asyncio.wait((writing,))  # the thread goes on: whoever saves next must not meet it
        raise


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
