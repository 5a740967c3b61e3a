"""What the timer has done since the start."""

from dataclasses import dataclass


@dataclass(slots=True)
class TimerTotals:
    """Messages, but for `parked`: cancels are parked too."""

    parked: int = 0
    delivered: int = 0
    rolled: int = 0
    cancelled: int = 0
    dropped: int = 0  # could not be read, or will never be taken
