"""What is measured of messages, groups and the store, with RocketMQ's names and labels; read when somebody asks.

Nothing is counted for it on the way of a message: the numbers are those that tools ask for too.
"""

from collections.abc import Iterator, Mapping
from typing import Final

from skyrocket.broker.state.counters import GROUP_GET_NUMS, GROUP_GET_SIZE, TOPIC_PUT_NUMS, TOPIC_PUT_SIZE, Counters
from skyrocket.broker.state.subscription_groups import is_system_group
from skyrocket.broker.state.tables import Tables
from skyrocket.clock import Clock
from skyrocket.model.topic import RETRY_PREFIX
from skyrocket.observability.exposition import Kind, Metric, histogram, label, single
from skyrocket.store.message_store import MessageStore

_LOCAL_DISK: Final[Mapping[str, str]] = {"storage_type": "local", "storage_medium": "disk"}


class MessageMetrics:
    """Reads the tables, in the event loop's thread, which owns them."""

    def __init__(self, store: MessageStore, tables: Tables, counters: Counters, clock: Clock) -> None:
        self._store = store
        self._topics = tables.topics
        self._groups = tables.groups
        self._offsets = tables.offsets
        self._counters = counters
        self._clock = clock

    def collect(self, *, with_lag: bool) -> Iterator[Metric]:
        """As they are now. Of a set one alone tells the lag: sums over all servers would have it several times."""
        yield single("rocketmq_topic_number", Kind.GAUGE, "Topics", len(self._topics.topics))
        yield single("rocketmq_consumer_group_number", Kind.GAUGE, "Consumer groups", len(self._groups.groups))
        yield from self._traffic()
        if with_lag:
            yield from self._lag()
        yield from self._storage()

    def _traffic(self) -> Iterator[Metric]:
        came = {
            TOPIC_PUT_NUMS: Metric("rocketmq_messages_in_total", Kind.COUNTER, "Messages stored, by topic"),
            TOPIC_PUT_SIZE: Metric("rocketmq_throughput_in_total", Kind.COUNTER, "Bytes stored, by topic"),
        }
        for name, topic, count in self._counters.sums(*came):
            came[name].add(count, topic=topic, is_system=label(self._topics.is_system(topic)))
        left = {
            GROUP_GET_NUMS: Metric("rocketmq_messages_out_total", Kind.COUNTER, "Messages pulled, by topic and group"),
            GROUP_GET_SIZE: Metric("rocketmq_throughput_out_total", Kind.COUNTER, "Bytes pulled, by topic and group"),
        }
        for name, key, count in self._counters.sums(*left):
            topic, _, group = key.partition("@")
            left[name].add(count, **self._consumption(topic, group))
        yield from (*came.values(), *left.values())
        refused = self._store.statistics.put_refused
        yield single("skyrocket_messages_refused_total", Kind.COUNTER, "Messages that the store refused", refused)

    def _consumption(self, topic: str, group: str) -> dict[str, str]:
        return {
            "topic": topic,
            "consumer_group": group,
            "is_retry": label(topic.startswith(RETRY_PREFIX)),
            "is_system": label(self._topics.is_system(topic) or is_system_group(group)),
        }

    def _lag(self) -> Iterator[Metric]:
        lag = Metric("rocketmq_consumer_lag_messages", Kind.GAUGE, "Messages that a group has not committed")
        inflight = Metric("rocketmq_consumer_inflight_messages", Kind.GAUGE, "Messages pulled and not committed")
        ready = Metric("rocketmq_consumer_ready_messages", Kind.GAUGE, "Messages that a group has not pulled")
        for group in list(self._groups.groups):
            for topic in self._offsets.topics_of(group):
                behind = in_flight = not_pulled = 0
                for queue_id, committed in self._offsets.committed_queues(group, topic).items():
                    end = max(self._store.max_offset(topic, queue_id), committed)
                    pulled = min(max(self._offsets.pulled(group, topic, queue_id) or committed, committed), end)
                    behind += end - committed
                    in_flight += pulled - committed
                    not_pulled += end - pulled
                labels = self._consumption(topic, group)
                lag.add(behind, **labels)
                inflight.add(in_flight, **labels)
                ready.add(not_pulled, **labels)
        yield lag
        yield inflight
        yield ready

    def _storage(self) -> Iterator[Metric]:
        store, log = self._store, self._store.commit_log
        unflushed = log.written_offset - log.flushed_offset
        earliest = store.reader.earliest_log_time()
        age_ms = self._clock.now_ms() - earliest if earliest > 0 else 0
        for name, help_text, value in (
            ("size", "Bytes of the commit log", log.written_offset - log.min_offset),
            ("flush_behind_bytes", "Bytes that are not forced to disk yet", unflushed),
            ("dispatch_behind_bytes", "Bytes that queues have not seen yet", store.dispatch_lag_bytes),
            ("message_reserve_time", "Age of the oldest message in milliseconds", age_ms),
        ):
            metric = Metric(f"rocketmq_storage_{name}", Kind.GAUGE, help_text)
            metric.add(value, **_LOCAL_DISK)
            yield metric
        writable = Metric("skyrocket_store_writable", Kind.GAUGE, "1 while messages are taken")
        writable.add(int(store.writable), **_LOCAL_DISK)
        yield writable
        yield histogram("skyrocket_store_latency_seconds", "Time of appends to the log", store.statistics.put_latency)
