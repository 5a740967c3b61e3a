"""Timers: messages that wait for a time of their own, how they are recalled, and what operators may know of them."""

import asyncio
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Final

from skyrocket.broker.core.feature import Copied, Feature, Follow
from skyrocket.broker.core.parts import Parts
from skyrocket.broker.timer.acting import ActingTimer
from skyrocket.broker.timer.admin import TimerAdminProcessor
from skyrocket.broker.timer.following import TimerFollower
from skyrocket.broker.timer.pending import PendingTimerProcessor
from skyrocket.broker.timer.recall import RecallProcessor
from skyrocket.broker.timer.rules import TimerRules
from skyrocket.broker.timer.service import PendingTimer, TimerService
from skyrocket.broker.timer.timer_counts import TimerCountTable
from skyrocket.format.config_files import TIMERS
from skyrocket.format.timer_checkpoint import decode_timer_checkpoint
from skyrocket.observability.exposition import Kind, Metric
from skyrocket.protocol.requests.admin_broker import GetTimerCheckPoint, GetTimerMetrics
from skyrocket.remoting.services import Work
from skyrocket.remoting.serving import Handlers
from skyrocket.store.config_file import ConfigFile
from skyrocket.store.timer.timer_files import TimerFiles

_KEYS: Final = (
    "timerMaxDelaySec",
    "timerCongestNumEachSlot",
    "appendTopicForTimerDeleteKey",
    "recallMessageEnable",
    "allowRecallWhenBrokerNotWriteable",
    "brokerPermission",
)


class TimerFeature(Feature):
    """Without `timerWheelEnable` there is no service, and what asks for one is refused."""

    def __init__(self, parts: Parts) -> None:
        store, clock, config = parts.store, parts.clock, parts.store.config
        path = str(Path(store.paths.config) / "timermetrics")
        self.counts = TimerCountTable(ConfigFile(parts.disk, path, TIMERS.decode, TIMERS.encode), clock)
        self._delivers = parts.is_master  # a slave parks and delivers nothing, unless it acts as master
        files: TimerFiles | None = None
        self.service: TimerService | None = None
        self._follower = TimerFollower(parts.disk, store.paths.timer_checkpoint, self.counts)
        if config.timer_wheel and self._delivers:
            files = TimerFiles(parts.disk, store.paths, config.timer_precision_ms, config.timer_log_file_size)
            self.service = TimerService(store, files, self.counts, clock, config)
        self._rules = parts.rules.timers = TimerRules(config, clock, self.service)
        may_act = config.timer_wheel and parts.may_act
        self._may_become_master = config.timer_wheel and parts.switching is not None
        self._acting = ActingTimer(parts, self._follower, self._rules.have) if may_act else None
        self._admin = TimerAdminProcessor(
            files, self.counts, (lambda: self._follower.known) if may_act else None, self._read_time_ms
        )
        self._pending = PendingTimerProcessor(self.service, config.timer_wheel)
        self._recall = RecallProcessor(store, parts.tables.topics, self._rules, parts.identity, parts.config, clock)
        self._clock = clock
        self._settings = parts.settings
        self._when_online = parts.broker_set.when_online
        self._special = parts.special
        self._paths = store.paths

    def _read_time_ms(self) -> int:
        return 0 if self.service is None else self.service.read_time_ms

    def handlers(self) -> Handlers:
        return (*self._recall.handlers(), *self._admin.handlers(), *self._pending.handlers())

    def services(self) -> tuple[Work, ...]:
        if self.service is not None:
            return (self._when_online(self.service.run), self._when_online(self.service.run_saves))
        return (self._run_acting,) if self._acting is not None else ()

    async def _run_acting(self) -> None:
        assert self._acting is not None
        await self._acting.run(self._special)

    def copied(self) -> tuple[Copied, ...]:
        return (
            Copied(GetTimerCheckPoint(), self._follower.take_checkpoint, after_log=True),
            Copied(GetTimerMetrics(), self._follower.take_counts),
        )

    def taken_back(self) -> tuple[Copied, ...]:
        return (Copied(GetTimerCheckPoint(), self._take_back),) if self.service is not None else ()

    def _take_back(self, body: bytes) -> None:
        """How far a slave has parked and delivered in this broker's place; raises DataError."""
        told = decode_timer_checkpoint(body)
        if self.service is not None:
            parked_before = max(told.queue_offset, told.master_queue_offset)
            self.service.delivered_elsewhere(parked_before, told.last_read_time_ms)

    def tables(self) -> tuple[TimerCountTable, ...]:
        return () if self._delivers else (self.counts,)  # who delivers saves them with its wheel

    def follows(self) -> tuple[Follow, ...]:
        return (Follow(self._settings_changed, _KEYS),)

    def _settings_changed(self) -> None:
        self._rules.use(self._settings.store)
        self._recall.use(self._settings.broker, self._settings.store)

    async def open(self) -> None:
        await asyncio.to_thread(self.load)

    def load(self) -> None:
        """Take up the work where it was left; the store must be open. Raises CorruptFile."""
        if self.service is not None:
            self.service.load()
        elif not self._delivers:
            self.counts.load()
            self._follower.load()
            if self._acting is not None or self._may_become_master:
                self._follower.let_wheel_go(self._paths)

    async def close(self) -> None:
        if self.service is not None:
            await asyncio.to_thread(self.service.close)

    # ── for operators ────────────────────────────────────────────────────────────────────────────────────────────────

    def pending(self, from_ms: int = 0, limit: int = 1000) -> list[PendingTimer]:
        """Messages that wait for a time from this one on, soonest first."""
        return [] if self.service is None else self.service.pending(from_ms, limit)

    def runtime_rows(self) -> Mapping[str, str]:
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
