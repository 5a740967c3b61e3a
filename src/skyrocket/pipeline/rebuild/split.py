"""One split of the log → its queue entries and index keys in the staging tree. Runs inside a Spark task.

What it found goes into a small file when everything else is written, so that a later run can skip the split.
"""

import json
import os
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np

from skyrocket.columns import property_blocks, topic_numbers
from skyrocket.format.dispatch_claims import CLAIM_DTYPE, Claims, QueueName, QueueNumbers
from skyrocket.format.record import Buffer
from skyrocket.format.record_columns import Parts
from skyrocket.format.store_names import QUEUES as CONSUME_QUEUES
from skyrocket.pipeline.commit_log.damage import DamagedRegion, damage_error
from skyrocket.pipeline.commit_log.splits import Split
from skyrocket.pipeline.commit_log.walk import split_records
from skyrocket.pipeline.rebuild.claims import BatchClaim, claimer_of, sorted_claims
from skyrocket.pipeline.rebuild.queues import QueueExtent, extents, write_claims
from skyrocket.pipeline.rebuild.rules import RebuildRules

QUEUES, INDEX = "queues", "index"


@dataclass(frozen=True)
class SplitWork:
    """What a task works on."""

    split: Split
    staging: str
    rules: RebuildRules
    parts: tuple[str, ...]  # QUEUES, INDEX
    report_damage: bool
    verify_crc: bool

    @property
    def keys_path(self) -> Path:
        return Path(self.staging) / "keys" / self.split.name

    @property
    def done_path(self) -> Path:
        return Path(self.staging) / "done" / f"{self.split.name}.json"


@dataclass
class SplitResult:
    """What a split has: extents of its queues, how many keys, and what was wrong."""

    records: int = 0
    keys: int = 0
    unusable: int = 0
    queues: dict[QueueName, QueueExtent] = field(default_factory=dict)
    batches: list[BatchClaim] = field(default_factory=list)
    damage: list[DamagedRegion] = field(default_factory=list)

    def to_json(self) -> str:
        content = {
            "records": self.records,
            "keys": self.keys,
            "unusable": self.unusable,
            "queues": [[*name, extent.first, extent.last, extent.claims] for name, extent in self.queues.items()],
            "batches": self.batches,
            "damage": self.damage,
        }
        return json.dumps(content)

    @classmethod
    def from_json(cls, text: str) -> "SplitResult":
        content: dict[str, Any] = json.loads(text)
        return cls(
            content["records"],
            content["keys"],
            content["unusable"],
            {QueueName(*row[:2]): QueueExtent(*row[2:]) for row in content["queues"]},
            [BatchClaim(QueueName(*row[0]), *row[1:]) for row in content["batches"]],
            [DamagedRegion(*row) for row in content["damage"]],
        )


def rebuild_split(work: SplitWork) -> SplitResult:
    """Stage the entries and keys of a split; a split that was finished before is not read again."""
    # The newest file may have grown since, or its end may have been cut.
    if work.done_path.exists() and not work.split.newest:
        return SplitResult.from_json(work.done_path.read_text())
    result = SplitResult()
    numbers = QueueNumbers()
    claims = _stage(work, numbers, result)
    if QUEUES in work.parts:
        queues = numbers.queue_names
        write_claims(Path(work.staging) / CONSUME_QUEUES, queues, claims, work.rules.entries_per_file)
        result.queues = extents(queues, claims)
    _write_done(work.done_path, result.to_json())
    return result


def rewrite_claims(works: list[SplitWork], wanted: frozenset[QueueName]) -> None:
    """Write the entries of some queues again, all splits in the order of the log: the last claim of a number counts."""
    for work in works:
        numbers = QueueNumbers()
        claims = np.concatenate([np.empty(0, CLAIM_DTYPE), *_claims(work, numbers)])
        chosen = np.array([name in wanted for name in numbers.queue_names], dtype=np.bool_)
        if chosen.any():
            claims = claims[chosen[claims["queue"]]]
            directory = Path(work.staging) / CONSUME_QUEUES
            write_claims(directory, numbers.queue_names, claims, work.rules.entries_per_file)


def _claims(work: SplitWork, numbers: QueueNumbers) -> Iterator[Claims]:
    claimer = claimer_of(work.rules, numbers)
    for buffer, parts in _records(work, SplitResult()):
        claims = claimer.claims(parts, property_blocks(buffer, parts), topic_numbers(buffer, parts, numbers))
        yield sorted_claims(claims, numbers, work.rules.batch_topics).simple


def _stage(work: SplitWork, numbers: QueueNumbers, result: SplitResult) -> Claims:
    """Write the keys, and return the claims."""
    claimer = claimer_of(work.rules, numbers)
    found: list[Claims] = [np.empty(0, dtype=CLAIM_DTYPE)]
    work.keys_path.parent.mkdir(parents=True, exist_ok=True)
    with work.keys_path.open("wb") as keys_file:
        for buffer, parts in _records(work, result):
            result.records += len(parts)
            records = (parts, property_blocks(buffer, parts), topic_numbers(buffer, parts, numbers))
            if QUEUES in work.parts:
                claimed = sorted_claims(claimer.claims(*records), numbers, work.rules.batch_topics)
                found.append(claimed.simple)
                result.batches += claimed.batches
                result.unusable += claimed.unusable
            if INDEX in work.parts:
                keys = claimer.keys(*records, with_tags=work.rules.index_tags).table
                keys.tofile(keys_file)
                result.keys += len(keys)
    return np.concatenate(found)


def _records(work: SplitWork, result: SplitResult) -> Iterator[tuple[Buffer, Parts]]:
    def note(found: DamagedRegion) -> None:
        if not work.report_damage:
            raise damage_error(found)
        result.damage.append(found)

    return split_records(work.split, note, verify_crc=work.verify_crc)


def _write_done(path: Path, text: str) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    staged = path.with_suffix(f".{os.getpid()}.tmp")
    staged.write_text(text)
    staged.rename(path)
