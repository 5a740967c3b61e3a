"""A walk through the whole commit log that goes on behind damage.

RocketMQ stops at the first record that is not intact; an inspection wants to know what lies behind it. A record says
its own physical offset, so the next one can be found by its magic: only where the stored offset is the place.
"""

from collections.abc import Callable, Iterator
from enum import Enum
from typing import NamedTuple

import numpy as np

from skyrocket.errors import CorruptRecord
from skyrocket.format import record
from skyrocket.inspector.offset_files import OffsetFile, OffsetFiles, read_at
from skyrocket.inspector.record_columns import RecordRun, RunEnd, read_run

WINDOW_BYTES = 32 << 20
_MAGICS = tuple(
    (magic & 0xFFFFFFFF).to_bytes(4, "big") for magic in (record.MAGIC_V1, record.MAGIC_V2, record.MAGIC_BLANK)
)
_LARGEST_WINDOW = 1 << 31


class HoleKind(Enum):
    """Bytes of the log that are no intact records."""

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
            if len(run.starts):
                self._intact_until(file.offset + position + run.stop)
                yield run
            if run.end is RunEnd.WINDOW and run.stop == 0:
                wanted = min(wanted * 4, _LARGEST_WINDOW)  # one record larger than the window
                continue
            self._advance(run.stop)
            position += run.stop
            wanted = self._window_bytes
            if run.end in (RunEnd.WINDOW, RunEnd.FILE_END):
                continue
            if run.end is RunEnd.BLANK:
                size = record.BLANK.unpack_from(window, run.stop)[0]
                self.blanks.append(BlankFill(file, file.offset + position, size))
                self._intact_until(file.end)
                self._advance(file.size - position)
                return
            following = self._next_intact(file, position)
            self._advance((following or file.size) - position)
            if following is None:
                kind = HoleKind.ZEROS if run.end is RunEnd.ZERO and all_zero(file, position) else HoleKind.TAIL
                self._hole(kind, file, position, file.size, run.reason)
                return
            self._hole(HoleKind.DAMAGED, file, position, following, run.reason)
            position = following

    def _intact_until(self, physical_offset: int) -> None:
        """Something intact lies here: what looked like the end before was none."""
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
            for at in _magic_positions(window):
                start = position + at - 4
                if start > damaged_at and is_intact(file, start):
                    return start
            if position + len(window) >= file.size or len(window) <= 8:
                return None
            position += len(window) - 8  # a magic may lie across two windows
        return None


def is_intact(file: OffsetFile, position: int) -> bool:
    """Whether an intact record, or a blank that fills the file, begins at a position."""
    head = read_at(file.path, position, record.BLANK_SIZE)
    if len(head) < record.BLANK_SIZE:
        return False
    size, magic = record.BLANK.unpack(head)
    if magic == record.MAGIC_BLANK:
        return bool(size == file.size - position)
    if not record.SMALLEST_RECORD <= size <= file.size - position:
        return False
    try:
        return record.read_head(read_at(file.path, position, size), 0, file.offset + position) is not None
    except CorruptRecord:
        return False


def all_zero(file: OffsetFile, position: int) -> bool:
    """Whether a file holds only zeros from a position on."""
    while position < file.size:
        window = read_at(file.path, position, min(WINDOW_BYTES, file.size - position))
        if not window or np.frombuffer(window, dtype=np.uint8).any():
            return False
        position += len(window)
    return True


def _magic_positions(window: bytes) -> list[int]:
    found = []
    for magic in _MAGICS:
        at = window.find(magic)
        while at >= 0:
            found.append(at)
            at = window.find(magic, at + 1)
    return sorted(found)
