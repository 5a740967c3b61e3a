"""The messages of one queue that were pulled and are not finished: what may be committed, and when to pull no more.

    pulled            10 11 12 13 14 15 16
    finished          10    12 13
    may be committed     11                  the lowest unfinished offset; 17 when all are finished

What is committed is the offset to go on with after a crash: everything below it is finished, nothing above it is lost.
"""

import asyncio
from collections import deque
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Final

from skyrocket.client.core.message import ReceivedMessage
from skyrocket.model.message_queue import MessageQueue

_MIB: Final = 1 << 20
LOCK_TRUSTED: Final = 30.0
PULL_IDLE: Final = 120.0


@dataclass(frozen=True, slots=True)
class FlowLimits:
    """When a queue is pulled no further; RocketMQ's settings of the same names."""

    count: int = 1000  # pullThresholdForQueue
    mib: int = 100  # pullThresholdSizeForQueue
    span: int | None = 2000  # consumeConcurrentlyMaxSpan; None: in order, where a span cannot grow


class ProcessQueue:
    """Owned by one consumer's event loop; dropped when the queue goes to somebody else."""

    __slots__ = (
        "_order",
        "_ready",
        "_taken",
        "_unfinished",
        "_waiter",
        "is_dropped",
        "is_locked",
        "last_consumed",
        "last_pulled",
        "locked_at",
        "max_offset",
        "pull_seconds",
        "queue",
        "size",
    )

    def __init__(self, queue: MessageQueue, now: float = 0.0) -> None:
        self.queue = queue
        self.size = 0  # bytes of bodies
        self.max_offset = -1
        self.is_dropped = False
        self.is_locked = False
        self.locked_at = 0.0
        self.last_pulled = now
        self.last_consumed = now
        self.pull_seconds = 0.0  # how long the last pull took, the wait at the broker included
        self._unfinished: dict[int, int] = {}  # offset → size of its body
        self._order: deque[int] = deque()  # offsets as they came, ascending; finished ones leave at both ends
        self._ready: deque[ReceivedMessage] = deque()
        self._taken: list[ReceivedMessage] = []
        self._waiter: asyncio.Future[None] | None = None

    @property
    def count(self) -> int:
        return len(self._unfinished)

    @property
    def min_offset(self) -> int | None:
        """The lowest unfinished one."""
        return self._order[0] if self._order else None

    @property
    def span(self) -> int:
        """From the lowest to the highest unfinished offset."""
        return self._order[-1] - self._order[0] if self._order else 0

    # ── all consumers ────────────────────────────────────────────────────────────────────────────────────────────────

    def put(self, messages: Sequence[ReceivedMessage]) -> list[ReceivedMessage]:
        """Take in what was pulled, in ascending offsets; returns those that were not here already."""
        unfinished, order = self._unfinished, self._order
        new = messages if not unfinished else [each for each in messages if each.queue_offset not in unfinished]
        size = 0
        for message in new:
            offset = message.queue_offset
            length = message.stored_body_size
            unfinished[offset] = length
            order.append(offset)
            size += length
        if new:
            self.size += size
            self.max_offset = max(self.max_offset, new[-1].queue_offset)
        return list(new)

    def passed(self, next_offset: int) -> None:
        """All before this offset was pulled, or is not wanted: it may be committed when nothing is in hand."""
        self.max_offset = max(self.max_offset, next_offset - 1)

    def finish(self, messages: Iterable[ReceivedMessage]) -> int | None:
        """Messages are done with; returns the offset that may be committed, None if nothing was in hand."""
        unfinished, order = self._unfinished, self._order
        if not unfinished:
            return None
        for message in messages:
            self.size -= unfinished.pop(message.queue_offset, 0)
        while order and order[0] not in unfinished:
            order.popleft()
        while order and order[-1] not in unfinished:  # for the span's sake
            order.pop()
        if self._waiter is not None:
            self.wake()
        return order[0] if order else self.max_offset + 1

    def holds(self, message: ReceivedMessage) -> bool:
        """Whether it is not finished."""
        return message.queue_offset in self._unfinished

    def overflow(self, limits: FlowLimits) -> str | None:
        """Why it must not be pulled now, in RocketMQ's words."""
        first = self.min_offset
        if first is None:
            return None
        mib = self.size // _MIB
        last, count = first + self.span, self.count
        if count > limits.count:
            exceeded = f"count exceeds the threshold {limits.count}"
        elif mib > limits.mib:
            exceeded = f"size exceeds the threshold {limits.mib} MiB"
        elif limits.span is not None and last - first > limits.span:
            return (
                "the queue's messages, span too long, so do flow control, "
                f"minOffset={first}, maxOffset={last}, maxSpan={last - first}"
            )
        else:
            return None
        return (
            f"the cached message {exceeded}, so do flow control, "
            f"minOffset={first}, maxOffset={last}, count={count}, size={mib} MiB"
        )

    def drop(self) -> None:
        """The queue belongs to somebody else now: what is in hand does not count any more."""
        self.is_dropped = True
        self._unfinished.clear()
        self._order.clear()
        self._ready.clear()
        self.size = 0
        self.wake()

    async def changed(self, seconds: float) -> None:
        """Wait until messages were finished, came or were dropped, but not longer."""
        if self._waiter is None or self._waiter.done():
            self._waiter = asyncio.get_running_loop().create_future()
        await asyncio.wait((self._waiter,), timeout=seconds)

    def wake(self) -> None:
        """Let whoever waits look again."""
        waiter, self._waiter = self._waiter, None
        if waiter is not None and not waiter.done():
            waiter.set_result(None)

    # ── in order ─────────────────────────────────────────────────────────────────────────────────────────────────────

    def put_in_order(self, messages: Sequence[ReceivedMessage]) -> None:
        """Take in what was pulled, for a task that takes it piece by piece."""
        self._ready.extend(self.put(messages))
        self.wake()

    def take(self, count: int) -> list[ReceivedMessage]:
        """The next ones; they stay unfinished until committed."""
        ready = self._ready
        taken = [ready.popleft() for _ in range(min(count, len(ready)))]
        self._taken += taken
        return taken

    def commit(self) -> int | None:
        """All that was taken is done with; returns the offset to go on with."""
        taken, self._taken = self._taken, []
        return self.finish(taken) if taken else None

    def roll_back(self) -> None:
        """All that was taken is to be taken again."""
        self._ready.extendleft(reversed(self._taken))
        self._taken = []

    def put_back(self, piece: Sequence[ReceivedMessage]) -> None:
        """The last ones that were taken are to be taken again; those before them stay taken."""
        del self._taken[len(self._taken) - len(piece) :]
        self._ready.extendleft(reversed(piece))

    def may_consume(self, now: float) -> bool:
        """Whether the broker's lock is ours, as far as we know."""
        return self.is_locked and now - self.locked_at < LOCK_TRUSTED
