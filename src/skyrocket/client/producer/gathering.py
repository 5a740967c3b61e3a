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
from collections.abc import Sequence
from functools import partial
from typing import Final, TypeAlias

from skyrocket.client.core.client_id import UNIQUE_KEYS
from skyrocket.client.core.message import Message, property_text
from skyrocket.client.core.send_receipt import SendReceipt
from skyrocket.client.producer.accumulator import member_receipts
from skyrocket.client.producer.batches import ELEMENT_BYTES, batch, element_of
from skyrocket.client.sending.message_encoding import EncodedMessage
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
    """The first attempt, made together with others."""

    __slots__ = ("error", "queue")

    def __init__(self, queue: MessageQueue, error: Exception) -> None:
        self.queue = queue
        self.error = error


# None: the first attempt could not be made, the send is still to be begun.
_Outcome: TypeAlias = SendReceipt | _Failed | None


class _Waiting:
    """One send."""

    __slots__ = ("began", "done", "index", "info", "message", "properties", "unique_key")

    def __init__(
        self,
        message: Message,
        info: TopicPublishInfo,
        index: int,
        properties: str,
        unique_key: str,
        began: float,
        done: "asyncio.Future[_Outcome]",
    ) -> None:
        self.info = info  # and the number of its queue there, when it leaves alone
        self.index = index
        self.message = message
        self.properties = properties
        self.unique_key = unique_key
        self.began = began
        self.done = done


class _Lane:
    __slots__ = ("broker_name", "info", "is_due", "places", "size", "topic", "turn", "under_way", "waiting")

    def __init__(self, topic: str, broker_name: str) -> None:
        self.topic = topic
        self.broker_name = broker_name
        self.info: TopicPublishInfo | None = None
        self.places: list[int] = []
        self.turn = 0
        self.waiting: deque[_Waiting] = deque()
        self.size = 0  # bytes that they would take in a batch; properties beyond ASCII take a few more
        self.under_way = 0
        self.is_due = False  # the end of this turn will look at it

    def next_index(self, info: TopicPublishInfo) -> int | None:
        """The queues of the broker take turns, batch by batch; None when the topic has left it."""
        if self.info is not info:
            self.info = info
            self.places = [index for index, queue in enumerate(info.queues) if queue.broker_name == self.broker_name]
        if not self.places:
            return None
        self.turn += 1
        return self.places[self.turn % len(self.places)]


class Gathering:
    """The lanes of one producer, for a sender that `is_plain`."""

    def __init__(self, sender: RetryingSender, clock: Clock, *, max_bytes: int, timeout: float) -> None:
        self._sender = sender
        self._clock = clock
        self._max_bytes = max_bytes
        self._timeout = timeout
        self._lanes: dict[tuple[str, str, bool], _Lane] = {}

    async def send(self, message: Message, topic: str) -> SendReceipt:
        """As a send by itself: the same receipt, the same errors, the same time-out from now on."""
        sender, clock = self._sender, self._clock
        now_ms = clock.now_ms()
        unique_key = UNIQUE_KEYS.next(now_ms)
        properties = property_text(message, unique_key)
        info = sender.topics.get(topic)
        if info is None or not may_travel_together(message):
            return await sender.send(
                EncodedMessage(message, topic, message.body, properties, unique_key), self._timeout
            )
        index, loop = info.next(), asyncio.get_running_loop()
        key = (topic, info.queues[index].broker_name, message.wait_store_ok)
        lane = self._lanes.get(key)
        if lane is None:
            lane = self._lanes[key] = _Lane(topic, key[1])
        done: asyncio.Future[_Outcome] = loop.create_future()
        waiting = _Waiting(message, info, index, properties, unique_key, clock.monotonic(), done)
        lane.waiting.append(waiting)
        lane.size += len(message.body) + len(properties) + ELEMENT_BYTES
        if not lane.is_due and lane.under_way < MOST_UNDER_WAY:
            lane.is_due = True
            loop.call_soon(self._leave, lane)
        outcome = await done
        if outcome.__class__ is SendReceipt:
            return outcome
        seconds = clock.monotonic() - waiting.began
        out = EncodedMessage(message, topic, message.body, properties, unique_key)
        if isinstance(outcome, _Failed):
            return await sender.go_on(out, self._timeout, outcome.queue, seconds, outcome.error)
        return await sender.send(out, max(self._timeout - seconds, 0.0))

    # ── at the end of a turn ─────────────────────────────────────────────────────────────────────────────────────────

    def _leave(self, lane: _Lane) -> None:
        lane.is_due = False
        while lane.waiting and lane.under_way < MOST_UNDER_WAY:
            members = self._next_members(lane)
            if members:
                try:
                    self._ask(lane, members)
                except Exception as error:  # noqa: BLE001 - it belongs to those who wait
                    _fail(members, error)

    def _next_members(self, lane: _Lane) -> list[_Waiting]:
        """The oldest, as many as a request takes; all of about the same age, as one time-out counts for them all."""
        waiting = lane.waiting
        if lane.size <= self._max_bytes and waiting[-1].began - waiting[0].began <= self._timeout / 2:
            members = [each for each in waiting if not each.done.done()]  # else its sender was cancelled
            waiting.clear()
            lane.size = 0
            return members
        members, size = [], 0
        while waiting:
            each = waiting[0]
            own = len(each.message.body) + len(each.properties) + ELEMENT_BYTES
            if not each.done.done():
                is_younger = bool(members) and each.began - members[0].began > self._timeout / 2
                if members and (size + own > self._max_bytes or is_younger):
                    break
                members.append(each)
                size += own
            waiting.popleft()
            lane.size -= own
        return members

    def _ask(self, lane: _Lane, members: list[_Waiting]) -> None:
        info, first = self._sender.topics.get(lane.topic), members[0]
        if len(members) == 1 and first.info is info:
            index: int | None = first.index
        else:
            index = None if info is None else lane.next_index(info)
        if info is None or index is None:
            _settle(members, [None] * len(members))
            return
        queue = info.queues[index]
        try:
            asked = self._asked(lane.topic, info, index, members)
        except RemotingError as error:
            _settle(members, [_Failed(queue, error)] * len(members))
            return
        if asked is None:  # no connection yet: each makes it, or waits for it, as a send alone does
            if len(members) == 1 and first.info is info:
                info.take_back()
            _settle(members, [None] * len(members))
            return
        lane.under_way += 1
        asked.add_done_callback(partial(self._answered, lane, members, queue))

    def _asked(
        self, topic: str, info: TopicPublishInfo, index: int, members: list[_Waiting]
    ) -> "asyncio.Future[RemotingCommand] | None":
        sender, first, now_ms = self._sender, members[0], self._clock.now_ms()
        left = max(self._timeout - (self._clock.monotonic() - first.began), 0.0)
        if len(members) == 1:
            return sender.ask_plainly(info, index, first.message.body, first.properties, now_ms, left)
        elements = [element_of(each.message, each.properties) for each in members]
        together = batch(first.message, topic, elements, [each.unique_key for each in members], now_ms)
        return sender.ask_together(info, index, together, now_ms, left)

    def _answered(
        self, lane: _Lane, members: list[_Waiting], queue: MessageQueue, answer: "asyncio.Future[RemotingCommand]"
    ) -> None:
        lane.under_way -= 1
        outcomes: Sequence[_Outcome]
        try:
            whole = self._sender.receipt(answer.result(), members[0].unique_key, queue, 1)
            keys = [each.unique_key for each in members]
            outcomes = member_receipts(whole, keys) if len(members) > 1 else [whole]
        except (RequestError, RemotingError) as error:
            # What is refused for good may be the fault of one of them: the broker judges each alone.
            is_judged_anew = len(members) > 1 and isinstance(error, RequestError) and self._sender.is_final(error)
            outcomes = [None if is_judged_anew else _Failed(queue, error)] * len(members)
        except Exception as error:  # noqa: BLE001 - an answer that makes no sense: it belongs to those who wait
            _fail(members, error)
            outcomes = [None] * len(members)
        _settle(members, outcomes)
        # After those that just got their receipts: what they send next leaves together with what waits.
        if lane.waiting and not lane.is_due:
            lane.is_due = True
            asyncio.get_running_loop().call_soon(self._leave, lane)


def _settle(members: Sequence[_Waiting], outcomes: Sequence[_Outcome]) -> None:
    for each, outcome in zip(members, outcomes, strict=True):
        done = each.done
        if not done.done():  # else its sender was cancelled
            done.set_result(outcome)


def _fail(members: Sequence[_Waiting], error: Exception) -> None:
    for each in members:
        if not each.done.done():
            each.done.set_exception(error)


def may_travel_together(message: Message) -> bool:
    """Whether brokers take it in a batch, and treat it there as they would by itself."""
    return not (
        message.delay_level
        or message.delay is not None
        or message.deliver_at is not None
        or message.priority is not None
        or message.topic.startswith(RETRY_PREFIX)
        or INNER_MULTI_DISPATCH in message.properties
    )
