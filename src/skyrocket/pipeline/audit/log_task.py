"""Log → queues and index: is every record of a split where it belongs, once and in order? Runs inside a Spark task.

What belongs where is decided by the same code that rebuilds queues and index from the log (`jobs/rebuild`).
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import NamedTuple

import numpy as np

from skyrocket.format import sys_flag as flags
from skyrocket.pipeline.audit.findings import Finding, Findings
from skyrocket.pipeline.audit.index_files import IndexFile, indexed_pairs, missing_from, sorted_pairs
from skyrocket.pipeline.audit.queue_files import QueueReader
from skyrocket.pipeline.columns import Parts, property_blocks
from skyrocket.pipeline.columns.parts import Int64s
from skyrocket.pipeline.commit_log.mapping import mapped
from skyrocket.pipeline.commit_log.splits import Split
from skyrocket.pipeline.commit_log.walk import walk_split
from skyrocket.pipeline.rebuild.claims import (
    BatchClaim,
    Claimer,
    Claims,
    Names,
    QueueName,
    batch_topic_numbers,
)
from skyrocket.pipeline.rebuild.keys import index_keys, prefixes_of
from skyrocket.pipeline.rebuild.rules import RebuildRules


@dataclass(frozen=True, slots=True)
class LogTask:
    """What a task is told."""

    store: str
    split: Split
    rules: RebuildRules
    index: Sequence[IndexFile]
    settled_ms: int  # what was stored later may still be on its way into the files


class QueuePart(NamedTuple):
    """What a split has of one queue, in the order of the log."""

    queue: QueueName
    first: int
    last: int
    first_physical: int


@dataclass(slots=True)
class LogOutcome:
    """What a task answers."""

    records: int = 0
    size: int = 0
    parts: list[QueuePart] = field(default_factory=list)
    findings: Findings = field(default_factory=Findings)


def audit_split(task: LogTask) -> LogOutcome:
    """Check the records of a split against checksums, order, queue entries and index entries."""
    outcome = LogOutcome()
    names = Names()
    claimer = Claimer(task.rules, names)
    claims: list[Claims] = []
    batches: list[BatchClaim] = []
    needed, allowed = [np.empty((0, 2), np.int64)], [np.empty((0, 2), np.int64)]
    with mapped(task.split.path) as buffer:
        for item in walk_split(buffer, task.split, verify_crc=True):
            if not isinstance(item, Parts):
                detail = f"{item.path} at byte {item.position}, {item.length} bytes: {item.cause}"
                outcome.findings.add(Finding("damaged", physical_offset=item.physical_offset, detail=detail))
                continue
            outcome.records += len(item)
            outcome.size += int(item.sizes.sum())
            blocks, topic_numbers = property_blocks(buffer, item), batch_topic_numbers(buffer, item, names)
            claimed = claimer.claims(item, blocks, topic_numbers)
            claims.append(_settled(claimed.simple, item, task.settled_ms))
            batches += [each for each in claimed.batches if each.store_timestamp <= task.settled_ms]
            if task.index:
                prefixes = prefixes_of(names.texts)
                indexed = item.sys_flags & flags.TRANSACTION_MASK != flags.TRANSACTION_ROLLBACK
                places = (item.heads["physical_offset"], item.heads["store_timestamp"])
                for with_tags, pairs in ((False, needed), (True, allowed)):
                    keys = index_keys(blocks, topic_numbers, prefixes, indexed, *places, with_tags=with_tags)
                    pairs.append(np.column_stack([keys["physical_offset"], keys["hash"]]).astype(np.int64))
    reader = QueueReader(Path(task.store))
    for queue, records in _by_queue(claims, list(names.queues)):
        outcome.parts.append(_part(queue, records))
        _check_order(queue, records, outcome.findings)
        _check_entries(queue, records, reader, outcome.findings)
    _check_batches(batches, reader, outcome.findings)
    if task.index:
        _check_index(task, np.concatenate(needed), np.concatenate(allowed), outcome.findings)
    return outcome


def _settled(claims: Claims, parts: Parts, settled_ms: int) -> Claims:
    """The claims of records that were stored long enough ago; a record may have several."""
    rows = np.searchsorted(parts.heads["physical_offset"], claims["physical_offset"])
    return claims[parts.heads["store_timestamp"][rows] <= settled_ms]


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


def _check_entries(queue: QueueName, records: Claims, reader: QueueReader, findings: Findings) -> None:
    entries = reader.simple(*queue, records["queue_offset"])
    missing = entries["size"] == 0
    differs = np.zeros(len(records), np.bool_)
    for name in ("physical_offset", "size", "tags_code"):
        differs |= entries[name] != records[name]
    for row in np.flatnonzero(missing | differs).tolist():
        place = (*queue, int(records["queue_offset"][row]), int(records["physical_offset"][row]))
        if missing[row]:
            findings.add(Finding("not-in-queue", *place))
        else:
            said, is_so = (tuple(int(each[row][name]) for name in _FIELDS) for each in (entries, records))
            findings.add(Finding("wrong-entry", *place, f"the entry says {said}, the log {is_so}"))


_FIELDS = ("physical_offset", "size", "tags_code")


def _check_batches(batches: list[BatchClaim], reader: QueueReader, findings: Findings) -> None:
    held: dict[QueueName, dict[int, tuple[int, int]]] = {}
    for claim in batches:
        if claim.queue not in held:
            held[claim.queue] = reader.batch(*claim.queue)
        entry = held[claim.queue].get(claim.base_offset)
        place = (*claim.queue, claim.base_offset, claim.physical_offset)
        if entry is None:
            findings.add(Finding("not-in-queue", *place, "a batch queue"))
        elif entry != (claim.physical_offset, claim.size):
            findings.add(Finding("wrong-entry", *place, f"the entry of the batch queue says {entry}"))


def _check_index(task: LogTask, needed: Int64s, allowed: Int64s, findings: Findings) -> None:
    """Between the first and the last entry of the index; what is older was deleted, what is newer is on its way."""
    begin = max(task.split.base_offset + task.split.begin, task.index[0].begin)
    end = min(task.split.base_offset + task.split.end, task.index[-1].end + 1)
    held = indexed_pairs(list(task.index), begin, end)
    needed, allowed = (sorted_pairs(each[(each[:, 0] >= begin) & (each[:, 0] < end)]) for each in (needed, allowed))
    for kind, pairs in (("not-in-index", missing_from(needed, held)), ("orphaned-index", missing_from(held, allowed))):
        for offset, key_hash in pairs.tolist():
            findings.add(Finding(kind, physical_offset=offset, detail=f"hash of the key: {key_hash}"))
