"""The store's log as replication sees it: bytes to ship on a master, a place to append on a slave."""

from skyrocket.config.sections import FlushDiskType
from skyrocket.store.message_store import MessageStore


class MasterLog:
    """What slaves may have: everything that can be read."""

    def __init__(self, store: MessageStore) -> None:
        self._log = store.commit_log

    @property
    def min_offset(self) -> int:
        return self._log.min_offset

    @property
    def readable_offset(self) -> int:
        return self._log.readable_offset

    @property
    def last_file_start(self) -> int:
        starts = self._log.files.starts
        return starts[-1] if starts else 0

    def raw(self, physical_offset: int, max_bytes: int) -> memoryview | None:
        return self._log.raw(physical_offset, max_bytes)


class SafeLog(MasterLog):
    """With SYNC_FLUSH no more than the disk has: a master that loses its power then never has less than its slaves.

    Where a controller decides, such a master may go on in its epoch, and other bytes would come where slaves have some.
    """

    def __init__(self, store: MessageStore) -> None:
        super().__init__(store)
        self._waits_for_disk = store.config.flush_disk_type is FlushDiskType.SYNC_FLUSH

    @property
    def readable_offset(self) -> int:
        return self._log.flushed_offset if self._waits_for_disk else self._log.readable_offset

    def raw(self, physical_offset: int, max_bytes: int) -> memoryview | None:
        room = min(max_bytes, self.readable_offset - physical_offset)
        return self._log.raw(physical_offset, room) if room > 0 else None


class SlaveLog:
    """A log that grows by its master's bytes alone."""

    def __init__(self, store: MessageStore) -> None:
        self._store = store
        self._log = store.commit_log
        self._waits_for_disk = store.config.flush_disk_type is FlushDiskType.SYNC_FLUSH

    @property
    def end_offset(self) -> int:
        return self._log.written_offset

    @property
    def safe_offset(self) -> int:
        return self._log.flushed_offset if self._waits_for_disk else self._log.written_offset

    def append(self, offset: int, data: bytes | memoryview) -> None:
        self._store.append_raw(offset, data)
