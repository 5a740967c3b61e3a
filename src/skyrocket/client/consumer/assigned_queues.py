"""The queues of a push consumer: begun when rebalance gives them, left when it takes them away.

    given ─▶ lock (in order) ─▶ where to begin ─▶ puller + process queue ─▶ taken away ─▶ offsets saved ─▶ unlock
                                      ▲                    │
                                      └── reset, corrected by the broker

In order a queue is left only after its running call has ended: until then it counts as leaving, and its lock is kept.
"""

import asyncio
import logging
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from typing import Final

from skyrocket.client.consumer.orderly_consumption import OrderlyConsumption
from skyrocket.client.consumer.process_queue import PULL_IDLE, FlowLimits, ProcessQueue
from skyrocket.client.consumer.puller import Puller, PullerParts, PullRules
from skyrocket.client.consumer.push_consumer_settings import PushConsumerSettings
from skyrocket.client.consumer.queue_locks import LockKeeper
from skyrocket.client.consumer.start_position import MessageModel, since_ms, start_offset
from skyrocket.client.core.errors import ClientError
from skyrocket.model.message_queue import MessageQueue
from skyrocket.remoting.errors import RemotingError
from skyrocket.remoting.tasks import TaskSet

_logger = logging.getLogger(__name__)

_LEAVE_IN_ORDER: Final = 0.5
_RESET_WAIT: Final = 10.0
_NOT_BEGUN: Final = "a queue cannot be begun yet"


class AssignedQueues:
    """What one member of a group has in hand."""

    def __init__(
        self,
        parts: PullerParts,
        settings: PushConsumerSettings,
        in_order: OrderlyConsumption | None,
        tasks: TaskSet,
        rebalance_soon: Callable[[], None],
        changed: Callable[[str, set[MessageQueue]], None],
    ) -> None:
        self.in_hand: dict[MessageQueue, ProcessQueue] = {}
        self.leaving: set[MessageQueue] = set()
        self._locked: set[MessageQueue] = set()  # whatever we may hold at brokers: unlocked at the end in any case
        self._pullers: dict[MessageQueue, asyncio.Task[None]] = {}
        self._sharing = asyncio.Lock()
        self._parts = parts
        self._instance = parts.instance
        self._offsets = parts.offsets
        self._settings = settings
        self._in_order = in_order
        self._tasks = tasks
        self._rebalance_soon = rebalance_soon
        self._changed = changed
        self._is_closed = False
        self._left_at_end: set[MessageQueue] = set()
        self._is_clustering = settings.message_model is MessageModel.CLUSTERING
        self._needs_lock = in_order is not None and self._is_clustering
        self._locks = LockKeeper(parts.instance, parts.group)
        self._started_ms = parts.instance.clock.now_ms()
        limits = FlowLimits(
            settings.pull_threshold_for_queue,
            settings.pull_threshold_size_for_queue,
            None if settings.orderly else settings.consume_concurrently_max_span,
        )
        self._rules = PullRules(
            settings.pull_batch_size,
            settings.pull_batch_bytes,
            settings.pull_interval,
            limits=limits,
            commits=self._is_clustering,
            needs_lock=self._needs_lock,
        )

    def of_topic(self, topic: str) -> set[MessageQueue]:
        return {queue for queue in self.in_hand if queue.topic == topic}

    # ── given and taken away ─────────────────────────────────────────────────────────────────────────────────────────

    async def have(self, topic: str, wanted: set[MessageQueue]) -> bool:
        """Have exactly these queues of a topic; whether that is so now.

        Queues of topics that are subscribed to no more are left on this occasion.
        """
        async with self._sharing:
            for other in {queue.topic for queue in self.in_hand if queue.topic not in self._parts.subscriptions}:
                await self._give_up(sorted(self.of_topic(other)))
            mine = self.of_topic(topic)
            now = self._instance.clock.monotonic()
            stuck = {queue for queue in mine & wanted if now - self.in_hand[queue].last_pulled > PULL_IDLE}
            await self._give_up(sorted((mine - wanted) | stuck))
            new = sorted(wanted - set(self.in_hand) - self.leaving)
            complete = not (wanted & self.leaving)
            if self._needs_lock and new:
                self._locked.update(new)
                held = await self._locks.lock(new)
                complete = complete and all(held.get(queue) for queue in new)
                new = [queue for queue in new if held.get(queue)]
            begun = [await self._begin(queue) for queue in new]
            is_changed = bool(mine - wanted) or any(begun)
            if is_changed:
                _logger.info("queues group=%s topic=%s count=%d", self._parts.group, topic, len(wanted))
                self._spread_limits()
        if is_changed:
            self._changed(topic, self.of_topic(topic))
        return complete and all(begun)

    async def _begin(self, queue: MessageQueue) -> bool:
        self._offsets.forget(queue)
        settings = self._settings
        from_ms = since_ms(settings.consume_timestamp, self._started_ms)
        try:
            offset = await start_offset(self._instance, queue, self._offsets, settings.consume_from, from_ms)
        except (ClientError, RemotingError) as error:
            self._instance.troubles.failed(_logger, queue.broker_name, _NOT_BEGUN, f"queue={queue}", error)
            return False
        self._instance.troubles.works(_logger, queue.broker_name, _NOT_BEGUN)
        self._begin_at(queue, offset)
        return True

    def _begin_at(self, queue: MessageQueue, offset: int) -> None:
        now = self._instance.clock.monotonic()
        process_queue = self.in_hand[queue] = ProcessQueue(queue, now)
        process_queue.is_locked, process_queue.locked_at = True, now
        puller = Puller(self._parts, self._rules, process_queue, offset, self._go_on_at)
        if self._in_order is not None:
            self._in_order.add(process_queue)
        self._pullers[queue] = self._tasks.start(puller.run(), f"pull {queue}")

    def _drop(self, queue: MessageQueue) -> ProcessQueue:
        self._pullers.pop(queue).cancel()
        process_queue = self.in_hand.pop(queue)
        process_queue.drop()
        return process_queue

    async def _give_up(self, queues: Sequence[MessageQueue]) -> None:
        """These belong to others now: save how far they are, forget what is in hand."""
        if not queues:
            return
        dropped = {queue: self._drop(queue) for queue in queues}
        if not self._needs_lock:
            self.leaving.update(queues)  # whoever stops may cut off this task: then `end` saves them
            try:
                await self._offsets.persist(queues)
            finally:
                self.leaving.difference_update(queues)
            for queue in queues:
                self._offsets.forget(queue)
            return
        for queue, process_queue in dropped.items():
            self.leaving.add(queue)
            self._tasks.start(self._leave_in_order(queue, process_queue), f"leave {queue}")

    async def _leave_in_order(self, queue: MessageQueue, process_queue: ProcessQueue) -> None:
        """The lock stays ours until the running call has ended, so nobody overtakes it."""
        assert self._in_order is not None
        try:
            while not await self._in_order.left(process_queue, _LEAVE_IN_ORDER):
                await self._locks.lock([queue])
            await self._offsets.persist([queue], confirmed=True)
            self._offsets.forget(queue)
            await self._unlock([queue])
        finally:
            self.leaving.discard(queue)
            self._rebalance_soon()

    async def _unlock(self, queues: Sequence[MessageQueue]) -> None:
        await self._locks.unlock(queues)
        self._locked.difference_update(queues)

    def _spread_limits(self) -> None:
        """Limits for all queues together are shared among those in hand."""
        settings, limits, count = self._settings, self._rules.limits, max(len(self.in_hand), 1)
        if settings.pull_threshold_for_topic != -1:
            limits = replace(limits, count=max(1, settings.pull_threshold_for_topic // count))
        if settings.pull_threshold_size_for_topic != -1:
            limits = replace(limits, mib=max(1, settings.pull_threshold_size_for_topic // count))
        self._rules.limits = limits

    # ── moved ────────────────────────────────────────────────────────────────────────────────────────────────────────

    async def _go_on_at(self, process_queue: ProcessQueue, offset: int) -> None:
        """Called by a queue's own puller: begin it anew elsewhere, with nothing in hand."""
        queue = process_queue.queue
        process_queue.drop()
        if self.in_hand.get(queue) is not process_queue:
            return
        del self.in_hand[queue]
        self._pullers.pop(queue, None)  # the caller's own task, which ends now
        self._offsets.update(queue, offset, increase_only=False)
        await self._offsets.persist([queue])
        if not self._is_closed and queue not in self.in_hand:
            self._begin_at(queue, offset)

    async def reset(self, offsets: Mapping[MessageQueue, int]) -> None:
        """Begin queues in hand anew at these offsets."""
        async with self._sharing:
            affected = {queue: offset for queue, offset in offsets.items() if queue in self.in_hand}
            dropped = [self._drop(queue) for queue in affected]
            if self._in_order is not None:
                await asyncio.gather(*(self._in_order.left(each, _RESET_WAIT) for each in dropped))
            for queue, offset in affected.items():
                self._offsets.update(queue, offset, increase_only=False)
            await self._offsets.persist(affected, confirmed=True)
            for queue, offset in affected.items():
                self._begin_at(queue, offset)

    # ── kept and ended ───────────────────────────────────────────────────────────────────────────────────────────────

    async def renew_locks(self) -> None:
        held = await self._locks.lock(list(self.in_hand))
        now = self._instance.clock.monotonic()
        for queue, is_held in held.items():
            process_queue = self.in_hand.get(queue)
            if process_queue is not None:
                process_queue.is_locked = is_held
                if is_held:
                    process_queue.locked_at = now

    async def persist(self) -> None:
        """Save how far all queues are."""
        await self._offsets.persist(list(self.in_hand))

    def close(self) -> None:
        """Begin nothing more; tasks may be cancelled now."""
        self._is_closed = True
        self._left_at_end = set(self.leaving)

    async def end(self) -> None:
        """Handlers and pullers have ended: save offsets, give back locks."""
        await self._offsets.persist([*self.in_hand, *self._left_at_end], confirmed=True)
        if self._needs_lock:
            await self._unlock(list(self._locked))
        for process_queue in self.in_hand.values():
            process_queue.drop()
        self.in_hand.clear()
        self._pullers.clear()
