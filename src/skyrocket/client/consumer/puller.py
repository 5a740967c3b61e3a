"""One queue of a consumer: pull, wait at the broker for messages, hand them over, pull again.

A long poll is an await. When too much is in hand the loop waits until some of it is finished.
"""

import asyncio
import logging
from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass
from typing import Final, Protocol

from skyrocket.client.consumer.offset_store import OffsetStore
from skyrocket.client.consumer.process_queue import FlowLimits, ProcessQueue
from skyrocket.client.consumer.pulled_answer import PulledAnswer
from skyrocket.client.core.errors import ClientError, explained
from skyrocket.client.core.instance import ClientInstance
from skyrocket.client.core.message import ReceivedMessage, decode_messages
from skyrocket.client.core.routes import MASTER_ID
from skyrocket.errors import DataError
from skyrocket.model.message_queue import MessageQueue
from skyrocket.protocol.bodies.subscription import ALL_TAGS, SubscriptionData
from skyrocket.protocol.codes import ResponseCode
from skyrocket.protocol.errors import (
    FlowControl,
    GroupNotExist,
    RequestError,
    SubscriptionNotExist,
    SubscriptionNotLatest,
    error_of,
)
from skyrocket.protocol.pull_template import PullTemplate
from skyrocket.protocol.requests.pulling import (
    COMMIT_OFFSET,
    SUSPEND,
    WITH_SUBSCRIPTION,
    PullMessage,
    PullMessageAnswer,
)
from skyrocket.remoting.errors import CallTimeout, RemotingClosed, RemotingError
from skyrocket.remoting.exchange import Reply, command_of

_logger = logging.getLogger(__name__)

PULL_CODES: Final = frozenset(
    int(code)
    for code in (
        ResponseCode.SUCCESS,
        ResponseCode.PULL_NOT_FOUND,
        ResponseCode.PULL_RETRY_IMMEDIATELY,
        ResponseCode.PULL_OFFSET_MOVED,
    )
)
_FLOW_CONTROL_SECONDS: Final = 0.02
_SUSPENDED_SECONDS: Final = 1.0
_WITHOUT_LOCK_SECONDS: Final = 0.1
_PAUSES_PER_WARNING: Final = 1000
_FAILED: Final = "a pull failed, will be tried again"


def reading(
    group: str, queue: MessageQueue, offset: int, most: int, expression: str = ALL_TAGS, expression_type: str = "TAG"
) -> PullMessage:
    """A pull for readers that are no members of a group: it brings its filter, commits nothing, and never waits."""
    return PullMessage(
        consumer_group=group,
        topic=queue.topic,
        queue_id=queue.queue_id,
        queue_offset=offset,
        max_msg_nums=most,
        sys_flag=WITH_SUBSCRIPTION,
        commit_offset=0,
        suspend_timeout_millis=0,
        subscription=expression,
        sub_version=0,
        expression_type=expression_type,
        broker_name=queue.broker_name,
    )


@dataclass(slots=True)
class PullRules:
    """How a consumer pulls; times are in seconds."""

    batch_size: int = 32
    batch_bytes: int = 262_144
    interval: float = 0.0
    suspend: float = 15.0  # how long a broker may hold a pull
    timeout: float = 30.0
    exception_delay: float = 1.0
    limits: FlowLimits = FlowLimits()
    commits: bool = False  # pulls tell the broker how far the queue is consumed
    brings_subscription: bool = False  # the broker need not know the group
    notes_progress: bool = True  # what was passed over counts as consumed when nothing is in hand
    needs_lock: bool = False
    pauses: int = 0  # how often a queue of this consumer was not pulled because of its limits or its lock


class Receiver(Protocol):
    """Who takes the messages that were pulled."""

    def arrived(self, process_queue: ProcessQueue, messages: list[ReceivedMessage]) -> None: ...


class AnswerReceiver(Protocol):
    """Who takes what was pulled as it came, and decodes it when it is wanted."""

    def received(self, process_queue: ProcessQueue, answer: PulledAnswer) -> None: ...


@dataclass(frozen=True, slots=True)
class PullerParts:
    """What all pullers of one consumer share."""

    instance: ClientInstance
    group: str
    offsets: OffsetStore
    subscriptions: Mapping[str, SubscriptionData]
    receiver: Receiver | None
    is_paused: Callable[[MessageQueue], bool]
    topic_restorer: Callable[[MessageQueue], Callable[[ReceivedMessage], None] | None]  # None: it is as it was sent
    answers: AnswerReceiver | None = None  # instead of the receiver, for pullers that decode nothing


class Puller:
    """The loop of one queue."""

    def __init__(
        self,
        parts: PullerParts,
        rules: PullRules,
        process_queue: ProcessQueue,
        offset: int,
        offset_moved: Callable[[ProcessQueue, int], Awaitable[None]],
    ) -> None:
        self._parts = parts
        self._instance = parts.instance
        self._group = parts.group
        self._receiver = parts.receiver
        self._offsets = parts.offsets
        self._rules = rules
        self._process_queue = process_queue
        self._queue: MessageQueue = process_queue.queue
        self.next_offset = offset
        self._offset_moved = offset_moved  # the broker does not have our offset (any more), and says where to go on
        self._restore = parts.topic_restorer(process_queue.queue)
        self._broker_id = MASTER_ID
        self._made: tuple[tuple[int, int, str, str | None], PullTemplate] | None = (
            None  # for what, and the frames of it
        )

    async def run(self) -> None:
        """Until the queue is dropped."""
        process_queue, rules, parts = self._process_queue, self._rules, self._parts
        monotonic = self._instance.clock.monotonic
        address = ""
        while not process_queue.is_dropped:
            process_queue.last_pulled = monotonic()
            if parts.is_paused(self._queue):
                await process_queue.changed(_SUSPENDED_SECONDS)
                continue
            full = process_queue.overflow(rules.limits)
            if full is not None:
                self._warn(full)
                await process_queue.changed(_SUSPENDED_SECONDS)
                continue
            if rules.needs_lock and not process_queue.is_locked:
                self._warn("pull message later because not locked in broker")
                await asyncio.sleep(_WITHOUT_LOCK_SECONDS)
                continue
            subscription = parts.subscriptions.get(self._queue.topic)
            if subscription is None:
                await asyncio.sleep(rules.exception_delay)
                continue
            try:
                address, broker_id = await self._target()
                await self._pull(address, broker_id, subscription)
            except FlowControl:
                await asyncio.sleep(_FLOW_CONTROL_SECONDS)
            except (SubscriptionNotExist, SubscriptionNotLatest, GroupNotExist):
                # The broker was restarted, or has not heard of a change: a heartbeat tells it.
                if not await self._instance.beat(address):
                    await asyncio.sleep(rules.exception_delay)
                await asyncio.sleep(_FLOW_CONTROL_SECONDS)
            except RemotingClosed:
                return
            except (RequestError, RemotingError, ClientError, DataError) as error:
                if not process_queue.is_dropped:
                    troubles, broker = self._instance.troubles, self._queue.broker_name
                    troubles.failed(_logger, broker, _FAILED, f"queue={self._queue}", explained(error))
                self._broker_id = MASTER_ID
                self._instance.doubt(self._queue.topic)
                await asyncio.sleep(rules.exception_delay)
            if rules.interval:
                await asyncio.sleep(rules.interval)

    def _warn(self, reason: str) -> None:
        """RocketMQ: the first pause of a consumer is logged, and every thousandth."""
        rules, queue = self._rules, self._queue
        if rules.pauses % _PAUSES_PER_WARNING == 0:
            _logger.warning("%s, queue=%s group=%s flowControlTimes=%d", reason, queue, self._group, rules.pauses)
        rules.pauses += 1

    async def _target(self) -> tuple[str, int]:
        found = self._instance.brokers.replica(self._instance.leader(self._queue), self._broker_id)
        if found is None:
            return await self._instance.master_of(self._queue), MASTER_ID
        return found

    async def _pull(self, address: str, broker_id: int, subscription: SubscriptionData) -> None:
        rules, queue = self._rules, self._queue
        sys_flag, committed = SUSPEND, 0
        if rules.brings_subscription:
            sys_flag |= WITH_SUBSCRIPTION
        if rules.commits and broker_id == MASTER_ID:
            committed = self._offsets.in_memory(queue) or 0
            if committed > 0:
                sys_flag |= COMMIT_OFFSET
        reply = await self._ask(address, subscription, sys_flag, committed)
        self._process_queue.pull_seconds = self._instance.clock.monotonic() - self._process_queue.last_pulled
        self._instance.troubles.works(_logger, queue.broker_name, _FAILED)
        header = reply.header
        self._broker_id = header.suggest_which_broker_id
        if self._process_queue.is_dropped:
            return
        if reply.code == ResponseCode.PULL_OFFSET_MOVED:
            _logger.warning("an offset was corrected by the broker queue=%s offset=%d", queue, header.next_begin_offset)
            await self._offset_moved(self._process_queue, header.next_begin_offset)
            return
        if reply.code == ResponseCode.SUCCESS:
            self._found(reply.body, header, subscription)
        else:
            self._nothing(header)

    async def _ask(
        self, address: str, subscription: SubscriptionData, sys_flag: int, committed: int
    ) -> Reply[PullMessageAnswer]:
        remoting, seconds = self._instance.remoting, self._rules.timeout
        connection = remoting.connection(address)
        if self._instance.completes_nothing_but_language and connection is not None and connection.is_open:
            # The usual case by the shortest way: made for every 32 messages.
            opaque = connection.next_call()
            frame = self._template(subscription, sys_flag).frame(opaque, self.next_offset, committed)
            try:
                answer = await connection.ask_encoded(opaque, PullMessage.code, frame, seconds)
            except CallTimeout:
                connection.close()  # RocketMQ: it is not trusted any more
                raise
            if answer.code in PULL_CODES:
                return Reply(PullMessageAnswer.from_fields(answer.ext_fields), answer.body, answer.code, answer.remark)
            if answer.code != ResponseCode.GO_AWAY:
                raise error_of(answer.code, answer.remark, answer.ext_fields)
        request = self._request(subscription, sys_flag, self.next_offset, committed)
        return await remoting.call(address, request, timeout_seconds=seconds, accepted=PULL_CODES)

    def _template(self, subscription: SubscriptionData, sys_flag: int) -> PullTemplate:
        wanted = (sys_flag, subscription.version, subscription.expression, subscription.expression_type)
        made = self._made
        if made is None or made[0] != wanted:
            example = command_of(self._request(subscription, sys_flag, 0, 0))
            self._instance.complete("", example)
            made = self._made = wanted, PullTemplate(example)
        return made[1]

    def _request(self, subscription: SubscriptionData, sys_flag: int, offset: int, committed: int) -> PullMessage:
        rules, queue = self._rules, self._queue
        return PullMessage(
            consumer_group=self._group,
            topic=queue.topic,
            queue_id=queue.queue_id,
            queue_offset=offset,
            max_msg_nums=rules.batch_size,
            sys_flag=sys_flag,
            commit_offset=committed,
            suspend_timeout_millis=round(rules.suspend * 1000),
            subscription=subscription.expression if rules.brings_subscription else None,
            sub_version=subscription.version,
            expression_type=subscription.expression_type,
            max_msg_bytes=rules.batch_bytes,
            broker_name=queue.broker_name,
        )

    def _found(self, body: bytes | memoryview, header: PullMessageAnswer, subscription: SubscriptionData) -> None:
        messages = decode_messages(body, self._queue.broker_name, self._queue.queue_id)
        low, high, delta = header.min_offset, header.max_offset, header.offset_delta or 0
        for message in messages:
            message.min_offset = low
            message.max_offset = high
            message.queue_offset += delta
        if subscription.tags:
            # Brokers compare hashes of tags: what only has the same hash is dropped here.
            wanted = subscription.tags
            messages = [message for message in messages if message.tags in wanted]
        if self._restore is not None:
            for message in messages:
                self._restore(message)
        if messages:
            assert self._receiver is not None, "a consumer with handlers takes messages"
            self._receiver.arrived(self._process_queue, messages)
            self.next_offset = header.next_begin_offset
            self._process_queue.passed(self.next_offset)
        else:
            self._nothing(header)

    def _nothing(self, header: PullMessageAnswer) -> None:
        self.next_offset = header.next_begin_offset
        self._process_queue.passed(self.next_offset)
        if self._rules.notes_progress and not self._process_queue.count:
            self._offsets.update(self._queue, self.next_offset, increase_only=True)
