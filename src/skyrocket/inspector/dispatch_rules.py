"""What dispatch must have made of each record: queue entries and index keys, worked out a second time.

The store has its own code for this; the inspection does not use it, so that one error cannot hide another.
"""

from dataclasses import dataclass, field, fields

import numpy as np
from numpy.typing import NDArray

from skyrocket.errors import DataError
from skyrocket.format.compression import plain_body
from skyrocket.format.crc import checksum
from skyrocket.format.index_layout import index_hash, tag_text
from skyrocket.format.java_hash import hash_many, java_hash
from skyrocket.format.record import CRC_PROPERTY, CRC_PROPERTY_BYTES, record_crc_property
from skyrocket.format.sys_flag import COMPRESSED, INNER_BATCH, TRANSACTION_MASK, TRANSACTION_PREPARED
from skyrocket.format.sys_flag import TRANSACTION_ROLLBACK as ROLLBACK
from skyrocket.inspector.record_columns import Int64s, RecordRun
from skyrocket.inspector.store_directory import QueueName
from skyrocket.model import property_names
from skyrocket.model.topic import LMQ_PREFIX, SCHEDULE_TOPIC, takes_multi_dispatch

_UNIT_MS = {"s": 1000, "m": 60_000, "h": 3_600_000, "d": 86_400_000}
_MAX_REMEMBERED_TAGS = 100_000


def _marker(name: str) -> bytes:
    return b"\x02" + name.encode() + b"\x01"


_UNIQUE_KEY = _marker(property_names.UNIQUE_KEY)
_KEYS = _marker(property_names.KEYS)
_TAGS = _marker(property_names.TAGS)
_DELAY = _marker(property_names.DELAY_LEVEL)
_MULTI_QUEUES = _marker(property_names.INNER_MULTI_DISPATCH)
_MULTI_OFFSETS = _marker(property_names.INNER_MULTI_QUEUE_OFFSET)
_MULTI_OFFSETS_NAME = property_names.INNER_MULTI_QUEUE_OFFSET.encode()
_INNER_NUM = _marker(property_names.INNER_NUM)


@dataclass(frozen=True, slots=True)
class Claims:
    """Queue entries that must exist, as columns: which queue, at which queue offset, with which content."""

    queue_numbers: Int64s
    queue_offsets: Int64s
    physical_offsets: Int64s
    sizes: Int64s
    tags_codes: Int64s
    store_timestamps: Int64s
    messages: Int64s


@dataclass(frozen=True, slots=True)
class IndexKeys:
    """Index entries that must exist, as columns: keys in log order, then tags in log order."""

    physical_offsets: Int64s
    store_timestamps: Int64s
    hashes: Int64s
    are_tags: NDArray[np.bool_]  # 4.9 and 5.3 do not write these


@dataclass(frozen=True, slots=True)
class BadBody:
    """A record whose layout is intact and whose content is not."""

    physical_offset: int
    size: int
    reason: str
    damaged: bool  # false: the checksum is right, but the body does not inflate


@dataclass(frozen=True, slots=True)
class LogChunk:
    """Everything that one run of records says."""

    physical_offsets: Int64s
    sizes: Int64s
    store_timestamps: Int64s
    claims: Claims
    keys: IndexKeys
    bad_bodies: list[BadBody]


@dataclass(slots=True)
class _Topic:
    """What is the same for all records of a topic."""

    name: str
    prefix: bytes  # of its index keys
    delays: bool
    queue_numbers: dict[int, int] = field(default_factory=dict)
    tag_hashes: dict[bytes, tuple[int, int]] = field(default_factory=dict)  # tags → tags code, index hash


@dataclass(slots=True)
class _Rows:
    """One chunk while it grows. `queues` and `codes` have an item per record, the others only where needed."""

    queues: list[int] = field(default_factory=list)  # -1: enters no queue
    codes: list[int] = field(default_factory=list)
    batch_messages: dict[int, int] = field(default_factory=dict)
    light: list[tuple[int, int, int]] = field(default_factory=list)  # row, queue number, queue offset
    key_rows: list[int] = field(default_factory=list)
    key_texts: list[bytes] = field(default_factory=list)
    tag_rows: list[int] = field(default_factory=list)
    tag_hashes: list[int] = field(default_factory=list)
    bad: dict[int, BadBody] = field(default_factory=dict)


class DispatchRules:
    """Turns runs of records into chunks; numbers every queue that a record names."""

    def __init__(self, delay_levels: str) -> None:
        self.queue_names: list[QueueName] = []
        self._delays_ms = [int(text[:-1]) * _UNIT_MS[text[-1]] for text in delay_levels.split()]
        self._topics: dict[bytes, _Topic] = {}

    def chunk(self, run: RecordRun) -> LogChunk:
        """What the records of a run must have caused."""
        rows = _Rows()
        window, view = run.window, memoryview(run.window)
        columns = [run.starts, run.starts + run.sizes, run.crcs, run.queue_ids, run.sys_flags]
        columns += [run.body_starts, run.body_lengths, run.topic_starts, run.properties_starts]
        # Runs for every record of the log: locals and flat code, helpers only for what is rare.
        for row, values in enumerate(zip(*(column.tolist() for column in columns), strict=True)):
            start, end, crc, queue_id, sys_flag, body_at, body_bytes, topic_at, properties_at = values
            sealed = window.startswith(CRC_PROPERTY, end - CRC_PROPERTY_BYTES)
            body = view[body_at : body_at + body_bytes]
            if sealed or sys_flag & COMPRESSED or (body_bytes and checksum(body) != crc):
                problem = _content_problem(view[start:end], body, crc, sys_flag, sealed)
                if problem is not None:
                    rows.bad[row] = BadBody(run.physical_offset + start, end - start, *problem)
                    if problem[1]:
                        rows.queues.append(-1)
                        rows.codes.append(0)
                        continue
            topic_name = window[topic_at : properties_at - 2]
            topic = self._topics.get(topic_name) or self._new_topic(topic_name)
            tags = _value(window, _TAGS, properties_at, end)
            hashes = topic.tag_hashes.get(tags) or _hash_tags(topic, tags)
            code = hashes[0]
            if topic.delays:
                code = self._delivery_time(window[properties_at:end], run, row) or code
            rows.codes.append(code)
            transaction = sys_flag & TRANSACTION_MASK
            if transaction & TRANSACTION_PREPARED:  # or rolled back
                rows.queues.append(-1)
            else:
                number = topic.queue_numbers.get(queue_id)
                rows.queues.append(self._new_queue(topic, queue_id) if number is None else number)
                if sys_flag & INNER_BATCH:
                    rows.batch_messages[row] = _number_in(_value(window, _INNER_NUM, properties_at, end))
                if window.find(_MULTI_OFFSETS_NAME, properties_at, end) >= 0:
                    self._claim_light_queues(rows, row, topic, queue_id, window[properties_at:end])
            if transaction == ROLLBACK:
                continue
            if unique_key := _value(window, _UNIQUE_KEY, properties_at, end):
                rows.key_texts.append(topic.prefix + unique_key)
                rows.key_rows.append(row)
            if keys := _value(window, _KEYS, properties_at, end):
                texts = [topic.prefix + key for key in keys.split(b" ") if key]
                rows.key_texts += texts
                rows.key_rows += [row] * len(texts)
            if tags:
                rows.tag_rows.append(row)
                rows.tag_hashes.append(hashes[1])
        return _chunk(run, rows)

    def _new_topic(self, name: bytes) -> _Topic:
        text = name.decode("utf-8", "replace")
        topic = self._topics[name] = _Topic(text, name + b"#", text == SCHEDULE_TOPIC)
        return topic

    def _new_queue(self, topic: _Topic, queue_id: int) -> int:
        number = topic.queue_numbers[queue_id] = len(self.queue_names)
        self.queue_names.append(QueueName(topic.name, queue_id))
        return number

    def _delivery_time(self, properties: bytes, run: RecordRun, row: int) -> int | None:
        """What stands for the tags code of a delayed message."""
        level = min(_number_in(_value(properties, _DELAY, 0, len(properties))), len(self._delays_ms))
        return int(run.store_timestamps[row]) + self._delays_ms[level - 1] if level > 0 else None

    def _claim_light_queues(self, rows: _Rows, row: int, topic: _Topic, queue_id: int, properties: bytes) -> None:
        if not takes_multi_dispatch(topic.name):
            return
        names = _value(properties, _MULTI_QUEUES, 0, len(properties)).split(b",")
        offsets = _value(properties, _MULTI_OFFSETS, 0, len(properties)).split(b",")
        for name, offset in zip(names, offsets, strict=False):
            light = self._topics.get(name) or self._new_topic(name)
            light_id = 0 if light.name.startswith(LMQ_PREFIX) else queue_id
            number = light.queue_numbers.get(light_id)
            number = self._new_queue(light, light_id) if number is None else number
            rows.light.append((row, number, _number_in(offset)))


def stored_index_hashes(texts: list[bytes]) -> Int64s:
    """The hashes of many key texts as an index stores them."""
    hashes = np.abs(hash_many(texts).view(np.int32).astype(np.int64))
    hashes[hashes == 1 << 31] = 0
    return hashes


def joined_claims(parts: list[Claims]) -> Claims:
    """The claims of several chunks, in order."""
    names = [column.name for column in fields(Claims)]
    columns = {name: [getattr(part, name) for part in parts] for name in names}
    return Claims(**{name: np.concatenate([_column([]), *column]) for name, column in columns.items()})


def _hash_tags(topic: _Topic, tags: bytes) -> tuple[int, int]:
    if len(topic.tag_hashes) >= _MAX_REMEMBERED_TAGS:
        topic.tag_hashes.clear()
    text = tags.decode("utf-8", "replace")
    hashes = topic.tag_hashes[tags] = (java_hash(text), index_hash(tag_text(topic.name, text)))
    return hashes


def _value(window: bytes, marker: bytes, start: int, end: int) -> bytes:
    """The last value of a property between two positions; a marker begins with the separator before the name."""
    at = window.rfind(marker, start, end)
    if at < 0:
        if not window.startswith(marker[1:], start, end):
            return b""
        at = start - 1
    value_at = at + len(marker)
    value_end = window.find(b"\x02", value_at, end)
    return window[value_at : end if value_end < 0 else value_end]


def _number_in(text: bytes) -> int:
    try:
        return int(text)
    except ValueError:
        return -1


def _content_problem(
    whole: memoryview, body: memoryview, crc: int, sys_flag: int, sealed: bool
) -> tuple[str, bool] | None:
    """What is wrong with the content of a record, and whether the bytes themselves are damaged."""
    if len(body) and (actual := checksum(body)) != crc:
        return f"body CRC {actual} differs from the stored {crc}", True
    if sealed and record_crc_property(whole) != whole[-CRC_PROPERTY_BYTES:]:
        return "whole-record CRC differs", True
    if sys_flag & COMPRESSED and len(body):
        try:
            plain_body(bytes(body), sys_flag)
        except DataError as error:
            return str(error), False
    return None


def _chunk(run: RecordRun, rows: _Rows) -> LogChunk:
    offsets = run.physical_offsets
    intact = np.ones(len(offsets), dtype=np.bool_)
    intact[[row for row, bad in rows.bad.items() if bad.damaged]] = False
    key_rows = _column(rows.key_rows + rows.tag_rows)
    return LogChunk(
        physical_offsets=offsets[intact],
        sizes=run.sizes[intact],
        store_timestamps=run.store_timestamps[intact],
        claims=_claims(run, rows),
        keys=IndexKeys(
            physical_offsets=offsets[key_rows],
            store_timestamps=run.store_timestamps[key_rows],
            hashes=np.concatenate([stored_index_hashes(rows.key_texts), _column(rows.tag_hashes)]),
            are_tags=np.arange(len(key_rows)) >= len(rows.key_rows),
        ),
        bad_bodies=list(rows.bad.values()),
    )


def _claims(run: RecordRun, rows: _Rows) -> Claims:
    numbers, codes = _column(rows.queues), _column(rows.codes)
    messages = np.ones(len(numbers), dtype=np.int64)
    messages[list(rows.batch_messages)] = list(rows.batch_messages.values())
    light = np.array(rows.light, dtype=np.int64).reshape(-1, 3)
    main = np.flatnonzero(numbers >= 0)
    both = np.concatenate([main, light[:, 0]])
    return Claims(
        queue_numbers=np.concatenate([numbers[main], light[:, 1]]),
        queue_offsets=np.concatenate([run.queue_offsets[main], light[:, 2]]),
        physical_offsets=run.physical_offsets[both],
        sizes=run.sizes[both],
        tags_codes=codes[both],
        store_timestamps=run.store_timestamps[both],
        messages=messages[both],
    )


def _column(values: list[int]) -> Int64s:
    return np.array(values, dtype=np.int64)
