"""Builds what belongs to timers, and says what operators may know about them.

pending()     which messages wait, soonest first
counts()      how many of each topic wait
metrics()     for /metrics
"""

from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Final

from skyrocket.broker.rules.put_rules import PutRules
from skyrocket.broker.state.identity import BrokerIdentity
from skyrocket.broker.state.live_settings import LiveSettings
from skyrocket.broker.state.topics import TopicTable
from skyrocket.broker.timer.admin import TimerAdminProcessor
from skyrocket.broker.timer.recall import RecallProcessor
from skyrocket.broker.timer.rules import TimerRules
from skyrocket.broker.timer.service import PendingTimer, TimerPlace, TimerService
from skyrocket.broker.timer.timer_counts import TimerCountTable
from skyrocket.clock import ServiceClock
from skyrocket.config.sections import BrokerConfig
from skyrocket.format.config_files import timer_metrics
from skyrocket.observability.exposition import Kind, Metric
from skyrocket.remoting.serving import Handlers
from skyrocket.store.config_file import ConfigFile
from skyrocket.store.disk import Disk
from skyrocket.store.message_store import MessageStore
from skyrocket.store.timer.timer_files import TimerFiles

_KEYS: Final = (
    "timerMaxDelaySec",
    "timerCongestNumEachSlot",
    "appendTopicForTimerDeleteKey",
    "recallMessageEnable",
    "allowRecallWhenBrokerNotWriteable",
    "brokerPermission",
)


class Timers:
    """The timers of one broker; without `timerWheelEnable` there is no service, and what asks for one is refused."""

    def __init__(
        self,
        store: MessageStore,
        topics: TopicTable,
        identity: BrokerIdentity,
        config: BrokerConfig,
        clock: ServiceClock,
        after_put: Callable[[], None],
        rules: PutRules,
        disk: Disk | None = None,
    ) -> None:
        settings, disk = store.config, disk or Disk()
        path = str(Path(store.paths.config) / "timermetrics")
        self.counts = TimerCountTable(ConfigFile(disk, path, timer_metrics.decode, timer_metrics.encode), clock)
        files: TimerFiles | None = None
        self.service: TimerService | None = None
        self._rules = TimerRules(settings, clock)
        if settings.timer_wheel:
            files = TimerFiles(disk, store.paths, settings.timer_precision_ms, settings.timer_log_file_size)
            self.service = TimerService(store, files, self.counts, clock, after_put, settings)
            self._rules = TimerRules(settings, clock, self.service.waiting_at)
        self._admin = TimerAdminProcessor(files, self.counts)
        self._recall = RecallProcessor(store, topics, self._rules, identity, config, clock, after_put)
        self._clock = clock
        rules.park, rules.timer_step = self._rules.apply, self._rules.step_for

    def handlers(self) -> Handlers:
        return (*self._recall.handlers(), *self._admin.handlers())

    def follow(self, settings: LiveSettings) -> None:
        """Take other settings at once."""

        def apply() -> None:
            self._rules.use(settings.store)
            self._recall.use(settings.broker, settings.store)

        settings.follow(apply, *_KEYS)

    def load(self) -> None:
        """Take up the work where it was left; the store must be open. Raises CorruptFile."""
        if self.service is not None:
            self.service.load()

    def close(self) -> None:
        """Save how far it has come."""
        if self.service is not None:
            self.service.close()

    # ── for operators ────────────────────────────────────────────────────────────────────────────────────────────────

    def pending(self, from_ms: int = 0, limit: int = 1000) -> list[PendingTimer]:
        """Messages that wait for a time from this one on, soonest first."""
        return [] if self.service is None else self.service.pending(from_ms, limit)

    def pending_page(self, place: TimerPlace, most: int) -> tuple[list[PendingTimer], TimerPlace | None]:
        """A bounded part of them, and where to go on; raises DataError for a place that was never told."""
        return ([], None) if self.service is None else self.service.pending_page(place, most)

    def rows(self) -> dict[str, str]:
        """For runtime info, with RocketMQ's names."""
        service = self.service
        if service is None:
            return {}
        behind_ms = max(self._clock.now_ms() - service.read_time_ms, 0)
        return {
            "timerReadBehind": str(behind_ms // 1000),
            "timerOffsetBehind": str(service.unparked),
            "timerCongestNum": str(self._waiting()),
            "timerEnqueueTps": str(service.parked_per_second),
            "timerDequeueTps": str(service.delivered_per_second),
        }

    def _waiting(self) -> int:
        return sum(max(count, 0) for count in self.counts.counts().values())

    def metrics(self) -> Iterator[Metric]:
        """Counted since the start, but for what waits."""
        service = self.service
        if service is None:
            return
        waiting = Metric("rocketmq_timing_messages", Kind.GAUGE, "Timers that wait, by topic")
        for topic, count in self.counts.counts().items():
            waiting.add(count, topic=topic)
        yield waiting
        behind_ms = max(self._clock.now_ms() - service.read_time_ms, 0)
        totals = service.totals
        for name, kind, help_text, value in (
            ("rocketmq_timer_enqueue_lag", Kind.GAUGE, "Timers sent that are not on the wheel yet", service.unparked),
            ("rocketmq_timer_dequeue_latency", Kind.GAUGE, "Milliseconds since the step delivered next", behind_ms),
            ("rocketmq_timer_enqueue_total", Kind.COUNTER, "Timers put on the wheel", totals.parked),
            ("rocketmq_timer_dequeue_total", Kind.COUNTER, "Timers delivered", totals.delivered),
            ("skyrocket_timers_rolled_total", Kind.COUNTER, "Timers written to the log again", totals.rolled),
            ("skyrocket_timers_recalled_total", Kind.COUNTER, "Timers recalled by their senders", totals.cancelled),
            ("skyrocket_timers_dropped_total", Kind.COUNTER, "Timers that could not be delivered", totals.dropped),
        ):
            metric = Metric(name, kind, help_text)
            metric.add(value)
            yield metric
