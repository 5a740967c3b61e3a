"""Log ↔ index files: chains, headers, and every key of every record.

An index file can be replayed: the hashes in their order decide every slot and every previous-entry number, so
comparing with the replay finds wrong pointers, loops and ranges at once. While the log goes by, the keys of its
records are compared, as a multiset, with the entries that point into the same range of the log.
"""

import time
from collections import OrderedDict
from dataclasses import dataclass, field
from pathlib import Path
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from skyrocket.format import index_layout as layout
from skyrocket.format.dispatch_claims import IndexKeys
from skyrocket.format.dtypes import Int64s
from skyrocket.format.store_names import INDEX
from skyrocket.inspector.findings import REBUILT, FindingKind, Findings, Severity
from skyrocket.inspector.log_check import LogExtent
from skyrocket.inspector.log_chunks import LogChunk
from skyrocket.inspector.recovery_view import RecoveryView
from skyrocket.model.words import counted
from skyrocket.offline.index_files import IndexContent, IndexShape, expected_chains, read_index_file, shapes_of
from skyrocket.offline.log_walk import LogReader
from skyrocket.offline.store_files import StoreFiles, lock_holder

_FILES_AT_HAND = 3
_HASH_BITS = 31
_READS_AGAIN = 5
_PAUSE_SECONDS = 0.05


@dataclass(frozen=True, slots=True)
class _FileRange:
    """What stays in memory of an index file between two looks at it."""

    path: Path
    shape: IndexShape
    header: layout.IndexHeader
    lowest: int
    highest: int
    count: int
    replaced: bool  # recovery deletes this file and builds it anew


@dataclass(slots=True)
class _Missing:
    """Keys of records that are in no index file."""

    keys: int = 0
    first: int = -1
    last: int = -1

    def add(self, physical_offsets: Int64s) -> None:
        if len(physical_offsets):
            self.first = int(physical_offsets.min()) if self.first < 0 else self.first
            self.last = max(self.last, int(physical_offsets.max()))
            self.keys += len(physical_offsets)


@dataclass(slots=True)
class _Offsets:
    """Entries of one file in the order of their physical offset."""

    file: IndexContent
    sorted_offsets: Int64s
    order: Int64s = field(default_factory=lambda: np.empty(0, dtype=np.int64))

    def between(self, low: int, high: int, damaged: list[int]) -> Int64s:
        """Places of the entries that point into a range of the log, less those of records known to be damaged."""
        first, last = np.searchsorted(self.sorted_offsets, [low, high])
        places = self.order[first:last]
        return places[~np.isin(self.sorted_offsets[first:last], damaged)] if damaged else places


class _KnownKeys(NamedTuple):
    """Offset and hash of every key in a chunk of the log, sorted, and when its record was stored."""

    pairs: Int64s
    store_timestamps: Int64s


class IndexCheck:
    """Checks each file for itself, then all of them against the log."""

    def __init__(
        self,
        store: StoreFiles,
        reader: LogReader,
        recovery: RecoveryView,
        findings: Findings,
        configured: IndexShape,
    ) -> None:
        self._store = store
        self._reader = reader
        self._recovery = recovery
        self._is_held = lock_holder(store.lock) is not None
        self._findings = findings
        self._at_hand: OrderedDict[Path, _Offsets] = OrderedDict()
        self._files: list[_FileRange] = []
        self._misfits: list[tuple[_FileRange, Int64s]] = []  # places of entries that no key explains
        self._absent: list[Int64s] = []  # offsets of records whose keys are in no file
        self._last_found = -1  # offset of the last record of which an entry was found
        self._missing = _Missing()
        self._behind = _Missing()
        self._passed_over = _Missing()
        self._tags_indexed = False
        self._missing_tags = _Missing()
        shapes = shapes_of(store.index_files, configured)
        usual = next((shape for shape, _ in shapes.values() if shape is not None), configured)
        self._rebuilt = recovery.rebuilt_index_files({path: shape or usual for path, (shape, _) in shapes.items()})
        for path, (shape, inferred) in shapes.items():
            self._check_file(path, shape, inferred)
        self._files.sort(key=lambda file: file.path.name)
        self._check_seeds()

    @property
    def highest_offset(self) -> int:
        """The last physical offset that some kept entry points to; -1 without entries."""
        return max((file.highest for file in self._files if not file.replaced), default=-1)

    def add(self, low: int, high: int, chunk: LogChunk) -> None:
        """Compare the keys of the records in [low, high) with the entries that point there."""
        keys = chunk.keys
        if not self._files:
            return
        found = [(file, self._offsets_of(file)) for file in self._files if file.lowest < high and file.highest >= low]
        damaged = [bad.physical_offset for bad in chunk.bad_records if bad.damaged]
        places = [(file, offsets, offsets.between(low, high, damaged)) for file, offsets in found]
        present = np.sort(_joined([_pair(offsets.file.entries[at], low) for _, offsets, at in places]))
        expected = (keys.table["physical_offset"] - low) << _HASH_BITS | keys.table["hash"]
        order = np.argsort(expected)
        known = _KnownKeys(expected[order], keys.table["store_timestamp"][order])
        for file, offsets, at in places:
            self._compare_entries(file, offsets.file, at, low, known)
        if not np.array_equal(known.pairs, present):
            self._report_missing(keys, ~_is_member(expected, present))
            self._report_twice(known.pairs, present, low)
        elif keys.are_tags.any():
            self._report_missing_tags(keys, np.zeros(len(expected), dtype=np.bool_))

    def finish(self, extent: LogExtent) -> None:
        """Judge what lies outside the log, and what was missing."""
        left_behind = self._last_found if extent.has_leftovers else extent.end
        for file, misfits in self._misfits:
            self._judge_misfits(file, misfits, left_behind)
        for offsets in self._absent:
            self._missing.add(offsets[offsets <= left_behind])
            self._passed_over.add(offsets[offsets > left_behind])
        for file in self._files:
            self._judge_outside(file, extent)
            self._check_header_times(file)
        if not self._files:
            if extent.records:
                what = "there is no index file: keys are not indexed, or the files were lost"
                self._findings.add(FindingKind.INDEX_ABSENT, Severity.WARNING, INDEX, what)
            return
        self._report("", self._missing, FindingKind.INDEX_KEY_MISSING, Severity.ERROR)
        self._report("", self._behind, FindingKind.INDEX_BEHIND, Severity.WARNING)
        # RocketMQ indexes nothing below the last entry, also when its recovery left that behind the end of the log.
        self._report("", self._passed_over, FindingKind.INDEX_BEHIND, Severity.WARNING)

    def _report(self, which: str, missing: _Missing, kind: FindingKind, severity: Severity) -> None:
        if missing.keys:
            where = f"from physical offset {missing.first} to {missing.last}"
            keys = counted(missing.keys, f"{which}key of a record", f"{which}keys of records")
            what = f"{keys} {where} {'is' if missing.keys == 1 else 'are'} in no index file"
            self._findings.add(kind, severity, self._file_for(missing.first), what)

    def _file_for(self, physical_offset: int) -> str:
        """The index file in which a record of this offset should be found."""
        before = [file for file in self._files if file.lowest <= physical_offset]
        return self._store.name_of((before[-1] if before else self._files[0]).path)

    def _check_file(self, path: Path, shape: IndexShape | None, inferred: bool) -> None:
        if shape is None:
            what = f"no number of slots fits this file of {path.stat().st_size} bytes"
            self._damaged(path, FindingKind.INDEX_SHAPE, what)
            return
        if inferred and not self._files:
            what = (
                f"slots and entries inferred from the file: maxHashSlotNum={shape.slots}, maxIndexNum={shape.entries}"
            )
            self._findings.add(FindingKind.INDEX_SHAPE, Severity.NOTE, INDEX, what, remedy="Nothing to do.")
        file = self._read(path, shape)
        self._check_chains(file)
        self._check_header(file)
        offsets = file.physical_offsets
        if (np.diff(offsets) < 0).any():
            at = int(np.argmax(np.diff(offsets) < 0)) + 2
            what = f"entry {at} points to {offsets[at - 1]}, before its predecessor's {offsets[at - 2]}"
            self._wrong(file, at, FindingKind.INDEX_ENTRY_WRONG, what)
        if len(offsets):
            lowest, highest = int(offsets.min()), int(offsets.max())
            self._files.append(
                _FileRange(path, shape, file.header, lowest, highest, len(offsets), path in self._rebuilt)
            )

    def _read(self, path: Path, shape: IndexShape) -> IndexContent:
        """The file; while a broker writes it, read again until what was read is of one moment."""
        file = read_index_file(path, shape)
        for _ in range(_READS_AGAIN if self._is_held else 0):
            if _is_of_one_moment(file):
                break
            time.sleep(_PAUSE_SECONDS)
            file = read_index_file(path, shape)
        return file

    def _check_chains(self, file: IndexContent) -> None:
        hashes = file.hashes
        for at in np.flatnonzero(hashes < 0):
            self._wrong(file, int(at) + 1, FindingKind.INDEX_ENTRY_WRONG, f"entry {at + 1} has a negative hash")
        expected = expected_chains(np.abs(hashes), file.shape.slots)
        in_flight = len(file.entries) + 1 if self._recovery.unclean else -1
        for slot in np.flatnonzero(file.slots != expected.slots):
            if int(file.slots[slot]) == in_flight:
                continue  # killed between writing the slot and counting the entry
            what = f"slot {slot} names entry {file.slots[slot]}; the newest of its chain is {expected.slots[slot]}"
            self._damaged(file.path, FindingKind.INDEX_CHAIN, what, layout.slot_position(int(slot)))
        previous = file.entries["previous"].astype(np.int64)
        for at in np.flatnonzero(previous != expected.previous):
            what = f"entry {at + 1} is chained to entry {previous[at]} instead of {expected.previous[at]}"
            self._wrong(file, int(at) + 1, FindingKind.INDEX_CHAIN, what)
        if file.header.used_slots != expected.used_slots:
            what = f"the header counts {file.header.used_slots} used slots, there are {expected.used_slots}"
            self._header(file.path, what)

    def _check_header(self, file: IndexContent) -> None:
        path, header, offsets = file.path, file.header, file.physical_offsets
        if header.next_number != len(offsets) + 1:
            there = f"{'is' if len(offsets) == 1 else 'are'} {counted(len(offsets), 'entry', 'entries')}"
            what = f"the header names {header.next_number} as the next entry, there {there}"
            self._header(path, what)
        if not len(offsets):
            return
        if header.begin_physical_offset != offsets[0]:
            self._header(path, f"begin offset {header.begin_physical_offset}; the first entry has {offsets[0]}")
        if header.end_physical_offset != offsets[-1]:
            self._header(path, f"end offset {header.end_physical_offset}; the last entry has {offsets[-1]}")

    def _check_header_times(self, file: _FileRange) -> None:
        times = {
            "begin": (file.header.begin_timestamp, file.header.begin_physical_offset),
            "end": (file.header.end_timestamp, file.header.end_physical_offset),
        }
        for which, (stored, physical_offset) in times.items():
            actual = self._reader.store_timestamp_at(physical_offset)
            if actual is not None and actual != stored:
                what = f"{which} time {stored}; the record at {physical_offset} was stored at {actual}"
                self._header(file.path, what)
        if file.header.begin_timestamp > file.header.end_timestamp:
            self._header(
                file.path, f"begin time {file.header.begin_timestamp} is after end time {file.header.end_timestamp}"
            )

    def _check_seeds(self) -> None:
        """Files follow each other in the log."""
        for left, right in zip(self._files, self._files[1:], strict=False):
            if left.header.end_physical_offset > right.header.begin_physical_offset >= 0 and not right.replaced:
                what = f"begins at physical offset {right.lowest}, before the end of {left.path.name} ({left.highest})"
                self._findings.add(FindingKind.INDEX_HEADER, Severity.WARNING, self._store.name_of(right.path), what)

    def _offsets_of(self, file: _FileRange) -> _Offsets:
        found = self._at_hand.get(file.path)
        if found is None:
            opened = read_index_file(file.path, file.shape)
            order = np.argsort(opened.physical_offsets, kind="stable")
            found = self._at_hand[file.path] = _Offsets(opened, opened.physical_offsets[order], order)
            if len(self._at_hand) > _FILES_AT_HAND:
                self._at_hand.popitem(last=False)
        self._at_hand.move_to_end(file.path)
        return found

    def _report_missing(self, keys: IndexKeys, absent: NDArray[np.bool_]) -> None:
        plain = absent & ~keys.are_tags
        is_all_rebuilt = len(self._rebuilt) == len(self._store.index_files)
        repaired_from = 0 if is_all_rebuilt else max(self._recovery.redispatch_from, self._replaced_from)
        repaired = (keys.table["physical_offset"] >= repaired_from) & self._recovery.unclean
        self._absent.append(keys.table["physical_offset"][plain & ~repaired])
        self._behind.add(keys.table["physical_offset"][plain & repaired])
        self._report_missing_tags(keys, absent & ~repaired)

    @property
    def _replaced_from(self) -> int:
        """From where on recovery indexes again: behind the last file that it keeps."""
        return max((file.highest for file in self._files if not file.replaced), default=0)

    def _report_missing_tags(self, keys: IndexKeys, absent: NDArray[np.bool_]) -> None:
        """Tags are indexed by 5.4.0 only: an absent entry counts between two that are there."""
        rows = np.flatnonzero(keys.are_tags)
        present = rows[~absent[rows]]
        if not len(present):
            if self._tags_indexed:
                self._missing_tags.add(keys.table["physical_offset"][rows])
            return
        begin = rows[0] if self._tags_indexed else present[0]
        self._missing.add(keys.table["physical_offset"][rows[(rows >= begin) & (rows < present[-1]) & absent[rows]]])
        if self._missing_tags.keys:
            self._missing.add(np.array([self._missing_tags.first] * self._missing_tags.keys, dtype=np.int64))
        self._missing_tags = _Missing()
        self._missing_tags.add(keys.table["physical_offset"][rows[rows > present[-1]]])
        self._tags_indexed = True

    def _compare_entries(self, range_: _FileRange, file: IndexContent, at: Int64s, low: int, known: _KnownKeys) -> None:
        entries = file.entries[at]
        pairs = _pair(entries, low)
        fits = _is_member(pairs, known.pairs)
        if fits.any():
            self._last_found = max(self._last_found, int(entries["physical_offset"][fits].max()))
        if not fits.all():
            self._misfits.append((range_, at[~fits]))
        stored = known.store_timestamps[np.searchsorted(known.pairs, pairs[fits])]
        seconds = np.clip((stored - self._begin_time(range_, file)) // 1000, 0, layout.MAX_SECONDS)
        wrong = entries["seconds"][fits] != seconds
        wrong &= at[fits] != 0  # RocketMQ: the first entry counts from the end of the file before
        for place, right in zip(at[fits][wrong], seconds[wrong], strict=True):
            what = f"entry {place + 1} says {file.entries[place]['seconds']} s after the file's begin; right is {right}"
            self._wrong(file, int(place) + 1, FindingKind.INDEX_ENTRY_WRONG, what)

    def _judge_misfits(self, file: _FileRange, places: Int64s, left_behind: int) -> None:
        """Report entries that no key explains; those behind the last right one a recovery of RocketMQ left."""
        content = self._offsets_of(file).file
        left = 0
        for place in places.tolist():
            entry = content.entries[place]
            offset = int(entry["physical_offset"])
            if offset > left_behind:
                left += 1
                continue
            head = self._reader.head_at(offset)
            what = "no record begins" if head is None else f"the record has no key with hash {int(entry['key_hash'])}"
            what = f"entry {place + 1} points to physical offset {offset}, where {what}"
            self._wrong(content, place + 1, FindingKind.INDEX_ENTRY_WRONG, what)
        if left:
            what = counted(left, "entry of a record", "entries of records")
            what += " that a recovery of RocketMQ cut off, written over since"
            self._findings.add(FindingKind.INDEX_ENTRY_STALE, Severity.NOTE, self._store.name_of(file.path), what)

    def _begin_time(self, range_: _FileRange, file: IndexContent) -> int:
        """The begin time as the first record says it: a damaged header is reported once, not for each entry."""
        first = self._reader.store_timestamp_at(int(file.physical_offsets[0]))
        return first if first is not None else range_.header.begin_timestamp

    def _report_twice(self, expected: Int64s, present: Int64s, low: int) -> None:
        values, counts = np.unique(present, return_counts=True)
        wanted, wanted_counts = np.unique(expected, return_counts=True)
        both = np.isin(values, wanted)
        extra = counts[both] > wanted_counts[np.isin(wanted, values)]
        offsets = np.unique((values[both][extra] >> _HASH_BITS) + low)
        for offset in offsets.tolist():
            what = f"keys of the record at physical offset {offset} are indexed more than once"
            self._findings.add(FindingKind.INDEX_KEY_TWICE, Severity.NOTE, self._file_for(offset), what)

    def _judge_outside(self, file: _FileRange, extent: LogExtent) -> None:
        if file.lowest >= extent.start and file.highest < extent.end:
            return
        name = self._store.name_of(file.path)
        offsets = self._offsets_of(file).sorted_offsets
        expired = int(np.searchsorted(offsets, extent.start))
        negative = int(np.searchsorted(offsets, 0))
        beyond = len(offsets) - int(np.searchsorted(offsets, extent.end))
        if negative:
            self._damaged(file.path, FindingKind.INDEX_ENTRY_WRONG, f"{_pointing(negative)} to negative offsets")
        if expired > negative:
            what = f"{_pointing(expired - negative)} below the start of the log ({extent.start}): deleted records"
            self._findings.add(FindingKind.INDEX_ENTRY_EXPIRED, Severity.NOTE, name, what)
        if beyond:
            lost = extent.tail_lost and not self._recovery.unclean
            kind = FindingKind.INDEX_ENTRY_WRONG if lost else FindingKind.INDEX_ENTRY_STALE
            severity = Severity.ERROR if lost else Severity.WARNING
            what = f"{_pointing(beyond)} behind the end of the log ({extent.end})"
            if extent.has_leftovers:
                severity, what = Severity.NOTE, f"{what}: a recovery of RocketMQ left them"
            self._findings.add(kind, severity, name, what)

    def _wrong(self, file: IndexContent, number: int, kind: FindingKind, what: str) -> None:
        self._damaged(file.path, kind, what, layout.entry_position(file.shape.slots, number))

    def _header(self, path: Path, what: str) -> None:
        if self._is_held:  # it may have been written since
            self._findings.add(FindingKind.INDEX_HEADER, Severity.WARNING, self._store.name_of(path), what, position=0)
        else:
            self._damaged(path, FindingKind.INDEX_HEADER, what, 0)

    def _damaged(self, path: Path, kind: FindingKind, what: str, position: int | None = None) -> None:
        """Damage in a file; what was not complete when the last process died need not be whole.

        A process that still runs may stop in order, and then nothing is rebuilt.
        """
        is_rebuilt = path in self._rebuilt and not self._is_held
        self._findings.add(
            kind,
            Severity.WARNING if is_rebuilt else Severity.ERROR,
            self._store.name_of(path),
            what,
            position=position,
            remedy=REBUILT if is_rebuilt else None,
        )


def _is_of_one_moment(file: IndexContent) -> bool:
    """Whether header, slots and entries agree with each other."""
    if file.header.next_number != len(file.entries) + 1 or (file.hashes < 0).any():
        return False
    expected = expected_chains(file.hashes, file.shape.slots)
    return bool(
        file.header.used_slots == expected.used_slots
        and np.array_equal(file.slots, expected.slots)
        and np.array_equal(file.entries["previous"], expected.previous)
        and (not len(file.entries) or file.header.end_physical_offset == file.physical_offsets[-1])
    )


def _pair(entries: NDArray[np.void], low: int) -> Int64s:
    """Offset and hash of an entry in one number: offsets of one chunk differ by less than 2^31."""
    relative = entries["physical_offset"].astype(np.int64) - low
    return relative << _HASH_BITS | entries["key_hash"].astype(np.int64)


def _is_member(values: Int64s, pool: Int64s) -> NDArray[np.bool_]:
    """Which values occur in a sorted pool."""
    if not len(pool):
        return np.zeros(len(values), dtype=np.bool_)
    at = np.minimum(np.searchsorted(pool, values), len(pool) - 1)
    member: NDArray[np.bool_] = pool[at] == values
    return member


def _joined(parts: list[Int64s]) -> Int64s:
    return np.concatenate(parts) if parts else np.empty(0, dtype=np.int64)


def _pointing(entries: int) -> str:
    return counted(entries, "entry points", "entries point")
