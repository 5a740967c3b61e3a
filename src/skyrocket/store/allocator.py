"""Prepares the next file of the log, and the next blocks of the current one, ahead of the writer, in its own thread.

Creating a file costs milliseconds that must not meet a put. The writer asks early; when it needs the file before
the thread has begun to make it, it makes it itself.
"""

import logging
import threading
from dataclasses import dataclass

from skyrocket.store.disk import Disk, DiskStandsStill
from skyrocket.store.mapped_file_queue import MappedFile

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


@dataclass(slots=True)
class Reservation:
    """Blocks of the file that is written, from where it has some to a further offset."""

    file: MappedFile
    begin_offset: int
    end_offset: int
    is_done: bool = False  # tried, at least
    has_failed: bool = False


class FileAllocator:
    """Creates the next file and extends the reserved part of the current one."""

    def __init__(self, disk: Disk) -> None:
        self._disk = disk
        self._condition = threading.Condition()
        self._requested: _Request | None = None
        self._reservation: Reservation | None = None
        self._making: int | None = None  # the file at this offset is being made
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

    def take(self, start_offset: int, path: str, size: int, allocate: int, seconds: float = 1.0) -> PreparedFile:
        """The file at an offset: the prepared one, or one made now. Raises OSError when the disk is full.

        While the thread makes it, it is waited for so long; raises DiskStandsStill then.
        """
        with self._condition:
            self._requested = None
            if not self._condition.wait_for(lambda: self._making is None, seconds):
                raise DiskStandsStill(f"{path} is not ready yet: the disk stands still")
            ready, self._ready = self._ready, None
        if ready is not None and ready.start_offset == start_offset:
            return ready
        return self._create(start_offset, path, size, allocate)

    def has(self, start_offset: int) -> bool:
        """Whether the file at an offset is ready."""
        ready = self._ready
        return ready is not None and ready.start_offset == start_offset

    def reserve(self, file: MappedFile, begin_offset: int, end_offset: int) -> Reservation:
        """Ask for more blocks of the file that is written; returns at once."""
        reservation = Reservation(file, begin_offset, end_offset)
        with self._condition:
            self._reservation = reservation
            self._condition.notify_all()
        return reservation

    def reserved_until(self, reservation: Reservation, seconds: float) -> int:
        """Up to which offset there are blocks; waits so long for the thread, and raises DiskStandsStill then."""
        with self._condition:
            if self._reservation is reservation:  # not begun: the writer does it
                self._reservation = None
                return reservation.begin_offset
            if not self._condition.wait_for(lambda: reservation.is_done, seconds):
                raise DiskStandsStill("no blocks are reserved yet: the disk stands still")
        return reservation.begin_offset if reservation.has_failed else reservation.end_offset

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
                self._condition.wait_for(self._is_wanted, timeout=60)
                if self._stopped:
                    return
                reservation, self._reservation = self._reservation, None
                request = None
                if reservation is None and self._requested is not None:
                    request, self._requested = self._requested, None
                    self._making = request.start_offset
            if reservation is not None:
                self._reserve(reservation)
            elif request is not None:
                self._make(request)

    def _is_wanted(self) -> bool:
        return self._stopped or self._requested is not None or self._reservation is not None

    def _make(self, request: _Request) -> None:
        made: PreparedFile | None = None
        try:
            made = self._create(request.start_offset, request.path, request.size, request.allocate)
        except OSError as error:
            # The writer will try again when it needs the file, and answer with the reason.
            log.warning("next log file not prepared path=%s error=%s", request.path, error)
        finally:
            with self._condition:
                self._making = None
                if made is not None:
                    self._ready = made
                self._condition.notify_all()

    def _reserve(self, reservation: Reservation) -> None:
        begin, file = reservation.begin_offset, reservation.file
        try:
            self._disk.allocate(file.fd, begin - file.start_offset, reservation.end_offset - begin)
        except OSError:
            reservation.has_failed = True  # the writer will try again, and answer with the reason
        finally:
            with self._condition:
                reservation.is_done = True
                self._condition.notify_all()
