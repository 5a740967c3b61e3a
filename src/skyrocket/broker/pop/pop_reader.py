"""Reads messages for a pop: which queues in which order, from where on, and what must be written before they leave.

    for each queue   skip it while an ordered batch is in hand ▸ apply a reset that waits ▸ read
    then             not ordered: check points into the revive log, and where one is in, the group's offset moves on
                     ordered: the batch is noted, the offset stays at its first message until it is acknowledged

Everything happens in one turn of the event loop, so no two pops take the same message.
"""

import logging
from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from typing import Final, NamedTuple

from skyrocket.broker.pop.offsets import PopOffsets
from skyrocket.broker.pop.orders import OrderTable
from skyrocket.broker.pop.revive_log import ReviveLog
from skyrocket.broker.rules.put_rules import with_replaced
from skyrocket.broker.rules.special_services import Puts
from skyrocket.broker.rules.subscriptions import MessageFilter
from skyrocket.broker.state.counters import Counters
from skyrocket.broker.state.live_settings import LiveSettings
from skyrocket.errors import CorruptRecord, MessageRefused
from skyrocket.format.crc import CRC_PROPERTY
from skyrocket.format.properties import without_property
from skyrocket.format.property_bytes import POP_RECEIPT
from skyrocket.format.record import QUEUE_OFFSET_AT, decode_record, encode_record, record_properties
from skyrocket.format.revive_log import CheckPoint, CheckPointKey
from skyrocket.model.pop_retry import RetryMark, retry_mark
from skyrocket.protocol.receipt_handle import ReceiptHandle, message_offsets_text, order_count_texts, start_offset_text
from skyrocket.remoting.peer import Peer
from skyrocket.store.message_store import MessageStore
from skyrocket.store.results import GetResult, GetStatus

_logger = logging.getLogger(__name__)

_MISPLACED: Final = frozenset(
    {GetStatus.OFFSET_TOO_SMALL, GetStatus.OFFSET_OVERFLOW_BADLY, GetStatus.OFFSET_FOUND_NULL}
)
_LONG: Final = 8


class Visit(NamedTuple):
    """One queue to look into."""

    topic: str
    queue_id: int


class Terms(NamedTuple):
    """What a pop was granted."""

    group: str
    topic: str  # that it asked for; messages of retry topics are given this name
    max_count: int
    invisible_ms: int
    pop_time: int
    revive_queue: int
    init_mode: int
    is_ordered: bool
    attempt_id: str | None
    wanted: MessageFilter


class _Read(NamedTuple):
    """What one queue has."""

    visit: Visit
    start_offset: int
    next_offset: int
    offsets: list[int]
    records: list[memoryview]


@dataclass(slots=True)
class Taken:
    """What is handed out: records, and the lists that their receipts are made from."""

    records: list[bytes | memoryview] = field(default_factory=list)
    size: int = 0
    rest: int = 0  # messages still there, as far as queues were looked at
    start_offsets: list[str] = field(default_factory=list)
    message_offsets: list[str] = field(default_factory=list)
    order_counts: list[str] = field(default_factory=list)


class PopReader:
    """Takes messages out of queues."""

    def __init__(
        self,
        store: MessageStore,
        offsets: PopOffsets,
        orders: OrderTable,
        revive_log: ReviveLog,
        broker_name: str,
        counters: Counters,
        settings: LiveSettings,
    ) -> None:
        self._store = store
        self._offsets = offsets
        self._orders = orders
        self._revive_log = revive_log
        self._broker_name = broker_name
        self._counters = counters
        self._settings = settings

    def take(self, terms: Terms, visits: Sequence[Visit]) -> Taken:
        """Up to the wanted number of messages from these queues; raises the refusals of the timer."""
        return self._revive_log.do_here(self.taking(terms, visits))

    def taking(self, terms: Terms, visits: Sequence[Visit]) -> Puts[Taken]:
        """The same, wherever check points are put."""
        taken = Taken()
        reads: list[_Read] = []
        found = 0
        for visit in visits:
            read, rest = self._read(terms, visit, terms.max_count - found)
            taken.rest += rest
            if read is not None:
                reads.append(read)
                found += len(read.offsets)
        if reads:
            for read in (yield from self._handed_out(terms, reads, taken)):
                self._add(terms, read, taken)
        return taken

    def meter(self, peer: Peer, topic: str, taken: Taken) -> None:
        """Charge it to whom a quota holds."""
        if self._counters.read_meter is not None:
            self._counters.read_meter(peer, topic, len(taken.records), taken.size)

    # ── one queue ────────────────────────────────────────────────────────────────────────────────────────────────────

    def _read(self, terms: Terms, visit: Visit, count: int) -> tuple[_Read | None, int]:
        """What a queue has for this pop, and how much is left behind it."""
        group, (topic, queue_id) = terms.group, visit
        table = self._offsets.table
        reset = table.take_reset(group, topic, queue_id)
        if reset is not None:
            table.commit(group, topic, queue_id, reset)
            self._orders.forget(topic, group, queue_id)
        if terms.is_ordered and self._orders.is_blocked(topic, group, queue_id, terms.attempt_id):
            return None, max(self._store.max_offset(topic, queue_id) - self._offsets.known(group, topic, queue_id), 0)
        start = self._offsets.next(group, topic, queue_id, terms.init_mode)
        left = self._store.max_offset(topic, queue_id) - start
        if count <= 0 or left == 0:  # most queues of a wide topic: nothing of them is read
            return None, max(left, 0)
        result = self._get(terms, visit, start, count)
        if result.status in _MISPLACED:
            start = result.next_offset
            table.commit(group, topic, queue_id, start)
            result = self._get(terms, visit, start, count)
        rest = max(result.max_offset - result.next_offset, 0)
        if result.count:
            offsets, records = split_records(result.slices)
            return _Read(visit, start, result.next_offset, offsets, records), rest
        if result.status is GetStatus.NO_MATCHED_MESSAGE or result.status is GetStatus.MESSAGE_WAS_REMOVING:
            table.commit(group, topic, queue_id, result.next_offset)  # nothing for this group so far
        return None, rest

    def _get(self, terms: Terms, visit: Visit, start: int, count: int) -> GetResult:
        wanted = terms.wanted
        return self._store.reader.get(
            visit.topic,
            visit.queue_id,
            start,
            count,
            tags_codes=wanted.tags_codes,
            record_filter=None if wanted.properties is None else wanted.record,
            look_at=wanted.look_at,
        )

    # ── what must be written first ───────────────────────────────────────────────────────────────────────────────────

    def _handed_out(self, terms: Terms, reads: Sequence[_Read], taken: Taken) -> Puts[list[_Read]]:
        """Those that may leave. What could not be written down stays where it is."""
        if terms.is_ordered:
            for read in reads:
                self._note_batch(terms, read, taken)
            return list(reads)
        log, queue = self._revive_log, terms.revive_queue
        results = yield [log.check_point(self._check_point(terms, read), queue) for read in reads]
        leaving = []
        for read, result in zip(reads, results, strict=True):
            if result.ok:
                self._offsets.table.commit(terms.group, *read.visit, read.next_offset)
                leaving.append(read)
            else:
                taken.rest += len(read.offsets)
        return leaving

    def _check_point(self, terms: Terms, read: _Read) -> CheckPoint:
        topic, queue_id = read.visit
        key = CheckPointKey(topic, terms.group, queue_id, read.start_offset, terms.pop_time, self._broker_name)
        return CheckPoint(key, terms.invisible_ms, tuple(offset - read.start_offset for offset in read.offsets))

    def _note_batch(self, terms: Terms, read: _Read, taken: Taken) -> None:
        topic, queue_id = read.visit
        batch = self._orders.begin(
            topic, terms.group, queue_id, terms.pop_time, terms.invisible_ms, read.offsets, terms.attempt_id
        )
        mark = retry_mark(topic).value
        taken.order_counts += order_count_texts(mark, queue_id, batch.counts, batch.least)
        self._offsets.table.commit(terms.group, topic, queue_id, read.start_offset)

    # ── the answer ───────────────────────────────────────────────────────────────────────────────────────────────────

    def _add(self, terms: Terms, read: _Read, taken: Taken) -> None:
        topic, queue_id = read.visit
        mark = retry_mark(topic)
        taken.start_offsets.append(start_offset_text(mark.value, queue_id, read.start_offset))
        taken.message_offsets.append(message_offsets_text(mark.value, queue_id, read.offsets))
        records: Sequence[bytes | memoryview] = read.records
        if mark is not RetryMark.NORMAL and not self._settings.broker.pop_shows_retry_topic:
            records = [
                as_message_of(terms.topic, record, self._receipt(terms, read, mark, offset))
                for record, offset in zip(read.records, read.offsets, strict=True)
            ]
        size = sum(map(len, records))
        taken.records += records
        taken.size += size
        self._counters.pulled(terms.group, topic, queue_id, len(records), size, 0.0)

    def _receipt(self, terms: Terms, read: _Read, mark: RetryMark, offset: int) -> str:
        return ReceiptHandle(
            read.start_offset,
            terms.pop_time,
            terms.invisible_ms,
            terms.revive_queue,
            mark.value,
            self._broker_name,
            read.visit.queue_id,
            offset,
        ).text()


def queues_in_order(queues: int, start: int, *, downwards: bool) -> list[int]:
    """All queues of a topic, circularly from some place on."""
    if downwards:
        return [(queues - 1 - step + start) % queues for step in range(queues)]
    return [(step + start) % queues for step in range(queues)]


def split_records(slices: Sequence[memoryview]) -> tuple[list[int], list[memoryview]]:
    """Queue offsets and records; a slice may hold several that follow each other in the log."""
    offsets: list[int] = []
    records: list[memoryview] = []
    for view in slices:
        at = 0
        while at < len(view):
            size = int.from_bytes(view[at : at + 4], "big")
            assert size > 0, "the store hands out whole records"
            place = at + QUEUE_OFFSET_AT
            offsets.append(int.from_bytes(view[place : place + _LONG], "big"))
            records.append(view[at : at + size])
            at += size
    return offsets, records


def as_message_of(topic: str, record: memoryview, receipt: str) -> bytes | memoryview:
    """A message of a retry topic as one of the topic itself, with the receipt that its consumer could not make.

    One that cannot be written anew leaves as it is: the consumer then finds the damage, or makes the receipt itself.
    """
    properties = without_property(record_properties(record), CRC_PROPERTY)
    try:
        message = replace(decode_record(record, check_crc=True), topic=topic)
        return encode_record(message, with_replaced(properties, POP_RECEIPT, receipt.encode()))
    except (CorruptRecord, MessageRefused) as error:
        _logger.error("a message of a retry topic leaves as it is reason=%s", error)
        return record
