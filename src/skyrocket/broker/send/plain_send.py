"""The common send: it looks like one that was checked before, becomes a row, and is stored with all rows of its turn.

    send ─▶ a KnownSend is found for it ─▶ one row ─┐
    send ─▶ …                                       │ end of the turn
                                                    ▼
                          one append of all rows ─▶ answers, which leave with the turn's write

A KnownSend is what was found out for one message and holds for all that look the same: the topic may be sent to, and
nothing but time, properties and body differs. A message that asks for a time goes the same way; its row is for the
queue in which delayed messages or timers wait.

The properties of a message are text that passes through: the broker adds its own at the end and looks for a few names.
"""

import contextlib
import logging
from collections.abc import Sequence
from operator import itemgetter
from time import perf_counter  # how long work takes, whatever clock the program was given
from typing import Final, NamedTuple

from skyrocket.broker.rules.put_rules import PutRules, is_compacted
from skyrocket.broker.send.send_answers import SendAnswers, Stored
from skyrocket.broker.send.waiting_queues import Destination, Postponed, WaitingQueues
from skyrocket.broker.state.identity import packed_host
from skyrocket.broker.state.names import is_revive_log
from skyrocket.broker.state.topics import TopicTable
from skyrocket.format import sys_flag as flags
from skyrocket.format.properties import MAX_BYTES as MAX_PROPERTIES_BYTES
from skyrocket.format.record import pack_host
from skyrocket.model.topic import RETRY_PREFIX, SCHEDULE_TOPIC, TIMER_TOPIC
from skyrocket.protocol.codes import RequestCode
from skyrocket.protocol.command import ONEWAY_FLAG, RemotingCommand
from skyrocket.protocol.errors import FAQ, RequestError, SystemFailure, TopicNotExist
from skyrocket.protocol.requests.messaging import SendMessage
from skyrocket.protocol.send_shapes import KnownText, Shape, ShapedSend, ShapeMemo
from skyrocket.remoting.answers import LaterAnswer, LaterRun
from skyrocket.remoting.peer import Peer
from skyrocket.store.commit_log import PutMessage
from skyrocket.store.message_store import MessageStore
from skyrocket.store.queue_table import QueueKey
from skyrocket.store.record_tuples import PHYSICAL_OFFSET, QUEUE, QUEUE_OFFSET, Row, end_offset
from skyrocket.store.results import PutStatus

_logger = logging.getLogger(__name__)

# What makes two messages look the same: all fields of the short form but time, properties and what only retries use.
_look: Final = itemgetter("a", "b", "c", "d", "e", "f", "h", "j", "k", "m")
_MAX_KNOWN: Final = 20_000
_WAITING_TOPICS: Final = (TIMER_TOPIC, SCHEDULE_TOPIC)
_MAX_PLAIN_PROPERTIES: Final = 32_000  # with what the broker adds they still fit into a record
_KEY_NAME: Final = b"UNIQ_KEY\1"
_KEY_NAME_SIZE: Final = len(_KEY_NAME)
_SEPARATOR: Final = 2  # the byte behind every property
_ORIGIN: Final = "broker.send.origin"
_join = b"".join


class Origin(NamedTuple):
    """Where the messages of a connection come from, worked out once."""

    text: str
    born_host: bytes


def origin_of(peer: Peer) -> Origin:
    """Of a connection; raises SystemFailure for one that was reset before it was accepted."""
    origin: Origin | None = peer.attributes.get(_ORIGIN)
    if origin is None:
        address = peer.remote_address
        if not address.host:
            raise SystemFailure("the message has no sender: its connection was reset, and has no address any more")
        origin = peer.attributes[_ORIGIN] = Origin(str(address), pack_host(packed_host(address)))
    return origin


class KnownSend(ShapeMemo):
    """What holds for all sends that look the same, as long as the topic table does not change."""

    __slots__ = ("destination", "flag", "generation", "key", "sys_flag", "text", "text_after")

    def __init__(self, destination: Destination, flag: int, sys_flag: int, generation: int) -> None:
        self.destination = destination
        self.key: QueueKey = destination.key
        self.flag = flag
        self.sys_flag = sys_flag
        self.generation = generation  # of the topic table for which this holds
        self.text: KnownText | None = None  # found to be plain, whatever its unique key
        self.text_after = b""  # its end, as it is stored


class Senders(NamedTuple):
    """Those who wait for the answers of a turn's rows."""

    requests: list[tuple[RemotingCommand, bytes]]  # with the unique key
    takers: list[LaterAnswer | LaterRun]

    def fill(self, frames: list[bytes]) -> None:
        """Give every row its answer."""
        takers = self.takers
        if len(takers) == 1 and isinstance(takers[0], LaterRun):
            takers[0].fill(frames)
            return
        at = 0
        for taker in takers:
            if isinstance(taker, LaterRun):
                end = at + len(taker.requests)
                taker.fill(frames[at:end])
                at = end
            else:
                taker.fill(frames[at])
                at += 1

    def one_by_one(self) -> list[LaterAnswer]:
        """Of each row that has no answer."""
        laters: list[LaterAnswer] = []
        for taker in self.takers:
            if isinstance(taker, LaterRun):
                laters += taker.one_by_one()
            else:
                laters.append(taker)
        return laters


class PlainSends:
    """The plain sends of the turn; `added` are the properties that the broker adds to every message."""

    def __init__(
        self,
        store: MessageStore,
        topics: TopicTable,
        rules: PutRules,
        answers: SendAnswers,
        broker_name: str,
        added: bytes,
    ) -> None:
        self._intake = store.intake
        self._log = store.commit_log
        self._queues = store.queues
        self._topics = topics
        self._rules = rules
        self._answers = answers
        self._added = added
        self._waiting_queues = WaitingQueues(rules, broker_name, added)
        self._known: dict[tuple[str, ...], KnownSend] = {}  # for requests without a shape
        self._rows: list[Row] = []
        self._requests: list[tuple[RemotingCommand, bytes]] = []  # of the rows; with the unique key
        self._takers: list[LaterAnswer | LaterRun] = []  # of the answers, in the order of the rows
        self._postponed: dict[int, Postponed] = {}  # by number of the row: those that wait for their time
        self._rows_of = -1  # the generation of the topic table for which the rows hold
        self._removals = 0  # of queues, when the first of them came
        self._max_body = -1  # what the store takes as a row in this turn
        self._waits = False  # whether answers of this turn wait until the messages are safe

    def keep(self, peer: Peer, request: RemotingCommand) -> LaterAnswer | None:
        """Make a row of a message that looks like one seen before; None when it needs a closer look."""
        known: ShapeMemo | None
        same_text: KnownText | None = None
        text = value = b""
        if request.__class__ is ShapedSend:
            known, same_text, value, born = request.shape.memo, request.known_text, request.value, request.born
        else:
            known, text, born = self._look_up(request)
        if known.__class__ is not KnownSend or known.generation != self._topics.generation:
            return None
        if not self._rows:
            self._begin()
        body = request.body
        if not 0 < len(body) <= self._max_body:  # nothing to store, or the store must look at it
            return None
        key, postponed = known.key, None
        if same_text is not None and same_text is known.text:
            unique_key, properties = value, same_text.before + value + known.text_after
        else:
            looked_at = self._look_at_text(known, request, text, born)
            if looked_at is None:
                return None
            unique_key, key, properties, postponed = looked_at
        queue = self._queues.by_key.get(key)
        if queue is None or not queue.simple or len(properties) > MAX_PROPERTIES_BYTES:
            return None
        born_host = origin_of(peer).born_host  # may raise
        later = LaterAnswer(request)
        if postponed is not None:
            self._postponed[len(self._rows)] = postponed
        self._requests.append((request, unique_key))
        self._takers.append(later)
        self._rows.append(
            (
                queue,
                body if body.__class__ is bytes else bytes(body),
                properties,
                known.flag,
                known.sys_flag,
                int(born),
                born_host,
                0,
                0,
                None,
                1,
            )
        )
        self._rows_of = known.generation
        return later

    def keep_run(self, peer: Peer, requests: Sequence[RemotingCommand]) -> LaterRun | None:
        """The same for the first of these, as many as look and read like others; None when there is none.

        What `keep` does for them and nothing else, in one go: a third of a send's cost was to come here.
        """
        origin: Origin | None = peer.attributes.get(_ORIGIN)
        if origin is None:  # its first: `keep` finds out who it is
            return None
        if not self._rows:
            self._begin()
        generation, max_body, queue_of = self._topics.generation, self._max_body, self._queues.by_key.get
        born_host = origin.born_host
        born, born_ms = b"", 0
        rows: list[Row] = []
        keys: list[tuple[RemotingCommand, bytes]] = []
        for request in requests:
            if request.__class__ is not ShapedSend:
                break
            known, text, body = request.shape.memo, request.known_text, request.body
            if (
                known.__class__ is not KnownSend
                or known.generation != generation
                or text is None
                or text is not known.text
                or request.flag & ONEWAY_FLAG
                or body.__class__ is not bytes
                or not 0 < len(body) <= max_body
            ):
                break
            queue = queue_of(known.key)
            value = request.value
            properties = text.before + value + known.text_after
            if queue is None or not queue.simple or len(properties) > MAX_PROPERTIES_BYTES:
                break
            if request.born != born:
                born = request.born
                born_ms = int(born)
            keys.append((request, value))
            rows.append((queue, body, properties, known.flag, known.sys_flag, born_ms, born_host, 0, 0, None, 1))
        if not rows:
            return None
        run = LaterRun(requests if len(rows) == len(requests) else requests[: len(rows)])
        self._requests += keys
        self._rows += rows
        self._takers.append(run)
        self._rows_of = generation
        return run

    def _begin(self) -> None:
        """The first of a turn."""
        self._max_body, self._waits = self._intake.max_plain_body, self._answers.wait
        self._removals = self._queues.removals
        self._answers.began = self._answers.began or perf_counter()

    def _look_at_text(
        self, known: KnownSend, request: RemotingCommand, text: bytes, born: bytes
    ) -> tuple[bytes, QueueKey, bytes, Postponed | None] | None:
        """Unique key, queue, properties as they are stored, and whether it waits there; None: not a plain one."""
        shape: Shape | None = None
        known_text: KnownText | None = None
        if isinstance(request, ShapedSend):
            shape, known_text, text = request.shape, request.known_text, request.properties
        find = text.find  # `in` asks first whether what it looks for is a number: an exception for each name
        at = text.rfind(_KEY_NAME)
        end = find(b"\2", at)
        if (
            at < 0  # without a unique key: the broker makes one
            or end <= at + _KEY_NAME_SIZE  # an empty key, or one without an end
            or (at and text[at - 1] != _SEPARATOR)  # the end of another name
            or text[-1] != _SEPARATOR  # the broker's own properties could not simply follow
            or len(text) > _MAX_PLAIN_PROPERTIES
            or not born.isdigit()  # a time that is read, and refused, with the other fields
            or len(born) > 18  # perhaps more than a Java long holds
            or find(b"MSG")
            >= 0  # TRAN_MSG: a half. MSG_REGION: replaced. _SYS_MSG_PRIORITY_: a queue. SKY_MSG: numbered
            or find(b"TRACE_ON") >= 0  # replaced
            or find(b"POP_CK") >= 0  # removed
            or find(b"CLUSTER") >= 0  # replaced
            or find(b"INNER_") >= 0  # some of them are the broker's own
            or (self._waits and find(b"WAIT\1false") >= 0)  # answered at once, unlike the other rows
        ):
            return None
        unique_key = text[at + _KEY_NAME_SIZE : end]
        if find(b"DELAY") >= 0 or find(b"TIMER_") >= 0:
            return unique_key, *self._find_waiting_queue(known.destination, text, unique_key)
        if known_text is None and shape is not None and shape.texts_left > 0:
            known_text = shape.know_text(text, at + _KEY_NAME_SIZE, end)
        if known_text is not None:  # also one that was known before the topic table changed
            known.text = known_text
            known.text_after = text[end:] + self._added
        return unique_key, known.key, text + self._added, None

    def _look_up(self, request: RemotingCommand) -> tuple[KnownSend | None, bytes, bytes]:
        """The same for a request whose header was read in full: what is known, its properties, its time."""
        fields = request.ext_fields
        try:
            return self._known.get(_look(fields)), fields["i"].encode(), fields["g"].encode()  # type: ignore[arg-type, index]
        except (KeyError, TypeError, UnicodeEncodeError):
            return None, b"", b""

    def _find_waiting_queue(
        self, destination: Destination, text: bytes, unique_key: bytes
    ) -> tuple[QueueKey, bytes, Postponed | None]:
        try:
            return self._waiting_queues.find(destination, text, unique_key)
        except RequestError as error:
            error.ext_fields = self._answers.refusal_fields
            raise

    def learn(self, request: RemotingCommand, header: SendMessage, message: PutMessage) -> None:
        """Let those that look like this message be plain, if all that is special about it shows in its look."""
        topic = header.topic
        if request.code != RequestCode.SEND_MESSAGE_V2 or header.batch or not self.shows_all(header, message):
            return
        destination = self._waiting_queues.destination(topic, header.queue_id)
        known = KnownSend(destination, header.flag, message.sys_flag, self._topics.generation)
        if isinstance(request, ShapedSend):
            request.shape.memo = known
            return
        if len(self._known) >= _MAX_KNOWN:
            self._known.clear()
        assert request.ext_fields is not None
        with contextlib.suppress(KeyError):  # of a client that leaves fields out nothing is remembered
            self._known[_look(request.ext_fields)] = known

    def shows_all(self, header: SendMessage, message: PutMessage) -> bool:
        """Whether the next one with these fields may be stored as this one was, whatever its properties say."""
        topic = header.topic
        return not (
            header.reconsume_times
            or header.max_reconsume_times is not None
            or header.queue_id < 0  # each goes to a queue of its own
            or (message.topic != topic and message.topic not in _WAITING_TOPICS)  # a half, a dead letter
            or topic.startswith(RETRY_PREFIX)
            or topic in _WAITING_TOPICS
            or is_revive_log(topic)  # not everybody may
            or message.sys_flag & (flags.TRANSACTION_MASK | flags.INNER_BATCH)
            or is_compacted(self._topics.topics[topic])  # each must have a key
            or self._rules.minds_type(self._topics.topics[topic])  # each must be of the type
        )

    # ── storing ──────────────────────────────────────────────────────────────────────────────────────────────────────

    def store(self) -> None:
        """Append the rows in the order of arrival, and answer."""
        if not self._rows:
            return
        rows, postponed = self._rows, self._postponed
        senders = Senders(self._requests, self._takers)
        self._rows, self._requests, self._takers, self._postponed = [], [], [], {}
        if self._waits and self._answers.is_short_of_copies():
            for later in senders.one_by_one():
                self._answers.refuse(later, PutStatus.IN_SYNC_REPLICAS_NOT_ENOUGH)
            return
        try:
            if self._rows_of == self._topics.generation and self._removals == self._queues.removals:
                self._append(rows, senders, postponed)
            else:
                self._append_each(rows, senders, postponed)
        except Exception as error:
            _logger.exception("messages could not be stored count=%d", len(rows))
            for later in senders.one_by_one():
                if later.is_open:
                    later.refuse(SystemFailure(f"store putMessage failed: {error}"))

    def _append(self, rows: list[Row], senders: "Senders", postponed: dict[int, Postponed]) -> None:
        items, refused = self._intake.put_rows(rows)
        if self._log.is_behind:
            self._log.writer.await_briefly()
        answers, requests = self._answers, senders.requests
        if not (
            self._waits
            or postponed
            or refused
            or self._log.is_behind
            or not _join([key for _, key in requests]).isalnum()
        ):
            head = answers.plain_head
            senders.fill(
                [
                    head(request.opaque, 0, key.decode(), queue.queue_id, start, offset)
                    for (request, key), (queue, start, _, _, offset, _, _) in zip(requests, items, strict=True)
                ]
            )
            answers.latency.add(perf_counter() - answers.began, len(items))  # once for all: this is the hot path
            return
        laters = senders.one_by_one()
        for number, (later, (_, unique_key), item) in enumerate(zip(laters, requests, items, strict=False)):
            queue_id, handle = postponed.get(number) or (item[QUEUE].queue_id, "")
            message_id = f"{answers.id_prefix}{item[PHYSICAL_OFFSET]:016X}"
            stored = Stored(later, unique_key.decode(), queue_id, message_id, item[QUEUE_OFFSET], handle)
            answers.confirm_stored(stored, end_offset(item), waits=self._waits)
        for later, result in zip(laters[len(items) :], refused, strict=True):
            answers.refuse(later, result.status)

    def _append_each(self, rows: list[Row], senders: "Senders", postponed: dict[int, Postponed]) -> None:
        """A topic or queue was changed or deleted in this very turn: the store finds each message's queue again."""
        laters = senders.one_by_one()
        for number, (row, later, (_, unique_key)) in enumerate(zip(rows, laters, senders.requests, strict=True)):
            queue, body, properties, flag, sys_flag, born, born_host, *_ = row
            if queue.topic not in self._topics.topics:  # a message would make its queue anew
                gone = TopicNotExist(f"topic[{queue.topic}] not exist, apply first please!{FAQ}")
                gone.ext_fields = self._answers.refusal_fields
                later.refuse(gone)
                continue
            message = PutMessage(queue.topic, queue.queue_id, body, properties, flag, sys_flag, born, born_host)
            result = self._intake.put(message, is_confirmed_later=True)
            if not result.ok:
                self._answers.refuse(later, result.status)
                continue
            queue_id, handle = postponed.get(number) or (queue.queue_id, "")
            message_id = f"{self._answers.id_prefix}{result.physical_offset:016X}"
            stored = Stored(later, unique_key.decode(), queue_id, message_id, result.queue_offset, handle)
            self._answers.confirm_stored(stored, result.end_offset, waits=self._waits)
