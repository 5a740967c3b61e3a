"""Log ↔ consume queues: every record has its entry, every entry has its record.

The log is read once. Each record claims one entry (light queues: more); a claim that finds its entry marks it.
What is left unmarked when the log is through points to nothing that claims it.
"""

from collections import Counter
from dataclasses import dataclass, field

import numpy as np
from numpy.typing import NDArray

from skyrocket.format.dispatch_claims import CLAIM_DTYPE, Claims, QueueName, QueueNumbers
from skyrocket.format.dtypes import Int64s
from skyrocket.format.queue_entry import PREFILL_SIZE, is_ext_address
from skyrocket.format.store_names import BATCH_QUEUES, QUEUES, offset_name
from skyrocket.inspector.findings import FindingKind, Findings, Severity
from skyrocket.inspector.log_check import LogExtent
from skyrocket.inspector.recovery_view import RecoveryView
from skyrocket.model.topic import LMQ_PREFIX, is_system_topic
from skyrocket.model.words import counted
from skyrocket.offline.log_walk import LogReader
from skyrocket.offline.queue_files import BatchQueue, Entries, QueueExtension, SimpleQueue, is_used, open_queue
from skyrocket.offline.store_files import StoreFiles

_PIECE = 1 << 18  # entries read together
_TOGETHER = 250_000  # claims compared together


@dataclass(slots=True)
class _MissingRun:
    """Neighbouring queue offsets of records that have no entry."""

    first: int
    last: int
    physical_offset: int  # of the first record


@dataclass(slots=True)
class _Queue:
    """One queue during the check."""

    name: QueueName
    entries: SimpleQueue | None
    extension: QueueExtension
    directory: str
    marked: NDArray[np.bool_]  # a record claims this entry and it is right
    handled: NDArray[np.bool_]  # the same, or already reported
    missing: list[_MissingRun] = field(default_factory=list)

    def file_of(self, number: int) -> str:
        """The file in which an entry stands, or should stand."""
        if self.entries is None or not self.entries.files.file_size:
            return self.directory
        size = self.entries.files.file_size
        position = number * self.entries.dtype.itemsize
        return f"{self.directory}/{offset_name(position - position % size)}"

    def position_of(self, number: int) -> int:
        """The byte of an entry in its file."""
        assert self.entries is not None
        return number * self.entries.dtype.itemsize % max(1, self.entries.files.file_size)

    def is_missing(self, queue_offset: int, physical_offset: int) -> None:
        """A record has no entry here."""
        if self.missing and self.missing[-1].last + 1 == queue_offset:
            self.missing[-1].last = queue_offset
        else:
            self.missing.append(_MissingRun(queue_offset, queue_offset, physical_offset))


class QueueCheck:
    """Compares claims with entries while the log goes by, then judges what is left."""

    def __init__(
        self, store: StoreFiles, numbers: QueueNumbers, reader: LogReader, recovery: RecoveryView, findings: Findings
    ) -> None:
        self._store = store
        self._numbers = numbers
        self._reader = reader
        self._recovery = recovery
        self._findings = findings
        self._waiting: list[Claims] = []
        self._queues: dict[QueueName, _Queue] = {}
        self._left: Counter[QueueName] = Counter()  # entries that a recovery of RocketMQ left
        self.orphaned_offsets: set[int] = set()  # where entries point that no record claims, from the log's end on
        for name in [*store.queues, *store.batch_queues]:
            self._queue(name)

    def add(self, claims: Claims) -> None:
        """Take the claims of a chunk of the log; with many queues it pays to look for many entries at once."""
        self._waiting.append(claims)
        if sum(len(waiting) for waiting in self._waiting) >= _TOGETHER:
            self._compare_waiting()

    def _compare_waiting(self) -> None:
        claims, self._waiting = np.concatenate([np.empty(0, CLAIM_DTYPE), *self._waiting]), []
        order = np.argsort(claims["queue"], kind="stable")
        numbers = claims["queue"][order]
        edges = np.flatnonzero(np.diff(numbers)) + 1
        for rows in np.split(order, edges) if len(order) else []:
            queue = self._queue(self._numbers.queue_names[int(claims["queue"][rows[0]])])
            if isinstance(queue.entries, BatchQueue):
                self._compare_batch(queue, claims, rows)
                continue
            offsets = claims["queue_offset"][rows]
            for run in np.split(rows, np.flatnonzero(np.diff(offsets) != 1) + 1):
                self._compare(queue, claims, run)

    def finish(self, extent: LogExtent, listed_topics: set[str] | None) -> None:
        """Judge the entries that no record claimed, and the records that have no entry."""
        self._compare_waiting()
        behind: list[_MissingRun] = []
        expired: list[int] = []
        for queue in self._queues.values():
            if queue.entries is not None:
                expired.append(self._judge_unclaimed(queue, queue.entries, extent))
            behind += self._judge_missing(queue, listed_topics)
        if any(expired):
            what = f"{_pointing(sum(expired), sum(map(bool, expired)))} below the start of the log "
            what += f"({extent.start}): their records were deleted"
            self._findings.add(FindingKind.ENTRY_EXPIRED, Severity.NOTE, QUEUES, what)
        if self._left:
            what = f"{_pointing(sum(self._left.values()), len(self._left))} behind the end of the log "
            what += f"({extent.end}): a recovery of RocketMQ left them"
            self._findings.add(FindingKind.ENTRY_STALE, Severity.NOTE, QUEUES, what)
        if behind:
            entries = sum(run.last - run.first + 1 for run in behind)
            first = min(run.physical_offset for run in behind)
            what = counted(entries, "entry of a record", "entries of records")
            what += f" from physical offset {first} on {'is' if entries == 1 else 'are'} still to be written"
            self._findings.add(FindingKind.QUEUES_BEHIND, Severity.WARNING, QUEUES, what)

    def _queue(self, name: QueueName) -> _Queue:
        queue = self._queues.get(name)
        if queue is None:
            entries = open_queue(self._store, name)
            count = entries.written[1] - entries.written[0] if entries is not None else 0
            queue = self._queues[name] = _Queue(
                name,
                entries,
                QueueExtension(self._store.extensions.get(name)),
                f"{BATCH_QUEUES if isinstance(entries, BatchQueue) else QUEUES}/{name}",
                np.zeros(count, dtype=np.bool_),
                np.zeros(count, dtype=np.bool_),
            )
        return queue

    def _compare(self, queue: _Queue, claims: Claims, rows: Int64s) -> None:
        """One run of claims with consecutive queue offsets."""
        first = int(claims["queue_offset"][rows[0]])
        found = _NO_ENTRIES
        if queue.entries is not None and first >= queue.entries.first_number:
            found = queue.entries.read(first, min(len(rows), queue.entries.written[1] - first))
        for row in rows[len(found) :]:
            queue.is_missing(int(claims["queue_offset"][row]), int(claims["physical_offset"][row]))
        if queue.entries is None or not len(found):
            return
        rows = rows[: len(found)]
        same = (
            (found["physical_offset"] == claims["physical_offset"][rows])
            & (found["size"] == claims["size"][rows])
            & (found["tags_code"] == claims["tags_code"][rows])
        )
        at = first - queue.entries.first_number
        for i in np.flatnonzero(~same):
            same[i] = self._explain(queue, first + int(i), found[i], claims, int(rows[i]))
        queue.marked[at : at + len(found)] |= same
        queue.handled[at : at + len(found)] = True

    def _explain(self, queue: _Queue, number: int, entry: Entries, claims: Claims, row: int) -> bool:
        """Say what is wrong with an entry; true when it is right after all."""
        physical_offset, size, tags_code = (int(entry[name]) for name in ("physical_offset", "size", "tags_code"))
        claimed = int(claims["physical_offset"][row])
        if physical_offset == size == tags_code == 0:
            queue.is_missing(number, claimed)
            return False
        expected_code = int(claims["tags_code"][row])
        here = f"entry {number} of {queue.name}"
        if physical_offset != claimed:
            head = self._reader.head_at(physical_offset)
            owner = (head.topic.decode("utf-8", "replace"), head.queue_id, head.queue_offset) if head else None
            if owner == (*queue.name, number) and physical_offset > claimed:
                what = f"record at {claimed} belongs to an earlier topic of this name: {here} is a newer record's"
                self._add(queue, number, FindingKind.RECORD_SUPERSEDED, Severity.WARNING, what)
                return True
            what = f"{here} points to physical offset {physical_offset}; its record is at {claimed}"
        elif size != int(claims["size"][row]):
            what = f"{here} says size {size}; the record at {claimed} has {int(claims['size'][row])}"
        elif is_ext_address(tags_code) and queue.name in self._store.extensions:
            unit = queue.extension.unit(tags_code)
            if unit is not None and unit.tags_code == expected_code:
                return True
            held = "no unit" if unit is None else f"tags code {unit.tags_code}"
            what = f"{here} points to an extension unit that is not its own: {held} there instead of {expected_code}"
            self._add(queue, number, FindingKind.EXT_UNIT_MISSING, Severity.ERROR, what)
            return False
        else:
            what = f"{here} has tags code {tags_code}; the record at {claimed} gives {expected_code}"
        self._add(queue, number, FindingKind.ENTRY_WRONG, Severity.ERROR, what)
        return False

    def _compare_batch(self, queue: _Queue, claims: Claims, rows: Int64s) -> None:
        assert isinstance(queue.entries, BatchQueue)
        for row in rows:
            base, claimed = int(claims["queue_offset"][row]), int(claims["physical_offset"][row])
            number = queue.entries.number_of_base.get(base)
            found = queue.entries.read(number, 1) if number is not None else _NO_ENTRIES
            if number is None or not len(found):
                queue.is_missing(base, claimed)
                continue
            expected = [claimed, int(claims["size"][row]), int(claims["tags_code"][row])]
            expected += [int(claims["store_timestamp"][row]), base, int(claims["messages"][row])]
            actual = [int(value) for value in found[0].item()[: len(expected)]]
            right = actual == expected
            if not right:
                what = f"batch entry {number} of {queue.name} is {actual}; its record at {claimed} gives {expected}"
                self._add(queue, number, FindingKind.ENTRY_WRONG, Severity.ERROR, what)
            at = number - queue.entries.first_number
            queue.marked[at] |= right
            queue.handled[at] = True

    def _judge_unclaimed(self, queue: _Queue, entries: SimpleQueue, extent: LogExtent) -> int:
        """Report entries that no record claims; returns how many belong to records that were deleted in order."""
        first, end = entries.written
        marked = np.flatnonzero(queue.marked)
        of_marked = (first + int(marked[0]), first + int(marked[-1])) if len(marked) else (end, -1)
        expired = 0
        for number in range(first, end, _PIECE):
            piece = entries.read(number, min(_PIECE, end - number))
            handled = queue.handled[number - first : number - first + len(piece)]
            for i in np.flatnonzero(~handled):
                expired += self._judge_entry(queue, number + int(i), piece[i], of_marked, extent)
        return expired

    def _judge_entry(
        self, queue: _Queue, number: int, entry: Entries, of_marked: tuple[int, int], extent: LogExtent
    ) -> bool:
        """Report an entry that no record claims; true when its record has merely been deleted in order."""
        first_marked, last_marked = of_marked
        physical_offset, size = int(entry["physical_offset"]), int(entry["size"])
        here = f"entry {number} of {queue.name}"
        if size == PREFILL_SIZE and number < first_marked:
            return False  # RocketMQ: fills the queue up to its first real entry
        if size == PREFILL_SIZE and not physical_offset:
            what = f"{here} stands for a record that was damaged when the queue was built"
            self._add(queue, number, FindingKind.ENTRY_FILLED, Severity.NOTE, what)
            return False
        if 0 <= physical_offset < extent.start and size > 0 and number < first_marked:
            return True
        if extent.is_damaged(physical_offset):
            return False
        if not is_used(entry):
            self._add(queue, number, FindingKind.ENTRY_WRONG, Severity.ERROR, f"{here} is empty, though entries follow")
        elif extent.has_leftovers and number > last_marked:
            self._judge_left(queue, number, physical_offset, extent)
        elif physical_offset >= extent.end:
            self.orphaned_offsets.add(physical_offset)
            lost = extent.tail_lost and not self._recovery.unclean
            severity = Severity.ERROR if lost else Severity.WARNING
            kind = FindingKind.ENTRY_ORPHAN if lost else FindingKind.ENTRY_STALE
            what = f"{here} points to physical offset {physical_offset}; the log ends at {extent.end}"
            self._add(queue, number, kind, severity, what)
        else:
            what = f"{here} points to physical offset {physical_offset}, where {self._stands_at(physical_offset)}"
            self._add(queue, number, FindingKind.ENTRY_ORPHAN, Severity.ERROR, what)
        return False

    def _judge_left(self, queue: _Queue, number: int, physical_offset: int, extent: LogExtent) -> None:
        """An entry behind the last one of its queue, in a store that RocketMQ recovered and closed."""
        if physical_offset >= extent.end:
            self._left[queue.name] += 1
            return
        what = f"entry {number} of {queue.name} points to physical offset {physical_offset}, where "
        what += (
            f"{self._stands_at(physical_offset)}: a recovery of RocketMQ left it, and messages since wrote over its "
        )
        what += "record; RocketMQ's next start takes it for one of this queue, ours drops it"
        self._add(queue, number, FindingKind.ENTRY_STALE, Severity.WARNING, what)

    def _stands_at(self, physical_offset: int) -> str:
        head = self._reader.head_at(physical_offset)
        if head is None:
            return "no record begins"
        return f"record {head.queue_offset} of {head.topic.decode('utf-8', 'replace')}/{head.queue_id} stands"

    def _judge_missing(self, queue: _Queue, listed_topics: set[str] | None) -> list[_MissingRun]:
        """Report records without an entry; return those that the next start will dispatch."""
        behind = []
        marked = np.flatnonzero(queue.marked)
        first_number = queue.entries.first_number if queue.entries is not None else 0
        last_marked = first_number + int(marked[-1]) if len(marked) else -1
        oldest_claimed = self._oldest_claimed(queue, marked)
        for run in queue.missing:
            count = run.last - run.first + 1
            numbers = f"{run.first}" if count == 1 else f"{run.first} to {run.last}"
            what = (
                f"no entry for {count} record{'s' * (count > 1)} of {queue.name} (queue offset {numbers}), "
                f"the first at physical offset {run.physical_offset}"
            )
            kind, severity = FindingKind.ENTRY_MISSING, Severity.ERROR
            if queue.entries is None and not _belongs(queue.name.topic, listed_topics):
                kind, severity = FindingKind.TOPIC_DELETED, Severity.NOTE
            elif run.physical_offset < oldest_claimed and run.first > first_number:
                kind, severity = FindingKind.RECORD_SUPERSEDED, Severity.WARNING
            elif run.first > last_marked:
                severity = self._recovery.severity_of_missing(run.physical_offset)
            if severity is Severity.WARNING and kind is FindingKind.ENTRY_MISSING:
                behind.append(run)
            else:
                self._findings.add(kind, severity, queue.file_of(run.first), what)
        return behind

    def _oldest_claimed(self, queue: _Queue, marked: NDArray[np.int64]) -> int:
        if queue.entries is None or not len(marked):
            return -1
        entry = queue.entries.read(queue.entries.first_number + int(marked[0]), 1)
        return int(entry[0]["physical_offset"]) if len(entry) else -1

    def _add(self, queue: _Queue, number: int, kind: FindingKind, severity: Severity, what: str) -> None:
        self._findings.add(kind, severity, queue.file_of(number), what, position=queue.position_of(number))


_NO_ENTRIES = np.empty(0, dtype=SimpleQueue.dtype)


def _belongs(topic: str, listed_topics: set[str] | None) -> bool:
    """Whether a topic should have queues: it is listed, or never listed at all."""
    if listed_topics is None or topic.startswith(LMQ_PREFIX) or is_system_topic(topic):
        return True
    return topic in listed_topics


def _pointing(entries: int, queues: int) -> str:
    """`3 entries of 1 queue point`."""
    return f"{counted(entries, 'entry', 'entries')} of {counted(queues, 'queue')} point{'s' if entries == 1 else ''}"
