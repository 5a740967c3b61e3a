"""Consumption in order: one task per queue, one piece at a time, only while the broker's lock is ours."""

import asyncio
import logging
from collections.abc import Callable
from typing import Final

from skyrocket.client.consumer.concurrent_consumption import ConcurrentConsumption
from skyrocket.client.consumer.handlers import TO_DEAD_LETTERS, ConsumeStatus, Outcome, current_group
from skyrocket.client.consumer.offset_store import OffsetStore
from skyrocket.client.consumer.process_queue import ProcessQueue
from skyrocket.client.consumer.push_consumer_settings import PushConsumerSettings
from skyrocket.client.consumer.send_back import SendBack
from skyrocket.client.consumer.start_position import MessageModel
from skyrocket.client.core.message import ReceivedMessage
from skyrocket.remoting.tasks import TaskSet

_logger = logging.getLogger(__name__)

_IDLE_SECONDS: Final = 1.0
_WITHOUT_LOCK_SECONDS: Final = 0.1
_SHORTEST_SUSPENSION: Final = 0.01
_LONGEST_SUSPENSION: Final = 30.0


class OrderlyConsumption:
    """The queues of one consumer that are consumed in order."""

    def __init__(
        self,
        calls: ConcurrentConsumption,
        offsets: OffsetStore,
        send_back: SendBack | None,
        settings: PushConsumerSettings,
        monotonic: Callable[[], float],
    ) -> None:
        self._calls = calls  # handlers and hooks are called the same way
        self._offsets = offsets
        self._send_back = send_back
        self._needs_lock = settings.message_model is MessageModel.CLUSTERING
        self._auto_commit = settings.auto_commit
        self._slots = asyncio.Semaphore(settings.max_concurrency)
        self._batch_size = settings.consume_message_batch_max_size
        self._suspend_seconds = settings.suspend_current_queue
        self._max_times = settings.max_reconsume_times
        self._monotonic = monotonic
        self._tasks = TaskSet()
        self._of_queue: dict[ProcessQueue, asyncio.Task[None]] = {}
        self._is_stopping = False

    def add(self, process_queue: ProcessQueue) -> None:
        """Consume this queue until it is dropped."""
        self._of_queue[process_queue] = self._tasks.start(
            self._consume(process_queue), f"consume in order {process_queue.queue}"
        )

    def arrived(self, process_queue: ProcessQueue, messages: list[ReceivedMessage]) -> None:
        """Take in what was pulled; the queue's task takes it from there."""
        self._calls.statistics.pulled(process_queue.queue.topic, process_queue.pull_seconds, len(messages))
        process_queue.put_in_order(messages)

    async def left(self, process_queue: ProcessQueue, seconds: float) -> bool:
        """Wait until the running call of a dropped queue has ended; whether it has."""
        task = self._of_queue.get(process_queue)
        if task is not None:
            await asyncio.wait((task,), timeout=seconds)
            if not task.done():
                return False
            del self._of_queue[process_queue]
        return True

    async def stop(self, seconds: float) -> None:
        """Begin nothing more, wait for running calls."""
        self._is_stopping = True
        for process_queue in self._of_queue:
            process_queue.wake()
        if self._of_queue:
            _, left = await asyncio.wait(self._of_queue.values(), timeout=seconds)
            self._calls.failures.cut_off(len(left), seconds)
        await self._tasks.cancel()
        self._of_queue.clear()

    async def _consume(self, process_queue: ProcessQueue) -> None:
        current_group.set(self._calls.group)
        while not process_queue.is_dropped and not self._is_stopping:
            if self._needs_lock and not process_queue.may_consume(self._monotonic()):
                await process_queue.changed(_WITHOUT_LOCK_SECONDS)
                continue
            piece = process_queue.take(self._batch_size)
            if not piece:
                await process_queue.changed(_IDLE_SECONDS)
                continue
            pause = 0.0
            try:
                async with self._slots:
                    if process_queue.is_dropped or self._is_stopping:
                        return
                    pause = await self._one(process_queue, piece)
            except Exception:
                _logger.exception("consumption in order failed queue=%s", process_queue.queue)
                process_queue.roll_back()  # all that is not committed: nobody knows how far this one came
                pause = self._suspend_seconds
            if pause:
                await self._rest(process_queue, pause)

    async def _one(self, process_queue: ProcessQueue, piece: list[ReceivedMessage]) -> float:
        """Consume one piece; returns how long the queue must rest before the same piece comes again."""
        began = self._monotonic()
        outcome = await self._calls.call(piece)
        process_queue.last_consumed = ended = self._monotonic()
        failed = len(piece) if outcome is not None and not outcome.succeeded else 0
        consumed = 0 if failed else len(piece) if outcome is None else outcome.first_failed
        self._calls.statistics.consumed(process_queue.queue.topic, ended - began, consumed, failed)
        if outcome is not None and outcome.succeeded:
            process_queue.put_back(piece[outcome.first_failed :])  # it has not seen them
        elif outcome is not None and outcome.decision is ConsumeStatus.ROLLBACK:
            process_queue.roll_back()
            return self._pause(outcome)
        elif outcome is not None and outcome.count is not None:
            bad = piece[outcome.first_failed : outcome.first_failed + outcome.count]
            if await self._must_repeat(bad, outcome):
                process_queue.put_back(piece[outcome.first_failed :])
                return self._pause(outcome)
            process_queue.put_back(piece[outcome.first_failed + outcome.count :])  # it has not seen them
        elif outcome is not None and await self._must_repeat(piece, outcome):
            process_queue.put_back(piece)
            return self._pause(outcome)
        if self._auto_commit or (outcome is not None and outcome.succeeded):
            self._commit(process_queue)
        return 0.0

    def _pause(self, outcome: Outcome) -> float:
        pause = outcome.suspend_seconds if outcome.suspend_seconds is not None else self._suspend_seconds
        return min(max(pause, _SHORTEST_SUSPENSION), _LONGEST_SUSPENSION)

    def _commit(self, process_queue: ProcessQueue) -> None:
        offset = process_queue.commit()
        if offset is not None and not process_queue.is_dropped:
            self._offsets.update(process_queue.queue, offset, increase_only=False)

    async def _must_repeat(self, piece: list[ReceivedMessage], outcome: Outcome) -> bool:
        """Messages that failed too often leave the queue; whether some are left that must be consumed."""
        repeat = False
        most = self._max_times if outcome.retries is None else outcome.retries
        for message in piece:
            given_up = outcome.delay_level == TO_DEAD_LETTERS or (0 <= most <= message.reconsume_times)
            if self._send_back is not None:
                self._send_back.note(message, outcome.cause)
                if given_up and await self._send_back.give_up(message, outcome.cause):
                    self._calls.failures.dead(message, outcome)
                    continue
            self._calls.failures.repeated(message, outcome, most if most >= 0 else None, self._pause(outcome))
            message.reconsume_times += 1
            repeat = True
        return repeat

    async def _rest(self, process_queue: ProcessQueue, seconds: float) -> None:
        deadline = self._monotonic() + seconds
        while not process_queue.is_dropped and not self._is_stopping:
            left = deadline - self._monotonic()
            if left <= 0:
                return
            await asyncio.sleep(min(left, 0.1))
