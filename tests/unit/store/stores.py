"""Small stores for tests: a few kilobytes per file, no thread but those of the store, time that stands still."""

import contextlib
import os
import threading
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from queue import Empty, Queue
from typing import Any, TypeVar

from skyrocket.config.sections import StoreConfig
from skyrocket.format.properties import encode_properties
from skyrocket.format.record import decode_record, decode_records
from skyrocket.model.message import StoredMessage
from skyrocket.store.commit_log import PutMessage
from skyrocket.store.disk import Disk
from skyrocket.store.message_store import MessageStore
from skyrocket.store.results import BatchPutResult, Durability, GetResult, PutResult, PutStatus
from skyrocket.store.retention import CleanReport
from skyrocket.testing.clock import FakeClock

FILE_SIZE = 65_536  # large enough for groups of small messages to take the short way
ENTRIES_PER_FILE = 20
TOPIC = "Orders"
EMPTY_RECORD = 91 + len(TOPIC)  # bytes of a record of TOPIC without body and properties

R = TypeVar("R", PutResult, BatchPutResult)

SMALL: dict[str, Any] = {
    "commit_log_file_size": FILE_SIZE,
    "consume_queue_file_size": ENTRIES_PER_FILE * 20,
    "batch_queue_file_size": ENTRIES_PER_FILE * 46,
    "index_slots": 50,
    "index_entries": 1000,
    "preallocate_bytes": 4096,
    "dispatch_thread": False,
    "flush_interval_ms": 60_000,  # nothing is flushed unless a test asks for it
    "flush_thorough_interval_ms": 600_000,
    "queue_flush_interval_ms": 60_000,
    "checkpoint_interval_ms": 60_000,
}


def small_config(**changes: Any) -> StoreConfig:
    return StoreConfig(**(SMALL | changes))


def wait_durable(store: MessageStore, result: R) -> R:
    """The result after the disk has the message, as a broker waits for it; FLUSH_DISK_TIMEOUT when it took too long."""
    outcome: Queue[bool] = Queue()
    store.flusher.when_flushed(result.end_offset, outcome.put)
    try:
        is_flushed = outcome.get(timeout=store.config.sync_flush_timeout_ms / 1000)
    except Empty:
        return result._replace(status=PutStatus.FLUSH_DISK_TIMEOUT)
    if is_flushed:
        return result._replace(durability=Durability.DISK)
    return result._replace(status=PutStatus.SERVICE_NOT_AVAILABLE, remark=store.failure or "")


def dispatch(store: MessageStore) -> None:
    """Now, even if a thread of the store writes queues for longer than a put waits: in a test nobody comes again."""
    with store.queues.lock:
        store.dispatch()


@contextlib.contextmanager
def writing_queues(store: MessageStore) -> Iterator[None]:
    """As long as a thread of the store writes entries of queues to a slow disk."""
    is_held, is_over = threading.Event(), threading.Event()

    def write() -> None:
        with store.queues.lock:
            is_held.set()
            is_over.wait()

    thread = threading.Thread(target=write, daemon=True)
    thread.start()
    is_held.wait()
    try:
        yield
    finally:
        is_over.set()
        thread.join()


def clean_expired(store: MessageStore) -> CleanReport:
    """Apply the retention rules now, as if it were the hour for it."""
    store.cleaner.request()
    return store.cleaner.clean()


class UnforcedDisk(Disk):
    """Never waits for the device: what a test does not cut off the page cache keeps. Counts what it was asked for."""

    def __init__(self) -> None:
        super().__init__()
        self.syncs = 0

    def sync(self, fd: int) -> None:
        self.syncs += 1

    def sync_directory(self, path: str) -> None:
        pass

    def sync_all(self, directory: str) -> None:
        self.syncs += 1

    def write_file(self, path: str, data: bytes) -> None:
        Path(path).write_bytes(data)


class Stores:
    """Opens stores, and closes those that a test leaves open."""

    def __init__(self, root: Path, clock: FakeClock) -> None:
        self.root = root
        self.clock = clock
        self._opened: list[MessageStore] = []

    def open(
        self,
        name: str = "store",
        *,
        disk: Disk | None = None,
        is_batch_topic: Callable[[str], bool] = lambda topic: False,
        memory_bytes: int = 1 << 30,
        **changes: Any,
    ) -> MessageStore:
        store = MessageStore(
            self.root / name,
            small_config(**changes),
            clock=self.clock,
            disk=disk or UnforcedDisk(),
            is_batch_topic=is_batch_topic,
            memory_bytes=memory_bytes,
        )
        store.open()
        self._opened.append(store)
        return store

    def close(self) -> None:
        for store in self._opened:
            store.close()


def message(
    body: bytes = b"hello",
    *,
    topic: str = TOPIC,
    queue_id: int = 0,
    properties: Mapping[str, str] | None = None,
    **fields: Any,
) -> PutMessage:
    return PutMessage(topic, queue_id, body, encode_properties(properties or {}), **fields)


def put(store: MessageStore, body: bytes = b"hello", **fields: Any) -> PutResult:
    """Put a message that must be taken."""
    result = store.put(message(body, **fields))
    assert result.ok, result.remark
    return result


def put_sized(store: MessageStore, record_size: int, **fields: Any) -> PutResult:
    """Put a message of TOPIC whose record takes exactly so many bytes."""
    return put(store, b"x" * (record_size - EMPTY_RECORD), **fields)


def fill_files(store: MessageStore, files: int, **fields: Any) -> list[PutResult]:
    """Put messages until the log has begun its file number `files` (from 1)."""
    results = [put(store, b"x" * 500, **fields)]
    while len(store.commit_log.files.starts) < files:
        results.append(put(store, b"x" * 500, **fields))
    return results


def bodies(result: GetResult) -> list[bytes]:
    return [found.body for found in decode_records(result.join())]


def record(store: MessageStore, physical_offset: int) -> StoredMessage:
    view = store.by_physical_offset(physical_offset)
    assert view is not None
    return decode_record(view, check_crc=True)


def log_bytes(store: MessageStore) -> bytes:
    """The log as its files have it, up to the end of what was written."""
    log = store.commit_log
    data = b"".join(Path(log.files.path_of(start)).read_bytes() for start in log.files.starts)
    return data[: log.written_offset - log.min_offset]


def files_under(root: str | os.PathLike[str]) -> dict[str, bytes]:
    """Relative path → content of every file."""
    return {str(path.relative_to(root)): path.read_bytes() for path in _files(Path(root))}


def _files(root: Path) -> Iterator[Path]:
    return (path for path in sorted(root.rglob("*")) if path.is_file())


class CountingDisk(UnforcedDisk):
    """Knows which descriptors are open."""

    def __init__(self) -> None:
        super().__init__()
        self.opened: set[int] = set()

    def open(self, path: str) -> int:
        fd = super().open(path)
        self.opened.add(fd)
        return fd

    def create(self, path: str, size: int) -> int:
        fd = super().create(path, size)
        self.opened.add(fd)
        return fd

    def close(self, fd: int) -> None:
        self.opened.discard(fd)
        super().close(fd)


class FullDisk(UnforcedDisk):
    """A disk on which no file can be made."""

    full = False

    def create(self, path: str, size: int) -> int:
        if self.full:
            raise OSError(28, "No space left on device", path)
        return super().create(path, size)


def copy_log(master: MessageStore, replica: MessageStore, start: int, chunk: int) -> None:
    offset = start
    while (data := master.commit_log.raw(offset, chunk)) is not None:
        assert 0 < len(data) <= chunk
        replica.append_raw(offset, data)
        replica.dispatch()
        offset += len(data)
    assert offset == master.commit_log.written_offset
