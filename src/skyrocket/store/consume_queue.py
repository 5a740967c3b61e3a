"""A ConsumeQueue: queue offset → physical offset, size and tags code, 20 bytes each, numbered without gaps."""

import logging

import numpy as np
from numpy.typing import NDArray

from skyrocket.format.queue_entry import ENTRY, ENTRY_DTYPE, ENTRY_SIZE, PREFILL_ENTRY, PREFILL_SIZE, QueueEntry
from skyrocket.format.record import SMALLEST_RECORD
from skyrocket.store.numbering import Doubts, agreed_numbers, is_possible, likely_numbers
from skyrocket.store.topic_queue import TopicQueue

log = logging.getLogger(__name__)

_SCAN_BYTES = 3276 * ENTRY_SIZE  # about 64 KiB
_RECOVERED_FILES = 3
_MENDED_SHOWN = 10
_FEW_MISSING = 1 << 16  # so many entries are filled in without asking whether there was room for their records


class ConsumeQueue(TopicQueue):
    """The entries of one queue of an ordinary topic."""

    __slots__ = ()
    simple = True

    # -- building --------------------------------------------------------------------------------------

    def append(
        self, physical_offset: int, size: int, tags_code: int, queue_offset: int, timestamp: int, messages: int
    ) -> None:
        entry = ENTRY.pack(physical_offset, size, tags_code)
        if queue_offset < self.max_offset and queue_offset * ENTRY_SIZE >= self.entries.first_byte:
            stored = self.entries.read(queue_offset * ENTRY_SIZE, ENTRY_SIZE)
            if stored == entry or _means_the_same(stored, entry):
                self.confirmed_offset = max(self.confirmed_offset, queue_offset + 1)
                return
        follows = queue_offset == self.max_offset and physical_offset >= self.max_physical_offset
        if self.doubts is not None and not follows:
            self._doubt(self.doubts, entry, queue_offset)
        elif 0 <= queue_offset <= self.max_offset + _FEW_MISSING or is_possible(queue_offset, physical_offset):
            self._place(entry, queue_offset)
        else:  # a slave's master is damaged; entries up to such a number would take all memory
            self._leave_out(queue_offset, physical_offset)

    def _place(self, entry: bytes, queue_offset: int) -> None:
        """Let an entry have a number: replace the one that is there, or append it."""
        if queue_offset < self.max_offset:
            self._mend(queue_offset, entry)
            return
        if queue_offset > self.max_offset:
            self._skip_to(queue_offset)
        self.entries.tail[1].extend(entry)
        self.max_offset = self.confirmed_offset = queue_offset + 1
        self.max_physical_offset = _end_of(entry)

    def _mend(self, queue_offset: int, entry: bytes) -> None:
        """Replace an entry that is not what the log says; the log is right."""
        if queue_offset * ENTRY_SIZE < self.entries.first_byte:
            self.damaged = True  # retention never deletes the entry of a record that is still there: a file was lost
            return
        self.confirmed_offset = max(self.confirmed_offset, queue_offset + 1)
        self.mended += 1
        if self.mended <= _MENDED_SHOWN:
            log.warning("queue entry mended topic=%s queue=%d offset=%d", self.topic, self.queue_id, queue_offset)
        self.entries.overwrite(queue_offset * ENTRY_SIZE, entry)

    # -- records whose number does not fit -----------------------------------------------------------------

    def _doubt(self, doubts: Doubts, entry: bytes, queue_offset: int) -> None:
        """Recovery: believe the queue, the neighbours, or the next records, before one number that does not fit."""
        physical_offset, size, _ = ENTRY.unpack(entry)
        place = self._first_at(physical_offset, self._first_number) if self.max_offset else None
        if place is not None and place < self.max_offset and self.entry_place(place) == (physical_offset, size):
            self._overrule(queue_offset, place, physical_offset)
            self.confirmed_offset = max(self.confirmed_offset, place + 1)
            return
        if self._is_between_neighbours(queue_offset, physical_offset) or self._means_nothing(doubts, queue_offset):
            self._place(entry, queue_offset)
            return
        if place == self._first_number < self.max_offset and queue_offset >= place and self.entries.starts:
            return  # older than all entries: of a topic that was deleted and made again
        if not doubts.entries:
            doubts.expected = None if self._may_have_lost_entries(queue_offset, physical_offset) else place
        doubts.add(entry, queue_offset)
        numbers = agreed_numbers(doubts.expected, doubts.claimed, physical_offset)
        if numbers is not None:
            self._settle(doubts, numbers)

    def settle_doubts(self) -> None:
        if self.doubts is None or not self.doubts.entries:
            return
        doubts = self.doubts
        physical_offset = ENTRY.unpack(doubts.entries[-1])[0]
        if doubts.expected is not None and self._is_taken(doubts.expected):
            for claimed in doubts.claimed:
                self._leave_out(claimed, physical_offset)
            doubts.take()
            return
        self._settle(doubts, likely_numbers(doubts.expected, doubts.claimed, physical_offset))

    def _leave_out(self, claimed: int, physical_offset: int) -> None:
        log.error(
            "a record is in no queue: its queue offset cannot be right topic=%s queue=%d claimed=%d near=%d",
            self.topic,
            self.queue_id,
            claimed,
            physical_offset,
        )

    def _settle(self, doubts: Doubts, numbers: list[int]) -> None:
        claimed = list(doubts.claimed)
        for entry, number, claim in zip(doubts.take(), numbers, claimed, strict=True):
            if number != claim:
                self._overrule(claim, number, ENTRY.unpack(entry)[0])
            if number == 0 and self.max_offset and not self.entries.first_byte:
                self.min_offset = 0
                self._cut(0)  # the topic was made again: what came before is not its own
                doubts.made_again_at = ENTRY.unpack(entry)[0]
            self._place(entry, number)

    def _overrule(self, claimed: int, number: int, physical_offset: int) -> None:
        log.error(
            "the queue offset in a record is damaged, going by its neighbours topic=%s queue=%d record=%d "
            "queue_offset=%d instead_of=%d",
            self.topic,
            self.queue_id,
            physical_offset,
            number,
            claimed,
        )

    @property
    def _first_number(self) -> int:
        return max(self.min_offset, self.entries.first_byte // ENTRY_SIZE)

    def _is_between_neighbours(self, queue_offset: int, physical_offset: int) -> bool:
        """Whether a record would lie in the log between those of the entries before and after its number."""
        first = self.entries.first_byte // ENTRY_SIZE
        if not first <= queue_offset < self.max_offset or self.max_offset - first < 2:
            return False
        before = self._offset_at(queue_offset - 1) if queue_offset > first else -1
        after = self._offset_at(queue_offset + 1) if queue_offset + 1 < self.max_offset else physical_offset + 1
        return before < physical_offset < after

    def _means_nothing(self, doubts: Doubts, queue_offset: int) -> bool:
        """Whether a number has an entry that means no record of this queue: then nothing speaks against a record."""
        return self._first_number <= queue_offset < self.max_offset and not doubts.means_own(
            *self.entry_place(queue_offset)
        )

    def _may_have_lost_entries(self, queue_offset: int, physical_offset: int) -> bool:
        """Whether records between the last entry and this one can have left the log before their entries were on disk.

        Then no entry means a record that is still there, and there was room for them.
        """
        room = (physical_offset - max(self.max_physical_offset, 0)) // SMALLEST_RECORD
        return self._first_number == self.max_offset < queue_offset <= self.max_offset + room

    def _is_taken(self, queue_offset: int) -> bool:
        """Whether a number has an entry that can be right."""
        return self._first_number <= queue_offset < self.max_offset and self.ascends_at(queue_offset)

    def _skip_to(self, queue_offset: int) -> None:
        """Continue at a higher number: the records in between left the log before their entries could be built."""
        if not self.entries.starts and not self.entries.tail[1]:
            position = queue_offset * ENTRY_SIZE
            self.entries.begin_at(position - position % self.entries.file_size)
            self.min_offset = queue_offset
        self.has_gap = True
        missing = queue_offset - self.entries.end // ENTRY_SIZE
        self.entries.tail[1].extend(PREFILL_ENTRY * missing)
        self.max_offset = queue_offset

    # -- reading ---------------------------------------------------------------------------------------

    def read(self, queue_offset: int, count: int) -> bytes:
        """Up to `count` entries from an offset, packed; fewer at the end of a file or of the queue."""
        return self.entries.read(queue_offset * ENTRY_SIZE, count * ENTRY_SIZE)

    def entry(self, queue_offset: int) -> QueueEntry | None:
        """One entry; None where the queue has none."""
        if not self.min_offset <= queue_offset < self.max_offset:
            return None
        data = self.read(queue_offset, 1)
        return QueueEntry._make(ENTRY.unpack(data)) if len(data) == ENTRY_SIZE else None

    # -- recovery and retention ----------------------------------------------------------------------------

    def recover(self) -> None:
        """Find the end: entries are valid up to the first zero, or up to the first that goes back in the log."""
        files = self.entries
        first = files.starts[-_RECOVERED_FILES:][0] if files.starts else files.tail[0]
        position, previous_end = first, -1
        while position < files.files_end:
            table = self._table(position, _SCAN_BYTES)
            valid, previous_end = _valid_prefix(table, previous_end)
            position += valid * ENTRY_SIZE
            if valid < len(table) or not len(table):
                break
        if position == first and first:
            # RocketMQ: a last file without a single entry; the end is in the file before, which was full.
            self.damaged = True
        files.truncate(position)
        self._take_end(previous_end)
        self.min_offset = self._first_real_entry()
        # A file that is a copy of another one, or stands in its place, shows where two files meet.
        self.damaged |= not all(self.ascends_at(start // ENTRY_SIZE) for start in files.starts[1:])

    def _first_real_entry(self) -> int:
        """The first entry that was not pre-filled."""
        position = self.entries.first_byte
        while position < self.entries.end:
            table = self._table(position, _SCAN_BYTES)
            real = np.flatnonzero(table["size"] != PREFILL_SIZE)
            if len(real):
                return position // ENTRY_SIZE + int(real[0])
            position += len(table) * ENTRY_SIZE
        return self.entries.end // ENTRY_SIZE

    def truncate_to(self, log_end: int) -> None:
        """Drop entries of records at or behind the log's end."""
        if self.max_physical_offset > log_end:
            self._cut(self._first_at(log_end, self.min_offset))

    def first_unconfirmed(self, walked_from: int) -> int | None:
        if self.max_physical_offset <= walked_from:
            return None
        end = self.confirmed_offset if self.confirmed_offset >= 0 else self._first_at(walked_from, self.min_offset)
        # With a tail, records were appended behind them.
        return end if end < self.max_offset and not self.entries.tail[1] else None

    def entry_place(self, queue_offset: int) -> tuple[int, int]:
        physical_offset, size, _ = ENTRY.unpack(self.read(queue_offset, 1))
        return physical_offset, size

    def drop_from(self, queue_offset: int) -> None:
        log.warning("stale queue entries dropped topic=%s queue=%d from=%d", self.topic, self.queue_id, queue_offset)
        self._cut(queue_offset)

    def _first_at(self, physical_offset: int, low: int) -> int:
        """The first entry, from a number on, whose record begins at or behind a place in the log."""
        high = self.max_offset
        while low < high:
            middle = (low + high) // 2
            if self._offset_at(middle) < physical_offset:
                low = middle + 1
            else:
                high = middle
        return low

    def _cut(self, end: int) -> None:
        self.entries.truncate(end * ENTRY_SIZE)
        last = ENTRY.unpack(self.read(end - 1, 1)) if end > self.min_offset else None
        self._take_end(last[0] + last[1] if last else -1)

    def _take_end(self, max_physical_offset: int) -> None:
        self.max_offset = self.next_offset = self.entries.end // ENTRY_SIZE
        self.max_physical_offset = max_physical_offset

    def correct_min_offset(self, log_start: int) -> None:
        """The first entry whose record is still in the log; the end of the queue when none is."""
        low = self._first_at(log_start, max(self.min_offset, self.entries.first_byte // ENTRY_SIZE))
        if not (self.ascends_at(low) and self.ascends_at(low - 1)):
            log.warning("queue entries out of order topic=%s queue=%d offset=%d", self.topic, self.queue_id, low)
            self.damaged = True  # the search was misled: stay where we are
            return
        self.min_offset = low

    def ascends_at(self, queue_offset: int) -> bool:
        """Whether an entry lies in the log between its neighbours; true where there is none."""
        first = max(self.min_offset, self.entries.first_byte // ENTRY_SIZE)
        around = range(max(queue_offset - 1, first), min(queue_offset + 2, self.max_offset))
        if queue_offset not in around:
            return True
        found = filter(None, (self.read(number, 1) for number in around))  # none of a file that was just deleted
        places = [offset for offset, size, _ in map(ENTRY.unpack, found) if size != PREFILL_SIZE]
        return places == sorted(places) and all(place >= 0 for place in places)

    def last_physical_offset(self, file_start: int) -> int:
        position = min(file_start + self.entries.file_size, self.entries.end) - ENTRY_SIZE
        if position < file_start:
            return -1
        return int(ENTRY.unpack(self.entries.read(position, ENTRY_SIZE))[0])

    def _offset_at(self, queue_offset: int) -> int:
        """Physical offset of an entry; a pre-filled one lies where the last real one before it lies, or before all."""
        for number in range(queue_offset, self._first_number - 1, -1):
            physical_offset, size, _ = ENTRY.unpack(self.read(number, 1))
            if size != PREFILL_SIZE:
                return int(physical_offset)
        return -1

    def _table(self, position: int, length: int) -> NDArray[np.void]:
        data = self.entries.read(position, length)
        return np.frombuffer(data, dtype=ENTRY_DTYPE, count=len(data) // ENTRY_SIZE)


def _valid_prefix(table: NDArray[np.void], previous_end: int) -> tuple[int, int]:
    """How many entries from the first on are valid and in log order, and where the record of the last one ends."""
    offsets = table["physical_offset"].astype(np.int64)
    sizes = table["size"].astype(np.int64)
    filled = sizes == PREFILL_SIZE
    ends = np.where(filled, -1, offsets + sizes)
    before = np.empty_like(ends)
    if len(table):
        before[0] = previous_end
        before[1:] = ends[:-1]
    valid = (offsets >= 0) & (sizes > 0) & (filled | (offsets >= before))
    count = len(table) if valid.all() else int(np.argmin(valid))
    return count, int(ends[count - 1]) if count else previous_end


def _end_of(entry: bytes) -> int:
    """Where the record of an entry ends."""
    physical_offset, size, _ = ENTRY.unpack(entry)
    return int(physical_offset) + int(size)


def _means_the_same(stored: bytes, entry: bytes) -> bool:
    """Whether two entries point to the same record and the stored tags code is an extension's address."""
    if len(stored) != ENTRY_SIZE:
        return False
    return stored[:12] == entry[:12] and int.from_bytes(stored[12:], "big", signed=True) <= -2147483649
