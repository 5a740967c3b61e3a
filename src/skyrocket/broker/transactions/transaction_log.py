"""The transactions of a broker: which halves are open, and how one ends.

    half queue   ···|────open and ended ones────|      all before `half_offset` is done
    op queue     ··········|──────────|                which halves have ended: their queue offsets as text, in batches

Both offsets are kept as those of the group CID_RMQ_SYS_TRANS, as RocketMQ does, so that either broker goes on where the
other stopped. They are handed to the table when the log is on disk up to what they speak of: no half is forgotten by a
power cut.

A half that was checked has several copies; only the newest is open. Producers may still speak of an older one, because
their answer was late: copies are known by their unique key, and the word counts for the newest. The first word counts.
"""

import logging
from collections import Counter
from collections.abc import Iterator
from enum import Enum
from typing import Final, NamedTuple

from skyrocket.broker.rules.put_rules import PutRules
from skyrocket.broker.state.tables import Tables
from skyrocket.broker.state.waiting_counts import WaitingCountTable
from skyrocket.broker.transactions.half_message import HALF_QUEUE, HalfMessage, read_half
from skyrocket.clock import Clock
from skyrocket.config.sections import BrokerConfig
from skyrocket.errors import DataError
from skyrocket.format import sys_flag as flags
from skyrocket.format.config_files import TransactionMetrics
from skyrocket.format.properties import encode_properties
from skyrocket.format.queue_entry import ENTRY, PREFILL_SIZE
from skyrocket.format.record import decode_record, pack_host
from skyrocket.model import property_names as names
from skyrocket.model.message import Host
from skyrocket.model.topic import ENDED_TOPIC, GIVEN_UP_TOPIC, HALF_TOPIC
from skyrocket.protocol.errors import SystemFailure
from skyrocket.store.commit_log import PutMessage
from skyrocket.store.consume_queue import ConsumeQueue
from skyrocket.store.message_store import MessageStore
from skyrocket.store.results import PutResult

_logger = logging.getLogger(__name__)

GROUP: Final = "CID_RMQ_SYS_TRANS"

_READ_AT_ONCE: Final = 256
_ENDED_PROPERTIES: Final = encode_properties({"WAIT": "true", "TAGS": "d"})
_ENDED_TAG: Final = "d"
_MOST_LISTED: Final = 1000


class Decision(Enum):
    """How a transaction ends; the values are those of END_TRANSACTION."""

    COMMIT = 8
    ROLLBACK = 12


class PutRefused(Exception):
    """The store did not take a record; the caller turns it into an answer or waits."""

    def __init__(self, result: PutResult) -> None:
        super().__init__(f"{result.status.value} {result.remark}")
        self.result = result


class OpenTransaction(NamedTuple):
    """What operators see of a transaction that has not ended."""

    queue_offset: int  # of the newest copy: what `end` takes
    physical_offset: int
    transaction_id: str
    topic: str
    queue_id: int
    producer_group: str
    born_ms: int
    age_ms: int
    checks: int
    keys: str = ""


class OpenPage(NamedTuple):
    """Some open transactions, and where to go on; None behind the last."""

    transactions: list[OpenTransaction]
    next_offset: int | None


class _Ended(NamedTuple):
    decision: Decision | None  # None: it stands in the log that it has ended, not how
    key: bytes  # of one with several copies, else empty


class TransactionCountTable(WaitingCountTable[TransactionMetrics]):
    """Halves that wait for their end, as `transactionMetrics` keeps it."""

    content_class = TransactionMetrics


class TransactionLog:
    """The owner of halves and their ends."""

    def __init__(
        self,
        store: MessageStore,
        tables: Tables,
        counts: TransactionCountTable,
        rules: PutRules,
        config: BrokerConfig,
        store_host: Host,
        clock: Clock,
    ) -> None:
        self._store = store
        self._topics = tables.topics
        self._offsets = tables.offsets
        self._counts = counts
        self._rules = rules
        self._config = config
        self._host = pack_host(store_host)
        self._clock = clock
        self.half_offset = 0  # everything before it is done
        self._ended: dict[int, _Ended] = {}  # from half_offset on, by queue offset of the half
        self._newest: dict[bytes, int] = {}  # unique key → queue offset, of halves with several copies
        self._written_in: dict[int, int] = {}  # half offset → op offset of the record that says it has ended
        self._left_in: dict[int, int] = {}  # op offset → how many of its halves are not passed yet; ascending
        self._op_end = 0
        self._unwritten: list[int] = []  # ended, but no record says so yet
        self._unwritten_bytes = 0
        self._unwritten_since_ms = 0
        self._unsettled: tuple[int, int, int] | None = None  # half offset, op offset, and what must be on disk for them
        self._start_end = 0  # the log's end at the start: what is before it may have ended, and no record says so
        self.committed: Counter[str] = Counter()  # by topic, since the start
        self.rolled_back: Counter[str] = Counter()
        self.given_up: Counter[str] = Counter()

    def use(self, config: BrokerConfig) -> None:
        """Go by other settings."""
        self._config = config

    # ── life ─────────────────────────────────────────────────────────────────────────────────────────────────────────

    def load(self) -> None:
        """Take up where it was left; the store is open, the offsets are loaded. Raises CorruptFile."""
        self._counts.load()
        self.take_up()

    def take_up(self) -> None:
        """Go by what log and offsets say now."""
        for memory in (self._ended, self._newest, self._written_in, self._left_in, self._unwritten):
            memory.clear()
        self._unwritten_bytes = 0
        self._start_end = self._store.commit_log.written_offset
        self.half_offset, half_end = self._resumed(HALF_TOPIC)
        op_offset, self._op_end = self._resumed(ENDED_TOPIC)
        for offset, record in self._records(ENDED_TOPIC, op_offset, self._op_end):
            self._take_ended(offset, record)
        self._find_copies(half_end)

    def take_back(self) -> None:
        """Pass what the table says is passed: a slave has given halves to others in this broker's place."""
        known, _ = self._resumed(HALF_TOPIC)
        for _, half in self._halves(self.half_offset, known):
            if self.is_open(half):
                self._counts.add(half.real_topic, -1)  # it is counted where it is now
        if known > self.half_offset:
            self.pass_to(known)

    def _resumed(self, topic: str) -> tuple[int, int]:
        """Where to go on in a queue, and its end."""
        queue = self._queue(topic)
        low, high = (0, 0) if queue is None else (queue.min_offset, queue.max_offset)
        known = self._offsets.committed(GROUP, topic, HALF_QUEUE)
        return min(max(low if known is None else known, low), high), high

    def _take_ended(self, op_offset: int, record: memoryview | None) -> None:
        try:
            if record is None:
                raise DataError("the log has no such record")
            message = decode_record(record)
            if message.tags != _ENDED_TAG:
                raise DataError(f"its tag is {message.tags!r}")
            # RocketMQ 4: one number; 5: each followed by a comma.
            offsets = [int(number) for number in message.body.split(b",") if number]
        except (DataError, ValueError) as error:
            _logger.error("a record of ended transactions is passed over offset=%d reason=%s", op_offset, error)
            return
        for offset in offsets:
            if offset >= self.half_offset:
                self._ended.setdefault(offset, _Ended(None, b""))
        self._said_in(op_offset, offsets)

    def _find_copies(self, half_end: int) -> None:
        """A kill may have kept that copies were passed out of the table: their newest copy counts, and so does an end
        of any."""
        ended_keys: set[bytes] = set()
        open_offsets: dict[bytes, list[int]] = {}
        for offset, half in self._halves(self.half_offset, half_end):
            if offset in self._ended:
                ended_keys.add(half.unique_key)
            elif half.unique_key:
                known = open_offsets.setdefault(half.unique_key, [])
                known.append(offset)
                if half.checks or len(known) > 1:
                    self._newest[half.unique_key] = offset
        for key in ended_keys & open_offsets.keys() - {b""}:
            for offset in open_offsets[key]:
                self._note_end(offset, _Ended(None, key))

    def settle(self) -> None:
        """Let the table of offsets say what is done, and on disk."""
        if self._unsettled is None or self._unsettled[2] > self._store.commit_log.flushed_offset:
            return
        half_offset, op_offset, _ = self._unsettled
        self._unsettled = None
        for topic, offset in ((HALF_TOPIC, half_offset), (ENDED_TOPIC, op_offset)):
            if self._offsets.committed(GROUP, topic, HALF_QUEUE) != offset:
                self._offsets.commit(GROUP, topic, HALF_QUEUE, offset)

    @property
    def op_offset(self) -> int:
        """Records before it speak of nothing that is still to be passed."""
        return next(iter(self._left_in), self._op_end)

    # ── reading ──────────────────────────────────────────────────────────────────────────────────────────────────────

    def _queue(self, topic: str) -> ConsumeQueue | None:
        queue = self._store.queues.get(topic, HALF_QUEUE)
        assert queue is None or isinstance(queue, ConsumeQueue), "no topic of transactions is a batch topic"
        return queue

    @property
    def half_end(self) -> int:
        """Where the next half goes."""
        queue = self._queue(HALF_TOPIC)
        return 0 if queue is None else queue.max_offset

    def _records(self, topic: str, begin: int, end: int) -> Iterator[tuple[int, memoryview | None]]:
        queue = self._queue(topic)
        offset = begin
        while queue is not None and offset < end:
            offset = max(offset, queue.min_offset)  # what is older has been deleted
            data = queue.read(offset, min(_READ_AT_ONCE, end - offset))
            if not data:
                return
            for physical_offset, size, _ in ENTRY.iter_unpack(data):
                if size != PREFILL_SIZE:
                    yield offset, self._store.by_physical_offset(physical_offset)
                offset += 1

    def _halves(self, begin: int, end: int) -> Iterator[tuple[int, HalfMessage]]:
        for offset, record in self._records(HALF_TOPIC, begin, end):
            half = _half_of(record, offset)
            if half is not None:
                yield offset, half

    def half_at(self, queue_offset: int) -> HalfMessage | None:
        """The half at a place of the half queue; None when there is none, or it cannot be read."""
        found = next(iter(self._records(HALF_TOPIC, queue_offset, queue_offset + 1)), None)
        return None if found is None or found[0] != queue_offset else _half_of(found[1], queue_offset)

    def is_open(self, half: HalfMessage) -> bool:
        """Whether it has not ended, and no newer copy of it is there."""
        offset = half.queue_offset
        return offset not in self._ended and self._newest.get(half.unique_key, offset) <= offset

    def is_ended(self, queue_offset: int) -> bool:
        """Whether the half at a place has ended, as far as that was not passed yet."""
        return queue_offset in self._ended

    def open_transactions(self, limit: int = _MOST_LISTED) -> list[OpenTransaction]:
        """Those that wait for their end, oldest place first."""
        self._store.dispatch()  # a copy that was put in this very turn has no entry yet
        now_ms = self._clock.now_ms()
        found: list[OpenTransaction] = []
        for _, half in self._halves(self.half_offset, self.half_end):
            if len(found) >= limit:
                break
            if self.is_open(half):
                found.append(_listed(half, now_ms))
        return found

    def open_page(self, begin: int, most_read: int) -> OpenPage:
        """Those among the next halves from an offset on: a bounded part of what there is to list."""
        self._store.dispatch()
        now_ms, end = self._clock.now_ms(), self.half_end
        begin = max(begin, self.half_offset)
        stop = min(begin + most_read, end)
        found = [_listed(half, now_ms) for _, half in self._halves(begin, stop) if self.is_open(half)]
        return OpenPage(found, stop if stop < end else None)

    # ── the end ──────────────────────────────────────────────────────────────────────────────────────────────────────

    def end_by_operator(self, queue_offset: int, decision: Decision, transaction_id: str = "") -> None:
        """End an open transaction at an operator's word; raises SystemFailure when there is none, PutRefused."""
        half = self.open_half(queue_offset, transaction_id)
        _logger.info("an operator ends a transaction offset=%d decision=%s", half.queue_offset, decision.name)
        self.end(half, decision)

    def open_half(self, queue_offset: int, transaction_id: str = "") -> HalfMessage:
        """That of an open transaction; raises SystemFailure when there is none.

        With its id any copy will do: checks make new ones while operators think.
        """
        self._store.dispatch()
        half = self.half_at(queue_offset)
        if half is not None and transaction_id:
            newest = self._newest.get(half.unique_key, queue_offset)
            is_meant = half.unique_key == transaction_id.encode()
            half = None if not is_meant else half if newest == queue_offset else self.half_at(newest)
        if half is None or half.queue_offset < self.half_offset or not self.is_open(half):
            named = f" {transaction_id}" if transaction_id else ""
            raise SystemFailure(
                f"no open transaction{named} has its half at offset {queue_offset}: it has ended, or was never there; "
                "list the open ones again"
            )
        return half

    def end(self, half: HalfMessage, decision: Decision) -> None:
        """Deliver a half, or not; the same word again does nothing, another raises SystemFailure. Raises PutRefused."""
        newest = self._newest.get(half.unique_key, half.queue_offset)
        earlier = self._ended.get(newest)
        if earlier is not None:
            if earlier.decision not in (None, decision):
                raise SystemFailure(f"The transaction has ended before, by a {_word(earlier.decision)}")
            return
        is_passed = newest < self.half_offset
        may_be_delivered = is_passed or self.is_from_before_start(half)
        if decision is Decision.ROLLBACK:
            self.rolled_back[half.real_topic] += not is_passed
        elif not (may_be_delivered and self.is_delivered(half)):
            self._deliver(half)
            self.committed[half.real_topic] += 1
        if not is_passed:
            self._note_end(newest, _Ended(decision, half.unique_key if half.unique_key in self._newest else b""))
            self._counts.add(half.real_topic, -1)

    def end_delivered(self, half: HalfMessage) -> None:
        """Say that a half has ended which was delivered before a crash; the record that says so was lost with it."""
        self._note_end(half.queue_offset, _Ended(Decision.COMMIT, b""))
        self._counts.add(half.real_topic, -1)

    def is_from_before_start(self, half: HalfMessage) -> bool:
        """Whether it may have been delivered without a record that says so: a broker may have died in between."""
        return half.physical_offset < self._start_end

    def is_delivered(self, half: HalfMessage) -> bool:
        """Whether its real topic has it; asked only where nothing else tells."""
        key = half.unique_key.decode("utf-8", "replace")
        if not key:
            return False
        found = (decode_record(record) for record in self._store.query_unique_key(half.real_topic, key))
        return any(
            flags.transaction_type(message.sys_flag) == flags.TRANSACTION_COMMIT
            and message.topic == half.real_topic
            and message.properties.get(names.UNIQUE_KEY) == key  # the index knows only its hash
            for message in found
        )

    def _deliver(self, half: HalfMessage) -> None:
        message = half.committed()
        self._rules.postpone(message)
        self._put(message)

    def _put(self, message: PutMessage) -> PutResult:
        result = self._store.put(message)
        if not result.ok:
            raise PutRefused(result)
        return result

    def _note_end(self, offset: int, ended: _Ended) -> None:
        self._ended[offset] = ended
        if not self._unwritten:
            self._unwritten_since_ms = self._clock.now_ms()
        self._unwritten.append(offset)
        self._unwritten_bytes += len(str(offset)) + 1

    def write_ended(self, now_ms: int, *, at_once: bool = False) -> None:
        """Put a record that says which halves have ended, when enough have, or the first has waited long enough."""
        waited_ms = now_ms - self._unwritten_since_ms
        is_due = at_once or not 0 <= waited_ms < self._config.ended_batch_interval_ms
        while self._unwritten and (is_due or self._unwritten_bytes >= self._config.ended_batch_bytes):
            offsets, body = _batch(self._unwritten, self._config.ended_batch_bytes)
            message = PutMessage(
                ENDED_TOPIC,
                HALF_QUEUE,
                body,
                _ENDED_PROPERTIES,
                born_timestamp=now_ms,
                born_host=self._host,
            )
            try:
                result = self._put(message)
            except PutRefused as error:
                _logger.error("ends of transactions could not be written count=%d reason=%s", len(offsets), error)
                self._unwritten_since_ms = now_ms  # not again at once
                return
            del self._unwritten[: len(offsets)]
            self._unwritten_bytes -= len(body)
            self._op_end = result.queue_offset + 1
            self._said_in(result.queue_offset, offsets)
        if not self._unwritten:
            self._unwritten_since_ms = now_ms

    def _said_in(self, op_offset: int, offsets: list[int]) -> None:
        """Remember which record says that halves have ended; it is needed until the last of them is passed."""
        left = [offset for offset in offsets if offset >= self.half_offset and offset not in self._written_in]
        if left:
            self._written_in.update(dict.fromkeys(left, op_offset))
            self._left_in[op_offset] = len(left)

    # ── moving on ────────────────────────────────────────────────────────────────────────────────────────────────────

    def put_copy(self, half: HalfMessage, copy: PutMessage) -> PutResult:
        """Let a copy stand for a half; raises PutRefused."""
        result = self._put(copy)
        if half.unique_key:
            self._newest[half.unique_key] = result.queue_offset
        return result

    def give_up(self, half: HalfMessage) -> None:
        """Move a half to where only operators find it; raises PutRefused."""
        self._topics.ensure(GIVEN_UP_TOPIC, 1)
        self._put(half.given_up())
        self._newest.pop(half.unique_key, None)
        self._counts.add(half.real_topic, -1)
        self.given_up[half.real_topic] += 1

    def resume(self, half: HalfMessage) -> None:
        """Check a half again that was given up; raises PutRefused."""
        self.put_copy(half, half.resumed())
        self._counts.add(half.real_topic, 1)

    def pass_to(self, half_offset: int) -> None:
        """Everything before an offset is done."""
        for offset in range(self.half_offset, half_offset):
            ended = self._ended.pop(offset, None)
            if ended is not None and ended.key:
                self._newest.pop(ended.key, None)
            op_offset = self._written_in.pop(offset, None)
            if op_offset is not None:
                self._left_in[op_offset] -= 1
                if not self._left_in[op_offset]:
                    del self._left_in[op_offset]
        self.half_offset = half_offset

    def round_is_over(self, *, is_elsewhere: bool = False) -> None:
        """Have the table told, as soon as the log is on disk up to here; at once what was given to other brokers."""
        rests_on = 0 if is_elsewhere else self._store.commit_log.written_offset
        self._unsettled = (self.half_offset, self.op_offset, rests_on)
        self.settle()


def _half_of(record: memoryview | None, offset: int) -> HalfMessage | None:
    try:
        if record is None:
            raise DataError("the log has no such record")
        return read_half(record)
    except DataError as error:
        _logger.error("a half message is passed over offset=%d reason=%s", offset, error)
        return None


def _listed(half: HalfMessage, now_ms: int) -> OpenTransaction:
    born_ms = half.message.born_timestamp
    return OpenTransaction(
        half.queue_offset,
        half.physical_offset,
        half.unique_key.decode("utf-8", "replace"),
        half.real_topic,
        half.real_queue_id,
        half.producer_group,
        born_ms,
        now_ms - born_ms,
        half.checks,
        half.keys,
    )


def _batch(offsets: list[int], most_bytes: int) -> tuple[list[int], bytes]:
    """As many offsets as fit into a record, and its body."""
    taken: list[int] = []
    parts: list[bytes] = []
    size = 0
    for offset in offsets:
        part = b"%d," % offset
        if parts and size + len(part) > most_bytes:
            break
        taken.append(offset)
        parts.append(part)
        size += len(part)
    return taken, b"".join(parts)


def _word(decision: Decision | None) -> str:
    return "commit" if decision is Decision.COMMIT else "rollback"
