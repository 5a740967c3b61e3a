"""A walk through the whole commit log that goes on behind damage, and single records by their offset.

RocketMQ stops at the first record that is not intact; an inspection wants to know what lies behind it. Files are read
in windows; the records of a window are a run, whose fields are gathered for all of them together.
"""

from collections.abc import Callable, Iterator
from enum import Enum
from typing import NamedTuple

import numpy as np

from skyrocket.errors import CorruptRecord
from skyrocket.format import record
from skyrocket.format.column_walk import intact_run, why
from skyrocket.format.record import WalkEnd
from skyrocket.format.record_columns import Parts
from skyrocket.format.record_search import possible_records
from skyrocket.offline.offset_files import OffsetFile, OffsetFiles, read_at

WINDOW_BYTES = 32 << 20
_LARGEST_WINDOW = 1 << 31


class LogReader:
    """Answers what stands at a physical offset."""

    def __init__(self, log: OffsetFiles) -> None:
        self._log = log

    def head_at(self, physical_offset: int) -> record.RecordHead | None:
        """The record that begins here; None when there is no intact one."""
        data = self.record_at(physical_offset)
        try:
            return record.read_head(data, 0, physical_offset) if data else None
        except CorruptRecord:
            return None

    def record_at(self, physical_offset: int) -> bytes:
        """The bytes that a record beginning here would have; empty when its size is impossible."""
        file = self._log.file_of(physical_offset)
        head = self._log.read(physical_offset, record.BLANK_SIZE)
        if file is None or len(head) < record.BLANK_SIZE:
            return b""
        size, _magic = record.BLANK.unpack(head)
        if not record.SMALLEST_RECORD <= size <= file.end - physical_offset:
            return b""
        return self._log.read(physical_offset, size)

    def store_timestamp_at(self, physical_offset: int) -> int | None:
        """The store time of the record that begins here."""
        head = self.head_at(physical_offset)
        return head.store_timestamp if head is not None else None


class RecordRun(NamedTuple):
    """Records back to back; positions count from the start of the window."""

    window: bytes
    physical_offset: int  # of the window
    parts: Parts
    end: WalkEnd  # LIMIT: the next record may be whole, but not in this window
    stop: int  # where the run stopped
    reason: str = ""


def read_run(window: bytes, physical_offset: int, *, whole_file: bool) -> RecordRun:
    """The records at the start of a window; `whole_file` says that the window reaches the end of its file."""
    most = len(window) // record.SMALLEST_RECORD + 1  # the chain of sizes does not end at a zero, but here
    parts, stop = intact_run(window, 0, len(window), physical_offset, most, len(window))
    if stop == len(window) or (not whole_file and _may_go_on(window, stop)):
        return RecordRun(window, physical_offset, parts, WalkEnd.LIMIT, stop)
    end, reason = why(window, stop, physical_offset)
    return RecordRun(window, physical_offset, parts, end, stop, reason)


def _may_go_on(window: bytes, stop: int) -> bool:
    """Whether what begins here may be whole in a larger window."""
    left = len(window) - stop
    if left < record.BLANK_SIZE:
        return True
    size, magic = record.BLANK.unpack_from(window, stop)
    return size > left and magic in (record.MAGIC_V1, record.MAGIC_V2, record.MAGIC_BLANK)


class HoleKind(Enum):
    """Bytes of the log without intact records."""

    DAMAGED = "damaged"  # intact records follow
    TAIL = "tail"  # nothing intact follows: torn, stale, or the lost end
    ZEROS = "zeros"  # nothing but zeros follows: the end of the log
    SHRANK = "shrank"  # the file became shorter while it was read


class Hole(NamedTuple):
    """A range of physical offsets without intact records."""

    kind: HoleKind
    file: OffsetFile
    start: int
    end: int
    reason: str


class BlankFill(NamedTuple):
    """The blank at the end of a file."""

    file: OffsetFile
    start: int
    size: int


class LogWalk:
    """Iterates runs of records; when it is through, `holes`, `blanks` and `end_offset` tell the rest."""

    def __init__(
        self, log: OffsetFiles, advance: Callable[[int], None] = lambda _: None, window_bytes: int = WINDOW_BYTES
    ) -> None:
        self.holes: list[Hole] = []
        self.blanks: list[BlankFill] = []
        self.end_offset = log.start  # end of the last intact record, or of the blank behind it
        self._log = log
        self._reader = LogReader(log)
        self._advance = advance
        self._window_bytes = window_bytes

    def __iter__(self) -> Iterator[RecordRun]:
        for file in self._log.files:
            yield from self._file(file)

    def _file(self, file: OffsetFile) -> Iterator[RecordRun]:
        position, wanted = 0, self._window_bytes
        while position < file.size:
            expected = min(wanted, file.size - position)
            window = read_at(file.path, position, expected)
            if len(window) < expected:
                self._hole(HoleKind.SHRANK, file, position, file.size, "the file became shorter while it was read")
                return
            run = read_run(window, file.offset + position, whole_file=position + len(window) == file.size)
            if len(run.parts):
                self._intact_until(file.offset + position + run.stop)
                yield run
            if run.end is WalkEnd.LIMIT and run.stop == 0:
                wanted = min(wanted * 4, _LARGEST_WINDOW)  # one record larger than the window
                continue
            self._advance(run.stop)
            position += run.stop
            wanted = self._window_bytes
            if run.end is WalkEnd.LIMIT:
                continue
            if run.end is WalkEnd.BLANK:
                size = record.BLANK.unpack_from(window, run.stop)[0]
                self.blanks.append(BlankFill(file, file.offset + position, size))
                self._intact_until(file.end)
                self._advance(file.size - position)
                return
            following = self._next_intact(file, position)
            self._advance((following or file.size) - position)
            if following is None:
                kind = HoleKind.ZEROS if run.end is WalkEnd.ZERO and all_zero(file, position) else HoleKind.TAIL
                self._hole(kind, file, position, file.size, run.reason)
                return
            self._hole(HoleKind.DAMAGED, file, position, following, run.reason)
            position = following

    def _intact_until(self, physical_offset: int) -> None:
        """Something intact lies here: so what looked like the end before was not."""
        self.end_offset = physical_offset
        self.holes = [
            hole._replace(kind=HoleKind.DAMAGED) if hole.kind in (HoleKind.TAIL, HoleKind.ZEROS) else hole
            for hole in self.holes
        ]

    def _hole(self, kind: HoleKind, file: OffsetFile, start: int, end: int, reason: str) -> None:
        self.holes.append(Hole(kind, file, file.offset + start, file.offset + end, reason))

    def _next_intact(self, file: OffsetFile, damaged_at: int) -> int | None:
        """Where the next intact record (or exact blank) of a file begins."""
        position = damaged_at + 1
        while position < file.size:
            window = read_at(file.path, position, min(self._window_bytes, file.size - position))
            base, left = file.offset + position, file.size - position
            for at in possible_records(window, 0, len(window), base, blank_end=left):
                is_blank = record.BLANK.unpack_from(window, at)[1] == record.MAGIC_BLANK
                if is_blank or self._reader.head_at(base + at) is not None:
                    return position + at
            if len(window) in (0, left) or len(window) <= record.SMALLEST_RECORD:
                return None
            position += len(window) - record.SMALLEST_RECORD  # a record's first fields may lie across two windows
        return None


def all_zero(file: OffsetFile, position: int) -> bool:
    """Whether a file holds only zeros from a position on."""
    while position < file.size:
        window = read_at(file.path, position, min(WINDOW_BYTES, file.size - position))
        if not window or np.frombuffer(window, dtype=np.uint8).any():
            return False
        position += len(window)
    return True
