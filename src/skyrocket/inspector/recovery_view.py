"""What the next start would repair by itself.

After an unclean stop recovery goes back to a log file that the checkpoint covers, scans from there and dispatches
every record again. What is missing or half-written behind that point is expected; the same in a store that was
closed in order, or before that point, is damage.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

from skyrocket.format import index_layout
from skyrocket.format.checkpoint import Checkpoint, decode_checkpoint
from skyrocket.inspector.findings import Severity
from skyrocket.offline.index_files import IndexShape, read_header
from skyrocket.offline.log_walk import LogReader
from skyrocket.offline.offset_files import read_at
from skyrocket.offline.store_files import StoreFiles


@dataclass(frozen=True, slots=True)
class RecoveryView:
    """Whether recovery will run, and from which physical offset on it dispatches again."""

    unclean: bool
    redispatch_from: int
    checkpoint: Checkpoint

    def severity_of_missing(self, physical_offset: int) -> Severity:
        """How bad it is that something which dispatch makes is not there for this record."""
        repaired = self.unclean and physical_offset >= self.redispatch_from
        return Severity.WARNING if repaired else Severity.ERROR

    @property
    def severity_of_tail(self) -> Severity:
        """How bad damage at the end of the log is."""
        return Severity.WARNING if self.unclean else Severity.ERROR

    def rebuilt_index_files(self, shapes: Mapping[Path, IndexShape]) -> frozenset[Path]:
        """Those that recovery deletes: what was not full and on disk; all of them when a header cannot be true."""
        if not self.unclean:
            return frozenset()
        headers = {path: read_header(path) for path in shapes}
        if not all(index_layout.can_be_true(header, shapes[path].entries) for path, header in headers.items()):
            return frozenset(shapes)
        return frozenset(
            path
            for path, header in headers.items()
            if header.next_number < shapes[path].entries or header.end_timestamp > self.checkpoint.index_timestamp
        )


def recovery_view(store: StoreFiles, reader: LogReader) -> RecoveryView:
    """Recovery begins, as in RocketMQ, with the newest file whose first record is older than the checkpoint."""
    checkpoint, trusted = decode_checkpoint(read_at(store.checkpoint, 0, 4096))
    limit = min(checkpoint.min_timestamp, checkpoint.min_timestamp_index) if trusted else 0
    start = store.commit_log.start
    for file in store.commit_log.files:
        first = reader.store_timestamp_at(file.offset)
        if first is not None and first <= limit:
            start = file.offset
    return RecoveryView(store.unclean, start, checkpoint)
