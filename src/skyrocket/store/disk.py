"""Every open, map, write, fsync and rename of the store: the seam at which tests inject faults.

Paths are plain strings and files are descriptors: this layer is called on hot paths and must add nothing to them.
"""

import contextlib
import ctypes
import errno
import math
import mmap
import os
import shutil
import threading
import time
from collections.abc import Iterator


class DiskStandsStill(OSError):
    """It was not asked at all: whoever asks it now waits until it answers again."""


class Disk:
    """The real file system."""

    def __init__(self) -> None:
        # Threads that wait for the disk now, and since when: that it stands still shows there first.
        self.waiting: dict[int, float] = {}

    @contextlib.contextmanager
    def wait(self) -> Iterator[None]:
        """This thread does what a disk that stands still holds up."""
        thread = threading.get_ident()
        self.waiting[thread] = time.monotonic()
        try:
            yield
        finally:
            self.waiting.pop(thread, None)

    def stands_still(self, seconds: float) -> bool:
        """Whether somebody has been waiting for the disk for longer than this."""
        began = list(self.waiting.values())
        return bool(began) and time.monotonic() - min(began) >= seconds

    # -- names -------------------------------------------------------------------------------------

    def exists(self, path: str) -> bool:
        return os.path.exists(path)

    def names(self, directory: str) -> list[str]:
        """Sorted names in a directory; none when it does not exist."""
        try:
            return sorted(os.listdir(directory))
        except FileNotFoundError:
            return []

    def is_directory(self, path: str) -> bool:
        return os.path.isdir(path)

    def make_directory(self, path: str) -> None:
        os.makedirs(path, exist_ok=True)

    def size(self, path: str) -> int:
        return os.stat(path).st_size

    def modified_ms(self, path: str) -> int:
        return os.stat(path).st_mtime_ns // 1_000_000

    def rename(self, old: str, new: str) -> None:
        os.replace(old, new)

    def unlink(self, path: str) -> None:
        """Remove a file; one that is already gone is fine."""
        with contextlib.suppress(FileNotFoundError):
            os.unlink(path)

    def remove_directory(self, path: str) -> None:
        """Remove a directory when it is empty."""
        with contextlib.suppress(FileNotFoundError):
            try:
                os.rmdir(path)
            except OSError as error:
                if error.errno != errno.ENOTEMPTY:
                    raise

    def remove_tree(self, path: str) -> None:
        """Remove a directory and all that is in it."""
        if os.path.isdir(path):
            shutil.rmtree(path)

    def sync_directory(self, path: str) -> None:
        """Make created, renamed and removed names in a directory durable."""
        fd = os.open(path, os.O_RDONLY | os.O_DIRECTORY)
        try:
            with self.wait():
                os.fsync(fd)
        finally:
            os.close(fd)

    # -- whole small files ---------------------------------------------------------------------------

    def read_file(self, path: str) -> bytes:
        with open(path, "rb") as file:
            return file.read()

    def write_file(self, path: str, data: bytes) -> None:
        """Create or replace the content of a file and force it to disk."""
        fd = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o644)
        try:
            self.write_at(fd, data, 0)
            with self.wait():
                os.fsync(fd)
        finally:
            os.close(fd)

    def replace_file(self, path: str, data: bytes) -> None:
        """Replace a file so that after a crash it holds the old or the new content, nothing else."""
        temporary = path + ".tmp"
        self.write_file(temporary, data)
        self.rename(temporary, path)
        self.sync_directory(os.path.dirname(path))

    # -- files of fixed size --------------------------------------------------------------------------

    def create(self, path: str, size: int) -> int:
        """Open a file at its full size; a new one is made of zeros (sparse).

        It gets its name when it has its size: RocketMQ 4.9 refuses a directory with an empty file, and a process may
        be killed between the two steps.
        """
        try:
            fd = os.open(path, os.O_RDWR | os.O_CLOEXEC)
        except FileNotFoundError:
            fd = self._new_file(path, size)
        if os.stat(fd).st_size != size:
            os.ftruncate(fd, size)
        return fd

    def _new_file(self, path: str, size: int) -> int:
        directory, name = os.path.split(path)
        directory_fd = os.open(directory, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
        try:
            fd = os.open(directory, os.O_RDWR | os.O_TMPFILE | os.O_CLOEXEC, 0o644)
            try:
                os.ftruncate(fd, size)
                os.link(f"/proc/self/fd/{fd}", name, dst_dir_fd=directory_fd, follow_symlinks=True)
            except OSError:
                os.close(fd)
                raise
            return fd
        except OSError as error:
            if error.errno not in (errno.EOPNOTSUPP, errno.EISDIR, errno.ENOENT):
                raise
        finally:
            os.close(directory_fd)
        # A file system without nameless files: the moment between name and size is short, and only 4.9 minds it.
        return os.open(path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o644)

    def open(self, path: str) -> int:
        """Open an existing file for reading and writing."""
        return os.open(path, os.O_RDWR | os.O_CLOEXEC)

    def close(self, fd: int) -> None:
        os.close(fd)

    def allocate(self, fd: int, position: int, length: int) -> None:
        """Reserve disk blocks, so that a later write through a map cannot meet a full disk.

        Such a write would end the process with SIGBUS; here it is an OSError with ENOSPC.
        """
        os.posix_fallocate(fd, position, length)

    def zero_from(self, fd: int, position: int, size: int) -> None:
        """Make everything from a position to `size`, the file's length, read as zeros.

        By writing: cut and lengthened again, a file would be too short after a crash between the two.
        """
        for start, end in self.data_extents(fd, position, size):
            for at in range(start, end, _ZEROS_AT_ONCE):
                self._write(fd, bytes(min(end - at, _ZEROS_AT_ONCE)), at)

    def data_extents(self, fd: int, position: int, size: int) -> Iterator[tuple[int, int]]:
        """The parts of a file, from a position to its size, that are not holes."""
        start = self.next_data(fd, position)
        while start is not None and start < size:
            end = min(os.lseek(fd, start, os.SEEK_HOLE), size)
            yield start, end
            start = self.next_data(fd, end)

    def next_data(self, fd: int, position: int) -> int | None:
        """The first place at or behind a position where the file has data; None when only a hole follows."""
        try:
            return os.lseek(fd, position, os.SEEK_DATA)
        except OSError as error:
            if error.errno == errno.ENXIO:
                return None
            raise

    def map(self, fd: int, size: int) -> mmap.mmap:
        """Map a whole file, shared with the page cache."""
        return mmap.mmap(fd, size)

    def write_at(self, fd: int, data: bytes | bytearray | memoryview, position: int) -> None:
        """Write all bytes at a position."""
        self._write(fd, data, position)

    def _write(self, fd: int, data: bytes | bytearray | memoryview, position: int) -> None:
        view = memoryview(data)
        while view:
            written = os.pwrite(fd, view, position)
            view = view[written:]
            position += written

    def read_at(self, fd: int, length: int, position: int) -> bytes:
        return os.pread(fd, length, position)

    def sync(self, fd: int) -> None:
        """Force the data of a file (also what was written through maps) to disk."""
        with self.wait():
            os.fdatasync(fd)

    def sync_all(self, directory: str) -> None:
        """Force everything of the directory's file system to disk: one call instead of thousands of `sync`."""
        fd = os.open(directory, os.O_RDONLY | os.O_DIRECTORY)
        try:
            with self.wait():
                failed = _LIBC.syncfs(fd) != 0
            if failed:
                code = ctypes.get_errno()
                raise OSError(code, os.strerror(code), directory)
        finally:
            os.close(fd)

    def used_ratio(self, path: str) -> float:
        """Used part of the partition, rounded up to whole percents as RocketMQ does."""
        stat = os.statvfs(path)
        used = (stat.f_blocks - stat.f_bfree) * stat.f_frsize
        usable = stat.f_bavail * stat.f_frsize
        return math.ceil(100 * used / (used + usable)) / 100 if used + usable else 0.0


_ZEROS_AT_ONCE = 1 << 20
_LIBC = ctypes.CDLL(None, use_errno=True)
