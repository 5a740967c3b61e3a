"""Prepares the next file of the log ahead of the writer, in a thread of its own.

Creating a file costs milliseconds that must not meet a put. The writer asks early; when it needs the file before
the thread has made it, it makes it itself.
"""

import logging
import threading
from dataclasses import dataclass

from skyrocket.store.disk import Disk

log = logging.getLogger(__name__)


@dataclass(slots=True)
class PreparedFile:
    """A file that exists at full size but is not yet part of the log."""

    start_offset: int
    path: str
    fd: int
    allocated: int  # bytes from its start that have disk blocks


@dataclass(slots=True)
class _Request:
    """The file that the writer will need next; only the newest request counts."""

    start_offset: int
    path: str
    size: int
    allocate: int


class FileAllocator:
    """Creates the next file and extends the reserved part of the current one."""

    def __init__(self, disk: Disk) -> None:
        self._disk = disk
        self._condition = threading.Condition()
        self._requested: _Request | None = None
        self._ready: PreparedFile | None = None
        self._stopped = False
        self._thread = threading.Thread(target=self._run, name="store-allocator", daemon=True)

    def start(self) -> None:
        self._thread.start()

    def stop(self) -> None:
        """End the thread and remove a prepared file that nobody used."""
        with self._condition:
            self._stopped = True
            self._condition.notify_all()
        if self._thread.is_alive():
            self._thread.join(timeout=10)
        ready, self._ready = self._ready, None
        if ready is not None:
            self._disk.close(ready.fd)
            self._disk.unlink(ready.path)

    def prepare(self, start_offset: int, path: str, size: int, allocate: int) -> None:
        """Ask for the file that will follow; returns at once."""
        with self._condition:
            if self._ready is None or self._ready.start_offset != start_offset:
                self._requested = _Request(start_offset, path, size, allocate)
                self._condition.notify()

    def take(self, start_offset: int, path: str, size: int, allocate: int) -> PreparedFile:
        """The file at an offset: the prepared one, or one made now. Raises OSError when the disk is full."""
        with self._condition:
            self._requested = None
            ready, self._ready = self._ready, None
        if ready is not None and ready.start_offset == start_offset:
            return ready
        return self._create(start_offset, path, size, allocate)

    def put_back(self, file: PreparedFile) -> None:
        """A file that was taken but could not be used yet."""
        with self._condition:
            self._ready = file

    def _create(self, start_offset: int, path: str, size: int, allocate: int) -> PreparedFile:
        fd = self._disk.create(path, size)
        allocated = min(size, allocate)
        try:
            self._disk.allocate(fd, 0, allocated)
        except OSError:
            self._disk.close(fd)
            self._disk.unlink(path)
            raise
        return PreparedFile(start_offset, path, fd, allocated)

    def _run(self) -> None:
        while True:
            with self._condition:
                self._condition.wait_for(lambda: self._stopped or self._requested is not None, timeout=60)
                if self._stopped:
                    return
                request = self._requested
                if request is None:
                    continue
                # Made while the lock is held: the writer either finds the file ready or nobody is making it.
                self._requested = None
                try:
                    self._ready = self._create(request.start_offset, request.path, request.size, request.allocate)
                except OSError as error:
                    # The writer will try again when it needs the file, and answer with the reason.
                    log.warning("next log file not prepared path=%s error=%s", request.path, error)
