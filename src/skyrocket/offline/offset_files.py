"""Files of one directory that are named by their start offset and together form one long range of bytes.

Commit log, consume queues, their extensions and the timer log all look like this. Files are read, not mapped:
a mapped file that is cut under the reader ends the process, a short read is an answer.
"""

import os
from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

from skyrocket.format.store_names import parse_offset_name


class OffsetFile(NamedTuple):
    """One file and the offset of its first byte."""

    path: Path
    offset: int
    size: int

    @property
    def end(self) -> int:
        return self.offset + self.size


class OffsetFiles:
    """The files of one directory in offset order; what is not named as an offset is a stray."""

    def __init__(self, directory: Path) -> None:
        self.directory = directory
        self.strays: list[Path] = []
        self.files: list[OffsetFile] = []
        for path in sorted(directory.iterdir()) if directory.is_dir() else []:
            offset = parse_offset_name(path.name)
            if offset is not None and path.is_file():
                self.files.append(OffsetFile(path, offset, path.stat().st_size))
            else:
                self.strays.append(path)

    @property
    def start(self) -> int:
        return self.files[0].offset if self.files else 0

    @property
    def end(self) -> int:
        return self.files[-1].end if self.files else 0

    @property
    def file_size(self) -> int:
        """The size that most files have: files of one directory are made alike."""
        sizes = Counter(file.size for file in self.files)
        return sizes.most_common(1)[0][0] if sizes else 0

    def file_of(self, offset: int) -> OffsetFile | None:
        """The file that holds a byte."""
        for file in reversed(self.files):
            if file.offset <= offset:
                return file if offset < file.end else None
        return None

    def read(self, offset: int, length: int) -> bytes:
        """The bytes from an offset on, across files; fewer than asked where a file is missing or ends."""
        parts = []
        while length > 0 and (file := self.file_of(offset)) is not None:
            part = read_at(file.path, offset - file.offset, min(length, file.end - offset))
            if not part:
                break
            parts.append(part)
            offset += len(part)
            length -= len(part)
        return b"".join(parts)

    def gaps(self) -> Iterator[tuple[OffsetFile, OffsetFile]]:
        """Neighbours that do not touch."""
        for left, right in zip(self.files, self.files[1:], strict=False):
            if left.end != right.offset:
                yield left, right


def data_end(path: Path) -> int:
    """The position behind the last byte that may be other than zero: what was never written takes no blocks."""
    try:
        descriptor = os.open(path, os.O_RDONLY)
    except FileNotFoundError:
        return 0
    try:
        end = 0
        while True:
            start = os.lseek(descriptor, end, os.SEEK_DATA)
            end = os.lseek(descriptor, start, os.SEEK_HOLE)
    except OSError:  # no more data; a file system that does not know holes calls everything data
        return end
    finally:
        os.close(descriptor)


def read_at(path: Path, position: int, length: int) -> bytes:
    """Bytes of a file; fewer when it is shorter, none when it is gone."""
    try:
        descriptor = os.open(path, os.O_RDONLY)
    except FileNotFoundError:
        return b""
    try:
        parts = []
        while length > 0 and (part := os.pread(descriptor, length, position)):
            parts.append(part)
            position += len(part)
            length -= len(part)
        return parts[0] if len(parts) == 1 else b"".join(parts)
    finally:
        os.close(descriptor)
