"""Builds the parts of pop and connects them; the broker knows this one."""

from collections.abc import Callable, Iterator, Sequence
from typing import Final

from skyrocket.broker.pop.acks import AckProcessor
from skyrocket.broker.pop.assignment import AssignmentProcessor
from skyrocket.broker.pop.checks import PopChecks
from skyrocket.broker.pop.looking import LookingProcessor
from skyrocket.broker.pop.offsets import PopOffsets
from skyrocket.broker.pop.orders import FORGOTTEN_AFTER_MS, OrderTable
from skyrocket.broker.pop.processor import PopProcessor
from skyrocket.broker.pop.request_modes import RequestModeTable
from skyrocket.broker.pop.revive import ReviveService
from skyrocket.broker.pop.revive_log import ReviveLog
from skyrocket.broker.pop.routes import QueueRoutes
from skyrocket.broker.pop.taking import Taking
from skyrocket.broker.pop.waiting import Waiting
from skyrocket.broker.rules.put_rules import PutRules
from skyrocket.broker.rules.subscriptions import Subscriptions
from skyrocket.broker.state.connected_consumers import ConnectedConsumers
from skyrocket.broker.state.consumer_offsets import ConsumerOffsetTable
from skyrocket.broker.state.identity import BrokerIdentity
from skyrocket.broker.state.live_settings import LiveSettings
from skyrocket.broker.state.subscription_groups import SubscriptionGroupTable
from skyrocket.broker.state.system_topics import revive_topic
from skyrocket.broker.state.topics import TopicTable
from skyrocket.clock import Clock, ServiceClock
from skyrocket.config.sections import BrokerConfig
from skyrocket.format.config_files.order_info import OrderInfos
from skyrocket.format.config_files.request_mode import RequestModes
from skyrocket.format.record import pack_host
from skyrocket.model.topic_config import PERM_READ
from skyrocket.observability.exposition import Kind, Metric
from skyrocket.protocol.codes import RequestCode, ResponseCode
from skyrocket.protocol.command import RemotingCommand
from skyrocket.remoting.peer import Peer
from skyrocket.remoting.serving import Handlers, serve_raw
from skyrocket.store.commit_log import DispatchItem
from skyrocket.store.config_file import ConfigFile
from skyrocket.store.message_store import MessageStore

KEYS: Final = (
    "reviveInterval",
    "maxPopPollingSize",
    "popPollingSize",
    "popFromRetryProbability",
    "popFromRetryProbabilityForPriority",
    "priorityOrderAsc",
    "enableRetryTopicV2",
    "retrieveMessageFromPopRetryTopicV1",
    "popResponseReturnActualRetryTopic",
    "useSeparateRetryQueue",
    "skipWhenCKRePutReachMaxTimes",
    "defaultMessageRequestMode",
    "defaultPopShareQueueNum",
    "serverLoadBalancerEnable",
)
_FORGET_SECONDS: Final = 10.0


class Popping:
    """Everything that pop needs, over the broker's tables."""

    def __init__(
        self,
        store: MessageStore,
        topics: TopicTable,
        groups: SubscriptionGroupTable,
        offsets: ConsumerOffsetTable,
        consumers: ConnectedConsumers[Peer],
        subscriptions: Subscriptions,
        rules: PutRules,
        identity: BrokerIdentity,
        clock: ServiceClock,
        peer_clock: Clock,
        settings: Callable[[], BrokerConfig],
        after_put: Callable[[], None],
        order_file: ConfigFile[OrderInfos],
        mode_file: ConfigFile[RequestModes],
        *,
        has_timer: Callable[[], bool] = lambda: True,
        is_timer_behind: Callable[[], bool] = lambda: False,
        count: Callable[[str, str, int, int, int, float], None] | None = None,
        draw: Callable[[], int] | None = None,
    ) -> None:
        self._topics, self._groups = topics, groups
        self._clock, self._peer_clock = clock, peer_clock
        self.orders = OrderTable(order_file, clock)
        self.modes = RequestModeTable(mode_file, clock)
        self._consumers = consumers
        self._settings = settings
        broker_host = pack_host(identity.store_host)
        self.revive_log = ReviveLog(store, rules, revive_topic(identity.cluster_name), broker_host, clock, after_put)
        self.pops = self._waiting(youngest_first=False)
        self.notifications = self._waiting(youngest_first=True)
        checks = PopChecks(topics, groups, consumers, subscriptions)
        pop_offsets = PopOffsets(store, offsets)
        taking = Taking(
            store,
            pop_offsets,
            self.orders,
            self.revive_log,
            identity.broker_name,
            count=count,
            shows_retry_topic=lambda: settings().pop_shows_retry_topic,
        )
        ip = identity.address.host
        drawing = {} if draw is None else {"draw": draw}
        self.processor = PopProcessor(
            taking,
            checks,
            self.pops,
            topics,
            groups,
            clock,
            peer_clock,
            ip,
            settings,
            free_at=self._free_at,
            has_timer=has_timer,
            **drawing,
        )
        self.acks = AckProcessor(
            store,
            topics,
            pop_offsets,
            self.orders,
            self.revive_log,
            clock,
            identity.broker_name,
            self._wake,
            self._free_at,
        )
        self.looking = LookingProcessor(
            store, topics, checks, pop_offsets, self.orders, self.pops, self.notifications, peer_clock, ip, settings
        )
        self.revive = ReviveService(
            store,
            topics,
            groups,
            offsets,
            self.revive_log,
            broker_host,
            clock,
            settings,
            after_put,
            is_timer_behind=is_timer_behind,
        )

    def _waiting(self, *, youngest_first: bool) -> Waiting:
        settings = self._settings
        return Waiting(
            self._clock,
            self._peer_clock,
            lambda: settings().max_held_pops,
            lambda: settings().max_held_pops_per_queue,
            youngest_first=youngest_first,
        )

    def _wake(self, topic: str, group: str, queue_id: int) -> None:
        self.pops.wake(topic, group, queue_id)
        self.notifications.wake(topic, group, queue_id)

    def _free_at(self, topic: str, group: str, queue_id: int) -> None:
        """Let those who wait for an ordered queue try again when its batch is visible again."""
        free_ms = self.orders.visible_ms(topic, group, queue_id)
        if free_ms is not None and free_ms > self._clock.now_ms():
            self.pops.free_at(topic, group, queue_id, free_ms)
            self.notifications.free_at(topic, group, queue_id, free_ms)

    # ── requests ─────────────────────────────────────────────────────────────────────────────────────────────────────

    def handlers(self, routes: QueueRoutes) -> Handlers:
        assignment = AssignmentProcessor(
            self.modes, self._topics, self._groups, self._consumers, routes.of, self._settings
        )
        return (
            serve_raw(RequestCode.POP_MESSAGE, self.processor.pop),
            *self.looking.handlers(),
            *self.acks.handlers(),
            *assignment.handlers(),
            serve_raw(RequestCode.POP_ROLLBACK, _nothing_to_roll_back),
        )

    def arrived(self, items: Sequence[DispatchItem]) -> None:
        """The store's listener: these records are readable now."""
        self.pops.arrived(items)
        self.notifications.arrived(items)

    def follow(self, settings: LiveSettings) -> None:
        """Say which settings take effect at once: all that are asked for when they are needed."""
        settings.follow(lambda: None, *KEYS)
        settings.follow(self._permission_changed, "brokerPermission")

    def _permission_changed(self) -> None:
        if not self._settings().broker_permission & PERM_READ:  # those who wait ask again, and are refused
            self.pops.wake_all()
            self.notifications.wake_all()

    # ── life ─────────────────────────────────────────────────────────────────────────────────────────────────────────

    def load(self) -> None:
        """Take what the files say; raises CorruptFile."""
        self.orders.load()
        self.modes.load()

    def stop_waiting(self) -> None:
        """The broker stops: everyone who waits is answered."""
        self.pops.stop()
        self.notifications.stop()

    async def run_forgetting(self) -> None:
        """Forget ordered batches of what is gone, and those that nobody has asked for in a day; until cancelled."""
        while True:
            await self._clock.sleep(_FORGET_SECONDS)
            self.forget_orders(self._clock.now_ms())

    def forget_orders(self, now_ms: int) -> None:
        """One round of it."""
        for topic, group, queue_id, info in self.orders.queues():
            config = self._topics.find(topic)
            is_gone = config is None or queue_id >= config.read_queues or self._groups.find(group) is None
            if is_gone or now_ms - info.last_consume_time > FORGOTTEN_AFTER_MS:
                self.orders.forget(topic, group, queue_id)

    # ── metrics ──────────────────────────────────────────────────────────────────────────────────────────────────────

    def metrics(self) -> Iterator[Metric]:
        """As they are now, with RocketMQ's names."""
        read = Metric("rocketmq_pop_revive_out_message_total", Kind.COUNTER, "Messages read from the revive log")
        lag = Metric("rocketmq_pop_revive_lag", Kind.GAUGE, "Messages of the revive log that are not done")
        latency = Metric("rocketmq_pop_revive_latency", Kind.GAUGE, "By how many ms the oldest check point is overdue")
        now_ms = self._clock.now_ms()
        for queue in self.revive.queues:
            number = str(queue.queue_id)
            for tag, kind in (("ck", "CK"), ("ack", "ACK"), ("bAck", "ACK")):
                if queue.counts[tag]:
                    read.add(queue.counts[tag], queue_id=number, revive_message_type=kind)
            lag.add(self.revive.lag(queue), queue_id=number)
            latency.add(self.revive.latency_ms(queue, now_ms), queue_id=number)
        again = Metric(
            "rocketmq_pop_revive_retry_messages_total", Kind.COUNTER, "Popped messages that went to the retry topic"
        )
        for (group, topic), count in self.revive.revived.items():
            again.add(count, consumer_group=group, topic=topic, put_status="PUT_OK")
        waiting = Metric("skyrocket_pops_waiting", Kind.GAUGE, "Pops and notifications that wait for messages")
        waiting.add(self.pops.held_count, kind="pop")
        waiting.add(self.notifications.held_count, kind="notification")
        yield from (read, lag, latency, again, waiting)


def _nothing_to_roll_back(_: Peer, request: RemotingCommand) -> RemotingCommand:
    """POP_ROLLBACK: what RocketMQ would take out of its KV store is in the revive log already."""
    return request.answer(ResponseCode.SUCCESS)
