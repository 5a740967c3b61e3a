"""SEND_MESSAGE in its three forms: one message, the same with short names, a batch.

    plain message      a lane is known for it ─▶ one row ─┐
    one that waits     the same; its row is for the queue in which delayed messages and timers wait
    end of the turn    all rows ─▶ one append ─▶ answers, which leave with the turn's write ─▶ dispatch
    all others         checked and put at once, after the rows that came before them
    SYNC_FLUSH         answers wait for the flusher; one callback for all of a turn

A *lane* is what was found out for a message once and holds for all that look the same: its topic may be sent to, its
queue exists, nothing but its time, properties and body is its own. Most messages are second to a lane.

The properties of a message are text that passes through: the broker adds its own at the end and looks for a few names.
"""

import contextlib
import logging
import random
from collections.abc import Sequence
from operator import itemgetter
from typing import Final, NamedTuple

from skyrocket.broker.rules.put_refusals import put_refusal
from skyrocket.broker.rules.put_rules import PutRules, check_key, is_compacted, is_special, queue_by_priority
from skyrocket.broker.send.duplicate_window import DuplicateWindow, Number, Receipt, number_of
from skyrocket.broker.send.send_answers import SendAnswers, Stored
from skyrocket.broker.send.waiting_places import Destination, Postponed, WaitingPlaces
from skyrocket.broker.state.identity import BrokerIdentity, packed_host
from skyrocket.broker.state.tables import Tables
from skyrocket.clock import Clock
from skyrocket.config.sections import FlushDiskType
from skyrocket.errors import DataError
from skyrocket.format import sys_flag as flags
from skyrocket.format.batch import BatchElement, decode_batch
from skyrocket.format.message_id import UniqueKeyGenerator
from skyrocket.format.properties import MAX_BYTES as MAX_PROPERTIES_BYTES
from skyrocket.format.properties import find_property, with_property, without_property
from skyrocket.format.property_bytes import SEND_SEQUENCE
from skyrocket.format.recall_handle import recall_handle
from skyrocket.format.record import pack_host
from skyrocket.model.topic import DLQ_PREFIX, MAX_TOPIC_BYTES, RETRY_PREFIX, SCHEDULE_TOPIC, TIMER_TOPIC
from skyrocket.model.topic_config import MULTI_TAG, TopicConfig
from skyrocket.protocol.codes import RequestCode, Version
from skyrocket.protocol.command import RemotingCommand
from skyrocket.protocol.errors import MalformedBody, MessageIllegal, RequestError, SystemFailure
from skyrocket.protocol.requests.messaging import SendBatchMessage, SendMessage, SendMessageV2
from skyrocket.protocol.send_shapes import ShapedSend
from skyrocket.remoting.answers import LaterAnswer
from skyrocket.remoting.peer import Peer
from skyrocket.remoting.serving import Handlers, serve_raw
from skyrocket.store.commit_log import PutMessage
from skyrocket.store.message_store import MessageStore
from skyrocket.store.record_tuples import PHYSICAL_OFFSET, QUEUE, QUEUE_OFFSET, Row, end_offset
from skyrocket.store.results import PutStatus

_logger = logging.getLogger(__name__)

_HEADERS: Final[dict[int, type[SendMessage]]] = {
    RequestCode.SEND_MESSAGE: SendMessage,
    RequestCode.SEND_MESSAGE_V2: SendMessageV2,
    RequestCode.SEND_BATCH_MESSAGE: SendBatchMessage,
}

_ORIGIN: Final = "broker.send.origin"
_REPLACED: Final = (b"MSG_REGION", b"TRACE_ON", b"POP_CK", b"CLUSTER")

_V2: Final = RequestCode.SEND_MESSAGE_V2
# What makes two messages look the same: all fields of the short form but time, properties and what only retries use.
_shape: Final = itemgetter("a", "b", "c", "d", "e", "f", "h", "j", "k", "m")
_MAX_LANES: Final = 20_000
_WAITING_ROOMS: Final = (TIMER_TOPIC, SCHEDULE_TOPIC)
_MAX_PLAIN_PROPERTIES: Final = 32_000  # with what the broker adds they still fit into a record


class _Origin(NamedTuple):
    """Where the messages of a connection come from, worked out once."""

    text: str
    born_host: bytes


class _Lane(NamedTuple):
    """What holds for all messages of one shape."""

    destination: Destination
    flag: int
    sys_flag: int
    generation: int  # of the topic table for which this holds


class _Kept(NamedTuple):
    """A send that is not plain."""

    later: LaterAnswer
    message: PutMessage
    elements: Sequence[BatchElement] | None  # of a batch
    queue_id: int  # as the client is told: not that of the dead-letter topic
    unique_key: str
    waits_for_disk: bool
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
        duplicates: DuplicateWindow | None = None,
    ) -> None:
        self._store = store
        self._topics = tables.topics
        self._groups = tables.groups
        self._locks = tables.locks
        self._duplicates = duplicates or DuplicateWindow()
        self._identity = identity
        self._clock = clock
        self._rules = rules
        self._lanes: dict[tuple[str, ...], _Lane] = {}
        self._rows: list[Row] = []
        self._rows_of = -1  # the generation of the topic table for which they hold
        self._senders: list[tuple[LaterAnswer, str]] = []  # of the rows; with the unique key
        self._postponed: dict[int, Postponed] = {}  # by number of the row: those that wait for their time
        self._max_body = -1  # of a plain message
        self._waiting: list[Stored] = []  # in the log, to be confirmed when on disk
        self._waiting_end = 0
        self._waits = store.config.flush_disk_type is FlushDiskType.SYNC_FLUSH
        self._answers = SendAnswers(store, identity)
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
        self._places = WaitingPlaces(rules, identity.broker_name, self._added)

    def handlers(self) -> Handlers:
        return (serve_raw(_HEADERS, self.send),)

    # ── a request ────────────────────────────────────────────────────────────────────────────────────────────────────

    def send(self, peer: Peer, request: RemotingCommand) -> LaterAnswer:
        """Keep a message for the end of the turn; raises the refusals of broker, topic and message."""
        if request.code == _V2:
            later = self._keep_plain(peer, request)
            if later is not None:
                return later
        self._store_rows()
        header = _HEADERS[request.code].from_fields(request.ext_fields)
        try:
            kept = self._checked(peer, request, header)
        except MalformedBody:  # in RocketMQ an exception that nobody foresaw: its answer has no fields
            raise
        except RequestError as error:
            error.ext_fields = self._answers.refusal_fields
            raise
        self._put(kept)
        self._remember(request, header, kept)
        return kept.later

    def _keep_plain(self, peer: Peer, request: RemotingCommand) -> LaterAnswer | None:
        """Make a row of a message that looks like one seen before; None when it needs a closer look."""
        lane: _Lane | None
        if request.__class__ is ShapedSend:
            lane, text, born = request.shape.memo, request.properties, request.born
        else:
            fields = request.ext_fields
            try:
                lane = self._lanes.get(_shape(fields))  # type: ignore[arg-type]
                text, born = fields["i"].encode(), fields["g"].encode()  # type: ignore[index]
            except (KeyError, TypeError, UnicodeEncodeError):
                return None
        if lane is None or lane.generation != self._topics.generation:
            return None
        at = text.rfind(b"UNIQ_KEY\1")
        end = text.find(b"\2", at)
        if (
            at < 0
            or end < at + 10
            or (at and text[at - 1] != 2)
            or text[-1] != 2
            or len(text) > _MAX_PLAIN_PROPERTIES
            or not born.isdigit()
            or len(born) > 18
            or b"MSG" in text  # TRAN_MSG, MSG_REGION
            or b"TRACE_ON" in text
            or b"POP_CK" in text
            or b"CLUSTER" in text
            or (self._waits and b"WAIT\1false" in text)
        ):
            return None
        body = request.body
        if not self._rows:
            self._max_body = self._store.max_plain_body
        if not 0 < len(body) <= self._max_body:
            return None
        key, properties = lane.destination.key, text + self._added
        unique_key = text[at + 9 : end]
        postponed = None
        if b"DELAY" in text or b"TIMER_" in text:
            try:
                key, properties, postponed = self._places.find(lane.destination, text, unique_key)
            except RequestError as error:
                error.ext_fields = self._answers.refusal_fields
                raise
        queue = self._store.queues.by_key.get(key)
        if queue is None or not queue.simple or len(properties) > MAX_PROPERTIES_BYTES:
            return None
        later = LaterAnswer(request)
        if postponed is not None:
            self._postponed[len(self._rows)] = postponed
        self._senders.append((later, unique_key.decode()))
        self._rows.append(
            (
                queue,
                body if body.__class__ is bytes else bytes(body),
                properties,
                lane.flag,
                lane.sys_flag,
                int(born),
                _origin(peer).born_host,
                0,
                0,
                None,
                1,
            )
        )
        self._rows_of = lane.generation
        return later

    def _remember(self, request: RemotingCommand, header: SendMessage, kept: _Kept) -> None:
        """Let those that look like this one be plain."""
        if (
            request.code != _V2
            or header.batch
            or header.reconsume_times
            or header.queue_id < 0
            or (
                kept.message.topic != header.topic and kept.message.topic not in _WAITING_ROOMS
            )  # a half, a dead letter
            or header.topic.startswith(RETRY_PREFIX)
            or header.topic in _WAITING_ROOMS
            or kept.message.sys_flag & (flags.TRANSACTION_MASK | flags.INNER_BATCH)
            or header.max_reconsume_times is not None
            or is_compacted(self._topics.topics[header.topic])  # each must have a key
            or self._rules.minds_type(self._topics.topics[header.topic])  # each must be of the type
        ):
            return
        destination = self._places.destination(header.topic, header.queue_id)
        lane = _Lane(destination, header.flag, kept.message.sys_flag, self._topics.generation)
        if isinstance(request, ShapedSend):
            request.shape.memo = lane
            return
        if len(self._lanes) >= _MAX_LANES:
            self._lanes.clear()
        assert request.ext_fields is not None
        with contextlib.suppress(KeyError):  # clients that leave fields out have no lanes
            self._lanes[_shape(request.ext_fields)] = lane

    def _checked(self, peer: Peer, request: RemotingCommand, header: SendMessage) -> _Kept:
        if not request.body:
            raise MalformedBody("the message has no body")  # RocketMQ: a NullPointerException
        origin = _origin(peer)
        topic = self._topics.sendable(
            header.topic,
            header.queue_id,
            template=header.default_topic,
            template_queues=header.default_topic_queue_nums,
            unit_mode=header.unit_mode,
            producer=origin.text,
        )
        queue_id = header.queue_id if header.queue_id >= 0 else random.randrange(max(topic.write_queues, 1))
        properties = (header.properties or "").encode()
        if b"_SYS_MSG_PRIORITY_" in properties and not header.batch:
            queue_id, properties = queue_by_priority(properties, queue_id, topic.write_queues)
        wait = find_property(properties, b"WAIT") if self._waits else b"false"
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
        elements: Sequence[BatchElement] | None = None
        unique_key = ""
        if header.batch:
            elements = batch_elements(header.topic, message)
            unique_key = (find_property(properties, b"UNIQ_KEY") or b"").decode()  # that of the batch; 4.9 has none
            self._rules.check_types(topic, (element.properties for element in elements))
            if self._rules.refuses_in_batch(properties):
                raise put_refusal(PutStatus.MESSAGE_ILLEGAL, self._store.config.max_message_size, "")
            if unique_key and topic.has_batch_queues:
                self._keep_whole(message, len(elements))
                elements = None
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
        return _Kept(LaterAnswer(request), message, elements, queue_id, unique_key, wait != b"false", number)

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

    def store_kept(self) -> None:
        """The turn ends: store its rows, in the order of arrival, and answer."""
        self._store_rows()
        if self._waiting:
            waiting, self._waiting = self._waiting, []
            self._answers.confirm_when_durable(waiting, self._waiting_end)

    def _store_rows(self) -> None:
        if not self._rows:
            return
        rows, senders, postponed = self._rows, self._senders, self._postponed
        self._rows, self._senders, self._postponed = [], [], {}
        try:
            if self._rows_of != self._topics.generation:  # a topic was changed or deleted in this very turn
                for number, (row, (later, unique_key)) in enumerate(zip(rows, senders, strict=True)):
                    self._put(_kept_of(row, later, unique_key, self._waits, postponed.get(number)))
                return
            self._put_rows(rows, senders, postponed)
        except Exception as error:
            _logger.exception("messages could not be stored count=%d", len(rows))
            for later, _ in senders:
                if later.is_open:
                    later.refuse(SystemFailure(f"store putMessage failed: {error}"))
            return

    def _put_rows(
        self, rows: list[Row], senders: list[tuple[LaterAnswer, str]], postponed: dict[int, Postponed]
    ) -> None:
        items, refused = self._store.put_rows(rows)
        prefix, head = self._answers.id_prefix, self._answers.single_head
        if self._waits or postponed:
            for number, ((later, unique_key), item) in enumerate(zip(senders, items, strict=False)):
                message_id = f"{prefix}{item[PHYSICAL_OFFSET]:016X}"
                queue_id, handle = postponed.get(number) or (item[QUEUE].queue_id, "")
                stored = Stored(later, unique_key, queue_id, message_id, item[QUEUE_OFFSET], handle)
                if self._waits:
                    self._waiting.append(stored)
                    self._waiting_end = end_offset(item)
                else:
                    self._answers.confirm(stored)
        else:
            for (later, unique_key), (queue, start, _, _, offset, _, _) in zip(senders, items, strict=False):
                message_id = f"{prefix}{start:016X}"
                later.fill(head(later.request.opaque, 0, unique_key, queue.queue_id, message_id, offset))
        for (later, _), result in zip(senders[len(items) :], refused, strict=True):
            self._answers.refuse(later, result.status)

    def _put(self, kept: _Kept) -> None:
        """Store what is not plain."""
        stored = self._put_single(kept) if kept.elements is None else self._put_batch(kept, kept.elements)
        if stored is not None and not kept.waits_for_disk:
            self._answers.confirm(stored)
        elif stored is not None:
            self._waiting.append(stored)

    def _put_single(self, kept: _Kept) -> Stored | None:
        if kept.number is not None:
            first = self._duplicates.find(kept.number, kept.unique_key)
            if first is not None:
                self._waiting_end = max(self._waiting_end, first.end_offset)
                return Stored(kept.later, *first[:-1])
        result = self._store.put(kept.message)
        if result.status is not PutStatus.PUT_OK:
            self._answers.refuse(kept.later, result.status)
            return None
        self._waiting_end = max(self._waiting_end, result.end_offset)
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
        return Stored(kept.later, kept.unique_key, kept.queue_id, message_id, result.queue_offset, handle, is_batch)

    def _put_batch(self, kept: _Kept, elements: Sequence[BatchElement]) -> Stored | None:
        result = self._store.put_batch(kept.message, elements)
        if result.status is not PutStatus.PUT_OK:
            self._answers.refuse(kept.later, result.status)
            return None
        self._waiting_end = max(self._waiting_end, result.end_offset)
        prefix = self._answers.id_prefix
        ids = ",".join([f"{prefix}{offset:016X}" for offset in result.physical_offsets])
        return Stored(kept.later, kept.unique_key, kept.queue_id, ids, result.first_queue_offset)


def batch_elements(topic: str, message: PutMessage) -> list[BatchElement]:
    """The messages of a batch; raises the refusals that only batches know."""
    if len(topic) > MAX_TOPIC_BYTES:
        raise MessageIllegal(f"message topic length too long {len(topic)}")
    if topic.startswith(RETRY_PREFIX):
        raise MessageIllegal(f"batch request does not support retry group {topic}")
    try:
        return decode_batch(message.body)
    except DataError as error:
        raise MalformedBody(f"the batch is broken: {error}") from None


def _kept_of(row: Row, later: LaterAnswer, unique_key: str, waits: bool, postponed: Postponed | None) -> _Kept:
    queue, body, properties, flag, sys_flag, born_timestamp, born_host, *_ = row
    message = PutMessage(queue.topic, queue.queue_id, body, properties, flag, sys_flag, born_timestamp, born_host)
    queue_id = queue.queue_id if postponed is None else postponed.queue_id
    return _Kept(later, message, None, queue_id, unique_key, waits)


def _sys_flag(header: SendMessage, topic: TopicConfig) -> int:
    return header.sys_flag | flags.MULTI_TAGS if topic.filter_type == MULTI_TAG else header.sys_flag


def _origin(peer: Peer) -> _Origin:
    origin: _Origin | None = peer.attributes.get(_ORIGIN)
    if origin is None:
        address = peer.remote_address
        origin = peer.attributes[_ORIGIN] = _Origin(str(address), pack_host(packed_host(address)))
    return origin
