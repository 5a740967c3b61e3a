"""Queue → log: does every entry of a queue file point to the record of its queue offset? Runs inside a Spark task."""

from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from skyrocket.format import record
from skyrocket.format.dispatch_claims import QueueName
from skyrocket.format.dtypes import Bools, Int64s, gathered
from skyrocket.format.queue_entry import PREFILL_SIZE
from skyrocket.format.record_columns import LAYOUTS
from skyrocket.format.store_names import BATCH_QUEUES, QUEUES
from skyrocket.model.topic import LMQ_PREFIX
from skyrocket.offline.offset_files import OffsetFile
from skyrocket.offline.queue_files import BatchQueue, SimpleQueue, read_entries
from skyrocket.offline.store_files import queue_directories
from skyrocket.pipeline.audit.findings import Finding, Findings
from skyrocket.pipeline.commit_log.log_files import LogFile, mapped


@dataclass(frozen=True, slots=True)
class QueueTask:
    """What a task works on."""

    queue: QueueName
    is_batch: bool
    file: OffsetFile
    log: Sequence[LogFile]


@dataclass(slots=True)
class QueueOutcome:
    """What a task found."""

    topic: str
    queue_id: int
    entries: int = 0
    expired: int = 0  # point before the log's first record: deleted in due time
    begin: int | None = None  # first and next queue offset whose record the log may still have
    end: int | None = None
    findings: Findings = field(default_factory=Findings)


def queue_tasks(store: Path, log: Sequence[LogFile]) -> list[QueueTask]:
    """A task for each file of a queue, by topic, queue and position."""
    kinds = ((queue_directories(store / QUEUES), False), (queue_directories(store / BATCH_QUEUES), True))
    return [
        QueueTask(name, is_batch, file, log)
        for queues, is_batch in kinds
        for name, files in queues.items()
        for file in files.files
    ]


def audit_queue_file(task: QueueTask) -> QueueOutcome:
    """Look at every record that the file points to."""
    outcome = QueueOutcome(*task.queue)
    dtype = BatchQueue.dtype if task.is_batch else SimpleQueue.dtype
    entries = read_entries(task.file, dtype)
    rows = np.flatnonzero((entries["size"] > 0) & (entries["size"] != PREFILL_SIZE))  # of records, not fillers
    kept = rows[entries["physical_offset"][rows] >= task.log[0].base_offset]
    outcome.entries, outcome.expired = len(rows), len(rows) - len(kept)
    if not len(kept):
        return outcome
    entries = entries[kept]
    counts = entries["messages"].astype(np.int64) if task.is_batch else np.ones(len(kept), np.int64)
    first = task.file.offset // dtype.itemsize
    queue_offsets = entries["base_offset"].astype(np.int64) if task.is_batch else kept + first
    outcome.begin, outcome.end = int(queue_offsets[0]), int(queue_offsets[-1] + counts[-1])
    for row in np.flatnonzero(~_have_records(task, entries, queue_offsets)).tolist():
        place = (*task.queue, int(queue_offsets[row]), int(entries["physical_offset"][row]))
        outcome.findings.add(Finding("orphaned-entry", *place, f"{task.file.path}: no record of it stands there"))
    return outcome


def _have_records(task: QueueTask, entries: NDArray[np.void], queue_offsets: Int64s) -> Bools:
    physical = entries["physical_offset"].astype(np.int64)
    found = np.zeros(len(entries), np.bool_)
    for log_file in task.log:
        inside = np.flatnonzero((physical >= log_file.base_offset) & (physical < log_file.end_offset))
        if len(inside):
            sizes = entries["size"][inside]
            found[inside] = _stand(task.queue, log_file, physical[inside], sizes, queue_offsets[inside])
    return found


def _stand(
    queue: QueueName, log_file: LogFile, physical: Int64s, sizes: NDArray[np.int32], queue_offsets: Int64s
) -> Bools:
    """The narrow head reads alike for all hosts up to the physical offset, and that is enough to know a record by."""
    with mapped(log_file.path) as buffer:
        positions = physical - log_file.base_offset
        found: Bools = positions <= len(buffer) - LAYOUTS[0].itemsize
        seen = gathered(buffer, LAYOUTS[0], positions[found])
        same = (seen["magic"] == record.MAGIC_V1) | (seen["magic"] == record.MAGIC_V2)
        same &= (seen["physical_offset"] == physical[found]) & (seen["size"] == sizes[found])
        if not queue.topic.startswith(LMQ_PREFIX):  # light queues point to records of other queues
            same &= (seen["queue_id"] == queue.queue_id) & (seen["queue_offset"] == queue_offsets[found])
        found[found] = same
        return found
