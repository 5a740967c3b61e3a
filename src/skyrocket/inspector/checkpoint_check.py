"""The checkpoint: its page, its seal, and times that no record has."""

from skyrocket.format.checkpoint import SIZE, decode_checkpoint
from skyrocket.inspector.findings import FindingKind, Findings, Severity
from skyrocket.inspector.log_check import LogExtent
from skyrocket.offline.offset_files import read_at
from skyrocket.offline.store_files import StoreFiles


def check_checkpoint(store: StoreFiles, extent: LogExtent, findings: Findings) -> None:
    """Report a checkpoint that claims more than the log holds: recovery would begin too late."""
    if not store.checkpoint.exists():
        if extent.records:
            what = "there is no checkpoint"
            findings.add(FindingKind.CHECKPOINT_MISSING, Severity.WARNING, "checkpoint", what)
        return
    page = read_at(store.checkpoint, 0, SIZE + 1)
    checkpoint, trusted = decode_checkpoint(page)

    def wrong(what: str, position: int, severity: Severity = Severity.ERROR) -> None:
        findings.add(FindingKind.CHECKPOINT_WRONG, severity, "checkpoint", what, position=position)

    if len(page) != SIZE:
        wrong(f"the file has {store.checkpoint.stat().st_size} bytes instead of {SIZE}", 0)
    if not trusted:
        wrong("a value is below zero, or the seal does not fit the values", 0)
        return
    times = (checkpoint.physic_timestamp, checkpoint.logics_timestamp, checkpoint.index_timestamp)
    for at, (name, time) in enumerate(zip(("log", "queue", "index"), times, strict=True)):
        if time > extent.last_store_timestamp:
            what = f"the {name} time {time} is later than the last record's {extent.last_store_timestamp}"
            # A power cut can take records whose queue entries had been flushed before them, but no flushed records.
            severity = Severity.WARNING if at and store.unclean else Severity.ERROR
            wrong(what, 8 * at, Severity.NOTE if extent.has_leftovers else severity)  # RocketMQ never lowers them
    offsets = (checkpoint.master_flushed_offset, checkpoint.confirm_offset, checkpoint.logics_physical_offset)
    for at, (name, offset) in enumerate(zip(("master flushed", "confirm", "queue"), offsets, strict=True)):
        if offset > extent.end:
            wrong(f"the {name} offset {offset} lies behind the end of the log ({extent.end})", 24 + 8 * at)
