"""What dispatch must have made of each record: queue entries and index keys, worked out a second time.

The store has its own code for this; the inspection does not use it, so that one error cannot hide another.
"""

from dataclasses import dataclass, field

import numpy as np
from numpy.typing import NDArray

from skyrocket.errors import DataError
from skyrocket.format.compression import plain_body
from skyrocket.format.crc import checksum
from skyrocket.format.java_hash import hash_many, java_hash
from skyrocket.format.record import CRC_PROPERTY, CRC_PROPERTY_BYTES, record_crc_property
from skyrocket.format.sys_flag import COMPRESSED, INNER_BATCH, TRANSACTION_MASK, TRANSACTION_PREPARED
from skyrocket.format.sys_flag import TRANSACTION_ROLLBACK as ROLLBACK
from skyrocket.inspector.record_columns import Int64s, RecordRun
from skyrocket.inspector.store_directory import QueueName
from skyrocket.model import property_names
from skyrocket.model.topic import LMQ_PREFIX, SCHEDULE_TOPIC, takes_multi_dispatch

UNKNOWN_LEVEL_DELAY_MS = 1000
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
    """Index entries that must exist, as columns, in the order in which dispatch writes them."""

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
class _Rows:
    """One chunk while it grows; a row number points into the run."""

    claim_rows: list[int] = field(default_factory=list)
    claim_queues: list[int] = field(default_factory=list)
    claim_offsets: list[int] = field(default_factory=list)
    claim_codes: list[int] = field(default_factory=list)
    claim_messages: list[int] = field(default_factory=list)
    key_rows: list[int] = field(default_factory=list)
    key_texts: list[bytes] = field(default_factory=list)
    key_tags: list[bool] = field(default_factory=list)
    bad: dict[int, BadBody] = field(default_factory=dict)


class DispatchRules:
    """Turns runs of records into chunks; numbers every queue that a record names."""

    def __init__(self, delay_levels: str) -> None:
        self.queue_names: list[QueueName] = []
        self._delays_ms = [int(text[:-1]) * _UNIT_MS[text[-1]] for text in delay_levels.split()]
        self._numbers: dict[tuple[bytes, int], int] = {}
        self._tags_codes: dict[bytes, int] = {}

    def chunk(self, run: RecordRun) -> LogChunk:
        """What the records of a run must have caused."""
        rows = _Rows()
        window, view = run.window, memoryview(run.window)
        columns = [run.starts, run.sizes, run.crcs, run.queue_ids, run.queue_offsets, run.sys_flags]
        columns += [run.body_starts, run.body_lengths, run.topic_starts, run.properties_starts]
        for row, fields in enumerate(zip(*(column.tolist() for column in columns), strict=True)):
            start, size, crc, queue_id, queue_offset, sys_flag, body_at, body_bytes, topic_at, properties_at = fields
            end = start + size
            properties = window[properties_at:end]
            body = view[body_at : body_at + body_bytes]
            if (body_bytes and checksum(body) != crc) or sys_flag & COMPRESSED or CRC_PROPERTY in properties[-20:]:
                problem = _content_problem(view[start:end], body, crc, sys_flag, properties)
                if problem is not None:
                    reason, damaged = problem
                    rows.bad[row] = BadBody(run.physical_offset + start, size, reason, damaged)
                    if damaged:
                        continue
            topic = window[topic_at : properties_at - 2]
            text = b"\x02" + properties
            tags = _value(text, _TAGS)
            transaction = sys_flag & TRANSACTION_MASK
            if transaction & TRANSACTION_PREPARED == 0:  # neither prepared nor rolled back
                rows.claim_rows.append(row)
                rows.claim_queues.append(self._number(topic, queue_id))
                rows.claim_offsets.append(queue_offset)
                code = self._tags_code(topic, tags, text, run, row)
                rows.claim_codes.append(code)
                rows.claim_messages.append(_number_in(_value(text, _INNER_NUM)) if sys_flag & INNER_BATCH else 1)
                if _MULTI_OFFSETS in text:
                    self._claim_light_queues(rows, row, topic, queue_id, code, text)
            if transaction != ROLLBACK:
                _collect_keys(rows, row, topic, text, tags)
        return _chunk(run, rows)

    def _number(self, topic: bytes, queue_id: int) -> int:
        number = self._numbers.get((topic, queue_id))
        if number is None:
            number = self._numbers[(topic, queue_id)] = len(self.queue_names)
            self.queue_names.append(QueueName(topic.decode("utf-8", "replace"), queue_id))
        return number

    def _tags_code(self, topic: bytes, tags: bytes, text: bytes, run: RecordRun, row: int) -> int:
        if topic == SCHEDULE_TOPIC.encode() and (delay := _value(text, _DELAY)):
            level = min(_number_in(delay), len(self._delays_ms))
            if level > 0:
                return int(run.store_timestamps[row]) + self._delays_ms[level - 1]
        code = self._tags_codes.get(tags)
        if code is None:
            code = java_hash(tags.decode("utf-8", "replace"))
            if len(self._tags_codes) < _MAX_REMEMBERED_TAGS:
                self._tags_codes[tags] = code
        return code

    def _claim_light_queues(self, rows: _Rows, row: int, topic: bytes, queue_id: int, code: int, text: bytes) -> None:
        if not takes_multi_dispatch(topic.decode("utf-8", "replace")):
            return
        names, offsets = _value(text, _MULTI_QUEUES).split(b","), _value(text, _MULTI_OFFSETS).split(b",")
        for name, offset in zip(names, offsets, strict=False):
            rows.claim_rows.append(row)
            light = name.startswith(LMQ_PREFIX.encode())
            rows.claim_queues.append(self._number(name, 0 if light else queue_id))
            rows.claim_offsets.append(_number_in(offset))
            rows.claim_codes.append(code)
            rows.claim_messages.append(1)


def stored_index_hashes(texts: list[bytes]) -> Int64s:
    """The hashes of many key texts as an index stores them."""
    hashes = np.abs(hash_many(texts).view(np.int32).astype(np.int64))
    hashes[hashes == 1 << 31] = 0
    return hashes


def index_texts(topic: bytes, properties: bytes) -> list[tuple[bytes, bool]]:
    """The key texts of one record, and whether each is that of its tags."""
    rows = _Rows()
    text = b"\x02" + properties
    _collect_keys(rows, 0, topic, text, _value(text, _TAGS))
    return list(zip(rows.key_texts, rows.key_tags, strict=True))


def _collect_keys(rows: _Rows, row: int, topic: bytes, text: bytes, tags: bytes) -> None:
    before = len(rows.key_texts)
    if unique_key := _value(text, _UNIQUE_KEY):
        rows.key_texts.append(topic + b"#" + unique_key)
    if keys := _value(text, _KEYS):
        rows.key_texts += [topic + b"#" + key for key in keys.split(b" ") if key]
    added = len(rows.key_texts) - before
    rows.key_tags += [False] * added
    if tags:
        rows.key_texts.append(topic + b"#T#" + tags)
        rows.key_tags.append(True)
        added += 1
    rows.key_rows += [row] * added


def _value(text: bytes, marker: bytes) -> bytes:
    """The last value of a property; `text` has a separator before its first name."""
    at = text.rfind(marker)
    if at < 0:
        return b""
    start = at + len(marker)
    end = text.find(b"\x02", start)
    return text[start:] if end < 0 else text[start:end]


def _number_in(text: bytes) -> int:
    try:
        return int(text)
    except ValueError:
        return -1


def _content_problem(
    whole: memoryview, body: memoryview, crc: int, sys_flag: int, properties: bytes
) -> tuple[str, bool] | None:
    if len(body) and (actual := checksum(body)) != crc:
        return f"body CRC {actual} differs from the stored {crc}", True
    sealed = properties[-CRC_PROPERTY_BYTES:]
    if sealed.startswith(CRC_PROPERTY) and record_crc_property(whole) != sealed:
        return "whole-record CRC differs", True
    if sys_flag & COMPRESSED and len(body):
        try:
            plain_body(bytes(body), sys_flag)
        except DataError as error:
            return str(error), False
    return None


def _chunk(run: RecordRun, rows: _Rows) -> LogChunk:
    offsets = run.physical_offsets
    claim_rows, key_rows = _column(rows.claim_rows), _column(rows.key_rows)
    intact = np.ones(len(offsets), dtype=np.bool_)
    intact[[row for row, bad in rows.bad.items() if bad.damaged]] = False
    return LogChunk(
        physical_offsets=offsets[intact],
        sizes=run.sizes[intact],
        store_timestamps=run.store_timestamps[intact],
        claims=Claims(
            queue_numbers=_column(rows.claim_queues),
            queue_offsets=_column(rows.claim_offsets),
            physical_offsets=offsets[claim_rows],
            sizes=run.sizes[claim_rows],
            tags_codes=_column(rows.claim_codes),
            store_timestamps=run.store_timestamps[claim_rows],
            messages=_column(rows.claim_messages),
        ),
        keys=IndexKeys(
            physical_offsets=offsets[key_rows],
            store_timestamps=run.store_timestamps[key_rows],
            hashes=stored_index_hashes(rows.key_texts),
            are_tags=np.array(rows.key_tags, dtype=np.bool_),
        ),
        bad_bodies=list(rows.bad.values()),
    )


def _column(values: list[int]) -> Int64s:
    return np.array(values, dtype=np.int64)
