"""The few things that the disk does beyond a system call."""

import os
from pathlib import Path
from types import SimpleNamespace

import pytest

from skyrocket.store.disk import Disk


@pytest.mark.parametrize(
    ("blocks", "free", "available", "ratio"),
    [(100, 100, 100, 0.0), (100, 25, 25, 0.75), (1000, 249, 249, 0.76), (100, 30, 20, 0.78), (100, 0, 0, 1.0)],
)
def test_the_used_ratio_is_rounded_up_to_whole_percents(
    monkeypatch: pytest.MonkeyPatch, blocks: int, free: int, available: int, ratio: float
) -> None:
    stat = SimpleNamespace(f_blocks=blocks, f_bfree=free, f_bavail=available, f_frsize=4096)
    monkeypatch.setattr(os, "statvfs", lambda path: stat)
    assert Disk().used_ratio("/") == ratio


def test_a_file_is_replaced_as_a_whole(tmp_path: Path) -> None:
    path = tmp_path / "file"
    for content in (b"old content", b"new"):
        Disk().replace_file(str(path), content)
        assert path.read_bytes() == content
    assert [file.name for file in tmp_path.iterdir()] == ["file"]


def test_zeroing_keeps_the_length_and_what_stands_before(tmp_path: Path) -> None:
    path = tmp_path / "file"
    path.write_bytes(b"x" * 10_000)
    fd = Disk().open(str(path))
    Disk().zero_from(fd, 5000, 10_000)
    Disk().close(fd)
    assert path.read_bytes() == b"x" * 5000 + bytes(5000)


def test_data_is_found_behind_a_hole(tmp_path: Path) -> None:
    fd = Disk().create(str(tmp_path / "file"), 1 << 20)
    assert Disk().next_data(fd, 0) is None
    Disk().write_at(fd, b"here", 1 << 19)
    assert Disk().next_data(fd, 0) == 1 << 19
    assert Disk().next_data(fd, (1 << 19) + 8192) is None
    Disk().close(fd)


@pytest.mark.requirement("A028")
def test_a_map_and_a_descriptor_show_the_same_bytes(tmp_path: Path) -> None:
    fd = Disk().create(str(tmp_path / "file"), 8192)
    mapped = Disk().map(fd, 8192)
    mapped[100:105] = b"hello"
    assert Disk().read_at(fd, 5, 100) == b"hello"
    Disk().write_at(fd, b"HELLO", 100)
    assert mapped[100:105] == b"HELLO"
    Disk().sync(fd)
    Disk().sync_all(str(tmp_path))
    mapped.close()
    Disk().close(fd)


def test_removing_what_is_not_there_is_fine_and_what_is_not_empty_stays(tmp_path: Path) -> None:
    Disk().unlink(str(tmp_path / "none"))
    Disk().remove_directory(str(tmp_path / "none"))
    (tmp_path / "full").mkdir()
    (tmp_path / "full" / "file").touch()
    Disk().remove_directory(str(tmp_path / "full"))
    assert (tmp_path / "full" / "file").exists()
    Disk().remove_tree(str(tmp_path / "full"))
    assert not (tmp_path / "full").exists()
    assert Disk().names(str(tmp_path / "full")) == []
