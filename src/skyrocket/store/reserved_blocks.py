"""Disk blocks of the log file that is written, reserved ahead of the appends: a full disk is an error in time."""

from collections.abc import Callable

from skyrocket.store.allocator import FileAllocator, Reservation
from skyrocket.store.disk import Disk
from skyrocket.store.mapped_file_queue import MappedFile


class ReservedBlocks:
    """Knows up to where the file has blocks, and asks for more when half of what it asks for at once is used."""

    def __init__(self, disk: Disk, allocator: FileAllocator, step: int, await_disk: Callable[[], None]) -> None:
        """`await_disk` is called before one that may wait for the disk; it raises DiskStandsStill instead of that."""
        self.step = step
        self.ahead: Reservation | None = None  # of what follows; another thread makes it
        self._disk = disk
        self._allocator = allocator
        self._await_disk = await_disk
        self._file: MappedFile | None = None
        self._end = 0  # offset up to which the file has blocks

    def use(self, file: MappedFile, allocated: int) -> int:
        """Another file is written; returns up to which offset nobody needs to ask."""
        self._file = file
        self._end = file.start_offset + allocated
        self.ahead = None
        return self._end - self.step // 2

    def let_go(self) -> None:
        """No file is written any more."""
        self._file = self.ahead = None

    def reserve(self, end_offset: int, seconds: float) -> int:
        """Let there be blocks up to an offset, and some more; returns up to which offset nobody needs to ask again.

        A thread that reserves them is waited for so long. Raises OSError when there are none: a write would fail
        half-way, or end the process with SIGBUS.
        """
        file = self._file
        assert file is not None
        file_end = file.start_offset + file.size
        if self.ahead is not None and (end_offset > self._end or self.ahead.is_done):
            self._end = max(self._end, self._allocator.reserved_until(self.ahead, seconds))
            self.ahead = None
        if end_offset > self._end:
            self._await_disk()
            wanted = min(max(end_offset, self._end + self.step), file_end)
            self._disk.allocate(file.fd, self._end - file.start_offset, wanted - self._end)
            self._end = wanted
        if end_offset <= self._end - self.step // 2:
            return self._end - self.step // 2
        if self.ahead is None and self._end < file_end:
            self.ahead = self._allocator.reserve(file, self._end, min(self._end + self.step, file_end))
        return self._end
