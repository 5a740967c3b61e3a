"""What an audit finds, as rows; bounded, because a broken store may have as many findings as messages."""

from collections import Counter
from dataclasses import dataclass, field
from typing import NamedTuple

import pyarrow as pa

MOST_ROWS = 1000  # of one task; the counts are complete

KINDS = {
    "damaged": "bytes of the log that are not a record, or a record whose checksum differs",
    "lost": "a queue offset for which the log has no record",
    "duplicate": "two records of the log with the same queue offset",
    "out-of-order": "a record whose queue offset is smaller than that of a record before it in the log",
    "not-in-queue": "a record of the log that its queue does not point to",
    "wrong-entry": "a queue entry that says another place, size or tag than the record of that queue offset",
    "orphaned-entry": "a queue entry that points to no record of that queue offset",
    "not-in-index": "a key of a record that the index does not have",
    "orphaned-index": "an index entry that points to no record with that key",
    "offset-ahead": "a group's progress beyond the end of the queue",
    "offset-behind": "a group's progress before the first message that is left: what is between was deleted unread",
    "orphaned-offset": "a group's progress in a queue that does not exist",
    "same-id": "messages of one topic with the same unique id: a send that was repeated",
    "same-key": "messages of one topic with the same business key",
}

SCHEMA = pa.schema(
    [
        ("kind", pa.string()),
        ("topic", pa.string()),
        ("queueId", pa.int32()),
        ("queueOffset", pa.int64()),
        ("physicalOffset", pa.int64()),
        ("detail", pa.string()),
    ]
)


class Finding(NamedTuple):
    """One difference between log, queues, index and offsets."""

    kind: str
    topic: str | None = None
    queue_id: int | None = None
    queue_offset: int | None = None
    physical_offset: int | None = None
    detail: str = ""


@dataclass(slots=True)
class Findings:
    """All counted, the first ones kept."""

    counts: Counter[str] = field(default_factory=Counter)
    rows: list[Finding] = field(default_factory=list)

    def add(self, finding: Finding) -> None:
        assert finding.kind in KINDS
        self.counts[finding.kind] += 1
        if len(self.rows) < MOST_ROWS:
            self.rows.append(finding)

    def merge(self, other: "Findings") -> None:
        self.counts.update(other.counts)
        self.rows += other.rows[: MOST_ROWS - len(self.rows)]

    @property
    def total(self) -> int:
        return self.counts.total()


def table(findings: Findings) -> pa.Table:
    """The kept rows."""
    rows = [dict(zip(SCHEMA.names, each, strict=True)) for each in findings.rows]
    return pa.Table.from_pylist(rows, SCHEMA)
