"""Compares everything in a store with everything else; the log is the truth, and is read once."""

from collections.abc import Callable
from dataclasses import dataclass

from skyrocket.inspector.checkpoint_check import check_checkpoint
from skyrocket.inspector.config_check import ConfigCheck
from skyrocket.inspector.file_check import check_files
from skyrocket.inspector.findings import FindingKind, Findings, Severity
from skyrocket.inspector.index_check import IndexCheck
from skyrocket.inspector.left_behind import Leftovers, leftovers, log_until
from skyrocket.inspector.log_check import LogCheck, LogExtent
from skyrocket.inspector.log_chunks import ChunkReader
from skyrocket.inspector.queue_check import QueueCheck
from skyrocket.inspector.recovery_view import RecoveryView, recovery_view
from skyrocket.inspector.settings import InspectionSettings
from skyrocket.inspector.timer_check import TimerCheck
from skyrocket.offline.config_files import load_config, removed_queues
from skyrocket.offline.log_walk import LogReader, LogWalk
from skyrocket.offline.store_files import StoreFiles, lock_holder


@dataclass(frozen=True, slots=True)
class Verification:
    """What a verification found."""

    findings: Findings
    extent: LogExtent

    def has_problems(self, *, strict: bool = False) -> bool:
        """Whether there are errors; strictly: or warnings."""
        warnings = self.findings.count(Severity.WARNING) if strict else 0
        return self.findings.count(Severity.ERROR) + warnings > 0


def verify(
    store: StoreFiles, settings: InspectionSettings, advance: Callable[[int], None] = lambda _: None
) -> Verification:
    """Check a store; `advance` hears how many bytes of the log were read."""
    findings = Findings()
    reader = LogReader(store.commit_log)
    recovery = recovery_view(store, reader)
    _describe_state(store, recovery, findings)
    check_files(store, findings, settings.file_sizes)

    batch_topics = frozenset(name.topic for name in store.batch_queues)
    chunks = ChunkReader(settings.config.message_delay_levels, batch_topics, removed_queues(store.root))
    left = leftovers(store, reader, recovery.checkpoint)
    walk = LogWalk(store.commit_log if left is None else log_until(store.commit_log, left.start), advance)
    log = LogCheck(store, walk, recovery, findings)
    queues = QueueCheck(store, chunks.numbers, reader, recovery, findings)
    index = IndexCheck(store, reader, recovery, findings, settings.index_shape)
    for run in walk:
        chunk = chunks.chunk(run)
        log.add(chunk)
        queues.add(chunk.claims)
        index.add(run.physical_offset, run.physical_offset + run.stop, chunk)

    extent = log.extent_known()
    extent.has_leftovers = left is not None
    if left is not None:
        _describe_leftovers(store, left, findings)
    extent.tail_lost = not recovery.unclean and left is None and _is_tail_lost(recovery, extent, index)
    topics = load_config(store, "topics.json")
    queues.finish(extent, set(topics.topics) if topics is not None else None)
    log.finish(tail_is_claimed=extent.end in queues.orphaned_offsets)
    index.finish(extent)
    check_checkpoint(store, extent, findings)
    ConfigCheck(store, findings, extent.start).check()
    TimerCheck(store, reader, recovery, findings).check(extent)
    return Verification(findings, extent)


def _is_tail_lost(recovery: RecoveryView, extent: LogExtent, index: IndexCheck) -> bool:
    """Whether checkpoint or index remember records that the log does not have."""
    checkpoint = recovery.checkpoint
    remembered = max(checkpoint.physic_timestamp, checkpoint.logics_timestamp)
    return remembered > extent.last_store_timestamp or index.highest_offset >= extent.end


def _describe_leftovers(store: StoreFiles, left: Leftovers, findings: Findings) -> None:
    name, position = store.locate(store.commit_log, left.start)
    what = f"physical offset {left.start}: bytes behind the end of the log that a recovery of RocketMQ left"
    if not left.certain:
        what += ", or damage: the records on both sides are of the millisecond in which the log ends"
    severity = Severity.NOTE if left.certain else Severity.WARNING
    findings.add(FindingKind.STALE_BYTES, severity, name, what, position=position)


def _describe_state(store: StoreFiles, recovery: RecoveryView, findings: Findings) -> None:
    holder = lock_holder(store.lock)
    if holder is not None:
        what = f"process {holder} holds the store"
        findings.add(FindingKind.LOCK_HELD, Severity.WARNING, "lock", what)
    if recovery.unclean:
        what = f"the last process did not stop in order; recovery begins at physical offset {recovery.redispatch_from}"
        findings.add(FindingKind.UNCLEAN_STOP, Severity.NOTE, "abort", what)
