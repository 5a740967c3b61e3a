"""The files of a commit log: found by name, in the order of their physical offsets, and mapped into memory."""

import mmap
import os
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path
from urllib.parse import unquote, urlsplit

from skyrocket.format.record import SMALLEST_RECORD, Buffer, store_timestamp_at
from skyrocket.format.store_names import NAME_DIGITS
from skyrocket.offline.offset_files import OffsetFiles, read_at
from skyrocket.offline.store_files import NotAStore, log_directory


@dataclass(frozen=True, slots=True)
class LogFile:
    """One file of a log; its name is the physical offset of its first byte."""

    path: str
    base_offset: int
    size: int
    newest: bool  # the file that is written, or one prepared behind it: it may end in zeros instead of a blank

    @property
    def end_offset(self) -> int:
        return self.base_offset + self.size


def find_log_files(place: str) -> list[LogFile]:
    """The log files of a store root or of its directory `commitlog`; raises NotAStore with what to try instead."""
    directory = log_directory(local_path(place))
    found = OffsetFiles(directory).files
    if not found:
        raise NotAStore(f"{directory} holds no log files (names of {NAME_DIGITS} digits); give another path")
    last_written = max((number for number, file in enumerate(found) if any(read_at(file.path, 0, 8))), default=0)
    return [
        LogFile(str(file.path), file.offset, file.size, newest=number >= last_written)
        for number, file in enumerate(found)
    ]


def first_store_timestamp(file: LogFile) -> int | None:
    """The store time of a file's first record; None when none can be read there."""
    head = read_at(Path(file.path), 0, SMALLEST_RECORD)
    if len(head) < SMALLEST_RECORD or not any(head[:4]):
        return None
    return store_timestamp_at(head, 0)


@contextmanager
def mapped(path: Path | str) -> Iterator[Buffer]:
    """The bytes of a file, read-only; they stay for as long as they are used, even when retention deletes the file."""
    descriptor = os.open(path, os.O_RDONLY)
    try:
        if os.fstat(descriptor).st_size == 0:  # an empty file cannot be mapped
            yield b""
            return
        memory = mmap.mmap(descriptor, 0, prot=mmap.PROT_READ)
    finally:
        os.close(descriptor)  # the map has its own
    memory.madvise(mmap.MADV_SEQUENTIAL)
    try:
        yield memory
    finally:
        with suppress(BufferError):  # columns may still point into it; it goes with the last of them
            memory.close()


def local_path(place: str) -> Path:
    """A path as tasks open it: plain, or with the scheme `file`."""
    parts = urlsplit(place)
    if parts.scheme == "file" and parts.netloc in ("", "localhost"):
        return Path(unquote(parts.path))
    if "://" in place:
        raise NotAStore(
            f"{place} is not a path of a mounted file system; log files are mapped into memory: mount it or copy them"
        )
    return Path(place)
