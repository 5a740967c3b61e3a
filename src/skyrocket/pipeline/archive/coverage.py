"""What the splits of a file saw together: where its archived part ends, and which bytes nobody could read.

A split that begins in the middle of a file searches its first record, so bytes between two splits might be seen by
neither. Here the ends are laid against the beginnings: each must meet the next, or the bytes in between are lost.
"""

from collections.abc import Callable, Sequence
from typing import NamedTuple

from skyrocket.format.record import WalkEnd
from skyrocket.pipeline.archive.split_task import LostRange, SplitOutcome
from skyrocket.pipeline.commit_log.log_files import LogFile


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
