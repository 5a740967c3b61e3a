"""Files of one fixed size in offset order: find, roll, truncate, drop.

A file's name is the offset of its first byte. Maps are made when first needed and forgotten least-recently-used
first. A slice that a reader still holds keeps its map alive, so neither forgetting nor deleting a file pulls the
memory away under anyone: no reference counts are needed.
"""

import contextlib
import mmap
import os
from collections import OrderedDict
from collections.abc import Callable

from skyrocket.errors import CorruptFile
from skyrocket.format.store_names import offset_name, parse_offset_name
from skyrocket.store.disk import Disk


class MappedFile:
    """One file: its place in the log, its descriptor and its map."""

    __slots__ = ("_disk", "fd", "map", "path", "size", "start_offset", "view")

    def __init__(self, disk: Disk, path: str, start_offset: int, size: int, fd: int) -> None:
        self._disk = disk
        self.path = path
        self.start_offset = start_offset
        self.size = size
        self.fd = fd
        self.map: mmap.mmap = disk.map(fd, size)
        self.view = memoryview(self.map)

    def sync(self) -> None:
        """Force the file to disk."""
        self._disk.sync(self.fd)

    def __del__(self) -> None:
        # The last one who holds the file closes it: a flush in another thread never meets a closed descriptor.
        self._disk.close(self.fd)


def _nobody_listens(_: MappedFile) -> None: ...


class MappedFileQueue:
    """The files of a directory, in order and without gaps."""

    def __init__(self, disk: Disk, directory: str, file_size: int, max_mapped: int) -> None:
        self.directory = directory
        self.file_size = file_size
        self._disk = disk
        self._max_mapped = max_mapped
        self._starts: list[int] = []  # replaced, never changed: readers in other threads look twice
        self._mapped: OrderedDict[int, MappedFile] = OrderedDict()
        self._pinned: MappedFile | None = None  # the file that is written: never forgotten
        self._advice = mmap.MADV_NORMAL
        self.on_forgotten: Callable[[MappedFile], None] = _nobody_listens  # in the thread that forgets it

    # -- the list of files -----------------------------------------------------------------------------

    def load(self) -> None:
        """Read the directory; refuse it when a file has the wrong length or one is missing in the middle."""
        self._disk.make_directory(self.directory)
        starts: list[int] = []
        paths = [os.path.join(self.directory, name) for name in self._disk.names(self.directory)]
        paths = [path for path in paths if not self._disk.is_directory(path)]
        for path in paths:
            start = parse_offset_name(os.path.basename(path))
            if start is None:
                raise CorruptFile(
                    path, "a file that does not belong here", "Move it out of the directory and start again"
                )
            length = self._disk.size(path)
            if length == 0 and path == paths[-1]:
                self._disk.unlink(path)  # created by a process that died before it could size it
                continue
            self._check(path, start, length, starts)
            starts.append(start)
        self._starts = starts

    def _check(self, path: str, start: int, length: int, before: list[int]) -> None:
        if length != self.file_size:
            raise CorruptFile(
                path,
                f"is {length} bytes long, files here have {self.file_size}",
                "Set the file size that the store was written with, or restore the file from a replica",
            )
        if before and start != before[-1] + self.file_size:
            raise CorruptFile(
                path,
                f"does not follow {offset_name(before[-1])}: a file is missing between them",
                "Restore the missing file from a replica; without it move the older files away",
            )

    @property
    def starts(self) -> list[int]:
        """Start offsets of all files, ascending."""
        return list(self._starts)

    @property
    def min_offset(self) -> int:
        """Start of the oldest file; 0 without files."""
        return self._starts[0] if self._starts else 0

    @property
    def end_offset(self) -> int:
        """End of the newest file; 0 without files."""
        return self._starts[-1] + self.file_size if self._starts else 0

    def path_of(self, start: int) -> str:
        return os.path.join(self.directory, offset_name(start))

    def advise(self, advice: int) -> None:
        """Tell the kernel how these files will be read (`mmap.MADV_…`): those mapped now, and those mapped later."""
        self._advice = advice
        for file in list(self._mapped.values()):
            file.map.madvise(advice)

    # -- files ---------------------------------------------------------------------------------------

    def find(self, offset: int) -> MappedFile | None:
        """The file that holds an offset; None when no file does."""
        starts = self._starts
        if not starts or offset < starts[0]:
            return None
        number = (offset - starts[0]) // self.file_size
        if number >= len(starts):
            return None
        start = starts[number]
        pinned = self._pinned
        if pinned is not None and pinned.start_offset == start:
            return pinned
        file = self._mapped.get(start)
        if file is None:
            try:
                file = self._map(start, self._disk.open(self.path_of(start)))
            except FileNotFoundError:
                return None  # deleted since the look at the list
        else:
            with contextlib.suppress(KeyError):  # another thread may just have dropped it
                self._mapped.move_to_end(start)
        return file

    def append_file(self, start: int, prepared_fd: int | None = None) -> MappedFile:
        """Create the file at an offset (the one after the newest) and make it the one that is written."""
        assert not self._starts or start == self.end_offset
        assert start % self.file_size == 0
        fd = self._disk.create(self.path_of(start), self.file_size) if prepared_fd is None else prepared_fd
        file = self._map(start, fd)
        self._starts = [*self._starts, start]
        self._pinned = file
        return file

    def pin_last(self) -> MappedFile | None:
        """Make the newest file the one that is written."""
        self._pinned = None
        self._pinned = self.find(self._starts[-1]) if self._starts else None
        return self._pinned

    def truncate(self, offset: int) -> None:
        """Drop everything from an offset on; what is left of its file reads as zeros.

        RocketMQ leaves the old bytes, and a later recovery may take them for records; zeros mean "end" to everyone.
        """
        self._pinned = None
        while self._starts and self._starts[-1] > offset:
            self.drop_file(self._starts[-1])
        if self._starts and offset < self.end_offset:
            self._forget(self._starts[-1])
            fd = self._disk.open(self.path_of(self._starts[-1]))
            try:
                self._disk.zero_from(fd, offset - self._starts[-1], self.file_size)
                self._disk.sync(fd)
            finally:
                self._disk.close(fd)

    def drop_file(self, start: int, *, move_to: str | None = None) -> None:
        """Delete the oldest or the newest file, or move it away."""
        assert start in (self._starts[0], self._starts[-1])
        self._starts = [other for other in self._starts if other != start]  # `find` may be using the old list
        if self._pinned is not None and self._pinned.start_offset == start:
            self._pinned = None
        self._forget(start)
        try:
            if move_to is None:
                self._disk.unlink(self.path_of(start))
            else:
                self._disk.rename(self.path_of(start), move_to)
        except OSError:
            self._starts = sorted([*self._starts, start])  # still there: without it a later deletion leaves a gap
            raise

    def close(self) -> None:
        """Forget all maps."""
        self._pinned = None
        for start in list(self._mapped):
            self._forget(start)

    def _map(self, start: int, fd: int) -> MappedFile:
        file = MappedFile(self._disk, self.path_of(start), start, self.file_size, fd)
        if self._advice != mmap.MADV_NORMAL:
            file.map.madvise(self._advice)
        self._mapped[start] = file
        if len(self._mapped) > self._max_mapped:
            for oldest in list(self._mapped):
                if oldest != start and (self._pinned is None or oldest != self._pinned.start_offset):
                    self._forget(oldest)
                    break
        return file

    def _forget(self, start: int) -> None:
        file = self._mapped.pop(start, None)
        if file is not None:
            self.on_forgotten(file)
