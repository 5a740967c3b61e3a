"""A table that is kept in a file under `config/` and counts its changes."""

import asyncio
import logging
from abc import ABC, abstractmethod
from collections.abc import Callable
from dataclasses import replace
from typing import ClassVar, Generic, TypeVar

from skyrocket.clock import Clock
from skyrocket.model.data_version import DataVersion
from skyrocket.store.config_file import ConfigFile

Content = TypeVar("Content")

_logger = logging.getLogger(__name__)


class SavedTable(ABC, Generic[Content]):
    """Loaded once, then changed in memory; `dirty` while the file does not say the same.

    With `save_at_once` a change is on disk when it returns; otherwise the owner saves from time to time.
    """

    saved_with_offsets: ClassVar[bool] = False  # not soon after a change, but when consumer offsets are saved

    def __init__(self, file: ConfigFile[Content], clock: Clock, *, save_at_once: bool) -> None:
        self.data_version = DataVersion()
        self.dirty = False
        self._file = file
        self._clock = clock
        self._save_at_once = save_at_once

    def load(self) -> None:
        """Take what the file says; raises CorruptFile when it says nothing sensible."""
        content = self._file.load()
        if content is not None:
            self._take(content)

    def save(self) -> None:
        """Make the file say what the table says."""
        self.begin_save()()

    def begin_save(self) -> Callable[[], None]:
        """Take what the table says now; the result writes it.

        Ten thousand topics take half a second to write: another thread may do it, one write after the other.
        """
        content = self.content()
        self.dirty = False

        def write() -> None:
            try:
                self._file.save(content)
            except BaseException:
                self.dirty = True
                raise

        return write

    async def save_beside(self) -> None:
        """Write it in another thread; what cannot be written is logged and tried again next time."""
        if not self.dirty:
            return
        writing = asyncio.ensure_future(asyncio.to_thread(self.begin_save()))
        try:
            await asyncio.shield(writing)
        except asyncio.CancelledError:
            await asyncio.wait((writing,))  # the thread goes on: the last save must not meet it
            raise
        except OSError as error:
            _logger.error("the table could not be saved path=%s reason=%s", self._file.path, error)

    def replace(self, content: Content) -> None:
        """Become a copy of another broker's table, data version included."""
        self._take(content)
        self._touched()

    def raise_version(self) -> None:
        """Count a change that is not in the table itself, such as another permission of the broker."""
        self._changed()

    def enter_epoch(self, epoch: int) -> None:
        """This broker is master of an epoch: its table is newer than that of any master before it."""
        self.data_version = replace(self.data_version, state_version=epoch)
        self._changed()

    @abstractmethod
    def content(self) -> Content:
        """The table as it is saved."""

    @abstractmethod
    def _take(self, content: Content) -> None: ...

    def _changed(self) -> None:
        self._next_version()
        self._touched()

    def _next_version(self) -> None:
        self.data_version = self.data_version.next(self._clock.now_ms())

    def _touched(self) -> None:
        self.dirty = True
        if self._save_at_once:
            self.save()
