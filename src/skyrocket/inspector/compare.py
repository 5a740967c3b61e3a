"""Two logs beside each other, byte by byte: what a master and its slave both have must be the same.

A  ●━━━━━━━━━━━━━━━━━━━━━━━━●          A has not deleted its oldest files, B has not received the newest records:
B        ●━━━━━━━━━━━━━●               what both have is compared, and the rest is said
         └─ compared ──┘
"""

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

from skyrocket.format.record import RecordHead
from skyrocket.offline.log_walk import LogReader, LogWalk
from skyrocket.offline.offset_files import OffsetFiles

_WINDOW_BYTES = 8 << 20


@dataclass(frozen=True, slots=True)
class Difference:
    """The first byte in which two logs differ."""

    physical_offset: int
    record_at: int | None  # where the record begins that holds it; None: in no intact record of the first log
    reason: str


@dataclass(frozen=True, slots=True)
class Comparison:
    """What two logs have in common."""

    starts: tuple[int, int]
    ends: tuple[int, int]  # of the last intact records
    difference: Difference | None

    @property
    def compared(self) -> range:
        """The physical offsets that both have."""
        return range(max(self.starts), max(min(self.ends), *self.starts))

    @property
    def has_something_in_common(self) -> bool:
        """Whether there was anything to compare; two empty logs are equal."""
        return len(self.compared) > 0 or self.ends[0] == self.ends[1]

    @property
    def is_complete(self) -> bool:
        """Whether neither has anything that the other has not."""
        return self.starts[0] == self.starts[1] and self.ends[0] == self.ends[1]

    def has_problems(self, *, strict: bool = False) -> bool:
        """Whether they differ; strictly: or one has more than the other."""
        return self.difference is not None or not self.has_something_in_common or (strict and not self.is_complete)


def compare_logs(left: OffsetFiles, right: OffsetFiles, advance: Callable[[int], None] = lambda _: None) -> Comparison:
    """Compare two logs; `advance` hears how many bytes were read of both."""
    ends = (_end_of(left, advance), _end_of(right, advance))
    comparison = Comparison((left.start, right.start), ends, None)
    if not comparison.has_something_in_common:
        return comparison
    return Comparison(comparison.starts, ends, _first_difference(left, right, comparison.compared))


def _end_of(log: OffsetFiles, advance: Callable[[int], None]) -> int:
    walk = LogWalk(log, advance)
    for _ in walk:
        pass
    return walk.end_offset


def _first_difference(left: OffsetFiles, right: OffsetFiles, compared: range) -> Difference | None:
    offset = compared.start
    while offset < compared.stop:
        length = min(_WINDOW_BYTES, compared.stop - offset)
        ours, theirs = left.read(offset, length), right.read(offset, length)
        if ours != theirs:
            both = min(len(ours), len(theirs))
            unequal = np.flatnonzero(np.frombuffer(ours[:both], np.uint8) != np.frombuffer(theirs[:both], np.uint8))
            at = offset + (int(unequal[0]) if len(unequal) else both)
            return _describe(left, right, at)
        if not ours:
            return Difference(offset, None, "a file is missing in both")
        offset += len(ours)
    return None


def _describe(left: OffsetFiles, right: OffsetFiles, at: int) -> Difference:
    ours, theirs = left.read(at, 1), right.read(at, 1)
    if not ours or not theirs:
        return Difference(at, None, f"the {'second' if ours else 'first'} log has no file with this byte")
    begins = _record_around(left, at)
    reason = f"byte 0x{ours.hex()} in the first log, 0x{theirs.hex()} in the second"
    if begins is not None:
        heads = [LogReader(log).head_at(begins) for log in (left, right)]
        shown = ["no intact record" if head is None else _name_of(head) for head in heads]
        reason += f"; the record: {shown[0]} in the first log, {shown[1]} in the second"
    return Difference(at, begins, reason)


def _name_of(head: RecordHead) -> str:
    return f"{head.topic.decode(errors='replace')} queue {head.queue_id} offset {head.queue_offset}"


def _record_around(log: OffsetFiles, physical_offset: int) -> int | None:
    """Where the intact record begins that holds a byte."""
    for run in LogWalk(log):
        starts = run.physical_offset + run.parts.positions
        inside = np.flatnonzero((starts <= physical_offset) & (physical_offset < run.physical_offset + run.parts.ends))
        if len(inside):
            return int(starts[inside[0]])
    return None
