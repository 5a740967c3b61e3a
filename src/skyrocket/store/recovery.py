"""Where the log ends after a stop, and what must be rebuilt from it.

    1. Each queue finds the end of its entries; index files that were not complete are dropped (unclean stop).
    2. A start is chosen: the newest place from which everything that may be missing is seen again. After our own clean
       stop that is the log's end, if every byte that 3 would look at is still the same (`store.seal`).
    3. The log is walked from there with checksums. Each record is dispatched: what queues and index already have is
       compared and, where it differs, mended. A gap in a queue means lost files: then 3 begins again at the oldest
       record.
    4. The walk ends at zeros (a clean end), or at a damaged record: a torn tail, unless intact records that had been
       flushed follow. Then the log was damaged later, and cutting it there would lose what was acknowledged: the
       store refuses to open. Older damage, where an ordinary start would not look, is named and passed over. When no
       checkpoint says what had been flushed, what is a minute older than the newest record had.
    5. Log and queues are cut at the end; what lies behind is kept aside (`store.cut_log`) and reads as zeros.

So a recovery may dispatch again, but never loses, and step 3 is the ordinary dispatch begun earlier.
"""

import contextlib
import logging
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass

from skyrocket.config.sections import StoreConfig
from skyrocket.errors import CorruptFile, CorruptRecord
from skyrocket.format.checkpoint import Checkpoint
from skyrocket.format.record import RecordHead, read_head
from skyrocket.model.topic import LMQ_PREFIX
from skyrocket.store.commit_log import CommitLog
from skyrocket.store.cut_log import keep_cut
from skyrocket.store.disk import Disk
from skyrocket.store.dispatcher import Dispatcher, light_queues_of
from skyrocket.store.entry_check import EntryCheck
from skyrocket.store.index import Index
from skyrocket.store.log_columns import LogColumns
from skyrocket.store.log_scan import LogEnd, LogScan
from skyrocket.store.manifest import Manifest, queue_key
from skyrocket.store.queue_table import QueueTable
from skyrocket.store.seal import seal_of
from skyrocket.store.topic_queue import TopicQueue

log = logging.getLogger(__name__)

_PROGRESS_SECONDS = 5.0
_FLUSHED_AFTER_MS = 60_000  # a record that is older than the newest by that is on disk: ours and RocketMQ's within 10 s


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
    last_timestamp: int = 0  # store time of the last record that was walked over; 0 without records


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
        cut_directory: str,
    ) -> None:
        self._disk = disk
        self._config = config
        self._log = commit_log
        self._queues = queues
        self._index = index
        self._dispatcher = dispatcher
        self._cut_directory = cut_directory
        self._on_disk = 0  # records that end before it were flushed: they cannot be torn
        self._pass_before = 0  # older damage is passed over
        self._left_clean = 0  # our own last clean stop had all before it on disk

    def run(
        self, *, clean: bool, checkpoint: Checkpoint, manifest: Manifest | None, cut_at: int | None = None
    ) -> RecoveryReport:
        """`cut_at` is where the log was cut on purpose, a moment ago: queues and index are cut there too."""
        with self._queues.doubting(self._entry_check().means_own), self._light_queues():
            return self._run(clean, checkpoint, manifest, cut_at)

    @contextlib.contextmanager
    def _light_queues(self) -> Iterator[None]:
        """Light queues that another broker wrote are kept up to date, whatever the setting says."""
        setting = self._dispatcher.multi_dispatch
        self._dispatcher.multi_dispatch = setting or any(queue.topic.startswith(LMQ_PREFIX) for queue in self._queues)
        try:
            yield
        finally:
            self._dispatcher.multi_dispatch = setting

    def _run(
        self, clean: bool, checkpoint: Checkpoint, manifest: Manifest | None, cut_at: int | None
    ) -> RecoveryReport:
        began = time.monotonic()
        rebuild_index = self._load_index(clean, checkpoint, manifest)
        self._left_clean = manifest.log_end if manifest is not None and manifest.clean else 0
        self._on_disk = self._log.files.end_offset if clean else checkpoint.flushed_offset
        for queue in self._queues:
            if not queue.damaged:
                queue.recover()
                queue.correct_min_offset(self._log.files.min_offset)
        if not self._log.files.starts:
            self._judge_damage(LogEnd(0), clean, checkpoint)
            self._queues.clear()
            self._resume(LogEnd(0))
            return RecoveryReport(clean, 0, 0, 0, False, rebuild_index, time.monotonic() - began)

        if cut_at is not None:
            self._drop_what_is_behind(cut_at)
        oldest = self._log.files.min_offset
        ordinary_start = self._choose_start(clean, checkpoint)
        self._pass_before = ordinary_start
        if not clean and not checkpoint.flushed_offset and not checkpoint.physic_timestamp:
            flushed = self._surely_flushed()
            checkpoint = checkpoint._replace(physic_timestamp=flushed)
            self._pass_before = self._newest_file(lambda head: head.store_timestamp <= flushed)
        damaged = self._reset(damaged_only=True)
        lost = manifest.missing_queues(self._queues) if manifest is not None and cut_at is None else []
        if lost:
            log.warning("queues are missing or too short, rebuilding from the log queues=%s", ", ".join(lost[:10]))
        whole = damaged or bool(lost) or rebuild_index or self._must_adopt(clean, manifest)
        if not whole and manifest is not None and self._is_as_it_was_left(clean, checkpoint, manifest):
            end = LogEnd(manifest.log_end, last_timestamp=manifest.last_timestamp)
            self._resume(end)
            return RecoveryReport(clean, end.offset, end.offset, 0, False, False, time.monotonic() - began)
        if self._reset_foreign_queues(all_files=whole):
            whole = True
        start = oldest if whole else ordinary_start
        end = self._walk(start)
        if self._reset(damaged_only=start == oldest):
            log.warning("queues do not fit the log, rebuilding them from the oldest record offset=%d", oldest)
            start, whole = oldest, True
            end = self._walk(start)
        self._judge_damage(end, clean, checkpoint)
        if self._drop_what_is_behind(end.offset):
            # The log ends before it, or a flipped bit made it point there: then its records must be found.
            log.warning("queues or index were ahead of the log, comparing all of it offset=%d", end.offset)
            start, whole = oldest, True
            end = self._walk(start)
        self._drop_stale_entries(start, end)
        self._resume(end)
        seconds = time.monotonic() - began
        return RecoveryReport(clean, start, end.offset, end.records, whole, rebuild_index, seconds, end.last_timestamp)

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
        """Whether another program had the store, and it is small enough to be compared as a whole."""
        if manifest is not None and (not clean or (manifest.clean and self._ends_at(manifest.log_end))):
            return False
        if self._log.files.end_offset - self._log.files.min_offset <= self._config.adopt_scan_bytes:
            return True
        log.warning(
            "another program had the store, and it is too large to be compared now; "
            "run `skyrocket inspect --verify` once path=%s",
            self._log.files.directory,
        )
        return False

    def _is_as_it_was_left(self, clean: bool, checkpoint: Checkpoint, manifest: Manifest) -> bool:
        """Whether our own clean stop left the store, and nobody has changed what a walk would see."""
        log_end = manifest.log_end
        if not clean or not manifest.clean or manifest.seal is None or checkpoint.flushed_offset != log_end:
            return False
        if not self._ends_at(log_end) or self._queues.max_physical_offset > log_end:
            return False
        seal = seal_of(self._disk, self._log.files, log_end, self._queues, self._index, self._config)
        if seal != manifest.seal:
            log.warning("the store is not as it was left, the newest records are compared end=%d", log_end)
        return seal == manifest.seal

    def _entry_check(self) -> EntryCheck:
        scan = LogScan(self._disk, self._config, self._log, self._on_disk)
        return EntryCheck(scan.record_at, light_queues=False)

    def _reset_foreign_queues(self, *, all_files: bool) -> bool:
        """Empty queues whose files are those of another queue: compared with them, right records would look wrong."""
        check = self._entry_check()
        for queue in self._queues:
            try:
                for start in queue.entries.starts if all_files else queue.entries.starts[-1:]:
                    check.trust_file(queue, start)
            except CorruptFile as error:
                log.warning("queue files are of another queue, rebuilding from the log error=%s", error)
                queue.damaged = True
        return self._reset(damaged_only=True)

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
        chosen = self._newest_file(
            lambda head: head.physical_offset <= covered if clean else head.store_timestamp <= checkpoint.min_timestamp
        )
        if self._index is None:
            return chosen
        indexed = max(self._index.end_physical_offset, starts[0])
        return min(chosen, starts[min((indexed - starts[0]) // self._log.file_size, len(starts) - 1)])

    def _surely_flushed(self) -> int:
        """A store time whose records had been flushed, though nothing says so; 0 when the log is too young."""
        scan = LogScan(self._disk, self._config, self._log, self._on_disk)
        return max(scan.newest_timestamp() - _FLUSHED_AFTER_MS, 0)

    def _newest_file(self, is_covered: Callable[[RecordHead], bool]) -> int:
        """The newest file whose first record is known to be covered; the oldest one if there is none."""
        for start in reversed(self._log.files.starts):
            head = self._first_record(start)
            if head is not None and is_covered(head):
                return start
        return self._log.files.starts[0]

    def _first_record(self, start: int) -> RecordHead | None:
        file = self._log.files.find(start)
        if file is None:
            return None
        try:
            return read_head(file.view, 0, start, check_crc=True)
        except CorruptRecord:
            return None

    # -- the walk ------------------------------------------------------------------------------------------

    def _walk(self, start: int) -> LogEnd:
        """Dispatch every intact record from an offset on; returns where that ended."""
        end = LogEnd(start)
        scan = LogScan(self._disk, self._config, self._log, self._on_disk)
        shown = time.monotonic()
        for batch in scan.batches(end, self._pass_before):
            self._dispatch(batch)
            if time.monotonic() - shown > _PROGRESS_SECONDS:
                shown = time.monotonic()
                done = (end.offset - start) / max(1, self._log.files.end_offset - start)
                log.info("recovering offset=%d records=%d percent=%d", end.offset, end.records, done * 100)
        for queue in self._queues:
            was_empty = not queue.entries.tail[1]
            queue.settle_doubts()
            if was_empty and queue.entries.tail[1]:
                self._queues.dirty.append(queue)
            if queue.doubts is not None and queue.doubts.made_again_at is not None:
                # Nobody may take the older records for its own again: the next walk, or the next start.
                self._queues.removed[queue_key(queue)] = queue.doubts.made_again_at
        return end

    def _dispatch(self, batch: list[RecordHead] | LogColumns) -> None:
        removed = self._queues.removed
        if isinstance(batch, LogColumns):
            if not removed or batch.physical_offsets[0] >= max(removed.values()):
                self._dispatcher.feed_columns(batch)
                return
            batch = batch.heads()
        items = [self._dispatcher.item(head) for head in (self._not_removed(batch) if removed else batch)]
        if items:
            self._dispatcher.feed(items)

    def _not_removed(self, heads: list[RecordHead]) -> list[RecordHead]:
        """Records but those of queues that were deleted after them."""
        removed = self._queues.removed
        return [
            h
            for h in heads
            if h.physical_offset >= removed.get(f"{h.topic.decode('utf-8', 'replace')}/{h.queue_id}", 0)
        ]

    def _reset(self, *, damaged_only: bool) -> bool:
        """Empty the queues that must be built anew; a gap is only a fault when older records were not walked."""
        broken = [queue for queue in self._queues if queue.damaged or (not damaged_only and _is_misfit(queue))]
        for queue in broken:
            queue.reset()
        self._queues.dirty[:] = [queue for queue in self._queues if queue.entries.tail[1]]
        if broken and self._index is not None:
            self._index.skip_indexed()
        return bool(broken)

    # -- the end -------------------------------------------------------------------------------------------

    def _judge_damage(self, end: LogEnd, clean: bool, checkpoint: Checkpoint) -> None:
        """Refuse to cut off records that had been flushed; a tail that never reached the disk may go."""
        if self._config.truncate_damaged_log or (clean and checkpoint.flushed_offset == end.offset):
            return
        if not end.reason:
            self._judge_lost_files(end, checkpoint)
            return
        scan = LogScan(self._disk, self._config, self._log, self._on_disk)
        follower = scan.next_intact_record(end.offset, end.last_timestamp)
        flushed = end.offset < checkpoint.flushed_offset
        if follower is not None and not checkpoint.flushed_offset:
            # RocketMQ's checkpoint knows only times. Records of the same millisecond may be on either side of a flush.
            flushed = 0 < follower.store_timestamp < checkpoint.physic_timestamp
            flushed |= end.offset < self._left_clean
            # After a clean stop all are on disk, but those that RocketMQ's own recovery cut off and left standing.
            flushed |= clean and not self._was_closed_at(end, checkpoint, scan)
        if not flushed:
            if follower is not None:
                log.warning(
                    "records behind a torn one are cut off: %s torn=%d next=%d",
                    "RocketMQ had ended the log before them" if clean else "they had not been flushed",
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
            "Restore the file from a replica or a backup; or run `skyrocket repair` on the store, which takes out this "
            "record alone (with --plan it only says so); or set truncateDamagedCommitLog=true to drop it and "
            "everything behind it",
            end.offset - start,
        )

    def _was_closed_at(self, end: LogEnd, checkpoint: Checkpoint, scan: LogScan) -> bool:
        """Whether RocketMQ closed the store with this end of the log.

        5.x says so. In 4.9 the queues' time is that of the last record of the log, and records that are later stand
        only behind an end that its recovery made.
        """
        if checkpoint.confirm_offset:
            return checkpoint.confirm_offset == end.last_offset
        if checkpoint.logics_timestamp != end.last_timestamp:
            return False
        return scan.next_intact_record(end.offset, end.last_timestamp + 1) is not None

    def _judge_lost_files(self, end: LogEnd, checkpoint: Checkpoint) -> None:
        """The files that are there are whole; but had there been more?"""
        if end.offset < checkpoint.flushed_offset:
            raise CorruptFile(
                self._log.files.path_of(end.offset),
                f"is missing: the log ends at {end.offset}, but was flushed up to {checkpoint.flushed_offset}",
                "Restore the missing files from a replica or a backup; or set truncateDamagedCommitLog=true to go on "
                "without them",
                0,
            )

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

    def _drop_stale_entries(self, walked_from: int, end: LogEnd) -> None:
        """Drop entries that no record claims; those of light queues and of damaged records are not stale."""
        for queue in self._queues:
            number = queue.first_unconfirmed(walked_from)
            if number is None:
                continue
            physical_offset, _ = queue.entry_place(number)
            if not end.has_passed(physical_offset) and not self._is_light_entry(queue, physical_offset):
                queue.drop_from(number)

    def _is_light_entry(self, queue: TopicQueue, physical_offset: int) -> bool:
        """Whether the record at a place names a queue in its properties, and is of another queue itself."""
        record = LogScan(self._disk, self._config, self._log, self._on_disk).record_at(physical_offset)
        head = read_head(record, 0, physical_offset) if record is not None else None
        return head is not None and (queue.topic, queue.queue_id) in light_queues_of(head)

    def _resume(self, end: LogEnd) -> None:
        kept = keep_cut(self._disk, self._cut_directory, self._log.files, end.offset)
        if kept is not None:
            log.warning("the log is cut, what lay behind is kept offset=%d directory=%s", end.offset, kept)
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


def _is_misfit(queue: TopicQueue) -> bool:
    """Whether a queue cannot be of this log: entries are missing, or more than one was wrong."""
    return queue.has_gap or queue.mended > 1
