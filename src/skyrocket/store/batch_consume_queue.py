"""A batch consume queue (5.x topics with `queue.type=BatchCQ`): one 46-byte entry for a record of several messages.

Entries are not numbered by queue offset: each says its base offset and its number of messages, and is found by
binary search.
"""

import logging

import numpy as np

from skyrocket.format.queue_entry import BATCH_ENTRY, BATCH_ENTRY_DTYPE, BATCH_ENTRY_SIZE, BatchQueueEntry
from skyrocket.store.numbering import Doubts, is_possible
from skyrocket.store.topic_queue import TopicQueue

log = logging.getLogger(__name__)

_SCAN_BYTES = 1424 * BATCH_ENTRY_SIZE
_RECOVERED_FILES = 3


class BatchConsumeQueue(TopicQueue):
    """The entries of one queue of a batch topic."""

    __slots__ = ()

    @property
    def first_entry(self) -> int:
        return self.entries.first_byte // BATCH_ENTRY_SIZE

    @property
    def end_entry(self) -> int:
        return self.entries.end // BATCH_ENTRY_SIZE

    def append(
        self, physical_offset: int, size: int, tags_code: int, queue_offset: int, timestamp: int, messages: int
    ) -> None:
        if physical_offset + size <= self.max_physical_offset:
            self._compare(physical_offset, size, queue_offset, messages)
            return
        entry = BATCH_ENTRY.pack(physical_offset, size, tags_code, timestamp, queue_offset, messages, -1, 0)
        doubts = self.doubts
        if doubts is not None and doubts.entries:
            self._settle(doubts, queue_offset)
        if doubts is not None and queue_offset != self.max_offset:
            doubts.add(entry, queue_offset)  # the next record tells whether its offset can be right
            return
        self._put(entry, queue_offset)

    def _put(self, entry: bytes, queue_offset: int) -> None:
        fields = BATCH_ENTRY.unpack(entry)
        if fields[4] != queue_offset:
            log.error(
                "the base offset of a record is damaged, going by its neighbours topic=%s queue=%d record=%d "
                "queue_offset=%d instead_of=%d",
                self.topic,
                self.queue_id,
                fields[0],
                queue_offset,
                fields[4],
            )
            entry = BATCH_ENTRY.pack(*fields[:4], queue_offset, *fields[5:])
        if not self.entries.starts and not self.entries.tail[1]:
            self.min_offset = queue_offset
        self.entries.tail[1].extend(entry)
        self.max_offset = queue_offset + fields[5]
        self.max_physical_offset = fields[0] + fields[1]

    def _settle(self, doubts: Doubts, next_offset: int | None) -> None:
        """Place the record whose base does not follow the entries before it; the record behind it confirms the base."""
        (claimed,) = doubts.claimed
        (entry,) = doubts.take()
        physical_offset, _, _, _, _, messages, *_ = BATCH_ENTRY.unpack(entry)
        possible = is_possible(claimed // max(messages, 1), physical_offset)
        if possible and next_offset == claimed + messages:
            self._put(entry, claimed)
        elif self.entries.end > self.entries.first_byte:
            self._put(entry, self.max_offset)
        elif next_offset is not None:
            self._put(entry, max(next_offset - messages, 0))
        else:
            self._put(entry, claimed if possible else 0)

    def settle_doubts(self) -> None:
        if self.doubts is not None and self.doubts.entries:
            self._settle(self.doubts, None)

    def _compare(self, physical_offset: int, size: int, queue_offset: int, messages: int) -> None:
        """A record that was here before must have its entry, in order; otherwise all of them are built anew."""
        place = self._first_at(physical_offset)
        entry = self.entry_at(place) if place < self.end_entry else None
        if entry is None or (entry.physical_offset, entry.size) != (physical_offset, size):
            self.damaged = True
        elif (entry.base_offset, entry.messages) != (queue_offset, messages):
            self.damaged |= not self._follows_at(place) or not self._follows_at(place + 1)

    def _follows_at(self, place: int) -> bool:
        """Whether an entry begins where the one before it ends."""
        if not self.first_entry < place < self.end_entry:
            return False
        before = self.entry_at(place - 1)
        return before.base_offset + before.messages == self.entry_at(place).base_offset

    def _first_at(self, physical_offset: int) -> int:
        """The place of the first entry whose record begins at or behind an offset of the log."""
        low, high = self.first_entry, self.end_entry
        while low < high:
            middle = (low + high) // 2
            if self.entry_at(middle).physical_offset < physical_offset:
                low = middle + 1
            else:
                high = middle
        return low

    def entry_at(self, number: int) -> BatchQueueEntry:
        """The entry at a place, counted from the queue's beginning."""
        data = self.entries.read(number * BATCH_ENTRY_SIZE, BATCH_ENTRY_SIZE)
        return BatchQueueEntry._make(BATCH_ENTRY.unpack(data))

    def locate(self, queue_offset: int) -> int | None:
        """The place of the entry whose messages include a queue offset."""
        low, high = self.first_entry, self.end_entry
        while low < high:
            middle = (low + high) // 2
            entry = self.entry_at(middle)
            if entry.base_offset + entry.messages <= queue_offset:
                low = middle + 1
            else:
                high = middle
        if low >= self.end_entry or self.entry_at(low).base_offset > queue_offset:
            return None
        return low

    # -- recovery and retention ----------------------------------------------------------------------------

    def recover(self) -> None:
        files = self.entries
        position = files.starts[-_RECOVERED_FILES:][0] if files.starts else files.tail[0]
        while position < files.files_end:
            data = files.read(position, _SCAN_BYTES)
            table = np.frombuffer(data, dtype=BATCH_ENTRY_DTYPE, count=len(data) // BATCH_ENTRY_SIZE)
            valid = (
                (table["physical_offset"] >= 0)
                & (table["size"] > 0)
                & (table["base_offset"] >= 0)
                & (table["messages"] > 0)
            )
            ends = table["base_offset"] + table["messages"]
            valid[1:] &= table["base_offset"][1:] == ends[:-1]
            count = len(table) if valid.all() else int(np.argmin(valid))
            position += count * BATCH_ENTRY_SIZE
            if count < len(table) or not count:
                break
        files.truncate(position)
        self._take_end()
        # A file that is a copy of another one, or stands in its place, shows where two files meet.
        places = [start // BATCH_ENTRY_SIZE for start in files.starts[1:]]
        self.damaged |= not all(self._follows_at(place) for place in places if place < self.end_entry)

    def truncate_to(self, log_end: int) -> None:
        end = self.end_entry
        while end > self.first_entry and self.entry_at(end - 1).physical_offset >= log_end:
            end -= 1
        self.entries.truncate(end * BATCH_ENTRY_SIZE)
        self._take_end()

    def _take_end(self) -> None:
        if self.end_entry == self.first_entry:
            self.min_offset = self.max_offset = self.next_offset = 0
            self.max_physical_offset = -1
            return
        last = self.entry_at(self.end_entry - 1)
        self.min_offset = self.entry_at(self.first_entry).base_offset
        self.max_offset = self.next_offset = last.base_offset + last.messages
        self.max_physical_offset = last.physical_offset + last.size

    def correct_min_offset(self, log_start: int) -> None:
        low = self._first_at(log_start)
        if not (self.ascends_at(low) and self.ascends_at(low - 1)):
            self.damaged = True  # the search was misled: stay where we are
            return
        self.min_offset = self.entry_at(low).base_offset if low < self.end_entry else self.max_offset

    def ascends_at(self, place: int) -> bool:
        """Whether an entry lies in the log between its neighbours; true where there is none."""
        around = range(max(place - 1, self.first_entry), min(place + 2, self.end_entry))
        if place not in around:
            return True
        entries = [self.entry_at(number) for number in around]
        places = [entry.physical_offset for entry in entries]
        bases = [entry.base_offset for entry in entries]
        return places == sorted(places) and bases == sorted(bases) and places[0] >= 0

    def last_physical_offset(self, file_start: int) -> int:
        position = min(file_start + self.entries.file_size, self.entries.end) - BATCH_ENTRY_SIZE
        return self.entry_at(position // BATCH_ENTRY_SIZE).physical_offset if position >= file_start else -1
