"""Where RocketMQ ended the log of a store that it then closed, when it left other bytes behind that place.

Its recovery cuts the log before a record that is not whole, but only in memory: the bytes stay, whole records among
them, which the next messages overwrite by and by. Queue entries and index entries of these records stay as well. All
of it is no damage. Two things tell it from damage in a log that was closed:

    1. What is damaged in a closed log is claimed by a queue. When no queue knows of a record behind the place, it is
       the end.
    2. RocketMQ's checkpoint has the store time of the last record that went to its queue, which is the last of the
       log. When the record before the place has exactly this time, and those behind it are all older (RocketMQ wrote
       on after the cut) or some are later (it did not), it is the end.

With records of one millisecond on both sides neither helps. The checkpoint says whether 4.9 recovered the store and
wrote nothing since: its recovery moves the time of the queues, and only a flush moves that of the log. After a close in
order both are the same. Where the log's is behind, the place is most likely the end, which is a warning; else damage.
"""

from typing import NamedTuple

from skyrocket.errors import CorruptRecord
from skyrocket.format.checkpoint import Checkpoint
from skyrocket.format.record import BLANK, BLANK_SIZE, MAGIC_BLANK, decode_record, read_head
from skyrocket.offline.log_walk import LogReader, LogWalk, RecordRun, all_zero
from skyrocket.offline.offset_files import OffsetFile, OffsetFiles
from skyrocket.offline.queue_files import open_queues
from skyrocket.offline.store_files import StoreFiles


class Leftovers(NamedTuple):
    """Where the log ends and what a recovery left begins; `certain` when it cannot be damage."""

    start: int
    certain: bool


def leftovers(store: StoreFiles, reader: LogReader, checkpoint: Checkpoint) -> Leftovers | None:
    """What lies behind the end of the log, if all of it is from before a recovery; None when the log ends by itself."""
    if store.unclean:
        return None
    offset, size = _last_claimed(store)
    by_queues = _end_by_queues(store, reader, offset + size)
    if by_queues is not None:
        return Leftovers(by_queues, certain=True)
    is_last = reader.store_timestamp_at(offset) == checkpoint.logics_timestamp
    if checkpoint.flushed_offset or (is_last and not _wrote_nothing_since_recovery(checkpoint)):
        return None
    return _end_by_times(store, checkpoint)


def _wrote_nothing_since_recovery(checkpoint: Checkpoint) -> bool:
    is_of_49 = not checkpoint.flushed_offset and not checkpoint.confirm_offset
    return is_of_49 and checkpoint.physic_timestamp < checkpoint.logics_timestamp


def log_until(log: OffsetFiles, end: int) -> OffsetFiles:
    """The log as if it had nothing behind a place."""
    shorter = OffsetFiles(log.directory)
    shorter.files = [
        file._replace(size=min(file.size, end - file.offset)) for file in shorter.files if file.offset < end
    ]
    return shorter


def _last_claimed(store: StoreFiles) -> tuple[int, int]:
    """Offset and size of the last record of which a queue knows."""
    claimed = [(0, 0)]
    for _, queue in open_queues(store):
        first, end = queue.written
        last = queue.read(end - 1, 1 if end > first else 0)
        claimed += [(int(entry["physical_offset"]), int(entry["size"])) for entry in last]
    return max(claimed, key=sum)


def _end_by_queues(store: StoreFiles, reader: LogReader, end: int) -> int | None:
    file = store.commit_log.file_of(end)
    if file is None or end in (file.offset, store.commit_log.start):
        return None
    head = store.commit_log.read(end, BLANK_SIZE)
    if len(head) < BLANK_SIZE or BLANK.unpack(head)[1] == MAGIC_BLANK or all_zero(file, end - file.offset):
        return None
    return None if _is_whole(reader.record_at(end)) else end


def _end_by_times(store: StoreFiles, checkpoint: Checkpoint) -> Leftovers | None:
    """RocketMQ deletes the files behind the one that it cuts, so the place is in the last file with records."""
    last = _last_used(store.commit_log)
    if last is None:
        return None
    shown = _Shown()
    one = OffsetFiles(store.commit_log.directory)
    one.files = [last]
    for run in LogWalk(one):
        shown.add(run)
    if shown.end is None or shown.latest_behind == -1 or shown.last_time != checkpoint.logics_timestamp:
        return None
    certain = shown.latest_behind != shown.last_time
    return Leftovers(shown.end, certain) if certain or _wrote_nothing_since_recovery(checkpoint) else None


class _Shown:
    """What a file of the log shows: where its first intact records end, and the latest time behind."""

    def __init__(self) -> None:
        self.end: int | None = None
        self.last_time = -1
        self.latest_behind = -1
        self._reached: int | None = None

    def add(self, run: RecordRun) -> None:
        if self._reached is not None and run.physical_offset != self._reached and self.end is None:
            self.end = self._reached
        position = 0
        while position < run.stop:
            self._add_record(run, position)
            position += int(BLANK.unpack_from(run.window, position)[0])
        self._reached = run.physical_offset + run.stop

    def _add_record(self, run: RecordRun, position: int) -> None:
        try:
            head = read_head(run.window, position, run.physical_offset + position, check_crc=True)
        except CorruptRecord:
            if self.end is None:
                self.end = run.physical_offset + position
            return
        assert head is not None, "a run holds no blanks"
        if self.end is None:
            self.last_time = head.store_timestamp
        else:
            self.latest_behind = max(self.latest_behind, head.store_timestamp)


def _last_used(log: OffsetFiles) -> OffsetFile | None:
    return next((file for file in reversed(log.files) if any(log.read(file.offset, BLANK_SIZE))), None)


def _is_whole(data: bytes) -> bool:
    try:
        return bool(data) and decode_record(memoryview(data), check_crc=True) is not None
    except CorruptRecord:
        return False
