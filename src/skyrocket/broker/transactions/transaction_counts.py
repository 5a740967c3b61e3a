"""How many halves of each topic wait for their end, as `transactionMetrics` keeps it."""

from collections.abc import Mapping
from typing import Any

from skyrocket.broker.state.saved_table import SavedTable
from skyrocket.clock import Clock
from skyrocket.format.config_files.metric import Metric
from skyrocket.format.config_files.transaction_metrics import TransactionMetrics
from skyrocket.store.config_file import ConfigFile


class TransactionCountTable(SavedTable[TransactionMetrics]):
    """By real topic. A number for operators: after a crash it may be off, and RocketMQ lets it fall below zero."""

    def __init__(self, file: ConfigFile[TransactionMetrics], clock: Clock) -> None:
        super().__init__(file, clock, save_at_once=False)
        self._topics: dict[str, Metric] = {}
        self._unknown: Mapping[str, Any] = {}

    def add(self, topic: str, change: int) -> None:
        """A half came, or one has ended."""
        before = self._topics.get(topic, Metric())
        self._topics[topic] = Metric(before.count + change, self._clock.now_ms(), before.unknown)
        self._changed()

    def counts(self) -> dict[str, int]:
        """Halves that wait, by topic."""
        return {topic: metric.count for topic, metric in self._topics.items()}

    def content(self) -> TransactionMetrics:
        return TransactionMetrics(self.data_version, dict(self._topics), self._unknown)

    def _take(self, content: TransactionMetrics) -> None:
        self.data_version = content.data_version
        self._topics = dict(content.topics)
        self._unknown = content.unknown
