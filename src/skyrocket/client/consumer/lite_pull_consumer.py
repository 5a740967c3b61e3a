"""LitePullConsumer: ask for messages when it suits you.

    async with LitePullConsumer("Report", "127.0.0.1:9876") as consumer:
        await consumer.subscribe("Orders")
        async for message in consumer: ...

Queues come by `subscribe` (shared within the group) or by `assign` (as you say); one excludes the other. Messages are
fetched ahead in the background. There are no retries and no dead letters: what was polled and committed is done with.
"""

import asyncio
import logging
from collections.abc import Iterable, Mapping, Sequence
from datetime import datetime

from skyrocket.client.consumer.answer_puller import AnswerPuller
from skyrocket.client.consumer.fetched_answers import FetchedQueue
from skyrocket.client.consumer.lite_pull_settings import LitePullSettings
from skyrocket.client.consumer.offset_place import offset_store
from skyrocket.client.consumer.offset_store import OffsetStore
from skyrocket.client.consumer.polling import Held, Polling
from skyrocket.client.consumer.process_queue import FlowLimits, ProcessQueue
from skyrocket.client.consumer.puller import PullerParts, PullRules
from skyrocket.client.consumer.rebalance import Rebalancer
from skyrocket.client.consumer.start_position import (
    max_offset,
    min_offset,
    offset_at,
    since_ms,
    start_offset,
)
from skyrocket.client.consumer.subscription import Filter, subscription_of
from skyrocket.client.consumer.subscription_check import check_filters
from skyrocket.client.core.errors import ClientError, IllegalSubscription, NoRoute, WrongUse
from skyrocket.client.core.lifecycle import State
from skyrocket.client.core.message import ReceivedMessage
from skyrocket.client.core.names import check_topic, unwrap, wrap
from skyrocket.client.core.settings import Acl, ClientSettings, of_kind, settings_of
from skyrocket.model.message_queue import MessageQueue
from skyrocket.remoting.errors import RemotingError

_logger = logging.getLogger(__name__)


class LitePullConsumer(Polling):
    """One member of a consumer group, or a reader of chosen queues."""

    kind = "lite pull consumer"
    consume_type = "CONSUME_ACTIVELY"

    def __init__(
        self,
        group: str,
        name_servers: str | Sequence[str] = "",
        settings: LitePullSettings | None = None,
        *,
        client: ClientSettings | None = None,
        credentials: Acl | None = None,
    ) -> None:
        super().__init__(
            group, settings_of(client, name_servers, credentials), of_kind("settings", settings, LitePullSettings)
        )
        self._assigned = False
        self._paused: set[MessageQueue] = set()
        self._leaving: set[MessageQueue] = set()  # given away, and not saved yet
        self._sharing = asyncio.Lock()
        self._next_commit = 0.0
        self._offsets: OffsetStore
        self._rebalancer: Rebalancer
        self._rules: PullRules
        self._parts: PullerParts

    # ── lifecycle ────────────────────────────────────────────────────────────────────────────────────────────────────

    def _build(self) -> None:
        settings, instance = self.settings, self._instance
        self._offsets = offset_store(
            instance, self.group, clustering=self.is_clustering, new_group_from_zero=settings.new_group_from_zero
        )
        limits = FlowLimits(
            settings.pull_threshold_for_queue, settings.pull_threshold_size_for_queue, settings.consume_max_span
        )
        self._rules = PullRules(
            settings.pull_batch_size,
            batch_bytes=(1 << 31) - 1,
            suspend=settings.broker_suspend_max,
            timeout=settings.pull_timeout,
            limits=limits,
            brings_subscription=True,
            notes_progress=False,  # here only the application says what is consumed
        )
        self._parts = PullerParts(
            instance,
            self.group,
            self._offsets,
            self._subscriptions,
            None,
            self._is_paused,
            lambda _: self._restore if self._namespace else None,
            self._fetched,
        )
        self._rebalancer = Rebalancer(
            instance, self.group, settings.message_model, settings.strategy, lambda: self._subscriptions, self._apply
        )

    async def _begin(self) -> None:
        self._repeat(self.settings.persist_interval, self._persist, "persist offsets")

    async def _finish(self, seconds: float) -> None:
        """Save offsets; `poll` and iteration end."""
        self._fetched.wake()
        if self.settings.auto_commit:
            self._note_consumed(self._held)
        # Whoever stops may have cut off a task that gave queues away.
        await self._offsets.persist([*self._held, *self._leaving], confirmed=True)

    # ── which queues ─────────────────────────────────────────────────────────────────────────────────────────────────

    async def subscribe(self, topic: str, wanted: Filter = "*") -> None:
        """Share the topic's queues with the group; raises WrongUse after `assign`."""
        self._check_running()
        check_topic(topic)
        if self._assigned:
            raise WrongUse(f"{self} was given queues with assign: it cannot subscribe as well; use another consumer")
        full = wrap(self._namespace, topic)
        first = not self._subscriptions
        self._subscriptions[full] = subscription_of(full, wanted, self._instance.clock.now_ms())
        try:
            await self._instance.route(full)
            await check_filters(self._instance, self.group, [self._subscriptions[full]])
        except NoRoute as error:
            _logger.warning("a subscribed topic is not there yet: %s", error)
        except ClientError:
            del self._subscriptions[full]
            raise
        await self._instance.beat_all()
        if first:
            self._tasks.start(self._rebalancer.run(), f"rebalance {self.group}")
        else:
            self._rebalancer.soon()

    async def unsubscribe(self, topic: str) -> None:
        """Give its queues back to the group."""
        self._check_running()
        full = wrap(self._namespace, topic)
        self._subscriptions.pop(full, None)
        async with self._sharing:
            await self._let_go([queue for queue in self._held if queue.topic == full])
        await self._instance.beat_all()

    async def assign(self, queues: Iterable[MessageQueue] | Mapping[MessageQueue, int], wanted: Filter = "*") -> None:
        """Read exactly these queues, whoever else does; raises WrongUse after `subscribe`.

        A mapping says at which offset to begin; queues that are read already go on there. Otherwise, and for all
        others, what the group has committed counts, then `consume_from`.
        """
        self._check_running()
        if self._subscriptions and not self._assigned:
            raise WrongUse(f"{self} has subscribed: queues cannot be assigned as well; use another consumer")
        offsets = {self._full(queue): offset for queue, offset in queues.items()} if isinstance(queues, Mapping) else {}
        chosen = {self._full(queue) for queue in queues}
        if not chosen:
            raise IllegalSubscription("assign needs at least one queue: Admin.route or message_queues tell which exist")
        self._assigned = True
        now_ms = self._instance.clock.now_ms()
        self._subscriptions.clear()
        self._subscriptions.update({queue.topic: subscription_of(queue.topic, wanted, now_ms) for queue in chosen})
        for topic in self._subscriptions:
            await self._instance.route(topic)
        await check_filters(self._instance, self.group, self._subscriptions.values())
        async with self._sharing:
            await self._let_go([queue for queue in self._held if queue not in chosen or queue in offsets])
            for queue in sorted(chosen - set(self._held)):
                if queue in offsets:
                    self._begin_at(queue, offsets[queue])
                else:
                    await self._begin_queue(queue)

    async def message_queues(self, topic: str) -> list[MessageQueue]:
        """The queues of a topic; raises NoRoute or NoNameServer."""
        self._check_running()
        route = await self._instance.route(wrap(self._namespace, topic), fresh=True)
        return [queue._replace(topic=topic) for queue in sorted(route.read_queues)]

    @property
    def assignment(self) -> set[MessageQueue]:
        """The queues that are read here."""
        return {self._shown(queue) for queue in self._held}

    async def _apply(self, topic: str, wanted: set[MessageQueue]) -> bool:
        async with self._sharing:
            await self._let_go([queue for queue in self._held if queue.topic == topic and queue not in wanted])
            begun = [await self._try_begin(queue) for queue in sorted(wanted - set(self._held))]
        return all(begun)

    async def _try_begin(self, queue: MessageQueue) -> bool:
        try:
            await self._begin_queue(queue)
            return True
        except (ClientError, RemotingError) as error:
            _logger.warning("a queue cannot be begun yet queue=%s reason=%s", queue, error)
            return False

    async def _begin_queue(self, queue: MessageQueue) -> None:
        from_ms = since_ms(self.settings.consume_timestamp, self._started_ms)
        offset = self._offsets.in_memory(queue)
        if offset is None:
            offset = await start_offset(self._instance, queue, self._offsets, self.settings.consume_from, from_ms)
        self._begin_at(queue, offset)

    def _begin_at(self, queue: MessageQueue, offset: int) -> None:
        process_queue = FetchedQueue(queue, self._instance.clock.monotonic())
        puller = AnswerPuller(self._parts, self._rules, process_queue, offset, self._offset_moved)
        task = self._tasks.start(puller.run(), f"pull {queue}")
        self._held[queue] = Held(process_queue, puller, task)

    async def _let_go(self, queues: Sequence[MessageQueue]) -> None:
        if not queues:
            return
        if self.settings.auto_commit:
            self._note_consumed({queue: self._held[queue] for queue in queues})
        for queue in queues:
            self._drop(self._held.pop(queue))
        self._leaving.update(queues)
        try:
            await self._offsets.persist(queues)
        finally:
            if self._state is State.RUNNING:  # else whoever stops has cut this off, and `_finish` saves them
                self._leaving.difference_update(queues)
                for queue in queues:
                    self._offsets.forget(queue)

    def _drop(self, held: Held) -> None:
        held.task.cancel()
        held.process_queue.drop()
        self._fetched.drop(held.process_queue)

    # ── offsets ──────────────────────────────────────────────────────────────────────────────────────────────────────

    async def commit(self, offsets: Mapping[MessageQueue, int] | None = None) -> None:
        """Save how far we are: all that was polled, or the given offsets. Returns when brokers have it."""
        self._check_running()
        if offsets is None:
            self._note_consumed(self._held)
            await self._offsets.persist(list(self._held), confirmed=True)
            return
        named = {self._full(queue): offset for queue, offset in offsets.items() if offset >= 0}
        for queue, offset in named.items():
            self._offsets.update(queue, offset, increase_only=False)
        await self._offsets.persist(named, confirmed=True)

    def _commit_when_due(self) -> None:
        now = self._instance.clock.monotonic()
        if self.settings.auto_commit and now >= self._next_commit:
            self._next_commit = now + self.settings.auto_commit_interval
            self._note_consumed(self._held)

    def _note_consumed(self, queues: Mapping[MessageQueue, Held]) -> None:
        for queue, held in queues.items():
            # With nothing in hand all was polled, and what did not match the filter was passed over.
            done = held.consumed if held.process_queue.count else held.puller.next_offset
            if done is not None:
                self._offsets.update(queue, done, increase_only=False)

    async def committed(self, queue: MessageQueue) -> int | None:
        """How far the group is, None if it has never committed."""
        self._check_running()
        known = self._offsets.in_memory(self._full(queue))
        return known if known is not None else await self._offsets.stored(self._full(queue))

    def position(self, queue: MessageQueue) -> int:
        """The offset after all that was polled or passed over so far; raises WrongUse for a queue that is not ours."""
        held = self._held.get(self._full(queue))
        if held is None:
            raise self._not_ours(queue)
        waiting = held.process_queue.min_offset
        return held.puller.next_offset if waiting is None else waiting

    def _not_ours(self, queue: MessageQueue) -> WrongUse:
        return WrongUse(f"{queue} is not assigned to {self}: it has {len(self._held)} other queues")

    async def seek(self, queue: MessageQueue, offset: int) -> None:
        """Read on from an offset; raises WrongUse for a queue that is not ours or an offset that it does not have."""
        self._check_running()
        full = self._full(queue)
        low, high = await asyncio.gather(min_offset(self._instance, full), max_offset(self._instance, full))
        if not low <= offset <= high:
            raise WrongUse(f"offset {offset} is not in {queue}: it has {low} to {high}")
        async with self._sharing:
            held = self._held.get(full)
            if held is None:
                raise self._not_ours(queue)
            self._drop(held)
            self._begin_at(full, offset)

    async def seek_to_begin(self, queue: MessageQueue) -> None:
        """To the first message that is still there."""
        await self.seek(queue, await min_offset(self._instance, self._full(queue)))

    async def seek_to_end(self, queue: MessageQueue) -> None:
        """To what will come next."""
        await self.seek(queue, await max_offset(self._instance, self._full(queue)))

    async def offset_for_timestamp(self, queue: MessageQueue, moment: datetime | float) -> int:
        """The first message stored at or after a moment (seconds since 1970)."""
        self._check_running()
        seconds = moment.timestamp() if isinstance(moment, datetime) else moment
        return await offset_at(self._instance, self._full(queue), round(seconds * 1000))

    def pause(self, *queues: MessageQueue) -> None:
        """Fetch no more from these; what is fetched can still be polled."""
        self._paused.update(map(self._full, queues))

    def resume(self, *queues: MessageQueue) -> None:
        """Fetch again."""
        self._paused.difference_update(map(self._full, queues))
        for held in self._held.values():
            held.process_queue.wake()

    async def _persist(self) -> None:
        await self._offsets.persist(list(self._held))

    def _full(self, queue: MessageQueue) -> MessageQueue:
        return queue._replace(topic=wrap(self._namespace, queue.topic)) if self._namespace else queue

    def _shown(self, queue: MessageQueue) -> MessageQueue:
        return queue._replace(topic=unwrap(self._namespace, queue.topic)) if self._namespace else queue

    # ── what pullers ask and report ──────────────────────────────────────────────────────────────────────────────────

    def _is_paused(self, queue: MessageQueue) -> bool:
        return queue in self._paused or self._is_full()

    async def _offset_moved(self, process_queue: ProcessQueue, offset: int) -> None:
        """Read on there; what was fetched before can still be polled."""
        queue = process_queue.queue
        held = self._held.get(queue)
        if held is not None and held.process_queue is process_queue:
            held.puller.next_offset = offset
            self._offsets.update(queue, offset, increase_only=False)

    def _restore(self, message: ReceivedMessage) -> None:
        message.topic = unwrap(self._namespace, message.topic)

    # ── what brokers ask ─────────────────────────────────────────────────────────────────────────────────────────────

    def rebalance_soon(self) -> None:
        if not self._assigned:
            self._rebalancer.soon()

    async def reset_offsets(self, topic: str, offsets: Mapping[MessageQueue, int]) -> None:
        async with self._sharing:
            for queue, offset in offsets.items():
                held = self._held.get(queue)
                if held is not None:
                    self._drop(held)
                    self._offsets.update(queue, offset, increase_only=False)
                    self._begin_at(queue, offset)

    def offsets_of(self, topic: str) -> dict[MessageQueue, int]:
        return self._offsets.of_topic(topic)

    def _in_hand(self) -> Iterable[ProcessQueue]:
        return [held.process_queue for held in self._held.values()]
