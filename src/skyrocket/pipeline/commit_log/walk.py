"""One split → its records and its damaged regions, in the order of the log.

Each region is reported by exactly one split: the one in which the chain of records breaks, even when it reaches over
the split's end. A split that begins inside a record, or inside damage, starts at the first record that it finds.

At the end of the newest file a broken record may be torn, damaged, or being written right now. A broker copies a
record into its mapped file from front to back, and behind it the file is zero. So what stands there and is not a whole
record is *unfinished*, and not damage, when

- no record follows it anywhere in the file,
- everything behind the size that it claims is zero, and
- its last byte is zero, or its head is not complete: the copy has not come that far.

A crash in the middle of a write leaves the same picture; recovery cuts it off, and it was never acknowledged as
flushed. A record whose end is there and whose middle is wrong is damage. To be sure that it was not seen half-written,
it is looked at a second time a moment later: an append takes microseconds.
"""

import time
from collections.abc import Callable, Iterator

import numpy as np

from skyrocket.errors import CorruptRecord
from skyrocket.format import record
from skyrocket.format.column_walk import ColumnWalk, Damage
from skyrocket.format.crc import checksum
from skyrocket.format.record import BLANK, Buffer, WalkEnd, read_head
from skyrocket.format.record_columns import Parts, checksum_problems, examine
from skyrocket.format.record_search import find_record
from skyrocket.pipeline.commit_log.damage import DamagedRegion, region
from skyrocket.pipeline.commit_log.log_files import mapped
from skyrocket.pipeline.commit_log.splits import Split

SECOND_LOOK_S = 0.2


def split_records(
    split: Split, note: Callable[[DamagedRegion], None], *, verify_crc: bool = False
) -> Iterator[tuple[Buffer, Parts]]:
    """The records that start in a split, in batches, with the file that they lie in; damaged regions are noted."""
    if split.missing:
        note(region(split, split.begin, split.end - split.begin, "the log has no file for these offsets"))
        return
    with mapped(split.path) as buffer:
        for item in walk_split(buffer, split, verify_crc=verify_crc):
            if isinstance(item, DamagedRegion):
                note(item)
            else:
                yield buffer, item


def walk_split(buffer: Buffer, split: Split, *, verify_crc: bool = False) -> Iterator[Parts | DamagedRegion]:
    """The records that start in a split, in batches, and the regions between them without any."""
    end = min(split.end, len(buffer))
    begin: int | None = split.begin
    if not split.at_record:
        begin = find_record(buffer, split.begin, end, split.base_offset)
    if begin is None:  # a record of the split before reaches over all of this one, or nothing follows
        return
    walk = ColumnWalk(buffer, begin, end, split.base_offset)
    for item in walk:
        if isinstance(item, Damage):
            if not _is_live_end(buffer, split, item):
                yield region(split, *item)
            continue
        if split.newest:
            item, torn = _without_torn_end(buffer, item)
            if torn is not None and not _is_being_written(buffer, split, torn):
                size = int.from_bytes(buffer[torn : torn + 4], "big")
                yield region(split, torn, size, "the last record's body does not match its CRC")
        if verify_crc:
            item, bad = _without_bad_crc(buffer, item)
            yield from (region(split, *damage) for damage in bad)
        if len(item):
            yield item
    if walk.end is WalkEnd.ZERO and not split.newest:
        cause = "zeros where a record, or the blank that ends a file, belongs"
        yield region(split, walk.stop, len(buffer) - walk.stop, cause)


def _is_live_end(buffer: Buffer, split: Split, damage: Damage) -> bool:
    """Whether the damage is only the place where the broker writes."""
    if not split.newest or damage.position + damage.length < len(buffer):
        return False
    return _is_being_written(buffer, split, damage.position)


def _is_being_written(buffer: Buffer, split: Split, position: int) -> bool:
    return is_unfinished(buffer, position) or _became_whole(buffer, position, split.base_offset)


def is_unfinished(buffer: Buffer, position: int) -> bool:
    """Whether the bytes at the end of the newest file look like a record whose copy has not come to its end."""
    data = np.frombuffer(buffer, dtype=np.uint8)
    rest = data[position:]
    if len(rest) < BLANK.size:
        return True
    if not rest[BLANK.size :].any():
        return True  # size and magic have come at most, and perhaps not whole
    size, magic = BLANK.unpack_from(buffer, position)
    if size < record.SMALLEST_RECORD or size > len(rest):
        return False
    if magic not in (record.MAGIC_V1, record.MAGIC_V2):
        return False
    return not rest[size - 1 :].any()


def _became_whole(buffer: Buffer, position: int, base_offset: int) -> bool:
    """Whether a second look finds an intact record where the first did not; it is then behind this read's end."""
    time.sleep(SECOND_LOOK_S)
    try:
        read_head(buffer, position, base_offset + position, check_crc=True)
    except CorruptRecord:
        return False
    return True


def _without_torn_end(buffer: Buffer, parts: Parts) -> tuple[Parts, int | None]:
    """Leave out the log's last record when its lengths are there and its content is not; and where it stands."""
    position, end = int(parts.positions[-1]), int(parts.ends[-1])
    if end + 4 <= len(buffer) and any(buffer[end : end + 4]):
        return parts, None  # another record follows
    start, length = int(parts.body_starts[-1]), int(parts.body_lengths[-1])
    crc = int(parts.heads["body_crc"][-1])
    complete = int(parts.properties_lengths[-1]) == 0 or buffer[end - 1] != 0
    if complete and (not length or checksum(buffer[start : start + length]) == crc):
        return parts, None
    return examine(buffer, parts.positions[:-1], None), position


def _without_bad_crc(buffer: Buffer, parts: Parts) -> tuple[Parts, list[Damage]]:
    """Leave out records whose content does not match its checksums."""
    problems = checksum_problems(buffer, parts)
    bad = [Damage(int(parts.positions[row]), int(parts.sizes[row]), cause) for row, cause in problems.items()]
    return (parts, bad) if not bad else (examine(buffer, np.delete(parts.positions, list(problems)), None), bad)
