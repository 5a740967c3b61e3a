"""Writes log bytes behind the thread that appends, whenever the disk may stand still.

A write to the page cache takes microseconds, but it waits for seconds when the file system's journal waits for a disk
that does not answer, or when the file system is frozen for a snapshot. Whoever appends in an event loop then holds up
everybody. So bytes are handed over to a thread, in the order of the log, and are readable when it has written them.
Handing over costs two switches of threads, so the appender does it only while somebody forces bytes to this disk
(`Disk.waiting`: that is when a disk shows that it stands still), or always, as it was told. With SYNC_FLUSH, where
somebody does all the time, only once that takes longer than usual: else it cost a fifth of the rate.

What waits here is bounded by those who put messages: they refuse more (`Intake.page_cache_busy`).
"""

import heapq
import itertools
import logging
import threading
from collections import deque
from collections.abc import Callable
from typing import Final, NamedTuple

from skyrocket.config.sections import FlushDiskType, LogWriteThread, StoreConfig
from skyrocket.store.disk import Disk
from skyrocket.store.mapped_file_queue import MappedFile

log = logging.getLogger(__name__)

PATIENCE_SECONDS: Final = 0.01  # how long an append waits for a disk that may stand still
_LONG_FORCE_SECONDS: Final = 0.01
_IDLE_SECONDS: Final = 60.0
_STOP_SECONDS: Final = 10.0
WrittenCallback = Callable[[bool], None]


class Chunk(NamedTuple):
    """Bytes of the log that a file has not got yet."""

    file: MappedFile
    position: int  # in the file
    data: bytes
    end_offset: int  # where the log ends when they are written
    timestamp: int  # the store time of their records


class HandOver:
    """Whether an append is handed over to the writer's thread."""

    def __init__(self, disk: Disk, config: StoreConfig, *, is_pooled: bool) -> None:
        """With the transient pool never: the committer writes behind the appender, and offsets are its own."""
        self._disk = disk
        self._always = config.log_write_thread is LogWriteThread.ALWAYS and not is_pooled
        self._never = config.log_write_thread is LogWriteThread.NEVER or is_pooled
        is_forced_always = config.flush_disk_type is FlushDiskType.SYNC_FLUSH
        self._forced_seconds = _LONG_FORCE_SECONDS if is_forced_always else 0.0

    def is_due(self) -> bool:
        """Whether the disk may stand still now, as far as the settings want to know."""
        if self._always:
            return True
        return bool(self._disk.waiting) and not self._never and self._disk.stands_still(self._forced_seconds)


class LogWriter:
    """One thread that writes what it is given."""

    def __init__(
        self,
        disk: Disk,
        *,
        on_written: Callable[[Chunk], None],
        on_oldest: Callable[[int], None],
        on_failed: Callable[[OSError], None],
    ) -> None:
        """`on_oldest` gets the store time of the oldest chunk that waits, whenever that is another; 0: none does."""
        self._disk = disk
        self._on_written = on_written
        self._on_oldest = on_oldest
        self._on_failed = on_failed
        self._condition = threading.Condition()
        self._chunks: deque[Chunk] = deque()  # the first one is being written
        self.waiting_bytes = 0  # 0: everything is written
        self._listeners: list[tuple[int, int, WrittenCallback]] = []  # heap by end offset
        self._numbers = itertools.count()
        self._written_offset = 0
        self._is_late = False  # somebody has waited for it in vain
        self._failed = False
        self._stopped = False
        self._thread: threading.Thread | None = None

    def hand_over(self, chunk: Chunk) -> None:
        """Write this soon. The caller holds the log's lock, so chunks come in order."""
        with self._condition:
            if not self._chunks:
                self._on_oldest(chunk.timestamp)
            self._chunks.append(chunk)
            self.waiting_bytes += len(chunk.data)
            if self._thread is None:
                self._thread = threading.Thread(target=self._run, name="store-log-writer", daemon=True)
                self._thread.start()
            self._condition.notify_all()

    def when_written(self, end_offset: int, callback: WrittenCallback) -> None:
        """Call back from the writer's thread (or at once): True when all before the offset is written, else False."""
        with self._condition:
            if self.waiting_bytes and end_offset > self._written_offset and not self._failed:
                heapq.heappush(self._listeners, (end_offset, next(self._numbers), callback))
                return
            ok = not self._failed
        callback(ok)

    def await_briefly(self) -> None:
        """Let a disk that works write what was handed over; one that stands still is waited for once, until it moves.

        Cheaper than to come back later: this is what nearly every append does.
        """
        if not self._is_late:
            self._is_late = not self.wait_until_idle(PATIENCE_SECONDS)

    def wait_until_idle(self, seconds: float) -> bool:
        """Whether everything is written, now or within some time."""
        if not self.waiting_bytes:
            return True
        with self._condition:
            return self._condition.wait_for(lambda: not self.waiting_bytes or self._failed, seconds) and (
                not self._failed
            )

    def stop(self) -> None:
        """End the thread when all is written; what a disk does not take in time is lost, and nobody was told else."""
        with self._condition:
            self._stopped = True
            self._condition.notify_all()
        if self._thread is not None:
            self._thread.join(timeout=_STOP_SECONDS)

    def _run(self) -> None:
        while True:
            with self._condition:
                self._condition.wait_for(lambda: self._chunks or self._stopped, _IDLE_SECONDS)
                if not self._chunks:
                    if self._stopped:
                        return
                    continue
                chunk = self._chunks[0]
            try:
                with self._disk.wait():
                    self._disk.write_at(chunk.file.fd, chunk.data, chunk.position)
            except OSError as error:
                self._fail(error)
                return
            self._done(chunk)
            del chunk  # else an idle thread would keep the room of a file that is deleted

    def _done(self, chunk: Chunk) -> None:
        ready: list[WrittenCallback] = []
        with self._condition:
            self._chunks.popleft()
            self._written_offset = chunk.end_offset
            # Told before `waiting_bytes` says so: then the appender writes by itself again, behind this.
            self._on_written(chunk)
            self._on_oldest(self._chunks[0].timestamp if self._chunks else 0)
            self.waiting_bytes -= len(chunk.data)
            while self._listeners and self._listeners[0][0] <= chunk.end_offset:
                ready.append(heapq.heappop(self._listeners)[2])
            if not self.waiting_bytes:
                self._is_late = False
                self._condition.notify_all()
        for callback in ready:
            _call(callback, ok=True)

    def _fail(self, error: OSError) -> None:
        with self._condition:
            self._failed = True
            listeners, self._listeners = self._listeners, []
            self._condition.notify_all()
        self._on_failed(error)
        for _, _, callback in listeners:
            _call(callback, ok=False)


def _call(callback: WrittenCallback, *, ok: bool) -> None:
    """Tell one who waits; its error is not ours, and the others wait too."""
    try:
        callback(ok)
    except Exception:
        log.exception("a callback after a write failed callback=%r", callback)
