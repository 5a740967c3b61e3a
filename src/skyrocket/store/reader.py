"""Reads: by queue offset, by physical offset, by key, by time. Records are slices of the log, never decoded here.

Before a slice is handed out its first record is compared with the queue's entry; neighbours in the log are one
slice, so this costs one look per run and not per message. A queue file that was damaged on disk is thus found when
it is read, and never answers with bytes of some other message.
"""

from collections.abc import Callable, Collection, Iterator
from struct import Struct
from struct import error as struct_error

from skyrocket.config.sections import StoreConfig
from skyrocket.errors import CorruptFile
from skyrocket.format.index_layout import key_text, tag_text
from skyrocket.format.queue_entry import BATCH_ENTRY_SIZE, ENTRY, ENTRY_SIZE, PREFILL_SIZE, QueueEntry
from skyrocket.format.record import MAGIC_V1, MAGIC_V2
from skyrocket.store.batch_consume_queue import BatchConsumeQueue
from skyrocket.store.commit_log import CommitLog
from skyrocket.store.consume_queue import ConsumeQueue
from skyrocket.store.disk import Disk
from skyrocket.store.entry_check import HEAD, EntryCheck
from skyrocket.store.index import Index
from skyrocket.store.mapped_file_queue import MappedFile
from skyrocket.store.queue_table import QueueTable
from skyrocket.store.read_ahead import COPY_BELOW, FEWEST_WANTED, PLACE, Ahead, ReadAhead, Trail, file_with
from skyrocket.store.results import Boundary, GetResult, GetStatus
from skyrocket.store.statistics import Statistics
from skyrocket.store.time_search import TimeSearch
from skyrocket.store.topic_queue import TopicQueue

EntryFilter = Callable[[QueueEntry], bool]  # by the queue's entry alone
RecordFilter = Callable[[memoryview], bool]  # by the record

_MAX_BYTES = 134_217_728
LOOK_AT = 800  # entries that one read with filters tries; RocketMQ: 16000 bytes of them
_MIN_BYTES = 100
_QUERY_ROUNDS = 3
_unpack_place = PLACE.unpack_from
_entries_structs: dict[int, Struct] = {n: Struct(">" + "qiq" * n) for n in range(1, 65)}  # several entries at once


class Reader:
    """Answers reads from queues, log and index."""

    def __init__(
        self,
        commit_log: CommitLog,
        queues: QueueTable,
        index: Index | None,
        config: StoreConfig,
        statistics: Statistics,
        disk: Disk,
        memory_bytes: int,
    ) -> None:
        self._log = commit_log
        self._queues = queues
        self._index = index
        self._config = config
        self._statistics = statistics
        self._times = TimeSearch(self.by_physical_offset, disk, nearest=config.offset_by_time_nearest)
        self._entries = EntryCheck(self.by_physical_offset, light_queues=config.multi_dispatch)
        self._ahead = ReadAhead(commit_log)
        commit_log.files.on_forgotten = self._ahead.let_go
        self._near = memory_bytes * config.memory_ratio // 100  # records nearer to the log's end count as in memory

    def use(self, config: StoreConfig) -> None:
        """Go by these limits from the next read on."""
        self._config = config

    # -- by queue offset ---------------------------------------------------------------------------------

    def get(
        self,
        topic: str,
        queue_id: int,
        offset: int,
        max_count: int,
        max_bytes: int = _MAX_BYTES,
        *,
        tags_codes: Collection[int] | None = None,
        entry_filter: EntryFilter | None = None,
        record_filter: RecordFilter | None = None,
        look_at: int = LOOK_AT,
    ) -> GetResult:
        """Records of a queue from an offset on; without filters whole runs of the log are taken at once."""
        queue = self._queues.by_key.get((topic, queue_id))
        if queue is None:
            return GetResult(GetStatus.NO_MATCHED_LOGIC_QUEUE, 0, 0, 0)
        low, high = queue.min_offset, queue.max_offset
        refused = _out_of_range(offset, low, high)
        if refused is not None:
            self._statistics.get_missed += 1
            return refused
        if tags_codes is not None and entry_filter is None:
            entry_filter = _tags_filter(tags_codes)
        max_bytes = min(max(max_bytes, _MIN_BYTES), _MAX_BYTES)
        if isinstance(queue, BatchConsumeQueue):
            result = self._get_batches_again(queue, offset, max_count, max_bytes)
        else:
            assert isinstance(queue, ConsumeQueue)
            if offset * ENTRY_SIZE < queue.entries.tail[0]:
                self._trust(queue, offset * ENTRY_SIZE)
            run = None
            if entry_filter is None and record_filter is None:
                run = self._get_run(queue, offset, min(max_count, high - offset), max_bytes)
            result = run or self._get_each(queue, offset, max_count, max_bytes, entry_filter, record_filter, look_at)
        self._count(result)
        return result

    def trail(self, topic: str, queue_id: int) -> Trail | None:
        """For somebody who will read this queue on and on, without filters; None when there is none of that kind."""
        queue = self._queues.by_key.get((topic, queue_id))
        return Trail(queue) if isinstance(queue, ConsumeQueue) else None

    def is_current(self, trail: Trail) -> bool:
        """Whether its queue is still there."""
        return self._queues.by_key.get(trail.place) is trail.queue

    def go_on(self, trail: Trail, offset: int, max_count: int, max_bytes: int = _MAX_BYTES) -> GetResult | None:
        """What `get` gives, for one who goes on where he was expected; None: ask `get`, and say then where it ended."""
        queue, config = trail.queue, self._config
        low, count = queue.min_offset, min(max_count, config.max_transfer_count_memory)
        if count < FEWEST_WANTED or offset < low or self._queues.by_key.get(trail.place) is not queue:
            return None
        oldest = self._log.written_offset - self._near
        ahead = trail.ahead_of(offset, count)
        if ahead is None:
            position, entries = offset * ENTRY_SIZE, queue.entries
            if offset != trail.expected or position - position % entries.file_size not in entries.trusted:
                return None  # `get` looks whose file it is: what comes before a read that fails is then done, too
            ahead = self._ahead.follow(trail, offset, oldest)
            if ahead is None or offset + count > ahead.end:
                return None
        if ahead.places.item(offset - ahead.first) + ahead.start_offset < oldest:
            most_bytes = min(max(max_bytes, _MIN_BYTES), _MAX_BYTES)
            result = self._get_ahead(queue, offset, max_count, most_bytes, oldest, ahead)
            if result is None:
                return None
        else:
            found = ahead.records(offset, count, min(max(max_bytes, _MIN_BYTES), config.max_transfer_bytes_memory))
            if found is None:
                return None
            slices, size = found
            result = GetResult(GetStatus.FOUND, offset + count, low, queue.max_offset, slices, count, size)
        trail.expected = result.next_offset
        self._statistics.get_found += 1
        self._statistics.get_messages += result.count
        return result

    def _trust(self, queue: TopicQueue, position: int) -> None:
        """Make sure that the file with an entry is this queue's, when it is read for the first time."""
        entries = queue.entries
        if position < entries.tail[0] and position - position % entries.file_size not in entries.trusted:
            self._entries.trust_file(queue, position)

    def _get_run(self, queue: ConsumeQueue, offset: int, count: int, max_bytes: int) -> GetResult | None:
        """The common case: no filter, all near or all far, in one file, within the limits. None when it is not that."""
        oldest = self._log.written_offset - self._near
        wanted = min(count, self._config.max_transfer_count_memory)
        if wanted < FEWEST_WANTED:
            return self._get_entries(queue, offset, count, max_bytes, oldest)
        ahead = self._ahead.at(queue, offset, wanted, oldest)
        result = None if ahead is None else self._get_ahead(queue, offset, count, max_bytes, oldest, ahead)
        if result is None:
            result = self._get_entries(queue, offset, count, max_bytes, oldest)
        if result is not None:
            self._ahead.expect(queue, result.next_offset, ahead)
        return result

    def _limits(self, far: bool, count: int, max_bytes: int) -> tuple[int, int]:
        config = self._config
        if far:
            return min(count, config.max_transfer_count_disk), min(max_bytes, config.max_transfer_bytes_disk)
        return min(count, config.max_transfer_count_memory), min(max_bytes, config.max_transfer_bytes_memory)

    def _get_ahead(
        self, queue: ConsumeQueue, offset: int, count: int, max_bytes: int, oldest: int, ahead: Ahead
    ) -> GetResult | None:
        """A run of entries that were read and compared before."""
        begin = offset - ahead.first
        oldest -= ahead.start_offset
        far = ahead.places.item(begin) < oldest
        count, max_bytes = self._limits(far, count, max_bytes)
        found = ahead.records(offset, count, max_bytes)
        if found is None or (far and ahead.places.item(begin + count - 1) >= oldest):
            return None
        low, high = queue.min_offset, queue.max_offset
        return GetResult(GetStatus.FOUND, offset + count, low, high, found.slices, count, found.size, suggest_slave=far)

    def _get_entries(
        self, queue: ConsumeQueue, offset: int, count: int, max_bytes: int, oldest: int
    ) -> GetResult | None:
        """A run of entries that are read now."""
        config = self._config
        most = max(config.max_transfer_count_memory, config.max_transfer_count_disk)
        data = queue.read(offset, min(count, most))
        if not data:
            return None
        far = ENTRY.unpack_from(data)[0] < oldest
        count, max_bytes = self._limits(far, len(data) // ENTRY_SIZE, max_bytes)
        data = data[: count * ENTRY_SIZE]
        layout = _entries_structs.get(count)
        if layout is None:
            return None
        fields = layout.unpack(data)
        offsets, sizes = fields[0::3], fields[1::3]
        total, first, last = sum(sizes), offsets[0], offsets[-1]
        if total > max_bytes or (far and last >= oldest):
            return None
        span = last + sizes[-1] - first
        if span < total or sizes[-1] < PLACE.size:  # a damaged queue may go back in the log
            return None
        if span == total:
            # A run without gaps: with the right first and last record all between them are right as well.
            region = self._log.slice(first, span)
            if (
                region is None
                or _unpack_place(region) != (sizes[0], offset, first)
                or _unpack_place(region, last - first) != (sizes[-1], offset + count - 1, last)
            ):
                return None
            slices = [region]
        else:
            file = file_with(self._log, first, span)
            cut = None if file is None else _cut(file, offset, offsets, sizes, total)
            if cut is None:
                return None
            slices = cut
        low, high = queue.min_offset, queue.max_offset
        return GetResult(GetStatus.FOUND, offset + count, low, high, slices, count, total, suggest_slave=far)

    def _get_each(
        self,
        queue: ConsumeQueue,
        offset: int,
        max_count: int,
        max_bytes: int,
        entry_filter: EntryFilter | None,
        record_filter: RecordFilter | None,
        look_at: int,
    ) -> GetResult:
        """Entry by entry: filters, the limits for reads from disk, removed records."""
        result = GetResult(GetStatus.NO_MATCHED_MESSAGE, offset, queue.min_offset, queue.max_offset)
        most = look_at if look_at < LOOK_AT else max(look_at, max_count)
        data = queue.read(offset, min(most, queue.max_offset - offset))
        if not data:
            result.status = GetStatus.OFFSET_FOUND_NULL
            per_file = queue.entries.file_size // ENTRY_SIZE
            result.next_offset = offset - offset % per_file + per_file
            return result
        last = -1
        removed_before = -1
        for number, entry in enumerate(_entries(data), offset):
            if entry.size == PREFILL_SIZE:
                result.next_offset = number + 1
                continue
            near = self._log.written_offset - entry.physical_offset <= self._near
            if self._is_enough(result, entry.size, max_count, max_bytes, near):
                break
            result.next_offset = number + 1
            last = entry.physical_offset
            if 0 <= entry.physical_offset < removed_before:
                continue
            if entry_filter is not None and not entry_filter(entry):
                continue
            view = self._log.slice(entry.physical_offset, entry.size)
            if view is None:
                if entry.physical_offset >= self._log.min_offset or not queue.ascends_at(number):
                    place = (entry.physical_offset, entry.size)
                    self._entries.refuse(queue, number, place, number * ENTRY_SIZE)
                if not result.count:
                    result.status = GetStatus.MESSAGE_WAS_REMOVING
                removed_before = self._log.min_offset
                continue
            place = (entry.physical_offset, entry.size)
            view = self._entries.checked(view, queue, number, place, number * ENTRY_SIZE)
            if record_filter is not None and not record_filter(view):
                continue
            result.slices.append(view)
            result.count += 1
            result.size += entry.size
            result.status = GetStatus.FOUND
        result.suggest_slave = last >= 0 and self._log.written_offset - last > self._near
        return result

    def _is_enough(self, result: GetResult, size: int, max_count: int, max_bytes: int, near: bool) -> bool:
        if not result.count:
            return False  # one record is always given, however large
        config = self._config
        most_bytes = config.max_transfer_bytes_memory if near else config.max_transfer_bytes_disk
        most_count = config.max_transfer_count_memory if near else config.max_transfer_count_disk
        return (
            result.count >= min(max_count, most_count)
            or result.size + size > max_bytes
            or result.size + size > most_bytes
        )

    def _get_batches_again(self, queue: BatchConsumeQueue, offset: int, max_count: int, max_bytes: int) -> GetResult:
        """As often as the cleaner deletes a file of the queue meanwhile: nothing is wrong with entries that went."""
        while True:
            changes = queue.entries.changes
            refused = _out_of_range(offset, queue.min_offset, queue.max_offset)
            if refused is not None:
                return refused
            try:
                return self._get_batches(queue, offset, max_count, max_bytes)
            except (CorruptFile, struct_error):
                if queue.entries.changes == changes:
                    raise

    def _get_batches(self, queue: BatchConsumeQueue, offset: int, max_count: int, max_bytes: int) -> GetResult:
        result = GetResult(GetStatus.NO_MATCHED_MESSAGE, offset, queue.min_offset, queue.max_offset)
        place = queue.locate(offset)
        if place is None:
            self._entries.refuse(queue, offset, (-1, 0), queue.entries.first_byte)
        self._trust(queue, place * BATCH_ENTRY_SIZE)
        while place < queue.end_entry:
            entry = queue.entry_at(place)
            position, means = place * BATCH_ENTRY_SIZE, (entry.physical_offset, entry.size)
            if place > queue.first_entry and result.count and entry.base_offset != result.next_offset:
                self._entries.refuse(queue, entry.base_offset, means, position)
            if result.count and (result.count + entry.messages > max_count or result.size + entry.size > max_bytes):
                break
            view = self._log.slice(entry.physical_offset, entry.size)
            if view is None:
                if entry.physical_offset >= self._log.min_offset or not queue.ascends_at(place):
                    self._entries.refuse(queue, entry.base_offset, means, position)
                result.status = result.status if result.count else GetStatus.MESSAGE_WAS_REMOVING
            else:
                view = self._entries.checked(view, queue, entry.base_offset, means, position)
                result.slices.append(view)
                result.count += entry.messages
                result.size += entry.size
                result.status = GetStatus.FOUND
            result.next_offset = entry.base_offset + entry.messages
            place += 1
        return result

    def _count(self, result: GetResult) -> None:
        statistics = self._statistics
        if result.count:
            statistics.get_found += 1
            statistics.get_messages += result.count
        else:
            statistics.get_missed += 1

    # -- by physical offset ---------------------------------------------------------------------------------

    def by_physical_offset(self, physical_offset: int) -> memoryview | None:
        """The record that begins at a physical offset; None when there is none."""
        head = self._log.slice(physical_offset, HEAD.size)
        if head is None or physical_offset < 0:
            return None
        size, magic, _, stored_offset = HEAD.unpack(head)
        if magic not in (MAGIC_V1, MAGIC_V2) or stored_offset != physical_offset or size < HEAD.size:
            return None
        return self._log.slice(physical_offset, size)

    # -- by key ------------------------------------------------------------------------------------------

    def query(
        self, topic: str, key: str, max_count: int, begin: int = 0, end: int = (1 << 63) - 1, *, tag: bool = False
    ) -> list[memoryview]:
        """Records with a key (or unique key, or with `tag` these tags), ascending by place in the log.

        Records whose key only has the same hash may be among them: the caller compares the text.
        """
        if self._index is None:
            return []
        text = tag_text(topic, key) if tag else key_text(topic, key)
        for _ in range(_QUERY_ROUNDS):
            offsets = sorted(self._index.query(text, max_count, begin, end))
            if not offsets:
                return []
            found = [view for view in map(self.by_physical_offset, offsets) if view is not None]
            if found:
                return found
            # RocketMQ: all hits have left the log; look again before the first of them.
            end = min(end, self._times.time_of_record(offsets[0], 0))
            if end < begin:
                return []
        return []

    def query_unique_key(
        self, topic: str, unique_key: str, begin: int = 0, end: int = (1 << 63) - 1
    ) -> list[memoryview]:
        """Records with a unique key."""
        return self.query(topic, unique_key, self._config.default_query_results, begin, end)

    # -- by time -----------------------------------------------------------------------------------------

    def offset_by_time(self, topic: str, queue_id: int, timestamp: int, boundary: Boundary = Boundary.LOWER) -> int:
        """The queue offset for a store time: LOWER the first at or after it, UPPER the last at or before it."""
        queue = self._queues.by_key.get((topic, queue_id))
        return self._times.offset(queue, timestamp, boundary) if queue is not None else 0

    def earliest_time(self, topic: str, queue_id: int) -> int:
        """Store time of the oldest message of a queue; -1 when it has none."""
        queue = self._queues.by_key.get((topic, queue_id))
        if queue is None or queue.min_offset >= queue.max_offset:
            return -1
        return self._times.time(queue, queue.min_offset)

    def earliest_log_time(self) -> int:
        """Store time of the oldest record of the log; -1 when it has none."""
        return self._times.time_of_record(self._log.min_offset, -1)


def _cut(
    file: MappedFile, offset: int, offsets: tuple[int, ...], sizes: tuple[int, ...], total: int
) -> list[memoryview] | None:
    """The records of a queue among those of others; None when one of them is not what its entry says.

    Small ones are copied together: whoever writes them to a socket would do it, and one piece costs less than many.
    """
    if min(sizes) < PLACE.size:
        return None
    start, view = file.start_offset, file.view
    pieces = [view[(place := at - start) : place + size] for at, size in zip(offsets, sizes, strict=True)]
    if min(map(len, pieces)) < PLACE.size:  # a damaged entry points out of the file
        return None
    expected = zip(sizes, range(offset, offset + len(sizes)), offsets, strict=True)
    if list(map(_unpack_place, pieces)) != list(expected):
        return None
    return [memoryview(b"".join(pieces))] if total < COPY_BELOW else pieces


def _out_of_range(offset: int, low: int, high: int) -> GetResult | None:
    if high == 0:
        return GetResult(GetStatus.NO_MESSAGE_IN_QUEUE, 0, low, high)
    if offset < low:
        return GetResult(GetStatus.OFFSET_TOO_SMALL, low, low, high)
    if offset == high:
        return GetResult(GetStatus.OFFSET_OVERFLOW_ONE, offset, low, high)
    if offset > high:
        return GetResult(GetStatus.OFFSET_OVERFLOW_BADLY, high, low, high)
    return None


def _tags_filter(tags_codes: Collection[int]) -> EntryFilter:
    return lambda entry: entry.tags_code in tags_codes


def _entries(data: bytes) -> Iterator[QueueEntry]:
    """One after the other: few of those that may be looked at are, unless a filter refuses most."""
    return map(QueueEntry._make, ENTRY.iter_unpack(data[: len(data) // ENTRY_SIZE * ENTRY_SIZE]))
