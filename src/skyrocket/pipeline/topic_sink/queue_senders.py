"""Requests on their way: one after the other for each queue, side by side for different queues, bounded in bytes.

row order in a queue    the next request leaves when the one before it was confirmed
back-pressure           `put` waits while more than `most_bytes` are held, and Spark's task with it
an unclear send         (the connection broke, no answer came) the queue is read before anything is sent again
"""

import asyncio
import time
from collections import deque
from dataclasses import dataclass, field
from typing import Final

from skyrocket.client.exactly_once.read_back import ReadBackProducer, may_be_stored, may_go_well_later
from skyrocket.errors import SkyrocketError
from skyrocket.model.message_queue import MessageQueue
from skyrocket.pipeline.topic_sink.identity import Ids, Scope
from skyrocket.pipeline.topic_sink.requests import Request
from skyrocket.pipeline.topic_sink.stored_ids import stored_ids

_ATTEMPT_SECONDS: Final = 15.0
_FIRST_PAUSE: Final = 0.1
_LONGEST_PAUSE: Final = 2.0


class SendError(SkyrocketError):
    """Rows could not be sent."""


@dataclass(slots=True)
class QueueSender:
    """One queue: what waits for it, and what it has taken."""

    queue: MessageQueue
    next_offset: int  # nothing of this task is before it that was not confirmed
    waiting: deque[Request] = field(default_factory=deque)
    held_bytes: int = 0
    runs: list[tuple[int, int]] = field(default_factory=list)  # first offset and count of what was confirmed
    claimed: list[Ids] = field(default_factory=list)  # found stored after an unclear send
    task: asyncio.Task[None] | None = None

    def note(self, offset: int, count: int) -> None:
        """So many messages from an offset on were confirmed."""
        if self.runs and sum(self.runs[-1]) == offset:
            first, before = self.runs[-1]
            self.runs[-1] = (first, before + count)
        else:
            self.runs.append((offset, count))
        self.next_offset = offset + count


class QueueSenders:
    """Those of one task and one topic; `scope` is None when a second copy does not matter."""

    def __init__(
        self,
        producer: ReadBackProducer,
        senders: list[QueueSender],
        scope: Scope | None,
        *,
        most_bytes: int,
        send_timeout: float,
    ) -> None:
        self.each = senders
        self._producer = producer
        self._scope = scope
        self._most_bytes = most_bytes
        self._send_timeout = send_timeout
        self._held_bytes = 0
        self._news = asyncio.Event()
        self._failure: Exception | None = None

    async def put(self, sender: QueueSender, request: Request) -> None:
        """Take over a request for a queue; raises what an earlier one met."""
        size = len(request.body)
        while self._held_bytes and self._held_bytes + size > self._most_bytes:
            await self._news_or_failure()
        self._raise_failure()
        sender.waiting.append(request)
        sender.held_bytes += size
        self._held_bytes += size
        if sender.task is None:
            sender.task = asyncio.create_task(self._work(sender), name=f"send to {sender.queue}")

    async def drained(self) -> None:
        """Wait until all is confirmed; raises what one met."""
        while self._held_bytes:
            await self._news_or_failure()
        self._raise_failure()

    async def abandon(self) -> None:
        """Stop sending, as the task has failed."""
        running = [sender.task for sender in self.each if sender.task is not None]
        for task in running:
            task.cancel()
        await asyncio.gather(*running, return_exceptions=True)

    async def _news_or_failure(self) -> None:
        self._raise_failure()
        self._news.clear()
        await self._news.wait()  # each request has its time limit, so news come

    def _raise_failure(self) -> None:
        if self._failure is not None:
            raise self._failure

    async def _work(self, sender: QueueSender) -> None:
        try:
            while sender.waiting and self._failure is None:
                request = sender.waiting.popleft()
                await self._deliver(sender, request)
                sender.held_bytes -= len(request.body)
                self._held_bytes -= len(request.body)
                self._news.set()
        except Exception as error:  # noqa: BLE001 - whoever puts or waits is told
            self._failure = self._failure or error
        finally:
            sender.task = None
            self._news.set()

    async def _deliver(self, sender: QueueSender, request: Request) -> None:
        deadline = time.monotonic() + self._send_timeout
        pause, is_unclear = _FIRST_PAUSE, False
        while True:
            try:
                if is_unclear and self._scope is not None:
                    request = await self._without_stored(sender, request, self._scope)
                    is_unclear = False
                    if not len(request):
                        return
                seconds = min(max(deadline - time.monotonic(), 0.1), _ATTEMPT_SECONDS)
                receipt = await self._producer.send_encoded(sender.queue, bytes(request.body), timeout=seconds)
            except SkyrocketError as error:
                is_unclear = is_unclear or may_be_stored(error)
                if not may_go_well_later(error) or time.monotonic() >= deadline:
                    raise SendError(f"{len(request)} rows could not be sent to {sender.queue}: {error}") from error
            else:
                sender.note(receipt.queue_offset, len(request))
                return
            await asyncio.sleep(pause)
            pause = min(pause * 2, _LONGEST_PAUSE)

    async def _without_stored(self, sender: QueueSender, request: Request, scope: Scope) -> Request:
        """What of a request is not in its queue. Rows found are claims: an equal row of another task may have put
        them there, which is settled at the commit."""
        found = await stored_ids(self._producer, scope, {sender.queue: sender.next_offset})
        claimed = found.claim(request.ids)
        if not claimed.any():
            return request
        sender.claimed.append(request.ids[claimed])
        return request.without(claimed)
