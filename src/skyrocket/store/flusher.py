"""Brings the log to disk: group commit for those who wait, timed flushes for all others.

A flush covers everything up to the write position, so one fsync answers every waiter whose record lies before it.
While it runs new records pile up; they are the next group.

After a failed fsync nobody knows what is on disk (the kernel forgets the failed pages), so the store fails: waiters
hear it, and no write is taken any more.
"""

import heapq
import itertools
import logging
import threading
import time
from collections.abc import Callable

from skyrocket.config.sections import FlushDiskType, StoreConfig
from skyrocket.store.commit_log import CommitLog

log = logging.getLogger(__name__)

_PAGE = 4096
FlushCallback = Callable[[bool], None]


class Flusher:
    """The thread that commits and flushes the log."""

    def __init__(
        self,
        commit_log: CommitLog,
        config: StoreConfig,
        *,
        on_flushed: Callable[[int, int | None], None],
        on_failed: Callable[[OSError], None],
    ) -> None:
        """`on_flushed` gets the flushed offset and, after a thorough flush, the store time that it covers."""
        self._log = commit_log
        self._config = config
        self._sync = config.flush_disk_type is FlushDiskType.SYNC_FLUSH
        self._on_flushed = on_flushed
        self._on_failed = on_failed
        self._flushing = threading.Lock()  # one flush at a time
        self._condition = threading.Condition()
        self._waiting: list[tuple[int, int, FlushCallback]] = []  # heap by end offset
        self._numbers = itertools.count()
        self._wanted = False  # someone waits for the disk
        self._nudged = False  # a message arrived
        self._failed = False
        self._stopped = False
        self._last_thorough = time.monotonic()
        self._last_commit = time.monotonic()
        self._thread = threading.Thread(target=self._run, name="store-flusher", daemon=True)

    def use(self, config: StoreConfig) -> None:
        """Go by these intervals from the next flush on."""
        self._config = config

    def start(self) -> None:
        self._thread.start()

    def stop(self) -> None:
        """Flush what is there, answer everyone, end the thread."""
        with self._condition:
            self._stopped = True
            self._condition.notify_all()
        if self._thread.is_alive():
            self._thread.join(timeout=60)
        if not self._failed:
            self.flush_now()
        self._answer(self._log.flushed_offset)
        self._answer_all(ok=False)

    # -- asking ----------------------------------------------------------------------------------------

    def when_flushed(self, end_offset: int, callback: FlushCallback) -> None:
        """Call back from the flusher's thread: True when all before the offset is on disk, False if that failed."""
        with self._condition:
            if not self._failed and end_offset > self._log.flushed_offset:
                heapq.heappush(self._waiting, (end_offset, next(self._numbers), callback))
                self._wanted = True
                self._condition.notify()
                return
            ok = not self._failed
        callback(ok)

    def wake(self) -> None:
        """A message arrived: look at once whether enough pages are dirty, do not wait for the interval's end."""
        with self._condition:
            self._nudged = True
            self._condition.notify()

    # -- flushing --------------------------------------------------------------------------------------

    def flush_now(self, *, thorough: bool = True) -> bool:
        """Commit and flush everything; False when the disk failed."""
        with self._flushing:
            if self._failed:  # the kernel reports a failed write once: the next fsync would seem to succeed
                return False
            try:
                self._log.commit()
                flushed, covered = self._log.flush()
            except OSError as error:
                self._fail(error)
                return False
        self._on_flushed(flushed, covered if thorough else None)
        self._answer(flushed)
        return True

    def _run(self) -> None:
        while not self._stopped and not self._failed:
            with self._condition:
                if not (self._wanted or self._nudged or self._stopped):
                    self._condition.wait(self._pause())
                wanted, self._wanted, self._nudged = self._wanted, False, False
            if self._stopped:
                return
            self.look(wanted=wanted)

    def _pause(self) -> float:
        interval_ms = self._config.flush_interval_ms
        if self._config.transient_pool:
            interval_ms = min(interval_ms, self._config.commit_interval_ms)
        return interval_ms / 1000

    def look(self, *, wanted: bool = False) -> None:
        """What is done at the end of an interval, and at once when someone waits for the disk: flush what is due."""
        now = time.monotonic()
        thorough = (now - self._last_thorough) * 1000 >= self._config.flush_thorough_interval_ms
        if self._log.buffered and not wanted and not thorough:
            self._commit(now)
        if wanted or thorough or self._is_dirty_enough():
            if thorough:
                self._last_thorough = now
            self.flush_now(thorough=thorough)

    def _is_dirty_enough(self) -> bool:
        written, flushed = self._log.readable_offset, self._log.flushed_offset
        # With SYNC_FLUSH nobody reads what is not on disk: what no sender waits for goes there at once, too.
        least_pages = 0 if self._sync else self._config.flush_least_pages
        return written > flushed and written // _PAGE - flushed // _PAGE >= least_pages

    def _commit(self, now: float) -> None:
        thorough = (now - self._last_commit) * 1000 >= self._config.commit_thorough_interval_ms
        with self._flushing:
            try:
                if self._log.commit(0 if thorough else self._config.commit_least_pages):
                    self._last_commit = now
            except OSError as error:
                self._fail(error)

    def _answer(self, flushed_offset: int) -> None:
        ready: list[FlushCallback] = []
        with self._condition:
            while self._waiting and self._waiting[0][0] <= flushed_offset:
                ready.append(heapq.heappop(self._waiting)[2])
            if self._waiting:
                self._wanted = True  # appended while the flush ran: they are the next group
        for callback in ready:
            _call(callback, ok=True)

    def _answer_all(self, *, ok: bool) -> None:
        with self._condition:
            callbacks = [callback for _, _, callback in self._waiting]
            self._waiting.clear()
        for callback in callbacks:
            _call(callback, ok=ok)

    def _fail(self, error: OSError) -> None:
        with self._condition:
            self._failed = True
        self._on_failed(error)
        self._answer_all(ok=False)


def _call(callback: FlushCallback, *, ok: bool) -> None:
    """Tell one who waits; its error is not ours, and the others wait too."""
    try:
        callback(ok)
    except Exception:
        log.exception("a callback after a flush failed callback=%r", callback)
