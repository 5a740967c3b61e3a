"""Records → the queue entries and index keys that dispatch makes of them, as columns.

Prepared and rolled-back messages have no entry. The tags code is the hash of the tags, or, in the delay topic, the time
of delivery. A record may also enter light queues: its properties name them, and its place in each. The store's
dispatcher has its own code for this, and must: the readers of a store judge by this one what that one did.
"""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import NamedTuple, Protocol

import numpy as np
from numpy.typing import NDArray

from skyrocket.format import sys_flag as flags
from skyrocket.format.dtypes import Bools, Int64s
from skyrocket.format.index_keys import key_hashes, key_prefixes
from skyrocket.format.properties import whole_number
from skyrocket.format.queue_entry import MOST_BATCH_MESSAGES
from skyrocket.format.record_columns import Parts
from skyrocket.format.store_names import is_directory_name
from skyrocket.format.text_hashes import Texts, hash_texts
from skyrocket.model import property_names
from skyrocket.model.delay_level import DEFAULT_DELAY_LEVELS, parse_delay_levels
from skyrocket.model.topic import LMQ_PREFIX, SCHEDULE_TOPIC, takes_multi_dispatch

Claims = np.ndarray[tuple[int, ...], np.dtype[np.void]]
CLAIM_DTYPE = np.dtype(
    [
        ("queue", np.int32),  # its number in `QueueNumbers`
        ("queue_offset", np.int64),
        ("physical_offset", np.int64),
        ("size", np.int32),
        ("tags_code", np.int64),
        ("store_timestamp", np.int64),
        ("messages", np.int32),
    ]
)
KEY_DTYPE = np.dtype([("hash", "<i4"), ("physical_offset", "<i8"), ("store_timestamp", "<i8")])


class QueueName(NamedTuple):
    """A queue of a topic; light queues have a topic of their own."""

    topic: str
    queue_id: int

    def __str__(self) -> str:
        return f"{self.topic}/{self.queue_id}"


class PropertyColumns(Protocol):
    """The properties of a batch of records, by name."""

    def texts(self, name: str) -> Texts: ...


@dataclass(slots=True)
class QueueNumbers:
    """Numbers for the topics and queues that a reader meets."""

    topics: dict[bytes, int] = field(default_factory=dict)
    topic_names: list[str] = field(default_factory=list)
    queues: dict[QueueName, int] = field(default_factory=dict)
    queue_names: list[QueueName] = field(default_factory=list)
    _by_ids: dict[int, int] = field(default_factory=dict)  # topic number and queue id as one → queue number

    def of_topics(self, names: Iterable[bytes]) -> Int64s:
        """The number of each topic."""
        return np.array([self._topic(name) for name in names], dtype=np.int64)

    def of_queues(self, topic_numbers: Int64s, queue_ids: Int64s) -> Int64s:
        """The number of each record's queue."""
        ids, own = np.unique(topic_numbers << 32 | queue_ids & 0xFFFFFFFF, return_inverse=True)
        numbers = np.array([self._queue_by_ids(each) for each in ids.tolist()], dtype=np.int64)
        found: Int64s = numbers[own]
        return found

    def of_queue(self, name: QueueName) -> int:
        """The number of one queue."""
        number = self.queues.get(name)
        if number is None:
            number = self.queues[name] = len(self.queues)
            self.queue_names.append(name)
        return number

    def _topic(self, name: bytes) -> int:
        number = self.topics.get(name)
        if number is None:
            number = self.topics[name] = len(self.topic_names)
            self.topic_names.append(name.decode("utf-8", "replace"))
        return number

    def _queue_by_ids(self, ids: int) -> int:
        number = self._by_ids.get(ids)
        if number is None:
            queue_id = (ids & 0xFFFFFFFF) - (1 << 32 if ids & 0x80000000 else 0)
            number = self._by_ids[ids] = self.of_queue(QueueName(self.topic_names[ids >> 32], queue_id))
        return number


class IndexKeys(NamedTuple):
    """Keys in the order in which they are indexed."""

    table: NDArray[np.void]  # of KEY_DTYPE
    are_tags: Bools  # 4.9 and 5.3 do not write these


@dataclass(slots=True)
class Claimer:
    """Applies the rules of dispatch to batches of records."""

    numbers: QueueNumbers
    delay_levels: str = DEFAULT_DELAY_LEVELS
    batch_topics: frozenset[str] = frozenset()
    light_queues: bool = True
    removed_queues: Mapping[str, int] = field(default_factory=dict)  # records before this offset are not the queue's
    _prefixes: NDArray[np.uint32] = field(default_factory=lambda: key_prefixes([]))

    def claims(self, parts: Parts, properties: PropertyColumns, topic_numbers: Int64s) -> Claims:
        """The queue entries of these records; those of light queues come last."""
        heads = parts.heads
        queue_numbers = self.numbers.of_queues(topic_numbers, heads["queue_id"])
        tags_codes = _tags_codes(properties, len(parts))
        enters = parts.sys_flags & flags.TRANSACTION_PREPARED == 0  # rolled back: has this bit too
        enters &= ~self._removed(queue_numbers, heads["physical_offset"])
        claims = np.empty(len(parts), dtype=CLAIM_DTYPE)
        claims["queue"] = queue_numbers
        for name in ("queue_offset", "physical_offset", "size", "store_timestamp"):
            claims[name] = heads[name]
        claims["tags_code"] = tags_codes
        claims["messages"] = 1
        self._put_delivery_times(claims, properties, topic_numbers)
        self._put_batches(claims, properties, topic_numbers)
        if not enters.all():
            claims = claims[enters]
        if self.light_queues:
            light = self._light(parts, properties, topic_numbers, enters, tags_codes)
            claims = np.concatenate([claims, light]) if len(light) else claims
        return claims

    def keys(
        self, parts: Parts, properties: PropertyColumns, topic_numbers: Int64s, *, with_tags: bool = True
    ) -> IndexKeys:
        """The index keys of these records; rolled-back messages have none."""
        if len(self._prefixes) < len(self.numbers.topic_names):
            self._prefixes = key_prefixes(self.numbers.topic_names)
        unique_keys, keys = properties.texts(property_names.UNIQUE_KEY), properties.texts(property_names.KEYS)
        tags = properties.texts(property_names.TAGS) if with_tags else None
        found = key_hashes(unique_keys, keys, tags, self._prefixes[topic_numbers])
        indexed = (parts.sys_flags & flags.TRANSACTION_MASK != flags.TRANSACTION_ROLLBACK)[found.records]
        records = found.records[indexed]
        table = np.empty(len(records), dtype=KEY_DTYPE)
        table["hash"] = found.hashes[indexed]
        table["physical_offset"] = parts.heads["physical_offset"][records]
        table["store_timestamp"] = parts.heads["store_timestamp"][records]
        return IndexKeys(table, found.are_tags[indexed])

    def _removed(self, queue_numbers: Int64s, physical_offsets: Int64s) -> Bools:
        """Records of queues that were deleted after them: dispatch must not bring these back."""
        if not self.removed_queues:
            return np.zeros(len(queue_numbers), dtype=np.bool_)
        names = self.numbers.queue_names
        ends = np.array([self.removed_queues.get(str(name), 0) for name in names], dtype=np.int64)
        return physical_offsets < ends[queue_numbers]

    def _put_delivery_times(self, claims: Claims, properties: PropertyColumns, topic_numbers: Int64s) -> None:
        rows = np.flatnonzero(topic_numbers == self.numbers.topics.get(SCHEDULE_TOPIC.encode(), -1)).tolist()
        delays = parse_delay_levels(self.delay_levels) if rows else []
        levels = _values(properties.texts(property_names.DELAY_LEVEL)) if rows else {}
        for row in rows:
            try:
                level = min(int(levels.get(row, b"0")), len(delays))
            except ValueError:
                continue
            if level > 0:
                claims["tags_code"][row] = claims["store_timestamp"][row] + delays[level - 1]

    def _put_batches(self, claims: Claims, properties: PropertyColumns, topic_numbers: Int64s) -> None:
        """Entries of batch queues say how many messages they mean, and may begin elsewhere."""
        if not self.batch_topics:
            return
        are_batches = np.array([name in self.batch_topics for name in self.numbers.topic_names], dtype=np.bool_)
        rows = np.flatnonzero(are_batches[topic_numbers]).tolist()
        bases = _values(properties.texts(property_names.INNER_BASE)) if rows else {}
        counts = _values(properties.texts(property_names.INNER_NUM)) if rows else {}
        for row in rows:
            if (base := whole_number(bases.get(row))) is not None:
                claims["queue_offset"][row] = base
            if (count := whole_number(counts.get(row))) is not None and count <= MOST_BATCH_MESSAGES:
                claims["messages"][row] = count

    def _light(
        self, parts: Parts, properties: PropertyColumns, topic_numbers: Int64s, enters: Bools, tags_codes: Int64s
    ) -> Claims:
        offset_texts = _values(properties.texts(property_names.INNER_MULTI_QUEUE_OFFSET))
        name_texts = _values(properties.texts(property_names.INNER_MULTI_DISPATCH)) if offset_texts else {}
        queue_ids, stored = parts.heads["queue_id"], parts.heads["store_timestamp"]
        physical_offsets = parts.heads["physical_offset"]
        found = []
        for row, offsets in offset_texts.items():
            names = name_texts.get(row)
            if names is None or not enters[row] or not takes_multi_dispatch(self._topic_name(topic_numbers[row])):
                continue
            for topic, text in zip(names.decode("utf-8", "replace").split(","), offsets.split(b","), strict=False):
                if (offset := whole_number(text)) is not None and is_directory_name(topic):
                    light = QueueName(topic, 0 if topic.startswith(LMQ_PREFIX) else int(queue_ids[row]))
                    columns = (physical_offsets, parts.sizes, tags_codes, stored)
                    found.append((self.numbers.of_queue(light), offset, *(column[row] for column in columns), 1))
        return np.array(found, dtype=CLAIM_DTYPE)

    def _topic_name(self, number: np.int64) -> str:
        return self.numbers.topic_names[int(number)]


def _tags_codes(properties: PropertyColumns, count: int) -> Int64s:
    """Hashes of the complete TAGS texts; 0 without tags."""
    tags = properties.texts(property_names.TAGS)
    codes = np.zeros(count, dtype=np.int64)
    codes[tags.records] = hash_texts(tags, np.zeros(len(tags.records), dtype=np.uint32)).view(np.int32)
    return codes


def _values(texts: Texts) -> dict[int, bytes]:
    """The value of each record that has one."""
    columns = (texts.records.tolist(), texts.starts.tolist(), texts.ends.tolist())
    return {record: texts.data[start:end] for record, start, end in zip(*columns, strict=True)}
