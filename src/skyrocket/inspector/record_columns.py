"""The fixed fields of many records at once, as numpy columns.

A run is a row of records back to back in one window of a log file. Sizes are followed one by one, as they must be;
every other field is then gathered for all records together, which is several times faster than decoding each.
What does not pass is left to `format.record.read_head`: it knows the reason.
"""

from dataclasses import dataclass
from enum import Enum
from struct import Struct

import numpy as np
from numpy.typing import NDArray

from skyrocket.errors import CorruptRecord
from skyrocket.format import record
from skyrocket.format.sys_flag import BORN_HOST_V6

Int64s = NDArray[np.int64]

_SIZE_AND_MAGIC = Struct(">ii")
_CRC_AT = 8
_QUEUE_ID_AT = 12
_HEAD_SIZES = np.array([layout.size for layout in record.HEADS], dtype=np.int64)


class RunEnd(Enum):
    """Why a run of records stopped."""

    WINDOW = "window"  # the next record may be whole, but not in this window
    FILE_END = "file end"
    BLANK = "blank"
    ZERO = "zero"
    DAMAGED = "damaged"


@dataclass(frozen=True, slots=True)
class RecordRun:
    """Records back to back; positions count from the start of the window."""

    window: bytes
    physical_offset: int  # of the window
    starts: Int64s
    sizes: Int64s
    crcs: Int64s
    queue_ids: Int64s
    queue_offsets: Int64s
    sys_flags: Int64s
    store_timestamps: Int64s
    body_starts: Int64s
    body_lengths: Int64s
    topic_starts: Int64s
    properties_starts: Int64s  # the topic ends two bytes before
    end: RunEnd
    stop: int  # where the run stopped
    reason: str = ""

    @property
    def physical_offsets(self) -> Int64s:
        return self.starts + self.physical_offset


def read_run(window: bytes, physical_offset: int, *, whole_file: bool) -> RecordRun:
    """The records at the start of a window; `whole_file` says that the window reaches the end of its file."""
    starts, sizes, magics, stop = _follow_sizes(window)
    data = np.frombuffer(window, dtype=np.uint8)
    starts_, sizes_ = np.array(starts, dtype=np.int64), np.array(sizes, dtype=np.int64)
    sys_flags = _int32s(data, starts_ + record.SYS_FLAG_AT)
    heads = _HEAD_SIZES[sys_flags >> record.HOST_BITS_SHIFT & record.HOST_BITS_MASK]
    ends = starts_ + sizes_
    fits = sizes_ >= heads + record.SMALLEST_RECORD - _HEAD_SIZES[0]
    body_lengths = _int32s(data, np.where(fits, starts_ + heads, 4) - 4)
    is_v2 = np.array(magics, dtype=np.int64) == record.MAGIC_V2
    topic_starts = starts_ + heads + body_lengths + 1 + is_v2
    fits &= (body_lengths >= 0) & (topic_starts + record.PROPERTIES_LENGTH.size <= ends)
    topic_lengths = _topic_lengths(data, np.where(fits, topic_starts, 2), is_v2)
    properties_starts = topic_starts + topic_lengths + record.PROPERTIES_LENGTH.size
    fits &= (topic_lengths >= 0) & (properties_starts <= ends)
    properties_lengths = _int16s(data, np.where(fits, properties_starts, 2) - 2)
    fits &= (properties_lengths >= 0) & (properties_starts + properties_lengths == ends)
    fits &= _int64s(data, starts_ + record.PHYSICAL_OFFSET_AT) == starts_ + physical_offset
    born_host = np.where(sys_flags & BORN_HOST_V6, 20, 8)
    store_timestamps = _int64s(data, np.where(fits, starts_ + record.BORN_HOST_AT + born_host, 0))
    fits &= store_timestamps > 0

    count = len(starts) if fits.all() else int(np.argmin(fits))
    stop = stop if count == len(starts) else starts[count]
    end, reason = _why(window, stop, physical_offset, whole_file)
    good = slice(0, count)
    return RecordRun(
        window=window,
        physical_offset=physical_offset,
        starts=starts_[good],
        sizes=sizes_[good],
        crcs=_int32s(data, starts_[good] + _CRC_AT),
        queue_ids=_int32s(data, starts_[good] + _QUEUE_ID_AT),
        queue_offsets=_int64s(data, starts_[good] + record.QUEUE_OFFSET_AT),
        sys_flags=sys_flags[good],
        store_timestamps=store_timestamps[good],
        body_starts=(starts_ + heads)[good],
        body_lengths=body_lengths[good],
        topic_starts=topic_starts[good],
        properties_starts=properties_starts[good],
        end=end,
        stop=stop,
        reason=reason,
    )


def _follow_sizes(window: bytes) -> tuple[list[int], list[int], list[int], int]:
    starts, sizes, magics = [], [], []
    position, last = 0, len(window) - _SIZE_AND_MAGIC.size
    unpack = _SIZE_AND_MAGIC.unpack_from
    while position <= last:
        size, magic = unpack(window, position)
        if magic not in (record.MAGIC_V1, record.MAGIC_V2):
            break
        if size < record.SMALLEST_RECORD or position + size > len(window):
            break
        starts.append(position)
        sizes.append(size)
        magics.append(magic)
        position += size
    return starts, sizes, magics, position


def _why(window: bytes, stop: int, physical_offset: int, whole_file: bool) -> tuple[RunEnd, str]:
    left = len(window) - stop
    if left == 0:
        return (RunEnd.FILE_END if whole_file else RunEnd.WINDOW), ""
    if left < _SIZE_AND_MAGIC.size:
        return (RunEnd.DAMAGED, f"only {left} bytes left") if whole_file else (RunEnd.WINDOW, "")
    size, magic = _SIZE_AND_MAGIC.unpack_from(window, stop)
    known = magic in (record.MAGIC_V1, record.MAGIC_V2, record.MAGIC_BLANK)
    if known and size > left and not whole_file:
        return RunEnd.WINDOW, ""
    try:
        head = record.read_head(window, stop, physical_offset + stop)
    except CorruptRecord as damage:
        if not any(window[stop : stop + 4]):
            return RunEnd.ZERO, "four zero bytes where a size belongs"
        return RunEnd.DAMAGED, damage.reason
    assert head is None, f"record at {physical_offset + stop} passes one check and fails the other"
    return RunEnd.BLANK, ""


def _int64s(data: NDArray[np.uint8], positions: Int64s) -> Int64s:
    return _gathered(data, positions, 8, ">i8")


def _int32s(data: NDArray[np.uint8], positions: Int64s) -> Int64s:
    return _gathered(data, positions, 4, ">i4")


def _int16s(data: NDArray[np.uint8], positions: Int64s) -> Int64s:
    return _gathered(data, positions, 2, ">i2")


def _topic_lengths(data: NDArray[np.uint8], topic_starts: Int64s, is_v2: NDArray[np.bool_]) -> Int64s:
    short = _gathered(data, topic_starts - 1, 1, ">i1")
    return np.where(is_v2, _int16s(data, topic_starts - 2), short) if is_v2.any() else short


def _gathered(data: NDArray[np.uint8], positions: Int64s, width: int, kind: str) -> Int64s:
    if not len(positions):
        return np.empty(0, dtype=np.int64)
    field: Int64s = data[positions[:, None] + np.arange(width)].view(kind).reshape(-1).astype(np.int64)
    return field
