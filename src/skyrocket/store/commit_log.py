"""The CommitLog: one stream of records for all topics, in files of fixed size.

One writer appends under a lock; everyone else reads up to `readable_offset`. A record never crosses files: when it
does not fit (with 8 bytes to spare) the rest of the file becomes a blank and the record opens the next file.

    flushed_offset ≤ readable_offset ≤ written_offset
    on disk          in the page cache  in a buffer of the transient pool, or handed over to `LogWriter`

`append` is the hottest function of the system. It takes a group (all that arrived in one turn of an event loop, or
one message): names are bound once, a record is one pack, and all records of a group are joined and copied at once.
"""

import mmap
import threading
from collections.abc import Callable, Sequence
from dataclasses import dataclass

from skyrocket.clock import Clock
from skyrocket.config.sections import StoreConfig
from skyrocket.errors import StoreError, StoreFailed
from skyrocket.format.crc import CRC_PROPERTY_BYTES, crc32, record_crc_property
from skyrocket.format.record import BLANK_SIZE, HEADS, PROPERTIES_LENGTH, CrcCheck, RecordWalk, encode_blank
from skyrocket.store.allocator import FileAllocator, PreparedFile
from skyrocket.store.batch_records import PlainBatch
from skyrocket.store.column_records import records_of_all
from skyrocket.store.disk import Disk, DiskStandsStill
from skyrocket.store.log_writer import PATIENCE_SECONDS, Chunk, HandOver, LogWriter
from skyrocket.store.mapped_file_queue import MappedFile, MappedFileQueue
from skyrocket.store.record_run import Appended, RecordRun
from skyrocket.store.record_tuples import ROW_BODY, ROW_PROPERTIES, DispatchItem, Row
from skyrocket.store.reserved_blocks import ReservedBlocks
from skyrocket.store.transient_pool import Buffered, TransientPool

_HEAD_V4 = HEADS[0]
_pack_head_v4 = _HEAD_V4.pack
_pack_length = PROPERTIES_LENGTH.pack
_join = b"".join
_V4_FIXED = _HEAD_V4.size + PROPERTIES_LENGTH.size
_NOT_HOST_BITS = ~0x30
_STILL_SECONDS = 0.1  # a disk that has not answered for so long is not asked for room
_ROOM_SECONDS = (
    1.0  # how long a put waits for a thread that makes room, as long as an append may take before it is busy
)
_COPY_SECONDS = 30.0  # how long copied bytes do: a slave that refuses them leaves its master
_BEHIND_SECONDS = 1.0  # how long a flush waits for the writer's thread
_UNCOUNTED = 0x04  # set for prepared and rollback records: they get no queue offset


@dataclass(slots=True)
class PutMessage:
    """A message on its way into the store; hosts are packed (`format.record.pack_host`), properties encoded."""

    topic: str
    queue_id: int
    body: bytes
    properties: bytes = b""
    flag: int = 0
    sys_flag: int = 0
    born_timestamp: int = 0
    born_host: bytes = b"\x7f\x00\x00\x01\x00\x00\x00\x00"
    reconsume_times: int = 0
    prepared_transaction_offset: int = 0
    store_host: bytes | None = None  # the broker's own when None


def _nobody_listens(_: OSError) -> None: ...


class CommitLog:
    """Appends and reads records."""

    def __init__(
        self,
        disk: Disk,
        directory: str,
        config: StoreConfig,
        clock: Clock,
        store_host: bytes,
        pool: TransientPool | None = None,
    ) -> None:
        self.files = MappedFileQueue(disk, directory, config.commit_log_file_size, config.max_mapped_log_files)
        self.file_size = config.commit_log_file_size
        self.written_offset = 0
        self.flushed_offset = 0
        self.last_store_timestamp = 0
        self.append_began_ms = 0  # since when the oldest append waits; 0: none does
        self.pending: list[Appended] = []  # appended, not yet dispatched; the dispatcher takes from its head
        self.raw_end = 0  # bytes before it may have come from a master: dispatch must read them from the log
        self._disk = disk
        self._now_ms = clock.now_ms
        self.store_host = store_host
        self._seal_records = config.append_record_crc
        self.allocator = FileAllocator(disk)
        self.on_failed: Callable[[OSError], None] = _nobody_listens  # a write of another thread failed
        self.writer = LogWriter(
            disk,
            on_written=self._written_behind,
            on_oldest=self._waits_since,
            on_failed=lambda error: self.on_failed(error),
        )
        self._hand_over = HandOver(disk, config, is_pooled=pool is not None)
        step = min(config.preallocate_bytes, self.file_size)
        self._blocks = ReservedBlocks(disk, self.allocator, step, self._await_disk)
        self.lock = threading.RLock()  # held by whoever appends
        self._pool = pool
        self._buffers: list[Buffered] = []  # files of which a part is still only in a buffer of the pool
        self._committed_offset = 0
        self._committed_timestamp = 0  # a store time that everything committed has reached
        self._file: MappedFile | None = None
        self._buffer: mmap.mmap | None = None  # of the pool: where records go before the file
        self._soft_end = 0  # a record that ends here or before needs no further thought
        self._patience = _ROOM_SECONDS  # with a thread that makes room
        self._new_names = False  # a file was created since the directory was forced to disk

    # -- life -------------------------------------------------------------------------------------------

    def load(self) -> None:
        """Read the directory; recovery then calls `resume`."""
        self.files.load()

    def resume(self, end_offset: int, on_disk: int) -> None:
        """Continue behind the last record; everything after it is dropped.

        What lies behind `on_disk` was found in the page cache, maybe only there: it is forced to disk before
        anything that follows can be.
        """
        self.files.truncate(end_offset)
        self.written_offset = self._committed_offset = end_offset
        self.flushed_offset = max(min(on_disk, end_offset), self.files.min_offset)
        self._new_names = True
        self.flush()
        self._soft_end = 0
        self._file = self._buffer = None
        last = self.files.pin_last()
        if last is not None and end_offset < self.files.end_offset:
            self._use(last, None, allocated=end_offset - last.start_offset)

    def start(self) -> None:
        self.allocator.start()
        if self._file is not None:
            self._prepare_next()

    def stop(self) -> None:
        """Stop preparing files and forget the maps; the flusher must have stopped before."""
        self.writer.stop()
        self.allocator.stop()
        self._file = self._buffer = None
        self._blocks.let_go()
        self._soft_end = 0
        self.files.close()

    @property
    def readable_offset(self) -> int:
        """Readers, dispatch and replication see what lies before it."""
        return self._committed_offset

    @property
    def min_offset(self) -> int:
        return self.files.min_offset

    @property
    def buffered(self) -> bool:
        """Whether records go to the transient pool first."""
        return bool(self._buffers)

    # -- appending ----------------------------------------------------------------------------------------

    def append(self, rows: Sequence[Row]) -> tuple[list[DispatchItem], OSError | StoreError | None]:
        """Store records at the end of the log, each under the next offset of its queue; the caller has checked sizes.

        A group costs one lock, one look at the clock and one copy. When no room can be made for a record (the disk is
        full: OSError; it is larger than a file: StoreError) those before it are stored, and the reason comes with them.
        """
        items: list[DispatchItem] = []
        parts: list[bytes] = []
        error: OSError | StoreError | None = None
        with self.lock:
            before, now = self.last_store_timestamp, self._begin()
            first = start = self.written_offset  # the parts collected go to first … start
            soft_end = self._soft_end
            own_host = self.store_host
            for row in rows:
                queue, body, properties, flag, sys_flag, born_at, born_host, retries, prepared, store_host, count = row
                if store_host is None:
                    store_host = own_host
                sys_flag &= _NOT_HOST_BITS
                topic_part = queue.topic_part
                body_length = len(body)
                properties_length = len(properties)
                size = _V4_FIXED + body_length + len(topic_part) + properties_length
                pack_head = _pack_head_v4
                if len(born_host) != 8 or len(store_host) != 8:
                    sys_flag |= (len(born_host) == 20) << 4 | (len(store_host) == 20) << 5
                    wide = HEADS[sys_flag >> 4 & 3]
                    pack_head = wide.pack
                    size += wide.size - _HEAD_V4.size
                if start + size > soft_end:
                    if parts:
                        self._copy(first, start, parts)
                    try:
                        first = start = self._make_room(size)
                    except (OSError, StoreError) as no_room:
                        error = no_room
                        break
                    soft_end = self._soft_end
                if sys_flag & _UNCOUNTED:
                    queue_offset = 0
                else:
                    queue_offset = queue.next_offset
                    queue.next_offset = queue_offset + count
                head = pack_head(
                    size, queue.record_magic, crc32(body) & 0x7FFFFFFF, queue.queue_id, flag, queue_offset, start,
                    sys_flag, born_at, born_host, now, store_host, retries, prepared, body_length,
                )  # fmt: skip
                parts += (head, body, topic_part, _pack_length(properties_length), properties)
                if self._seal_records:
                    parts[-5:] = [_sealed(_join(parts[-5:]))]
                items.append((queue, start, size, now, queue_offset, properties, sys_flag))
                start += size
            if parts:
                self._copy(first, start, parts)
            self.pending += items
            self.last_store_timestamp = now if items else before  # nothing has the time of what was refused
            if not self.writer.waiting_bytes:
                self.append_began_ms = 0
        return items, error

    def _begin(self) -> int:
        """The time of the records that are appended now. The clock may be set back: store times never go back."""
        self.last_store_timestamp = now = max(self._now_ms(), self.last_store_timestamp)
        if not self.writer.waiting_bytes:
            self.append_began_ms = now
        return now

    def _copy(self, first: int, end: int, parts: list[bytes]) -> None:
        """Write collected records and let readers see them."""
        try:
            self._write(first, parts[0] if len(parts) == 1 else _join(parts), end)
        except OSError as error:
            raise StoreFailed(f"copying a record to the log failed: {error}") from error
        parts.clear()

    def _write(self, start: int, data: bytes | memoryview, end: int, *, here: bool = False) -> None:
        """Bring bytes to the page cache, and let the log end behind them: here, or by the writer's thread.

        By a call: a write through a map stops at every page that is touched first, or was just brought to disk.
        """
        file, buffer = self._file, self._buffer
        assert file is not None
        at = start - file.start_offset
        if buffer is not None:
            buffer[at : at + len(data)] = data
            self.written_offset = end
        elif self.writer.waiting_bytes or (not here and self._hand_over.is_due()):
            self.written_offset = end
            self.writer.hand_over(Chunk(file, at, bytes(data), end, self.last_store_timestamp))
        else:
            self._disk.write_at(file.fd, data, at)
            self.written_offset = self._committed_offset = end

    def _waits_since(self, oldest_ms: int) -> None:
        self.append_began_ms = oldest_ms

    def _written_behind(self, chunk: Chunk) -> None:
        """In the writer's thread: bytes that were handed over can be read now."""
        self._committed_timestamp = chunk.timestamp
        self._committed_offset = chunk.end_offset

    @property
    def is_behind(self) -> bool:
        """Whether records that were appended wait for the writer's thread."""
        return self.writer.waiting_bytes > 0

    def append_together(self, rows: Sequence[Row]) -> list[DispatchItem]:
        """Store the records of a client batch back to back in one file; raises OSError when that has no room."""
        queue, _, _, _, _, _, born_host, _, _, store_host, _ = rows[0]  # a batch is of one client and for one queue
        head = HEADS[(len(born_host) == 20) | (len(store_host or self.store_host) == 20) << 1]
        total = len(rows) * (head.size + len(queue.topic_part) + PROPERTIES_LENGTH.size)
        total += sum([len(row[ROW_BODY]) + len(row[ROW_PROPERTIES]) for row in rows])
        with self.lock:
            if self.written_offset + total > self._soft_end:
                self._make_room(total)
            items, error = self.append(rows)
        assert error is None
        return items

    def append_batches(self, batches: Sequence[PlainBatch], total: int) -> list[RecordRun]:
        """The same for batches of which only the parts were looked at; not for logs whose records have a checksum.

        They stay together: all of them in one file, or none.
        """
        assert not self._seal_records
        with self.lock:
            if self.written_offset + total > self._soft_end:
                self._make_room(total)
            now = self._begin()
            start = self.written_offset
            pieces, runs = records_of_all(batches, self.store_host, start, now)
            self._copy(start, start + total, pieces)
            self.pending += [run if run.count > 1 else next(run.items()) for run in runs]
            if not self.writer.waiting_bytes:
                self.append_began_ms = 0
        return runs

    def has_room_for(self, size: int) -> bool:
        """Whether so many bytes fit where the log ends, without further thought."""
        return self.written_offset + size <= self._soft_end

    def append_raw(self, offset: int, data: bytes | memoryview) -> None:
        """Append log bytes as a master sent them; they begin where this log ends, and may cut a record anywhere."""
        view = memoryview(data)
        with self.lock:
            if not self.files.starts:
                if offset % self.file_size:
                    # Zeros would stand before the first record: the next recovery would take them for the log's end.
                    raise StoreError(f"an empty log cannot begin at {offset}, which is not the start of a file")
                self.written_offset = self._committed_offset = self.flushed_offset = offset
            self.writer.wait_until_idle(_BEHIND_SECONDS)  # what it wrote as a master
            if offset != self.written_offset:
                raise StoreError(f"replicated bytes begin at {offset}, the log ends at {self.written_offset}")
            self._patience = _COPY_SECONDS
            try:
                self._append_pieces(view)
            finally:
                self._patience = _ROOM_SECONDS
            self.raw_end = self.written_offset

    def _append_pieces(self, view: memoryview) -> None:
        """Bytes to the files in which they lie."""
        while view:
            if self._file is None or self.written_offset == self.files.end_offset:
                self._roll()
            start = self.written_offset
            piece = view[: self.files.end_offset - start]
            self._reserve(start + len(piece))
            self._write(start, piece, start + len(piece), here=True)  # a slave says at once what it has
            if self._buffers:
                self._buffers[-1].data_end = start + len(piece)
            view = view[len(piece) :]

    def _make_room(self, size: int) -> int:
        """The place for a number of bytes: reserve disk blocks, or end this file with a blank and open the next."""
        if size + BLANK_SIZE > self.file_size:
            raise StoreError(f"{size} bytes do not fit into a log file of {self.file_size} bytes")
        if self._file is None or self.written_offset + size + BLANK_SIZE > self.files.end_offset:
            self._roll()
        self._reserve(self.written_offset + size)
        return self.written_offset

    def _roll(self) -> None:
        """Open the next file. Nothing changes when it cannot be made: then the disk is full."""
        start = self.files.end_offset
        if not self.files.starts:  # a new log, or an empty slave that begins in the middle of its master's
            start = self.written_offset - self.written_offset % self.file_size
        if not self.allocator.has(start):
            self._await_disk()
        buffer = self._pool.borrow() if self._pool is not None else None
        try:
            path, step = self.files.path_of(start), self._blocks.step
            prepared = self.allocator.take(start, path, self.file_size, step, self._patience)
            self._end_file(start, prepared)
        except OSError:
            if self._pool is not None and buffer is not None:
                self._pool.give_back(buffer)
            raise
        file = self.files.append_file(start, prepared.fd)
        if buffer is not None:
            if not self._buffers:
                self._committed_offset = self.written_offset
            self._buffers.append(Buffered(file, buffer, data_end=start))
        self._use(file, buffer, prepared.allocated)
        self._new_names = True
        self._prepare_next()

    def _end_file(self, end: int, following: PreparedFile) -> None:
        """Fill the file that is written with a blank; when that has no room the one that follows waits."""
        if self._file is None or self.written_offset == end:
            return
        try:
            self._write_blank(end)
        except OSError:
            self.allocator.put_back(following)
            raise

    def _write_blank(self, file_end: int) -> None:
        left = file_end - self.written_offset
        self._reserve(self.written_offset + BLANK_SIZE)
        data_end = self.written_offset + BLANK_SIZE
        self._write(self.written_offset, encode_blank(left), file_end)
        if self._buffers:
            self._buffers[-1].data_end = data_end

    def _use(self, file: MappedFile, buffer: mmap.mmap | None, allocated: int) -> None:
        self._file = file
        self._buffer = buffer
        self._soft_end = self._blocks.use(file, allocated)

    def _reserve(self, end_offset: int) -> None:
        """Give the file disk blocks up to an offset and some more; raises OSError when there are none, or not now."""
        self._soft_end = min(self._blocks.reserve(end_offset, self._patience), self.files.end_offset - BLANK_SIZE)

    def _await_disk(self) -> None:
        """Before a call that waits for a disk that stands still; raises DiskStandsStill for those who cannot."""
        if self._patience == _COPY_SECONDS:
            return
        if not self.writer.wait_until_idle(PATIENCE_SECONDS) or self._disk.stands_still(_STILL_SECONDS):
            raise DiskStandsStill("the disk stands still")

    def _prepare_next(self) -> None:
        start = self.files.end_offset
        self.allocator.prepare(start, self.files.path_of(start), self.file_size, self._blocks.step)

    # -- the transient pool ---------------------------------------------------------------------------------

    def commit(self, least_pages: int = 0) -> bool:
        """Copy what is only in buffers to the page cache; returns whether anything moved."""
        moved = False
        while self._buffers:
            first = self._buffers[0]
            with self.lock:
                last = len(self._buffers) == 1
                data_end = self.written_offset if last else first.data_end
                timestamp = self.last_store_timestamp if last else self._committed_timestamp
                file_end = first.file.start_offset + self.file_size
            start = max(self._committed_offset, first.file.start_offset)
            if data_end > start:
                if last and data_end // 4096 - start // 4096 < least_pages:
                    return moved
                at = start - first.file.start_offset
                length = data_end - start
                self._disk.write_at(first.file.fd, memoryview(first.buffer)[at : at + length], at)
                self._committed_offset = data_end
                self._committed_timestamp = timestamp
                moved = True
            if last:
                return moved
            assert self._pool is not None
            self._committed_offset = file_end
            self._buffers.pop(0)
            self._pool.give_back(first.buffer)
        return moved

    # -- flushing -------------------------------------------------------------------------------------------

    def flush(self) -> tuple[int, int]:
        """Force everything readable to disk; returns the flushed offset and a store time that it covers."""
        self.writer.wait_until_idle(_BEHIND_SECONDS)
        with self.lock:  # not while an append is between its time and its end: the time must not be newer
            is_behind = self.is_behind
            target = self.readable_offset
            covered = self._committed_timestamp if self._buffers or is_behind else self.last_store_timestamp
        if target > self.flushed_offset:
            if self._new_names:
                self._new_names = False
                self._disk.sync_directory(self.files.directory)
            offset = self.flushed_offset
            while offset < target:
                file = self.files.find(offset)
                assert file is not None, f"no log file at {offset}"
                file.sync()
                offset = file.start_offset + self.file_size
            self.flushed_offset = target
        return self.flushed_offset, covered

    # -- reading --------------------------------------------------------------------------------------------

    def slice(self, physical_offset: int, size: int) -> memoryview | None:
        """Bytes of the log as they are; None when they are gone, not yet there, or cross a file."""
        if physical_offset + size > self.readable_offset:
            return None
        file = self.files.find(physical_offset)
        if file is None:
            return None
        at = physical_offset - file.start_offset
        return file.view[at : at + size] if at + size <= self.file_size else None

    def raw(self, physical_offset: int, max_bytes: int) -> memoryview | None:
        """Log bytes for a replica: at most to the end of the file, records may be cut."""
        readable = self.readable_offset
        file = self.files.find(physical_offset)
        if file is None or physical_offset >= readable:
            return None
        at = physical_offset - file.start_offset
        end = min(at + max_bytes, self.file_size, readable - file.start_offset)
        return file.view[at:end]

    def walk(self, physical_offset: int, crc: CrcCheck = CrcCheck.NONE) -> tuple[RecordWalk, int] | None:
        """A walk through the records from an offset to the end of its file, and the offset that follows the file."""
        file = self.files.find(physical_offset)
        if file is None:
            return None
        readable = min(self.readable_offset - file.start_offset, self.file_size)
        walk = RecordWalk(file.view, file.start_offset, physical_offset - file.start_offset, readable, crc)
        return walk, file.start_offset + self.file_size


def _sealed(record: bytes) -> bytes:
    """The record with its checksum in the twenty bytes that were reserved for it."""
    return record[:-CRC_PROPERTY_BYTES] + record_crc_property(record)
