"""Puts: what is taken, what is refused and why, and what the store adds to a message before it goes into the log.

The common message goes straight from here to `CommitLog.append`; the rest takes the long way of `_put_special`.
"""

import logging
import time
from collections.abc import Callable, Sequence
from dataclasses import replace

from skyrocket.clock import Clock
from skyrocket.config.sections import BrokerRole, FlushDiskType, StoreConfig
from skyrocket.errors import StoreClosed, StoreError, StoreFailed
from skyrocket.format import sys_flag as flags
from skyrocket.format.batch import Batch, BatchColumns, BatchElement, EvenBatch
from skyrocket.format.crc import reserve_record_crc
from skyrocket.format.properties import MAX_BYTES as MAX_PROPERTIES_BYTES
from skyrocket.format.properties import PROPERTY_END, find_property, whole_number, with_property, without_property
from skyrocket.format.queue_entry import MOST_BATCH_MESSAGES
from skyrocket.format.store_names import is_directory_name
from skyrocket.model.topic import MAX_RETRY_TOPIC_BYTES, MAX_TOPIC_BYTES, RETRY_PREFIX, takes_multi_dispatch
from skyrocket.store.batch_records import BatchOrigin, PlainBatch, total_size
from skyrocket.store.commit_log import CommitLog, PutMessage
from skyrocket.store.disk import DiskStandsStill
from skyrocket.store.dispatcher import light_queue_keys
from skyrocket.store.flusher import Flusher
from skyrocket.store.queue_table import QueueTable
from skyrocket.store.record_run import RecordRun
from skyrocket.store.record_tuples import (
    PHYSICAL_OFFSET,
    QUEUE_OFFSET,
    ROW_PROPERTIES,
    STORE_TIMESTAMP,
    DispatchItem,
    Row,
    end_offset,
)
from skyrocket.store.results import BatchPutResult, Durability, PutResult, PutStatus
from skyrocket.store.retention import Cleaner
from skyrocket.store.statistics import Statistics
from skyrocket.store.topic_queue import TopicQueue
from skyrocket.store.transient_pool import PoolExhausted
from skyrocket.store.write_gate import PUTS, WriteGate

log = logging.getLogger(__name__)

_LARGEST_FRAME = 33_000  # what surrounds the body of a record, at most: head, topic, properties, and the blank behind
_PUT_SECONDS = 30.0  # a disk that takes longer fails other things first
_MOST_WAITING_BYTES = 64 << 20  # in the hands of the log's writer, whose disk stands still

_new_tuple = tuple.__new__  # builds a NamedTuple without its Python-level __new__: put is counted in nanoseconds
_OK = PutStatus.PUT_OK


def _nobody_listens() -> None: ...


class Intake:
    """Takes messages into the log."""

    def __init__(
        self,
        commit_log: CommitLog,
        queues: QueueTable,
        flusher: Flusher,
        cleaner: Cleaner,
        gate: WriteGate,
        statistics: Statistics,
        config: StoreConfig,
        clock: Clock,
    ) -> None:
        self._log = commit_log
        self._queues = queues
        self._flusher = flusher
        self._cleaner = cleaner
        self._gate = gate
        self._statistics = statistics
        self._config = config
        self._clock = clock
        self._is_slave = config.broker_role is BrokerRole.SLAVE  # its log grows by its master's bytes alone
        self._reached = Durability.BUFFER if config.transient_pool else Durability.MEMORY
        self._wakes_flusher = config.flush_disk_type is FlushDiskType.SYNC_FLUSH or not config.flush_timed
        self._max_plain_body = self._plain_limit()
        # Called when records are in the log, so that somebody dispatches them: an owner who does so himself sets it.
        self.after_put: Callable[[], None] = _nobody_listens

    def _plain_limit(self) -> int:
        """Messages up to this size go into the log as they are: they fit, and the store adds no properties."""
        if self._config.multi_dispatch or self._config.append_record_crc or self._is_slave:
            return -1
        return min(self._config.max_message_size, self._config.commit_log_file_size - _LARGEST_FRAME)

    def use(self, config: StoreConfig) -> None:
        """Go by these settings from now on."""
        self._config = config
        self._max_plain_body = self._plain_limit()

    @property
    def page_cache_busy(self) -> bool:
        """Whether an append has been waiting for longer than `osPageCacheBusyTimeOutMills`, or too much is waiting."""
        began = self._log.append_began_ms
        if began <= 0:
            return False
        waits_long = self._config.page_cache_busy_ms < self._clock.now_ms() - began < 10_000_000
        return waits_long or self._log.writer.waiting_bytes > _MOST_WAITING_BYTES

    def put(self, message: PutMessage, *, is_confirmed_later: bool = False) -> PutResult:
        """Append one message: the page cache has it when this returns, so a client may be told.

        Unless the message is confirmed when it is written (`LogWriter.when_written`): a disk may stand still for long.
        """
        result = self.put_group((message,))[0]
        if self._log.is_behind and result.ok and not is_confirmed_later:
            self._log.writer.wait_until_idle(_PUT_SECONDS)
        return result

    def put_group(self, messages: Sequence[PutMessage]) -> list[PutResult]:
        """Append messages that arrived together; each has a result of its own.

        Cheaper per message than `put`: what one turn of an event loop has read from its connections is one group.
        """
        queues = self._queues.by_key
        max_body = self.max_plain_body
        rows: list[Row] = []
        for message in messages:
            queue = queues.get((message.topic, message.queue_id))
            if (
                queue is None
                or not queue.simple
                or len(message.body) > max_body
                or len(message.properties) > MAX_PROPERTIES_BYTES
                or message.sys_flag & flags.INNER_BATCH
            ):
                return [self._put_special(message) for message in messages]
            rows.append(_row(queue, message, message.properties, 1))
        return self._append(rows)

    @property
    def max_plain_body(self) -> int:
        """Bodies up to this size may go to `put_rows`; -1 while nothing is taken, or everything needs a closer look."""
        if not self._gate.is_open or self._cleaner.disk_full or (self._log.append_began_ms and self.page_cache_busy):
            return -1
        return self._max_plain_body

    def put_rows(self, rows: Sequence[Row]) -> tuple[list[DispatchItem], list[PutResult]]:
        """Append what was found to be plain: known simple queues, bodies up to `max_plain_body`, properties that fit.

        The cheapest way in. Returns what is in the log, and for the rest, if any, why it is not.
        """
        if rows and rows[-1][ROW_PROPERTIES].endswith(b"\0"):
            rows = _with_ended_text(rows)
        began = time.perf_counter()
        try:
            items, error = self._log.append(rows)
        except StoreFailed as failure:
            return [], [self._not_appended(failure) for _ in rows]
        refused = [] if error is None else [self._not_appended(error) for _ in rows[len(items) :]]
        self._took(len(items), began, all_of_it=error is None)
        return items, refused

    def _took(self, count: int, began: float, *, all_of_it: bool = True) -> None:
        """Records are in the log."""
        self._statistics.put_latency.add((time.perf_counter() - began) * 1000, count)
        if all_of_it and self._gate.trouble is not None:
            self._gate.recovered(PUTS)
        if self._wakes_flusher:
            self._flusher.wake()
        self.after_put()

    def _append(self, rows: Sequence[Row]) -> list[PutResult]:
        """For those who count a message as stored when this returns: a writer that works gets the time it needs."""
        items, refused = self.put_rows(rows)
        if self._log.is_behind:
            self._log.writer.await_briefly()
        durability = self._reached
        results = [
            _new_tuple(PutResult, (_OK, start, offset, size, timestamp, durability, start + size, ""))
            for _, start, size, timestamp, offset, _, _ in items
        ]
        return results + refused if refused else results

    def put_batch(self, message: PutMessage, messages: Sequence[BatchElement] | Batch) -> BatchPutResult:
        """Append the messages of a client batch as records of their own: all of them, in one file, or none."""
        if isinstance(messages, EvenBatch | BatchColumns):
            return self._put_whole(message, messages)
        return self._put_elements(message, messages)

    def _put_whole(self, message: PutMessage, batch: Batch) -> BatchPutResult:
        if self._max_plain_body < 0 or message.store_host is not None or batch.last_properties.endswith(b"\0"):
            return self._put_elements(message, batch.elements())
        refused = self._batch_refusal(message, batch.body_size, batch.longest_properties)
        if refused is not None:
            return self._batch_result(refused)
        queue = self._queues.get_or_create(message.topic, message.queue_id)
        if not queue.simple:
            return self._put_elements(message, batch.elements())
        origin = BatchOrigin(message.sys_flag, message.born_timestamp, message.born_host, message.reconsume_times)
        [outcome] = self.put_plain_batches([PlainBatch(queue, batch, origin)])
        return self._batch_result(outcome)

    def _put_elements(self, message: PutMessage, elements: Sequence[BatchElement]) -> BatchPutResult:
        if not elements:
            return self._batch_result(self._refuse(PutStatus.MESSAGE_ILLEGAL, "a batch without messages"))
        if self._config.append_record_crc:
            elements = [element._replace(properties=self._with_crc(element.properties)) for element in elements]
        body_size = sum([len(element[1]) for element in elements])
        refused = self._batch_refusal(message, body_size, max([len(element[2]) for element in elements]))
        if refused is not None:
            return self._batch_result(refused)
        queue = self._queues.get_or_create(message.topic, message.queue_id)
        sys_flag, born, host = message.sys_flag, message.born_timestamp, message.born_host
        times, store_host = message.reconsume_times, message.store_host
        rows: list[Row] = [
            (queue, body, properties, flag, sys_flag, born, host, times, 0, store_host, 1)
            for flag, body, properties in elements
        ]
        if rows[-1][ROW_PROPERTIES].endswith(b"\0"):
            rows = _with_ended_text(rows)
        began = time.perf_counter()
        try:
            items = self._log.append_together(rows)
        except (OSError, StoreError) as error:
            return self._batch_result(self._not_appended(error))
        self._took(len(items), began)
        durability = self._reached
        end = end_offset(items[-1])
        return BatchPutResult(
            PutStatus.PUT_OK,
            [item[PHYSICAL_OFFSET] for item in items],
            items[0][QUEUE_OFFSET],
            items[0][STORE_TIMESTAMP],
            durability,
            end,
        )

    def _batch_result(self, outcome: RecordRun | PutResult) -> BatchPutResult:
        if isinstance(outcome, PutResult):
            return BatchPutResult(outcome.status, [], -1, 0, Durability.NONE, -1, outcome.remark)
        (part,) = outcome.parts
        return BatchPutResult(
            PutStatus.PUT_OK,
            list(outcome.starts),
            part.first_queue_offset,
            outcome.store_timestamp,
            self._reached,
            outcome.end_offset,
        )

    def put_plain_batches(self, batches: Sequence[PlainBatch]) -> list[RecordRun | PutResult]:
        """The same for plain ones: known simple queues, bodies up to `max_plain_body`, no zero ends the last text.

        The cheapest way in for batches that are no part of a transaction. Returns in their order what is in the log,
        of which each part is a batch, and why a batch is not there.
        """
        if not self._gate.is_open:  # any more: what came before them in their turn could not be written
            return [self._refuse(PutStatus.SERVICE_NOT_AVAILABLE, self._gate.reason) for _ in batches]
        began = time.perf_counter()
        outcomes: list[RecordRun | PutResult] = []
        store_host = self._log.store_host
        total = total_size(batches, store_host)
        are_together = len(batches) == 1 or self._log.has_room_for(total)
        for some in [batches] if are_together else [[batch] for batch in batches]:
            try:
                runs = self._log.append_batches(some, total if are_together else total_size(some, store_host))
            except (StoreFailed, DiskStandsStill) as error:  # nothing is taken any more, or each would wait for it
                outcomes += [self._not_appended(error) for _ in batches[len(outcomes) :]]
                break
            except (OSError, StoreError) as error:
                outcomes += [self._not_appended(error) for _ in some]
            else:
                self._took(sum([run.count for run in runs]), began)
                outcomes += runs
        return outcomes

    def append_raw(self, offset: int, data: bytes | memoryview) -> None:
        """Append log bytes that a master sent; queues and index are then built from them here."""
        if not self._gate.is_open:
            raise StoreClosed(self._gate.reason)
        try:
            self._log.append_raw(offset, data)
        except OSError as error:
            if not isinstance(error, PoolExhausted | DiskStandsStill) and not self._gate.stalled(PUTS, error):
                self._gate.fail(error)
            raise
        if self._wakes_flusher:
            self._flusher.wake()
        self.after_put()

    # -- refusing -------------------------------------------------------------------------------------------

    def _refusal(self, message: PutMessage, body_bytes: int, properties_bytes: int) -> PutResult | None:
        """Why a message is not taken; None when it is."""
        if not self._gate.is_open:
            return self._refuse(PutStatus.SERVICE_NOT_AVAILABLE, self._gate.reason)
        if self._is_slave:
            return self._refuse(PutStatus.SERVICE_NOT_AVAILABLE, "messages are put to the master, this is a slave")
        if self._cleaner.disk_full:
            remark = f"the disk of {self._log.files.directory} is more than {self._config.disk_warning_percent} % full"
            return self._refuse(PutStatus.SERVICE_NOT_AVAILABLE, remark)
        topic_bytes = len(message.topic.encode())
        limit = MAX_RETRY_TOPIC_BYTES if message.topic.startswith(RETRY_PREFIX) else MAX_TOPIC_BYTES
        if topic_bytes > limit or not is_directory_name(message.topic):
            return self._refuse(
                PutStatus.MESSAGE_ILLEGAL, f"topic of {topic_bytes} bytes; 1 to {limit} without '/' are allowed"
            )
        if message.queue_id < 0:
            return self._refuse(PutStatus.MESSAGE_ILLEGAL, f"queue id {message.queue_id} is negative")
        size_limit = self._config.max_message_size
        if body_bytes > size_limit:
            return self._refuse(PutStatus.MESSAGE_ILLEGAL, f"body of {body_bytes} bytes; the limit is {size_limit}")
        if properties_bytes > MAX_PROPERTIES_BYTES:
            remark = f"properties of {properties_bytes} bytes; the limit is {MAX_PROPERTIES_BYTES}"
            return self._refuse(PutStatus.PROPERTIES_SIZE_EXCEEDED, remark)
        if self.page_cache_busy:
            return self._refuse(PutStatus.OS_PAGE_CACHE_BUSY, "an append has been waiting for the page cache")
        return None

    def _batch_refusal(self, message: PutMessage, body_bytes: int, properties_bytes: int) -> PutResult | None:
        if message.sys_flag & flags.TRANSACTION_MASK:
            return self._refuse(PutStatus.MESSAGE_ILLEGAL, "a batch cannot be part of a transaction")
        return self._refusal(message, body_bytes, properties_bytes)

    def _refuse(self, status: PutStatus, remark: str) -> PutResult:
        self._statistics.put_refused += 1
        return PutResult(status, -1, -1, 0, 0, Durability.NONE, -1, remark)

    def _not_appended(self, error: OSError | StoreError) -> PutResult:
        if isinstance(error, PoolExhausted | DiskStandsStill):
            return self._refuse(PutStatus.OS_PAGE_CACHE_BUSY, str(error))
        if isinstance(error, StoreFailed):
            self._gate.fail(error)
            return self._refuse(PutStatus.SERVICE_NOT_AVAILABLE, self._gate.reason)
        if isinstance(error, StoreError):
            return self._refuse(PutStatus.MESSAGE_ILLEGAL, str(error))
        if not self._gate.stalled(PUTS, error):
            log.error("no log file can be written path=%s error=%s", self._log.files.directory, error)
        return self._refuse(PutStatus.CREATE_MAPPED_FILE_FAILED, f"no log file can be written: {error}")

    # -- special messages -------------------------------------------------------------------------------------

    def _put_special(self, message: PutMessage) -> PutResult:
        """Put the first message of a queue, a large one, or one with properties that only the store can write.

        These are offsets of inner batches and light queues, and room for a CRC; nothing is appended in between.
        """
        refused = self._refusal(message, len(message.body), len(message.properties))
        if refused is not None:
            return refused
        queue = self._queues.get_or_create(message.topic, message.queue_id)
        with self._log.lock:
            try:
                properties, messages = self._number_inner_batch(queue, message)
                light_queues = self._light_queues(queue, properties)
            except StoreError as error:
                return self._not_appended(error)
            numbers = [light.next_offset for light in light_queues]
            if light_queues:
                offsets = ",".join(map(str, numbers)).encode()
                properties = _with_value(properties, b"INNER_MULTI_QUEUE_OFFSET", offsets)
            completed = replace(message, properties=self._with_crc(properties))
            refused = self._refusal(completed, len(completed.body), len(completed.properties))
            if refused is not None:
                return refused
            result = self._append([_row(queue, completed, completed.properties, messages)])[0]
            if result.ok:
                for light, number in zip(light_queues, numbers, strict=True):
                    light.next_offset = max(light.next_offset, number + 1)  # dispatch may have been faster
            return result

    def _with_crc(self, properties: bytes) -> bytes:
        return reserve_record_crc(properties) if self._config.append_record_crc else properties

    def _number_inner_batch(self, queue: TopicQueue, message: PutMessage) -> tuple[bytes, int]:
        """Properties with the first queue offset of an inner batch, and the number of its messages."""
        text = find_property(message.properties, b"INNER_NUM")
        if not message.sys_flag & flags.INNER_BATCH:
            if text is not None and not queue.simple:
                raise StoreError("INNER_NUM without the flag of an inner batch")
            return message.properties, 1
        if queue.simple:
            raise StoreError(f"an inner batch, but {queue.topic} is not a batch topic")
        number = whole_number(text)
        if number is None or not 0 < number <= MOST_BATCH_MESSAGES:
            raise StoreError(f"an inner batch of {text!r} messages; 1 to {MOST_BATCH_MESSAGES} are allowed")
        return _with_value(message.properties, b"INNER_BASE", b"%d" % queue.next_offset), number

    def _light_queues(self, queue: TopicQueue, properties: bytes) -> list[TopicQueue]:
        """The light queues that a message asks for."""
        if not self._config.multi_dispatch or not takes_multi_dispatch(queue.topic):
            return []
        names = find_property(properties, b"INNER_MULTI_DISPATCH")
        if names is None:
            return []
        keys = light_queue_keys(names, queue.queue_id)
        if len(set(keys)) < len(keys) or not all(is_directory_name(name) for name, _ in keys):
            raise StoreError(f"light queues {names!r}: each once, and no name is empty or contains '/'")
        return [self._queues.get_or_create(*key) for key in keys]


def _with_ended_text(rows: Sequence[Row]) -> list[Row]:
    """The same records, but the last property text, which ends in a zero, has the separator that clients may leave out.

    A record that ends in zeros, with nothing behind it, is to recovery one that was copied in part.
    """
    queue, body, text, flag, sys_flag, born, host, times, prepared, store_host, count = rows[-1]
    if len(text) < MAX_PROPERTIES_BYTES:
        text += PROPERTY_END
    ended = (queue, body, text, flag, sys_flag, born, host, times, prepared, store_host, count)
    return [*rows[:-1], ended]


def _row(queue: TopicQueue, message: PutMessage, properties: bytes, messages: int) -> Row:
    return (
        queue,
        message.body,
        properties,
        message.flag,
        message.sys_flag,
        message.born_timestamp,
        message.born_host,
        message.reconsume_times,
        message.prepared_transaction_offset,
        message.store_host,
        messages,
    )


def _with_value(properties: bytes, name: bytes, value: bytes) -> bytes:
    """The properties with this value; they stay as they are when they have it already."""
    if find_property(properties, name) == value:
        return properties
    return with_property(without_property(properties, name), name, value)
