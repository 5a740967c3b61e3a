"""What producers hear: at once, or when their messages are safe, with one wait for all of a turn.

Safe means on disk (SYNC_FLUSH), on enough brokers of the set (SYNC_MASTER), or both; always in the page cache, which it
may not be yet while the disk stands still. What took too long is stored all the same: the answer has all fields, and
its code says what is missing. RocketMQ: of two misses the slaves' is told.
"""

import asyncio
from collections.abc import Callable, Sequence
from functools import partial
from time import perf_counter  # how long work takes, whatever clock the program was given
from typing import Final, NamedTuple

import numpy as np

from skyrocket.broker.core.dispatching import when_flushed, when_written
from skyrocket.broker.rules.put_refusals import put_refusal
from skyrocket.broker.rules.put_rules import CopyKeeper
from skyrocket.broker.state.identity import BrokerIdentity
from skyrocket.config.sections import FlushDiskType
from skyrocket.observability.histogram import Histogram
from skyrocket.protocol.codes import ResponseCode
from skyrocket.protocol.requests.answer_template import AnswerTemplate
from skyrocket.protocol.requests.messaging import SendMessageAnswer
from skyrocket.remoting.answers import LaterAnswer
from skyrocket.store.message_store import MessageStore
from skyrocket.store.results import PutStatus

_PLACE_SIZE: Final = 8
_When = Callable[[MessageStore, int, Callable[[bool], None]], None]
_CODES: Final = {
    PutStatus.FLUSH_DISK_TIMEOUT: ResponseCode.FLUSH_DISK_TIMEOUT,
    PutStatus.FLUSH_SLAVE_TIMEOUT: ResponseCode.FLUSH_SLAVE_TIMEOUT,
    PutStatus.SLAVE_NOT_AVAILABLE: ResponseCode.SLAVE_NOT_AVAILABLE,
}


class Stored(NamedTuple):
    """A send that is in the log, and what its answer says."""

    later: LaterAnswer
    unique_key: str  # "" for a batch without one
    queue_id: int
    message_ids: str
    queue_offset: int
    recall_handle: str = ""  # of a message that waits for its time
    is_batch: bool = False  # one record of several messages


class SendAnswers:
    """Answers to the sends of one broker."""

    def __init__(self, store: MessageStore, identity: BrokerIdentity, copies: CopyKeeper | None = None) -> None:
        self._store = store
        self._copies = copies
        self._awaits_disk = store.config.flush_disk_type is FlushDiskType.SYNC_FLUSH
        self.wait = self._awaits_disk or copies is not None  # unless a message says WAIT=false
        self.latency = Histogram()  # from the first send of a turn to its answers
        self.began = 0.0  # when the first send of this turn came; 0: there was none
        self._waiting: list[Stored] = []  # of this turn: in the log, to be confirmed when safe
        self._waiting_end = 0  # where the last of them ends in the log
        self._unwritten: list[Stored] = []  # of this turn: to be confirmed when the page cache has them
        self._unwritten_end = 0
        host = identity.store_host
        self.id_prefix = (host.address + host.port.to_bytes(4, "big")).hex().upper()
        self.id_size = len(self.id_prefix) + 2 * _PLACE_SIZE + 1  # with a comma behind it
        trace = "true" if identity.trace_on else "false"
        self.refusal_fields = {"TRACE_ON": trace, "MSG_REGION": identity.region}
        constants = {"region": identity.region, "trace_on": trace}
        attributes: tuple[str, ...] = ("queue_id", "msg_id", "queue_offset")
        single = ("transaction_id", *attributes)
        ours = {"msg_id": "{}"}  # digits and commas: nothing to escape
        self._single_head = AnswerTemplate(SendMessageAnswer, single, constants=constants, formats=ours).head
        # The same for unique keys of letters and digits, which nearly all are; instead of the id the place in the log.
        formats = {"transaction_id": "{}", "msg_id": self.id_prefix + "{:016X}"}
        self.plain_head = AnswerTemplate(SendMessageAnswer, single, constants=constants, formats=formats).head
        self._batch_head = AnswerTemplate(SendMessageAnswer, attributes, constants=constants, formats=ours).head
        copied = ("transaction_id", *attributes, "replica_count")
        self._copied_head = AnswerTemplate(SendMessageAnswer, copied, constants=constants).head
        attributes = ("transaction_id", *attributes, "recall_handle")
        self._timer_head = AnswerTemplate(SendMessageAnswer, attributes, constants=constants).head

    def message_ids(self, places: Sequence[int]) -> str:
        """The ids of messages that lie at these places of the log, each followed by a comma."""
        digits = np.fromiter(places, ">i8", len(places)).tobytes().hex(",", _PLACE_SIZE).upper()
        return f"{self.id_prefix}{digits.replace(',', ',' + self.id_prefix)},"  # the prefix may be of any size

    def confirm_stored(self, stored: Stored, end_offset: int, *, waits: bool) -> None:
        """A send is in the log up to an offset: answer now, or with all of this turn that wait until they are safe."""
        if not waits:
            if self._store.commit_log.is_behind:
                self._unwritten.append(stored)
                self._unwritten_end = max(self._unwritten_end, end_offset)
                return
            self._confirm(stored)
            self.latency.add(perf_counter() - self.began)
            return
        self._waiting.append(stored)
        if end_offset > self._waiting_end:
            self._waiting_end = end_offset

    def end_turn(self) -> None:
        """Nothing more comes in this turn: begin the one wait for all of it."""
        if self._waiting:
            waiting, self._waiting = self._waiting, []
            self._confirm_when_durable(waiting, self._waiting_end)
        if self._unwritten:
            waiting, self._unwritten = self._unwritten, []
            self._confirm_when_written(waiting, self._unwritten_end)
        self.began = 0.0

    def _confirm(self, stored: Stored) -> None:
        later, unique_key, queue_id, message_ids, queue_offset, handle, is_batch = stored
        opaque = later.request.opaque
        if is_batch:
            later.fill(later.request.answer(ResponseCode.SUCCESS, None, self._fields(stored)))
        elif handle:
            later.fill(self._timer_head(opaque, 0, unique_key, queue_id, message_ids, queue_offset, handle))
        else:
            self.confirm_now(later, unique_key, queue_id, message_ids, queue_offset)

    def confirm_now(
        self, later: LaterAnswer, unique_key: str, queue_id: int, message_ids: str, queue_offset: int
    ) -> None:
        """A message or batch is where its producer may hear of it; whoever calls counts its latency."""
        opaque = later.request.opaque
        if unique_key:
            later.fill(self._single_head(opaque, 0, unique_key, queue_id, message_ids, queue_offset))
        else:
            later.fill(self._batch_head(opaque, 0, queue_id, message_ids, queue_offset))

    def refuse(self, later: LaterAnswer, status: PutStatus) -> None:
        """The store did not take the message."""
        store = self._store
        error = put_refusal(status, store.config.max_message_size, store.paths.root, store.gate.trouble)
        error.ext_fields = self.refusal_fields
        later.refuse(error)

    def is_short_of_copies(self) -> bool:
        """Whether what must wait for slaves may not even be stored, since too few of them are in sync."""
        return self._copies is not None and self._copies.is_short()

    def _confirm_when_durable(self, waiting: list[Stored], end_offset: int) -> None:
        """Answer when everything before an offset is safe, cannot be, or has taken too long."""
        settle = partial(self._settle, waiting, end_offset, self.began)
        if self._copies is None:
            self._await(when_flushed, end_offset, settle)
        elif not self._awaits_disk:
            self._copies.wait(end_offset, settle)
        else:
            both = _Both(settle)
            self._await(when_flushed, end_offset, both.disk_settled)
            self._copies.wait(end_offset, both.copies_settled)

    def _confirm_when_written(self, waiting: list[Stored], end_offset: int) -> None:
        """Answer when the page cache has everything before an offset: soon, unless the disk stands still."""
        log = self._store.commit_log
        settle = partial(self._settle, waiting, end_offset, self.began)
        log.writer.await_briefly()
        if log.readable_offset >= end_offset:
            settle(PutStatus.PUT_OK)
        else:
            self._await(when_written, end_offset, settle)

    def _await(self, when: _When, end_offset: int, settle: Callable[[PutStatus], None]) -> None:
        timeout_seconds = self._store.config.sync_flush_timeout_ms / 1000
        timer = asyncio.get_running_loop().call_later(timeout_seconds, settle, PutStatus.FLUSH_DISK_TIMEOUT)

        def settled(ok: bool) -> None:
            timer.cancel()
            settle(PutStatus.PUT_OK if ok else PutStatus.SERVICE_NOT_AVAILABLE)

        when(self._store, end_offset, settled)

    def _settle(self, waiting: list[Stored], end_offset: int, began: float, status: PutStatus) -> None:
        code = _CODES.get(status)
        replicas = self._copies.held_by(end_offset) if self._copies is not None else None
        answered = 0
        for each in waiting:
            if not each.later.is_open:
                continue
            answered += 1
            if status is PutStatus.PUT_OK:
                self._confirm_copied(each, replicas) if replicas is not None else self._confirm(each)
            elif code is not None:
                each.later.fill(each.later.request.answer(code, None, self._fields(each, replicas)))
            else:
                self.refuse(each.later, status)
        if answered:
            self.latency.add(perf_counter() - began, answered)

    def _confirm_copied(self, stored: Stored, replicas: int) -> None:
        """The same, with the number of brokers that have the message."""
        later, unique_key, queue_id, message_ids, queue_offset, handle, is_batch = stored
        if handle or is_batch or not unique_key:
            later.fill(later.request.answer(ResponseCode.SUCCESS, None, self._fields(stored, replicas)))
            return
        opaque = later.request.opaque
        later.fill(self._copied_head(opaque, 0, unique_key, queue_id, message_ids, queue_offset, replicas))

    def _fields(self, stored: Stored, replicas: int | None = None) -> dict[str, str]:
        return SendMessageAnswer(
            region=self.refusal_fields["MSG_REGION"],
            trace_on=self.refusal_fields["TRACE_ON"],
            msg_id=stored.message_ids,
            queue_id=stored.queue_id,
            queue_offset=stored.queue_offset,
            transaction_id=stored.unique_key or None,
            recall_handle=stored.recall_handle or None,
            batch_unique_id=stored.unique_key if stored.is_batch else None,
            replica_count=replicas,
        ).to_fields()


class _Both:
    """Waits for disk and copies; a second word of one of them counts for nothing."""

    def __init__(self, settle: Callable[[PutStatus], None]) -> None:
        self._settle = settle
        self._disk: PutStatus | None = None
        self._copies: PutStatus | None = None

    def disk_settled(self, status: PutStatus) -> None:
        self._disk = self._disk or status
        if self._disk is PutStatus.SERVICE_NOT_AVAILABLE:
            self._settle(self._disk)  # the disk has failed: nobody knows what it has, whatever the slaves say
        else:
            self._look()

    def copies_settled(self, status: PutStatus) -> None:
        self._copies = self._copies or status
        self._look()

    def _look(self) -> None:
        if self._disk is not None and self._copies is not None:
            self._settle(self._disk if self._copies is PutStatus.PUT_OK else self._copies)
