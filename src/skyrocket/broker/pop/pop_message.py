"""POP_MESSAGE: messages of any queue, hidden from the rest of the group for a while.

check age, broker, number, timer, topic, queue, group, expression ▸ choose queues ▸ take ▸ answer, or wait for messages
"""

import asyncio
import logging
import random
from collections.abc import Callable
from dataclasses import replace
from itertools import cycle

from skyrocket.broker.pop.checks import PopChecks
from skyrocket.broker.pop.pop_polling import ANY_QUEUE, Held, HeldRequest, PopPolling, monotonic_ms, on_our_clock
from skyrocket.broker.pop.pop_reader import PopReader, Taken, Terms, Visit, queues_in_order
from skyrocket.broker.rules.put_rules import PutRules
from skyrocket.broker.rules.special_services import OtherBrokers, SpecialServices, put_elsewhere
from skyrocket.broker.rules.subscriptions import MessageFilter
from skyrocket.broker.state.tables import Tables
from skyrocket.clock import Clock
from skyrocket.errors import SkyrocketError
from skyrocket.model.permission import PERM_READ
from skyrocket.model.pop_retry import is_ambiguous, pop_retry_topic
from skyrocket.model.topic_config import TopicConfig
from skyrocket.protocol.codes import ResponseCode
from skyrocket.protocol.command import RemotingCommand
from skyrocket.protocol.errors import InvalidParameter, NoPermission, PollingTimeout, RequestError, SystemFailure
from skyrocket.protocol.receipt_handle import ORDERLY_REVIVE_QUEUE
from skyrocket.protocol.requests.pop import PopMessage, PopMessageAnswer
from skyrocket.remoting.answers import LaterAnswer, Outcome
from skyrocket.remoting.peer import Peer
from skyrocket.remoting.tasks import TaskSet

_logger = logging.getLogger(__name__)

MAX_MESSAGES = 32
LATE_MS = 500  # a request that is older than its own patience and this was given up by its client
PRIORITY = "PRIORITY"

_NOTHING = PopMessageAnswer(pop_time=0, invisible_time=0, revive_qid=0, rest_num=0).to_fields()


class PopProcessor:
    """Answers pops, or lets them wait."""

    def __init__(
        self,
        reader: PopReader,
        checks: PopChecks,
        polling: PopPolling,
        tables: Tables,
        rules: PutRules,
        clock: Clock,
        peer_clock: Clock,
        special: SpecialServices | None = None,
    ) -> None:
        self.draw: Callable[[], int] = lambda: random.randrange(100)  # decides which queues come first
        self._reader = reader
        self._checks = checks
        self._polling = polling
        self._topics = tables.topics
        self._groups = tables.groups
        self._rules = rules
        self._clock = clock  # of messages: how long they are hidden
        self._peer_clock = peer_clock  # of clients: how old their requests are
        self._settings = checks.settings
        self._revive_queues = cycle(range(self._settings.broker.revive_queues))
        polling.pops.resume = self._pop_again
        self._special = special or SpecialServices()
        self._one_at_a_time = asyncio.Lock()  # where check points are waited for: no two may read the same messages
        self._tasks = TaskSet()

    def pop(self, peer: Peer, request: RemotingCommand) -> Outcome:
        """A pop as it arrives; raises its refusals."""
        header = PopMessage.from_fields(request.ext_fields)
        header = replace(header, born_time=on_our_clock(header.born_time, self._peer_clock))
        if self._special.acts and self._special.others is not None:
            later = LaterAnswer(request)
            self._start_elsewhere(peer, header, later, self._special.others)
            return later
        return self._answer(peer, request, header, None)

    def _pop_again(self, held: HeldRequest) -> None:
        if self._special.acts and self._special.others is not None:
            self._start_elsewhere(held.peer, held.header, held.later, self._special.others)
            return
        try:
            answer = self._answer(held.peer, held.later.request, held.header, held.later)
        except SkyrocketError as error:  # it waits no more, so somebody must answer it
            _refuse(held.later, held.header, error)
        else:
            if answer is not held.later:
                assert isinstance(answer, RemotingCommand)
                held.later.fill(answer)

    def _start_elsewhere(self, peer: Peer, header: PopMessage, later: LaterAnswer, others: OtherBrokers) -> None:
        self._tasks.start(self._pop_elsewhere(peer, header, later, others), name=f"pop {header.topic}")

    async def _pop_elsewhere(self, peer: Peer, header: PopMessage, later: LaterAnswer, others: OtherBrokers) -> None:
        """Answer a pop whose check points go to another broker."""
        try:
            async with self._one_at_a_time:
                terms, topic = self._begun(peer, header)
                taken = await put_elsewhere(self._reader.taking(terms, self._visits(header, topic)), others)
            answer = self._answered(peer, later.request, header, terms, taken, topic, later)
        except SkyrocketError as error:
            _refuse(later, header, error)
        else:
            if isinstance(answer, RemotingCommand):
                later.fill(answer)

    async def close(self) -> None:
        """Leave nobody at work."""
        await self._tasks.cancel()

    def _begun(self, peer: Peer, header: PopMessage) -> tuple[Terms, TopicConfig]:
        try:
            topic, wanted = self._checked(peer, header)
        except RequestError as error:
            error.ext_fields = _NOTHING
            raise
        return self._terms(header, wanted), topic

    def _answer(
        self, peer: Peer, request: RemotingCommand, header: PopMessage, later: LaterAnswer | None
    ) -> RemotingCommand | LaterAnswer:
        terms, topic = self._begun(peer, header)
        try:
            taken = self._reader.take(terms, self._visits(header, topic))
        except RequestError as error:
            error.ext_fields = _NOTHING
            raise
        return self._answered(peer, request, header, terms, taken, topic, later)

    def _answered(
        self,
        peer: Peer,
        request: RemotingCommand,
        header: PopMessage,
        terms: Terms,
        taken: Taken,
        topic: TopicConfig,
        later: LaterAnswer | None,
    ) -> RemotingCommand | LaterAnswer:
        if terms.is_ordered:
            self._wake_when_free(header, topic)
        if taken.records:
            self._reader.meter(peer, header.topic, taken)
            if taken.rest > 0:
                self._polling.pops.wake(header.topic, header.consumer_group, header.queue_id)
            return _found(request, terms, taken)
        return self._held(peer, request, header, terms, taken, later)

    # ── checks ───────────────────────────────────────────────────────────────────────────────────────────────────────

    def _checked(self, peer: Peer, header: PopMessage) -> tuple[TopicConfig, MessageFilter]:
        broker = f"the broker[{self._checks.broker_ip}] pop message"
        if monotonic_ms(self._peer_clock) - header.born_time - header.poll_time > LATE_MS:
            raise PollingTimeout(f"{broker} is timeout too much")
        if not self._settings.broker.broker_permission & PERM_READ:
            raise NoPermission(f"{broker} is forbidden")
        if header.max_msg_nums > MAX_MESSAGES:
            raise InvalidParameter(f"{broker}'s num is greater than {MAX_MESSAGES}")
        if not self._rules.timers.is_on:
            raise SystemFailure(f"{broker} is forbidden because timerWheelEnable is false")
        if not self._special.are_here:  # name servers may present a slave as master a moment before it acts
            raise SystemFailure(f"{broker} is forbidden because this slave does not act as master")
        target = self._checks.target(peer, header.topic, header.queue_id, header.consumer_group)
        wanted = self._checks.filter_of(header.consumer_group, header.topic, header.exp, header.exp_type)
        return target.topic, wanted

    def _terms(self, header: PopMessage, wanted: MessageFilter) -> Terms:
        is_ordered = bool(header.order)
        return Terms(
            header.consumer_group,
            header.topic,
            max(header.max_msg_nums, 0),
            header.invisible_time,
            self._clock.now_ms(),
            ORDERLY_REVIVE_QUEUE if is_ordered else next(self._revive_queues),
            header.init_mode,
            is_ordered,
            header.attempt_id,
            wanted,
        )

    # ── which queues ─────────────────────────────────────────────────────────────────────────────────────────────────

    def _visits(self, header: PopMessage, topic: TopicConfig) -> list[Visit]:
        """The queues in the order in which they are emptied: sometimes the retry topic first, else last."""
        settings, drawn = self._settings.broker, self.draw()
        by_priority = (
            topic.message_type == PRIORITY
            and not header.order
            and drawn < self._groups.priority_factor(header.consumer_group)
        )
        start = 0 if by_priority else drawn
        downwards = settings.pop_downwards
        if header.queue_id >= 0:
            normal = [Visit(topic.name, header.queue_id)]
        else:
            order = queues_in_order(topic.read_queues, start, downwards=downwards)
            normal = [Visit(topic.name, queue_id) for queue_id in order]
        if header.order:
            return normal
        retries = [
            Visit(name, queue_id)
            for name in self._retry_topics(header, drawn)
            for queue_id in queues_in_order(self._queues(name), start, downwards=downwards)
        ]
        percent = settings.pop_retry_percent_by_priority if by_priority else settings.pop_retry_percent
        return [*retries, *normal] if drawn < percent else [*normal, *retries]

    def _retry_topics(self, header: PopMessage, drawn: int) -> list[str]:
        settings = self._settings.broker
        group, topic = header.consumer_group, header.topic
        v2 = settings.pop_retry_v2 and not (settings.pop_retry_reads_v1 and drawn % 2 == 0)
        v2 = v2 or is_ambiguous(group, topic, self._checks.is_group)
        return [pop_retry_topic(group, topic, v2=v2)]

    def _queues(self, topic: str) -> int:
        found = self._topics.find(topic)
        return 0 if found is None else found.read_queues

    # ── nothing there ────────────────────────────────────────────────────────────────────────────────────────────────

    def _held(
        self,
        peer: Peer,
        request: RemotingCommand,
        header: PopMessage,
        terms: Terms,
        taken: Taken,
        later: LaterAnswer | None,
    ) -> RemotingCommand | LaterAnswer:
        held = HeldRequest(
            later or LaterAnswer(request),
            peer,
            header,
            header.consumer_group,
            header.topic,
            header.queue_id if header.queue_id >= 0 else ANY_QUEUE,
            header.born_time + header.poll_time,
            terms.wanted,
        )
        outcome = Held.TOO_LATE if request.is_oneway else self._polling.pops.hold(held, header.poll_time)
        if outcome is Held.WAITS:
            return held.later
        code = ResponseCode.POLLING_FULL if outcome is Held.FULL else ResponseCode.POLLING_TIMEOUT
        return request.answer(code, "NO_MESSAGE_IN_QUEUE", _fields(terms, taken))

    def _wake_when_free(self, header: PopMessage, topic: TopicConfig) -> None:
        """Let those who wait for an ordered queue try again when its batch is visible again."""
        for queue_id in [header.queue_id] if header.queue_id >= 0 else range(topic.read_queues):
            self._polling.free_at(topic.name, header.consumer_group, queue_id)


def _refuse(later: LaterAnswer, header: PopMessage, error: SkyrocketError) -> None:
    if not isinstance(error, RequestError):
        _logger.error("a pop failed topic=%s group=%s", header.topic, header.consumer_group, exc_info=error)
        error = SystemFailure(f"the messages could not be read: {error}", _NOTHING)
    later.refuse(error)


def _found(request: RemotingCommand, terms: Terms, taken: Taken) -> RemotingCommand:
    return request.answer(ResponseCode.SUCCESS, "FOUND", _fields(terms, taken), b"".join(taken.records))


def _fields(terms: Terms, taken: Taken) -> dict[str, str]:
    return PopMessageAnswer(
        pop_time=terms.pop_time,
        invisible_time=terms.invisible_ms,
        revive_qid=terms.revive_queue,
        rest_num=taken.rest,
        start_offset_info=";".join(taken.start_offsets),
        msg_offset_info=";".join(taken.message_offsets),
        order_count_info=";".join(taken.order_counts) if terms.is_ordered else None,
    ).to_fields()
