"""SEND_MESSAGE in its three forms: one message, the same with short names, a batch.

    handler            check, build the message, keep it
    end of the turn    all that were kept ─▶ one put_group ─▶ answers, which leave with the turn's write ─▶ dispatch
    SYNC_FLUSH         answers wait for the flusher; one callback for all of a turn

The properties of a message are bytes that pass through: the broker adds its own at the end and looks for a few names.
"""

import asyncio
import contextlib
import logging
import random
from collections.abc import Callable, Sequence
from typing import Final, NamedTuple

from skyrocket.broker.identity import BrokerIdentity, packed_host
from skyrocket.broker.processors.put_refusals import put_refusal
from skyrocket.broker.state.queue_locks import QueueLocks
from skyrocket.broker.state.subscription_groups import SubscriptionGroupTable
from skyrocket.broker.state.topics import TopicTable
from skyrocket.clock import Clock
from skyrocket.config.sections import FlushDiskType
from skyrocket.errors import DataError
from skyrocket.format import sys_flag as flags
from skyrocket.format.batch import BatchElement, decode_batch
from skyrocket.format.message_id import UniqueKeyGenerator
from skyrocket.format.properties import find_property, with_property, without_property
from skyrocket.format.record import pack_host
from skyrocket.model.topic import DLQ_PREFIX, MAX_TOPIC_BYTES, RETRY_PREFIX
from skyrocket.model.topic_config import MULTI_TAG, TopicConfig
from skyrocket.protocol.answer_template import AnswerTemplate
from skyrocket.protocol.codes import RequestCode, ResponseCode, SerializeType, Version
from skyrocket.protocol.command import RemotingCommand
from skyrocket.protocol.errors import MessageIllegal, NoPermission, RequestError, SystemFailure
from skyrocket.protocol.requests.messaging import SendBatchMessage, SendMessage, SendMessageAnswer, SendMessageV2
from skyrocket.remoting.answers import LaterAnswer
from skyrocket.remoting.peer import Peer
from skyrocket.store.commit_log import PutMessage
from skyrocket.store.message_store import MessageStore
from skyrocket.store.results import PutStatus

_logger = logging.getLogger(__name__)

_HEADERS: Final[dict[int, type[SendMessage]]] = {
    RequestCode.SEND_MESSAGE: SendMessage,
    RequestCode.SEND_MESSAGE_V2: SendMessageV2,
    RequestCode.SEND_BATCH_MESSAGE: SendBatchMessage,
}
SEND_CODES: Final = tuple(_HEADERS)

_ORIGIN: Final = "broker.send.origin"
_TIMER_PROPERTIES: Final = (b"TIMER_DELAY_SEC", b"TIMER_DELAY_MS", b"TIMER_DELIVER_MS")
_REPLACED: Final = (b"MSG_REGION", b"TRACE_ON", b"POP_CK", b"CLUSTER")


class _Origin(NamedTuple):
    """Where the messages of a connection come from, worked out once."""

    text: str
    born_host: bytes


class _Kept(NamedTuple):
    """A send that waits for the end of its turn."""

    later: LaterAnswer
    message: PutMessage
    elements: Sequence[BatchElement] | None  # of a batch
    queue_id: int  # as the client is told: not that of the dead-letter topic
    unique_key: str
    waits_for_disk: bool


class _Stored(NamedTuple):
    """A send that is in the log, and what its answer says."""

    kept: _Kept
    message_ids: str
    queue_offset: int


class SendProcessor:
    """Checks and stores messages; `after_put` is called when messages are in the log, so that they are dispatched."""

    def __init__(
        self,
        store: MessageStore,
        topics: TopicTable,
        groups: SubscriptionGroupTable,
        locks: QueueLocks,
        identity: BrokerIdentity,
        clock: Clock,
        after_put: Callable[[], None],
    ) -> None:
        self._store = store
        self._topics = topics
        self._groups = groups
        self._locks = locks
        self._identity = identity
        self._clock = clock
        self._after_put = after_put
        self._kept: list[_Kept] = []
        self._waits = store.config.flush_disk_type is FlushDiskType.SYNC_FLUSH
        host = identity.store_host
        self._id_prefix = (host.address + host.port.to_bytes(4, "big")).hex().upper()
        self._unique_keys = UniqueKeyGenerator(host.address)
        trace = "true" if identity.trace_on else "false"
        self._refusal_fields = {"MSG_REGION": identity.region, "TRACE_ON": trace}
        self._added = b"".join(
            with_property(b"", name, value.encode())
            for name, value in (
                (b"MSG_REGION", identity.region),
                (b"TRACE_ON", trace),
                (b"CLUSTER", identity.cluster_name),
            )
        )
        constants = {"region": identity.region, "trace_on": trace}
        attributes = ("queue_id", "msg_id", "queue_offset")
        self._single_head = AnswerTemplate(SendMessageAnswer, ("transaction_id", *attributes), constants=constants).head
        self._batch_head = AnswerTemplate(SendMessageAnswer, attributes, constants=constants).head

    # ── a request ────────────────────────────────────────────────────────────────────────────────────────────────────

    def send(self, peer: Peer, request: RemotingCommand) -> LaterAnswer:
        """Keep a message for the end of the turn; raises the refusals of broker, topic and message."""
        header = _HEADERS[request.code].from_fields(request.ext_fields)
        try:
            kept = self._checked(peer, request, header)
        except RequestError as error:
            error.ext_fields = self._refusal_fields
            raise
        self._kept.append(kept)
        return kept.later

    def _checked(self, peer: Peer, request: RemotingCommand, header: SendMessage) -> _Kept:
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
        else:
            self._check_kind(properties)
            unique_key, message.properties = self._completed(properties)
            if header.topic.startswith(RETRY_PREFIX):
                self._redirect_dead_letter(message, header, request.version)
        return _Kept(LaterAnswer(request), message, elements, queue_id, unique_key, wait != b"false")

    def _check_kind(self, properties: bytes) -> None:
        """What this broker does not serve yet is refused: a delayed message must not arrive at once."""
        if b"TRAN_MSG\x01" in properties and find_property(properties, b"TRAN_MSG") == b"true":
            host = self._identity.address.host
            raise NoPermission(f"the broker[{host}] sending transaction message is forbidden")
        if b"DELAY\x01" in properties and (find_property(properties, b"DELAY") or b"0").strip() not in (b"0", b"-1"):
            raise SystemFailure("delay levels are not served by this broker")
        if b"TIMER_DEL" in properties and any(find_property(properties, name) for name in _TIMER_PROPERTIES):
            raise SystemFailure("accurate timer message is not enabled, timerWheelEnable is false")

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

    # ── the end of the turn ──────────────────────────────────────────────────────────────────────────────────────────

    def store_kept(self) -> None:
        """Store what the turn has brought, in the order of arrival, and answer."""
        if not self._kept:
            return
        kept, self._kept = self._kept, []
        stored: list[_Stored] = []
        try:
            end_offset = self._put_all(kept, stored)
        except Exception as error:
            _logger.exception("messages could not be stored count=%d", len(kept))
            for lost in kept:
                if lost.later.is_open:
                    lost.later.refuse(SystemFailure(f"store putMessage failed: {error}"))
            return
        waiting = [each for each in stored if each.kept.waits_for_disk]
        for each in stored:
            if not each.kept.waits_for_disk:
                self._confirm(each)
        if waiting:
            self._confirm_when_durable(waiting, end_offset)
        self._after_put()

    def _put_all(self, kept: Sequence[_Kept], stored: list[_Stored]) -> int:
        """Groups of single messages with batches between them; returns where the last record ends."""
        end_offset, at = 0, 0
        while at < len(kept):
            until = at
            while until < len(kept) and kept[until].elements is None:
                until += 1
            if until == at:
                end_offset = max(end_offset, self._put_batch(kept[at], stored))
                at += 1
                continue
            group = kept[at:until]
            prefix = self._id_prefix
            for each, result in zip(group, self._store.put_group([each.message for each in group]), strict=True):
                if result.status is PutStatus.PUT_OK:
                    stored.append(_Stored(each, f"{prefix}{result.physical_offset:016X}", result.queue_offset))
                    end_offset = result.end_offset
                else:
                    self._refuse(each, result.status)
            at = until
        return end_offset

    def _put_batch(self, kept: _Kept, stored: list[_Stored]) -> int:
        assert kept.elements is not None
        result = self._store.put_batch(kept.message, kept.elements)
        if result.status is not PutStatus.PUT_OK:
            self._refuse(kept, result.status)
            return 0
        ids = ",".join(f"{self._id_prefix}{offset:016X}" for offset in result.physical_offsets)
        stored.append(_Stored(kept, ids, result.first_queue_offset))
        return result.end_offset

    def _refuse(self, kept: _Kept, status: PutStatus) -> None:
        error = put_refusal(status, self._store.config.max_message_size, self._store.paths.root)
        error.ext_fields = self._refusal_fields
        kept.later.refuse(error)

    def _confirm(self, stored: _Stored) -> None:
        kept, message_ids, queue_offset = stored
        later, request = kept.later, kept.later.request
        if request.serialize_type is not SerializeType.JSON:
            later.fill(request.answer(ResponseCode.SUCCESS, None, self._answer_fields(stored)))
        elif kept.elements is None:
            later.fill(self._single_head(request.opaque, 0, kept.unique_key, kept.queue_id, message_ids, queue_offset))
        else:
            later.fill(self._batch_head(request.opaque, 0, kept.queue_id, message_ids, queue_offset))

    def _answer_fields(self, stored: _Stored) -> dict[str, str]:
        kept = stored.kept
        return SendMessageAnswer(
            region=self._refusal_fields["MSG_REGION"],
            trace_on=self._refusal_fields["TRACE_ON"],
            msg_id=stored.message_ids,
            queue_id=kept.queue_id,
            queue_offset=stored.queue_offset,
            transaction_id=kept.unique_key or None,
        ).to_fields()

    # ── SYNC_FLUSH ───────────────────────────────────────────────────────────────────────────────────────────────────

    def _confirm_when_durable(self, waiting: list[_Stored], end_offset: int) -> None:
        loop = asyncio.get_running_loop()
        timer = loop.call_later(self._store.config.sync_flush_timeout_ms / 1000, self._too_late, waiting)

        def settled(ok: bool) -> None:
            timer.cancel()
            self._settled(waiting, ok)

        def flushed(ok: bool) -> None:  # in the flusher's thread
            with contextlib.suppress(RuntimeError):  # the loop has ended, nobody waits
                loop.call_soon_threadsafe(settled, ok)

        self._store.when_durable(end_offset, flushed)

    def _settled(self, waiting: list[_Stored], ok: bool) -> None:
        for each in waiting:
            if not each.kept.later.is_open:
                continue
            if ok:
                self._confirm(each)
            else:
                self._refuse(each.kept, PutStatus.SERVICE_NOT_AVAILABLE)
        self._after_put()

    def _too_late(self, waiting: list[_Stored]) -> None:
        for each in waiting:
            if each.kept.later.is_open:
                # RocketMQ: stored, so the answer has all fields; only its code is another.
                request = each.kept.later.request
                each.kept.later.fill(request.answer(ResponseCode.FLUSH_DISK_TIMEOUT, None, self._answer_fields(each)))


def batch_elements(topic: str, message: PutMessage) -> list[BatchElement]:
    """The messages of a batch; raises the refusals that only batches know."""
    if len(topic) > MAX_TOPIC_BYTES:
        raise MessageIllegal(f"message topic length too long {len(topic)}")
    if topic.startswith(RETRY_PREFIX):
        raise MessageIllegal(f"batch request does not support retry group {topic}")
    try:
        return list(decode_batch(message.body))
    except DataError as error:
        raise SystemFailure(f"the batch is broken: {error}") from None


def _sys_flag(header: SendMessage, topic: TopicConfig) -> int:
    return header.sys_flag | flags.MULTI_TAGS if topic.filter_type == MULTI_TAG else header.sys_flag


def _origin(peer: Peer) -> _Origin:
    origin: _Origin | None = peer.attributes.get(_ORIGIN)
    if origin is None:
        address = peer.remote_address
        origin = peer.attributes[_ORIGIN] = _Origin(str(address), pack_host(packed_host(address)))
    return origin
