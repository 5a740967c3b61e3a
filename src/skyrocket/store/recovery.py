"""Where the log ends after a stop, and what must be rebuilt from it.

    1. Each queue finds the end of its entries; index files that were not complete are dropped (unclean stop).
    2. A start is chosen: the newest place from which everything that may be missing is seen again. After our own clean
       stop that is the log's end, if every byte that 3 would look at is still the same (`store.seal`).
    3. The log is walked from there with checksums. Each record is dispatched: what queues and index already have is
       compared and, where it differs, mended. A gap in a queue means lost files: then 3 begins again at the oldest
       record.
    4. The walk ends at zeros (a clean end), or at a damaged record: a torn tail, unless intact records that had been
       flushed follow. Then the log was damaged later, and cutting it there would lose what was acknowledged: the
       store refuses to open.
    5. Log and queues are cut at the end; what lies behind reads as zeros.

So a recovery may dispatch again, but never loses, and step 3 is the ordinary dispatch begun earlier.
"""

import logging
import time
from collections.abc import Iterator
from dataclasses import dataclass

from skyrocket.config.sections import StoreConfig
from skyrocket.errors import CorruptFile, CorruptRecord
from skyrocket.format.checkpoint import Checkpoint
from skyrocket.format.record import CrcCheck, RecordHead, RecordWalk, WalkEnd, lacks_sectors, read_head
from skyrocket.format.record_search import possible_records
from skyrocket.store.commit_log import CommitLog
from skyrocket.store.disk import Disk
from skyrocket.store.dispatcher import Dispatcher
from skyrocket.store.index import Index
from skyrocket.store.manifest import Manifest
from skyrocket.store.mapped_file_queue import MappedFile
from skyrocket.store.queue_table import QueueTable
from skyrocket.store.record_tuples import DispatchItem
from skyrocket.store.seal import seal_of

log = logging.getLogger(__name__)

_BATCH = 4096
_PROGRESS_SECONDS = 5.0


@dataclass(frozen=True, slots=True)
class RecoveryReport:
    """What a recovery found and did."""

    clean: bool
    start_offset: int
    end_offset: int
    records: int
    rebuilt_queues: bool
    rebuilt_index: bool
    seconds: float


@dataclass(slots=True)
class _LogEnd:
    """Where and why a walk through the log ended."""

    offset: int
    reason: str
    last_timestamp: int
    records: int


class Recovery:
    """Brings log, queues and index into agreement; the store calls `run` once, before it starts."""

    def __init__(
        self,
        disk: Disk,
        config: StoreConfig,
        commit_log: CommitLog,
        queues: QueueTable,
        index: Index | None,
        dispatcher: Dispatcher,
    ) -> None:
        self._disk = disk
        self._config = config
        self._log = commit_log
        self._queues = queues
        self._index = index
        self._dispatcher = dispatcher
        self._on_disk = 0  # records that end before it were flushed: they cannot be torn
        self._crc = CrcCheck.NONE
        if config.verify_record_crc:
            self._crc = CrcCheck.RECORD
        elif config.check_crc_on_recover:
            self._crc = CrcCheck.BODY

    def run(self, *, clean: bool, checkpoint: Checkpoint, manifest: Manifest | None) -> RecoveryReport:
        began = time.monotonic()
        rebuild_index = self._load_index(clean, checkpoint, manifest)
        self._on_disk = self._log.files.end_offset if clean else checkpoint.flushed_offset
        for queue in self._queues:
            if not queue.damaged:
                queue.recover()
                queue.correct_min_offset(self._log.files.min_offset)
        if not self._log.files.starts:
            self._judge_damage(_LogEnd(0, "", 0, 0), clean, checkpoint)
            self._queues.clear()
            self._resume(_LogEnd(0, "", 0, 0))
            return RecoveryReport(clean, 0, 0, 0, False, rebuild_index, time.monotonic() - began)

        oldest = self._log.files.min_offset
        damaged = self._reset(damaged_only=True)
        lost = manifest.missing_queues(self._queues) if manifest is not None else []
        if lost:
            log.warning("queues are missing or too short, rebuilding from the log queues=%s", ", ".join(lost[:10]))
        whole = damaged or bool(lost) or rebuild_index or self._must_adopt(clean, manifest)
        if not whole and manifest is not None and self._is_as_it_was_left(clean, checkpoint, manifest):
            end = _LogEnd(manifest.log_end, "", manifest.last_timestamp, 0)
            self._resume(end)
            return RecoveryReport(clean, end.offset, end.offset, 0, False, False, time.monotonic() - began)
        start = oldest if whole else self._choose_start(clean, checkpoint)
        end = self._walk(start)
        if self._reset(damaged_only=start == oldest):
            log.warning("queues have gaps, rebuilding them from the oldest record offset=%d", oldest)
            start, whole = oldest, True
            end = self._walk(start)
        self._judge_damage(end, clean, checkpoint)
        if self._drop_what_is_behind(end.offset):
            # The log ends before it, or a flipped bit made it point there: then its records must be found.
            log.warning("queues or index were ahead of the log, comparing all of it offset=%d", end.offset)
            start, whole = oldest, True
            end = self._walk(start)
        for queue in self._queues:
            queue.drop_unconfirmed(start)
        self._resume(end)
        seconds = time.monotonic() - began
        return RecoveryReport(clean, start, end.offset, end.records, whole, rebuild_index, seconds)

    # -- before the walk ---------------------------------------------------------------------------------

    def _load_index(self, clean: bool, checkpoint: Checkpoint, manifest: Manifest | None) -> bool:
        """Open the index; True when it had to be thrown away."""
        if self._index is None:
            return False
        before = self._disk.names(self._index.directory)
        usable = self._index.load(clean=clean, checkpoint_timestamp=checkpoint.index_timestamp)
        missing = manifest.missing_index_files(before) if manifest is not None else []
        if missing:
            log.warning("index files are missing, rebuilding the index from the log files=%s", ", ".join(missing))
        if missing or not usable:
            self._index.clear()
            return True
        return False

    def _must_adopt(self, clean: bool, manifest: Manifest | None) -> bool:
        """Whether another program closed the store, and it is small enough to be compared as a whole."""
        if not clean or (manifest is not None and manifest.clean and self._ends_at(manifest.log_end)):
            return False
        if self._log.files.end_offset - self._log.files.min_offset <= self._config.adopt_scan_bytes:
            return True
        log.warning(
            "the store was closed by another program and is too large to be compared now; "
            "run `skyrocket inspect --verify` once path=%s",
            self._log.files.directory,
        )
        return False

    def _is_as_it_was_left(self, clean: bool, checkpoint: Checkpoint, manifest: Manifest) -> bool:
        """Whether our own clean stop left the store, and nobody has changed what a walk would see."""
        log_end = manifest.log_end
        if not clean or not manifest.clean or manifest.seal is None or checkpoint.flushed_offset != log_end:
            return False
        if not self._ends_at(log_end):
            return False
        seal = seal_of(self._disk, self._log.files, log_end, self._queues, self._index, self._config)
        if seal != manifest.seal:
            log.warning("the store is not as it was left, the newest records are compared end=%d", log_end)
        return seal == manifest.seal

    def _ends_at(self, offset: int) -> bool:
        """Whether no record follows an offset."""
        file = self._log.files.find(offset)
        if file is None:
            return offset == self._log.files.end_offset
        at = offset - file.start_offset
        return not any(file.view[at : at + 4])

    def _choose_start(self, clean: bool, checkpoint: Checkpoint) -> int:
        """The newest file from which all that may be missing in queues and index is seen again."""
        starts = self._log.files.starts
        covered = self._queues.max_physical_offset
        chosen = starts[0]
        for start in reversed(starts):
            head = self._first_record(start)
            if head is None:
                continue
            fits = start <= covered if clean else head.store_timestamp <= checkpoint.min_timestamp
            if fits:
                chosen = start
                break
        if self._index is None:
            return chosen
        indexed = max(self._index.end_physical_offset, starts[0])
        return min(chosen, starts[min((indexed - starts[0]) // self._log.file_size, len(starts) - 1)])

    def _first_record(self, start: int) -> RecordHead | None:
        file = self._log.files.find(start)
        if file is None:
            return None
        try:
            return read_head(file.view, 0, start, check_crc=True)
        except CorruptRecord:
            return None

    # -- the walk ------------------------------------------------------------------------------------------

    def _walk(self, start: int) -> _LogEnd:
        """Dispatch every intact record from an offset on; returns where that ended."""
        end = _LogEnd(start, "", 0, 0)
        shown = time.monotonic()
        for batch in self._batches(start, end):
            self._dispatcher.feed(batch)
            end.records += len(batch)
            end.last_timestamp = batch[-1][3]
            if time.monotonic() - shown > _PROGRESS_SECONDS:
                shown = time.monotonic()
                done = (end.offset - start) / max(1, self._log.files.end_offset - start)
                log.info("recovering offset=%d records=%d percent=%d", end.offset, end.records, done * 100)
        return end

    def _batches(self, start: int, end: _LogEnd) -> Iterator[list[DispatchItem]]:
        item, removed = self._dispatcher.item, self._queues.removed
        for file_start in self._log.files.starts:
            if file_start + self._log.file_size <= start:
                continue
            file = self._log.files.find(file_start)
            assert file is not None
            walk = RecordWalk(file.map, file_start, max(0, start - file_start), crc=self._crc)
            batch: list[DispatchItem] = []
            for head in walk:
                reason = self._hidden_damage(head)
                if reason:
                    walk.end, walk.reason = WalkEnd.DAMAGED, reason
                    break
                if removed and head.physical_offset < removed.get(f"{head.topic.decode()}/{head.queue_id}", 0):
                    continue
                batch.append(item(head))
                if len(batch) >= _BATCH:
                    end.offset = file_start + walk.position
                    yield batch
                    batch = []
            end.offset = file_start + walk.position
            if batch:
                yield batch
            if walk.end in (WalkEnd.ZERO, WalkEnd.DAMAGED):
                end.reason = walk.reason
                return
            end.offset = file_start + self._log.file_size

    def _hidden_damage(self, head: RecordHead) -> str:
        """What is wrong with a record that passed the checks of its format; nothing for nearly all of them."""
        if b"/" in head.topic or b"\0" in head.topic:
            return f"a topic {head.topic!r}"
        if head.physical_offset + head.size > self._on_disk and lacks_sectors(head):
            return "zeros in its property text"
        return ""

    def _reset(self, *, damaged_only: bool) -> bool:
        """Empty the queues that must be built anew; a gap is only a fault when older records were not walked."""
        broken = [queue for queue in self._queues if queue.damaged or (queue.has_gap and not damaged_only)]
        for queue in broken:
            queue.reset()
        self._queues.dirty[:] = [queue for queue in self._queues if queue.entries.tail[1]]
        if broken and self._index is not None:
            self._index.skip_indexed()
        return bool(broken)

    # -- the end -------------------------------------------------------------------------------------------

    def _judge_damage(self, end: _LogEnd, clean: bool, checkpoint: Checkpoint) -> None:
        """Refuse to cut off records that had been flushed; a tail that never reached the disk may go."""
        if self._config.truncate_damaged_log or (clean and checkpoint.flushed_offset == end.offset):
            return
        if not end.reason:
            self._judge_lost_files(end, checkpoint)
            return
        follower = self._next_intact_record(end.offset, end.last_timestamp)
        flushed = end.offset < checkpoint.flushed_offset
        if follower is not None and not checkpoint.flushed_offset:
            # RocketMQ's checkpoint knows only times. Records of the same millisecond may be on either side of a flush.
            flushed = 0 < follower.store_timestamp < checkpoint.physic_timestamp
        if not flushed:
            if follower is not None:
                log.warning(
                    "records behind a torn one are dropped: they had not been flushed torn=%d next=%d",
                    end.offset,
                    follower.physical_offset,
                )
            return
        file = self._log.files.find(end.offset)
        start = file.start_offset if file is not None else 0
        path = file.path if file is not None else self._log.files.directory
        raise CorruptFile(
            path,
            f"the record at physical offset {end.offset} is damaged ({end.reason}), and flushed records follow it",
            "Restore the file from a replica or a backup; or set truncateDamagedCommitLog=true to drop this record "
            "and everything behind it",
            end.offset - start,
        )

    def _judge_lost_files(self, end: _LogEnd, checkpoint: Checkpoint) -> None:
        """The files that are there are whole; but had there been more?"""
        if end.offset < checkpoint.flushed_offset:
            raise CorruptFile(
                self._log.files.path_of(end.offset),
                f"is missing: the log ends at {end.offset}, but was flushed up to {checkpoint.flushed_offset}",
                "Restore the missing files from a replica or a backup; or set truncateDamagedCommitLog=true to go on "
                "without them",
                0,
            )

    def _next_intact_record(self, offset: int, not_before_ms: int) -> RecordHead | None:
        """The first intact record behind a damaged place; also in later files.

        Store times never go back: an older record is one that RocketMQ cut off before, and wrote over in part.
        """
        for start in self._log.files.starts:
            file = self._log.files.find(start)
            if file is None or start + self._log.file_size <= offset:
                continue
            found = self._search(file, max(offset + 1 - start, 0), not_before_ms)
            if found is not None:
                return found
        return None

    def _search(self, file: MappedFile, position: int, not_before_ms: int) -> RecordHead | None:
        """The first intact record of a file from a position on; holes of the file are not looked at."""
        for start, end in self._disk.data_extents(file.fd, position, self._log.file_size):
            for at in possible_records(file.map, max(start - 4, 0), end, file.start_offset):  # its size may be a hole
                try:
                    head = read_head(file.map, at, file.start_offset + at, check_crc=True)
                except CorruptRecord:
                    continue
                if head is not None and head.store_timestamp >= not_before_ms:
                    return head
        return None

    def _drop_what_is_behind(self, log_end: int) -> bool:
        """Cut queues and index where the log ends; whether that took anything."""
        before = sum(queue.max_offset for queue in self._queues)
        for queue in self._queues:
            queue.truncate_to(log_end)
        dropped = sum(queue.max_offset for queue in self._queues) < before
        if self._index is not None:
            dropped = self._index.drop_behind(log_end) or dropped
            self._index.skip_indexed()
        return dropped

    def _resume(self, end: _LogEnd) -> None:
        oldest = self._log.files.min_offset
        for queue in self._queues:
            queue.truncate_to(end.offset)
            queue.correct_min_offset(oldest)
            queue.next_offset = queue.max_offset
        self._log.resume(end.offset, self._on_disk)
        self._log.raw_end = end.offset
        self._log.last_store_timestamp = end.last_timestamp
        self._dispatcher.dispatched_offset = end.offset
        self._dispatcher.dispatched_timestamp = end.last_timestamp
