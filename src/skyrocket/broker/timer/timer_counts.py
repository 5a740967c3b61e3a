"""How many timers of each topic wait, as `timermetrics` keeps it."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from skyrocket.broker.state.saved_table import SavedTable
from skyrocket.clock import Clock
from skyrocket.format.config_files.metric import Metric
from skyrocket.format.config_files.timer_metrics import TimerMetrics
from skyrocket.store.config_file import ConfigFile


class TimerCountTable(SavedTable[TimerMetrics]):
    """By real topic; a cancel counts against the message that it cancels."""

    def __init__(self, file: ConfigFile[TimerMetrics], clock: Clock) -> None:
        super().__init__(file, clock, save_at_once=False)
        self._topics: dict[str, Metric] = {}
        self._unknown: Mapping[str, Any] = {}

    def add_all(self, changes: Mapping[str, int]) -> None:
        """Timers came and went, by topic."""
        now_ms = self._clock.now_ms()
        for topic, change in changes.items():
            before = self._topics.get(topic, Metric())
            self._topics[topic] = Metric(before.count + change, now_ms, before.unknown)
        if changes:
            self._changed()

    def none_waits(self) -> None:
        """Say so: after a crash, or another program's care, the numbers may be off."""
        wrong = {topic: -metric.count for topic, metric in self._topics.items() if metric.count}
        self.add_all(wrong)

    def counts(self) -> dict[str, int]:
        """Timers that wait, by topic."""
        return {topic: metric.count for topic, metric in self._topics.items()}

    def content(self) -> TimerMetrics:
        return TimerMetrics(self.data_version, dict(self._topics), self._unknown)

    def _take(self, content: TimerMetrics) -> None:
        self.data_version = content.data_version
        self._topics = dict(content.topics)
        self._unknown = content.unknown


@dataclass(slots=True)
class TimerTotals:
    """What the timer has done since the start, in messages but for `parked`: cancels are parked too."""

    parked: int = 0
    delivered: int = 0
    rolled: int = 0
    cancelled: int = 0
    dropped: int = 0  # could not be read, or will never be taken
