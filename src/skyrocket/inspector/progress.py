"""A progress bar for long scans: on a terminal only, on stderr, and not before a second has passed."""

import sys
from typing import Self

from rich.console import Console
from rich.progress import BarColumn, DownloadColumn, Progress, TimeRemainingColumn, TransferSpeedColumn

from skyrocket.clock import Clock

_QUIET_SECONDS = 1.0


class ScanProgress:
    """Told how many bytes were read; shows itself when the scan turns out to be long."""

    def __init__(self, total: int, clock: Clock, *, terminal: bool | None = None) -> None:
        self._total = total
        self._clock = clock
        self._terminal = sys.stderr.isatty() if terminal is None else terminal
        self._done = 0
        self._bar: Progress | None = None
        self._begin = clock.monotonic()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        if self._bar is not None:
            self._bar.stop()

    @property
    def is_shown(self) -> bool:
        return self._bar is not None

    def advance(self, count: int) -> None:
        """Count bytes that were read."""
        self._done += count
        if self._bar is None and self._terminal and self._clock.monotonic() - self._begin > _QUIET_SECONDS:
            columns = (BarColumn(), DownloadColumn(binary_units=True), TransferSpeedColumn(), TimeRemainingColumn())
            self._bar = Progress(*columns, console=Console(stderr=True), transient=True)
            self._bar.add_task("scan", total=self._total)
            self._bar.start()
        if self._bar is not None:
            self._bar.update(self._bar.task_ids[0], completed=self._done)
