"""Awaited sends that meet travel together: those of one turn of the loop, and those that come while requests to their
broker are under way, leave as one batch. Nobody waits for others: a send that is alone leaves at the end of the turn.

    send ─▶ lane of its topic and broker ─▶ end of the turn, fewer than MOST_UNDER_WAY requests under way ─▶ one request
    send ─▶      "                                                                                     │
    receipts, each sender its own ◀────────────────────────────────────────────────────────────────────┘
    the request failed: each goes on alone, with this as its first attempt, its own retries and its own time

A lane belongs to one broker, so that one that hangs holds up only what would have gone there anyway.
"""

import asyncio
from collections import deque
from functools import partial
from typing import Final, TypeAlias

from skyrocket.client.core.client_id import UNIQUE_KEYS, KeySeries
from skyrocket.client.core.message import Message
from skyrocket.client.core.send_receipt import BatchReceipt, SendReceipt
from skyrocket.client.producer.batches import ELEMENT_BYTES, Element, batch, properties_of, property_tail
from skyrocket.client.producer.in_flight import InFlight
from skyrocket.client.sending.message_encoding import EncodedMessage, EncodingRules
from skyrocket.client.sending.retrying_sender import RetryingSender
from skyrocket.client.sending.topic_publish_info import TopicPublishInfo
from skyrocket.clock import Clock
from skyrocket.model.message_queue import MessageQueue
from skyrocket.model.property_names import INNER_MULTI_DISPATCH
from skyrocket.model.topic import RETRY_PREFIX
from skyrocket.protocol.command import RemotingCommand
from skyrocket.protocol.errors import RequestError
from skyrocket.remoting.errors import RemotingError

MOST_UNDER_WAY: Final = 2  # requests of a lane under way: one is on the wire while the other is worked on


class _Failed:
    """The first attempt, made together with others; without an error it could not be made, and is still to be."""

    __slots__ = ("began", "element", "error", "queue", "unique_key")

    def __init__(
        self,
        element: Element,
        began: float,
        unique_key: str,
        queue: MessageQueue | None = None,
        error: Exception | None = None,
    ) -> None:
        self.element = element
        self.began = began
        self.unique_key = unique_key
        self.queue = queue
        self.error = error


_Outcome: TypeAlias = SendReceipt | _Failed
# One send: the message, since when it waits, and what tells its sender. A bare tuple, as one is made for every message.
_Waiting: TypeAlias = "tuple[Element, float, asyncio.Future[_Outcome]]"


class _Lane:
    __slots__ = (
        "broker_name",
        "first",
        "index",
        "info",
        "is_due",
        "places",
        "size",
        "topic",
        "turn",
        "under_way",
        "waiting",
    )

    def __init__(self, topic: str, broker_name: str, first: Message) -> None:
        self.topic = topic
        self.broker_name = broker_name
        self.first = first  # any message of it: they agree in all that a request says of its messages
        self.info: TopicPublishInfo | None = None
        self.places: list[int] = []
        self.turn = 0
        self.index: int | None = None  # whose turn it was when the newest came; None: it is not known before it leaves
        self.waiting: deque[_Waiting] = deque()
        self.size = 0  # bytes that they would take in a batch
        self.under_way = 0
        self.is_due = False  # the end of this turn will look at it

    def next_index(self, info: TopicPublishInfo, count: int) -> int | None:
        """The queues of the broker take turns, request by request; None when the topic has left it."""
        if info.only_broker is not None:
            return info.next() if info.only_broker == self.broker_name else None
        if self.info is not info:
            self.info = info
            self.places = [index for index, queue in enumerate(info.queues) if queue.broker_name == self.broker_name]
        if not self.places:
            return None
        if count == 1 and self.index in self.places:
            return self.index  # as if nobody gathered
        self.turn += 1
        return self.places[self.turn % len(self.places)]


class _Request:
    """Messages that left together."""

    __slots__ = ("keys", "lane", "members", "queue")

    def __init__(self, lane: _Lane, members: list[_Waiting], keys: KeySeries, queue: MessageQueue) -> None:
        self.lane = lane
        self.members = members
        self.keys = keys
        self.queue = queue


class Gathering:
    """The lanes of one producer, for a sender that `is_plain`."""

    def __init__(
        self, sender: RetryingSender, flight: InFlight, clock: Clock, *, max_bytes: int, timeout: float
    ) -> None:
        self._sender = sender
        self._flight = flight
        self._clock = clock
        self._monotonic = clock.monotonic
        self._max_bytes = max_bytes
        self._timeout = timeout
        self._loop = asyncio.get_running_loop()
        self._lanes: dict[tuple[str, str, bool], _Lane] = {}

    async def send(self, message: Message, topic: str) -> SendReceipt:
        """As a send by itself: the same receipt, the same errors, the same time-out.

        For a message that `may_travel_together`.
        """
        flight, size = self._flight, len(message.body)
        if not flight.try_enter(size):
            await flight.enter(size, self._timeout)
        try:
            info = self._sender.topics.get(topic)
            outcome: _Outcome
            if info is not None:
                outcome = await self._join(message, topic, info)
            else:
                element = (message.body, property_tail(message), 0)
                outcome = _Failed(element, self._monotonic(), UNIQUE_KEYS.next(self._clock.now_ms()))
            if outcome.__class__ is SendReceipt:
                return outcome
            assert isinstance(outcome, _Failed)
            return await self._go_on(message, topic, outcome)
        finally:
            flight.leave(size)

    def _join(self, message: Message, topic: str, info: TopicPublishInfo) -> "asyncio.Future[_Outcome]":
        """Let it wait for the end of the turn, or for a request to be answered."""
        body, tail, done = message.body, property_tail(message), self._loop.create_future()
        index, broker_name = None, info.only_broker
        if broker_name is None:
            index = info.next()
            broker_name = info.queues[index].broker_name
        key = (topic, broker_name, message.wait_store_ok)
        lane = self._lanes.get(key)
        if lane is None:
            lane = self._lanes[key] = _Lane(topic, broker_name, message)
        lane.index = index
        lane.waiting.append(((body, tail, 0), self._monotonic(), done))
        lane.size += len(body) + len(tail) + ELEMENT_BYTES
        if not lane.is_due and lane.under_way < MOST_UNDER_WAY:
            lane.is_due = True
            self._loop.call_soon(self._leave, lane)
        return done

    async def _go_on(self, message: Message, topic: str, failed: _Failed) -> SendReceipt:
        """Alone, with what is left of its time."""
        body, tail, _ = failed.element
        seconds = self._monotonic() - failed.began
        out = EncodedMessage(message, topic, body, properties_of(failed.unique_key, tail), failed.unique_key)
        if failed.error is None or failed.queue is None:
            return await self._sender.send(out, max(self._timeout - seconds, 0.0))
        return await self._sender.go_on(out, self._timeout, failed.queue, seconds, failed.error)

    # ── at the end of a turn ─────────────────────────────────────────────────────────────────────────────────────────

    def _leave(self, lane: _Lane) -> None:
        lane.is_due = False
        while lane.waiting and lane.under_way < MOST_UNDER_WAY:
            members = self._next_members(lane)
            if members:
                try:
                    self._ask(lane, members)
                except Exception as error:  # noqa: BLE001 - it belongs to those who wait
                    _raise(members, error)

    def _next_members(self, lane: _Lane) -> list[_Waiting]:
        """The oldest, as many as a request takes; all of about the same age, as one time-out counts for them all."""
        waiting = lane.waiting
        if lane.size <= self._max_bytes and waiting[-1][1] - waiting[0][1] <= self._timeout / 2:
            members = [each for each in waiting if not each[2].done()]  # else its sender was cancelled
            waiting.clear()
            lane.size = 0
            return members
        members, size = [], 0
        while waiting:
            (body, tail, _), began, done = waiting[0]
            own = len(body) + len(tail) + ELEMENT_BYTES
            if not done.done():
                is_younger = bool(members) and began - members[0][1] > self._timeout / 2
                if members and (size + own > self._max_bytes or is_younger):
                    break
                members.append(waiting[0])
                size += own
            waiting.popleft()
            lane.size -= own
        return members

    def _ask(self, lane: _Lane, members: list[_Waiting]) -> None:
        now_ms = self._clock.now_ms()
        keys = UNIQUE_KEYS.series(len(members), now_ms)
        info = self._sender.topics.get(lane.topic)
        index = None if info is None else lane.next_index(info, len(members))
        if info is None or index is None:
            _fail(members, keys)
            return
        queue = info.queues[index]
        try:
            asked = self._asked(lane, info, index, members, keys, now_ms)
        except RemotingError as error:
            _fail(members, keys, queue, error)
            return
        if asked is None:  # no connection yet: each makes it, or waits for it, as a send alone does
            if len(members) == 1:
                info.take_back()
            _fail(members, keys)
            return
        lane.under_way += 1
        asked.add_done_callback(partial(self._answered, _Request(lane, members, keys, queue)))

    def _asked(
        self, lane: _Lane, info: TopicPublishInfo, index: int, members: list[_Waiting], keys: KeySeries, now_ms: int
    ) -> "asyncio.Future[RemotingCommand] | None":
        (body, tail, _), began, _ = members[0]
        left = max(self._timeout - (self._monotonic() - began), 0.0)
        if len(members) == 1:
            return self._sender.ask_plainly(info, index, body, properties_of(keys[0], tail), now_ms, left)
        together = batch(lane.first, lane.topic, [each[0] for each in members], keys, now_ms)
        return self._sender.ask_together(info, index, together, now_ms, left)

    def _answered(self, request: _Request, answer: "asyncio.Future[RemotingCommand]") -> None:
        lane, members, keys, queue = request.lane, request.members, request.keys, request.queue
        lane.under_way -= 1
        try:
            whole = self._sender.receipt(answer.result(), keys[0], queue, 1)
        except (RequestError, RemotingError) as error:
            # What is refused for good may be the fault of one of them: the broker judges each alone.
            if len(members) > 1 and isinstance(error, RequestError) and self._sender.is_final(error):
                _fail(members, keys)
            else:
                _fail(members, keys, queue, error)
        except Exception as error:  # noqa: BLE001 - an answer that makes no sense: it belongs to those who wait
            _raise(members, error)
        else:
            _confirm(members, keys, whole)
        # After those that just got their receipts: what they send next leaves together with what waits.
        if lane.waiting and not lane.is_due:
            lane.is_due = True
            self._loop.call_soon(self._leave, lane)


def _confirm(members: list[_Waiting], keys: KeySeries, whole: SendReceipt) -> None:
    if len(members) == 1:
        if not members[0][2].done():
            members[0][2].set_result(whole)
        return
    number, receipt_of = 0, BatchReceipt(whole, keys).member
    for _, _, done in members:
        if not done.done():  # else its sender was cancelled
            done.set_result(receipt_of(number))
        number += 1  # noqa: SIM113 - quicker than a tuple for each


def _fail(
    members: list[_Waiting], keys: KeySeries, queue: MessageQueue | None = None, error: Exception | None = None
) -> None:
    for (element, began, done), key in zip(members, keys, strict=True):
        if not done.done():
            done.set_result(_Failed(element, began, key, queue, error))


def _raise(members: list[_Waiting], error: Exception) -> None:
    for _, _, done in members:
        if not done.done():
            done.set_exception(error)


def may_travel_together(message: Message, rules: EncodingRules) -> bool:
    """Whether it travels as it is, to any queue, and brokers take it in a batch and treat it there as by itself."""
    body = message.body
    return (
        body.__class__ is bytes
        and 0 < len(body) < rules.compress_over
        and len(body) <= rules.max_message_size
        and message.sharding_key is None
        and message.delay is None
        and message.deliver_at is None
        and message.priority is None
        and not (message.delay_level or message.flag or rules.namespace)
        and (not message.properties or INNER_MULTI_DISPATCH not in message.properties)
        and not message.topic.startswith(RETRY_PREFIX)
    )
