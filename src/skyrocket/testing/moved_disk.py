"""The real disk, seen from a clock that was moved: files are as old as they would be, and never in the way."""

from skyrocket.store.disk import Disk
from skyrocket.testing.movable_clock import MovableClock


class MovedDisk(Disk):
    """For stores that live as long as a test."""

    def __init__(self, clock: MovableClock) -> None:
        self._clock = clock

    def modified_ms(self, path: str) -> int:
        return self._clock.from_file_ms(super().modified_ms(path))

    def used_ratio(self, path: str) -> float:
        """How full a developer's disk is must not decide over a test; a write that finds no room still fails."""
        return 0.0
