"""One split of the log → staged Parquet files, a file per topic and day. Runs inside a Spark task.

Two passes over the mapped split: the first follows the records and notes topic and day of each, the second decodes
the records of one topic and day after the other. So only one Parquet writer is open at a time, and memory does not
depend on the number of topics.
"""

import re
from collections.abc import Iterator
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from typing import NamedTuple
from zlib import crc32

import numpy as np
import pyarrow as pa

from skyrocket.columns import BadBody, decode, topic_numbers
from skyrocket.columns.schema import arrow_schema
from skyrocket.format.dispatch_claims import QueueNumbers
from skyrocket.format.dtypes import Int64s
from skyrocket.format.record import Buffer
from skyrocket.format.record_columns import Parts
from skyrocket.pipeline.commit_log.log_files import mapped
from skyrocket.pipeline.commit_log.splits import Split
from skyrocket.pipeline.commit_log.walk import walk_split
from skyrocket.pipeline.lake import Lake, LakeFile
from skyrocket.pipeline.lake.files import LakeFiles
from skyrocket.pipeline.lake.parquet_files import file_path

_DAY_MS = 86_400_000
_BATCH_RECORDS = 8192
_ROW_GROUP_ROWS = 100_000
_ROW_GROUP_BYTES = 64 << 20
_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)


@dataclass(frozen=True, slots=True)
class SplitTask:
    """What a task works on: a range of one log file, and where its Parquet files go."""

    split: Split
    broker: str
    topics: str  # a regular expression
    lake: str
    staging: str  # relative to the lake


class LostRange(NamedTuple):
    """Bytes of the log that could not be read as messages."""

    begin: int
    end: int
    cause: str


@dataclass(slots=True)
class SplitOutcome:
    """What a task found and staged."""

    files: list[LakeFile] = field(default_factory=list)
    lost: list[LostRange] = field(default_factory=list)
    records: int = 0
    begin: int | None = None  # physical offset of the first record; None: no record starts in the split
    end: int = 0  # physical offset behind the last record or behind damage: where the next record should stand
    last_record: tuple[int, int] | None = None  # physical offset and CRC of the whole record


def archive_split(task: SplitTask) -> SplitOutcome:
    """Stage the messages of a split."""
    outcome = SplitOutcome()
    lake = Lake(task.lake).files
    with mapped(task.split.path) as buffer:
        groups = _positions_by_topic_and_day(buffer, task, outcome)
        for (topic, day), positions in groups:
            staged = _write_file(buffer, task, lake, topic, day, positions, outcome)
            if staged is not None:
                outcome.files.append(staged)
    return outcome


def _positions_by_topic_and_day(
    buffer: Buffer, task: SplitTask, outcome: SplitOutcome
) -> Iterator[tuple[tuple[str, int], Int64s]]:
    base_offset = task.split.base_offset
    numbers = QueueNumbers()
    positions, codes, days = [np.empty(0, np.int64)], [np.empty(0, np.int64)], [np.empty(0, np.int64)]
    last: Parts | None = None
    for item in walk_split(buffer, task.split):
        if isinstance(item, Parts):
            last = item
            begin, end = base_offset + int(item.positions[0]), base_offset + int(item.ends[-1])
            positions.append(item.positions)
            codes.append(topic_numbers(buffer, item, numbers))
            days.append(item.heads["store_timestamp"] // _DAY_MS)
        else:
            begin, end = item.physical_offset, item.physical_offset + item.length
            outcome.lost.append(LostRange(begin, end, item.cause))
        outcome.begin = begin if outcome.begin is None else outcome.begin
        outcome.end = max(outcome.end, end)
    if last is not None:
        outcome.last_record = _mark(buffer, last, base_offset)
    columns = (np.concatenate(positions), np.concatenate(codes), np.concatenate(days))
    return _grouped(*columns, numbers.topic_names, task, outcome)


def _mark(buffer: Buffer, parts: Parts, base_offset: int) -> tuple[int, int]:
    position, end = int(parts.positions[-1]), int(parts.ends[-1])
    return base_offset + position, crc32(buffer[position:end])


def _grouped(
    positions: Int64s, codes: Int64s, days: Int64s, names: list[str], task: SplitTask, outcome: SplitOutcome
) -> Iterator[tuple[tuple[str, int], Int64s]]:
    wanted = re.compile(task.topics)
    order = np.lexsort((positions, days, codes))
    positions, codes, days = positions[order], codes[order], days[order]
    outcome.records = len(positions)
    borders = np.flatnonzero(np.diff(codes) | np.diff(days)) + 1
    for begin, end in zip([0, *borders.tolist()], [*borders.tolist(), len(positions)], strict=True):
        if begin == end:
            continue
        topic = names[int(codes[begin])]
        if wanted.fullmatch(topic):
            yield (topic, int(days[begin])), positions[begin:end]


def _write_file(
    buffer: Buffer, task: SplitTask, lake: LakeFiles, topic: str, day: int, positions: Int64s, outcome: SplitOutcome
) -> LakeFile | None:
    date = (_EPOCH + timedelta(days=day)).strftime("%Y-%m-%d")
    first, last = task.split.base_offset + int(positions[0]), task.split.base_offset + int(positions[-1])
    path = file_path(topic, date, task.broker, first, last)
    target = f"{task.staging}/{path}"
    rows, first_ms, last_ms = 0, 1 << 62, 0
    with lake.new_parquet(target, arrow_schema()) as writer:
        for group in _row_groups(buffer, task, positions, outcome):
            writer.write_table(group, row_group_size=group.num_rows)
            rows += group.num_rows
            times = group["storeTimestamp"].cast(pa.int64())
            first_ms = min(first_ms, int(pa.compute.min(times).as_py()) // 1000)
            last_ms = max(last_ms, int(pa.compute.max(times).as_py()) // 1000)
    if not rows:
        lake.delete(target)
        return None
    return LakeFile(path, topic, date, task.broker, rows, lake.size(target), first, last, first_ms, last_ms)


def _row_groups(buffer: Buffer, task: SplitTask, positions: Int64s, outcome: SplitOutcome) -> Iterator[pa.Table]:
    batches: list[pa.RecordBatch] = []
    rows = size = 0
    for begin in range(0, len(positions), _BATCH_RECORDS):
        for batch in _decoded(buffer, task, positions[begin : begin + _BATCH_RECORDS], outcome):
            batches.append(batch)
            rows += batch.num_rows
            size += batch.nbytes
        if batches and (rows >= _ROW_GROUP_ROWS or size >= _ROW_GROUP_BYTES):
            yield pa.Table.from_batches(batches)
            batches, rows, size = [], 0, 0
    if batches:
        yield pa.Table.from_batches(batches)


def _decoded(buffer: Buffer, task: SplitTask, positions: Int64s, outcome: SplitOutcome) -> Iterator[pa.RecordBatch]:
    """Rows of some records; a body that cannot be unpacked is kept as it is stored, and reported."""
    while len(positions):
        try:
            yield decode(buffer, positions, arrow_schema(), task.broker)
            return
        except BadBody as bad:
            at = int(np.searchsorted(positions, bad.position))
            reason = bad.reason
        if at:
            yield decode(buffer, positions[:at], arrow_schema(), task.broker)
        begin = task.split.base_offset + int(positions[at])
        try:
            yield decode(buffer, positions[at : at + 1], arrow_schema(), task.broker, decompress=False)
            reason = f"{reason}; its stored body is kept"
        except BadBody:
            pass  # an inner batch whose members cannot be told apart: only the range is reported
        outcome.lost.append(
            LostRange(begin, begin + int.from_bytes(buffer[positions[at] : positions[at] + 4], "big"), reason)
        )
        positions = positions[at + 1 :]
