"""PULL_MESSAGE: records of one queue from an offset on, as slices of the log that nobody decodes here.

check broker, group, topic, queue, subscription ▸ commit what came along ▸ read ▸ answer, or wait for messages
"""

import logging
from collections.abc import Mapping
from typing import Final, NamedTuple

from skyrocket.broker.pull.long_polling import HeldPull, LongPolling
from skyrocket.broker.pull.slave_reads import SlaveReads
from skyrocket.broker.rules.subscriptions import EVERYTHING, MessageFilter, Subscriptions
from skyrocket.broker.state.counters import Counters
from skyrocket.broker.state.tables import Tables
from skyrocket.clock import Clock
from skyrocket.format.config_files import offset_key
from skyrocket.model.subscription_group import SubscriptionGroup
from skyrocket.model.topic_config import TopicConfig
from skyrocket.observability.histogram import Histogram
from skyrocket.protocol.bodies.subscription import SubscriptionData
from skyrocket.protocol.codes import RequestCode, ResponseCode
from skyrocket.protocol.command import RemotingCommand
from skyrocket.protocol.errors import InvalidParameter, NoPermission, RequestError, SystemFailure
from skyrocket.protocol.pull_shapes import ShapedPull
from skyrocket.protocol.requests.answer_template import AnswerTemplate
from skyrocket.protocol.requests.pulling import (
    COMMIT_OFFSET,
    SUSPEND,
    WITH_SUBSCRIPTION,
    LitePullMessage,
    PullMessage,
    PullMessageAnswer,
)
from skyrocket.protocol.send_shapes import ShapeMemo
from skyrocket.remoting.answers import Answer, LaterAnswer, Outcome
from skyrocket.remoting.peer import Peer
from skyrocket.remoting.serving import RawHandler
from skyrocket.store.message_store import MessageStore
from skyrocket.store.read_ahead import Trail
from skyrocket.store.results import GetResult, GetStatus

_logger = logging.getLogger(__name__)

_HEADERS: Final[dict[int, type[PullMessage]]] = {
    RequestCode.PULL_MESSAGE: PullMessage,
    RequestCode.LITE_PULL_MESSAGE: LitePullMessage,
}

_MAX_BYTES: Final = 1 << 27
_FIELDS: Final = (
    "suggest_which_broker_id",
    "next_begin_offset",
    "min_offset",
    "max_offset",
    "topic_sys_flag",
    "group_sys_flag",
)
_FOUND: Final = AnswerTemplate(PullMessageAnswer, _FIELDS, remark="FOUND").head

# Who forbids, for the field `forbiddenType`.
_BY_BROKER, _BY_GROUP, _BY_TOPIC, _BROADCAST, _SUBSCRIPTION_FORBIDDEN = 1, 2, 3, 4, 5

_CODES: Final[Mapping[GetStatus, ResponseCode]] = {
    GetStatus.FOUND: ResponseCode.SUCCESS,
    GetStatus.NO_MATCHED_MESSAGE: ResponseCode.PULL_RETRY_IMMEDIATELY,
    GetStatus.MESSAGE_WAS_REMOVING: ResponseCode.PULL_RETRY_IMMEDIATELY,
    GetStatus.OFFSET_FOUND_NULL: ResponseCode.PULL_NOT_FOUND,
    GetStatus.OFFSET_OVERFLOW_ONE: ResponseCode.PULL_NOT_FOUND,
    GetStatus.OFFSET_OVERFLOW_BADLY: ResponseCode.PULL_OFFSET_MOVED,
    GetStatus.OFFSET_TOO_SMALL: ResponseCode.PULL_OFFSET_MOVED,
}


class _Allowed(NamedTuple):
    """A pull that passed the checks."""

    topic: TopicConfig
    group: SubscriptionGroup
    wanted: MessageFilter
    noted: SubscriptionData | None  # what it brought along itself


class _Known(ShapeMemo):
    """What all pulls of one shape ask for; both offsets are those of the first of them."""

    __slots__ = ("allowed", "consumers_generation", "groups_generation", "header", "key", "topics_generation", "trail")

    def __init__(self, header: PullMessage) -> None:
        self.header = header
        self.key = offset_key(header.topic, header.consumer_group)
        self.allowed: _Allowed | None = None  # as long as the tables stay as they were
        self.topics_generation = self.groups_generation = self.consumers_generation = -1
        self.trail: Trail | None = None  # when all messages are wanted


class PullProcessor:
    """Answers pulls, or lets them wait."""

    def __init__(
        self,
        store: MessageStore,
        tables: Tables,
        polling: LongPolling,
        clock: Clock,
        subscriptions: Subscriptions,
        counters: Counters,
        *,
        slave_read: bool = False,
        at_slave: SlaveReads | None = None,
    ) -> None:
        self._store = store
        self._topics = tables.topics
        self._groups = tables.groups
        self._consumers = tables.consumers
        self._offsets = tables.offsets
        self._polling = polling
        self._clock = clock
        self._subscriptions = subscriptions
        self.slave_read = slave_read
        self._at_slave = at_slave  # None at a master
        self._counters = counters
        self.latency = Histogram()  # of pulls that found messages: those that wait do so on purpose
        polling.resume = self._pull_again

    def pull(self, peer: Peer, request: RemotingCommand) -> Outcome:
        """A pull as it arrives; raises its refusals."""
        known: _Known | None = None
        if isinstance(request, ShapedPull):
            known = _known(request)
            answer = self._go_on(peer, request, known)
            if answer is not None:
                return answer
        header, queue_offset, commit_offset = _asked(request)
        allowed = self._checked(peer, header)
        if header.sys_flag & COMMIT_OFFSET:
            self._offsets.commit(header.consumer_group, header.topic, header.queue_id, commit_offset)
        reset = self._offsets.take_reset(header.consumer_group, header.topic, header.queue_id)
        if reset is not None:
            return self._reset_answer(request, header, allowed, reset)
        result = self._get(peer, header, queue_offset, allowed)
        if known is not None:
            self._learn(known, allowed, result)
        code = self._code(queue_offset, result)
        if code is ResponseCode.PULL_NOT_FOUND and header.sys_flag & SUSPEND and not request.is_oneway:
            later = LaterAnswer(request)
            deadline = self._clock.monotonic() + header.suspend_timeout_millis / 1000
            queue = (header.topic, header.queue_id)
            self._polling.hold(HeldPull(later, peer, queue, queue_offset, allowed.wanted, deadline))
            return later
        return self._answer(request, allowed, result, code)

    def _pull_again(self, held: HeldPull) -> None:
        """Once more from the first check on, but without commit and without waiting."""
        request = held.later.request
        header, queue_offset, _ = _asked(request)
        try:
            allowed = self._checked(held.peer, header)
            reset = self._offsets.take_reset(header.consumer_group, header.topic, header.queue_id)
            if reset is not None:
                held.later.fill(self._reset_answer(request, header, allowed, reset))
                return
            result = self._get(held.peer, header, queue_offset, allowed)
            code = self._code(queue_offset, result)
            held.later.fill(self._answer(request, allowed, result, code))
        except RequestError as error:
            held.later.refuse(error)
        except Exception as error:  # it waits no more, so somebody must answer it, and its neighbours come after it
            _logger.exception("a held pull failed topic=%s group=%s", header.topic, header.consumer_group)
            held.later.refuse(SystemFailure(f"the messages could not be read: {error}"))

    # ── the common pull ──────────────────────────────────────────────────────────────────────────────────────────────

    def _learn(self, known: _Known, allowed: _Allowed, result: GetResult) -> None:
        """Let the next of its shape be a common one: it goes on where this one ends, and may do what this one may."""
        if allowed.wanted is not EVERYTHING or self._at_slave is not None:
            return
        trail = known.trail
        if trail is None or not self._store.reader.is_current(trail):
            trail = known.trail = self._store.reader.trail(known.header.topic, known.header.queue_id)
        if trail is not None:
            trail.expected = result.next_offset
        known.allowed = allowed
        known.topics_generation = self._topics.generation
        known.groups_generation = self._groups.generation
        known.consumers_generation = self._consumers.generation

    def _go_on(self, peer: Peer, request: ShapedPull, known: _Known) -> Answer | None:
        """What the long way does, when nothing has changed since it let one of this shape pass, and messages are there.

        Nearly all pulls of a consumer that is behind are such, and to check each anew was half of their cost.
        """
        allowed, trail, offsets = known.allowed, known.trail, self._offsets
        if (
            allowed is None
            or trail is None
            or known.topics_generation != self._topics.generation
            or known.groups_generation != self._groups.generation
            or known.consumers_generation != self._consumers.generation
            or offsets.has_reset_at(known.key)
        ):
            return None
        header = known.header
        began = self._clock.monotonic()
        result = self._store.reader.go_on(
            trail, request.queue_offset, header.max_msg_nums, header.max_msg_bytes or _MAX_BYTES
        )
        if result is None:
            return None
        if allowed.noted is not None:
            self._consumers.note_subscription(header.consumer_group, allowed.noted)
        if header.sys_flag & COMMIT_OFFSET:
            offsets.commit_at(known.key, header.queue_id, request.commit_offset)
        offsets.note_pull_at(known.key, header.queue_id, result.next_offset)
        self._count(peer, header, result, began)
        return self._found(request, allowed, result, self._suggested(allowed, result) if self.slave_read else 0)

    # ── checks ───────────────────────────────────────────────────────────────────────────────────────────────────────

    def _checked(self, peer: Peer, header: PullMessage) -> _Allowed:
        forbidden_by = _BY_GROUP
        noted: SubscriptionData | None = None
        try:
            group = self._groups.consuming(header.consumer_group)
            forbidden_by = _BY_TOPIC
            topic = self._topics.readable(header.topic)
            if not 0 <= header.queue_id < topic.read_queues:
                raise InvalidParameter(
                    f"queueId[{header.queue_id}] is illegal, topic:[{topic.name}] "
                    f"topicConfig.readQueueNums:[{topic.read_queues}] consumer:[/{peer.remote_address}]"
                )
            if header.sys_flag & WITH_SUBSCRIPTION:
                subscription = self._subscriptions.of_request(header.topic, header.subscription, header.expression_type)
                noted = subscription
                self._consumers.note_subscription(header.consumer_group, subscription)
                wanted = self._subscriptions.filter_of(subscription, lenient=True)
            else:
                forbidden_by = _BROADCAST
                members = self._consumers.pulling(header.consumer_group)
                if members.is_broadcasting and not group.may_consume_broadcast:
                    name = header.consumer_group
                    raise NoPermission(f"the consumer group[{name}] can not consume by broadcast way")
                forbidden_by = _SUBSCRIPTION_FORBIDDEN
                self._groups.check_may_read(header.consumer_group, header.topic)
                subscription = members.subscription(header.topic, header.sub_version)
                wanted = self._subscriptions.filter_of(subscription)
        except RequestError as error:
            error.ext_fields = {"forbiddenType": str(forbidden_by)} if isinstance(error, NoPermission) else {}
            raise
        if wanted.properties is not None:
            found = self._consumers.find_group(header.consumer_group)
            wanted = self._subscriptions.of_retries(wanted, header.topic, {} if found is None else found.subscriptions)
        return _Allowed(topic, group, wanted, noted)

    # ── reading and answering ────────────────────────────────────────────────────────────────────────────────────────

    def _get(self, peer: Peer, header: PullMessage, queue_offset: int, allowed: _Allowed) -> GetResult:
        wanted = allowed.wanted
        began = self._clock.monotonic()
        result = self._store.reader.get(
            header.topic,
            header.queue_id,
            queue_offset,
            max(header.max_msg_nums, 1),
            header.max_msg_bytes or _MAX_BYTES,
            tags_codes=wanted.tags_codes,
            record_filter=None if wanted.properties is None else wanted.record,
            look_at=wanted.look_at,
        )
        if result.status is GetStatus.NO_MATCHED_LOGIC_QUEUE:
            result.status = GetStatus.NO_MESSAGE_IN_QUEUE  # RocketMQ: looking for a queue makes one
        self._offsets.note_pull(header.consumer_group, header.topic, header.queue_id, result.next_offset)
        if result.count:
            self._count(peer, header, result, began)
        return result

    def _count(self, peer: Peer, header: PullMessage, result: GetResult, began: float) -> None:
        """A read that found messages."""
        took, counters = self._clock.monotonic() - began, self._counters
        self.latency.add(took)
        counters.pulled(header.consumer_group, header.topic, header.queue_id, result.count, result.size, took * 1000)
        if counters.read_meter is not None:
            counters.read_meter(peer, header.topic, result.count, result.size)

    def _code(self, queue_offset: int, result: GetResult) -> ResponseCode:
        code = response_code(result.status, queue_offset)
        return code if self._at_slave is None else self._at_slave.code(result, code, queue_offset)

    def _answer(self, request: RemotingCommand, allowed: _Allowed, result: GetResult, code: ResponseCode) -> Answer:
        suggested = self._suggested(allowed, result) if self.slave_read else 0
        if self._at_slave is not None:
            suggested = self._at_slave.suggested(result, suggested)
        if code is ResponseCode.SUCCESS:
            return self._found(request, allowed, result, suggested)
        sys_flags = (allowed.topic.sys_flag, allowed.group.sys_flag)
        fields = PullMessageAnswer(
            suggest_which_broker_id=suggested,
            next_begin_offset=result.next_offset,
            min_offset=result.min_offset,
            max_offset=result.max_offset,
            topic_sys_flag=sys_flags[0],
            group_sys_flag=sys_flags[1],
        ).to_fields()
        return request.answer(code, result.status.value, fields)

    def _suggested(self, allowed: _Allowed, result: GetResult) -> int:
        return allowed.group.broker_id_when_slow if result.suggest_slave else allowed.group.broker_id

    def _found(self, request: RemotingCommand, allowed: _Allowed, result: GetResult, suggested: int) -> Answer:
        head = _FOUND(
            request.opaque,
            result.size,
            suggested,
            result.next_offset,
            result.min_offset,
            result.max_offset,
            allowed.topic.sys_flag,
            allowed.group.sys_flag,
        )
        return [head, *result.slices]

    def _reset_answer(self, request: RemotingCommand, header: PullMessage, allowed: _Allowed, offset: int) -> Answer:
        queue = (header.topic, header.queue_id)
        fields = PullMessageAnswer(
            suggest_which_broker_id=0,
            next_begin_offset=offset,
            min_offset=max(self._store.min_offset(*queue), 0),
            max_offset=self._store.max_offset(*queue),
            topic_sys_flag=allowed.topic.sys_flag,
            group_sys_flag=allowed.group.sys_flag,
        ).to_fields()
        return request.answer(ResponseCode.PULL_OFFSET_MOVED, "OFFSET_RESET", fields)


def _asked(request: RemotingCommand) -> tuple[PullMessage, int, int]:
    """What a pull asks for, its offset and what it commits: both may be others than those in the header."""
    if not isinstance(request, ShapedPull):
        header = _HEADERS[request.code].from_fields(request.ext_fields)
        return header, header.queue_offset, header.commit_offset
    known = _known(request)
    return known.header, request.queue_offset, request.commit_offset


def _known(request: ShapedPull) -> _Known:
    """What is known of pulls of its shape."""
    memo = request.shape.memo
    if memo is None:
        memo = request.shape.memo = _Known(_HEADERS[request.code].from_fields(request.ext_fields))
    assert isinstance(memo, _Known)
    return memo


def no_lite_pulls(host: str) -> RawHandler:
    """Stands for `pull` where lite pull consumers are not served (`litePullMessageEnable=false`)."""

    def refuse(_: Peer, __: RemotingCommand) -> Outcome:
        raise NoPermission(
            f"the broker[{host}] for lite pull consumer is forbidden", {"forbiddenType": str(_BY_BROKER)}
        )

    return refuse


def response_code(status: GetStatus, queue_offset: int) -> ResponseCode:
    """What a client is told of a read."""
    if status is GetStatus.FOUND:  # nearly always
        return ResponseCode.SUCCESS
    if status in (GetStatus.NO_MATCHED_LOGIC_QUEUE, GetStatus.NO_MESSAGE_IN_QUEUE):
        return ResponseCode.PULL_OFFSET_MOVED if queue_offset else ResponseCode.PULL_NOT_FOUND
    return _CODES[status]
