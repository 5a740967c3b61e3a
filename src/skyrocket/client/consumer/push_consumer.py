"""PushConsumer: subscribe, and be called.

    consumer = PushConsumer("Billing", "127.0.0.1:9876")

    @consumer.on("Orders", tags="paid || refunded")
    async def order(message: ReceivedMessage) -> None: ...

    async with consumer:
        await consumer.wait_stopped()

Handlers are coroutines, or plain functions that run in threads. Return and it is consumed, raise and it comes again.
A topic may have several, by tag or condition (topic_handlers.py); each takes the message or its body (signature.py).
`consumer.run()` is for scripts, `skyrocket worker app:consumer` for everything that has to keep running.
"""

import asyncio
from collections.abc import Callable, Iterable, Mapping, Sequence
from concurrent.futures import Executor
from dataclasses import replace
from functools import partial
from typing import Any, Literal, overload

from skyrocket.client.consumer.answers import AnswerProducer
from skyrocket.client.consumer.assigned_queues import AssignedQueues
from skyrocket.client.consumer.concurrent_consumption import ConcurrentConsumption
from skyrocket.client.consumer.consume_statistics import SAMPLE_SECONDS, ConsumeStatistics
from skyrocket.client.consumer.group_member import GroupMember
from skyrocket.client.consumer.handler_registry import HandlerRegistry
from skyrocket.client.consumer.handler_threads import HandlerThreads
from skyrocket.client.consumer.handler_types import BatchDecorator, HandlerDecorator
from skyrocket.client.consumer.handlers import NO_POLICY, HandlerWrapper, current_group
from skyrocket.client.consumer.offset_place import offset_store
from skyrocket.client.consumer.offset_store import OffsetStorage, OffsetStore, OwnOffsets, SessionOffsets
from skyrocket.client.consumer.orderly_consumption import OrderlyConsumption
from skyrocket.client.consumer.process_queue import ProcessQueue
from skyrocket.client.consumer.puller import PullerParts
from skyrocket.client.consumer.push_consumer_settings import PushConsumerSettings
from skyrocket.client.consumer.queue_locks import RENEW_SECONDS
from skyrocket.client.consumer.rebalance import Rebalancer
from skyrocket.client.consumer.retry_policy import RetryPolicy
from skyrocket.client.consumer.send_back import SendBack
from skyrocket.client.consumer.start_position import offset_at
from skyrocket.client.consumer.subscription import Filter, subscription_of
from skyrocket.client.consumer.subscription_check import SubscriptionCheck
from skyrocket.client.core.errors import IllegalSubscription, WrongUse
from skyrocket.client.core.hooks import ConsumeHook
from skyrocket.client.core.lifecycle import State
from skyrocket.client.core.message import ReceivedMessage
from skyrocket.client.core.middleware import Middleware, checked
from skyrocket.client.core.names import retry_topic, unwrap, wrap
from skyrocket.client.core.settings import Acl, ClientSettings, of_kind, settings_of
from skyrocket.clock import SystemClock
from skyrocket.model import property_names
from skyrocket.model.message_queue import MessageQueue
from skyrocket.model.topic import RETRY_PREFIX
from skyrocket.protocol.bodies.running_info import ConsumerRunningInfo, DirectConsumption


class PushConsumer(GroupMember):
    """One member of a consumer group."""

    kind = "push consumer"
    consume_type = "CONSUME_PASSIVELY"

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
        self.settings = of_kind("settings", settings, PushConsumerSettings)
        super().__init__(
            group,
            settings_of(client, name_servers, credentials),
            self.settings.consume_from,
            self.settings.message_model,
        )
        self.is_suspended = False
        self._hooks = tuple(hooks)
        self._on_queues_changed = on_queues_changed
        self._offset_storage = offset_storage
        self._answers = AnswerProducer(group, self._client)
        self._handlers = HandlerRegistry(
            self.group, self._executor, commits=not self.settings.auto_commit, producer=self._answers.get
        )
        self._threads: HandlerThreads | None = None
        self._stopped = asyncio.Event()
        self._offsets: OffsetStore
        self._statistics: ConsumeStatistics
        self._rebalancer: Rebalancer
        self._calls: ConcurrentConsumption
        self._in_order: OrderlyConsumption | None = None
        self._queues: AssignedQueues

    # ── subscriptions ────────────────────────────────────────────────────────────────────────────────────────────────

    @overload
    def on(
        self,
        topic: str,
        *,
        tags: str = "*",
        sql: str | None = None,
        batch: Literal[False] = False,
        once: HandlerWrapper | None = None,
        retry: RetryPolicy = NO_POLICY,
    ) -> HandlerDecorator: ...

    @overload
    def on(
        self,
        topic: str,
        *,
        tags: str = "*",
        sql: str | None = None,
        batch: Literal[True],
        retry: RetryPolicy = NO_POLICY,
    ) -> BatchDecorator: ...

    def on(
        self,
        topic: str,
        *,
        tags: str = "*",
        sql: str | None = None,
        batch: bool = False,
        once: HandlerWrapper | None = None,
        retry: RetryPolicy = NO_POLICY,
    ) -> Any:
        """Decorator: this function consumes the topic, or what of it has these tags and meets this condition.

        Several handlers may share a topic: each message goes to the first that takes it, and two that overlap are
        refused. Raises IllegalSubscription, also for a function whose parameters or result do not fit.
        """

        if callable(topic):
            name = getattr(topic, "__name__", topic)
            raise IllegalSubscription(f"@consumer.on needs a topic: write @consumer.on('Orders') above {name}")

        def decorate(function: Callable[..., Any]) -> Callable[..., Any]:
            self._subscribe(topic, function, tags, sql, batch=batch, once=once, retry=retry)
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
        retry: RetryPolicy = NO_POLICY,
    ) -> None:
        """Let a function consume a topic; `batch` gives it lists of `consume_message_batch_max_size` messages.

        With `once` it gets the message and a database connection, and its work there is done once (exactly_once/).
        Brokers and the other members hear of a change while running with the next heartbeat, which is sent at once.
        """
        self._subscribe(topic, handler, wanted, None, batch=batch, once=once, retry=retry)

    def _subscribe(
        self,
        topic: str,
        function: Callable[..., Any],
        tags: Filter,
        sql: str | None,
        *,
        batch: bool,
        once: HandlerWrapper | None,
        retry: RetryPolicy,
    ) -> None:
        handlers = self._handlers.add(topic, function, tags, sql, batch=batch, once=once, retry=retry)
        full = wrap(self._namespace, topic)
        version = (self._instance.clock if self._state is State.RUNNING else SystemClock()).now_ms()
        self._subscriptions[full] = handlers.subscription(full, version)
        if self._state is State.RUNNING:
            self._tasks.start(self._announce(), "announce a subscription")

    def unsubscribe(self, topic: str) -> None:
        """Consume it no more, whatever handlers it has; its queues leave at once."""
        self._subscriptions.pop(wrap(self._namespace, topic), None)
        self._handlers.remove(topic)
        if self._state is State.RUNNING:
            self._tasks.start(self._announce(), "announce a subscription")

    def use(self, *middleware: Middleware) -> None:
        """Let every call of a handler go through these, the first outermost; before the start."""
        self._check_new()
        self._handlers.middleware += checked(middleware)
        self._answers.middleware += middleware

    async def _announce(self) -> None:
        await self._instance.refresh_routes()
        await self._instance.beat_all()
        self.rebalance_soon()

    # ── lifecycle ────────────────────────────────────────────────────────────────────────────────────────────────────

    async def start(self) -> None:
        """Join the group and begin; raises AlreadyStarted, GroupInUse, IllegalSubscription, NoNameServer, …."""
        if self._state is State.NEW and not self._handlers.topics:
            raise IllegalSubscription(f"{self} has no subscription: add one with @consumer.on(topic)")
        await super().start()

    def _build(self) -> None:
        settings, instance = self.settings, self._instance
        if self.is_clustering:
            retry = retry_topic(self.group)
            self._subscriptions[retry] = subscription_of(retry, "*", self._started_ms)
        self._offsets = self._offset_store()
        self._statistics = ConsumeStatistics(instance.clock.monotonic)
        monotonic = instance.clock.monotonic
        send_back = SendBack(instance, self.group, settings.max_reconsume_times) if self.is_clustering else None
        self._calls = ConcurrentConsumption(
            self.group,
            self._handlers.callers.get,
            self._offsets,
            send_back,
            settings,
            instance.clock,
            self._statistics,
            self._hooks if self._tracer is None else (*self._hooks, self._tracer),
        )
        if settings.orderly:
            self._in_order = OrderlyConsumption(self._calls, self._offsets, send_back, settings, monotonic)
        parts = PullerParts(
            instance,
            self.group,
            self._offsets,
            self._subscriptions,
            self._in_order or self._calls,
            lambda _: self.is_suspended,
            partial(topic_restorer, self._namespace),
        )
        self._queues = AssignedQueues(
            parts, settings, self._in_order, self._tasks, self.rebalance_soon, self._tell_queues_changed
        )
        self._rebalancer = Rebalancer(
            instance,
            self.group,
            settings.message_model,
            settings.strategy,
            lambda: self._subscriptions,
            self._queues.have,
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

    async def _begin(self) -> None:
        self._handlers.begin()
        await self._meet_brokers()
        settings, instance = self.settings, self._instance
        if self._in_order is None:
            self._calls.start()
            self._repeat(settings.consume_timeout, self._calls.expire, "expire handlers")
        elif self.is_clustering:
            self._repeat(RENEW_SECONDS, self._queues.renew_locks, "renew locks", first=1.0)
        self._tasks.start(self._rebalancer.run(), f"rebalance {self.group}")
        self._repeat(settings.persist_interval, self._queues.persist, "persist offsets")
        self._repeat(SAMPLE_SECONDS, self._statistics.sample, "sample statistics")
        if self.is_clustering:
            check = SubscriptionCheck(instance, self.group)
            self._repeat(
                instance.settings.heartbeat_interval,
                lambda: check.run(list(self._subscriptions.values())),
                "compare subscriptions",
                first=3.0,
            )

    async def stop(self) -> None:
        """Pull no more, wait for running handlers, save offsets, give back locks, say goodbye; may be called again."""
        if self._state is State.RUNNING:
            await self._end(self.settings.shutdown_timeout)

    async def _end(self, seconds: float) -> None:
        self._queues.close()
        try:
            await super()._end(seconds)
        finally:
            if self._threads is not None:
                self._threads.shutdown(wait=False, cancel_futures=True)
            self._stopped.set()

    async def _finish(self, seconds: float) -> None:
        """Handlers end, then offsets are saved: what was consumed is not consumed again."""
        await (self._in_order or self._calls).stop(seconds)
        await self._queues.end()
        await self._answers.stop()

    async def wait_stopped(self) -> None:
        """Until somebody stops it."""
        await self._stopped.wait()

    def run(self, *, drain: float | None = None) -> None:
        """For scripts: start, consume until SIGTERM or Ctrl-C, let running handlers end for `drain` seconds, stop.

        It starts without its cluster too, says so and goes on trying. A second signal does not wait.
        """
        from skyrocket.client.consumer.running import run_consumers

        run_consumers([self], drain)

    def prepare_to_run(self, drain: float | None = None, max_concurrency: int | None = None) -> None:
        """Before the start: wait for name servers, and other settings for the end and the number of calls."""
        self._check_new()
        self._client = replace(self._client, wait_for_name_servers=True)
        changes: dict[str, Any] = {} if drain is None else {"shutdown_timeout": drain}
        if max_concurrency is not None:
            changes["max_concurrency"] = max_concurrency
        self.settings = replace(self.settings, **changes)

    @property
    def is_connected(self) -> bool:
        """Whether a broker knows of this member: it runs, and has found its cluster."""
        if self._state is not State.RUNNING:
            return False
        instance = self._instance
        return any(instance.is_known_to(address) for address in instance.brokers.all())

    @property
    def subscribed_topics(self) -> list[str]:
        """Those that handlers were registered for."""
        return sorted(self._handlers.topics)

    def in_hand(self) -> dict[str, tuple[int, int]]:
        """By topic: how many queues are consumed here, and how many of their messages were fetched and are not done."""
        found: dict[str, tuple[int, int]] = {}
        for process_queue in self._in_hand() if hasattr(self, "_queues") else ():
            queues, messages = found.get(process_queue.queue.topic, (0, 0))
            found[process_queue.queue.topic] = (queues + 1, messages + process_queue.count)
        return found

    # ── queues ───────────────────────────────────────────────────────────────────────────────────────────────────────

    @property
    def assignment(self) -> set[MessageQueue]:
        """The queues that are consumed here, retry topic included."""
        return set(self._queues.in_hand) if hasattr(self, "_queues") else set()

    def rebalance_soon(self) -> None:
        self._rebalancer.soon()

    def _tell_queues_changed(self, topic: str, queues: set[MessageQueue]) -> None:
        if self._on_queues_changed is not None:
            self._on_queues_changed(unwrap(self._namespace, topic), queues)

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
        self._check_running()
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

    async def reset_offsets(self, topic: str, offsets: Mapping[MessageQueue, int]) -> None:
        await self._queues.reset(offsets)

    def offsets_of(self, topic: str) -> dict[MessageQueue, int]:
        return self._offsets.of_topic(topic)

    def _in_hand(self) -> Iterable[ProcessQueue]:
        return self._queues.in_hand.values()

    def _running_properties(self) -> Mapping[str, str]:
        return {
            "PROP_CONSUMEORDERLY": str(self.settings.orderly).lower(),
            "PROP_THREADPOOL_CORE_SIZE": str(self.settings.max_concurrency),
            "messageModel": self.settings.message_model.value,
            "consumeFromWhere": self.settings.consume_from.value,
        }

    def running_info(self, with_stacks: bool) -> ConsumerRunningInfo:
        status = {topic: self._statistics.status(topic) for topic in sorted(self._subscriptions)}
        return replace(super().running_info(with_stacks), status=status)

    async def consume_directly(self, message: ReceivedMessage) -> DirectConsumption:
        restore_topic(self._namespace, message)
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
            self._threads = HandlerThreads(self.settings.max_concurrency, f"skyrocket-{self.group}")
        return self._threads


def restore_topic(namespace: str, message: ReceivedMessage) -> None:
    """Let a message appear under the topic it was sent to."""
    if message.stored_topic.startswith(RETRY_PREFIX):
        message.topic = message.properties.get(property_names.RETRY_TOPIC, message.stored_topic)
    message.topic = unwrap(namespace, message.topic)


def topic_restorer(namespace: str, queue: MessageQueue) -> Callable[[ReceivedMessage], None] | None:
    """`restore_topic` for the messages of a queue; None where it would change nothing."""
    return partial(restore_topic, namespace) if namespace or queue.topic.startswith(RETRY_PREFIX) else None
