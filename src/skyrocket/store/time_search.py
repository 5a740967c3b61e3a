"""Store time → queue offset.

RocketMQ 5: exact bounds, LOWER (first entry stored at or after the time) or UPPER (last one at or before it).
RocketMQ 4.9 (`offsetByTimeNearest`): the nearest entry within the one file that its modification time points to;
kept so that a fleet of old clients can be moved without a change of answers.
"""

from collections.abc import Callable

from skyrocket.format.queue_entry import ENTRY_SIZE, PREFILL_SIZE
from skyrocket.format.record import store_timestamp_at
from skyrocket.store.batch_consume_queue import BatchConsumeQueue
from skyrocket.store.consume_queue import ConsumeQueue
from skyrocket.store.disk import Disk
from skyrocket.store.results import Boundary
from skyrocket.store.topic_queue import TopicQueue

RecordAt = Callable[[int], memoryview | None]


class TimeSearch:
    """Searches queues by the store times of their records."""

    def __init__(self, record_at: RecordAt, disk: Disk, *, nearest: bool) -> None:
        self._record_at = record_at
        self._disk = disk
        self._nearest = nearest

    def offset(self, queue: TopicQueue, timestamp: int, boundary: Boundary) -> int:
        """The queue offset for a store time."""
        if isinstance(queue, BatchConsumeQueue):
            return self._batch_offset(queue, timestamp, boundary)
        assert isinstance(queue, ConsumeQueue)
        if self._nearest:
            return self._nearest_offset(queue, timestamp)
        low = _first(
            queue.min_offset, queue.max_offset, lambda n: self._passes(self.time(queue, n), timestamp, boundary)
        )
        return low if boundary is Boundary.LOWER else max(low - 1, queue.min_offset)

    def time(self, queue: TopicQueue, queue_offset: int) -> int:
        """Store time of a message; 0 when its record is gone."""
        if isinstance(queue, BatchConsumeQueue):
            place = queue.locate(queue_offset)
            return queue.entry_at(place).store_timestamp if place is not None else 0
        assert isinstance(queue, ConsumeQueue)
        entry = queue.entry(queue_offset)
        return 0 if entry is None or entry.size == PREFILL_SIZE else self.time_of_record(entry.physical_offset, 0)

    def time_of_record(self, physical_offset: int, default: int) -> int:
        view = self._record_at(physical_offset)
        return default if view is None else store_timestamp_at(view, 0)

    @staticmethod
    def _passes(time: int, timestamp: int, boundary: Boundary) -> bool:
        return time >= timestamp if boundary is Boundary.LOWER else time > timestamp

    def _batch_offset(self, queue: BatchConsumeQueue, timestamp: int, boundary: Boundary) -> int:
        """The base offset of a batch: its messages share one store time. Behind the end: the last batch."""
        first, end = queue.first_entry, queue.end_entry
        if first == end:
            return 0
        low = _first(first, end, lambda n: self._passes(queue.entry_at(n).store_timestamp, timestamp, boundary))
        place = min(low, end - 1) if boundary is Boundary.LOWER else max(low - 1, first)
        return queue.entry_at(place).base_offset

    def _nearest_offset(self, queue: ConsumeQueue, timestamp: int) -> int:
        """RocketMQ 4.9: bisect within one file; an exact hit ends the search, otherwise the nearer neighbour counts."""
        files = queue.entries
        if not files.starts:
            return queue.min_offset
        newer = (start for start in files.starts if self._disk.modified_ms(files.path_of(start)) >= timestamp)
        start = next(newer, files.starts[-1])
        low = max(start // ENTRY_SIZE, queue.min_offset)
        high = min((start + files.file_size) // ENTRY_SIZE, queue.max_offset) - 1
        left, right = -1, -1
        left_time = right_time = -1
        while low <= high:
            middle = (low + high) // 2
            time = self.time(queue, middle)
            if time == timestamp:
                return middle
            if time > timestamp:
                high, right, right_time = middle - 1, middle, time
            else:
                low, left, left_time = middle + 1, middle, time
        if left < 0 or right < 0:
            return max(left, right, queue.min_offset)
        return left if timestamp - left_time <= right_time - timestamp else right


def _first(low: int, high: int, passes: Callable[[int], bool]) -> int:
    """The first number in a range that passes; the range's end when none does."""
    while low < high:
        middle = (low + high) // 2
        if passes(middle):
            high = middle
        else:
            low = middle + 1
    return low
