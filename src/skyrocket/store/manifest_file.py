"""Writes the manifest of an open store: from any thread, and always what log, queues and index are at that moment."""

import threading

from skyrocket.config.sections import StoreConfig
from skyrocket.store.commit_log import CommitLog
from skyrocket.store.disk import Disk
from skyrocket.store.index import Index
from skyrocket.store.manifest import Manifest, load_manifest, queue_key, save_manifest
from skyrocket.store.queue_table import QueueTable
from skyrocket.store.seal import seal_of


class ManifestFile:
    """`skyrocket.manifest` of one store."""

    def __init__(
        self, disk: Disk, path: str, config: StoreConfig, commit_log: CommitLog, queues: QueueTable, index: Index | None
    ) -> None:
        self._disk = disk
        self._path = path
        self._config = config
        self._log = commit_log
        self._queues = queues
        self._index = index
        self._lock = threading.Lock()

    def load(self) -> Manifest | None:
        """What was written last; None when nothing can be read."""
        return load_manifest(self._disk, self._path)

    def save(self, *, clean: bool) -> None:
        """Write what is there now; `clean` when the log will not grow any more."""
        with self._lock:
            queues = {queue_key(queue): [queue.entries.first_byte, queue.max_offset] for queue in self._queues}
            names = self._index.names if self._index is not None else []
            if not clean:
                names = names[:-1]  # the newest does not survive an unclean stop anyhow
            oldest = self._log.min_offset
            removed = {key: offset for key, offset in self._queues.removed.items() if offset > oldest}
            log_end = self._log.flushed_offset
            seal = None
            if clean:
                seal = seal_of(self._disk, self._log.files, log_end, self._queues, self._index, self._config)
            manifest = Manifest(log_end, clean, queues, names, removed, seal, self._log.last_store_timestamp)
            save_manifest(self._disk, self._path, manifest)
