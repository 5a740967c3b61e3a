"""The commit log by itself: intact records, blanks, store times, and how it ends."""

from bisect import bisect_right
from dataclasses import dataclass, field

import numpy as np

from skyrocket.inspector.findings import FindingKind, Findings, Severity
from skyrocket.inspector.log_chunks import BadRecord, LogChunk
from skyrocket.inspector.recovery_view import RecoveryView
from skyrocket.offline.log_walk import Hole, HoleKind, LogWalk
from skyrocket.offline.store_files import StoreFiles

# A clock may be set back, and then stays back. One record alone that is off was not stamped by a clock; when it is
# too late, not too early, this looks like the former: only a large distance tells them apart.
_EARLY_MS = 1000
_LATE_MS = 600_000


@dataclass(slots=True)
class LogExtent:
    """From where to where the log has records, and which places inside are damaged."""

    start: int
    end: int  # behind the last intact record or blank
    records: int = 0
    first_store_timestamp: int = 0
    last_store_timestamp: int = 0  # the latest: clocks step back
    tail_lost: bool = False  # something says that there were records behind the end
    has_leftovers: bool = False  # a recovery of RocketMQ ended the log here; what lies behind is from before it
    _damage_starts: list[int] = field(default_factory=list)
    _damage_ends: list[int] = field(default_factory=list)

    def mark_damaged(self, ranges: list[tuple[int, int]]) -> None:
        """Remember ranges of physical offsets that are known to be damaged: they are reported once, not thrice."""
        for start, end in sorted(ranges):
            self._damage_starts.append(start)
            self._damage_ends.append(end)

    def is_damaged(self, physical_offset: int) -> bool:
        """Whether a place lies in a range that was reported already."""
        at = bisect_right(self._damage_starts, physical_offset) - 1
        return at >= 0 and physical_offset < self._damage_ends[at]


class LogCheck:
    """Takes each chunk as it goes by, then reports holes and the tail."""

    def __init__(self, store: StoreFiles, walk: LogWalk, recovery: RecoveryView, findings: Findings) -> None:
        self._store = store
        self._walk = walk
        self._recovery = recovery
        self._findings = findings
        self._bad: list[BadRecord] = []
        self._earlier: list[tuple[int, int]] = []  # offset and store time of the last two records
        self.extent = LogExtent(store.commit_log.start, store.commit_log.start)

    def add(self, chunk: LogChunk) -> None:
        """Remember and report what a chunk says by itself."""
        for bad in chunk.bad_records:
            kind = FindingKind.RECORD_DAMAGED if bad.damaged else FindingKind.BODY_UNREADABLE
            self._report(kind, Severity.ERROR, bad.physical_offset, f"record of {bad.size} bytes: {bad.reason}")
            if bad.damaged:
                self._bad.append(bad)
        for physical_offset, reason in chunk.odd_properties:
            severity = Severity.WARNING if "not text" in reason else Severity.NOTE
            self._report(FindingKind.PROPERTIES_ODD, severity, physical_offset, reason)
        if not len(chunk.sizes):
            return
        self.extent.records += len(chunk.sizes)
        self._check_times(chunk)

    def extent_known(self) -> LogExtent:
        """The extent, once the walk is through."""
        extent = self.extent
        extent.end = self._walk.end_offset
        ranges = [(bad.physical_offset, bad.physical_offset + bad.size) for bad in self._bad]
        ranges += [(hole.start, hole.end) for hole in self._walk.holes if hole.kind is HoleKind.DAMAGED]
        extent.mark_damaged(ranges)
        return extent

    def finish(self, tail_is_claimed: bool) -> None:
        """Report holes, blanks and the tail; `tail_is_claimed`: a queue entry points exactly at its start."""
        for hole in self._walk.holes:
            if hole.kind is HoleKind.TAIL:
                self._report_tail(hole, tail_is_claimed)
            elif hole.kind is HoleKind.ZEROS:
                self._report_zeros(hole)
            elif hole.kind is HoleKind.SHRANK:
                self._report(FindingKind.FILE_SHRANK, Severity.ERROR, hole.start, hole.reason)
            else:
                what = f"{hole.end - hole.start} bytes are not an intact record: {hole.reason}; intact records follow"
                self._report(FindingKind.RECORD_DAMAGED, Severity.ERROR, hole.start, what)
        for blank in self._walk.blanks:
            if blank.start + blank.size != blank.file.end:
                left = blank.file.end - blank.start
                what = f"the blank says {blank.size} bytes, {left} are left in the file"
                self._report(FindingKind.BLANK_WRONG, Severity.ERROR, blank.start, what)
        self._check_endings()
        if self.extent.tail_lost:
            last = self.extent.last_store_timestamp
            what = (
                f"the log ends at {self.extent.end} (store time {last}), but checkpoint or index know of later records"
            )
            self._report(FindingKind.LOG_TAIL_LOST, Severity.ERROR, self.extent.end, what)

    def _check_endings(self) -> None:
        """Every file before the end of the log ends with a blank."""
        ended = {blank.file.path for blank in self._walk.blanks}
        ended |= {hole.file.path for hole in self._walk.holes}  # reported already
        for file in self._store.commit_log.files:
            if file.size and file.path not in ended and file.end < self.extent.end:
                what = "the file does not end with a blank record, though another follows"
                self._report(FindingKind.BLANK_WRONG, Severity.ERROR, file.end - 1, what)

    def _report_tail(self, hole: Hole, claimed: bool) -> None:
        if hole.start > self.extent.end:
            what = "bytes behind the end of the log that are not records"
            self._report(FindingKind.STALE_BYTES, self._recovery.severity_of_tail, hole.start, what)
        elif self._recovery.unclean:
            what = f"the last record is cut: {hole.reason}; recovery ends the log here"
            self._report(FindingKind.LOG_TAIL_TORN, Severity.WARNING, hole.start, what)
        elif claimed or self.extent.tail_lost:
            what = f"the last record is damaged: {hole.reason}"
            self._report(FindingKind.RECORD_DAMAGED, Severity.ERROR, hole.start, what)
        else:
            what = f"bytes behind the last record that nothing points to ({hole.reason})"
            self._report(FindingKind.STALE_BYTES, Severity.WARNING, hole.start, what)

    def _report_zeros(self, hole: Hole) -> None:
        if hole.start == hole.file.offset and hole.start > self._store.commit_log.start:
            severity = Severity.NOTE if self._recovery.unclean else Severity.WARNING
            self._report(FindingKind.EMPTY_LAST_FILE, severity, hole.start, "the file holds nothing but zeros")

    def _check_times(self, chunk: LogChunk) -> None:
        """Store times never go back: one that does alone is damaged, a lasting step is the clock's."""
        earlier = self._earlier
        offsets = np.concatenate([[offset for offset, _ in earlier], chunk.physical_offsets]).astype(np.int64)
        times = np.concatenate([[time for _, time in earlier], chunk.store_timestamps]).astype(np.int64)
        for at in (np.flatnonzero(np.diff(times) < 0) + 1).tolist():
            if at < len(earlier):
                continue  # reported with the chunk before
            before, back, after = times[max(0, at - 2) : at], int(times[at]), times[at + 1 : at + 2]
            if len(before) == 2 and before[0] <= back and before[1] - back >= _LATE_MS:
                what = f"store time {before[-1]} is later than that of the next record, {back}"
                self._report(FindingKind.STORE_TIME_STANDS_OUT, Severity.ERROR, int(offsets[at - 1]), what)
            elif len(after) and after[0] >= before[-1] and before[-1] - back >= _EARLY_MS:
                what = f"store time {back} is earlier than that of the records around it, {before[-1]}"
                self._report(FindingKind.STORE_TIME_STANDS_OUT, Severity.ERROR, int(offsets[at]), what)
            else:
                what = f"store time goes back from {before[-1]} to {back}"
                self._report(FindingKind.STORE_TIME_STEPS_BACK, Severity.WARNING, int(offsets[at]), what)
        self._earlier = list(zip(offsets[-2:].tolist(), times[-2:].tolist(), strict=True))
        extent = self.extent
        extent.first_store_timestamp = extent.first_store_timestamp or int(times[0])
        extent.last_store_timestamp = max(extent.last_store_timestamp, int(times.max()))

    def _report(self, kind: FindingKind, severity: Severity, physical_offset: int, what: str) -> None:
        name, position = self._store.locate(self._store.commit_log, physical_offset)
        shown = f"physical offset {physical_offset}: {what}"
        self._findings.add(kind, severity, name, shown, position=position)
