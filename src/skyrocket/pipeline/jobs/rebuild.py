"""The job `rebuild`: consume queues and index files from the commit log alone, byte for byte as the broker builds them.

Tasks write queue entries straight to their places and index keys to files of their own; then a task per group of queues
fills what nobody claimed, and a task per index file chains its keys. The driver exchanges the directories at the end.
It can be stopped at any time: finished splits are not read again, and everything else is written again with the same
bytes.
"""

import time
from collections import defaultdict
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from skyrocket.format.dispatch_claims import KEY_DTYPE, QueueName
from skyrocket.pipeline.commit_log.damage import DAMAGE_SCHEMA, damage_batch
from skyrocket.pipeline.commit_log.log_files import find_log_files
from skyrocket.pipeline.commit_log.settings import SPLIT_BYTES
from skyrocket.pipeline.commit_log.splits import Bounds, gaps, plan
from skyrocket.pipeline.jobs.launch import in_tasks
from skyrocket.pipeline.rebuild.claims import BatchClaim
from skyrocket.pipeline.rebuild.index_file import KeyRange, ranges_of_files, write_index_file
from skyrocket.pipeline.rebuild.publish import (
    STAGING,
    check_target,
    drop_staging,
    open_staging,
    publish,
    store_locked,
    tell_manifest,
)
from skyrocket.pipeline.rebuild.queues import FinishedQueue, QueueExtent, finish_queue, write_batch_queue
from skyrocket.pipeline.rebuild.rules import RebuildRules, rules_for
from skyrocket.pipeline.rebuild.split import INDEX, QUEUES, SplitResult, SplitWork, rebuild_split, rewrite_claims
from skyrocket.pipeline.report import Report

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

DIRECTORIES = {QUEUES: ("consumequeue", "batchconsumequeue"), INDEX: ("index",)}
EVERYTHING = (QUEUES, INDEX)
_KEYS_AT_ONCE = 1 << 20
_QUEUES_PER_TASK = 64


@dataclass(frozen=True)
class IndexWork:
    """One index file: its keys, and the time at which the file before it ends."""

    path: str
    keys: list[KeyRange]
    key_before: KeyRange | None
    slots: int
    entries: int


def run(
    spark: "SparkSession",
    store: Path,
    *,
    target: Path | None = None,
    rules: RebuildRules | None = None,
    parts: Sequence[str] = EVERYTHING,
    force: bool = False,
    skip_damage: bool = False,
    verify_crc: bool = False,
    split_bytes: int = SPLIT_BYTES,
    dry_run: bool = False,
) -> Report:
    """Rebuild queues and index of a store; into the store itself, or into another directory.

    A dry run reads everything and reports, and leaves nothing behind.
    """
    target = target or store
    rules = rules_for(store, rules or RebuildRules())
    directories = [name for part in parts for name in DIRECTORIES[part]]
    target.mkdir(parents=True, exist_ok=True)
    with store_locked(target):
        if not dry_run:
            check_target(target, directories, force=force)
        staging = target / (f"{STAGING}.dry-run" if dry_run else STAGING)
        works, resumed = _plan(store, staging, rules, parts, skip_damage, verify_crc, split_bytes)
        results = in_tasks(spark, works, rebuild_split)
        queues = _finish_queues(spark, works, results, staging, rules)
        _write_batch_queues(results, staging, rules)
        index_names = _build_index(spark, works, results, staging, target, rules)
        if dry_run:
            drop_staging(staging)
        else:
            publish(target, staging, directories)
            if INDEX in parts:
                tell_manifest(target, index_names)
    return _report(target, results, queues, index_names, resumed=resumed, dry_run=dry_run)


def _plan(
    store: Path,
    staging: Path,
    rules: RebuildRules,
    parts: Sequence[str],
    skip_damage: bool,
    verify_crc: bool,
    split_bytes: int,
) -> tuple[list[SplitWork], bool]:
    files = find_log_files(str(store))
    splits = plan(files, gaps(files), Bounds(), split_bytes, None)
    text = asdict(rules) | {"batch_topics": sorted(rules.batch_topics)}
    told = {"rules": text, "parts": list(parts), "skip": skip_damage, "crc": verify_crc}
    resumed = open_staging(staging, told | {"splits": [asdict(split) for split in splits]})
    works = [SplitWork(split, str(staging), rules, tuple(parts), skip_damage, verify_crc) for split in splits]
    return works, resumed


# -- queues --------------------------------------------------------------------------------------------------


def _finish_queues(
    spark: "SparkSession",
    works: list[SplitWork],
    results: Iterable[SplitResult],
    staging: Path,
    rules: RebuildRules,
) -> dict[QueueName, FinishedQueue]:
    joined: dict[QueueName, QueueExtent] = {}
    for result in results:
        for name, extent in result.queues.items():
            joined[name] = joined[name].joined(extent) if name in joined else extent
    root, entries = str(staging / "consumequeue"), rules.entries_per_file
    finished = _finish(spark, joined, root, entries)
    repeated = frozenset(name for name, queue in finished.items() if queue.repeats)
    if repeated:  # which of two records came last was decided by chance; now it is decided by the log
        spark.sparkContext.parallelize([works], 1).map(lambda all_works: rewrite_claims(all_works, repeated)).collect()
        _finish(spark, {name: joined[name] for name in repeated}, root, entries)
    return finished


def _finish(
    spark: "SparkSession", extents: dict[QueueName, QueueExtent], root: str, entries_per_file: int
) -> dict[QueueName, FinishedQueue]:
    names = sorted(extents)
    groups = [
        [(name, extents[name]) for name in names[start : start + _QUEUES_PER_TASK]]
        for start in range(0, len(names), _QUEUES_PER_TASK)
    ]

    def finish_group(group: list[tuple[QueueName, QueueExtent]]) -> list[tuple[QueueName, FinishedQueue]]:
        return [
            (name, finish_queue(Path(root) / name.topic / str(name.queue_id), extent, entries_per_file))
            for name, extent in group
        ]

    return dict(pair for pairs in in_tasks(spark, groups, finish_group) for pair in pairs)


def _write_batch_queues(results: Iterable[SplitResult], staging: Path, rules: RebuildRules) -> None:
    by_queue: dict[QueueName, list[BatchClaim]] = defaultdict(list)
    for result in results:
        for claim in result.batches:
            by_queue[claim.queue].append(claim)
    for name, claims in by_queue.items():
        directory = staging / "batchconsumequeue" / name.topic / str(name.queue_id)
        write_batch_queue(directory, claims, rules.batch_entries_per_file)


# -- index ---------------------------------------------------------------------------------------------------


def _build_index(
    spark: "SparkSession",
    works: Sequence[SplitWork],
    results: Sequence[SplitResult],
    staging: Path,
    target: Path,
    rules: RebuildRules,
) -> list[str]:
    """Make the index files, and return their names."""
    counts = [(str(work.keys_path), result.keys) for work, result in zip(works, results, strict=True)]
    files = ranges_of_files(counts, rules.index_entries)
    if not files:
        return []
    directory = staging / "index"
    directory.mkdir(exist_ok=True)
    names = _names(files, target / "index")
    index_works = [
        IndexWork(str(directory / name), keys, before[-1] if before else None, rules.index_slots, rules.index_entries)
        for name, keys, before in zip(names, files, [None, *files], strict=False)
    ]
    in_tasks(spark, index_works, _build_index_file)
    return names


def _build_index_file(work: IndexWork) -> None:
    end_before = 0
    if work.key_before is not None:
        last = work.key_before.end
        end_before = int(_keys(KeyRange(work.key_before.path, last - 1, last))[0]["store_timestamp"])
    pieces = (piece for keys in work.keys for piece in _pieces(keys))
    write_index_file(Path(work.path), pieces, work.slots, work.entries, end_before)


def _pieces(keys: KeyRange) -> Iterator[NDArray[np.void]]:
    for begin in range(keys.begin, keys.end, _KEYS_AT_ONCE):
        yield _keys(KeyRange(keys.path, begin, min(begin + _KEYS_AT_ONCE, keys.end)))


def _keys(wanted: KeyRange) -> NDArray[np.void]:
    offset = wanted.begin * KEY_DTYPE.itemsize
    return np.fromfile(wanted.path, dtype=KEY_DTYPE, count=wanted.end - wanted.begin, offset=offset)


def _names(files: list[list[KeyRange]], old: Path) -> list[str]:
    """Names of index files are times: those of the files they replace, else the local times of their first keys."""
    known = sorted(path.name for path in old.iterdir() if path.name.isdigit()) if old.is_dir() else []
    if len(known) == len(files):
        return known
    names: list[str] = []
    for keys in files:
        first = keys[0]
        begin = int(_keys(KeyRange(first.path, first.begin, first.begin + 1))[0]["store_timestamp"])
        name = time.strftime("%Y%m%d%H%M%S", time.localtime(begin // 1000)) + f"{begin % 1000:03d}"
        names.append(name if not names or name > names[-1] else f"{int(names[-1]) + 1:017d}")
    return names


# -- report --------------------------------------------------------------------------------------------------


def _report(
    target: Path,
    results: Sequence[SplitResult],
    queues: dict[QueueName, FinishedQueue],
    index_names: Sequence[str],
    *,
    resumed: bool,
    dry_run: bool,
) -> Report:
    damage = [found for result in results for found in result.damage]
    unusable = sum(result.unusable for result in results)
    odd = sum(1 for queue in queues.values() if queue.gaps or queue.repeats)
    batch_queues = {claim.queue for result in results for claim in result.batches}
    totals = {
        "records": sum(result.records for result in results),
        "queues": len(queues) + len(batch_queues),
        "queueEntries": sum(queue.entries for queue in queues.values()) + sum(len(r.batches) for r in results),
        "indexFiles": len(index_names),
        "indexEntries": sum(result.keys for result in results),
        "damagedRegions": len(damage),
        "recordsWithoutQueue": unusable,
    }
    rows = [{"topic": name.topic, "queueId": name.queue_id, **asdict(queue)} for name, queue in sorted(queues.items())]
    columns = ("first", "last", "entries", "gaps", "repeats")
    kinds = [("topic", pa.string()), ("queueId", pa.int32()), *((name, pa.int64()) for name in columns)]
    notes = [f"nothing was changed in {target}" if dry_run else f"published into {target}"]
    if resumed:
        notes.append("splits that an earlier run had finished were not read again")
    return Report(
        title=f"rebuild of {target}",
        tables={
            "totals": pa.table({"what": list(totals), "count": pa.array(totals.values(), pa.int64())}),
            "queues": pa.Table.from_pylist(rows, pa.schema(kinds)),
            "damage": pa.Table.from_batches([damage_batch(damage)], DAMAGE_SCHEMA),
        },
        findings=len(damage) + odd + (1 if unusable else 0),
        notes=notes,
    )
