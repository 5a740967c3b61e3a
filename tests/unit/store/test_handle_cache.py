"""A bounded number of open files."""

import os
from pathlib import Path

import pytest

from skyrocket.store.handle_cache import HandleCache
from tests.unit.store.stores import CountingDisk


def test_the_least_recently_used_file_is_closed(tmp_path: Path) -> None:
    disk = CountingDisk()
    cache = HandleCache(disk, 3)
    paths = [str(tmp_path / str(number)) for number in range(5)]
    for number, path in enumerate(paths[:3]):
        cache.write(path, b"%d" % number, 0, 100)
    cache.read(paths[0], 1, 0)
    cache.write(paths[3], b"3", 0, 100)

    assert len(cache) == len(disk.opened) == 3
    assert list(cache._handles) == [paths[2], paths[0], paths[3]]
    assert cache.read(paths[1], 1, 0) == b"1"  # opened again


def test_a_file_is_created_at_its_full_size_and_written_in_place(tmp_path: Path) -> None:
    cache = HandleCache(CountingDisk(), 3)
    path = str(tmp_path / "file")
    cache.write(path, b"abc", 10, 400)
    assert Path(path).read_bytes() == bytes(10) + b"abc" + bytes(387)
    assert cache.read(path, 1000, 8) == b"\0\0abc" + bytes(387)
    cache.zero_from(path, 11, 400)
    assert Path(path).read_bytes() == bytes(10) + b"a" + bytes(389)


def test_forgetting_and_closing_give_the_descriptors_back(tmp_path: Path) -> None:
    disk = CountingDisk()
    cache = HandleCache(disk, 3)
    for name in "ab":
        cache.write(str(tmp_path / name), b"x", 0, 10)
    cache.forget(str(tmp_path / "a"))
    assert len(disk.opened) == 1
    cache.close()
    assert not disk.opened


def test_a_file_in_use_stays_open_until_its_user_lets_go(tmp_path: Path) -> None:
    disk = CountingDisk()
    cache = HandleCache(disk, 3)
    path = str(tmp_path / "file")
    cache.write(path, b"x", 0, 10)
    handle = cache._get(path, None)
    cache.forget(path)
    assert os.pread(handle.fd, 1, 0) == b"x"
    del handle
    assert not disk.opened


def test_reading_a_file_that_is_not_there_is_an_error(tmp_path: Path) -> None:
    with pytest.raises(FileNotFoundError):
        HandleCache(CountingDisk(), 3).read(str(tmp_path / "none"), 1, 0)
