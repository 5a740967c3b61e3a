"""SEND_MESSAGE in its three forms: one message, the same with short names, a batch.

Most messages look like one that was checked before: `plain_send` makes rows of them, and `plain_batches` keeps batches;
both are stored when the turn ends, or when one of the other kind comes. All others are checked here and put at once,
after what came before them. With SYNC_FLUSH the answers wait until the disk has the messages: `send_answers`.
"""

import random
from collections.abc import Sequence
from time import perf_counter  # how long work takes, whatever clock the program was given
from typing import Final, NamedTuple

from skyrocket.broker.rules.put_refusals import put_refusal
from skyrocket.broker.rules.put_rules import (
    PutRules,
    check_key,
    check_own_properties,
    is_special,
    queue_by_priority,
)
from skyrocket.broker.send.duplicate_window import DuplicateWindow, Number, Receipt, number_of
from skyrocket.broker.send.plain_batches import KnownBatch, PlainBatches
from skyrocket.broker.send.plain_send import PlainSends, origin_of
from skyrocket.broker.send.send_answers import SendAnswers, Stored
from skyrocket.broker.state.identity import BrokerIdentity
from skyrocket.broker.state.tables import Tables
from skyrocket.clock import Clock
from skyrocket.errors import DataError
from skyrocket.format import sys_flag as flags
from skyrocket.format.batch import Batch, BatchColumns, BatchElement, EvenBatch, decode_batch
from skyrocket.format.large_batch import LARGE_FROM, batch_of
from skyrocket.format.message_id import UniqueKeyGenerator
from skyrocket.format.properties import find_property, with_property, without_property
from skyrocket.format.property_bytes import SEND_SEQUENCE
from skyrocket.format.recall_handle import recall_handle
from skyrocket.model.topic import DLQ_PREFIX, MAX_TOPIC_BYTES, RETRY_PREFIX, TIMER_TOPIC
from skyrocket.model.topic_config import MULTI_TAG, TopicConfig
from skyrocket.protocol.codes import RequestCode, Version
from skyrocket.protocol.command import RemotingCommand
from skyrocket.protocol.errors import MalformedBody, MessageIllegal, RequestError
from skyrocket.protocol.requests.messaging import SendBatchMessage, SendMessage, SendMessageV2
from skyrocket.protocol.send_shapes import ShapedSend
from skyrocket.remoting.answers import LaterAnswer, LaterRun
from skyrocket.remoting.peer import Peer
from skyrocket.remoting.serving import Handlers, serve_raw
from skyrocket.store.commit_log import PutMessage
from skyrocket.store.message_store import MessageStore
from skyrocket.store.results import PutStatus

_HEADERS: Final[dict[int, type[SendMessage]]] = {
    RequestCode.SEND_MESSAGE: SendMessage,
    RequestCode.SEND_MESSAGE_V2: SendMessageV2,
    RequestCode.SEND_BATCH_MESSAGE: SendBatchMessage,
}

_REPLACED: Final = (b"MSG_REGION", b"TRACE_ON", b"POP_CK", b"CLUSTER")

_V2: Final = RequestCode.SEND_MESSAGE_V2


class _Kept(NamedTuple):
    """A send that is not plain."""

    later: LaterAnswer
    message: PutMessage
    batch: Sequence[BatchElement] | Batch | None
    queue_id: int  # as the client is told: not that of the dead-letter topic
    unique_key: str
    waits: bool  # for an answer until it is safe
    number: Number | None = None  # of a producer that numbers its messages


class SendProcessor:
    """Checks and stores messages."""

    def __init__(
        self,
        store: MessageStore,
        tables: Tables,
        identity: BrokerIdentity,
        clock: Clock,
        rules: PutRules,
        answers: SendAnswers,
        duplicates: DuplicateWindow,
    ) -> None:
        self._store = store
        self._topics = tables.topics
        self._groups = tables.groups
        self._locks = tables.locks
        self._duplicates = duplicates
        self._identity = identity
        self._clock = clock
        self._rules = rules
        self._unique_keys = UniqueKeyGenerator(identity.store_host.address)
        trace = "true" if identity.trace_on else "false"
        self._added = b"".join(
            with_property(b"", name, value.encode())
            for name, value in (
                (b"MSG_REGION", identity.region),
                (b"TRACE_ON", trace),
                (b"CLUSTER", identity.cluster_name),
            )
        )
        self._answers = answers
        self._plain = PlainSends(store, tables.topics, rules, answers, identity.broker_name, self._added)
        self._batches = PlainBatches(store, tables.topics, self._plain, answers)

    def handlers(self) -> Handlers:
        return (serve_raw(_HEADERS, self.send),)

    # ── a request ────────────────────────────────────────────────────────────────────────────────────────────────────

    def send(self, peer: Peer, request: RemotingCommand) -> LaterAnswer:
        """Keep a message for the end of the turn; raises the refusals of broker, topic and message."""
        later = None
        if request.__class__ is ShapedSend and request.shape.memo.__class__ is KnownBatch:
            later = self._batches.keep(peer, request)
        elif request.code == _V2:
            self._batches.store()  # came before this one
            later = self._plain.keep(peer, request)
        if later is not None:
            return later
        self._answers.began = self._answers.began or perf_counter()
        self._plain.store()  # came before this one, or
        self._batches.store()
        header = _HEADERS[request.code].from_fields(request.ext_fields)
        try:
            kept = self._checked(peer, request, header)
        except MalformedBody:  # in RocketMQ an exception that nobody foresaw: its answer has no fields
            raise
        except RequestError as error:
            error.ext_fields = self._answers.refusal_fields
            raise
        self._put(kept)
        self._plain.learn(request, header, kept.message)
        self._batches.learn(request, header, kept.message)
        return kept.later

    def send_run(self, peer: Peer, requests: Sequence[RemotingCommand]) -> LaterRun | None:
        """The same for the first of these, as many as are plain; None when the first is not."""
        first = requests[0]
        if first.__class__ is ShapedSend and first.shape.memo.__class__ is KnownBatch:
            return None
        self._batches.store()  # came before these
        return self._plain.keep_run(peer, requests)

    def _checked(self, peer: Peer, request: RemotingCommand, header: SendMessage) -> _Kept:
        if not request.body:
            raise MalformedBody("the message has no body")  # RocketMQ: a NullPointerException
        origin = origin_of(peer)
        topic = self._topics.sendable(
            header.topic,
            header.queue_id,
            template=header.default_topic,
            template_queues=header.default_topic_queue_nums,
            unit_mode=header.unit_mode,
            producer=origin.text,
            host=peer.remote_address.host,
        )
        queue_id = header.queue_id if header.queue_id >= 0 else random.randrange(max(topic.write_queues, 1))
        properties = (header.properties or "").encode()
        check_own_properties(properties, header.sys_flag)
        if b"_SYS_MSG_PRIORITY_" in properties and not header.batch:
            queue_id, properties = queue_by_priority(properties, queue_id, topic.write_queues)
        wait = find_property(properties, b"WAIT") if self._answers.wait else b"false"
        body = request.body
        message = PutMessage(
            topic.name,
            queue_id,
            body if isinstance(body, bytes) else bytes(body),
            properties,
            header.flag,
            _sys_flag(header, topic),
            header.born_timestamp,
            origin.born_host,
            header.reconsume_times or 0,
        )
        batch: Sequence[BatchElement] | Batch | None = None
        unique_key = ""
        if header.batch:
            batch = messages_of_batch(header.topic, message)
            # One look at all of them, instead of one each.
            if self._rules.minds_type(topic) or message.body.find(b"INNER_") >= 0:
                self._check_each(topic, batch)
            unique_key = (find_property(properties, b"UNIQ_KEY") or b"").decode()  # that of the batch; 4.9 has none
            if self._rules.refuses_in_batch(properties):
                raise put_refusal(PutStatus.MESSAGE_ILLEGAL, self._store.config.max_message_size, "")
            if unique_key and topic.has_batch_queues:
                self._keep_whole(message, batch.messages if isinstance(batch, EvenBatch | BatchColumns) else len(batch))
                batch = None
        else:
            check_key(topic, properties)
            self._rules.check_types(topic, (properties,))
            unique_key, message.properties = self._completed(properties)
            if header.topic.startswith(RETRY_PREFIX):
                self._redirect_dead_letter(message, header, request.version)
            if is_special(properties):
                self._rules.apply(message)
        number = None
        if SEND_SEQUENCE in properties and not header.batch:
            number = number_of(header.topic, queue_id, properties)
        return _Kept(LaterAnswer(request), message, batch, queue_id, unique_key, wait != b"false", number)

    def _check_each(self, topic: TopicConfig, batch: Sequence[BatchElement] | Batch) -> None:
        elements = batch.elements() if isinstance(batch, EvenBatch | BatchColumns) else batch
        for element in elements:
            check_own_properties(element.properties)
        self._rules.check_types(topic, (element.properties for element in elements))

    def _keep_whole(self, message: PutMessage, count: int) -> None:
        """A batch for queues of batches is one record, which consumers unwrap; the store numbers its messages."""
        message.sys_flag |= flags.INNER_BATCH | flags.NEED_UNWRAP
        cluster = self._identity.cluster_name.encode()
        properties = with_property(without_property(message.properties, b"CLUSTER"), b"CLUSTER", cluster)
        message.properties = with_property(without_property(properties, b"INNER_NUM"), b"INNER_NUM", b"%d" % count)

    def _completed(self, properties: bytes) -> tuple[str, bytes]:
        """The unique key, and the properties with what the broker adds."""
        for name in _REPLACED:
            if name in properties:
                properties = without_property(properties, name)
        found = find_property(properties, b"UNIQ_KEY")
        unique_key = found.decode() if found is not None else self._unique_keys.next(self._clock.now_ms())
        if found is None:
            properties = with_property(properties, b"UNIQ_KEY", unique_key.encode())
        elif properties[-1] != 2:
            properties += b"\x02"
        return unique_key, properties + self._added

    def _redirect_dead_letter(self, message: PutMessage, header: SendMessage, version: int) -> None:
        """A message that a client itself sends back too often goes where nobody consumes."""
        name = header.topic.removeprefix(RETRY_PREFIX)
        group = self._groups.retrying(name)
        most = group.retry_max_times
        if version >= Version.V3_4_9 and header.max_reconsume_times is not None:
            most = header.max_reconsume_times
        if (header.reconsume_times or 0) > most or self._locks.are_held(name):
            message.topic = self._topics.ensure(DLQ_PREFIX + name, 1).name
            message.queue_id = 0
            message.properties = with_property(without_property(message.properties, b"DELAY"), b"DELAY", b"-1")

    # ── storing ──────────────────────────────────────────────────────────────────────────────────────────────────────

    def end_turn(self) -> None:
        """Store and answer the plain sends of the turn."""
        self._plain.store()  # or
        self._batches.store()
        self._answers.end_turn()

    def _put(self, kept: _Kept) -> None:
        """Store what is not plain, and answer."""
        if kept.waits and self._answers.is_short_of_copies():
            self._answers.refuse(kept.later, PutStatus.IN_SYNC_REPLICAS_NOT_ENOUGH)
            return
        if kept.batch is not None:
            self._put_batch(kept, kept.batch)
            return
        if kept.number is not None:
            first = self._duplicates.find(kept.number, kept.unique_key)
            if first is not None:
                repeated = Stored(kept.later, *first[:-1])
                self._answers.confirm_stored(repeated, first.end_offset, waits=kept.waits)
                return
        self._put_single(kept)

    def _put_single(self, kept: _Kept) -> None:
        result = self._store.put(kept.message, is_confirmed_later=True)
        if result.status is not PutStatus.PUT_OK:
            self._answers.refuse(kept.later, result.status)
            return
        message_id = f"{self._answers.id_prefix}{result.physical_offset:016X}"
        handle = ""
        if kept.message.topic == TIMER_TOPIC:
            handle = recall_handle(kept.message.properties, self._identity.broker_name, kept.unique_key)
        if kept.number is not None:
            receipt = Receipt(
                kept.unique_key, kept.queue_id, message_id, result.queue_offset, handle, result.end_offset
            )
            self._duplicates.remember(kept.number, receipt)
        is_batch = kept.message.sys_flag & flags.INNER_BATCH != 0
        stored = Stored(kept.later, kept.unique_key, kept.queue_id, message_id, result.queue_offset, handle, is_batch)
        self._answers.confirm_stored(stored, result.end_offset, waits=kept.waits)

    def _put_batch(self, kept: _Kept, batch: Sequence[BatchElement] | Batch) -> None:
        result = self._store.intake.put_batch(kept.message, batch)
        if result.status is not PutStatus.PUT_OK:
            self._answers.refuse(kept.later, result.status)
            return
        ids = self._answers.message_ids(result.physical_offsets)[:-1]
        stored = Stored(kept.later, kept.unique_key, kept.queue_id, ids, result.first_queue_offset)
        self._answers.confirm_stored(stored, result.end_offset, waits=kept.waits)


def messages_of_batch(topic: str, message: PutMessage) -> list[BatchElement] | Batch:
    """The messages of a batch; raises the refusals that only batches know.

    Large ones as they came: there may be 180,000 in 4 MB, and nobody else is served while each becomes an object.
    """
    if len(topic) > MAX_TOPIC_BYTES:
        raise MessageIllegal(f"message topic length too long {len(topic)}")
    if topic.startswith(RETRY_PREFIX):
        raise MessageIllegal(f"batch request does not support retry group {topic}")
    try:
        return batch_of(message.body) if len(message.body) >= LARGE_FROM else decode_batch(message.body)
    except DataError as error:
        raise MalformedBody(f"the batch is broken: {error}") from None


def _sys_flag(header: SendMessage, topic: TopicConfig) -> int:
    return header.sys_flag | flags.MULTI_TAGS if topic.filter_type == MULTI_TAG else header.sys_flag
