"""Pop: messages of any queue, hidden from the rest of their group for a while, and what brings them back."""

from collections.abc import Iterable, Iterator
from typing import Any, Final

from skyrocket.broker.core.feature import Copied, Feature, Follow, asked_when_needed
from skyrocket.broker.core.parts import Parts
from skyrocket.broker.pop.acks import AckProcessor
from skyrocket.broker.pop.assignment import AssignmentProcessor
from skyrocket.broker.pop.checks import PopChecks
from skyrocket.broker.pop.notifications import NotificationProcessor
from skyrocket.broker.pop.offsets import PopOffsets
from skyrocket.broker.pop.orders import FORGOTTEN_AFTER_MS, OrderTable
from skyrocket.broker.pop.pop_message import PopProcessor
from skyrocket.broker.pop.pop_polling import PopPolling
from skyrocket.broker.pop.pop_reader import PopReader
from skyrocket.broker.pop.request_modes import RequestModeTable
from skyrocket.broker.pop.revive import ReviveService
from skyrocket.broker.pop.revive_log import ReviveLog
from skyrocket.broker.pop.routes import QueueRoutes
from skyrocket.broker.state.saved_table import SavedTable
from skyrocket.broker.state.system_topics import revive_topic
from skyrocket.format.config_files import ORDER_INFOS, PULL, REQUEST_MODES, RequestMode, RequestModes
from skyrocket.format.record import pack_host
from skyrocket.model.permission import PERM_READ
from skyrocket.observability.exposition import Kind, Metric
from skyrocket.protocol.bodies.assignment import RequestModeTable as CopiedRequestModes
from skyrocket.protocol.command import Body
from skyrocket.protocol.requests.pop import GetAllMessageRequestMode, PopMessage, PopRollback
from skyrocket.remoting.peer import Peer
from skyrocket.remoting.services import Work
from skyrocket.remoting.serving import Handlers, serve, serve_raw

_KEYS: Final = (
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


class PopFeature(Feature):
    """Everything that pop needs, over the broker's tables."""

    def __init__(self, parts: Parts) -> None:
        store, tables, clock, settings = parts.store, parts.tables, parts.clock, parts.settings
        self._parts = parts
        self.orders = OrderTable(parts.config_file("consumerOrderInfo.json", ORDER_INFOS), clock)
        self.modes = RequestModeTable(parts.config_file("messageRequestMode.json", REQUEST_MODES), clock)
        self.polling = PopPolling(self.orders, clock, parts.peer_clock, settings)
        self.revive_log = self._build_revive_log()
        offsets = PopOffsets(store, tables.offsets)
        checks = PopChecks(tables, parts.subscriptions, settings, parts.identity.address.host)
        name = parts.identity.broker_name
        reader = PopReader(store, offsets, self.orders, self.revive_log, name, parts.counters, settings)
        self.processor = PopProcessor(
            reader, checks, self.polling, tables, parts.rules, clock, parts.peer_clock, parts.special
        )
        self.acks = AckProcessor(store, tables.topics, offsets, self.polling, self.revive_log, clock, name)
        self.notifications = NotificationProcessor(
            store, tables.topics, checks, offsets, self.polling, parts.peer_clock, parts.counters
        )
        routes = QueueRoutes(parts.client, parts.name_servers, tables.topics, name, parts.peer_clock)
        self._assignment = AssignmentProcessor(self.modes, tables, routes, settings)
        host = pack_host(parts.identity.store_host)
        self.revive = ReviveService(store, tables, self.revive_log, host, clock, settings, parts.rules, name)
        store.add_listener(self.polling.arrived)

    def _build_revive_log(self) -> ReviveLog:
        parts, identity = self._parts, self._parts.identity
        host, topic = pack_host(identity.store_host), revive_topic(identity.cluster_name)
        log = ReviveLog(parts.store, parts.rules, topic, host, parts.clock, parts.special)
        parts.persistence.before_offsets = log.force_to_disk
        return log

    def handlers(self) -> Handlers:
        return (
            serve_raw(PopMessage.code, self.processor.pop),
            *self.notifications.handlers(),
            *self.acks.handlers(),
            *self._assignment.handlers(),
            serve(PopRollback, self.roll_back),
        )

    def roll_back(self, _: Peer, __: PopRollback, ___: Body) -> None:
        """Nothing is to be done: what RocketMQ would take out of its KV store is in the revive log already."""

    def services(self) -> tuple[Work, ...]:
        loops: tuple[Work, ...] = (self.polling.pops.run, self.polling.notifications.run, self.run_forgetting)
        if self._parts.is_master:
            return (*loops, self._parts.broker_set.when_online(self.revive.run))
        return (*loops, self.revive.run_acting) if self._parts.may_act else loops  # a slave revives nothing else

    def copied(self) -> tuple[Copied, ...]:
        return (Copied(GetAllMessageRequestMode(), self._take_modes),)

    def _take_modes(self, body: bytes) -> None:
        told = CopiedRequestModes.decode(body).modes
        modes = {
            topic: {
                group: RequestMode(topic, group, mode.mode or PULL, mode.pop_share_queues)
                for group, mode in groups.items()
            }
            for topic, groups in told.items()
        }
        if modes != self.modes.content().modes:
            self.modes.replace(RequestModes(modes))

    def tables(self) -> Iterable[SavedTable[Any]]:
        return (self.modes, self.orders)

    def follows(self) -> tuple[Follow, ...]:
        return (Follow(asked_when_needed, _KEYS), Follow(self._permission_changed, ("brokerPermission",)))

    def _permission_changed(self) -> None:
        if not self._parts.settings.broker.broker_permission & PERM_READ:
            self.polling.wake_all()  # those who wait ask again, and are refused

    # ── life ─────────────────────────────────────────────────────────────────────────────────────────────────────────

    async def open(self) -> None:
        self.load()

    def load(self) -> None:
        """Take what the files say; raises CorruptFile."""
        self.orders.load()
        self.modes.load()

    def let_go(self) -> None:
        self.polling.stop()

    async def close(self) -> None:
        await self.processor.close()

    async def run_forgetting(self) -> None:
        """Forget ordered batches of what is gone, and those that nobody has asked for in a day; until cancelled."""
        while True:
            await self._parts.clock.sleep(_FORGET_SECONDS)
            self.forget_orders(self._parts.clock.now_ms())

    def forget_orders(self, now_ms: int) -> None:
        """Forget what is gone or too old now."""
        topics, groups = self._parts.tables.topics, self._parts.tables.groups
        for topic, group, queue_id, info in self.orders.queues():
            config = topics.find(topic)
            is_gone = config is None or queue_id >= config.read_queues or groups.find(group) is None
            if is_gone or now_ms - info.last_consume_time > FORGOTTEN_AFTER_MS:
                self.orders.forget(topic, group, queue_id)

    def metrics(self) -> Iterator[Metric]:
        read = Metric("rocketmq_pop_revive_out_message_total", Kind.COUNTER, "Messages read from the revive log")
        lag = Metric("rocketmq_pop_revive_lag", Kind.GAUGE, "Messages of the revive log that are not done")
        latency = Metric("rocketmq_pop_revive_latency", Kind.GAUGE, "By how many ms the oldest check point is overdue")
        now_ms = self._parts.clock.now_ms()
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
        waiting.add(self.polling.pops.held_count, kind="pop")
        waiting.add(self.polling.notifications.held_count, kind="notification")
        yield from (read, lag, latency, again, waiting)
