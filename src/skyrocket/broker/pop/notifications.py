"""Is there something to pop? Nothing is taken."""

from collections.abc import Iterator
from dataclasses import replace

from skyrocket.broker.pop.checks import PopChecks
from skyrocket.broker.pop.offsets import PopOffsets
from skyrocket.broker.pop.pop_polling import ANY_QUEUE, Held, HeldRequest, PopPolling, on_our_clock
from skyrocket.broker.rules.subscriptions import EVERYTHING
from skyrocket.broker.state.counters import Counters
from skyrocket.broker.state.topics import TopicTable
from skyrocket.clock import Clock
from skyrocket.model.permission import PERM_READ
from skyrocket.model.pop_retry import is_ambiguous, pop_retry_topic
from skyrocket.model.topic_config import TopicConfig
from skyrocket.protocol.codes import ResponseCode
from skyrocket.protocol.command import Body, RemotingCommand
from skyrocket.protocol.errors import NoPermission, RequestError
from skyrocket.protocol.requests.pop import (
    Notification,
    NotificationAnswer,
    PeekMessage,
    PollingInfo,
    PollingInfoAnswer,
    PopMessageAnswer,
)
from skyrocket.remoting.answers import LaterAnswer, Outcome
from skyrocket.remoting.peer import Peer
from skyrocket.remoting.serving import UNSET_REMARK, Answered, Handlers, serve, serve_raw
from skyrocket.store.message_store import MessageStore

_MAX_BYTES = 1 << 25


class NotificationProcessor:
    """Answers those who only look."""

    def __init__(
        self,
        store: MessageStore,
        topics: TopicTable,
        checks: PopChecks,
        offsets: PopOffsets,
        polling: PopPolling,
        peer_clock: Clock,
        counters: Counters,
    ) -> None:
        self._store = store
        self._topics = topics
        self._checks = checks
        self._offsets = offsets
        self._orders = polling.orders
        self._polling = polling
        self._peer_clock = peer_clock
        self._counters = counters
        polling.notifications.resume = self._notify_again

    def handlers(self) -> Handlers:
        return (
            serve(PeekMessage, self.peek),
            serve_raw(Notification.code, self.notify),  # raw: it may be held, with its LaterAnswer
            serve(PollingInfo, self.polling_info),
        )

    # ── peeking ──────────────────────────────────────────────────────────────────────────────────────────────────────

    def peek(self, peer: Peer, header: PeekMessage, _: Body) -> Answered:
        """The messages that a pop would take, but they stay; raises the refusals of a pop."""
        try:
            topic = self._topic(peer, header.topic, header.queue_id, header.consumer_group)
        except RequestError as error:
            error.ext_fields = _peeked(0).to_fields()
            raise
        slices: list[memoryview] = []
        count = size = rest = 0
        for name, queue_id in self._queues(topic, header.queue_id, header.consumer_group):
            start = self._offsets.known(header.consumer_group, name, queue_id)
            left = max(self._store.max_offset(name, queue_id) - start, 0)
            if left and count < header.max_msg_nums and size < _MAX_BYTES:
                result = self._store.get(name, queue_id, start, header.max_msg_nums - count, _MAX_BYTES - size)
                slices += result.slices
                count, size = count + result.count, size + result.size
                left -= result.count
            rest += left
        if slices and self._counters.read_meter is not None:
            self._counters.read_meter(peer, header.topic, count, size)
        if not slices:
            return Answered(_peeked(rest), remark="NO_MESSAGE_IN_QUEUE", code=ResponseCode.PULL_NOT_FOUND)
        return Answered(_peeked(rest), b"".join(slices), "FOUND")

    # ── notifications ────────────────────────────────────────────────────────────────────────────────────────────────

    def notify(self, peer: Peer, request: RemotingCommand) -> Outcome:
        """Answered as soon as there is something to pop, or when the time is over."""
        header = Notification.from_fields(request.ext_fields)
        header = replace(header, born_time=on_our_clock(header.born_time, self._peer_clock))
        return self._notified(peer, request, header, None)

    def _notify_again(self, held: HeldRequest) -> None:
        try:
            answer = self._notified(held.peer, held.later.request, held.header, held.later)
        except RequestError as error:
            held.later.refuse(error)
        else:
            if answer is not held.later:
                assert isinstance(answer, RemotingCommand)
                held.later.fill(answer)

    def _notified(
        self, peer: Peer, request: RemotingCommand, header: Notification, later: LaterAnswer | None
    ) -> RemotingCommand | LaterAnswer:
        try:
            topic = self._topic(peer, header.topic, header.queue_id, header.consumer_group)
        except RequestError as error:
            error.ext_fields = NotificationAnswer(has_msg=False, polling_full=False).to_fields()
            raise
        has_messages = self._has_messages(topic, header)
        is_full = False
        if not has_messages and not request.is_oneway:
            held = HeldRequest(
                later or LaterAnswer(request),
                peer,
                header,
                header.consumer_group,
                header.topic,
                header.queue_id if header.queue_id >= 0 else ANY_QUEUE,
                header.born_time + header.poll_time,
                EVERYTHING,
            )
            outcome = self._polling.notifications.hold(held, header.poll_time)
            if outcome is Held.WAITS:
                return held.later
            is_full = outcome is Held.FULL
        fields = NotificationAnswer(has_msg=has_messages, polling_full=is_full).to_fields()
        return request.answer(ResponseCode.SUCCESS, UNSET_REMARK, fields)

    def _has_messages(self, topic: TopicConfig, header: Notification) -> bool:
        group = header.consumer_group
        for name, queue_id in self._queues(topic, header.queue_id, group, with_retries=not header.order):
            if header.order and self._orders.is_blocked(name, group, queue_id, header.attempt_id):
                continue
            if self._store.max_offset(name, queue_id) > self._offsets.known(group, name, queue_id):
                return True
        return False

    # ── who waits ────────────────────────────────────────────────────────────────────────────────────────────────────

    def polling_info(self, peer: Peer, header: PollingInfo, _: Body) -> Answered:
        """How many pops wait for a queue, or with -1 for any queue."""
        try:
            self._topic(peer, header.topic, header.queue_id, header.consumer_group)
        except RequestError as error:
            error.ext_fields = PollingInfoAnswer(polling_num=0).to_fields()
            raise
        waiting = self._polling.pops.count(header.topic, header.consumer_group, max(header.queue_id, ANY_QUEUE))
        return Answered(PollingInfoAnswer(polling_num=waiting), remark=UNSET_REMARK)

    # ── shared ───────────────────────────────────────────────────────────────────────────────────────────────────────

    def _topic(self, peer: Peer, topic: str, queue_id: int, group: str) -> TopicConfig:
        if not self._checks.settings.broker.broker_permission & PERM_READ:
            raise NoPermission(f"the broker[{self._checks.broker_ip}] peeking message is forbidden")
        return self._checks.target(peer, topic, queue_id, group).topic

    def _queues(
        self, topic: TopicConfig, queue_id: int, group: str, *, with_retries: bool = True
    ) -> Iterator[tuple[str, int]]:
        """The topic's own queues, then those of its retry topics."""
        for number in [queue_id] if queue_id >= 0 else range(topic.read_queues):
            yield topic.name, number
        kinds = (True,) if is_ambiguous(group, topic.name, self._checks.is_group) else (False, True)
        for v2 in kinds if with_retries else ():
            retries = self._topics.find(pop_retry_topic(group, topic.name, v2=v2))
            if retries is not None:
                yield from ((retries.name, number) for number in range(retries.read_queues))


def _peeked(rest: int) -> PopMessageAnswer:
    return PopMessageAnswer(pop_time=0, invisible_time=0, revive_qid=0, rest_num=rest)
