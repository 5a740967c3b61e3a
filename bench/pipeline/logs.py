"""Commit logs made fast: records of one shape, a million in a second or two, their fields written as numpy columns."""

from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from skyrocket.format.record import PHYSICAL_OFFSET_AT, QUEUE_OFFSET_AT, encode_blank, encode_record
from skyrocket.model.message import Host, StoredMessage

QUEUE_ID_AT = 12
STORE_TIMESTAMP_AT = 56
FIRST_TIME_MS = 1_700_000_000_000
_PIECE = 50_000
_TAIL_BYTES = 4096
_HEX = np.frombuffer(b"0123456789ABCDEF", dtype=np.uint8)


@dataclass(frozen=True)
class LogShape:
    """How many messages of which size, over how many queues."""

    messages: int
    body_bytes: int = 256
    topics: int = 8
    queues_per_topic: int = 8
    file_size: int = 1 << 30

    @property
    def queues(self) -> int:
        return self.topics * self.queues_per_topic


def write_log(store: Path, shape: LogShape) -> int:
    """Write `store/commitlog`; returns the bytes of all records."""
    directory = store / "commitlog"
    directory.mkdir(parents=True)
    size = len(_template(shape))
    per_file = (shape.file_size - 8) // size
    for first in range(0, shape.messages, per_file):
        base = first // per_file * shape.file_size
        count = min(per_file, shape.messages - first)
        with (directory / f"{base:020d}").open("wb") as file:
            for piece in _pieces(shape, first, count, base):
                file.write(piece)
            if first + count < shape.messages:
                file.write(encode_blank(shape.file_size - count * size))
                file.truncate(shape.file_size)
            else:  # a copy of the log need not have the whole of its last file
                file.truncate(count * size + _TAIL_BYTES)
    return shape.messages * size


def _pieces(shape: LogShape, first: int, count: int, base: int) -> Iterator[memoryview]:
    template = np.frombuffer(_template(shape), dtype=np.uint8)
    size = len(template)
    for start in range(0, count, _PIECE):
        numbers = np.arange(first + start, first + min(start + _PIECE, count))
        rows = np.tile(template, (len(numbers), 1))
        queues = numbers % shape.queues
        _put(rows, QUEUE_ID_AT, 4, queues // shape.topics)
        _put(rows, QUEUE_OFFSET_AT, 8, numbers // shape.queues)
        _put(rows, PHYSICAL_OFFSET_AT, 8, base + (numbers - first) * size)
        _put(rows, STORE_TIMESTAMP_AT, 8, FIRST_TIME_MS + numbers // 20)
        text = _template(shape)
        for marker, values in ((b"tttt", queues % shape.topics), (b"uuuu", numbers >> 16), (b"vvvv", numbers)):
            _put_digits(rows, text.index(marker), values)
        _put_digits(rows, text.index(b"kkkk"), numbers * 40503)  # keys in no order
        rows[:, text.index(b"gggg")] = 65 + numbers % 5
        yield memoryview(rows.tobytes())


def _template(shape: LogShape) -> bytes:
    properties = (
        b"UNIQ_KEY\x01" + b"0" * 24 + b"uuuuvvvv\x02KEYS\x01order-kkkk\x02TAGS\x01gggg\x02WAIT\x01true\x02"
        b"CLUSTER\x01DefaultCluster\x02"
    )
    body = bytes(range(48, 122)) * (shape.body_bytes // 74 + 1)
    message = StoredMessage(
        topic="topic-tttt",
        queue_id=0,
        queue_offset=0,
        physical_offset=0,
        record_size=0,
        flag=0,
        sys_flag=0,
        born_timestamp=FIRST_TIME_MS,
        born_host=Host(bytes((10, 0, 0, 1)), 50_001),
        store_timestamp=FIRST_TIME_MS,
        store_host=Host(bytes((10, 0, 0, 2)), 10_911),
        reconsume_times=0,
        prepared_transaction_offset=0,
        body_crc=0,
        body=body[: shape.body_bytes],
    )
    return encode_record(message, properties)


def _put(rows: NDArray[np.uint8], at: int, width: int, values: NDArray[np.int64]) -> None:
    rows[:, at : at + width] = values.astype(f">i{width}").view(np.uint8).reshape(-1, width)


def _put_digits(rows: NDArray[np.uint8], at: int, values: NDArray[np.int64]) -> None:
    """The lowest four hexadecimal digits."""
    for digit in range(4):
        rows[:, at + digit] = _HEX[values >> 4 * (3 - digit) & 15]
