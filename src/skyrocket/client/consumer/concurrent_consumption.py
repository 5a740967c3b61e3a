"""Concurrent consumption: workers that call handlers, and what follows from the outcome.

pullers ─▶ workers, up to `batch_size` messages at a time ─▶ handler ─▶ finished: commit the lowest unfinished
                                                                     └▶ failed: send back, then finished
"""

import asyncio
import logging
from collections import deque
from collections.abc import Callable, Sequence
from typing import Final

from skyrocket.client.consumer.consume_statistics import ConsumeStatistics
from skyrocket.client.consumer.failure_log import FailureLog
from skyrocket.client.consumer.handlers import Handler, Outcome, current_group
from skyrocket.client.consumer.offset_store import OffsetStore
from skyrocket.client.consumer.process_queue import ProcessQueue
from skyrocket.client.consumer.push_consumer_settings import PushConsumerSettings
from skyrocket.client.consumer.send_back import SendBack
from skyrocket.client.consumer.topic_handlers import NoHandler, TopicHandlers
from skyrocket.client.core.hooks import ConsumeContext, ConsumeHook, run_hooks
from skyrocket.client.core.message import ReceivedMessage
from skyrocket.clock import Clock
from skyrocket.remoting.tasks import TaskSet

_logger = logging.getLogger(__name__)

RESUBMIT_SECONDS: Final = 5.0
_TIMED_OUT_LEVEL: Final = 3
_CALLS_BETWEEN_YIELDS: Final = 64


class _Worker:
    __slots__ = ("piece", "process_queue", "started", "wake_up")

    def __init__(self) -> None:
        self.process_queue: ProcessQueue | None = None
        self.piece: Sequence[ReceivedMessage] = ()
        self.started = 0.0
        self.wake_up: asyncio.Future[None] | None = None

    def wake(self) -> None:
        """There is work, or the end has come."""
        if self.wake_up is not None and not self.wake_up.done():
            self.wake_up.set_result(None)


class ConcurrentConsumption:
    """The workers of one consumer."""

    def __init__(
        self,
        group: str,
        handler_of: Callable[[str], Handler | TopicHandlers | None],
        offsets: OffsetStore,
        send_back: SendBack | None,
        settings: PushConsumerSettings,
        clock: Clock,
        statistics: ConsumeStatistics,
        hooks: Sequence[ConsumeHook] = (),
    ) -> None:
        self.group = group
        self._handler_of = handler_of
        self._offsets = offsets
        self._send_back = send_back  # None when broadcasting: what fails is lost
        self._batch_size = settings.consume_message_batch_max_size
        self._timeout = settings.consume_timeout
        self._clock = clock
        self._monotonic = clock.monotonic
        self.statistics = statistics
        self.failures = FailureLog(group)
        self._hooks = hooks
        # What is to be consumed, each list backwards: its next message is its last.
        self._pending: deque[tuple[ProcessQueue, list[ReceivedMessage]]] = deque()
        self._idle: deque[_Worker] = deque()
        self._workers = [_Worker() for _ in range(settings.max_concurrency)]
        self._tasks = TaskSet()
        self._timers: set[asyncio.TimerHandle] = set()
        self._is_stopping = False

    def start(self) -> None:
        """Let the workers wait for work."""
        for worker in self._workers:
            self._tasks.start(self._work(worker), f"consume {self.group}")

    def arrived(self, process_queue: ProcessQueue, messages: list[ReceivedMessage]) -> None:
        """Take in what was pulled."""
        self.statistics.pulled(process_queue.queue.topic, process_queue.pull_seconds, len(messages))
        new = process_queue.put(messages)
        if new:
            self.submit(process_queue, new)

    def submit(self, process_queue: ProcessQueue, messages: list[ReceivedMessage]) -> None:
        """Let workers call handlers with these."""
        self._pending.append((process_queue, messages[::-1]))
        if self._idle:
            self._idle.popleft().wake()  # one: who wakes calls the next, and handlers that never wait need no other

    async def _work(self, worker: _Worker) -> None:
        pending, size = self._pending, self._batch_size
        calls, was_idle = 0, False
        current_group.set(self.group)
        while not self._is_stopping:
            if not pending:
                worker.wake_up = asyncio.get_running_loop().create_future()
                self._idle.append(worker)
                await worker.wake_up
                was_idle = True
                continue
            process_queue, left = pending[0]
            if size == 1:
                piece = [left.pop()]
            else:
                piece = left[: -size - 1 : -1]
                del left[-size:]
            if not left:
                pending.popleft()
            if was_idle and pending and self._idle:
                self._idle.popleft().wake()
            was_idle = False
            if process_queue.is_dropped:
                continue
            worker.process_queue, worker.piece, worker.started = process_queue, piece, self._monotonic()
            try:
                await self._consume(process_queue, piece, worker.started)
            except Exception:
                _logger.exception("consumption failed, messages will come again queue=%s", process_queue.queue)
                self._again_later(process_queue, piece)
            finally:
                worker.process_queue = None
            calls += 1
            if calls % _CALLS_BETWEEN_YIELDS == 0:
                await asyncio.sleep(0)  # handlers that never wait would starve heartbeats

    # ── one call ─────────────────────────────────────────────────────────────────────────────────────────────────────

    async def _consume(self, process_queue: ProcessQueue, piece: list[ReceivedMessage], began: float) -> None:
        handler = None if self._hooks else self._handler_of(piece[0].topic)
        if handler is None:
            outcome = await self.call(piece)
        else:  # the usual case by the shortest way: this is done for every message
            now_ms = self._clock.now_ms()
            for message in piece:
                message.consumption_begins(now_ms)
            outcome = await handler.call(piece)
        ended = self._monotonic()
        succeeded = len(piece) if outcome is None else max(0, min(outcome.first_failed, len(piece)))
        self.statistics.consumed(process_queue.queue.topic, ended - began, succeeded, len(piece) - succeeded)
        if process_queue.is_dropped:
            return  # the queue's new owner will get them
        if outcome is not None:
            piece = await self._failed(process_queue, self._tried(process_queue, piece, outcome), succeeded, outcome)
        process_queue.last_consumed = ended
        self._advance(process_queue, piece)

    def _tried(
        self, process_queue: ProcessQueue, piece: list[ReceivedMessage], outcome: Outcome
    ) -> list[ReceivedMessage]:
        """Without those behind the ones that failed, when these were not tried: they are submitted anew."""
        if outcome.count is None:
            return piece
        end = outcome.first_failed + outcome.count
        if piece[end:] and not self._is_stopping:
            self.submit(process_queue, piece[end:])
        return piece[:end]

    def _advance(self, process_queue: ProcessQueue, done: Sequence[ReceivedMessage]) -> None:
        offset = process_queue.finish(done)
        if offset is not None and not process_queue.is_dropped:
            self._offsets.update(process_queue.queue, offset, increase_only=True)

    async def call(self, piece: list[ReceivedMessage]) -> Outcome | None:
        """The handler with its hooks, without consequences."""
        handler = self._handler_of(piece[0].topic)
        if handler is None:
            missing = NoHandler(piece[0])
            return Outcome(0, error=missing, status="FAILED", cause=missing)
        now_ms = self._clock.now_ms()
        for message in piece:
            message.consumption_begins(now_ms)
        if not self._hooks:
            return await handler.call(piece)
        context = ConsumeContext(self.group, piece[0].queue, piece)
        run_hooks((hook.before_consume for hook in self._hooks), context)
        began = self._monotonic()
        outcome = await handler.call(piece)
        context.succeeded = outcome is None or outcome.succeeded
        context.error = None if outcome is None else outcome.error
        context.status = "SUCCESS" if outcome is None else outcome.status
        if self._monotonic() - began >= self._timeout:
            context.status = "TIME_OUT"
        run_hooks((hook.after_consume for hook in reversed(self._hooks)), context)
        return outcome

    async def _failed(
        self, process_queue: ProcessQueue, piece: list[ReceivedMessage], first: int, outcome: Outcome
    ) -> list[ReceivedMessage]:
        """Send back what was not consumed, from the `first` on; returns what is done with."""
        failed = piece[first:]
        if self._send_back is None:
            for message in failed:
                self.failures.dropped(message, outcome)
            return piece
        done = piece[:first]
        stuck: list[ReceivedMessage] = []
        for message in failed:
            if not process_queue.holds(message):
                done.append(message)
            elif await self._send_back.send(message, outcome):
                done.append(message)
                self._tell(message, outcome, self._send_back)
            else:
                self.failures.stuck(message, outcome, RESUBMIT_SECONDS)
                message.reconsume_times += 1
                stuck.append(message)
        if stuck:
            self._again_later(process_queue, stuck)
        return done

    def _tell(self, message: ReceivedMessage, outcome: Outcome, send_back: SendBack) -> None:
        if send_back.is_last(message, outcome):
            self.failures.dead(message, outcome)
        else:
            self.failures.retried(message, outcome, send_back.most(outcome))

    def _again_later(self, process_queue: ProcessQueue, piece: list[ReceivedMessage]) -> None:
        def resubmit() -> None:
            self._timers.discard(timer)
            if not self._is_stopping and not process_queue.is_dropped:
                self.submit(process_queue, piece)

        timer = asyncio.get_running_loop().call_later(RESUBMIT_SECONDS, resubmit)
        self._timers.add(timer)

    # ── calls that take too long ─────────────────────────────────────────────────────────────────────────────────────

    async def expire(self) -> None:
        """Send back what handlers have held for longer than the timeout; they are not interrupted."""
        now = self._monotonic()
        for worker in self._workers:
            process_queue, piece = worker.process_queue, worker.piece
            if process_queue is None or now - worker.started < self._timeout or self._send_back is None:
                continue
            held = [message for message in piece if process_queue.holds(message)]
            late = TimeoutError(f"the handler has not returned within consume_timeout ({self._timeout:g} s)")
            outcome = Outcome(0, _TIMED_OUT_LEVEL, status="TIME_OUT", cause=late)
            for message in held:
                if await self._send_back.send(message, outcome):
                    _logger.warning(
                        "a handler takes too long, its message was sent back message=%s", message.message_id
                    )
                    self._advance(process_queue, [message])

    # ── the end ──────────────────────────────────────────────────────────────────────────────────────────────────────

    @property
    def running(self) -> int:
        """Handlers that have not returned."""
        return sum(worker.process_queue is not None for worker in self._workers)

    async def stop(self, seconds: float) -> None:
        """Begin nothing more, wait for running handlers, then cancel them."""
        self._is_stopping = True
        self._pending.clear()
        for timer in self._timers:
            timer.cancel()
        for worker in self._idle:
            worker.wake()
        await self._tasks.settle(seconds)
        self.failures.cut_off(self.running, seconds)
        await self._tasks.cancel()
