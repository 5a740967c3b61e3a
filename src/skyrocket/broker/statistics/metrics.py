"""The broker's metrics, with RocketMQ's names and labels; read off the tables when somebody asks.

Nothing is counted for them on the way of a message: the numbers are those that tools ask for too.
"""

from collections import Counter
from collections.abc import Callable, Iterator, Mapping

from skyrocket.broker.core.request_classes import RequestClasses
from skyrocket.broker.state.connected_consumers import ConnectedConsumers
from skyrocket.broker.state.connected_producers import ConnectedProducers
from skyrocket.broker.state.consumer_offsets import ConsumerOffsetTable
from skyrocket.broker.state.counters import (
    GROUP_GET_NUMS,
    GROUP_GET_SIZE,
    TOPIC_PUT_NUMS,
    TOPIC_PUT_SIZE,
    Counters,
)
from skyrocket.broker.state.identity import BrokerIdentity
from skyrocket.broker.state.subscription_groups import SubscriptionGroupTable, is_system_group
from skyrocket.broker.state.topics import TopicTable
from skyrocket.clock import Clock
from skyrocket.model.topic import RETRY_PREFIX
from skyrocket.observability.exposition import CONTENT_TYPE, Kind, Metric, render
from skyrocket.observability.http_endpoint import Page
from skyrocket.remoting.peer import Peer
from skyrocket.remoting.server import RemotingServer
from skyrocket.store.message_store import MessageStore

_LOCAL_DISK: Mapping[str, str] = {"storage_type": "local", "storage_medium": "disk"}


class BrokerMetrics:
    """Makes the page `/metrics`; in the event loop's thread, which owns the tables."""

    def __init__(
        self,
        identity: BrokerIdentity,
        store: MessageStore,
        topics: TopicTable,
        groups: SubscriptionGroupTable,
        offsets: ConsumerOffsetTable,
        consumers: ConnectedConsumers[Peer],
        producers: ConnectedProducers[Peer],
        counters: Counters,
        classes: RequestClasses,
        server: RemotingServer,
        permission: Callable[[], int],
        clock: Clock,
    ) -> None:
        self._store = store
        self._topics = topics
        self._groups = groups
        self._offsets = offsets
        self._consumers = consumers
        self._producers = producers
        self._counters = counters
        self._classes = classes
        self._server = server
        self._permission = permission
        self.others: list[Callable[[], Iterator[Metric]]] = []  # parts that know their own
        self._clock = clock
        self._common = {
            "cluster": identity.cluster_name,
            "node_type": "broker",
            "node_id": identity.broker_name,
            "aggregation": "cumulative",
        }

    def page(self) -> Page:
        """All metrics."""
        return Page(200, CONTENT_TYPE, render(self.collect(), self._common))

    def collect(self) -> Iterator[Metric]:
        """As they are now."""
        yield from self._broker()
        yield from self._traffic()
        yield from self._connections()
        yield from self._lag()
        yield from self._storage()
        for part in self.others:
            yield from part()

    # ── the broker ───────────────────────────────────────────────────────────────────────────────────────────────────

    def _broker(self) -> Iterator[Metric]:
        waiting = Metric("rocketmq_processor_watermark", Kind.GAUGE, "Requests in hand, by class")
        refused = Metric("skyrocket_requests_refused_total", Kind.COUNTER, "Requests refused as busy, by class")
        for each in self._classes:
            waiting.add(each.in_hand, processor=each.name)
            refused.add(each.refused, processor=each.name)
        yield waiting
        yield refused
        yield _single("rocketmq_broker_permission", Kind.GAUGE, "4 to read, 2 to write", self._permission())
        yield _single("rocketmq_topic_number", Kind.GAUGE, "Topics", len(self._topics.topics))
        yield _single("rocketmq_consumer_group_number", Kind.GAUGE, "Consumer groups", len(self._groups.groups))
        requests = Metric("skyrocket_requests_total", Kind.COUNTER, "Requests, by code; without a code: not supported")
        failed = Metric("skyrocket_requests_failed_total", Kind.COUNTER, "Requests that ended in an unexpected error")
        for route in self._server.router.routes():
            code = "" if route.code is None else str(int(route.code))
            if route.requests:
                requests.add(route.requests, request_code=code)
            if route.failed:
                failed.add(route.failed, request_code=code)
        yield requests
        yield failed
        yield _single("skyrocket_connections", Kind.GAUGE, "Open connections", self._server.connection_count)

    # ── messages ─────────────────────────────────────────────────────────────────────────────────────────────────────

    def _traffic(self) -> Iterator[Metric]:
        came = {
            TOPIC_PUT_NUMS: Metric("rocketmq_messages_in_total", Kind.COUNTER, "Messages stored, by topic"),
            TOPIC_PUT_SIZE: Metric("rocketmq_throughput_in_total", Kind.COUNTER, "Bytes stored, by topic"),
        }
        for name, topic, count in self._counters.sums(*came):
            came[name].add(count, topic=topic, is_system=_text(self._topics.is_system(topic)))
        left = {
            GROUP_GET_NUMS: Metric("rocketmq_messages_out_total", Kind.COUNTER, "Messages pulled, by topic and group"),
            GROUP_GET_SIZE: Metric("rocketmq_throughput_out_total", Kind.COUNTER, "Bytes pulled, by topic and group"),
        }
        for name, key, count in self._counters.sums(*left):
            topic, _, group = key.partition("@")
            left[name].add(count, **self._consumption(topic, group))
        yield from (*came.values(), *left.values())
        refused = self._store.statistics.put_refused
        yield _single("skyrocket_messages_refused_total", Kind.COUNTER, "Messages that the store refused", refused)

    def _consumption(self, topic: str, group: str) -> dict[str, str]:
        return {
            "topic": topic,
            "consumer_group": group,
            "is_retry": _text(topic.startswith(RETRY_PREFIX)),
            "is_system": _text(self._topics.is_system(topic) or is_system_group(group)),
        }

    # ── clients ──────────────────────────────────────────────────────────────────────────────────────────────────────

    def _connections(self) -> Iterator[Metric]:
        producers: Counter[tuple[str, str]] = Counter()
        for clients in self._producers.table().groups.values():
            producers.update((_language(client.language), str(client.version)) for client in clients)
        metric = Metric("rocketmq_producer_connections", Kind.GAUGE, "Producers that beat their heart")
        for (language, version), count in producers.items():
            metric.add(count, language=language, version=version)
        yield metric
        consumers: Counter[tuple[str, str, str, str]] = Counter()
        for name in self._consumers.group_names:
            group = self._consumers.find_group(name)
            if group is not None:
                mode = "pull" if group.consume_type == "CONSUME_ACTIVELY" else "push"
                consumers.update((name, _language(c.language), str(c.version), mode) for c in group.clients)
        metric = Metric("rocketmq_consumer_connections", Kind.GAUGE, "Consumers that beat their heart")
        for (name, language, version, mode), count in consumers.items():
            metric.add(
                count,
                consumer_group=name,
                language=language,
                version=version,
                consume_mode=mode,
                is_system=_text(is_system_group(name)),
            )
        yield metric

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

    # ── the store ────────────────────────────────────────────────────────────────────────────────────────────────────

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


def _single(name: str, kind: Kind, help_text: str, value: float) -> Metric:
    metric = Metric(name, kind, help_text)
    metric.add(value)
    return metric


def _text(value: bool) -> str:
    return "true" if value else "false"


def _language(language: str | None) -> str:
    return (language or "unknown").lower()
