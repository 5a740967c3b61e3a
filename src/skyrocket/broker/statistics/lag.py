"""How far queues have come, how far groups lag behind them, and how old the messages are that wait."""

from collections.abc import Iterable, Iterator

from skyrocket.broker.core.slices import Slices
from skyrocket.broker.state.counters import GROUP_GET_NUMS, TOPIC_PUT_NUMS, Counters
from skyrocket.broker.state.tables import Tables
from skyrocket.clock import Clock
from skyrocket.model.message_queue import MessageQueue
from skyrocket.model.topic_config import TopicConfig
from skyrocket.protocol.bodies.statistics import (
    ConsumeStats,
    ConsumeTimeSpans,
    OffsetLag,
    QueueTimeSpan,
    TopicOffset,
    TopicStats,
)
from skyrocket.store.disk import Disk
from skyrocket.store.message_store import MessageStore
from skyrocket.store.time_search import TimeSearch


class Lag:
    """Answers from the store's queues and the offsets of groups; nothing is counted as read by looking at it."""

    def __init__(
        self,
        store: MessageStore,
        tables: Tables,
        counters: Counters,
        clock: Clock,
        broker_name: str,
        slices: Slices,
    ) -> None:
        self._store = store
        self._topics = tables.topics
        self._offsets = tables.offsets
        self._consumers = tables.consumers
        self._counters = counters
        self._clock = clock
        self._broker_name = broker_name
        self._slices = slices
        self._times = TimeSearch(store.by_physical_offset, Disk(), nearest=False)

    async def topic(self, topic: str) -> TopicStats:
        """GET_TOPIC_STATS_INFO; raises TopicNotExist."""
        config = self._topics.existing(topic, f"topic[{topic}] not exist")

        def offset(queue_id: int) -> tuple[MessageQueue, TopicOffset]:
            low, high = self._range(topic, queue_id)
            last_stored_ms = self._stored_ms(topic, queue_id, high - 1)
            return self._queue(topic, queue_id), TopicOffset(low, high, max(last_stored_ms, 0))

        offsets = await self._slices.map(offset, range(config.write_queues))
        return TopicStats(dict(offsets), self._counters.rate(TOPIC_PUT_NUMS, topic))

    async def group(self, group: str, topics: Iterable[str]) -> ConsumeStats:
        """GET_CONSUME_STATS: the read queues of these topics, of one group."""
        consumed = list(self._consumed(group, topics))
        queues = (self._queue(config.name, queue_id) for config in consumed for queue_id in range(config.read_queues))
        lags = await self._lags(group, queues)
        return ConsumeStats(lags, sum((self._pull_rate(config.name, group) for config in consumed), 0.0))

    async def topics_of_group(self, group: str, *, only_ordered: bool) -> list[ConsumeStats]:
        """GET_BROKER_CONSUME_STATS: the topics of one group, each by itself; those without queues are left out."""
        found = []
        for config in list(self._consumed(group, self._offsets.topics_of(group))):
            if config.write_queues > 0 and (config.ordered or not only_ordered):
                queues = (self._queue(config.name, queue_id) for queue_id in range(config.write_queues))
                found.append(ConsumeStats(await self._lags(group, queues), self._pull_rate(config.name, group)))
        return found

    async def _lags(self, group: str, queues: Iterable[MessageQueue]) -> dict[MessageQueue, OffsetLag]:
        def lag(queue: MessageQueue) -> tuple[MessageQueue, OffsetLag]:
            return queue, self._lag(group, queue.topic, queue.queue_id)

        return dict(await self._slices.map(lag, queues))

    def _pull_rate(self, topic: str, group: str) -> float:
        return self._counters.rate(GROUP_GET_NUMS, f"{topic}@{group}")

    def _consumed(self, group: str, topics: Iterable[str]) -> Iterator[TopicConfig]:
        """Topics that there are; of a group with members only those that it still subscribes to."""
        online = self._consumers.find_group(group)
        subscribes = online is not None and bool(online.subscriptions)
        for topic in topics:
            config = self._topics.find(topic)
            if config is None or (subscribes and self._consumers.find_subscription(group, topic) is None):
                continue
            yield config

    def _lag(self, group: str, topic: str, queue_id: int) -> OffsetLag:
        committed = max(self._offsets.committed(group, topic, queue_id) or 0, 0)
        pulled = self._offsets.pulled(group, topic, queue_id)
        return OffsetLag(
            broker_offset=self._range(topic, queue_id)[1],
            consumer_offset=committed,
            pull_offset=max(committed, -1 if pulled is None else pulled),
            last_timestamp=max(self._stored_ms(topic, queue_id, committed - 1), 0),
        )

    async def time_spans(self, topic: str, group: str) -> ConsumeTimeSpans:
        """QUERY_CONSUME_TIME_SPAN; raises TopicNotExist. Times of what is not there are -1."""
        config = self._topics.existing(topic, f"topic[{topic}] not exist")
        now_ms = self._clock.now_ms()
        spans = await self._slices.map(
            lambda queue_id: self._time_span(topic, group, queue_id, now_ms), range(config.write_queues)
        )
        return ConsumeTimeSpans(tuple(spans))

    def _time_span(self, topic: str, group: str, queue_id: int, now_ms: int) -> QueueTimeSpan:
        low, high = self._range(topic, queue_id)
        first_ms = self._store.earliest_time(topic, queue_id)
        committed = self._offsets.committed(group, topic, queue_id)
        consumed_ms = first_ms
        if committed is not None and committed > 0:
            consumed_ms = self._stored_ms(topic, queue_id, committed - 1)
        # RocketMQ looks for message -1 of a group that never committed, and makes its delay the age of the epoch.
        waiting = max(committed or 0, low)
        delay_ms = now_ms - self._stored_ms(topic, queue_id, waiting) if waiting < high else 0
        return QueueTimeSpan(
            self._queue(topic, queue_id),
            min_timestamp=first_ms,
            max_timestamp=self._stored_ms(topic, queue_id, high - 1),
            consume_timestamp=consumed_ms,
            delay_ms=delay_ms,
        )

    def _queue(self, topic: str, queue_id: int) -> MessageQueue:
        return MessageQueue(topic, self._broker_name, queue_id)

    def _range(self, topic: str, queue_id: int) -> tuple[int, int]:
        queue = self._store.queues.get(topic, queue_id)
        return (queue.min_offset, queue.max_offset) if queue is not None else (0, 0)

    def _stored_ms(self, topic: str, queue_id: int, queue_offset: int) -> int:
        """Store time of a message; -1 when it is not there."""
        queue = self._store.queues.get(topic, queue_id)
        if queue is None or not queue.min_offset <= queue_offset < queue.max_offset:
            return -1
        return self._times.time(queue, queue_offset) or -1
