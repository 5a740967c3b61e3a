"""Whether a queue's entries mean the records of that queue: looked at before anything is handed out.

Each record that is read is compared with its entry (size, place, number). Topic, queue id and number are compared on
samples when a file is read for the first time in this run: they tell files of two queues apart that somebody mixed up.

No checksum covers the queue offset in a record. When it alone differs and the entries around it are right, the record
is handed out with the number that its entry has: consumers commit by it.
"""

import logging
from collections.abc import Callable, Iterator
from typing import NoReturn

from skyrocket.errors import CorruptFile, CorruptRecord
from skyrocket.format.crc import CRC_PROPERTY, CRC_PROPERTY_BYTES, record_crc_property
from skyrocket.format.queue_entry import BATCH_ENTRY_SIZE, ENTRY_SIZE, PREFILL_SIZE
from skyrocket.format.record import MAGIC_V1, MAGIC_V2, QUEUE_OFFSET_AT, RecordHead, read_head, some_fields
from skyrocket.format.store_names import offset_name
from skyrocket.model.topic import LMQ_PREFIX
from skyrocket.store.batch_consume_queue import BatchConsumeQueue
from skyrocket.store.consume_queue import ConsumeQueue
from skyrocket.store.dispatcher import light_claims
from skyrocket.store.topic_queue import TopicQueue

log = logging.getLogger(__name__)

HEAD = some_fields("size", "magic", "queue_offset", "physical_offset")
_SAMPLES = 8
_REPORTED = 1000


class EntryCheck:
    """Compares entries with records; `record_at` gives the record at a physical offset, or None."""

    def __init__(self, record_at: Callable[[int], memoryview | None], *, light_queues: bool) -> None:
        self._record_at = record_at
        self._light_queues = light_queues  # any queue may hold records that say their number in another queue
        self._reported: set[int] = set()  # records whose wrong number was named already

    def _may_differ(self, queue: TopicQueue) -> bool:
        """Whether records of a queue say another number than their entries: they are numbered in another queue."""
        return self._light_queues or queue.topic.startswith(LMQ_PREFIX)

    # -- one record ------------------------------------------------------------------------------------

    def checked(
        self, view: memoryview, queue: TopicQueue, queue_offset: int, entry: tuple[int, int], position: int
    ) -> memoryview:
        """The record that an entry (physical offset, size) means, with the right number; refuses any other bytes.

        `position` is the entry's place, in bytes of the queue.
        """
        physical_offset, size = entry
        head = bytes(view[: HEAD.size]).ljust(HEAD.size, b"\0")  # a damaged size may leave too few bytes
        stored_size, magic, stored_queue_offset, stored_offset = HEAD.unpack(head)
        if stored_size != size or magic not in (MAGIC_V1, MAGIC_V2) or stored_offset != physical_offset:
            found = f"size {stored_size}, queue offset {stored_queue_offset}, physical offset {stored_offset}"
            self.refuse(queue, queue_offset, entry, position, found)
        if stored_queue_offset == queue_offset or self._may_differ(queue):
            return view
        if self._is_light(view, queue, physical_offset):
            return view
        if not self._is_misnumbered(view, queue, physical_offset, position):
            self.refuse(queue, queue_offset, entry, position, f"queue offset {stored_queue_offset} there")
        return self._renumbered(view, queue, queue_offset, physical_offset)

    def _is_light(self, view: memoryview, queue: TopicQueue, physical_offset: int) -> bool:
        head = _head(view, physical_offset)
        return head is not None and _is_light_record(head, queue)

    def _is_misnumbered(self, view: memoryview, queue: TopicQueue, physical_offset: int, position: int) -> bool:
        """Whether a record is of this queue and stands in the log between those beside it, of which one is right.

        Then its own number is damaged.
        """
        head = _head(view, physical_offset)
        if head is None or (head.topic.decode("utf-8", "replace"), head.queue_id) != (queue.topic, queue.queue_id):
            return False
        before, after = _beside(queue, position, -1), _beside(queue, position, 1)
        if (before is not None and before[1] >= physical_offset) or (after is not None and after[1] <= physical_offset):
            return False
        beside = [each for each in (before, after) if each is not None]
        return not beside or any(self._is_right(number, place) for number, place in beside)

    def _is_right(self, queue_offset: int, physical_offset: int) -> bool:
        record = self._record_at(physical_offset)
        return record is not None and HEAD.unpack_from(record)[2] == queue_offset

    def _renumbered(self, view: memoryview, queue: TopicQueue, queue_offset: int, physical_offset: int) -> memoryview:
        if physical_offset not in self._reported and len(self._reported) < _REPORTED:
            self._reported.add(physical_offset)
            log.error(
                "the queue offset in a record is damaged, consumers get that of its queue topic=%s queue=%d record=%d "
                "queue_offset=%d",
                queue.topic,
                queue.queue_id,
                physical_offset,
                queue_offset,
            )
        record = bytearray(view)
        record[QUEUE_OFFSET_AT : QUEUE_OFFSET_AT + 8] = queue_offset.to_bytes(8, "big", signed=True)
        return memoryview(bytes(record))

    def refuse(
        self,
        queue: TopicQueue,
        queue_offset: int,
        entry: tuple[int, int],
        position: int,
        found: str = "no such record",
    ) -> NoReturn:
        """Say that an entry cannot be right."""
        physical_offset, size = entry
        what = f"entry {queue_offset} points to physical offset {physical_offset} (size {size}); the log has {found}"
        self._refuse_file(queue, position, what)

    def _refuse_file(self, queue: TopicQueue, position: int, what: str) -> NoReturn:
        start = position - position % queue.entries.file_size
        raise CorruptFile(
            f"{queue.entries.directory}/{offset_name(start)}",
            what,
            "Stop the broker and run `skyrocket repair` on the store: it rebuilds the queue from the log",
            position - start,
        )

    def means_own(self, queue: TopicQueue, physical_offset: int, size: int) -> bool:
        """Whether a record of a queue, or one that names it in its properties, has this place and size."""
        record = self._record_at(physical_offset)
        head = _head(record, physical_offset) if record is not None else None
        return head is not None and head.size == size and bool(_numbers_in(head, queue))

    # -- a file ----------------------------------------------------------------------------------------

    def trust_file(self, queue: TopicQueue, position: int) -> None:
        """Compare topic, queue and number of samples, once for the file that a position of a queue lies in.

        One wrong number is a damaged record; several tell a light queue's file from that of the queue it is fed by.
        """
        start = position - position % queue.entries.file_size
        looked_at = foreign = misnumbered = 0
        wrong = "say other numbers"
        for number, place in _samples(queue, start):
            record = self._record_at(place)
            head = _head(record, place) if record is not None else None
            if head is None:
                continue  # it left the log, or is damaged: reading it will tell
            looked_at += 1
            numbers = _numbers_in(head, queue)
            if not numbers and record is not None and _breaks_seal(record, head):
                continue  # perhaps its name alone is damaged: the queue would lose what only its entry still tells
            if not numbers:
                foreign += 1
                wrong = f"are of {head.topic.decode('utf-8', 'replace')}/{head.queue_id}, not of this queue"
            elif number is not None and number not in numbers:
                misnumbered += 1
        if (foreign + (misnumbered if misnumbered > 1 else 0)) * 2 > looked_at:
            self._refuse_file(queue, start, f"the records that its entries mean {wrong}")
        queue.entries.trusted.add(start)


def _head(record: memoryview, physical_offset: int) -> RecordHead | None:
    try:
        return read_head(record, 0, physical_offset)
    except CorruptRecord:
        return None


def _breaks_seal(record: memoryview, head: RecordHead) -> bool:
    """Whether a record with a checksum over all of it differs from that; most records have none."""
    sealed = record[: head.size]
    return CRC_PROPERTY in head.properties and sealed[-CRC_PROPERTY_BYTES:] != record_crc_property(sealed)


def _is_light_record(head: RecordHead, queue: TopicQueue) -> bool:
    """Whether a record names a queue in its properties; light queues of ordinary names have its own queue id."""
    return bool(_light_numbers(head, queue))


def _light_numbers(head: RecordHead, queue: TopicQueue) -> list[int]:
    """The numbers that a record has in a queue which it names in its properties."""
    if b"INNER_MULTI_DISPATCH" not in head.properties:
        return []
    claims = light_claims(head.properties, head.queue_id)
    return [number for key, number in claims if key == (queue.topic, queue.queue_id)]


def _numbers_in(head: RecordHead, queue: TopicQueue) -> list[int]:
    """The numbers that a record says it has in a queue; none when it is not of this queue."""
    own = (head.topic.decode("utf-8", "replace"), head.queue_id) == (queue.topic, queue.queue_id)
    return [*([head.queue_offset] if own else []), *_light_numbers(head, queue)]


def _beside(queue: TopicQueue, position: int, step: int) -> tuple[int, int] | None:
    """Number and place of the record of the entry before (-1) or after (1) one; None when there is none."""
    if isinstance(queue, BatchConsumeQueue):
        number = position // BATCH_ENTRY_SIZE + step
        if not queue.first_entry <= number < queue.end_entry:
            return None
        batch = queue.entry_at(number)
        return batch.base_offset, batch.physical_offset
    assert isinstance(queue, ConsumeQueue)
    number = position // ENTRY_SIZE + step
    entry = queue.entry(number)
    return (number, entry.physical_offset) if entry is not None and entry.size != PREFILL_SIZE else None


def _samples(queue: TopicQueue, start: int) -> Iterator[tuple[int | None, int]]:
    """Numbers and places of the records of some entries of a file, spread over it.

    A batch queue's entries say their numbers themselves: None.
    """
    size = queue.entries.entry_size
    first = start // size
    end = min(start + queue.entries.file_size, queue.entries.end) // size
    if isinstance(queue, ConsumeQueue):
        first = max(first, queue.min_offset)
    for sample in range(_SAMPLES):
        number = first + (end - first) * sample // _SAMPLES
        if number >= end or (sample and number == first + (end - first) * (sample - 1) // _SAMPLES):
            continue
        if isinstance(queue, BatchConsumeQueue):
            yield None, queue.entry_at(number).physical_offset
        elif isinstance(queue, ConsumeQueue):
            entry = queue.entry(number)
            if entry is not None and entry.size != PREFILL_SIZE:
                yield number, entry.physical_offset
