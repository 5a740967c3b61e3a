"""Producer idempotence: a message that was sent again after a lost answer gets the answer of the first one.

Producers that want it number their messages (SKY_MSG_PID, SKY_MSG_SEQ). For each producer and queue the last numbers
are remembered with their receipts. What is older than the window is stored again: it promises nothing about retries
that come later than `most_per_queue` messages, or than `most` messages of all producers together.

The window lives in memory. After a start it is read again from the end of the log, which has the same properties.
"""

import logging
import re
from collections import OrderedDict
from collections.abc import Iterator
from typing import Final, NamedTuple

from skyrocket.format.message_id import offset_message_id
from skyrocket.format.properties import find_property, whole_number
from skyrocket.format.property_bytes import REAL_QUEUE_ID, SEND_PRODUCER_ID, SEND_SEQUENCE
from skyrocket.format.record import RecordHead
from skyrocket.format.record_search import possible_records
from skyrocket.model.message import Host
from skyrocket.model.topic import DLQ_PREFIX, RETRY_PREFIX
from skyrocket.observability.exposition import Kind, Metric
from skyrocket.store.commit_log import CommitLog

_logger = logging.getLogger(__name__)

_LONGEST_PRODUCER_ID: Final = 200
TAIL_BYTES: Final = 64 << 20

_MARKER: Final = re.compile(re.escape(SEND_SEQUENCE + b"\x01"))


class ProducerQueue(NamedTuple):
    """Where the numbers of one producer are counted."""

    producer_id: bytes
    topic: str
    queue_id: int


class Number(NamedTuple):
    """One message, however often it is sent."""

    producer_queue: ProducerQueue
    sequence: int


class Receipt(NamedTuple):
    """What the producer was told, or should have been."""

    unique_key: str
    queue_id: int
    message_ids: str
    queue_offset: int
    recall_handle: str
    end_offset: int  # of the record: an answer under SYNC_FLUSH waits for it


def number_of(topic: str, queue_id: int, properties: bytes) -> Number | None:
    """The number that a producer gave to its message; None without one that can be used.

    Retries of consumers carry the properties of the first message: their numbers mean nothing.
    """
    sequence = whole_number(find_property(properties, SEND_SEQUENCE))
    producer_id = find_property(properties, SEND_PRODUCER_ID)
    if sequence is None or producer_id is None or topic.startswith((RETRY_PREFIX, DLQ_PREFIX)):
        return None
    if len(producer_id) > _LONGEST_PRODUCER_ID:
        return None
    return Number(ProducerQueue(producer_id, topic, queue_id), sequence)


class DuplicateWindow:
    """The last numbers of each producer and queue, with the receipts of their messages."""

    def __init__(self, most_per_queue: int = 1000, most: int = 100_000) -> None:
        assert most >= most_per_queue >= 0
        self._most_per_queue = most_per_queue
        self._most = most
        self._by_producer: OrderedDict[ProducerQueue, OrderedDict[int, Receipt]] = (
            OrderedDict()
        )  # the least recently used first
        self.count = 0
        self.dropped = 0  # repetitions that were answered from the window

    def find(self, number: Number, unique_key: str) -> Receipt | None:
        """The receipt of the same message, if it was stored."""
        receipts = self._by_producer.get(number.producer_queue)
        if receipts is None:
            return None
        self._by_producer.move_to_end(number.producer_queue)
        found = receipts.get(number.sequence)
        if found is None or found.unique_key != unique_key:
            return None
        self.dropped += 1
        return found

    def remember(self, number: Number, receipt: Receipt) -> None:
        """A message was stored."""
        if not self._most_per_queue:
            return
        receipts = self._by_producer.setdefault(number.producer_queue, OrderedDict())
        self._by_producer.move_to_end(number.producer_queue)
        self.count += number.sequence not in receipts
        receipts[number.sequence] = receipt
        receipts.move_to_end(number.sequence)
        if len(receipts) > self._most_per_queue:
            receipts.popitem(last=False)
            self.count -= 1
        while self.count > self._most:
            producer_queue, oldest = next(iter(self._by_producer.items()))
            oldest.popitem(last=False)
            self.count -= 1
            if not oldest:
                del self._by_producer[producer_queue]

    def read_again(self, log: CommitLog, store_host: Host, tail_bytes: int = TAIL_BYTES) -> int:
        """Remember what the end of the log tells; returns how many messages. Raises nothing for damaged records."""
        if not self._most_per_queue:
            return 0
        found = 0
        for head in _numbered_records(log, max(log.readable_offset - tail_bytes, log.min_offset)):
            topic = (find_property(head.properties, b"REAL_TOPIC") or head.topic).decode("utf-8", "replace")
            real_queue_id = whole_number(find_property(head.properties, REAL_QUEUE_ID))
            queue_id = head.queue_id if real_queue_id is None else real_queue_id
            number = number_of(topic, queue_id, head.properties)
            unique_key = (find_property(head.properties, b"UNIQ_KEY") or b"").decode("utf-8", "replace")
            if number is None or number.sequence in self._by_producer.get(number.producer_queue, ()):
                continue  # the delivered copy of a delayed message, or of a half
            message_id = offset_message_id(store_host, head.physical_offset)
            end_offset = head.physical_offset + head.size
            self.remember(number, Receipt(unique_key, queue_id, message_id, head.queue_offset, "", end_offset))
            found += 1
        if found:
            _logger.info("numbers of producers were read from the log messages=%d", found)
        return found

    def metrics(self) -> Iterator[Metric]:
        """What the window holds, and how often it was needed."""
        held = Metric("skyrocket_duplicate_window_messages", Kind.GAUGE, "Numbered messages that are remembered")
        held.add(self.count)
        yield held
        dropped = Metric("skyrocket_duplicate_sends_total", Kind.COUNTER, "Sends that repeated a stored message")
        dropped.add(self.dropped)
        yield dropped


def _numbered_records(log: CommitLog, offset: int) -> Iterator[RecordHead]:
    """Records with a number from some offset on, which need not be where a record begins."""
    while offset < log.readable_offset:
        view = log.raw(offset, log.file_size)
        if view is None:
            return
        following = (offset // log.file_size + 1) * log.file_size
        if _MARKER.search(view) is not None:  # most logs have none: then a file is only searched, not walked
            first = next(possible_records(view, 0, len(view), offset), None)
            walked = None if first is None else log.walk(offset + first)
            if walked is not None:
                yield from (head for head in walked[0] if SEND_SEQUENCE in head.properties)
        offset = following
