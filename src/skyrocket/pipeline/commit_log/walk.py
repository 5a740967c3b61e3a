"""One split → its records and its damaged regions, in the order of the log.

Each region is reported by exactly one split: the one in which the chain of records breaks, even when it reaches over
the split's end. A split that begins inside a record, or inside damage, starts at the first record that it finds.
"""

from collections.abc import Callable, Iterator

import numpy as np

from skyrocket.format.column_walk import ColumnWalk, Damage
from skyrocket.format.crc import checksum
from skyrocket.format.record import Buffer, WalkEnd
from skyrocket.format.record_columns import Parts, checksum_problems, examine
from skyrocket.format.record_search import find_record
from skyrocket.pipeline.commit_log.damage import DamagedRegion, region
from skyrocket.pipeline.commit_log.log_files import mapped
from skyrocket.pipeline.commit_log.splits import Split
from skyrocket.pipeline.commit_log.tail import became_whole, is_unfinished


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
    return is_unfinished(buffer, position) or became_whole(buffer, position, split.base_offset)


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
