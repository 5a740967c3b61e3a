"""Records → the queue entries that dispatch makes of them, as columns. The rules are those of the broker's dispatcher.

Prepared and rolled-back messages have no entry. The tags code is the hash of the tags, or, in the delay topic, the time
of delivery. A record may also enter light queues: its properties name them, and its place in each.
"""

from dataclasses import dataclass, field
from typing import NamedTuple

import numpy as np
import pyarrow as pa

from skyrocket.format import sys_flag as flags
from skyrocket.format.java_hash import java_hash
from skyrocket.format.record import Buffer
from skyrocket.model import property_names
from skyrocket.model.delay_level import parse_delay_levels
from skyrocket.model.topic import LMQ_PREFIX, SCHEDULE_TOPIC, takes_multi_dispatch
from skyrocket.pipeline.columns import Parts, PropertyBlocks, topics
from skyrocket.pipeline.columns.parts import Int64s
from skyrocket.pipeline.rebuild.rules import RebuildRules


class QueueName(NamedTuple):
    """A queue of a topic; light queues have a topic of their own."""

    topic: str
    queue_id: int

    def __str__(self) -> str:
        return f"{self.topic}/{self.queue_id}"


class BatchClaim(NamedTuple):
    """An entry of a batch queue; its place is the end of the queue."""

    queue: QueueName
    physical_offset: int
    size: int
    tags_code: int
    store_timestamp: int
    base_offset: int
    messages: int


CLAIM_DTYPE = np.dtype(
    [
        ("queue", np.int32),  # number of the queue in `Names`
        ("queue_offset", np.int64),
        ("physical_offset", np.int64),
        ("size", np.int32),
        ("tags_code", np.int64),
    ]
)
Claims = np.ndarray[tuple[int, ...], np.dtype[np.void]]


@dataclass(slots=True)
class Names:
    """Numbers for the topics and queues that one task meets."""

    topics: dict[bytes, int] = field(default_factory=dict)
    texts: list[str] = field(default_factory=list)  # topic by its number
    queues: dict[QueueName, int] = field(default_factory=dict)
    usable: list[bool] = field(default_factory=list)  # queue by its number: whether it can have a directory
    _by_place: dict[int, int] = field(default_factory=dict)  # topic and queue id as one number → queue

    def topic_numbers(self, column: pa.BinaryArray) -> Int64s:
        """The number of each record's topic."""
        encoded = column.dictionary_encode()
        own = np.array([self._topic(name) for name in encoded.dictionary.to_pylist()], dtype=np.int64)
        numbers: Int64s = own[encoded.indices.to_numpy()]
        return numbers

    def queue_numbers(self, topic_numbers: Int64s, queue_ids: Int64s) -> Int64s:
        """The number of each record's queue."""
        places, own = np.unique(topic_numbers << 32 | queue_ids & 0xFFFFFFFF, return_inverse=True)
        numbers = np.array([self._queue_at(place) for place in places.tolist()], dtype=np.int64)
        found: Int64s = numbers[own]
        return found

    def queue(self, name: QueueName) -> int:
        """The number of one queue."""
        number = self.queues.get(name)
        if number is None:
            number = self.queues[name] = len(self.queues)
            self.usable.append(is_directory_name(name.topic) and name.queue_id >= 0)
        return number

    def _topic(self, name: bytes) -> int:
        number = self.topics.get(name)
        if number is None:
            number = self.topics[name] = len(self.texts)
            self.texts.append(name.decode("utf-8", "replace"))
        return number

    def _queue_at(self, place: int) -> int:
        number = self._by_place.get(place)
        if number is None:
            queue_id = (place & 0xFFFFFFFF) - (1 << 32 if place & 0x80000000 else 0)
            number = self._by_place[place] = self.queue(QueueName(self.texts[place >> 32], queue_id))
        return number


class Claimed(NamedTuple):
    """What a batch of records claims."""

    simple: Claims
    batches: list[BatchClaim]
    unusable: int  # records whose queue cannot have a directory


@dataclass(slots=True)
class Claimer:
    """Applies the rules to batches of records."""

    rules: RebuildRules
    names: Names
    _codes: dict[str, int] = field(default_factory=dict)

    def claims(self, parts: Parts, blocks: PropertyBlocks, topic_numbers: Int64s) -> Claimed:
        """The entries of these records."""
        heads = parts.heads
        queue_numbers = self.names.queue_numbers(topic_numbers, heads["queue_id"])
        physical_offsets = heads["physical_offset"]
        codes = self._tags_codes(blocks)
        self._put_delivery_times(codes, blocks, topic_numbers, heads["store_timestamp"])
        enters = parts.sys_flags & flags.TRANSACTION_PREPARED == 0  # rolled back: has this bit too
        enters &= ~self._removed(queue_numbers, physical_offsets)
        unusable = ~np.array(self.names.usable, dtype=np.bool_)[queue_numbers]
        simple = enters & ~unusable
        batches: list[BatchClaim] = []
        if self.rules.batch_topics:
            of_batches = simple & self._of_batch_topics(topic_numbers)
            batches = self._batches(parts, blocks, np.flatnonzero(of_batches), queue_numbers, codes)
            simple &= ~of_batches
        rows = np.flatnonzero(simple)
        claims = np.empty(len(rows), dtype=CLAIM_DTYPE)
        claims["queue"] = queue_numbers[rows]
        claims["queue_offset"] = heads["queue_offset"][rows]
        claims["physical_offset"] = physical_offsets[rows]
        claims["size"] = parts.sizes[rows]
        claims["tags_code"] = codes[rows]
        if self.rules.light_queues:
            light = self._light(parts, blocks, np.flatnonzero(enters), topic_numbers)
            claims = np.concatenate([claims, light]) if len(light) else claims
        return Claimed(claims, batches, int((enters & unusable).sum()))

    def _tags_codes(self, blocks: PropertyBlocks) -> Int64s:
        """Hashes of the complete TAGS texts, 0 without tags; each text is hashed once."""
        encoded = blocks.column(property_names.TAGS).dictionary_encode()
        codes = np.array([self._code(text) for text in encoded.dictionary.to_pylist()] + [0], dtype=np.int64)
        found: Int64s = codes[encoded.indices.fill_null(-1).to_numpy()]
        return found

    def _code(self, tags: str) -> int:
        code = self._codes.get(tags)
        if code is None:
            if len(self._codes) > 100_000:
                self._codes.clear()
            code = self._codes[tags] = java_hash(tags)
        return code

    def _put_delivery_times(
        self, codes: Int64s, blocks: PropertyBlocks, topic_numbers: Int64s, store_timestamps: Int64s
    ) -> None:
        number = self.names.topics.get(SCHEDULE_TOPIC.encode())
        rows = np.flatnonzero(topic_numbers == number) if number is not None else ()
        if not len(rows):
            return
        delays = parse_delay_levels(self.rules.delay_levels)
        texts = blocks.column(property_names.DELAY_LEVEL).take(pa.array(rows)).to_pylist()
        for row, text in zip(rows, texts, strict=True):
            level = min(_number(text, 0), len(delays))
            if level > 0:
                codes[row] = store_timestamps[row] + delays[level - 1]

    def _removed(self, queue_numbers: Int64s, physical_offsets: Int64s) -> "np.ndarray[tuple[int], np.dtype[np.bool_]]":
        """Records of queues that were deleted after them: dispatch must not bring these back."""
        if not self.rules.removed_queues:
            return np.zeros(len(queue_numbers), dtype=np.bool_)
        ends = np.array([self.rules.removed_queues.get(str(name), 0) for name in self.names.queues], dtype=np.int64)
        return physical_offsets < ends[queue_numbers]

    def _of_batch_topics(self, topic_numbers: Int64s) -> "np.ndarray[tuple[int], np.dtype[np.bool_]]":
        are = np.array([text in self.rules.batch_topics for text in self.names.texts], dtype=np.bool_)
        found: np.ndarray[tuple[int], np.dtype[np.bool_]] = are[topic_numbers]
        return found

    def _batches(
        self, parts: Parts, blocks: PropertyBlocks, rows: Int64s, queue_numbers: Int64s, codes: Int64s
    ) -> list[BatchClaim]:
        if not len(rows):
            return []
        chosen = pa.array(rows)
        bases = blocks.column(property_names.INNER_BASE).take(chosen).to_pylist()
        counts = blocks.column(property_names.INNER_NUM).take(chosen).to_pylist()
        heads, queues = parts.heads, list(self.names.queues)
        columns = (queue_numbers, heads["physical_offset"], parts.sizes, codes, heads["store_timestamp"])
        offsets = heads["queue_offset"]
        claims = []
        for row, base, count in zip(rows.tolist(), bases, counts, strict=True):
            number, offset, size, code, stored = (int(column[row]) for column in columns)
            base_offset = _digits(base, int(offsets[row]))
            claims.append(BatchClaim(queues[number], offset, size, code, stored, base_offset, _digits(count, 1)))
        return claims

    def _light(self, parts: Parts, blocks: PropertyBlocks, rows: Int64s, topic_numbers: Int64s) -> Claims:
        offsets = blocks.column(property_names.INNER_MULTI_QUEUE_OFFSET)
        if offsets.null_count == len(offsets):
            return np.empty(0, dtype=CLAIM_DTYPE)
        rows = rows[offsets.is_valid().to_numpy(zero_copy_only=False)[rows]]
        chosen = pa.array(rows)
        codes = self._tags_codes(blocks)
        names = blocks.column(property_names.INNER_MULTI_DISPATCH).take(chosen).to_pylist()
        places = offsets.take(chosen).to_pylist()
        queue_ids, physical_offsets = parts.heads["queue_id"], parts.heads["physical_offset"]
        found = []
        for row, queues, offset_texts in zip(rows.tolist(), names, places, strict=True):
            if queues is None or not takes_multi_dispatch(self.names.texts[int(topic_numbers[row])]):
                continue
            for topic, offset in zip(queues.split(","), offset_texts.split(","), strict=False):
                if _digits(offset, -1) < 0 or not is_directory_name(topic):
                    continue
                light = QueueName(topic, 0 if topic.startswith(LMQ_PREFIX) else int(queue_ids[row]))
                number = self.names.queue(light)
                found.append((number, int(offset), int(physical_offsets[row]), int(parts.sizes[row]), int(codes[row])))
        return np.array(found, dtype=CLAIM_DTYPE)


def batch_topic_numbers(buffer: Buffer, parts: Parts, names: Names) -> Int64s:
    """The topics of a batch of records, as numbers."""
    return names.topic_numbers(topics(buffer, parts))


def is_directory_name(name: str) -> bool:
    """Whether a topic can have a directory of its own; a damaged name must not lead out of the tree."""
    return name not in ("", ".", "..") and "/" not in name and "\0" not in name


def _number(text: str | None, default: int) -> int:
    try:
        return int(text) if text is not None else default
    except ValueError:
        return default


def _digits(text: str | None, default: int) -> int:
    return int(text) if text is not None and text.isascii() and text.isdigit() else default
