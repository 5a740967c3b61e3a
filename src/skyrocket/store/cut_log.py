"""What recovery cuts off the log is first kept aside: `skyrocket.cut/<where it was cut>/<physical offset>`.

The rest of the file that is cut is copied, without the zeros at its end; later files are moved as they are. So
nothing that had been in the log is ever gone unless somebody deletes this directory.
"""

import os

from skyrocket.format.store_names import offset_name
from skyrocket.store.disk import Disk
from skyrocket.store.mapped_file_queue import MappedFileQueue

_AT_ONCE = 1 << 20
_ZEROS = bytes(_AT_ONCE)


def keep_cut(disk: Disk, directory: str, files: MappedFileQueue, end_offset: int) -> str | None:
    """Keep what the log has from an offset on; the directory with it, or None when there are only zeros."""
    doomed = [start for start in files.starts if start + files.file_size > end_offset]
    ends = {start: _data_end(disk, files, start, max(end_offset - start, 0)) for start in doomed}
    kept = {start: end for start, end in ends.items() if end}
    if not kept:
        return None
    target = _new_directory(disk, directory, end_offset)
    for start, end in kept.items():
        if start < end_offset:
            _copy(disk, files, start, (end_offset - start, end), os.path.join(target, offset_name(end_offset)))
    for start in sorted(kept, reverse=True):  # the newest first: a crash in between leaves no gap in the log
        if start >= end_offset:
            while files.starts[-1] > start:
                files.drop_file(files.starts[-1])  # nothing but zeros
            files.drop_file(start, move_to=os.path.join(target, offset_name(start)))
    disk.sync_directory(target)
    disk.sync_directory(directory)
    disk.sync_directory(os.path.dirname(directory))
    return target


def _new_directory(disk: Disk, directory: str, end_offset: int) -> str:
    name = path = os.path.join(directory, offset_name(end_offset))
    again = 1
    while disk.exists(path):  # the log was cut here before
        again += 1
        path = f"{name}.{again}"
    disk.make_directory(path)
    return path


def _data_end(disk: Disk, files: MappedFileQueue, start: int, position: int) -> int:
    """Behind the last byte of a file, from a position on, that is not zero; 0 when all of them are."""
    fd = disk.open(files.path_of(start))
    found = 0
    try:
        for begin, end in disk.data_extents(fd, position, files.file_size):
            for at in range(begin, end, _AT_ONCE):
                piece = disk.read_at(fd, min(_AT_ONCE, end - at), at)
                if not _ZEROS.startswith(piece):
                    found = at + len(piece.rstrip(b"\0"))
    finally:
        disk.close(fd)
    return found


def _copy(disk: Disk, files: MappedFileQueue, start: int, part: tuple[int, int], target: str) -> None:
    begin, end = part
    source = disk.open(files.path_of(start))
    try:
        copy = disk.create(target, end - begin)
        try:
            for at in range(begin, end, _AT_ONCE):
                disk.write_at(copy, disk.read_at(source, min(_AT_ONCE, end - at), at), at - begin)
            disk.sync(copy)
        finally:
            disk.close(copy)
    finally:
        disk.close(source)
