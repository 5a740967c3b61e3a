"""Where the parts of many records lie: fixed fields gathered at once, and starts and lengths of the variable parts.

`numpy.ndarray` with a stride of one byte lays a type over *every* byte of the buffer. Indexing it with the positions of
records copies all heads in one C loop. Hosts are 8 or 20 bytes wide, so there are four layouts; a batch
hardly ever has more than one, and then nothing is put together again.
"""

import re
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from skyrocket.format import record
from skyrocket.format.crc import CRC_PROPERTY, CRC_PROPERTY_BYTES, checksum, record_crc_property
from skyrocket.format.dtypes import Bools, Int64s, dtype_of, gathered
from skyrocket.format.record import Buffer
from skyrocket.format.text_hashes import Texts

# By the two IPv6 bits of sysFlag, as `record.HEADS`.
LAYOUTS = tuple(dtype_of(head, record.FixedPart._fields) for head in record.HEADS)
HEAD_SIZES = np.array([layout.itemsize for layout in LAYOUTS], dtype=np.int64)
_SEAL_NAME_BYTES = len(CRC_PROPERTY)
_INT8, _INT16 = np.dtype(np.int8), np.dtype(">i2")


class Heads:
    """The fixed fields of many records, as columns in the order of the positions."""

    def __init__(self, buffer: Buffer, positions: Int64s) -> None:
        narrow = gathered(buffer, LAYOUTS[0], positions)  # up to the hosts all layouts are the same
        self.count = len(positions)
        self.sys_flags: Int64s = narrow["sys_flag"].astype(np.int64)
        self.sizes: Int64s | int = LAYOUTS[0].itemsize  # one number for all, or each
        self.groups: list[tuple[Int64s | None, NDArray[np.void]]] = [(None, narrow)]  # rows (None: all), heads
        bits = self.sys_flags >> record.HOST_BITS_SHIFT & record.HOST_BITS_MASK
        if bits.any():
            self.sizes = HEAD_SIZES[bits]
            # A record at the very end may claim wider hosts than it has bytes: its head is then read as a narrow one.
            bits[positions + self.sizes > len(buffer)] = 0
            kinds = np.unique(bits).tolist()
            self.groups = []
            for kind in kinds:
                rows = None if len(kinds) == 1 else np.flatnonzero(bits == kind)
                own = positions if rows is None else positions[rows]
                self.groups.append((rows, gathered(buffer, LAYOUTS[kind], own)))

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


def examine(buffer: Buffer, positions: Int64s, base_offset: int | None) -> Parts:
    """The parts of records that begin at these positions, the smallest of them within the buffer.

    `base_offset` is the physical offset of the buffer's first byte; None where records were put side by side from
    elsewhere, as in a pull answer. The checks are those of `format.record`.
    """
    heads = Heads(buffer, positions)
    sizes = heads["size"]
    ends = positions + sizes
    magics = heads["magic"]
    is_v2 = magics == record.MAGIC_V2
    length_bytes: Int64s | int = 1 + is_v2 if is_v2.any() else 1  # the topic's length has two bytes in version 2
    body_lengths = heads["body_length"]
    body_starts = positions + heads.sizes
    topic_starts = body_starts + body_lengths + length_bytes
    fits = (magics == record.MAGIC_V1) | is_v2
    fits &= (ends <= len(buffer)) & (sizes >= heads.sizes + (length_bytes + record.PROPERTIES_LENGTH.size))
    fits &= (body_lengths >= 0) & (topic_starts + record.PROPERTIES_LENGTH.size <= ends)
    topic_lengths = _topic_lengths(buffer, _where(fits, topic_starts), is_v2)
    properties_starts = topic_starts + topic_lengths + record.PROPERTIES_LENGTH.size
    fits &= (topic_lengths >= 0) & (properties_starts <= ends)
    properties_lengths = gathered(buffer, _INT16, _where(fits, properties_starts) - 2).astype(np.int64)
    fits &= (properties_lengths >= 0) & (properties_starts + properties_lengths == ends)
    if base_offset is not None:
        fits &= heads["physical_offset"] == positions + base_offset
    fits &= heads["store_timestamp"] > 0
    return Parts(
        positions=positions,
        heads=heads,
        sizes=sizes,
        sys_flags=heads.sys_flags,
        body_starts=body_starts,
        body_lengths=body_lengths,
        topic_starts=topic_starts,
        topic_lengths=topic_lengths,
        properties_starts=properties_starts,
        properties_lengths=properties_lengths,
        fits=fits,
    )


def _where(fits: Bools, positions: Int64s) -> Int64s:
    """Positions to look at: some harmless place for what does not fit."""
    return positions if fits.all() else np.where(fits, positions, 2)


def _topic_lengths(buffer: Buffer, topic_starts: Int64s, is_v2: Bools) -> Int64s:
    lengths: Int64s = gathered(buffer, _INT8, topic_starts - 1).astype(np.int64)
    if is_v2.any():
        lengths[is_v2] = gathered(buffer, _INT16, topic_starts[is_v2] - 2)
    return lengths


def checksum_problems(buffer: Buffer, parts: Parts) -> dict[int, str]:
    """Rows whose bytes do not match their checksums, of the body or of the whole record, and which of them."""
    view = memoryview(buffer)
    columns = (parts.positions, parts.ends, parts.body_starts, parts.body_lengths, parts.heads["body_crc"])
    found: dict[int, str] = {}
    for row, (position, end, start, length, crc) in enumerate(zip(*(c.tolist() for c in columns), strict=True)):
        seal_at = end - CRC_PROPERTY_BYTES
        if length and (actual := checksum(view[start : start + length])) != crc:
            found[row] = f"body CRC {actual} differs from the stored {crc}"
        elif (
            view[seal_at : seal_at + _SEAL_NAME_BYTES] == CRC_PROPERTY
            and record_crc_property(view[position:end]) != view[seal_at:end]
        ):
            found[row] = "whole-record CRC differs"
    view.release()
    return found


class PropertyTexts:
    """The property blocks of records that lie in one buffer."""

    def __init__(self, buffer: bytes, parts: Parts) -> None:
        starts, lengths = parts.properties_starts, parts.properties_lengths
        blocks = zip(starts.tolist(), (starts + lengths).tolist(), strict=True)
        self._joined = b"\x02" + b"\x02".join([buffer[start:end] for start, end in blocks]) + b"\x02"
        self._block_starts = np.cumsum(lengths + 1) - lengths

    def texts(self, name: str) -> Texts:
        """The values of a property; an empty value does not exist, the last of several counts."""
        pattern = re.compile(b"\x02" + re.escape(name.encode()) + b"\x01([^\x02]+)")
        spans = [match.span(1) for match in pattern.finditer(self._joined)]
        starts, ends = np.array(spans, dtype=np.int64).reshape(-1, 2).T
        records = np.searchsorted(self._block_starts, starts, side="right") - 1
        last = np.append(records[1:] != records[:-1], True)[: len(records)]
        return Texts(self._joined, starts[last], ends[last], records[last])
