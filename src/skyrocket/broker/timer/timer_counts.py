"""What the timer counts: timers that wait, and what was done with them."""

from dataclasses import dataclass

from skyrocket.broker.state.waiting_counts import WaitingCountTable
from skyrocket.format.config_files import TimerMetrics


class TimerCountTable(WaitingCountTable[TimerMetrics]):
    """Timers that wait; a cancel counts against the message that it cancels."""

    content_class = TimerMetrics


@dataclass(slots=True)
class TimerTotals:
    """What the timer has done since the start, in messages but for `parked`: cancels are parked too."""

    parked: int = 0
    delivered: int = 0
    rolled: int = 0
    cancelled: int = 0
    dropped: int = 0  # could not be read, or will never be taken
