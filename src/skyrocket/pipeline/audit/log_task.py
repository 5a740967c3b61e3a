"""Log → queues and index: is every record of a split where it belongs, once and in order? Runs inside a Spark task.

What belongs where is decided by the same code that rebuilds queues and index from the log (`jobs/rebuild`).
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import NamedTuple

import numpy as np

from skyrocket.columns import property_blocks, topic_numbers
from skyrocket.format.dispatch_claims import Claims, QueueName, QueueNumbers
from skyrocket.format.dtypes import Int64s
from skyrocket.format.store_names import BATCH_QUEUES, QUEUES
from skyrocket.offline.offset_files import OffsetFiles
from skyrocket.offline.queue_files import BatchQueue, SimpleQueue, read_entries
from skyrocket.pipeline.audit.findings import Finding, Findings
from skyrocket.pipeline.audit.index_files import IndexRange, indexed_pairs, missing_from
from skyrocket.pipeline.commit_log.damage import DamagedRegion
from skyrocket.pipeline.commit_log.splits import Split
from skyrocket.pipeline.commit_log.walk import split_records
from skyrocket.pipeline.rebuild.claims import BatchClaim, claimer_of, sorted_claims
from skyrocket.pipeline.rebuild.rules import RebuildRules


@dataclass(frozen=True, slots=True)
class LogTask:
    """What a task works on."""

    store: str
    split: Split
    rules: RebuildRules
    index: Sequence[IndexRange]
    settled_ms: int  # what was stored later may still be on its way into the files


class QueuePart(NamedTuple):
    """What a split has of one queue, in the order of the log."""

    queue: QueueName
    first: int
    last: int
    first_physical: int


@dataclass(slots=True)
class LogOutcome:
    """What a task found."""

    records: int = 0
    size: int = 0
    parts: list[QueuePart] = field(default_factory=list)
    findings: Findings = field(default_factory=Findings)


def audit_split(task: LogTask) -> LogOutcome:
    """Check the records of a split against checksums, order, queue entries and index entries."""
    outcome = LogOutcome()
    numbers = QueueNumbers()
    claimer = claimer_of(task.rules, numbers)
    claims: list[Claims] = []
    batches: list[BatchClaim] = []
    needed, allowed = [np.empty((0, 2), np.int64)], [np.empty((0, 2), np.int64)]

    def note(found: DamagedRegion) -> None:
        detail = f"{found.path} at byte {found.position}, {found.length} bytes: {found.cause}"
        outcome.findings.add(Finding("damaged", physical_offset=found.physical_offset, detail=detail))

    for buffer, parts in split_records(task.split, note, verify_crc=True):
        outcome.records += len(parts)
        outcome.size += int(parts.sizes.sum())
        records = (parts, property_blocks(buffer, parts), topic_numbers(buffer, parts, numbers))
        claimed = claimer.claims(*records)
        settled = claimed[claimed["store_timestamp"] <= task.settled_ms]
        by_kind = sorted_claims(settled, numbers, task.rules.batch_topics)
        claims.append(by_kind.simple)
        batches += by_kind.batches
        if task.index:
            keys, are_tags = claimer.keys(*records)
            pairs = np.column_stack([keys["physical_offset"], keys["hash"]]).astype(np.int64)
            needed.append(pairs[~are_tags])
            allowed.append(pairs)
    for queue, own in _by_queue(claims, numbers.queue_names):
        outcome.parts.append(_part(queue, own))
        _check_order(queue, own, outcome.findings)
        _check_entries(task, queue, own, outcome.findings)
    _check_batches(task, batches, outcome.findings)
    if task.index:
        _check_index(task, np.concatenate(needed), np.concatenate(allowed), outcome.findings)
    return outcome


def _by_queue(claims: list[Claims], queues: list[QueueName]) -> Iterator[tuple[QueueName, Claims]]:
    if not claims:
        return
    whole = np.concatenate(claims)
    whole = whole[np.lexsort((whole["physical_offset"], whole["queue"]))]
    borders = (np.flatnonzero(np.diff(whole["queue"])) + 1).tolist()
    for begin, end in zip([0, *borders], [*borders, len(whole)], strict=True):
        if begin < end:
            yield queues[int(whole["queue"][begin])], whole[begin:end]


def _part(queue: QueueName, records: Claims) -> QueuePart:
    offsets, physical = records["queue_offset"], records["physical_offset"]
    return QueuePart(queue, int(offsets[0]), int(offsets[-1]), int(physical[0]))


def _check_order(queue: QueueName, records: Claims, findings: Findings) -> None:
    offsets = records["queue_offset"]
    for row in np.flatnonzero(np.diff(offsets) != 1).tolist():
        findings.add(step(queue, int(offsets[row]), int(offsets[row + 1]), int(records["physical_offset"][row + 1])))


def step(queue: QueueName, before: int, after: int, physical_offset: int) -> Finding:
    """What it means that a record's queue offset does not follow that of the one before it."""
    if after > before:
        detail = f"{after - before - 1} queue offsets have no record in the log"
        return Finding("lost", *queue, before + 1, physical_offset, detail)
    kind = "duplicate" if after == before else "out-of-order"
    return Finding(kind, *queue, after, physical_offset, f"follows queue offset {before} in the log")


def _check_entries(task: LogTask, queue: QueueName, records: Claims, findings: Findings) -> None:
    entries = SimpleQueue(_queue_files(task, QUEUES, queue)).entries_at(records["queue_offset"])
    missing = entries["size"] == 0
    differs = np.zeros(len(records), np.bool_)
    for name in _FIELDS:
        differs |= entries[name] != records[name]
    for row in np.flatnonzero(missing | differs).tolist():
        place = (*queue, int(records["queue_offset"][row]), int(records["physical_offset"][row]))
        if missing[row]:
            findings.add(Finding("not-in-queue", *place))
        else:
            said, is_so = (tuple(int(each[row][name]) for name in _FIELDS) for each in (entries, records))
            findings.add(Finding("wrong-entry", *place, f"the entry says {said}, the log {is_so}"))


_FIELDS = ("physical_offset", "size", "tags_code")


def _check_batches(task: LogTask, batches: list[BatchClaim], findings: Findings) -> None:
    held: dict[QueueName, dict[int, tuple[int, int]]] = {}
    for claim in batches:
        if claim.queue not in held:
            held[claim.queue] = _batch_entries(_queue_files(task, BATCH_QUEUES, claim.queue))
        entry = held[claim.queue].get(claim.base_offset)
        place = (*claim.queue, claim.base_offset, claim.physical_offset)
        if entry is None:
            findings.add(Finding("not-in-queue", *place, "a batch queue"))
        elif entry != (claim.physical_offset, claim.size):
            findings.add(Finding("wrong-entry", *place, f"the entry of the batch queue says {entry}"))


def _queue_files(task: LogTask, folder: str, queue: QueueName) -> OffsetFiles:
    """The files of a queue of the store."""
    return OffsetFiles(Path(task.store) / folder / queue.topic / str(queue.queue_id))


def _batch_entries(files: OffsetFiles) -> dict[int, tuple[int, int]]:
    """Base offset → physical offset and size."""
    columns = ("base_offset", "physical_offset", "size")
    entries = [read_entries(file, BatchQueue.dtype) for file in files.files]
    rows = (zip(*(each[name].tolist() for name in columns), strict=True) for each in entries)
    return {base: (offset, size) for of_file in rows for base, offset, size in of_file}


def _check_index(task: LogTask, needed: Int64s, allowed: Int64s, findings: Findings) -> None:
    """Between the first and the last entry of the index; what is older was deleted, what is newer is on its way."""
    begin = max(task.split.base_offset + task.split.begin, task.index[0].begin)
    end = min(task.split.base_offset + task.split.end, task.index[-1].end + 1)
    held = indexed_pairs(list(task.index), begin, end)
    needed, allowed = (each[(each[:, 0] >= begin) & (each[:, 0] < end)] for each in (needed, allowed))
    for kind, pairs in (("not-in-index", missing_from(needed, held)), ("orphaned-index", missing_from(held, allowed))):
        for offset, key_hash in pairs.tolist():
            findings.add(Finding(kind, physical_offset=offset, detail=f"hash of the key: {key_hash}"))
