"""GET_BROKER_RUNTIME_INFO: the table that `brokerStatus`, `clusterList` and dashboards read; every value is text."""

import shutil
from collections.abc import Iterable, Mapping
from functools import partial
from typing import Final

from skyrocket.broker.core.feature import Feature
from skyrocket.broker.core.request_classes import RequestClasses
from skyrocket.broker.state.counters import BROKER_GET_NUMS, BROKER_PUT_NUMS
from skyrocket.broker.statistics.sampling import Sampling, Traffic, traffic
from skyrocket.clock import Clock
from skyrocket.protocol.codes import OUR_VERSION, RequestCode, version_name
from skyrocket.store.disk import Disk
from skyrocket.store.message_store import MessageStore
from skyrocket.store.statistics import LatencyHistogram

Rows = Mapping[str, str]

# RocketMQ's thread pools; here the class of requests that a code belongs to, and what waits in it.
_POOLS: Final = {
    "send": RequestCode.SEND_MESSAGE_V2,
    "pull": RequestCode.PULL_MESSAGE,
    "litePull": RequestCode.LITE_PULL_MESSAGE,
    "query": RequestCode.QUERY_MESSAGE,
    "ack": RequestCode.ACK_MESSAGE,
}
_LATENCY_CLASSES: Final = (
    "<=0ms",
    "0~10ms",
    "10~50ms",
    "50~100ms",
    "100~200ms",
    "200~500ms",
    "500ms~1s",
    "1~2s",
    "2~3s",
    "3~4s",
    "4~5s",
    "5~10s",
    "10s~",
)
_LATENCY_LIMITS_MS: Final = (0, 10, 50, 100, 200, 500, 1000, 2000, 3000, 4000, 5000, 10_000)
_UNLIMITED_BUFFERS: Final = (1 << 31) - 1
# What a broker without a timer says of it.
_NO_TIMER: Final = {
    "timerReadBehind": "0",
    "timerOffsetBehind": "0",
    "timerCongestNum": "0",
    "timerEnqueueTps": "0.0",
    "timerDequeueTps": "0.0",
}


class RuntimeInfo:
    """Puts the table together; features add rows of their own, or know better than these."""

    def __init__(
        self,
        store: MessageStore,
        sampling: Sampling,
        clock: Clock,
        classes: RequestClasses,
        features: Iterable[Feature],
    ) -> None:
        self._store = store
        self._sampling = sampling
        self._clock = clock
        self._classes = classes
        self._features = features
        self._disk = Disk()

    def table(self) -> dict[str, str]:
        """All rows as they are now."""
        rows = {**_NO_TIMER, **self._life(), **self._totals(), **self._speeds(), **self._puts(), **self._log()}
        rows.update(self._waiting())
        for feature in self._features:
            rows.update(feature.runtime_rows())
        return rows

    def _life(self) -> Rows:
        started_ms = self._sampling.started_ms
        return {
            "brokerActive": "true",
            "brokerVersionDesc": version_name(OUR_VERSION),
            "bootTimestamp": str(started_ms),
            "runtime": duration_text(self._clock.now_ms() - started_ms),
            "startAcceptSendRequestTimeStamp": "0",  # a time before which sends are refused: there is none
            "earliestMessageTimeStamp": str(self._store.reader.earliest_log_time()),
        }

    def _totals(self) -> Rows:
        sampling = self._sampling
        rows = {}
        for deed, days, name in (
            ("Put", sampling.puts_by_day, BROKER_PUT_NUMS),
            ("Get", sampling.gets_by_day, BROKER_GET_NUMS),
        ):
            total = sampling.counters.total(name)
            days.look(partial(sampling.counters.total, name))
            rows[f"msg{deed}TotalYesterdayMorning"] = str(days.yesterday_morning)
            rows[f"msg{deed}TotalTodayMorning"] = str(days.this_morning)
            rows[f"msg{deed}TotalTodayNow"] = str(total)
        return rows

    def _speeds(self) -> Rows:
        per_second = self._sampling.rates.per_second
        transferred = _numbers(per_second(lambda traffic: traffic.transferred))
        return {
            "putTps": _numbers(per_second(lambda traffic: traffic.put)),
            "getFoundTps": _numbers(per_second(lambda traffic: traffic.found)),
            "getMissTps": _numbers(per_second(lambda traffic: traffic.missed)),
            "getTotalTps": _numbers(per_second(_reads)),
            "getTransferredTps": transferred,
            "getTransferedTps": transferred,  # RocketMQ 4 spells it so, and old dashboards do
        }

    def _puts(self) -> Rows:
        statistics, latency = self._store.statistics, self._store.statistics.put_latency
        messages, size = traffic(statistics).put, self._sampling.counters.stored_bytes
        return {
            "putMessageTimesTotal": str(messages),
            "putMessageFailedTimes": str(statistics.put_refused),
            "putMessageSizeTotal": str(size),
            "putMessageAverageSize": str(size / messages if messages else 0.0),
            "putMessageEntireTimeMax": str(int(latency.max_ms)),
            "putMessageDistributeTime": distribution_text(latency),
            "putLatency99": f"{percentile_ms(latency, 0.99):.2f}",
            "putLatency999": f"{percentile_ms(latency, 0.999):.2f}",
            "getMessageEntireTimeMax": str(int(self._sampling.counters.slowest_pull_ms)),
        }

    def _log(self) -> Rows:
        store, log = self._store, self._store.commit_log
        usage = shutil.disk_usage(store.paths.root)
        log_ratio = str(self._disk.used_ratio(store.paths.commit_log))
        began_ms = log.append_began_ms
        rows = {
            "commitLogMinOffset": str(log.min_offset),
            "commitLogMaxOffset": str(log.written_offset),
            "commitLogDirCapacity": f"Total : {size_text(usage.total)}, Free : {size_text(usage.free)}.",
            "commitLogDiskRatio": log_ratio,
            f"commitLogDiskRatio_{store.paths.commit_log}": log_ratio,
            "consumeQueueDiskRatio": str(self._disk.used_ratio(store.paths.consume_queue)),
            "dispatchBehindBytes": str(max(store.dispatch_lag_bytes, 0)),
            "dispatchMaxBuffer": "0",  # RocketMQ's dispatch once had a queue of requests
            "pageCacheLockTimeMills": str(self._clock.now_ms() - began_ms if began_ms else 0),
            "remainHowManyDataToFlush": size_text(max(log.written_offset - log.flushed_offset, 0)),
        }
        free_buffers = store.free_transient_buffers
        rows["remainTransientStoreBufferNumbs"] = str(_UNLIMITED_BUFFERS if free_buffers is None else free_buffers)
        if free_buffers is not None:
            rows["remainHowManyDataToCommit"] = size_text(max(log.written_offset - log.readable_offset, 0))
        return rows

    def _waiting(self) -> Rows:
        rows: dict[str, str] = {}
        for name, code in _POOLS.items():
            pool = self._classes.of(code)
            rows[f"{name}ThreadPoolQueueSize"] = str(pool.in_hand)
            rows[f"{name}ThreadPoolQueueCapacity"] = str(pool.limit)
            rows[f"{name}ThreadPoolQueueHeadWaitTimeMills"] = "0"  # begun in the turn in which they are read
        pool = self._classes.end_transaction
        rows["EndTransactionQueueSize"] = str(pool.in_hand)
        rows["EndTransactionThreadPoolQueueCapacity"] = str(pool.limit)
        return rows


def _reads(traffic: Traffic) -> int:
    return traffic.found + traffic.missed


def _numbers(values: Iterable[float]) -> str:
    return " ".join(map(str, values))


def duration_text(milliseconds: int) -> str:
    """`[ 0 days, 0 hours, 9 minutes, 17 seconds ]`."""
    seconds = max(milliseconds, 0) // 1000
    days, hours, minutes = seconds // 86_400, seconds // 3600 % 24, seconds // 60 % 60
    return f"[ {days} days, {hours} hours, {minutes} minutes, {seconds % 60} seconds ]"


def size_text(size: int) -> str:
    """`672 B`, `1.5 KiB`, `252.0 GiB`."""
    if size < 1024:
        return f"{size} B"
    unit = min((size.bit_length() - 1) // 10, 6)
    return f"{size / (1 << 10 * unit):.1f} {'KMGTPE'[unit - 1]}iB"


def distribution_text(latency: LatencyHistogram) -> str:
    """How many puts took how long, since the start: `[<=0ms]:19 [0~10ms]:17 … `."""
    return "".join(f"[{name}]:{count} " for name, count in zip(_LATENCY_CLASSES, latency.counts, strict=True))


def percentile_ms(latency: LatencyHistogram, part: float) -> float:
    """A time that this part of all puts did not exceed: the upper end of a class of the histogram."""
    wanted, seen = latency.total * part, 0
    for limit, count in zip(_LATENCY_LIMITS_MS, latency.counts[:-1], strict=True):
        seen += count
        if seen >= wanted:
            return min(float(limit), latency.max_ms)
    return latency.max_ms
