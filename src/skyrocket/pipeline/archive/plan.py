"""Which splits of the log a run archives, and what they saw of it. Pure functions.

A split that begins in the middle of a file searches its first record, so bytes between two splits might be seen by
neither. So the ends are laid against the beginnings: each must meet the next, or the bytes in between are lost.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import NamedTuple

from skyrocket.errors import DataError
from skyrocket.format.record import WalkEnd
from skyrocket.pipeline.archive.split_task import LostRange, SplitOutcome
from skyrocket.pipeline.commit_log.log_files import LogFile
from skyrocket.pipeline.commit_log.splits import Split
from skyrocket.pipeline.lake import Gap


class LogBehindLake(DataError):
    """The log ends before what the lake holds of it: it is another log, or it lost its tail."""


class FilePlan(NamedTuple):
    """What is to be archived of one file."""

    file: LogFile
    begin: int  # physical offset
    splits: tuple[Split, ...]
    gap: Gap | None  # what is missing before it

    @property
    def size(self) -> int:
        return self.file.end_offset - self.begin


@dataclass(frozen=True, slots=True)
class Plan:
    """Files in the order of the log, from where the lake ends."""

    begin: int
    files: tuple[FilePlan, ...]

    @property
    def size(self) -> int:
        return sum(each.size for each in self.files)


def plan_archive(files: Sequence[LogFile], broker: str, archived_to: int | None, split_bytes: int) -> Plan:
    """From where the lake ends to the end of the newest file, cut into splits; ranges without a file are gaps."""
    begin = files[0].base_offset if archived_to is None else archived_to
    if begin > files[-1].end_offset:
        raise LogBehindLake(
            f"the log of {broker} ends at offset {files[-1].end_offset}, but the lake holds it up to {begin}: this is "
            "another log, or it lost its tail; archive it under another --broker-name, or into a new lake"
        )
    planned: list[FilePlan] = []
    expected = begin
    for file in files:
        if file.end_offset <= begin:
            continue
        gap = None
        if file.base_offset > expected:
            cause = "no such file in the log" if planned else "deleted before it was archived"
            gap = Gap(broker, expected, file.base_offset, cause)
        first = max(begin, file.base_offset)
        planned.append(FilePlan(file, first, _cut(file, first, split_bytes), gap))
        expected = file.end_offset
    return Plan(begin, tuple(planned))


def _cut(file: LogFile, begin: int, split_bytes: int) -> tuple[Split, ...]:
    """A file's splits: borders at multiples of the split size from its first byte, wherever the last run ended."""
    position = begin - file.base_offset
    borders = [position, *range((position // split_bytes + 1) * split_bytes, file.size, split_bytes), file.size]
    return tuple(
        Split(file.path, file.base_offset, here, there, file.newest, at_record=here == position)
        for here, there in pairwise(borders)
    )


def waves(files: Sequence[FilePlan], most_bytes: int) -> list[list[FilePlan]]:
    """Files that are published together: a killed run repeats at most one wave."""
    found: list[list[FilePlan]] = []
    size = most_bytes
    for each in files:
        if size >= most_bytes:
            found.append([])
            size = 0
        found[-1].append(each)
        size += each.size
    return found


class Coverage(NamedTuple):
    """The archived part of a file ends here; these ranges in it are lost."""

    end: int
    lost: list[LostRange]
    unfinished: str = ""  # what stands behind the last record of the newest file, if it is not nothing


def coverage(
    file: LogFile,
    begin: int,
    outcomes: Sequence[SplitOutcome],
    look: Callable[[int], tuple[WalkEnd, str]],
) -> Coverage:
    """`look` says what stands at a physical offset where no record does."""
    at, lost = begin, list[LostRange]()
    for outcome in outcomes:
        if outcome.begin is None:
            continue
        if outcome.begin > at:
            lost.append(LostRange(at, outcome.begin, "no record begins here"))
        lost += sorted(outcome.lost)
        at = max(at, outcome.end)
    file_end = file.end_offset
    if file.newest and lost and lost[-1].end == file_end:
        # A record that is being appended looks like damage up to the end of the file: the next run will see it whole.
        tail = lost.pop()
        return Coverage(tail.begin, lost, tail.cause)
    if at == file_end:
        return Coverage(file_end, lost)
    found, cause = look(at)
    if found is WalkEnd.BLANK:
        return Coverage(file_end, lost)
    if file.newest:
        return Coverage(at, lost, "" if found is WalkEnd.ZERO else cause)
    return Coverage(file_end, [*lost, LostRange(at, file_end, cause)])
