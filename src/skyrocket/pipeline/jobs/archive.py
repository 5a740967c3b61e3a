"""`archive`: the commit log → a lake of Parquet files by topic and day, every message exactly once.

    archive.run(spark, ArchiveFrom(Path("store"), "broker-a"), Path("lake"))

The lake's own books say up to which offset a broker's log is in it (`pipeline/lake`), so a run goes on where the last
one ended, a killed run is repeated, and a run without anything new changes nothing. Run it where the store's disk is,
as often as you like: what matters is to stay ahead of the broker's retention, and the report says by how much.
"""

from collections.abc import Callable, Sequence
from dataclasses import asdict, dataclass
from itertools import islice
from pathlib import Path
from typing import TYPE_CHECKING, Final
from zlib import crc32

import pyarrow as pa

from skyrocket.clock import SystemClock
from skyrocket.errors import ConfigError
from skyrocket.format.column_walk import why
from skyrocket.format.record import WalkEnd
from skyrocket.pipeline.archive.plan import FilePlan, LogBehindLake, Plan, coverage, plan_archive, waves
from skyrocket.pipeline.archive.split_task import SplitTask, archive_split
from skyrocket.pipeline.commit_log.log_files import LogFile, find_log_files, mapped
from skyrocket.pipeline.jobs.launch import in_tasks
from skyrocket.pipeline.jobs.tables import floats
from skyrocket.pipeline.lake import Change, Gap, Lake, LakeFile, LakeState, LakeWriter, check_writable, lake_writer
from skyrocket.pipeline.lake.mirrors import TableFormat, check_table, mirrored
from skyrocket.pipeline.report import Plot, Report

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

SPLIT_BYTES: Final = 256 << 20
WAVE_BYTES: Final = 4 << 30
RETENTION_HOURS: Final = 72  # RocketMQ's fileReservedTime
ALARM_HOURS: Final = 24  # less than this before deletion is a finding
_HOUR_MS: Final = 3_600_000


@dataclass(frozen=True)
class ArchiveFrom:
    """A broker's store, and the name under which the lake keeps its records."""

    store: Path
    broker: str
    topics: str = ".*"
    retention_hours: int = RETENTION_HOURS


def run(
    spark: "SparkSession",
    source: ArchiveFrom,
    place: Path | str,
    *,
    table: TableFormat = "parquet",
    split_bytes: int = SPLIT_BYTES,
    wave_bytes: int = WAVE_BYTES,
    dry_run: bool = False,
) -> Report:
    """Archive what is new; afterwards the lake holds the log up to its end."""
    lake = Lake(place)
    check_table(lake, table)
    files = find_log_files(str(source.store))
    before = lake.state()
    if dry_run:
        _check(before, source, files)
        plan = plan_archive(files, source.broker, before.archived_to.get(source.broker), split_bytes)
        return _report(source, lake, files, before, before, plan, [f"dry run: {plan.size:,} bytes would be read"])
    notes: list[str] = []
    with lake_writer(lake, source.broker) as books:
        before = lake.state()  # a killed run's pending change is in now
        _check(before, source, files)
        plan = plan_archive(files, source.broker, before.archived_to.get(source.broker), split_bytes)
        for wave in waves(plan.files, wave_bytes):
            change, unfinished = _archived(spark, source, books, wave)
            if unfinished:
                notes.append(f"behind the last record: {unfinished}; left for the next run")
            if change.end > change.begin:
                books.publish(change)
    notes += mirrored(lake, table)
    return _report(source, lake, find_log_files(str(source.store)), before, lake.state(), plan, notes)


def check(source: ArchiveFrom, place: Path | str, table: TableFormat) -> None:
    """Raises for a store that is none, a lake that cannot be written, a missing package: before Spark starts."""
    find_log_files(str(source.store))
    lake = Lake(place)
    check_table(lake, table)
    check_writable(lake, source.broker)


def _check(state: LakeState, source: ArchiveFrom, files: Sequence[LogFile]) -> None:
    """Refuse to mix two logs, or two choices of topics, in one lake."""
    if state.topics not in (None, source.topics):
        raise ConfigError(
            f"this lake was begun with --topics {state.topics!r}, not {source.topics!r}: what it skipped then would be "
            "missing; use the same choice, or another lake"
        )
    offset, checksum = state.last_records.get(source.broker, (-1, 0))
    file = next((each for each in files if each.base_offset <= offset < each.end_offset), None)
    if file is None:
        return  # nothing archived yet, or its file was deleted in due time
    with mapped(file.path) as buffer:
        position = offset - file.base_offset
        size = int.from_bytes(buffer[position : position + 4], "big")
        if crc32(buffer[position : position + size]) != checksum:
            raise LogBehindLake(
                f"the record of {source.broker} at offset {offset} is not the one that the lake holds: this is "
                "another log, or it lost its tail and went on; use another --broker-name or another lake"
            )


def _archived(
    spark: "SparkSession", source: ArchiveFrom, books: LakeWriter, wave: Sequence[FilePlan]
) -> tuple[Change, str]:
    """Let tasks stage the files of a wave, and say what it adds to the lake; and what stands behind the log's end."""
    tasks = [
        SplitTask(split, source.broker, source.topics, str(books.lake.location), books.staging)
        for each in wave
        for split in each.splits
    ]
    outcomes = in_tasks(spark, tasks, archive_split)
    of_splits = iter(outcomes)
    begin = end = wave[0].begin if wave[0].gap is None else wave[0].gap.begin
    gaps: list[Gap] = []
    unfinished = ""
    for each in wave:
        covered = coverage(each.file, each.begin, list(islice(of_splits, len(each.splits))), _look_into(each.file))
        if each.gap is not None:
            gaps.append(each.gap)
        gaps += [Gap(source.broker, lost.begin, lost.end, lost.cause) for lost in covered.lost]
        end, unfinished = covered.end, covered.unfinished
        if end < each.file.end_offset:
            break  # the log's end; files behind it are only prepared
    marks = [outcome.last_record for outcome in outcomes if outcome.last_record is not None]
    change = Change(
        "archive",
        source.broker,
        begin,
        end,
        added=tuple(file for outcome in outcomes for file in outcome.files),
        gaps=tuple(gaps),
        topics=source.topics,
        last_record=marks[-1] if marks else None,
    )
    return change, unfinished


def _look_into(file: LogFile) -> Callable[[int], tuple[WalkEnd, str]]:
    def look(offset: int) -> tuple[WalkEnd, str]:
        with mapped(file.path) as buffer:
            return why(buffer, offset - file.base_offset, file.base_offset)

    return look


def _report(
    source: ArchiveFrom,
    lake: Lake,
    files: Sequence[LogFile],
    before: LakeState,
    after: LakeState,
    plan: Plan,
    notes: list[str],
) -> Report:
    new_files = [each for path, each in after.files.items() if path not in before.files]
    new_gaps = after.gaps[len(before.gaps) :]
    archived_to = after.archived_to.get(source.broker, plan.begin)
    hours_left = _hours_left(files, archived_to, source.retention_hours)
    is_late = hours_left is not None and hours_left < ALARM_HOURS
    if is_late:
        notes.append(f"the oldest file that is not archived will be deleted in {hours_left:.1f} h: archive more often")
    summary = {
        "broker": source.broker,
        "logFrom": files[0].base_offset if files else 0,
        "archivedFrom": before.archived_to.get(source.broker, plan.begin),
        "archivedTo": archived_to,
        "messages": sum(each.rows for each in new_files),
        "files": len(new_files),
        "bytesRead": archived_to - before.archived_to.get(source.broker, plan.begin),
        "bytesWritten": sum(each.size for each in new_files),
        "gaps": len(new_gaps),
        "hoursAheadOfRetention": None if hours_left is None else round(hours_left, 1),
    }
    topics = _by_topic(new_files)
    return Report(
        f"Archive of {source.store} in {lake}",
        {
            "archive": pa.Table.from_pylist([summary]),
            "topics": topics,
            "gaps": pa.Table.from_pylist([asdict(each) for each in new_gaps], schema=_GAPS),
        },
        plots=[
            Plot(
                "messages by topic",
                "bar",
                topics["topic"].to_pylist(),
                {"messages": floats(topics["messages"].to_pylist())},
                "messages",
            )
        ]
        if topics.num_rows
        else [],
        findings=len(new_gaps) + is_late,
        notes=[*notes, f"the lake holds {after.rows:,} messages in {len(after.files):,} files"],
    )


_GAPS: Final = pa.schema([("broker", pa.string()), ("begin", pa.int64()), ("end", pa.int64()), ("cause", pa.string())])
_TOPICS: Final = pa.schema(
    [("topic", pa.string()), ("messages", pa.int64()), ("files", pa.int64()), ("bytes", pa.int64())]
)


def _by_topic(files: Sequence[LakeFile]) -> pa.Table:
    rows = pa.table(
        {
            "topic": [each.topic for each in files],
            "messages": [each.rows for each in files],
            "bytes": [each.size for each in files],
        }
    )
    sums = rows.group_by("topic").aggregate([("messages", "sum"), ("topic", "count"), ("bytes", "sum")])
    named = sums.select(["topic", "messages_sum", "topic_count", "bytes_sum"]).rename_columns(_TOPICS.names)
    return named.cast(_TOPICS).sort_by([("messages", "descending"), ("topic", "ascending")])


def _hours_left(files: Sequence[LogFile], archived_to: int, retention_hours: int) -> float | None:
    """Until the broker deletes the oldest file that is not wholly archived; None when nothing waits."""
    waiting = next((each for each in files if each.end_offset > archived_to), None)
    if waiting is None:
        return None
    deleted_ms = Path(waiting.path).stat().st_mtime * 1000 + retention_hours * _HOUR_MS
    return (deleted_ms - SystemClock().now_ms()) / _HOUR_MS
