"""A thread writes the log while the disk may stand still: in order, readable when written, and the appender goes on."""

import errno
import threading
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from skyrocket.config.sections import FlushDiskType, LogWriteThread
from skyrocket.store.allocator import FileAllocator
from skyrocket.store.disk import DiskStandsStill
from skyrocket.store.log_writer import Chunk
from skyrocket.store.message_store import MessageStore
from skyrocket.store.results import PutResult, PutStatus
from tests.maps import is_mapped
from tests.unit.store.stores import TOPIC, Stores, UnforcedDisk, bodies, log_bytes, message
from tests.waiting import wait_until


class StandingDisk(UnforcedDisk):
    """Writes and reservations wait while it stands still; the writer's may fail."""

    def __init__(self) -> None:
        super().__init__()
        self.moves = threading.Event()
        self.moves.set()
        self.error = 0

    def write_at(self, fd: int, data: bytes | bytearray | memoryview, position: int) -> None:
        assert self.moves.wait(30)
        if self.error:
            raise OSError(self.error, "as the test wants it")
        super().write_at(fd, data, position)

    def allocate(self, fd: int, position: int, length: int) -> None:
        assert self.moves.wait(30)
        super().allocate(fd, position, length)


def put(store: MessageStore, body: bytes = b"hello", **fields: Any) -> PutResult:
    """Put a message that must be taken, and is confirmed when it is written."""
    result = store.put(message(body, **fields), is_confirmed_later=True)
    assert result.ok, result.remark
    return result


@pytest.fixture
def disk() -> Iterator[StandingDisk]:
    disk = StandingDisk()
    yield disk
    disk.moves.set()


def opened(stores: Stores, disk: StandingDisk, **changes: Any) -> MessageStore:
    """A store that hands everything over, with one message that is readable."""
    store = stores.open(disk=disk, **{"log_write_thread": LogWriteThread.ALWAYS, **changes})
    put(store, b"first")
    wait_until(lambda: not store.commit_log.is_behind)
    store.dispatch()
    return store


def get(store: MessageStore) -> list[bytes]:
    store.dispatch()
    return bodies(store.get(TOPIC, 0, 0))


@pytest.mark.requirement("E021")
def test_appends_and_reads_go_on_while_the_disk_stands_still(stores: Stores, disk: StandingDisk) -> None:
    store = opened(stores, disk)
    disk.moves.clear()
    second, third = put(store, b"second"), put(store, b"third")
    assert (second.queue_offset, third.queue_offset) == (1, 2)
    assert get(store) == [b"first"], "what is not in the page cache nobody reads"
    assert store.commit_log.readable_offset < store.commit_log.written_offset
    disk.moves.set()
    wait_until(lambda: not store.commit_log.is_behind)
    assert get(store) == [b"first", b"second", b"third"]


def test_a_put_that_nobody_confirms_later_returns_when_the_page_cache_has_it(
    stores: Stores, disk: StandingDisk
) -> None:
    """A consumer that sent a message back forgets it when it is answered."""
    store = opened(stores, disk)
    disk.moves.clear()
    returned = threading.Event()

    def put_and_return() -> None:
        store.put(message(b"second"))
        returned.set()

    thread = threading.Thread(target=put_and_return)
    thread.start()
    wait_until(lambda: store.commit_log.is_behind)
    assert not returned.wait(0.1)
    disk.moves.set()
    assert returned.wait(30)
    thread.join()
    assert store.commit_log.readable_offset == store.commit_log.written_offset


def test_who_waits_hears_when_its_bytes_are_written(stores: Stores, disk: StandingDisk) -> None:
    store = opened(stores, disk)
    writer, heard = store.commit_log.writer, list[tuple[str, bool]]()
    disk.moves.clear()
    ends = [put(store, body).end_offset for body in (b"second", b"third")]
    writer.when_written(ends[1], lambda ok: heard.append(("third", ok)))
    writer.when_written(ends[0], lambda ok: heard.append(("second", ok)))
    writer.when_written(0, lambda ok: heard.append(("first", ok)))
    assert heard == [("first", True)]
    disk.moves.set()
    wait_until(lambda: len(heard) == 3)
    assert heard == [("first", True), ("second", True), ("third", True)]


def test_a_write_that_fails_behind_the_appender_fails_the_store(stores: Stores, disk: StandingDisk) -> None:
    store = opened(stores, disk)
    heard: list[bool] = []
    disk.moves.clear()
    end = put(store, b"lost").end_offset
    store.commit_log.writer.when_written(end, heard.append)
    disk.error = errno.EIO
    disk.moves.set()
    wait_until(lambda: bool(heard))
    assert heard == [False]
    assert "as the test wants it" in (store.failure or "")
    assert store.put(message()).status is PutStatus.SERVICE_NOT_AVAILABLE
    assert get(store) == [b"first"]


@pytest.mark.requirement("C162")
def test_no_more_is_taken_when_appends_have_waited_for_a_second(stores: Stores, disk: StandingDisk) -> None:
    store = opened(stores, disk)
    disk.moves.clear()
    put(store, b"second")
    stores.clock.advance(ms=1500)
    assert store.page_cache_busy
    assert store.put(message()).status is PutStatus.OS_PAGE_CACHE_BUSY
    disk.moves.set()
    wait_until(lambda: not store.commit_log.is_behind)
    assert not store.page_cache_busy
    put(store, b"third")
    wait_until(lambda: get(store) == [b"first", b"second", b"third"])


def test_how_long_bytes_wait_counts_from_when_the_oldest_were_handed_over(stores: Stores, disk: StandingDisk) -> None:
    store = opened(stores, disk)
    log, times = store.commit_log, list[int]()
    disk.moves.clear()
    for body in (b"second", b"third"):
        stores.clock.advance(ms=10)
        times.append(stores.clock.now_ms())
        put(store, body)
        assert log.append_began_ms == times[0]
    disk.moves.set()
    wait_until(lambda: log.append_began_ms == 0 and not log.is_behind)
    file = log.files.find(0)
    assert file is not None
    disk.moves.clear()
    # By an append that began before the writer was idle.
    log.writer.hand_over(Chunk(file, 0, b"x", log.written_offset, 77))
    assert log.append_began_ms == 77


def test_what_waits_for_the_writer_is_bounded(
    stores: Stores, disk: StandingDisk, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("skyrocket.store.intake._MOST_WAITING_BYTES", 400)
    store = opened(stores, disk)
    disk.moves.clear()
    taken = 0
    while store.put(message(b"x" * 50), is_confirmed_later=True).ok:
        taken += 1
        assert taken < 10
    assert taken == 3
    assert store.put(message()).status is PutStatus.OS_PAGE_CACHE_BUSY
    assert store.intake.max_plain_body == -1


def test_files_are_changed_and_closed_behind_the_appender_as_in_front_of_it(stores: Stores) -> None:
    logs = []
    for how in LogWriteThread:
        store = stores.open(how.value, log_write_thread=how)
        while len(store.commit_log.files.starts) < 3:
            put(store, b"x" * 500)
        store.close()
        reopened = stores.open(how.value, log_write_thread=how)
        assert reopened.recovery is not None
        assert reopened.recovery.clean
        logs.append(log_bytes(reopened))
    assert logs[0] == logs[1] == logs[2]


def test_a_flush_that_somebody_waits_for_covers_what_was_handed_over(stores: Stores, disk: StandingDisk) -> None:
    store = opened(stores, disk, flush_disk_type=FlushDiskType.SYNC_FLUSH)
    heard: list[bool] = []
    disk.moves.clear()
    result = put(store, b"second")
    store.flusher.when_flushed(result.end_offset, heard.append)
    assert not heard
    disk.moves.set()
    wait_until(lambda: heard == [True])
    assert store.commit_log.flushed_offset >= result.end_offset
    wait_until(lambda: get(store) == [b"first", b"second"])


def test_while_somebody_forces_bytes_to_disk_appends_are_handed_over(stores: Stores, disk: StandingDisk) -> None:
    store = stores.open(disk=disk)
    put(store, b"first")
    assert store.commit_log.writer._thread is None, "nobody forces any"
    with disk.wait():
        put(store, b"second")
    assert store.commit_log.writer._thread is not None
    wait_until(lambda: get(store) == [b"first", b"second"])


def test_with_sync_flush_appends_are_handed_over_only_when_forcing_takes_longer_than_usual(
    stores: Stores, disk: StandingDisk, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Bytes are forced all the time: a switch of threads for each append cost a fifth of the rate."""
    given = {"flush_disk_type": FlushDiskType.SYNC_FLUSH, "log_write_thread": LogWriteThread.WHILE_FLUSHING}
    store = opened(stores, disk, **given)
    handed: list[Chunk] = []
    monkeypatch.setattr(store.commit_log.writer, "hand_over", handed.append)
    disk.waiting[0] = time.monotonic() + 3600  # somebody has just begun
    put(store, b"at once")
    assert not handed
    disk.waiting[0] = time.monotonic() - 1
    put(store, b"later")
    assert [chunk.data.count(b"later") for chunk in handed] == [1]
    del disk.waiting[0]


def test_an_index_does_not_touch_its_map_while_the_disk_stands_still(stores: Stores, disk: StandingDisk) -> None:
    store = opened(stores, disk, index_batch_records=1)
    assert store.index is not None
    with disk.wait():
        began = disk.waiting[threading.get_ident()]
        disk.waiting[threading.get_ident()] = began - 1  # for a second already
        for number in range(20):
            put(store, properties={"KEYS": f"key{number}"})
        wait_until(lambda: not store.commit_log.is_behind)
        store.dispatch()
        assert store.index.backlog == 20
    put(store)
    wait_until(lambda: not store.commit_log.is_behind)
    store.dispatch()
    assert store.index.backlog == 0
    assert len(store.query(TOPIC, "key7")) == 1


def test_a_file_that_is_being_made_is_not_waited_for_by_an_append(
    disk: StandingDisk, tmp_path_factory: pytest.TempPathFactory
) -> None:
    allocator = FileAllocator(disk)
    path = str(tmp_path_factory.mktemp("log") / "file")
    disk.moves.clear()
    allocator.start()
    try:
        allocator.prepare(0, path, 8192, 4096)
        wait_until(lambda: allocator._making == 0)
        with pytest.raises(DiskStandsStill):
            allocator.take(0, path, 8192, 4096, 0.02)
        disk.moves.set()
        wait_until(lambda: allocator.has(0) or allocator._making is None)
        disk.close(allocator.take(0, path, 8192, 4096).fd)
    finally:
        disk.moves.set()
        allocator.stop()


def test_blocks_are_reserved_ahead_in_another_thread(stores: Stores) -> None:
    callers: list[str] = []

    class Noting(UnforcedDisk):
        def allocate(self, fd: int, position: int, length: int) -> None:
            callers.append(threading.current_thread().name)
            super().allocate(fd, position, length)

    store = stores.open(disk=Noting(), preallocate_bytes=4096, commit_log_file_size=1 << 20)
    for _ in range(100):
        put(store, b"x" * 300)
        wait_until(lambda: (ahead := store.commit_log._blocks.ahead) is None or ahead.is_done)
    assert callers.count(threading.current_thread().name) <= 1, "the first file"
    assert len(callers) > 8


class SlowDisk(UnforcedDisk):
    """Takes its time for room; nothing is wrong with it."""

    def allocate(self, fd: int, position: int, length: int) -> None:
        threading.Event().wait(0.1)
        super().allocate(fd, position, length)


def test_room_that_takes_a_while_is_waited_for(stores: Stores) -> None:
    """A slave that refused bytes because of it left its master."""
    master, slave = stores.open("master"), stores.open("slave", disk=SlowDisk())
    while len(master.commit_log.files.starts) < 3:
        put(master, b"x" * 500)
    for start in master.commit_log.files.starts:
        raw = master.commit_log.raw(start, master.commit_log.file_size)
        assert raw is not None
        slave.append_raw(start, raw)
    assert slave.commit_log.written_offset == master.commit_log.written_offset
    assert log_bytes(slave)[: master.commit_log.written_offset] == log_bytes(master)[: master.commit_log.written_offset]
    put(slave, b"x" * 500)


def test_an_idle_thread_does_not_keep_the_room_of_a_file_that_is_deleted(stores: Stores, disk: StandingDisk) -> None:
    store = opened(stores, disk, commit_log_file_size=1 << 16)
    log = store.commit_log
    first = log.files.find(0)
    assert first is not None
    inode = Path(first.path).stat().st_ino
    while len(log.files.starts) == 1:
        put(store, b"x" * 1000)
        wait_until(lambda: not log.is_behind)
    # What it writes last belongs to the file that goes.
    log.writer.hand_over(Chunk(first, 0, b"", log.written_offset, log.last_store_timestamp))
    wait_until(lambda: not log.writer._chunks)
    del first
    store.dispatch()
    store.flush()
    log.files.drop_file(0)
    wait_until(lambda: not is_mapped(inode))
