"""What is wrong with a store that its next start would not repair, and what to do about it. Nothing is changed."""

from collections.abc import Iterator
from dataclasses import dataclass, replace
from enum import Enum
from pathlib import Path

import numpy as np

from skyrocket.clock import SystemClock
from skyrocket.config.sections import StoreConfig
from skyrocket.format.record import pack_host
from skyrocket.format.store_names import CHECKPOINT, INDEX
from skyrocket.inspector.findings import Finding, FindingKind, Severity
from skyrocket.inspector.settings import InspectionSettings
from skyrocket.inspector.verify import verify
from skyrocket.model.message import Host
from skyrocket.offline.index_files import shapes_of
from skyrocket.offline.queue_files import SimpleQueue, open_queue
from skyrocket.offline.store_files import StoreFiles, find_store_files
from skyrocket.repair.damaged_ranges import DamagedRange, ranges_in_files
from skyrocket.store.commit_log import CommitLog
from skyrocket.store.disk import Disk
from skyrocket.store.log_scan import LogEnd, LogScan

_PIECE = 65_536
_QUEUE_KINDS = {
    FindingKind.ENTRY_WRONG,
    FindingKind.ENTRY_ORPHAN,
    FindingKind.ENTRY_MISSING,
    FindingKind.EXT_UNIT_MISSING,
}
_INDEX_KINDS = {
    FindingKind.INDEX_HEADER,
    FindingKind.INDEX_CHAIN,
    FindingKind.INDEX_ENTRY_WRONG,
    FindingKind.INDEX_KEY_MISSING,
}
_CHECKPOINT_KINDS = {FindingKind.CHECKPOINT_WRONG, FindingKind.LOG_TAIL_LOST}


class Action(Enum):
    """What a step does; the old bytes are kept in `skyrocket.repaired` each time."""

    FILL = "fill the damaged bytes with a record that nobody reads; records before and behind stay"
    REBUILD_QUEUE = "move the queue away and build it from the log"
    REBUILD_INDEX = "move the index away and build it from the log"
    FORGET_CHECKPOINT = "move the checkpoint away: the start compares more"


@dataclass(frozen=True, slots=True)
class Step:
    """One thing to do; `target` is relative to the store."""

    action: Action
    target: str
    why: str
    damaged: DamagedRange | None = None


@dataclass(frozen=True, slots=True)
class RepairPlan:
    """The steps, the settings that the files tell, and what is wrong and stays so."""

    root: Path
    config: StoreConfig
    batch_topics: frozenset[str]
    steps: list[Step]
    left: list[Finding]


def plan_repair(root: Path, settings: InspectionSettings) -> RepairPlan:
    """Look at a store; raises NotAStore, or CorruptFile where files of the log are missing."""
    store = find_store_files(root)
    config = _sizes_of(store, settings)
    findings = [f for f in verify(store, settings).findings if f.severity is Severity.ERROR]
    damaged = list(_damaged_ranges(store, config))
    steps = [_fill(each, config) for each in damaged]
    steps += [
        Step(Action.REBUILD_QUEUE, target, why)
        for target, why in sorted(_wrong_queues(store, findings, damaged).items())
    ]
    index = [finding for finding in findings if finding.kind in _INDEX_KINDS]
    if index or (damaged and store.index_files):
        why = index[0].what if index else "it may have keys of a damaged record"
        steps.append(Step(Action.REBUILD_INDEX, INDEX, why))
    checkpoint = [finding for finding in findings if finding.kind in _CHECKPOINT_KINDS]
    if checkpoint:
        steps.append(Step(Action.FORGET_CHECKPOINT, CHECKPOINT, checkpoint[0].what))
    handled = _QUEUE_KINDS | _INDEX_KINDS | _CHECKPOINT_KINDS
    handled |= {FindingKind.RECORD_DAMAGED, FindingKind.BLANK_WRONG} if damaged else set()
    left = [finding for finding in findings if finding.kind not in handled]
    return RepairPlan(root, config, frozenset(name.topic for name in store.batch_queues), steps, left)


def _sizes_of(store: StoreFiles, settings: InspectionSettings) -> StoreConfig:
    """The given settings, with the sizes that the files have."""
    sizes: dict[str, int] = {}
    if store.commit_log.files:
        sizes["commit_log_file_size"] = store.commit_log.files[0].size
    for name, queues in (("consume_queue_file_size", store.queues), ("batch_queue_file_size", store.batch_queues)):
        first = next((queue.files[0].size for queue in queues.values() if queue.files), None)
        if first:
            sizes[name] = first
    shapes = [shape for shape, _ in shapes_of(store.index_files, settings.index_shape).values() if shape is not None]
    if shapes:
        sizes |= {"index_slots": shapes[-1].slots, "index_entries": shapes[-1].entries}
    return replace(settings.config, **sizes, dispatch_thread=False, adopt_scan_bytes=1 << 62)  # type: ignore[arg-type]


def _damaged_ranges(store: StoreFiles, config: StoreConfig) -> Iterator[DamagedRange]:
    """Stretches of the log that are not intact records, with intact records behind them."""
    disk = Disk()
    log = CommitLog(disk, str(store.commit_log.directory), config, SystemClock(), pack_host(Host(b"\x7f\0\0\1", 0)))
    log.load()
    try:
        end = LogEnd(log.files.min_offset)
        times: dict[int, int] = {}
        for _ in LogScan(disk, config, log, log.files.end_offset).batches(end, log.files.end_offset):
            times[len(end.passed)] = end.last_timestamp
        for number, (start, stop) in enumerate(end.passed):
            yield from ranges_in_files(start, stop, times.get(number, 1), log.file_size)
    finally:
        log.files.close()


def _fill(damaged: DamagedRange, config: StoreConfig) -> Step:
    start = damaged.start - damaged.start % config.commit_log_file_size
    why = f"{damaged.size} bytes at {damaged.start - start} (physical offset {damaged.start}) are not an intact record"
    return Step(Action.FILL, f"commitlog/{start:020d}", why, damaged)


def _wrong_queues(store: StoreFiles, findings: list[Finding], damaged: list[DamagedRange]) -> dict[str, str]:
    """Directories of queues that must be built anew, and why."""
    found: dict[str, str] = {}
    for finding in findings:
        if finding.kind in _QUEUE_KINDS:
            found.setdefault("/".join(finding.file.split("/")[:3]), finding.what)
    for name, files in [*store.queues.items(), *store.batch_queues.items()]:
        queue = open_queue(store, name) if damaged else None
        if queue is not None and _points_into(queue, damaged):
            found.setdefault(store.name_of(files.directory), "it has an entry of a damaged record")
    return found


def _points_into(queue: SimpleQueue, damaged: list[DamagedRange]) -> bool:
    first, end = queue.written
    starts = np.array([each.start for each in damaged], dtype=np.int64)
    ends = np.array([each.end for each in damaged], dtype=np.int64)
    for number in range(first, end, _PIECE):
        places = queue.read(number, min(_PIECE, end - number))["physical_offset"].astype(np.int64)
        at = np.searchsorted(starts, places, side="right") - 1
        if ((at >= 0) & (places < ends[at])).any():
            return True
    return False
