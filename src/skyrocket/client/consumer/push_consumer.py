"""PushConsumer: subscribe, and be called.

    consumer = PushConsumer("Billing", "127.0.0.1:9876")

    @consumer.on("Orders", tags="paid || refunded")
    async def order(message: ReceivedMessage) -> None: ...

    async with consumer:
        await consumer.wait_stopped()

Handlers are coroutines, or plain functions that run in threads. Return and it is consumed, raise and it comes again.
"""

import asyncio
import logging
import sys
import traceback
from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import Executor, ThreadPoolExecutor
from dataclasses import replace
from typing import TYPE_CHECKING, Any, TypeVar

from skyrocket.client.consumer.assigned_queues import AssignedQueues
from skyrocket.client.consumer.concurrent_consumption import ConcurrentConsumption
from skyrocket.client.consumer.consume_statistics import SAMPLE_SECONDS, ConsumeStatistics
from skyrocket.client.consumer.handlers import Handler, HandlerWrapper, current_group
from skyrocket.client.consumer.offset_store import OffsetStorage, OffsetStore, OwnOffsets, SessionOffsets, offset_store
from skyrocket.client.consumer.orderly_consumption import OrderlyConsumption
from skyrocket.client.consumer.process_queue import ProcessQueue
from skyrocket.client.consumer.push_consumer_settings import PushConsumerSettings
from skyrocket.client.consumer.queue_locks import RENEW_SECONDS
from skyrocket.client.consumer.rebalance import Rebalancer
from skyrocket.client.consumer.running_info import running_info
from skyrocket.client.consumer.send_back import SendBack
from skyrocket.client.consumer.start_position import MessageModel, offset_at
from skyrocket.client.consumer.subscription import Filter, SqlFilter, subscription_of
from skyrocket.client.consumer.subscription_check import SubscriptionCheck, check_filters
from skyrocket.client.core.credentials import Acl
from skyrocket.client.core.errors import AlreadyStarted, IllegalSubscription, NoRoute, WrongUse
from skyrocket.client.core.hooks import ConsumeHook
from skyrocket.client.core.instance import ClientInstance
from skyrocket.client.core.lifecycle import Startable, State, not_running
from skyrocket.client.core.message import ReceivedMessage
from skyrocket.client.core.names import check_group, check_topic, retry_topic, unwrap, wrap
from skyrocket.client.core.settings import ClientSettings, settings_of
from skyrocket.client.tracing.optional_tracer import CONSUME, tracer_of
from skyrocket.clock import SystemClock
from skyrocket.model import property_names
from skyrocket.model.message_queue import MessageQueue
from skyrocket.model.topic import RETRY_PREFIX
from skyrocket.protocol.bodies.heartbeat import ConsumerData
from skyrocket.protocol.bodies.running_info import ConsumerRunningInfo, DirectConsumption
from skyrocket.protocol.bodies.subscription import SubscriptionData
from skyrocket.remoting.tasks import TaskSet

if TYPE_CHECKING:
    from skyrocket.client.tracing.trace import Tracer

_logger = logging.getLogger(__name__)

F = TypeVar("F", bound=Callable[..., Any])


class PushConsumer(Startable):
    """One member of a consumer group."""

    def __init__(
        self,
        group: str,
        name_servers: str | Sequence[str] = "",
        settings: PushConsumerSettings | None = None,
        *,
        client: ClientSettings | None = None,
        credentials: Acl | None = None,
        hooks: Sequence[ConsumeHook] = (),
        on_queues_changed: Callable[[str, set[MessageQueue]], None] | None = None,
        offset_storage: OffsetStorage | None = None,
    ) -> None:
        check_group(group)
        self.settings = settings or PushConsumerSettings()
        self._client = settings_of(client, name_servers, credentials)
        self._namespace = self._client.effective_namespace()
        self.group = wrap(self._namespace, group)
        self.is_suspended = False
        self._hooks = tuple(hooks)
        self._tracer: Tracer | None = None
        self._on_queues_changed = on_queues_changed
        self._offset_storage = offset_storage
        self._state = State.NEW
        self._handlers: dict[str, Handler] = {}  # by topic without namespace
        self._subscriptions: dict[str, SubscriptionData] = {}  # by topic with namespace
        self._threads: ThreadPoolExecutor | None = None
        self._tasks = TaskSet()
        self._repeated: list[asyncio.Task[None]] = []
        self._stopped = asyncio.Event()
        self._started_ms = 0
        self._instance: ClientInstance
        self._offsets: OffsetStore
        self._statistics: ConsumeStatistics
        self._rebalancer: Rebalancer
        self._calls: ConcurrentConsumption
        self._in_order: OrderlyConsumption | None = None
        self._queues: AssignedQueues

    def __repr__(self) -> str:
        return f"push consumer {self.group}"

    @property
    def is_clustering(self) -> bool:
        return self.settings.message_model is MessageModel.CLUSTERING

    # ── subscriptions ────────────────────────────────────────────────────────────────────────────────────────────────

    def on(
        self,
        topic: str,
        *,
        tags: str = "*",
        sql: str | None = None,
        batch: bool = False,
        once: HandlerWrapper | None = None,
    ) -> Callable[[F], F]:
        """Decorator: this function consumes the topic."""

        def decorate(function: F) -> F:
            self.subscribe(topic, function, SqlFilter(sql) if sql is not None else tags, batch=batch, once=once)
            return function

        return decorate

    def subscribe(
        self,
        topic: str,
        handler: Callable[..., Any],
        wanted: Filter = "*",
        *,
        batch: bool = False,
        once: HandlerWrapper | None = None,
    ) -> None:
        """Let a function consume a topic; `batch` gives it lists of `consume_message_batch_max_size` messages.

        With `once` it gets the message and a database connection, and its work there is done once (exactly_once/).
        Brokers and the other members hear of a change while running with the next heartbeat, which is sent at once.
        """
        check_topic(topic)
        if not callable(handler):
            raise IllegalSubscription(f"the handler for topic {topic} is {handler!r}: give a function")
        if once is not None:
            if batch:
                raise IllegalSubscription(f"once= and batch= exclude each other (topic {topic}): each key is one call")
            handler = once.wrap(handler)
        full = wrap(self._namespace, topic)
        version = (self._instance.clock if self._state is State.RUNNING else SystemClock()).now_ms()
        self._subscriptions[full] = subscription_of(full, wanted, version)
        commits = not self.settings.auto_commit
        self._handlers[topic] = Handler(handler, self._executor, takes_list=batch, commits=commits)
        if self._state is State.RUNNING:
            self._tasks.start(self._announce(), "announce a subscription")

    def unsubscribe(self, topic: str) -> None:
        """Consume it no more; its queues leave at once."""
        self._subscriptions.pop(wrap(self._namespace, topic), None)
        self._handlers.pop(topic, None)
        if self._state is State.RUNNING:
            self._tasks.start(self._announce(), "announce a subscription")

    async def _announce(self) -> None:
        await self._instance.refresh_routes()
        await self._instance.beat_all()
        self.rebalance_soon()

    def is_paused(self, queue: MessageQueue) -> bool:
        return self.is_suspended

    def subscription(self, topic: str) -> SubscriptionData | None:
        return self._subscriptions.get(topic)

    # ── lifecycle ────────────────────────────────────────────────────────────────────────────────────────────────────

    async def start(self) -> None:
        """Join the group and begin; raises AlreadyStarted, GroupInUse, IllegalSubscription, NoNameServer, …."""
        if self._state is not State.NEW:
            raise AlreadyStarted(str(self), self._state.value)
        if not self._handlers:
            raise IllegalSubscription(f"{self} has no subscription: add one with @consumer.on(topic)")
        self._state = State.STARTING
        try:
            self._instance = await ClientInstance.acquire(self._client, stable_id=not self.is_clustering)
        except BaseException:
            self._state = State.NEW
            raise
        try:
            self._build()
            self._instance.join_consumer(self)
            if self._tracer is not None:
                self._tracer.start()
            self._state = State.RUNNING
            await self._meet_brokers()
        except BaseException:
            await self._end(0.0)
            raise
        self._run()

    def _build(self) -> None:
        settings, instance = self.settings, self._instance
        self._started_ms = instance.clock.now_ms()
        if self.is_clustering:
            self._subscriptions[retry_topic(self.group)] = subscription_of(
                retry_topic(self.group), "*", self._started_ms
            )
        self._offsets = self._offset_store()
        self._statistics = ConsumeStatistics(instance.clock.monotonic)
        self._tracer = tracer_of(instance, self._client.trace, self.group, CONSUME)
        monotonic = instance.clock.monotonic
        send_back = SendBack(instance, self.group, settings.max_reconsume_times) if self.is_clustering else None
        self._calls = ConcurrentConsumption(
            self.group,
            self._handlers.get,
            self._offsets,
            send_back,
            settings,
            instance.clock,
            self._statistics,
            self._hooks if self._tracer is None else (*self._hooks, self._tracer),
        )
        if settings.orderly:
            self._in_order = OrderlyConsumption(self._calls, self._offsets, send_back, settings, monotonic)
        self._queues = AssignedQueues(
            instance,
            self.group,
            settings,
            self,
            self._offsets,
            self._in_order,
            self._tasks,
            self.rebalance_soon,
        )
        self._rebalancer = Rebalancer(
            instance,
            self.group,
            settings.message_model,
            settings.strategy,
            lambda: self._subscriptions,
            self._apply,
        )

    def _offset_store(self) -> OffsetStore:
        settings = self.settings
        if self._offset_storage is not None:
            return OwnOffsets(self._offset_storage, self.group)
        if settings.broadcast_from_newest:
            return SessionOffsets()
        return offset_store(
            self._instance,
            self.group,
            clustering=self.is_clustering,
            new_group_from_zero=settings.new_group_from_zero,
            directory=settings.local_offsets,
        )

    async def _meet_brokers(self) -> None:
        """Find the topics, have filters checked, say hello; a topic that does not exist yet may come later."""
        for topic in list(self._subscriptions):
            if topic.startswith(RETRY_PREFIX):
                continue  # made by the first heartbeat
            try:
                await self._instance.route(topic)
            except NoRoute as error:
                _logger.warning("a subscribed topic is not there yet: %s", error)
        await check_filters(self._instance, self.group, list(self._subscriptions.values()))
        await self._instance.beat_all()

    def _run(self) -> None:
        settings, instance = self.settings, self._instance
        if self._in_order is None:
            self._calls.start()
        self._tasks.start(self._rebalancer.run(), f"rebalance {self.group}")
        self._repeat(settings.persist_interval, self._queues.persist, "persist offsets")
        self._repeat(SAMPLE_SECONDS, self._statistics.sample, "sample statistics")
        if self._in_order is not None and self.is_clustering:
            self._repeat(RENEW_SECONDS, self._queues.renew_locks, "renew locks", first=1.0)
        if self._in_order is None:
            self._repeat(settings.consume_timeout, self._calls.expire, "expire handlers")
        if self.is_clustering:
            check = SubscriptionCheck(instance, self.group)
            self._repeat(
                instance.settings.heartbeat_interval,
                lambda: check.run(list(self._subscriptions.values())),
                "compare subscriptions",
                first=3.0,
            )

    def _repeat(self, seconds: float, work: Callable[[], Any], name: str, *, first: float | None = None) -> None:
        task = self._instance.every(seconds, work, f"{name} {self.group}", first=first)
        self._repeated.append(task)

    async def stop(self) -> None:
        """Pull no more, wait for running handlers, save offsets, give back locks, say goodbye; may be called again."""
        if self._state is State.RUNNING:
            await self._end(self.settings.shutdown_timeout)

    async def _end(self, seconds: float) -> None:
        self._state = State.STOPPED
        is_built = hasattr(self, "_queues")
        leaving = set(self._queues.leaving) if is_built else set()
        try:
            for task in self._repeated:
                task.cancel()
            await asyncio.gather(*self._repeated, return_exceptions=True)
            await self._tasks.cancel()
            if is_built:
                await self._finish(seconds, leaving)
            if self._tracer is not None:
                await self._tracer.close()
            if self._is_member():
                await self._instance.leave_consumer(self.group)
        finally:
            if self._threads is not None:
                self._threads.shutdown(wait=False, cancel_futures=True)
            await self._instance.release()
            self._stopped.set()

    def _is_member(self) -> bool:
        return self._instance.consumers.get(self.group) is self

    async def _finish(self, seconds: float, leaving: set[MessageQueue]) -> None:
        """Handlers end, then offsets are saved: what was consumed is not consumed again."""
        if self._in_order is not None:
            await self._in_order.stop(seconds)
        else:
            await self._calls.stop(seconds)
        await self._queues.end(leaving)

    async def wait_stopped(self) -> None:
        """Until somebody stops it."""
        await self._stopped.wait()

    @property
    def dropped_traces(self) -> int:
        """Trace events that could not be told."""
        return 0 if self._tracer is None else self._tracer.dispatcher.dropped

    # ── queues ───────────────────────────────────────────────────────────────────────────────────────────────────────

    @property
    def assignment(self) -> set[MessageQueue]:
        """The queues that are consumed here, retry topic included."""
        return set(self._queues.in_hand) if hasattr(self, "_queues") else set()

    def rebalance_soon(self) -> None:
        self._rebalancer.soon()

    async def _apply(self, topic: str, wanted: set[MessageQueue]) -> bool:
        """Have exactly these queues of a topic; whether it was possible."""
        complete, is_changed = await self._queues.have(topic, wanted, self._subscriptions)
        if is_changed and self._on_queues_changed is not None:
            self._on_queues_changed(unwrap(self._namespace, topic), self._queues.of_topic(topic))
        return complete

    # ── what pullers report ──────────────────────────────────────────────────────────────────────────────────────────

    def arrived(self, process_queue: ProcessQueue, messages: list[ReceivedMessage]) -> None:
        self._statistics.pulled(process_queue.queue.topic, process_queue.pull_seconds, len(messages))
        if self._in_order is not None:
            process_queue.put_in_order(messages)
        else:
            new = process_queue.put(messages)
            if new:
                self._calls.submit(process_queue, new)

    async def offset_moved(self, process_queue: ProcessQueue, offset: int) -> None:
        """The broker does not have our offset (any more): go on where it says, with nothing in hand."""
        _logger.warning("an offset was corrected by the broker queue=%s offset=%d", process_queue.queue, offset)
        await self._queues.go_on_at(process_queue, offset, is_running=lambda: self._state is State.RUNNING)

    def topic_restorer(self, queue: MessageQueue) -> Callable[[ReceivedMessage], None] | None:
        return self._restore if self._namespace or queue.topic.startswith(RETRY_PREFIX) else None

    def _restore(self, message: ReceivedMessage) -> None:
        """Messages of the retry topic appear under the topic they were sent to."""
        if message.stored_topic.startswith(RETRY_PREFIX):
            message.topic = message.properties.get(property_names.RETRY_TOPIC, message.stored_topic)
        message.topic = unwrap(self._namespace, message.topic)

    # ── control ──────────────────────────────────────────────────────────────────────────────────────────────────────

    def pause(self) -> None:
        """Pull no more; what is in hand is still consumed."""
        self.is_suspended = True
        if self._state is State.RUNNING:
            self._rebalancer.is_paused = True

    def resume(self) -> None:
        """Go on."""
        self.is_suspended = False
        if self._state is State.RUNNING:
            self._rebalancer.is_paused = False
            self.rebalance_soon()

    async def reset_to(self, moment: float) -> None:
        """Consume all subscribed topics anew from a moment on (seconds since 1970)."""
        if self._state is not State.RUNNING:
            raise not_running(str(self), self._state)
        for topic in [topic for topic in self._subscriptions if not topic.startswith(RETRY_PREFIX)]:
            queues = sorted(self._queues.of_topic(topic))
            found = await asyncio.gather(*(offset_at(self._instance, queue, round(moment * 1000)) for queue in queues))
            await self.reset_offsets(topic, dict(zip(queues, found, strict=True)))

    async def commit_offset(self, queue: MessageQueue, offset: int) -> None:
        """Set how far a queue is consumed, also backwards; counts for the next start."""
        if offset < 0:
            raise WrongUse(f"offset {offset} is negative")
        self._offsets.update(queue, offset, increase_only=False)
        await self._offsets.persist([queue], confirmed=True)

    # ── what brokers ask ─────────────────────────────────────────────────────────────────────────────────────────────

    @property
    def topics(self) -> list[str]:
        return list(self._subscriptions)

    def forked(self) -> None:
        self._state = State.FORKED

    def heartbeat_data(self) -> ConsumerData:
        return ConsumerData(
            self.group,
            "CONSUME_PASSIVELY",
            self.settings.message_model.value,
            self.settings.consume_from.value,
            tuple(self._subscriptions.values()),
            self._client.unit_mode,
        )

    async def reset_offsets(self, topic: str, offsets: Mapping[MessageQueue, int]) -> None:
        await self._queues.reset(offsets)

    def offsets_of(self, topic: str) -> dict[MessageQueue, int]:
        return self._offsets.of_topic(topic)

    def running_info(self, with_stacks: bool) -> ConsumerRunningInfo:
        info = running_info(
            self._queues.in_hand.values(),
            self._offsets.in_memory,
            self._subscriptions.values(),
            {
                "PROP_CONSUMEORDERLY": str(self.settings.orderly).lower(),
                "PROP_THREADPOOL_CORE_SIZE": str(self.settings.max_concurrency),
                "PROP_CONSUMER_START_TIMESTAMP": str(self._started_ms),
                "PROP_NAMESERVER_ADDR": "".join(f"{address};" for address in self._instance.names.addresses),
                "PROP_CONSUME_TYPE": "CONSUME_PASSIVELY",
                "messageModel": self.settings.message_model.value,
                "consumeFromWhere": self.settings.consume_from.value,
            },
            self._instance.clock,
        )
        info = replace(info, status={topic: self._statistics.status(topic) for topic in sorted(self._subscriptions)})
        return replace(info, jstack=_stacks()) if with_stacks else info

    async def consume_directly(self, message: ReceivedMessage) -> DirectConsumption:
        self._restore(message)
        current_group.set(self.group)
        began = self._instance.clock.monotonic()
        outcome = await self._calls.call([message])
        spent = round((self._instance.clock.monotonic() - began) * 1000)
        orderly, auto_commit = self.settings.orderly, self.settings.auto_commit
        if outcome is None:
            return DirectConsumption("CR_SUCCESS", orderly, auto_commit, spent)
        if outcome.error is not None:
            return DirectConsumption("CR_THROW_EXCEPTION", orderly, auto_commit, spent, repr(outcome.error))
        result = "CR_LATER" if outcome.decision is None else f"CR_{outcome.decision.value}"
        return DirectConsumption(result, orderly, auto_commit, spent)

    def _executor(self) -> Executor:
        if self._threads is None:
            self._threads = ThreadPoolExecutor(self.settings.max_concurrency, f"skyrocket-{self.group}")
        return self._threads


def _stacks() -> str:
    """What threads and tasks are doing."""
    lines: list[str] = []
    for number, frame in sys._current_frames().items():
        lines += [f"thread {number}", *traceback.format_stack(frame)]
    for task in asyncio.all_tasks():
        lines.append(f"task {task.get_name()}: {task.get_coro()!r}")
    return "\n".join(lines)
