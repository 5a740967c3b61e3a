"""How far each delay level has been delivered, as `delayOffset.json` keeps it."""

from collections.abc import Mapping
from typing import Any

from skyrocket.broker.state.saved_table import SavedTable
from skyrocket.clock import Clock
from skyrocket.format.config_files import DelayOffsets
from skyrocket.store.config_file import ConfigFile


class DelayOffsetTable(SavedTable[DelayOffsets]):
    """Level (from 1) → next queue offset to deliver; what it says is delivered is on disk."""

    def __init__(self, file: ConfigFile[DelayOffsets], clock: Clock) -> None:
        super().__init__(file, clock, save_at_once=False)
        self._offsets: dict[int, int] = {}
        self._unknown: Mapping[str, Any] = {}

    def __getitem__(self, level: int) -> int:
        return self._offsets.get(level, 0)

    def advance(self, offsets: Mapping[int, int]) -> None:
        """Remember where levels go on; one data version for all of them."""
        if any(self._offsets.get(level) != offset for level, offset in offsets.items()):
            self._offsets.update(offsets)
            self._changed()

    def content(self) -> DelayOffsets:
        return DelayOffsets(self.data_version, dict(sorted(self._offsets.items())), self._unknown)

    def _take(self, content: DelayOffsets) -> None:
        self.data_version = content.data_version
        self._offsets = dict(content.offsets)
        self._unknown = content.unknown
