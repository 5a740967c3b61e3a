"""How many messages of each topic wait, for operators: timers in `timermetrics`, halves in `transactionMetrics`."""

from collections.abc import Mapping
from typing import Any, TypeVar

from skyrocket.broker.state.saved_table import SavedTable
from skyrocket.clock import Clock
from skyrocket.format.config_files import Metric, TimerMetrics, TransactionMetrics
from skyrocket.store.config_file import ConfigFile

T = TypeVar("T", bound=TimerMetrics | TransactionMetrics)


class WaitingCountTable(SavedTable[T]):
    """By real topic. After a crash a count may be off, and RocketMQ lets it fall below zero."""

    content_class: type[T]

    def __init__(self, file: ConfigFile[T], clock: Clock) -> None:
        super().__init__(file, clock, save_at_once=False)
        self._topics: dict[str, Metric] = {}
        self._unknown: Mapping[str, Any] = {}

    def add(self, topic: str, change: int) -> None:
        """Messages of one topic came, or are gone."""
        self.add_all({topic: change})

    def add_all(self, changes: Mapping[str, int]) -> None:
        """Messages came and went, by topic."""
        now_ms = self._clock.now_ms()
        for topic, change in changes.items():
            before = self._topics.get(topic, Metric())
            self._topics[topic] = Metric(before.count + change, now_ms, before.unknown)
        if changes:
            self._changed()

    def none_waits(self) -> None:
        """Set every count to zero: after a crash, or when another program has used the store, they may be off."""
        wrong = {topic: -metric.count for topic, metric in self._topics.items() if metric.count}
        self.add_all(wrong)

    def counts(self) -> dict[str, int]:
        """How many wait, by topic."""
        return {topic: metric.count for topic, metric in self._topics.items()}

    def content(self) -> T:
        return self.content_class(self.data_version, dict(self._topics), self._unknown)

    def _take(self, content: T) -> None:
        self.data_version = content.data_version
        self._topics = dict(content.topics)
        self._unknown = content.unknown
