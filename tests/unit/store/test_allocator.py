"""The next file of the log is made ahead of the writer, and removed when nobody used it."""

import threading
from collections.abc import Iterator
from pathlib import Path

import pytest

from skyrocket.store.allocator import FileAllocator
from tests.unit.store.stores import FILE_SIZE, Stores, UnforcedDisk, fill_files, put
from tests.waiting import wait_until

SIZE = 8192


class WatchedDisk(UnforcedDisk):
    """Notes which thread creates files; can be full."""

    def __init__(self) -> None:
        super().__init__()
        self.creators: list[str] = []
        self.full = False
        self.created = threading.Event()

    def create(self, path: str, size: int) -> int:
        self.creators.append(threading.current_thread().name)
        fd = super().create(path, size)
        self.created.set()
        return fd

    def allocate(self, fd: int, position: int, length: int) -> None:
        if self.full:
            raise OSError(28, "No space left on device")
        super().allocate(fd, position, length)


@pytest.fixture
def disk() -> WatchedDisk:
    return WatchedDisk()


@pytest.fixture
def allocator(disk: WatchedDisk) -> Iterator[FileAllocator]:
    allocator = FileAllocator(disk)
    allocator.start()
    yield allocator
    allocator.stop()


def wait_until_ready(allocator: FileAllocator) -> None:
    wait_until(lambda: allocator._ready is not None)


def test_the_writer_takes_the_file_that_was_prepared(
    disk: WatchedDisk, allocator: FileAllocator, tmp_path: Path
) -> None:
    path = str(tmp_path / "file")
    allocator.prepare(0, path, SIZE, 4096)
    wait_until_ready(allocator)
    prepared = allocator.take(0, path, SIZE, 4096)

    assert disk.creators == ["store-allocator"]
    assert (prepared.start_offset, prepared.allocated) == (0, 4096)
    assert Path(path).stat().st_size == SIZE
    assert Path(path).stat().st_blocks * 512 >= 4096  # blocks are reserved: a full disk is known before the append
    disk.close(prepared.fd)


def test_without_a_prepared_file_the_writer_makes_it_itself(
    disk: WatchedDisk, allocator: FileAllocator, tmp_path: Path
) -> None:
    prepared = allocator.take(0, str(tmp_path / "file"), SIZE, 4096)
    assert disk.creators == ["MainThread"]
    disk.close(prepared.fd)


def test_a_file_that_nobody_used_is_removed_at_the_stop(disk: WatchedDisk, tmp_path: Path) -> None:
    allocator = FileAllocator(disk)
    allocator.start()
    allocator.prepare(0, str(tmp_path / "file"), SIZE, 4096)
    wait_until_ready(allocator)
    allocator.stop()
    assert list(tmp_path.iterdir()) == []


def test_a_full_disk_is_the_writers_error_and_leaves_no_file(
    disk: WatchedDisk, allocator: FileAllocator, tmp_path: Path
) -> None:
    disk.full = True
    path = str(tmp_path / "file")
    allocator.prepare(0, path, SIZE, 4096)
    assert disk.created.wait(5)
    with pytest.raises(OSError, match="No space"):
        allocator.take(0, path, SIZE, 4096)
    assert list(tmp_path.iterdir()) == []
    disk.full = False
    disk.close(allocator.take(0, path, SIZE, 4096).fd)


def test_a_store_prepares_the_next_log_file_and_takes_it_away_again(stores: Stores) -> None:
    store = stores.open()
    put(store)
    wait_until_ready(store.commit_log.allocator)
    log = Path(store.paths.commit_log)
    assert sorted(path.name for path in log.iterdir()) == [f"{0:020d}", f"{FILE_SIZE:020d}"]
    store.close()
    assert [path.name for path in log.iterdir()] == [f"{0:020d}"]


def test_an_append_that_rolls_meets_a_file_that_is_there(stores: Stores) -> None:
    disk = WatchedDisk()
    store = stores.open(disk=disk)
    put(store)
    wait_until_ready(store.commit_log.allocator)
    disk.creators.clear()
    fill_files(store, 2)
    assert "MainThread" not in disk.creators
