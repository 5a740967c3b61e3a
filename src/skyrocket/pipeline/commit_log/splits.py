"""Files and bounds → splits, as pure functions. A record belongs to the split in which it starts."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from itertools import pairwise

from skyrocket.pipeline.commit_log.log_files import LogFile

# Store times follow the broker's clock, which may have been set back: files this near to a bound are read all the same.
CLOCK_SLACK_MS = 600_000


@dataclass(frozen=True, slots=True)
class Split:
    """A range of one file; positions count from the file's first byte."""

    path: str
    base_offset: int
    begin: int
    end: int
    newest: bool
    at_record: bool  # `begin` is where a record starts, or would have to
    broker_name: str | None = None
    missing: bool = False  # there are no bytes: the range is a gap between two files

    @property
    def name(self) -> str:
        """For files about this split; the same in every run."""
        return f"{self.base_offset + self.begin:020d}"


@dataclass(frozen=True, slots=True)
class Bounds:
    """Which physical offsets and store times are wanted; ends are exclusive."""

    first_offset: int = 0
    end_offset: int | None = None
    first_time: int | None = None
    end_time: int | None = None


def plan(
    files: Sequence[LogFile], holes: Sequence[Split], bounds: Bounds, split_bytes: int, broker_name: str | None
) -> list[Split]:
    """The splits of one log, in the order of the log."""
    splits = [split for file in files for split in _splits_of(file, bounds, split_bytes, broker_name)]
    for gap in holes:
        begin, end = gap.base_offset + gap.begin, gap.base_offset + gap.end
        if end > bounds.first_offset and (bounds.end_offset is None or begin < bounds.end_offset):
            splits.append(gap)
    return sorted(splits, key=lambda split: split.base_offset + split.begin)


def gaps(files: Sequence[LogFile], broker_name: str | None = None) -> list[Split]:
    """Splits for the bytes between two files: one is missing, or too short."""
    return [
        Split(
            file.path, file.base_offset, file.size, after.base_offset - file.base_offset, False, True, broker_name, True
        )
        for file, after in pairwise(files)
        if file.end_offset < after.base_offset
    ]


def within_times(
    files: Sequence[LogFile], bounds: Bounds, first_time: Callable[[LogFile], int | None]
) -> list[LogFile]:
    """Files that may hold records of these store times: a file ends where the next one begins."""
    if bounds.first_time is None and bounds.end_time is None:
        return list(files)
    times = [first_time(file) for file in files]
    wanted = []
    for number, file in enumerate(files):
        begins = times[number]
        ends = times[number + 1] if number + 1 < len(files) else None
        too_old = bounds.first_time is not None and ends is not None and ends + CLOCK_SLACK_MS < bounds.first_time
        too_new = bounds.end_time is not None and begins is not None and begins - CLOCK_SLACK_MS >= bounds.end_time
        if not too_old and not too_new:
            wanted.append(file)
    return wanted


def _splits_of(file: LogFile, bounds: Bounds, split_bytes: int, broker_name: str | None) -> list[Split]:
    begin = max(bounds.first_offset - file.base_offset, 0)
    end = file.size if bounds.end_offset is None else min(bounds.end_offset - file.base_offset, file.size)
    if begin >= end:
        return []
    # Equal parts: a last split of a few bytes would cost a task for nothing.
    count = max(1, round((end - begin) / split_bytes))
    borders = [begin + (end - begin) * number // count for number in range(count + 1)]
    return [
        Split(file.path, file.base_offset, first, last, file.newest, at_record=first == 0, broker_name=broker_name)
        for first, last in pairwise(borders)
    ]
