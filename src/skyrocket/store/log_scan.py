"""The walk of recovery through the log: record after record with checksums, to the first place that is none.

Damage in a part of the log that an ordinary start would not look at is passed over: it is old, all of it had been
flushed, and the records on both sides of it are as good as before.
"""

import heapq
import itertools
import logging
from collections.abc import Iterator
from dataclasses import dataclass, field

from skyrocket.config.sections import StoreConfig
from skyrocket.errors import CorruptRecord
from skyrocket.format.record import BLANK_SIZE, CrcCheck, RecordHead, RecordWalk, WalkEnd, lacks_sectors, read_head
from skyrocket.format.record_search import possible_records
from skyrocket.format.store_names import topic_damage
from skyrocket.store.commit_log import CommitLog
from skyrocket.store.disk import Disk
from skyrocket.store.log_columns import LogColumns, read_columns
from skyrocket.store.mapped_file_queue import MappedFile

log = logging.getLogger(__name__)

_BATCH = 4096
_DAMAGE_SHOWN = 20


@dataclass(slots=True)
class LogEnd:
    """Where and why a walk through the log ended."""

    offset: int
    reason: str = ""
    last_timestamp: int = 0
    last_offset: int = -1  # where the last record begins
    records: int = 0
    passed: list[tuple[int, int]] = field(default_factory=list)  # damage that was passed over: from, to

    def has_passed(self, physical_offset: int) -> bool:
        """Whether a place lies in damage that was passed over."""
        return any(start <= physical_offset < end for start, end in self.passed)


class LogScan:
    """Reads the log from an offset on."""

    by_columns = True  # tests compare both ways: False looks at all records one by one

    def __init__(self, disk: Disk, config: StoreConfig, commit_log: CommitLog, on_disk: int) -> None:
        self._disk = disk
        self._log = commit_log
        self._on_disk = on_disk  # records that end before it were flushed: they cannot be torn
        self._crc = CrcCheck.NONE
        if config.verify_record_crc:
            self._crc = CrcCheck.RECORD
        elif config.check_crc_on_recover:
            self._crc = CrcCheck.BODY

    def batches(self, end: LogEnd, pass_before: int) -> Iterator[list[RecordHead] | LogColumns]:
        """Intact records from `end.offset` on, many at a time; `end` then says where that ended.

        Records are read as columns up to one that is not as usual. That one, and what it means, is for the walk from
        record to record. Damage before `pass_before` is passed over when an intact record follows.
        """
        while (file := self._log.files.find(end.offset)) is not None:
            if self.by_columns:
                yield from self._columns(end, file)
            walk = RecordWalk(file.map, file.start_offset, end.offset - file.start_offset, crc=self._crc)
            batch = self._some(walk, file)
            if batch:
                end.offset = batch[-1].physical_offset + batch[-1].size
                end.records += len(batch)
                end.last_timestamp, end.last_offset = batch[-1].store_timestamp, batch[-1].physical_offset
                yield batch
            if len(batch) >= _BATCH:
                continue
            if walk.end in (WalkEnd.ZERO, WalkEnd.DAMAGED):
                if end.offset < pass_before and self._pass_over(end, file, walk.reason):
                    continue
                end.reason = walk.reason
                return
            end.offset = file.start_offset + self._log.file_size

    def _columns(self, end: LogEnd, file: MappedFile) -> Iterator[LogColumns]:
        """The records of a file up to the first that is not as usual."""
        start = file.start_offset
        while (columns := read_columns(file.map, end.offset - start, start, self._crc, self._on_disk)) is not None:
            end.offset = columns.end_offset
            end.records += len(columns)
            end.last_timestamp = int(columns.store_timestamps[-1])
            end.last_offset = int(columns.physical_offsets[-1])
            yield columns

    def _some(self, walk: RecordWalk, file: MappedFile) -> list[RecordHead]:
        """The next records of a walk, as many as are dispatched at once; fewer where it ends."""
        batch: list[RecordHead] = []
        for head in walk:
            reason = self._hidden_damage(file, head)
            if reason:
                walk.end, walk.reason = WalkEnd.DAMAGED, reason
                break
            batch.append(head)
            if len(batch) >= _BATCH:
                break
        return batch

    def _pass_over(self, end: LogEnd, file: MappedFile, reason: str) -> bool:
        """Go on behind damage; False when nothing follows it."""
        # Only the newest file can hold records that RocketMQ cut off before; in others a clock may have been set back.
        is_newest = file.start_offset == self._log.files.starts[-1]
        follower = self.next_intact_record(end.offset, end.last_timestamp if is_newest else 0)
        if follower is None:
            return False
        if len(end.passed) < _DAMAGE_SHOWN:
            log.error(
                "damage in an old part of the log: the record is left as it is, all others stay; restore the file from "
                "a replica or a backup, or run `skyrocket repair` path=%s position=%d record=%d next=%d reason=%s",
                file.path,
                end.offset - file.start_offset,
                end.offset,
                follower.physical_offset,
                reason,
            )
        end.passed.append((end.offset, follower.physical_offset))
        end.offset = follower.physical_offset
        return True

    def _hidden_damage(self, file: MappedFile, head: RecordHead) -> str:
        """What is wrong with a record that passed the checks of its format; nothing for nearly all of them."""
        if reason := topic_damage(head.topic):
            return reason
        if head.physical_offset + head.size > self._on_disk and b"\0" in head.properties:
            position = head.physical_offset - file.start_offset
            end = position + head.size
            if lacks_sectors(head, file.view[end : end + BLANK_SIZE], position):
                return "zeros in its property text"
        return ""

    def record_at(self, physical_offset: int) -> memoryview | None:
        """The record that says that it stands at a physical offset; None when there is none."""
        file = self._log.files.find(physical_offset) if physical_offset >= 0 else None
        if file is None:
            return None
        at = physical_offset - file.start_offset
        try:
            head = read_head(file.view, at, physical_offset)
        except CorruptRecord:
            return None
        return file.view[at : at + head.size] if head is not None else None

    def next_intact_record(self, offset: int, not_before_ms: int) -> RecordHead | None:
        """The first intact record behind a damaged place; also in later files.

        Store times never go back: an older record is one that RocketMQ cut off before, and wrote over in part.
        """
        for start in self._log.files.starts:
            file = self._log.files.find(start)
            if file is None or start + self._log.file_size <= offset:
                continue
            for head in self._intact_records(file, max(offset + 1 - start, 0)):
                if head.store_timestamp >= not_before_ms:
                    return head
        return None

    def newest_timestamp(self) -> int:
        """The latest store time that two intact records reach: no checksum covers it, and one may be wrong."""
        latest: list[int] = []
        for start in reversed(self._log.files.starts):
            file = self._log.files.find(start)
            if file is not None:
                times = (head.store_timestamp for head in self._intact_records(file, 0))
                latest = heapq.nlargest(2, itertools.chain(latest, times))
            if len(latest) == 2:
                return latest[1]
        return 0

    def _intact_records(self, file: MappedFile, position: int) -> Iterator[RecordHead]:
        """The intact records of a file from a position on; holes of the file are not looked at."""
        for start, end in self._disk.data_extents(file.fd, position, self._log.file_size):
            for at in possible_records(file.map, max(start - 4, 0), end, file.start_offset):  # its size may be a hole
                try:
                    head = read_head(file.map, at, file.start_offset + at, check_crc=True)
                except CorruptRecord:
                    continue
                if head is not None and at >= position:
                    yield head
