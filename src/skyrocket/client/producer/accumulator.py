"""Batches made of single sends: messages of one topic that come within a few milliseconds travel together.

A batch leaves when it is full or old enough. Its messages share one request, so a message costs little
more than its encoding.
"""

import asyncio
from collections.abc import Awaitable, Callable, Generator, Sequence
from itertools import count
from typing import Any

from skyrocket.client.core.message import Message
from skyrocket.client.core.send_receipt import SendReceipt
from skyrocket.client.producer.batches import batch, check_batchable, encoded_element
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
        whole = self._batch
        if whole.outcome is None:
            # A future for each who waits: one that is cancelled must not take the others' with it.
            waiter: asyncio.Future[None] = asyncio.get_running_loop().create_future()
            whole.waiters.append(waiter)
            yield from waiter.__await__()
        return whole.receipt(self._number)

    @property
    def is_done(self) -> bool:
        return self._batch.outcome is not None


class _Batch:
    __slots__ = ("elements", "first", "ids", "keys", "members", "outcome", "size", "timer", "topic", "waiters")

    def __init__(self, first: Message, topic: str) -> None:
        self.first = first
        self.topic = topic
        self.elements: list[bytes] = []
        self.keys: list[str] = []
        self.members: list[Message] = []
        self.size = 0
        self.waiters: list[asyncio.Future[None]] = []
        self.outcome: SendReceipt | Exception | None = None
        self.ids: list[str] = []
        self.timer: asyncio.TimerHandle | None = None

    def receipt(self, number: int) -> SendReceipt:
        """Of one message; raises what the whole batch came to."""
        whole = self.outcome
        assert whole is not None
        if isinstance(whole, Exception):
            raise whole
        return member_receipt(whole, self.keys, self.ids, number)


def member_receipt(whole: SendReceipt, keys: list[str], ids: list[str], number: int) -> SendReceipt:
    """The receipt of one message of a batch: offsets count on."""
    offset_id = ids[number] if number < len(ids) else whole.offset_message_id
    return SendReceipt(
        whole.status,
        keys[number],
        offset_id,
        whole.queue,
        whole.queue_offset + number,
        whole.transaction_id,
        whole.region,
        whole.trace_on,
        None,
        whole.attempts,
        whole.replicas,
    )


def member_receipts(whole: SendReceipt, keys: Sequence[str]) -> list[SendReceipt]:
    """The receipts of all messages of a batch."""
    status, queue, first, transaction, region = (
        whole.status,
        whole.queue,
        whole.queue_offset,
        whole.transaction_id,
        whole.region,
    )
    trace_on, attempts, replicas = whole.trace_on, whole.attempts, whole.replicas
    ids = whole.offset_message_id.split(",")
    if len(ids) < len(keys):  # brokers may leave them out
        ids += [whole.offset_message_id] * (len(keys) - len(ids))
    return [
        SendReceipt(status, key, own_id, queue, offset, transaction, region, trace_on, None, attempts, replicas)
        for offset, key, own_id in zip(count(first), keys, ids, strict=False)
    ]


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

    def add(self, message: Message, topic: str) -> PendingSend:
        """Put a message into the batch that is being filled; raises MessageRefused."""
        key = (topic, message.wait_store_ok)
        is_timed = message.delay_level or message.delay is not None or message.deliver_at is not None
        if is_timed or message.priority is not None:
            check_batchable(message)
        element, unique_key = encoded_element(message, self._rules, self._clock.now_ms())
        filling = self._filling.get(key)
        if filling is None:
            filling = self._filling[key] = _Batch(message, topic)
            filling.timer = asyncio.get_running_loop().call_later(self._max_delay, self._close, key, filling)
        number = len(filling.keys)
        filling.elements.append(element)
        filling.keys.append(unique_key)
        if self._keeps_members:
            filling.members.append(message)
        filling.size += len(element)
        if filling.size >= self._max_bytes:
            self._close(key, filling)
        return PendingSend(filling, number)

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
        out = batch(filling.first, filling.topic, filling.elements, filling.keys, self._clock.now_ms())
        filling.elements.clear()
        out.members = filling.members
        try:
            whole = await self._send(out)
            filling.ids = whole.offset_message_id.split(",")
            filling.outcome = whole
        except Exception as error:  # noqa: BLE001 - it belongs to whoever awaits the messages
            filling.outcome = error
        except asyncio.CancelledError:
            filling.outcome = RuntimeError("the producer was stopped before the batch was confirmed")
            raise
        finally:
            self._held.leave(size)
            for waiter in filling.waiters:
                if not waiter.done():
                    waiter.set_result(None)
            filling.waiters.clear()

    def flush(self) -> None:
        """Send all that is being filled."""
        for key, filling in list(self._filling.items()):
            self._close(key, filling)

    async def close(self, seconds: float) -> None:
        """Send all, and wait for the answers for a while."""
        self.flush()
        await self._tasks.drain(seconds)
