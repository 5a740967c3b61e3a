"""Which files may go, and when: decided here in pure functions, done by `Cleaner`.

Cleaning works on whole log files and does not ask whether messages were consumed:

    expired (72 h) files go at 04:00, or at any hour when the disk is more than 75 % full, or on request;
    above 85 % the oldest files go even if not expired; above 90 % writes are refused as well, until below 85 %.

Files go one at a time with a pause, because deleting a gigabyte blocks the file system for a moment. Then queues
drop files whose records are all gone and move their first offset, and index files that point only to such records go.
"""

import logging
import threading
import time
from dataclasses import dataclass
from enum import Enum

from skyrocket.clock import Clock
from skyrocket.config.sections import StoreConfig
from skyrocket.store.commit_log import CommitLog
from skyrocket.store.disk import Disk
from skyrocket.store.index import Index
from skyrocket.store.queue_table import QueueTable

log = logging.getLogger(__name__)

_HOUR_MS = 3_600_000
_MANUAL_RUNS = 20


class DiskState(Enum):
    """How full the disk is, in the words of the rules."""

    ROOMY = "roomy"
    HIGH = "high"  # expired files go at any hour
    FORCED = "forced"  # the oldest files go
    FULL = "full"  # and writes are refused


def disk_state(used_ratio: float, config: StoreConfig) -> DiskState:
    """The state of a partition that is used to this ratio."""
    percent = round(used_ratio * 100, 6)  # 0.55 * 100 is a little more than 55
    if percent > config.disk_warning_percent:
        return DiskState.FULL
    if percent > config.disk_clean_forcibly_percent:
        return DiskState.FORCED
    if percent > config.disk_max_used_percent:
        return DiskState.HIGH
    return DiskState.ROOMY


def is_delete_hour(now_ms: int, delete_when: str) -> bool:
    """Whether the local hour is one in which expired files go."""
    hour = time.localtime(now_ms / 1000).tm_hour
    return any(word.strip().isdigit() and int(word) == hour for word in delete_when.split(";"))


def deletable_files(
    files: list[tuple[int, int]], now_ms: int, *, reserved_hours: int, forced: bool, at_most: int
) -> list[int]:
    """Start offsets of the log files that may go: from the oldest on, never the newest, up to the first that stays.

    `files` are (start offset, modification time in ms), oldest first.
    """
    doomed: list[int] = []
    for start, modified_ms in files[:-1]:
        expired = now_ms >= modified_ms + reserved_hours * _HOUR_MS
        if not (expired or forced) or len(doomed) >= at_most:
            break
        doomed.append(start)
    return doomed


@dataclass(slots=True)
class CleanReport:
    """What one run removed."""

    log_files: int = 0
    queue_files: int = 0
    index_files: int = 0


class Cleaner:
    """Applies the rules, every 10 seconds in a thread of its own."""

    def __init__(
        self,
        disk: Disk,
        config: StoreConfig,
        clock: Clock,
        commit_log: CommitLog,
        queues: QueueTable,
        index: Index | None,
    ) -> None:
        self.disk_full = False  # writes are refused while this holds
        self.oldest_wanted: int | None = None  # records from here on must stay, whatever their age
        self._disk = disk
        self._config = config
        self._clock = clock
        self._log = commit_log
        self._queues = queues
        self._index = index
        self._manual_runs = 0
        self._cleaned_to = -1
        self._turn = threading.Lock()  # an operator may ask for a run while the thread is at one
        self._stop = threading.Event()
        self._thread = threading.Thread(target=self._run, name="store-cleaner", daemon=True)

    def use(self, config: StoreConfig) -> None:
        """Go by these settings from the next run on."""
        self._config = config

    def start(self) -> None:
        self._thread.start()

    def stop(self) -> None:
        self._stop.set()
        if self._thread.is_alive():
            self._thread.join(timeout=10)

    def request(self) -> None:
        """Delete expired files in the next runs, whatever the hour."""
        self._manual_runs = _MANUAL_RUNS

    def _run(self) -> None:
        pause_ms = self._config.clean_first_delay_ms
        while not self._stop.wait(pause_ms / 1000):
            pause_ms = self._config.clean_interval_ms
            try:
                self.clean()
            except OSError as error:
                log.error("cleaning failed, trying again later error=%s", error)

    def clean(self) -> CleanReport:
        """One run."""
        with self._turn:
            return self._clean()

    def _clean(self) -> CleanReport:
        report = CleanReport()
        state = self.look_at_disk()
        now = self._clock.now_ms()
        manual = self._manual_runs > 0
        self._manual_runs = max(0, self._manual_runs - 1)
        forced = self._config.clean_forcibly and state in (DiskState.FORCED, DiskState.FULL)
        if manual or forced or state is not DiskState.ROOMY or is_delete_hour(now, self._config.delete_when):
            report.log_files = self._delete_log_files(now, forced)
        if self._log.min_offset != self._cleaned_to:
            self._cleaned_to = self._log.min_offset
            report.queue_files = self._clean_queues(self._log.min_offset)
            if self._index is not None:
                report.index_files = len(self._index.remove_expired(self._log.min_offset))
            if report.queue_files or report.index_files:
                self._queues.new_queues = True  # the manifest must learn of it
        return report

    def refuse_writes(self) -> None:
        """The disk is full: take no more messages until there is room."""
        if not self.disk_full:
            log.error("disk nearly full, refusing writes path=%s", self._log.files.directory)
        self.disk_full = True

    def look_at_disk(self) -> DiskState:
        """How full the disk is; refuses or takes writes accordingly."""
        state = disk_state(self._disk.used_ratio(self._log.files.directory), self._config)
        if state is DiskState.FULL:
            self.refuse_writes()
        elif state in (DiskState.ROOMY, DiskState.HIGH) and self.disk_full:
            log.warning("disk has room again, taking writes path=%s", self._log.files.directory)
            self.disk_full = False
        return state

    def _delete_log_files(self, now_ms: int, forced: bool) -> int:
        files = self._log.files
        listed = [(start, self._disk.modified_ms(files.path_of(start))) for start in files.starts]
        doomed = deletable_files(
            listed,
            now_ms,
            reserved_hours=self._config.file_reserved_hours,
            forced=forced,
            at_most=self._config.delete_batch,
        )
        deleted = 0
        for start in doomed:
            end = start + self._log.file_size
            if end > self._log.flushed_offset or (self.oldest_wanted is not None and end > self.oldest_wanted):
                break
            files.drop_file(start)
            log.info("log file deleted offset=%d forced=%s", start, forced)
            deleted += 1
            if self._stop.wait(self._config.delete_pause_ms / 1000):
                break
        return deleted

    def _clean_queues(self, log_start: int) -> int:
        deleted = 0
        for queue in self._queues:
            before = deleted
            with self._queues.lock:
                queue.correct_min_offset(log_start)  # first: who reads now must not look for files that go
                while len(queue.entries.starts) > 1 and queue.last_physical_offset(queue.entries.starts[0]) < log_start:
                    queue.entries.drop_first_file()
                    deleted += 1
            if deleted > before and self._stop.wait(self._config.delete_queue_pause_ms / 1000):
                break
        return deleted
