"""Where the parts of many records lie: fixed fields gathered at once, and starts and lengths of the variable parts.

`numpy.ndarray` with a stride of one byte lays the record's head over *every* byte of the buffer. Indexing it with the
positions of records copies all heads in one C loop. Hosts are 8 or 20 bytes wide, so there are four layouts; a batch
hardly ever has more than one, and then nothing is put together again.
"""

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from skyrocket.format import record
from skyrocket.format.record import Buffer

Int64s = NDArray[np.int64]
Bools = NDArray[np.bool_]
Bytes = NDArray[np.uint8]


def _layout(born_host_bytes: int, store_host_bytes: int) -> np.dtype[np.void]:
    return np.dtype(
        [
            ("size", ">i4"),
            ("magic", ">i4"),
            ("body_crc", ">i4"),
            ("queue_id", ">i4"),
            ("flag", ">i4"),
            ("queue_offset", ">i8"),
            ("physical_offset", ">i8"),
            ("sys_flag", ">i4"),
            ("born_timestamp", ">i8"),
            ("born_host", f"V{born_host_bytes}"),
            ("store_timestamp", ">i8"),
            ("store_host", f"V{store_host_bytes}"),
            ("reconsume_times", ">i4"),
            ("prepared_transaction_offset", ">i8"),
            ("body_length", ">i4"),
        ]
    )


# By the two IPv6 bits of sysFlag, as `record.HEADS`.
LAYOUTS = tuple(_layout(20 if bits & 1 else 8, 20 if bits & 2 else 8) for bits in range(4))
HEAD_SIZES = np.array([layout.itemsize for layout in LAYOUTS], dtype=np.int64)
assert [layout.itemsize for layout in LAYOUTS] == [head.size for head in record.HEADS]


class Heads:
    """The fixed fields of many records, as columns in the order of the positions."""

    def __init__(self, buffer: Buffer, positions: Int64s, host_bits: Int64s) -> None:
        kinds = [0] if not host_bits.any() else np.unique(host_bits).tolist()
        self.count = len(positions)
        self.groups: list[tuple[Int64s | None, NDArray[np.void]]] = []  # rows (None: all), heads
        for bits in kinds:
            rows = None if len(kinds) == 1 else np.flatnonzero(host_bits == bits)
            heads = overlaid(buffer, LAYOUTS[bits])[positions if rows is None else positions[rows]]
            self.groups.append((rows, heads))

    def __getitem__(self, name: str) -> Int64s:
        """A number field, as 64-bit integers."""
        numbers: Int64s = self.native(name, np.dtype(np.int64))
        return numbers

    def native(self, name: str, kind: np.dtype[Any]) -> NDArray[Any]:
        """A number field, as this machine's integers of a kind."""
        rows, heads = self.groups[0]
        if rows is None:
            return heads[name].astype(kind)
        column = np.empty(self.count, dtype=kind)
        for rows, heads in self.groups:
            column[rows] = heads[name]
        return column


@dataclass(frozen=True, slots=True)
class Parts:
    """The layout of records at ascending positions of one buffer; `fits` says which of them pass every check."""

    positions: Int64s
    heads: Heads
    sizes: Int64s
    sys_flags: Int64s
    body_starts: Int64s
    body_lengths: Int64s
    topic_starts: Int64s
    topic_lengths: Int64s
    properties_starts: Int64s
    properties_lengths: Int64s
    fits: Bools

    def __len__(self) -> int:
        return len(self.positions)

    @property
    def ends(self) -> Int64s:
        return self.positions + self.sizes


def overlaid(buffer: Buffer, dtype: np.dtype[np.void] | np.dtype[np.int64]) -> NDArray[np.void]:
    """A type laid over every byte of a buffer: item i begins at byte i."""
    count = max(len(buffer) - dtype.itemsize + 1, 0)
    return np.ndarray((count,), dtype, buffer, 0, strides=(1,))


def examine(buffer: Buffer, positions: Int64s, base_offset: int | None) -> Parts:
    """The parts of records whose sizes were followed: size, magic and end lie within the buffer.

    `base_offset` is the physical offset of the buffer's first byte; None where records were put side by side from
    elsewhere, as in a pull answer. The checks are those of `format.record`.
    """
    data = np.frombuffer(buffer, dtype=np.uint8)
    bits = _host_bits(data, positions)
    head_sizes = HEAD_SIZES[bits]
    # A record at the very end may claim wider hosts than it has bytes: its head is then read as a narrow one.
    fits = positions + head_sizes + 3 <= len(data)
    heads = Heads(buffer, positions, np.where(fits, bits, 0))
    sizes = heads["size"]
    ends = positions + sizes
    is_v2 = heads["magic"] == record.MAGIC_V2
    fits &= sizes >= head_sizes + record.PROPERTIES_LENGTH.size + 1 + is_v2
    body_lengths = heads["body_length"]
    body_starts = positions + head_sizes
    topic_starts = body_starts + body_lengths + 1 + is_v2
    fits &= (body_lengths >= 0) & (topic_starts + record.PROPERTIES_LENGTH.size <= ends)
    topic_lengths = _topic_lengths(data, np.where(fits, topic_starts, 2), is_v2)
    properties_starts = topic_starts + topic_lengths + record.PROPERTIES_LENGTH.size
    fits &= (topic_lengths >= 0) & (properties_starts <= ends)
    properties_lengths = _int16s(data, np.where(fits, properties_starts, 2) - 2)
    fits &= (properties_lengths >= 0) & (properties_starts + properties_lengths == ends)
    if base_offset is not None:
        fits &= heads["physical_offset"] == positions + base_offset
    fits &= heads["store_timestamp"] > 0
    return Parts(
        positions=positions,
        heads=heads,
        sizes=sizes,
        sys_flags=heads["sys_flag"],
        body_starts=body_starts,
        body_lengths=body_lengths,
        topic_starts=topic_starts,
        topic_lengths=topic_lengths,
        properties_starts=properties_starts,
        properties_lengths=properties_lengths,
        fits=fits,
    )


def _host_bits(data: Bytes, positions: Int64s) -> Int64s:
    # Bits 4 and 5 of sysFlag stand in its last byte.
    low = data[positions + (record.SYS_FLAG_AT + 3)].astype(np.int64)
    bits: Int64s = low >> record.HOST_BITS_SHIFT & record.HOST_BITS_MASK
    return bits


def _int16s(data: Bytes, positions: Int64s) -> Int64s:
    high = data[positions].view(np.int8).astype(np.int64)
    return high << 8 | data[positions + 1]


def _topic_lengths(data: Bytes, topic_starts: Int64s, is_v2: Bools) -> Int64s:
    short = data[topic_starts - 1].view(np.int8).astype(np.int64)
    return np.where(is_v2, _int16s(data, topic_starts - 2), short) if is_v2.any() else short
