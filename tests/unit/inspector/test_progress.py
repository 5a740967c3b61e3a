"""The progress bar stays away from short scans and from programs."""

import pytest

from skyrocket.inspector.progress import ScanProgress


class HandClock:
    def __init__(self) -> None:
        self.seconds = 100.0

    def now_ms(self) -> int:
        return int(self.seconds * 1000)

    def monotonic(self) -> float:
        return self.seconds


@pytest.mark.parametrize(("terminal", "seconds", "shown"), [(True, 0.9, False), (True, 1.1, True), (False, 60, False)])
def test_the_bar_is_shown_on_a_terminal_after_a_second(terminal: bool, seconds: float, shown: bool) -> None:
    clock = HandClock()
    with ScanProgress(1000, clock, terminal=terminal) as progress:
        progress.advance(10)
        assert not progress.is_shown
        clock.seconds += seconds
        progress.advance(10)
        assert progress.is_shown == shown
