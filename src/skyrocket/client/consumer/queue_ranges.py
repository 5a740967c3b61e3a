"""Ranges of queues, read as the brokers store them: bodies of pull answers that nobody has decoded.

For readers of many messages (the Spark source): what comes back is a run of commit-log records, which a vectorised
decoder takes as a whole. Nothing is committed, no group is joined, nothing waits for new messages.

    ranges ──▶ chunks of as many offsets as the broker gives at once ──▶ several pulls in flight ──▶ groups, in order

An answer may hold records beyond its chunk (a filter or a hole makes brokers go on): each piece says for which offsets
it answers, and the records beyond are the next chunk's.
"""

import asyncio
import logging
import time
from collections import deque
from collections.abc import AsyncGenerator, Awaitable, Callable, Iterable, Iterator
from dataclasses import dataclass
from typing import Final, NamedTuple

from skyrocket.client.consumer.puller import PULL_CODES, reading
from skyrocket.client.core.errors import BrokerAbsent, ClientError, NoRoute, explained
from skyrocket.client.core.instance import ClientInstance
from skyrocket.client.core.message import decode_messages
from skyrocket.client.core.routes import MASTER_ID
from skyrocket.model.message_queue import MessageQueue
from skyrocket.protocol.bodies.subscription import ALL_TAGS
from skyrocket.protocol.codes import ResponseCode
from skyrocket.protocol.command import Body
from skyrocket.protocol.errors import (
    FilterDataNotExist,
    GroupNotExist,
    InvalidParameter,
    NoPermission,
    RequestError,
    SubscriptionParseFailed,
    TopicNotExist,
)
from skyrocket.protocol.requests.pulling import PullMessage, PullMessageAnswer
from skyrocket.remoting.errors import RemotingError
from skyrocket.remoting.exchange import Reply

_logger = logging.getLogger(__name__)

# Asking again changes nothing.
_FINAL: Final = (
    NoPermission,
    TopicNotExist,
    GroupNotExist,
    SubscriptionParseFailed,
    FilterDataNotExist,
    InvalidParameter,
)
_REMOVING: Final = "MESSAGE_WAS_REMOVING"
_PAUSE: Final = 0.05
_LONGEST_PAUSE: Final = 1.0
_SETTLE_SECONDS: Final = 2.0  # a broker that has just recovered may show the end of a queue a moment later
_FILTERED_CHUNK: Final = 4096
_TRY_MORE: Final = 64  # every 64 chunks more is asked for, in case the broker gives it


class QueueRange(NamedTuple):
    """Offsets of one queue; the end is not part of it."""

    queue: MessageQueue
    begin: int
    end: int

    def __str__(self) -> str:
        topic, broker_name, queue_id = self.queue
        return f"topic {topic}, broker {broker_name}, queue {queue_id}, offsets {self.begin} to {self.end}"


class Piece(NamedTuple):
    """The body of one answer: the records of `offsets` are in it, and perhaps later ones."""

    offsets: QueueRange
    body: Body


@dataclass(frozen=True, slots=True)
class RangeRules:
    """How to read; `lost` is told of offsets that are not there any more, and may raise."""

    lost: Callable[[QueueRange, str], None]
    group: str = "TOOLS_CONSUMER"  # every broker has it
    expression: str = ALL_TAGS
    expression_type: str = "TAG"
    batch_size: int = 1024
    in_flight: int = 4
    timeout: float = 10.0
    patience: float = 60.0  # how long a broker may be away
    group_offsets: int = 8192
    group_bytes: int = 8 << 20

    @property
    def filters(self) -> bool:
        """Whether brokers leave messages out."""
        return self.expression != ALL_TAGS


class RangeUnreadable(ClientError):
    """A broker refuses, or was away for too long."""

    def __init__(self, offsets: QueueRange, why: str, advice: str) -> None:
        self.offsets = offsets
        super().__init__(f"{offsets} could not be read: {why}; {advice}")


class RangeReader:
    """Reads through one client core; remembers how much each broker gives at once."""

    def __init__(self, instance: ClientInstance, granted: dict[str, int] | None = None) -> None:
        self._instance = instance
        self._granted = {} if granted is None else granted

    async def groups(self, ranges: Iterable[QueueRange], rules: RangeRules) -> AsyncGenerator[list[Piece], None]:
        """Pieces in the order of the ranges, some thousand offsets together, all of one broker."""
        group: list[Piece] = []
        offsets = size = 0
        async for piece in self._pieces(ranges, rules):
            other = group and group[0].offsets.queue.broker_name != piece.offsets.queue.broker_name
            if other or offsets >= rules.group_offsets or size >= rules.group_bytes:
                yield group
                group, offsets, size = [], 0, 0
            group.append(piece)
            offsets += piece.offsets.end - piece.offsets.begin
            size += len(piece.body)
        if group:
            yield group

    async def _pieces(self, ranges: Iterable[QueueRange], rules: RangeRules) -> AsyncGenerator[Piece, None]:
        chunks = self._chunks(ranges, rules)
        running: deque[asyncio.Task[list[Piece]]] = deque()
        try:
            while True:
                while len(running) < rules.in_flight and (chunk := next(chunks, None)) is not None:
                    running.append(asyncio.create_task(self._read(chunk, rules)))
                if not running:
                    return
                for piece in await running.popleft():
                    yield piece
        finally:
            for task in running:
                task.cancel()
            await asyncio.gather(*running, return_exceptions=True)

    def _chunks(self, ranges: Iterable[QueueRange], rules: RangeRules) -> Iterator[QueueRange]:
        number = 0
        for queue, position, end in ranges:
            while position < end:
                size = _FILTERED_CHUNK
                if not rules.filters:
                    number += 1
                    granted = self._granted.get(queue.broker_name, rules.batch_size)
                    size = min(rules.batch_size, 2 * granted if number % _TRY_MORE == 0 else granted)
                yield QueueRange(queue, position, min(position + size, end))
                position += size

    async def _read(self, chunk: QueueRange, rules: RangeRules) -> list[Piece]:
        """All pulls of one chunk."""
        queue, position, end = chunk
        pieces: list[Piece] = []
        settled = 0.0
        while position < end:
            left = QueueRange(queue, position, end)
            reply = await self._pull(left, rules)
            following = min(reply.header.next_begin_offset, end)
            if following <= position:  # nothing is there: the queue ends before the range does
                if settled >= _SETTLE_SECONDS:
                    rules.lost(left, f"the queue ends at offset {reply.header.max_offset}")
                    break
                settled += _PAUSE
                await asyncio.sleep(_PAUSE)
                continue
            passed = QueueRange(queue, position, following)
            if reply.code == ResponseCode.SUCCESS:
                if not pieces and not rules.filters:
                    self._learn(passed, end - position)
                pieces.append(Piece(passed, reply.body))
            elif _means_loss(reply, rules):
                rules.lost(passed, f"the queue now begins at offset {max(reply.header.min_offset, following)}")
            position = following
        return pieces

    def _learn(self, passed: QueueRange, asked: int) -> None:
        given = passed.end - passed.begin
        known = self._granted.get(passed.queue.broker_name, 0)
        if given < asked or given > known:
            self._granted[passed.queue.broker_name] = given

    async def _pull(self, left: QueueRange, rules: RangeRules) -> Reply[PullMessageAnswer]:
        """One answer, asked for again while the broker is away; raises RangeUnreadable."""
        queue = left.queue
        began = time.monotonic()
        pause = _PAUSE
        while True:
            try:
                address = await self._address(queue)
                reply = await self._instance.remoting.call(
                    address, _request(left, rules), timeout_seconds=rules.timeout, accepted=PULL_CODES
                )
                break
            except _FINAL as error:
                raise RangeUnreadable(left, explained(error), "correct the options or the broker's settings") from error
            except RequestError as error:
                failure: Exception = error
            except (RemotingError, BrokerAbsent, NoRoute) as error:
                failure = error
            waited = time.monotonic() - began
            if waited >= rules.patience:
                advice = f"it was tried for {waited:.1f} s: start the broker, or let the job wait longer for it"
                raise RangeUnreadable(left, explained(failure), advice) from failure
            await asyncio.sleep(min(pause, rules.patience))
            pause = min(pause * 2, _LONGEST_PAUSE)
            await self._renew_route(queue)
        if reply.header.offset_delta:
            raise RangeUnreadable(left, "it belongs to a static topic", "read topics with logical queues by a consumer")
        return reply

    async def _address(self, queue: MessageQueue) -> str:
        if queue.topic not in self._instance.routes:
            await self._instance.route(queue.topic)
        found = self._instance.brokers.replica(self._instance.leader(queue), MASTER_ID)
        if found is None:
            raise BrokerAbsent(queue.broker_name, queue.topic, "address")
        return found[0]

    async def _renew_route(self, queue: MessageQueue) -> None:
        try:
            await self._instance.route(queue.topic, fresh=True)
        except (ClientError, RemotingError) as error:
            _logger.info("no fresh route topic=%s reason=%s", queue.topic, error)

    async def store_time(self, queue: MessageQueue, offset: int, rules: RangeRules) -> int:
        """When the message at an offset, or the next that is there, was stored; in ms since 1970."""
        pieces = await self._read(QueueRange(queue, offset, offset + 1), rules)
        if not pieces:
            raise RangeUnreadable(QueueRange(queue, offset, offset + 1), "no message is there", "read it again")
        return decode_messages(pieces[0].body, queue.broker_name, queue.queue_id)[0].store_timestamp


def _request(left: QueueRange, rules: RangeRules) -> PullMessage:
    most = min(rules.batch_size, left.end - left.begin) if not rules.filters else rules.batch_size
    return reading(rules.group, left.queue, left.begin, most, rules.expression, rules.expression_type)


def _means_loss(reply: Reply[PullMessageAnswer], rules: RangeRules) -> bool:
    """Whether offsets were passed over because nothing is there, not because a filter left them out."""
    if reply.code == ResponseCode.PULL_RETRY_IMMEDIATELY:
        return not rules.filters or reply.remark == _REMOVING
    return True


async def first_at_or_after(
    at_ms: int, low: int, high: int, hint: int, store_time: Callable[[int], Awaitable[int]]
) -> int:
    """The first offset of low … high whose message was stored at or after a moment; high when there is none.

    Brokers round: RocketMQ 4.9 answers with the last message when all are older, and the answers of 5.x for a time
    between two messages differ. So the answer is only a hint, checked here against the messages.
    """
    if low >= high:
        return high
    guess = min(max(hint, low), high)
    if (guess == high or await store_time(guess) >= at_ms) and (guess == low or await store_time(guess - 1) < at_ms):
        return guess
    first, last = low, high
    while first < last:
        middle = (first + last) // 2
        if await store_time(middle) >= at_ms:
            last = middle
        else:
            first = middle + 1
    return first
