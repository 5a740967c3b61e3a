"""The door of the store: open, put, get, query, close.

    put → CommitLog.append → the answer           (Flusher forces it to disk: before the answer with SYNC_FLUSH)
        ↘ Dispatcher → consume queues, index, listeners

One thread at a time appends; reads may come from any thread. Every part is built here once and handed what it uses.
"""

import errno
import logging
import os
import threading
import time
from collections.abc import Callable, Collection

from skyrocket.clock import Clock, SystemClock, wall_clock
from skyrocket.config.sections import FlushDiskType, StoreConfig
from skyrocket.errors import StoreError, StoreFailed
from skyrocket.format.record import pack_host
from skyrocket.model.message import Host
from skyrocket.store.changeable_settings import changed
from skyrocket.store.checkpoint_file import CheckpointFile
from skyrocket.store.commit_log import CommitLog, PutMessage
from skyrocket.store.cut_log import keep_cut
from skyrocket.store.directory import StoreDirectory
from skyrocket.store.disk import Disk
from skyrocket.store.dispatcher import Dispatcher, Listener
from skyrocket.store.flusher import Flusher
from skyrocket.store.index import Index
from skyrocket.store.intake import Intake
from skyrocket.store.layout import StorePaths
from skyrocket.store.manifest_file import ManifestFile
from skyrocket.store.queue_removal import QueueRemoval
from skyrocket.store.queue_table import QueueTable
from skyrocket.store.reader import LOOK_AT, EntryFilter, Reader, RecordFilter
from skyrocket.store.recovery import Recovery, RecoveryReport
from skyrocket.store.results import Boundary, GetResult, PutResult
from skyrocket.store.retention import Cleaner
from skyrocket.store.statistics import Statistics
from skyrocket.store.strangers import look_at_strangers
from skyrocket.store.tags_code import TagsCoder
from skyrocket.store.transient_pool import TransientPool
from skyrocket.store.write_gate import NO_DESCRIPTORS, PUTS, Patience, WriteGate, look_for_room

log = logging.getLogger(__name__)

LOCAL_HOST = Host(b"\x7f\x00\x00\x01", 10911)

_DISPATCH_PAUSE = 0.001
_QUEUE_PATIENCE = 0.01  # for a thread that writes queue entries
_QUEUES = "queue entries"
_INDEX = "index entries"
_CLOSE_SECONDS = 5.0


class MessageStore:
    """A store directory in use."""

    queues_waited = False  # for the disk, when they were to be brought up to date: whoever wants them must come again

    def __init__(
        self,
        root: str | os.PathLike[str],
        config: StoreConfig | None = None,
        *,
        store_host: Host = LOCAL_HOST,
        clock: Clock | None = None,
        disk: Disk | None = None,
        is_batch_topic: Callable[[str], bool] = lambda topic: False,
        memory_bytes: int | None = None,
    ) -> None:
        self.paths = StorePaths(os.fspath(root))
        self.config = config or StoreConfig()
        self.clock = clock or SystemClock()
        self.statistics = Statistics()
        self.recovery: RecoveryReport | None = None  # what the last open found
        self.gate = WriteGate(self.paths.root, self.clock)
        self.disk = disk or Disk()
        self._directory = StoreDirectory(self.disk, self.paths)
        pool = None
        if self.config.transient_pool:
            pool = TransientPool(self.config.transient_pool_size, self.config.commit_log_file_size)
        self.pool = pool
        self.commit_log = CommitLog(
            self.disk, self.paths.commit_log, self.config, self.clock, pack_host(store_host), pool
        )
        self.commit_log.on_failed = self.gate.fail
        self.queues = QueueTable(self.disk, self.paths, self.config, is_batch_topic)
        self.index: Index | None = None
        if self.config.index_enabled:
            self.index = Index(self.disk, self.paths.index, self.config, self.clock)
            self.index.on_completed = self._index_file_completed
        self._manifest = ManifestFile(
            self.disk, self.paths.manifest, self.config, self.commit_log, self.queues, self.index
        )
        self.removal = QueueRemoval(self.commit_log, self.queues, self._manifest)
        self.checkpoint = CheckpointFile(self.disk, self.paths.checkpoint)
        self.dispatcher = Dispatcher(
            self.commit_log,
            self.queues,
            self.index,
            TagsCoder(self.config.message_delay_levels),
            multi_dispatch=self.config.multi_dispatch,
            queue_buffer_bytes=self.config.queue_buffer_bytes,
        )
        self.reader = Reader(
            self.commit_log,
            self.queues,
            self.index,
            self.config,
            self.statistics,
            self.disk,
            memory_bytes or os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES"),
        )
        self.flusher = Flusher(self.commit_log, self.config, on_flushed=self._log_flushed, on_failed=self.gate.fail)
        self.cleaner = Cleaner(self.disk, self.config, wall_clock(self.clock), self.commit_log, self.queues, self.index)
        self.intake = Intake(
            self.commit_log,
            self.queues,
            self.flusher,
            self.cleaner,
            self.gate,
            self.statistics,
            self.config,
            self.clock,
        )
        self._sync_flush = self.config.flush_disk_type is FlushDiskType.SYNC_FLUSH
        self.shown_end: Callable[[], int] | None = None  # where those who read must stop, however much the log has
        self._open = False
        self._stop = threading.Event()
        self._threads: list[threading.Thread] = []

    # -- life -------------------------------------------------------------------------------------------

    def __enter__(self) -> "MessageStore":
        self.open()
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def open(self, *, cut_at: int | None = None) -> RecoveryReport:
        """Take the directory, recover, start. Raises StoreLocked or CorruptFile, then nothing is left running.

        `cut_at`: what the log has from there on is not to be in it; it is kept aside (`store.cut_log`).
        """
        if self.recovery is not None:
            raise StoreError("a MessageStore is opened only once: make a new one for the directory")
        self._directory.lock()
        try:
            report = self._recover(cut_at)
            self._directory.mark_running()
        except BaseException:
            self._let_go()
            raise
        self.recovery = report
        self.dispatcher.patience = Patience(self.gate, _QUEUES)
        if self.index is not None:
            self.index.patience = Patience(self.gate, _INDEX)
        self._open = True
        self.gate.open()
        self.cleaner.look_at_disk()
        self.commit_log.start()
        self.flusher.start()
        self.cleaner.start()
        self._start_thread(self._run_queue_flush, "store-queue-flush")
        if self.config.dispatch_thread:
            self._start_thread(self._run_dispatch, "store-dispatch")
        log.info(
            "store open path=%s clean=%s offset=%d..%d records_checked=%d seconds=%.2f",
            self.paths.root,
            report.clean,
            self.commit_log.min_offset,
            self.commit_log.written_offset,
            report.records,
            report.seconds,
        )
        return report

    def _recover(self, cut_at: int | None) -> RecoveryReport:
        clean = self._directory.stopped_cleanly and cut_at is None
        look_at_strangers(self.disk, self.paths)
        for path in (self.paths.consume_queue, self.paths.config):
            self.disk.make_directory(path)
        self.commit_log.load()
        self.queues.load()
        if not self.checkpoint.load():
            log.warning(
                "checkpoint is damaged or another program wrote it, not using it path=%s", self.paths.checkpoint
            )
        manifest = self._manifest.load()
        self.queues.removed = dict(manifest.removed) if manifest is not None else {}
        recovery = Recovery(
            self.disk, self.config, self.commit_log, self.queues, self.index, self.dispatcher, self.paths.cut_log
        )
        if cut_at is not None:
            self._cut_log(cut_at)
        report = recovery.run(clean=clean, checkpoint=self.checkpoint.current, manifest=manifest, cut_at=cut_at)
        self.queues.write_out()
        self.queues.sync()
        if self.index is not None:
            self.index.catch_up()
            # Before the checkpoint is written: the time of a file that is late would miss the page, or pass its bound.
            self.index.await_completed()
        if not clean or report.rebuilt_queues or report.rebuilt_index:
            self._manifest.save(clean=False)
        self.checkpoint.set_flushed(report.end_offset, report.last_timestamp)
        return report

    def _cut_log(self, end_offset: int) -> None:
        """Files that vouch for others first: a crash in between leaves a log that is longer than they say."""
        self._directory.mark_running()
        self.checkpoint.set_flushed(min(self.checkpoint.current.flushed_offset, end_offset), 0)
        kept = keep_cut(self.disk, self.paths.cut_log, self.commit_log.files, end_offset)
        self.commit_log.files.truncate(end_offset)
        log.warning("the log is cut on purpose, what lay behind is kept offset=%d directory=%s", end_offset, kept)

    def close(self) -> None:
        """Stop intake, dispatch and flush everything, say goodbye. The next open then needs no recovery."""
        if not self._open:
            return
        self._open = False
        self.gate.close()
        self._stop.set()
        for thread in self._threads:
            thread.join(timeout=_CLOSE_SECONDS)
        self.cleaner.stop()
        self.flusher.stop()
        try:
            complete = self.failure is None and self._settle()
            self.commit_log.stop()
            if complete:
                self._directory.mark_stopped()
            else:
                log.warning("store closed without the clean mark, the next open recovers path=%s", self.paths.root)
        except OSError as error:
            self.gate.fail(error)
        finally:
            self._let_go()

    def _let_go(self) -> None:
        self.commit_log.files.close()
        self.queues.close()
        if self.index is not None:
            self.index.release()
        self._directory.unlock()

    def _settle(self) -> bool:
        """Bring queues, index, manifest and checkpoint to the log's end; whether that worked."""
        try:
            self.dispatcher.dispatch(self.commit_log.flushed_offset)
            self.queues.write_out()
            self.queues.sync()
            if self.index is not None:
                self.index.close()
            complete = self.dispatcher.dispatched_offset >= self.commit_log.raw_end and not self.commit_log.pending
            timestamp = self.commit_log.last_store_timestamp
            header_time = self.index.end_timestamp if self.index is not None else 0
            self.checkpoint.advance(physic_timestamp=timestamp, logics_timestamp=timestamp, index_timestamp=header_time)
            self.checkpoint.advance(logics_physical_offset=self.dispatcher.dispatched_record)
            self._manifest.save(clean=complete)
            self.checkpoint.flush()
        except OSError as error:
            self.gate.fail(error)
            return False
        return complete

    def _start_thread(self, target: Callable[[], None], name: str) -> None:
        thread = threading.Thread(target=target, name=name, daemon=True)
        self._threads.append(thread)
        thread.start()

    def change_settings(self, config: StoreConfig) -> None:
        """Go by other settings from now on, as far as they are CHANGEABLE."""
        self.config = changed(self.config, config)
        for part in (self.cleaner, self.reader, self.flusher, self.intake):
            part.use(self.config)

    # -- signals for the layers above -----------------------------------------------------------------------

    @property
    def writable(self) -> bool:
        return self.gate.is_open and not self.cleaner.disk_full and self.gate.trouble is None

    @property
    def failure(self) -> str | None:
        """Why no message will be taken until the store is opened again; None while all is well."""
        return self.gate.failure

    @property
    def disk_full(self) -> bool:
        return self.cleaner.disk_full

    @property
    def page_cache_busy(self) -> bool:
        """Whether the append that runs now has taken longer than `osPageCacheBusyTimeOutMills`."""
        return self.intake.page_cache_busy

    @property
    def transient_pool_deficient(self) -> bool:
        """Whether the pool is used and no buffer is free."""
        return self.pool is not None and self.pool.free == 0

    @property
    def free_transient_buffers(self) -> int | None:
        """How many buffers of the pool are free; None without a pool."""
        return self.pool.free if self.pool is not None else None

    @property
    def dispatch_lag_bytes(self) -> int:
        """Log bytes that queues and index have not seen yet."""
        return self.commit_log.readable_offset - self.dispatcher.dispatched_offset

    # -- putting --------------------------------------------------------------------------------------------

    def put(self, message: PutMessage, *, is_confirmed_later: bool = False) -> PutResult:
        """Append one message; the result says which durability it has already reached.

        With SYNC_FLUSH wait for the disk by `flusher.when_flushed`. Groups and batches: `intake`.
        """
        return self.intake.put(message, is_confirmed_later=is_confirmed_later)

    def append_raw(self, offset: int, data: bytes | memoryview) -> None:
        """Append log bytes that a master sent; queues and index are then built from them here."""
        self.intake.append_raw(offset, data)

    # -- durability -----------------------------------------------------------------------------------------

    def flush(self) -> bool:
        """Force the log to disk now."""
        return self.flusher.flush_now()

    # -- reading ----------------------------------------------------------------------------------------------

    def get(
        self,
        topic: str,
        queue_id: int,
        offset: int,
        max_count: int = 32,
        max_bytes: int = 1 << 27,
        *,
        tags_codes: Collection[int] | None = None,
        entry_filter: EntryFilter | None = None,
        record_filter: RecordFilter | None = None,
        look_at: int = LOOK_AT,
    ) -> GetResult:
        """Messages of a queue from an offset on; after `look_at` that a filter rejects the caller must ask again."""
        return self.reader.get(
            topic,
            queue_id,
            offset,
            max_count,
            max_bytes,
            tags_codes=tags_codes,
            entry_filter=entry_filter,
            record_filter=record_filter,
            look_at=look_at,
        )

    def by_physical_offset(self, physical_offset: int) -> memoryview | None:
        """The record at a physical offset."""
        return self.reader.by_physical_offset(physical_offset)

    def shown_at(self, physical_offset: int) -> memoryview | None:
        """The same for those outside, who must not see what the queues do not show yet: it may be taken back."""
        record = self.reader.by_physical_offset(physical_offset)
        return record if record is None or physical_offset + len(record) <= self.confirm_offset else None

    def query(
        self, topic: str, key: str, max_count: int = 64, begin: int = 0, end: int = (1 << 63) - 1, *, tag: bool = False
    ) -> list[memoryview]:
        """Records with a key within a time range; what was put before is found."""
        self.dispatch()
        return self.reader.query(topic, key, max_count, begin, end, tag=tag)

    def query_unique_key(self, topic: str, unique_key: str) -> list[memoryview]:
        """Records with a unique key."""
        self.dispatch()
        return self.reader.query_unique_key(topic, unique_key)

    def offset_by_time(self, topic: str, queue_id: int, timestamp: int, boundary: Boundary = Boundary.LOWER) -> int:
        """Queue offset for a store time, to the millisecond."""
        return self.reader.offset_by_time(topic, queue_id, timestamp, boundary)

    def min_offset(self, topic: str, queue_id: int) -> int:
        queue = self.queues.get(topic, queue_id)
        return queue.min_offset if queue is not None else -1

    def max_offset(self, topic: str, queue_id: int) -> int:
        """The offset that the next visible message of a queue will get; 0 for an unknown queue."""
        queue = self.queues.get(topic, queue_id)
        return queue.max_offset if queue is not None else 0

    def earliest_time(self, topic: str, queue_id: int) -> int:
        """Store time of the oldest message of a queue; -1 without messages."""
        return self.reader.earliest_time(topic, queue_id)

    # -- dispatching --------------------------------------------------------------------------------------------

    def add_listener(self, listener: Listener) -> None:
        """Be told of every batch of records that became readable in its queues."""
        self.dispatcher.listeners.append(listener)

    @property
    def confirm_offset(self) -> int:
        """Dispatch goes so far: with SYNC_FLUSH nobody reads what the disk does not have."""
        end = self.commit_log.flushed_offset if self._sync_flush else self.commit_log.readable_offset
        return end if self.shown_end is None else min(end, self.shown_end())

    def dispatch(self) -> int:
        """Bring queues up to date; returns how many records were dispatched: none while queues wait for the disk."""
        self.queues_waited = not self.queues.lock.acquire(timeout=_QUEUE_PATIENCE)
        if self.queues_waited:
            return 0
        try:
            return self.dispatcher.dispatch(self.confirm_offset)
        except OSError as error:  # some of the records may be in queues and index, some not: recovery will see
            self.gate.fail(error)
            raise StoreFailed(self.failure) from error
        finally:
            self.queues.lock.release()

    def _run_dispatch(self) -> None:
        while not self._stop.is_set():
            try:
                if not self.dispatch():
                    self._stop.wait(_DISPATCH_PAUSE)
            except StoreFailed:
                return
            except Exception as error:
                log.exception("dispatch failed at physical offset %d", self.dispatcher.dispatched_offset)
                self.gate.fail(StoreFailed(f"dispatch failed: {error}"))
                return

    # -- background work ------------------------------------------------------------------------------------------

    def _run_queue_flush(self) -> None:
        last_thorough = last_checkpoint = time.monotonic()
        pause = min(self.config.queue_flush_interval_ms, self.config.checkpoint_interval_ms) / 1000
        while not self._stop.wait(pause):
            now = time.monotonic()
            try:
                thorough = (now - last_thorough) * 1000 >= self.config.queue_flush_thorough_interval_ms
                if thorough:
                    last_thorough = now
                    self.flush_queues()
                else:
                    self.queues.write_out(self.config.queue_flush_least_pages)
                if (now - last_checkpoint) * 1000 >= self.config.checkpoint_interval_ms:
                    last_checkpoint = now
                    self.checkpoint.flush()
                self.gate.recovered(_QUEUES)
            except StoreFailed:
                return
            except OSError as error:
                if not self.gate.stalled(_QUEUES, error):
                    self.gate.fail(error)
                    return
                if error.errno == errno.ENOSPC:
                    self.cleaner.refuse_writes()  # entries stay in memory and are written when there is room again
            if self.gate.is_stalled(PUTS):
                look_for_room(self.disk, self.gate, self.config)

    def flush_queues(self) -> None:
        """Write all queue entries and force them to disk; the checkpoint then says so."""
        covered = self.dispatcher.dispatched_timestamp  # before the pass: never newer than what it writes
        covered_record = min(self.dispatcher.dispatched_record, self.commit_log.flushed_offset)
        self.queues.write_out()
        try:
            self.queues.sync()
        except OSError as error:
            if error.errno in NO_DESCRIPTORS:  # nothing was forced to disk, and nothing was lost by it
                raise
            self.gate.fail(error)
            raise StoreFailed(self.failure) from error
        self.checkpoint.advance(logics_timestamp=covered, logics_physical_offset=covered_record)
        if self.queues.new_queues:
            self.queues.new_queues = False
            try:
                self._manifest.save(clean=False)
            except OSError:
                self.queues.new_queues = True
                raise
        self.checkpoint.flush()

    def _log_flushed(self, flushed_offset: int, covered_timestamp: int | None) -> None:
        self.checkpoint.advance(flushed_offset=flushed_offset)
        if covered_timestamp is not None:
            self.checkpoint.advance(physic_timestamp=covered_timestamp)

    def _index_file_completed(self, end_timestamp: int) -> None:
        if self._open:  # while recovery builds queues, the old manifest knows more than they do
            self._manifest.save(clean=False)  # before the checkpoint: a file that it vouches for must be missed
        self.checkpoint.advance(index_timestamp=end_timestamp)
        if self._open:
            self.checkpoint.flush()
