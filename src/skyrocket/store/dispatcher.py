"""Follows the log and feeds consume queues, index and listeners, in log order.

Records appended here come from the writer's `pending` list, so that nothing is decoded; records that arrived as
raw bytes (replication) or that recovery finds are read from the log, as columns where there are many. The ways end in
`feed` and `feed_columns`.

At a damaged record dispatch stops, and `damage` says where: what follows cannot be told from what is lost.

Dispatch never passes `limit`: what is not safe from a crash as far as the flush mode promises is not shown to anyone.
"""

import logging
import threading
from bisect import bisect_right
from collections.abc import Callable, Sequence
from typing import NamedTuple, cast

from skyrocket.format import sys_flag as flags
from skyrocket.format.properties import find_property, whole_number
from skyrocket.format.queue_entry import ENTRY, MOST_BATCH_MESSAGES
from skyrocket.format.record import BLANK, MAGIC_BLANK, MAGIC_V1, MAGIC_V2, CrcCheck, RecordHead, RecordWalk, WalkEnd
from skyrocket.format.store_names import is_directory_name, topic_damage
from skyrocket.model.topic import LMQ_PREFIX, takes_multi_dispatch
from skyrocket.store.column_feed import feed_queues, items_of
from skyrocket.store.commit_log import CommitLog
from skyrocket.store.index import Index
from skyrocket.store.log_columns import ColumnItems, LogColumns, queues_of, read_columns
from skyrocket.store.queue_table import QueueKey, QueueTable
from skyrocket.store.record_run import (
    Appended,
    RecordRun,
    RunItems,
    each_item,
    last_end,
    last_offset,
    time_of,
)
from skyrocket.store.record_tuples import DispatchItem, end_offset
from skyrocket.store.run_entries import entries_of
from skyrocket.store.tags_code import TagsCoder
from skyrocket.store.topic_queue import TopicQueue
from skyrocket.store.write_gate import Patience

log = logging.getLogger(__name__)

Listener = Callable[[Sequence[DispatchItem]], None]
_BATCH = 4096
_MOST_RUNS = 512  # of which each is many records
_COLUMN_RECORDS = 200  # fewer are walked through faster one by one
_pack_entry = ENTRY.pack
_join = b"".join
_LARGEST_RECORD = 64 << 20  # one that says that it is larger is not waited for


class DamagedRecord(NamedTuple):
    """A place of the log at which no record begins."""

    physical_offset: int
    reason: str


class Dispatcher:
    """The only one who adds entries to queues and records to the index."""

    def __init__(
        self,
        commit_log: CommitLog,
        queues: QueueTable,
        index: Index | None,
        tags: TagsCoder,
        *,
        multi_dispatch: bool = False,
        queue_buffer_bytes: int = 32 << 20,
    ) -> None:
        self.dispatched_offset = 0  # everything before it is in queues and (or waiting for) index
        self.dispatched_timestamp = 0  # store time of the newest dispatched record
        self.dispatched_record = 0  # and where it begins
        self.damage: DamagedRecord | None = None  # at which dispatch of raw bytes has stopped
        self._raw_record_bytes = 0  # the average of the newest that arrived so
        self.listeners: list[Listener] = []
        self._log = commit_log
        self._queues = queues
        self._index = index
        self._tags = tags
        self.multi_dispatch = multi_dispatch  # recovery also turns it on for light queues that it finds
        self._queue_buffer_bytes = queue_buffer_bytes
        self._buffered_bytes = 0
        self.patience: Patience | None = None  # with queues that cannot be written; None: there is none
        self._lock = threading.RLock()

    def dispatch(self, limit: int) -> int:
        """Dispatch records that end at or before a physical offset; returns how many."""
        done = 0
        with self._lock:
            while self.dispatched_offset < limit:
                taken: Sequence[Appended] = self._take_pending(limit)
                if taken:
                    count, end = self.feed(taken), last_end(taken[-1])
                elif (columns := self._read_columns(limit)) is not None:
                    count, end = len(columns), columns.end_offset
                    self._continue_after(self.feed_columns(columns), end)
                elif items := self._read_log(limit):
                    count, end = self.feed(items), last_end(items[-1])
                    self._continue_after(items, end)
                else:
                    break
                done += count
                self.dispatched_offset = max(self.dispatched_offset, end)
                self.damage = None
            if self._index is not None and self._index.overdue:
                self._index.catch_up()
        return done

    def _take_pending(self, limit: int) -> list[Appended]:
        """The head of what the writer appended; nothing while raw bytes come first."""
        if self.dispatched_offset < self._log.raw_end:
            return []
        pending = self._log.pending
        items = pending[:_BATCH]
        if len(items) > _MOST_RUNS and any(isinstance(item, RecordRun) for item in items):
            items = items[:_MOST_RUNS]
        if items and last_end(items[-1]) > limit:
            first = items[0]
            items = items[: bisect_right(items, limit, key=last_end)]
            if not items and isinstance(first, RecordRun) and first.starts[0] + first.sizes[0] <= limit:
                pending[:1] = first.items()  # the limit is in the middle of it
                items = [item for item in first.items() if end_offset(item) <= limit]
        del pending[: len(items)]
        return items

    def _read_columns(self, limit: int) -> LogColumns | None:
        """The next records of what arrived as raw bytes, where many have; None: look at them one by one."""
        begin, limit = self.dispatched_offset, min(limit, self._log.raw_end)
        are_many = limit - begin >= self._raw_record_bytes * _COLUMN_RECORDS
        file = self._log.files.find(begin) if are_many else None
        if file is None:
            return None
        start = file.start_offset
        return read_columns(file.view[: limit - start], begin - start, start, CrcCheck.NONE, limit)

    def _read_log(self, limit: int) -> list[DispatchItem]:
        """The next records of what arrived as raw bytes, one by one."""
        limit = min(limit, self._log.raw_end)
        items: list[DispatchItem] = []
        while self.dispatched_offset < limit and not items:
            found = self._log.walk(max(self.dispatched_offset, self._log.min_offset))
            if found is None:
                break
            walk, next_file = found
            for head in walk:
                if head.physical_offset + head.size > limit or len(items) >= _BATCH:
                    return items  # with SYNC_FLUSH the disk may have a part of a record that is here
                if reason := topic_damage(head.topic):  # its queue would lie somewhere else on this machine
                    self.damage = DamagedRecord(head.physical_offset, reason)
                    return items
                items.append(self.item(head))
            if not items and walk.end is WalkEnd.BLANK and next_file <= limit:
                self.dispatched_offset = next_file
                continue
            if not items:
                self._look_at_end(walk, limit, next_file)
            break  # at the end, or at a record that is still arriving
        return items

    def _look_at_end(self, walk: RecordWalk, limit: int, next_file: int) -> None:
        """Remember damage; a record of which only the first bytes have come is none."""
        if walk.end not in (WalkEnd.DAMAGED, WalkEnd.ZERO):
            return
        offset = max(self.dispatched_offset, self._log.min_offset)
        head = self._log.raw(offset, BLANK.size)
        if head is None or len(head) < BLANK.size:
            return
        size, magic = BLANK.unpack(head)
        is_arriving = limit - offset < size <= min(_LARGEST_RECORD, next_file - offset)
        if not is_arriving or magic not in (MAGIC_V1, MAGIC_V2, MAGIC_BLANK):
            self.damage = DamagedRecord(offset, walk.reason)

    def _continue_after(self, items: Sequence[DispatchItem], end: int) -> None:
        """A replica that becomes the master goes on with the offsets and times of what it received."""
        self._raw_record_bytes = (end - self.dispatched_offset) // len(items)
        self._log.last_store_timestamp = max(self._log.last_store_timestamp, self.dispatched_timestamp)
        for queue in queues_of(items):
            queue.next_offset = max(queue.next_offset, queue.max_offset)

    def item(self, head: RecordHead) -> DispatchItem:
        """What dispatch needs of a record that was read from the log."""
        topic = head.topic.decode("utf-8", "replace")
        queue = self._queues.by_key.get((topic, head.queue_id))
        if queue is None:
            queue = self._queues.get_or_create(topic, head.queue_id)
        return (
            queue,
            head.physical_offset,
            head.size,
            head.store_timestamp,
            head.queue_offset,
            head.properties,
            head.sys_flag,
        )

    # -- feeding ---------------------------------------------------------------------------------------

    def feed(self, items: Sequence[Appended]) -> int:
        """Hand records to queues, index and listeners; returns how many."""
        if self.multi_dispatch:
            items = list(each_item(items))
        with self._queues.lock:
            count = self._feed_queues(items)
        self._make_room(count)
        if self._index is not None:
            self._index.add(items, count)
        told = cast("Sequence[DispatchItem]", items) if count == len(items) else RunItems(items)
        self._tell(told, time_of(items[-1]), last_offset(items[-1]))
        return count

    def feed_columns(self, columns: LogColumns) -> ColumnItems:
        """The same with records that were read many at once; what is not as usual goes record by record."""
        items = items_of(columns, self._queues.get_or_create)
        if self.multi_dispatch and columns.segments.mention(b"INNER_MULTI_QUEUE_OFFSET"):
            self.feed(items[:])
            return items
        with self._queues.lock:
            left = feed_queues(items, self._queues.dirty)
            if len(left):
                self._feed_queues([items[row] for row in left.tolist()])
        self._make_room(len(items))
        if self._index is not None:
            self._index.add_columns(items)
        self._tell(items, int(columns.store_timestamps[-1]), int(columns.physical_offsets[-1]))
        return items

    def _make_room(self, records: int) -> None:
        self._buffered_bytes += records * ENTRY.size
        if self._buffered_bytes > self._queue_buffer_bytes:
            self._buffered_bytes = 0
            self._write_out()

    def _tell(self, items: Sequence[DispatchItem], timestamp: int, physical_offset: int) -> None:
        self.dispatched_timestamp = timestamp
        self.dispatched_record = physical_offset
        for listener in self.listeners:
            try:
                listener(items)
            except Exception:
                log.exception("a listener failed, dispatch goes on listener=%r", listener)

    def _write_out(self) -> None:
        """Make room in memory; where the disk has none at the moment, entries stay and are readable there."""
        try:
            self._queues.write_out()
        except OSError as error:
            if self.patience is None or not self.patience.has(error):
                raise
        else:
            if self.patience is not None:
                self.patience.is_over()

    def _feed_queues(self, items: Sequence[Appended]) -> int:
        code_of, known = self._tags.code, self._tags.known
        dirty = self._queues.dirty
        count = len(items)
        for item in items:
            if isinstance(item, RecordRun):
                self._feed_run(item)
                count += item.count - 1
                continue
            queue, physical_offset, size, timestamp, queue_offset, properties, sys_flag = item
            if sys_flag & flags.TRANSACTION_PREPARED:  # prepared and rollback: in the log only
                continue
            if (
                queue_offset == queue.max_offset
                and physical_offset >= queue.max_physical_offset
                and queue.simple
                and not queue.holds_delivery_times
            ):
                tail = queue.entries.tail[1]
                if not tail:
                    dirty.append(queue)
                # The common form of the property with tags seen before; everything else takes the long way.
                code = 0
                at = properties.rfind(b"TAGS\x01")
                if at >= 0:
                    end = properties.find(b"\x02", at)
                    if end > 0 and (not at or properties[at - 1] == 2):
                        code = known.get(properties[at + 5 : end], 0)
                    code = code or code_of(properties)
                tail += _pack_entry(physical_offset, size, code)
                queue.max_offset = queue.confirmed_offset = queue_offset + 1
                queue.max_physical_offset = physical_offset + size
            else:
                self._append(queue, physical_offset, size, timestamp, queue_offset, properties)
            if self.multi_dispatch:
                self._feed_light_queues(queue, physical_offset, size, timestamp, properties)
        return count

    def _feed_run(self, run: RecordRun) -> None:
        """The records of client batches."""
        entries: memoryview | None = None
        for part in run.parts:
            queue, first_queue_offset, at, end = part
            if first_queue_offset != queue.max_offset or queue.holds_delivery_times or not queue.simple:
                for _, physical_offset, size, timestamp, queue_offset, properties, _ in run.items_of(part):
                    self._append(queue, physical_offset, size, timestamp, queue_offset, properties)
                continue
            if entries is None:
                entries = memoryview(entries_of(run, self._tags))
            tail = queue.entries.tail[1]
            if not tail:
                self._queues.dirty.append(queue)
            tail += entries[at * ENTRY.size : end * ENTRY.size]
            queue.max_offset = queue.confirmed_offset = first_queue_offset + end - at
            queue.max_physical_offset = run.end_of(part)

    def _append(
        self, queue: TopicQueue, physical_offset: int, size: int, timestamp: int, queue_offset: int, properties: bytes
    ) -> None:
        """All but the common case: delay topic, batch queue, first entry of a queue, entries that are there already."""
        if queue.holds_delivery_times:
            code = self._tags.delivery_time(properties, timestamp)
        else:
            code = self._tags.code(properties)
        messages = 1
        if not queue.simple:
            base = whole_number(find_property(properties, b"INNER_BASE"))
            queue_offset = queue_offset if base is None else base
            count = whole_number(find_property(properties, b"INNER_NUM"))
            messages = count if count is not None and count <= MOST_BATCH_MESSAGES else 1
        was_empty = not queue.entries.tail[1]
        queue.append(physical_offset, size, code, queue_offset, timestamp, messages)
        if was_empty and queue.entries.tail[1]:
            self._queues.dirty.append(queue)

    def _feed_light_queues(
        self, queue: TopicQueue, physical_offset: int, size: int, timestamp: int, properties: bytes
    ) -> None:
        """RocketMQ: INNER_MULTI_DISPATCH names light queues, INNER_MULTI_QUEUE_OFFSET their offsets for this record."""
        if b"INNER_MULTI_QUEUE_OFFSET" not in properties or not takes_multi_dispatch(queue.topic):
            return
        for key, offset in light_claims(properties, queue.queue_id):
            light = self._queues.by_key.get(key)
            if light is None:
                light = self._queues.get_or_create(*key)
            self._append(light, physical_offset, size, timestamp, offset, properties)
            light.next_offset = max(light.next_offset, light.max_offset)


def light_claims(properties: bytes, queue_id: int) -> list[tuple[QueueKey, int]]:
    """The light queues that a record names in its properties, and its offset in each."""
    names = find_property(properties, b"INNER_MULTI_DISPATCH")
    offsets = find_property(properties, b"INNER_MULTI_QUEUE_OFFSET")
    if names is None or offsets is None:
        return []
    claims = []
    for key, text in zip(light_queue_keys(names, queue_id), offsets.split(b","), strict=False):
        offset = whole_number(text)
        if offset is None or not is_directory_name(key[0]):
            log.warning("light queue without a name or offset queue=%r offset=%r", key[0], text)
            continue
        claims.append((key, offset))
    return claims


def light_queues_of(head: RecordHead) -> set[QueueKey]:
    """The light queues that a record is in."""
    return {key for key, _ in light_claims(head.properties, head.queue_id)}


def light_queue_keys(names: bytes, queue_id: int) -> list[QueueKey]:
    """Topic and queue id of the light queues of a record in a queue; LMQs have only queue 0."""
    texts = names.decode("utf-8", "replace").split(",")
    return [(text, 0 if text.startswith(LMQ_PREFIX) else queue_id) for text in texts]
