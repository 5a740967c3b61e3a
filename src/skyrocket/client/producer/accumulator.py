"""Batches made of single sends: messages of one topic that come within a few milliseconds travel together.

A batch leaves when it is full or old enough. Its messages share one request, so a message costs little
more than its encoding.
"""

import asyncio
from collections.abc import Awaitable, Callable, Generator
from typing import Any

from skyrocket.client.core.client_id import UNIQUE_KEYS
from skyrocket.client.core.message import Message
from skyrocket.client.core.send_receipt import BatchReceipt, SendReceipt
from skyrocket.client.producer.batches import ELEMENT_BYTES, Element, batch, check_batchable, element_of
from skyrocket.client.producer.in_flight import InFlight
from skyrocket.client.sending.message_encoding import EncodedMessage, EncodingRules
from skyrocket.clock import Clock
from skyrocket.remoting.tasks import TaskSet


class PendingSend:
    """A message that waits for its batch; await it for the receipt."""

    __slots__ = ("_batch", "_number")

    def __init__(self, batch: "_Batch", number: int) -> None:
        self._batch = batch
        self._number = number

    def __await__(self) -> Generator[Any, None, SendReceipt]:
        outcome = self._batch.outcome
        if outcome is None:
            return (yield from self._batch.receipt(self._number).__await__())
        if isinstance(outcome, Exception):
            raise outcome
        return outcome.member(self._number)

    @property
    def is_done(self) -> bool:
        return self._batch.outcome is not None


class _Batch:
    __slots__ = ("elements", "first", "loop", "members", "numbers", "outcome", "size", "timer", "topic", "waiters")

    def __init__(self, first: Message, topic: str, loop: asyncio.AbstractEventLoop) -> None:
        self.first = first
        self.topic = topic
        self.loop = loop
        self.elements: list[Element] = []
        self.members: list[Message] = []
        self.size = 0
        self.waiters: list[asyncio.Future[SendReceipt]] = []
        self.numbers: list[int] = []  # of their messages
        self.outcome: BatchReceipt | Exception | None = None
        self.timer: asyncio.TimerHandle | None = None

    def receipt(self, number: int) -> "asyncio.Future[SendReceipt]":
        """Of one message, for who waits for it."""
        # A future for each who waits: one that is cancelled must not take the others' with it.
        waiter: asyncio.Future[SendReceipt] = self.loop.create_future()
        self.waiters.append(waiter)
        self.numbers.append(number)
        return waiter

    def came_to(self, outcome: BatchReceipt | Exception) -> None:
        """Tell those who wait."""
        self.outcome = outcome
        waiters, self.waiters = self.waiters, []
        if isinstance(outcome, BatchReceipt):
            for waiter, number in zip(waiters, self.numbers, strict=True):
                if not waiter.done():
                    waiter.set_result(outcome.member(number))
        else:
            for waiter in waiters:
                if not waiter.done():
                    waiter.set_exception(outcome)


class Accumulator:
    """The batches that a producer is filling."""

    def __init__(
        self,
        send: Callable[[EncodedMessage], Awaitable[SendReceipt]],
        rules: EncodingRules,
        clock: Clock,
        *,
        max_bytes: int,
        max_delay: float,
        total_bytes: int,
        timeout: float,
        keeps_members: bool = False,
    ) -> None:
        self._send = send
        self._keeps_members = keeps_members  # for traces; otherwise only their bytes are held
        self._rules = rules
        self._clock = clock
        self._max_bytes = max_bytes
        self._max_delay = max_delay
        self._timeout = timeout
        self._held = InFlight(1 << 30, total_bytes)  # one entry per batch
        self._filling: dict[tuple[str, bool], _Batch] = {}
        self._tasks = TaskSet()
        self._loop = asyncio.get_running_loop()

    def add(self, message: Message, topic: str) -> PendingSend:
        """Put a message into the batch that is being filled; raises MessageRefused."""
        return PendingSend(*self._put(message, topic))

    def receipt(self, message: Message, topic: str) -> "asyncio.Future[SendReceipt]":
        """The same for who will wait for the receipt at once."""
        filling, number = self._put(message, topic)
        return filling.receipt(number)

    def _put(self, message: Message, topic: str) -> tuple[_Batch, int]:
        is_timed = message.delay_level or message.delay is not None or message.deliver_at is not None
        if is_timed or message.priority is not None:
            check_batchable(message)
        element = element_of(message, self._rules)
        key = (topic, message.wait_store_ok)
        filling = self._filling.get(key)
        if filling is None:
            filling = self._filling[key] = _Batch(message, topic, self._loop)
            filling.timer = self._loop.call_later(self._max_delay, self._close, key, filling)
        elements = filling.elements
        number = len(elements)
        elements.append(element)
        if self._keeps_members:
            filling.members.append(message)
        filling.size += len(element[0]) + len(element[1]) + ELEMENT_BYTES
        if filling.size >= self._max_bytes:
            self._close(key, filling)
        return filling, number

    @property
    def is_full(self) -> bool:
        """Whether too much waits for brokers."""
        return self._held.is_full

    async def room(self) -> None:
        """Wait until less is held; raises TooManyInFlight."""
        await self._held.enter(0, self._timeout)
        self._held.leave(0)

    def _close(self, key: tuple[str, bool], filling: _Batch) -> None:
        """No more into this one: send it."""
        if self._filling.get(key) is filling:
            del self._filling[key]
            if filling.timer is not None:
                filling.timer.cancel()
            self._held.enter_anyway(filling.size)
            self._tasks.start(self._deliver(filling), "send a batch")

    async def _deliver(self, filling: _Batch) -> None:
        size = filling.size
        now_ms = self._clock.now_ms()
        keys = UNIQUE_KEYS.series(len(filling.elements), now_ms)
        outcome: BatchReceipt | Exception = RuntimeError("the producer was stopped before the batch was confirmed")
        try:
            out = batch(filling.first, filling.topic, filling.elements, keys, now_ms)
            filling.elements.clear()
            out.members = filling.members
            outcome = BatchReceipt(await self._send(out), keys)
        except Exception as error:  # noqa: BLE001 - it belongs to whoever awaits the messages
            outcome = error
        finally:
            self._held.leave(size)
            filling.came_to(outcome)

    def flush(self) -> None:
        """Send all that is being filled."""
        for key, filling in list(self._filling.items()):
            self._close(key, filling)

    async def close(self, seconds: float) -> None:
        """Send all, and wait for the answers for a while."""
        self.flush()
        await self._tasks.drain(seconds)
