"""All queues of a store, and the writing of their entries to files.

Queues are known by (topic, queue id). Entries are written out in rounds: queues with enough new entries every
second, all of them every minute or when the memory for tails is used up. One pass serves all queues, serially.
"""

import contextlib
import os
import threading
from collections.abc import Callable, Iterator
from functools import partial

from skyrocket.config.sections import StoreConfig
from skyrocket.errors import CorruptFile
from skyrocket.format.queue_entry import BATCH_ENTRY_SIZE, ENTRY_SIZE
from skyrocket.store.batch_consume_queue import BatchConsumeQueue
from skyrocket.store.consume_queue import ConsumeQueue
from skyrocket.store.disk import Disk
from skyrocket.store.entry_files import EntryFiles
from skyrocket.store.handle_cache import HandleCache
from skyrocket.store.layout import StorePaths
from skyrocket.store.numbering import Doubts
from skyrocket.store.topic_queue import TopicQueue

QueueKey = tuple[str, int]
MeansOwn = Callable[[TopicQueue, int, int], bool]
_PAGE = 4096
_SYNC_ONE_BY_ONE = 64  # more files than this are forced to disk by one call for the whole file system


class QueueTable:
    """Finds, creates, loads, writes and removes queues."""

    def __init__(
        self, disk: Disk, paths: StorePaths, config: StoreConfig, is_batch_topic: Callable[[str], bool]
    ) -> None:
        self.by_key: dict[QueueKey, TopicQueue] = {}
        self.dirty: list[TopicQueue] = []  # queues whose tail is not empty; the dispatcher adds them
        self.lock = threading.RLock()  # held by whoever appends entries or writes them out
        self.removed: dict[
            str, int
        ] = {}  # deleted queues, and where the log ended: older records are not theirs any more
        self.new_queues = False  # a queue was made since the manifest was written
        self.removals = 0  # who remembers a queue over other requests must look again when there were more
        self._unsynced: set[TopicQueue] = set()
        self._disk = disk
        self._paths = paths
        self._config = config
        self._is_batch_topic = is_batch_topic
        self._means_own: MeansOwn | None = None  # while records are doubted
        self._handles = HandleCache(disk, config.max_open_queue_files)

    # -- finding -----------------------------------------------------------------------------------------

    def get(self, topic: str, queue_id: int) -> TopicQueue | None:
        return self.by_key.get((topic, queue_id))

    def get_or_create(self, topic: str, queue_id: int) -> TopicQueue:
        """The queue, made in memory when it is new; its files come with its first entries."""
        queue = self.by_key.get((topic, queue_id))
        if queue is None:
            with self.lock:
                queue = self.by_key.setdefault((topic, queue_id), self._make(topic, queue_id))
            self.new_queues = True
        return queue

    def __iter__(self) -> Iterator[TopicQueue]:
        return iter(list(self.by_key.values()))

    def __len__(self) -> int:
        return len(self.by_key)

    @property
    def max_physical_offset(self) -> int:
        """The end of the newest record that has an entry; -1 without entries."""
        return max((queue.max_physical_offset for queue in self), default=-1)

    def _make(self, topic: str, queue_id: int, batch: bool | None = None) -> TopicQueue:
        if batch is None:
            batch = self._is_batch_topic(topic)
        root = self._paths.batch_consume_queue if batch else self._paths.consume_queue
        directory = os.path.join(root, topic, str(queue_id))
        if batch:
            files = EntryFiles(
                self._disk, self._handles, directory, BATCH_ENTRY_SIZE, self._config.batch_queue_file_size
            )
            return self._doubting(BatchConsumeQueue(topic, queue_id, files))
        files = EntryFiles(self._disk, self._handles, directory, ENTRY_SIZE, self._config.consume_queue_file_size)
        return self._doubting(ConsumeQueue(topic, queue_id, files))

    def _doubting(self, queue: TopicQueue) -> TopicQueue:
        queue.doubts = Doubts(partial(self._means_own, queue)) if self._means_own is not None else None
        return queue

    @contextlib.contextmanager
    def doubting(self, means_own: MeansOwn) -> Iterator[None]:
        """While recovery runs, records whose queue offset does not fit their neighbours are not believed.

        `means_own` says whether an entry (place and size) means a record of its queue.
        """
        self._means_own = means_own
        for queue in self:
            self._doubting(queue)
        try:
            yield
        finally:
            self._means_own = None
            for queue in self:
                self._doubting(queue)

    # -- loading -----------------------------------------------------------------------------------------

    def load(self) -> None:
        """Find the queues on disk; recovery then calls `recover` on each."""
        for root, batch in ((self._paths.consume_queue, False), (self._paths.batch_consume_queue, True)):
            for topic in self._disk.names(root):
                for name in self._disk.names(os.path.join(root, topic)):
                    if not name.isdigit():
                        path = os.path.join(root, topic, name)
                        raise CorruptFile(path, "not a queue id", "Move it out of the directory and start again")
                    queue = self._make(topic, int(name), batch)
                    queue.damaged = not queue.entries.load()
                    self.by_key[topic, int(name)] = queue

    def remove(self, queue: TopicQueue) -> None:
        """Delete a queue with its files."""
        with self.lock:
            self.by_key.pop((queue.topic, queue.queue_id), None)
            self.removals += 1
            self._unsynced.discard(queue)
            if queue in self.dirty:
                self.dirty.remove(queue)
            queue.entries.destroy()
            queue.entries.removed = True
            self._disk.remove_directory(os.path.dirname(queue.entries.directory))
            self.new_queues = True  # the manifest must forget it

    def clear(self) -> None:
        """Delete all queues."""
        for queue in self:
            self.remove(queue)

    # -- writing -----------------------------------------------------------------------------------------

    def write_out(self, least_pages: int = 0) -> int:
        """Write tails of at least `least_pages` pages to their files; returns the number of bytes."""
        least = max(1, least_pages * _PAGE)
        written = 0
        with self.lock:
            rest: list[TopicQueue] = []
            for queue in dict.fromkeys(self.dirty):
                if len(queue.entries.tail[1]) < least:
                    rest.append(queue)
                    continue
                written += queue.entries.write_out()
                self._unsynced.add(queue)
            self.dirty[:] = [queue for queue in rest if queue.entries.tail[1]]
        return written

    def sync(self) -> None:
        """Force everything that was written out to disk."""
        with self.lock:
            queues, self._unsynced = self._unsynced, set()
            written = [(queue.entries, queue.entries.take_touched()) for queue in queues]
        if sum(len(starts) for _, starts in written) > _SYNC_ONE_BY_ONE:
            self._disk.sync_all(self._paths.root)
            return
        try:
            self._sync_files(written)
        except OSError:
            with self.lock:  # nobody knows which of them are on disk: all of them, the next time
                self._unsynced |= queues
                for entries, starts in written:
                    entries.touched.update(starts)
            raise

    def _sync_files(self, written: list[tuple[EntryFiles, list[int]]]) -> None:
        for entries, starts in written:
            with contextlib.suppress(FileNotFoundError):  # the queue was removed in the meantime
                entries.sync(starts)
                self._disk.sync_directory(entries.directory)

    @property
    def open_files(self) -> int:
        return len(self._handles)

    def close(self) -> None:
        self._handles.close()
