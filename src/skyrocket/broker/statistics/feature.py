"""Builds what tools and dashboards ask a running broker: statistics, runtime info, connections, offsets, clients."""

from collections.abc import Callable, Iterable

from skyrocket.broker.clients.client_relay import ClientRelay
from skyrocket.broker.clients.connections import ConnectionProcessor
from skyrocket.broker.delay.delay_offsets import DelayOffsetTable
from skyrocket.broker.offsets.reset import OffsetAdminProcessor
from skyrocket.broker.pull.long_polling import LongPolling
from skyrocket.broker.query.queue_entries import QueueEntryProcessor
from skyrocket.broker.rules.subscriptions import Subscriptions
from skyrocket.broker.state.connected_consumers import ConnectedConsumers
from skyrocket.broker.state.connected_producers import ConnectedProducers
from skyrocket.broker.state.consumer_offsets import ConsumerOffsetTable
from skyrocket.broker.state.counters import Counters
from skyrocket.broker.state.identity import BrokerIdentity
from skyrocket.broker.state.subscription_groups import SubscriptionGroupTable
from skyrocket.broker.state.topics import TopicTable
from skyrocket.broker.statistics.lag import Lag
from skyrocket.broker.statistics.runtime_info import RuntimeInfo
from skyrocket.broker.statistics.sampling import Sampling
from skyrocket.broker.statistics.statistics import StatisticsProcessor
from skyrocket.clock import ServiceClock
from skyrocket.config.sections import BrokerConfig
from skyrocket.model.topic import SCHEDULE_TOPIC
from skyrocket.remoting.peer import Peer
from skyrocket.remoting.router import Route
from skyrocket.remoting.serving import Handlers
from skyrocket.store.message_store import MessageStore


class Inquiries:
    """What the broker tells; `counters` is for those who count, `runtime_info` for those who have rows to add."""

    def __init__(
        self,
        store: MessageStore,
        topics: TopicTable,
        groups: SubscriptionGroupTable,
        offsets: ConsumerOffsetTable,
        delay_offsets: DelayOffsetTable,
        consumers: ConnectedConsumers[Peer],
        producers: ConnectedProducers[Peer],
        polling: LongPolling,
        routes: Callable[[], Iterable[Route]],
        identity: BrokerIdentity,
        config: BrokerConfig,
        clock: ServiceClock,
        subscriptions: Subscriptions,
    ) -> None:
        self._store = store
        self._delay_offsets = delay_offsets
        self.counters = Counters(clock, identity.cluster_name, topics.is_system, by_queue=config.queue_statistics)

        def tidy() -> None:
            if config.forget_unused_statistics:
                self.counters.keep_only(
                    lambda topic: topics.find(topic) is not None, lambda group: groups.find(group) is not None
                )

        self.sampling = Sampling(clock, store.statistics, self.counters, tidy)
        self.runtime_info = RuntimeInfo(store, self.sampling, clock, routes, lambda: polling.held_count)
        self.runtime_info.add_source(self._delay_rows)
        lag = Lag(store, topics, offsets, consumers, self.counters, clock, identity.broker_name)
        self.relay = ClientRelay(store, consumers, topics, groups, identity)
        self._processors = (
            StatisticsProcessor(self.runtime_info, self.counters, lag, groups, offsets, identity),
            ConnectionProcessor(consumers, producers, offsets, identity, subscriptions),
            OffsetAdminProcessor(store, topics, groups, offsets, consumers, identity),
            self.relay,
            QueueEntryProcessor(store, consumers),
        )

    def handlers(self) -> Handlers:
        for processor in self._processors:
            yield from processor.handlers()

    def begin(self) -> None:
        """Count from now on: what recovery has read again was counted in an earlier life."""
        self._store.add_listener(self.counters.stored)

    def _delay_rows(self) -> dict[str, str]:
        """Of each delay level that was used: the next to deliver, and the end of its queue."""
        return {
            f"scheduleMessageOffset_{level}": f"{offset},{self._store.max_offset(SCHEDULE_TOPIC, level - 1)}"
            for level, offset in self._delay_offsets.content().offsets.items()
        }
