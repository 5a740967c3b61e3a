"""Entries in files of fixed size with their tail in memory: written in rounds, cut, dropped, forced to disk."""

from pathlib import Path

import pytest

from skyrocket.errors import CorruptFile
from skyrocket.store.entry_files import EntryFiles
from skyrocket.store.handle_cache import HandleCache
from tests.unit.store.stores import UnforcedDisk

ENTRY = 20
FILE = 100


def files_at(path: Path, disk: UnforcedDisk | None = None, *, file_size: int = FILE) -> EntryFiles:
    disk = disk or UnforcedDisk()
    return EntryFiles(disk, HandleCache(disk, 8), str(path / "queue"), ENTRY, file_size)


def entries(first: int, count: int) -> bytes:
    return b"".join(b"%020d" % number for number in range(first, first + count))


def names(path: Path) -> list[str]:
    directory = path / "queue"
    return sorted(file.name for file in directory.iterdir()) if directory.exists() else []


def test_the_file_size_is_rounded_up_to_whole_entries(tmp_path: Path) -> None:
    assert files_at(tmp_path, file_size=81).file_size == 100


def test_no_file_exists_before_the_first_entry_is_written_out(tmp_path: Path) -> None:
    files = files_at(tmp_path)
    files.tail[1].extend(entries(0, 3))
    assert names(tmp_path) == []
    assert files.read(20, 40) == entries(1, 2)
    assert files.write_out() == 60
    assert names(tmp_path) == [f"{0:020d}"]
    assert files.read(20, 40) == entries(1, 2)
    assert (tmp_path / "queue" / f"{0:020d}").stat().st_size == FILE


@pytest.mark.requirement("A013")
def test_entries_go_to_several_files_each_named_by_its_first_byte(tmp_path: Path) -> None:
    files = files_at(tmp_path)
    for first in range(0, 12, 3):
        files.tail[1].extend(entries(first, 3))
        files.write_out()
    assert names(tmp_path) == [f"{0:020d}", f"{100:020d}", f"{200:020d}"]
    assert (tmp_path / "queue" / f"{100:020d}").read_bytes() == entries(5, 5)
    assert (tmp_path / "queue" / f"{200:020d}").read_bytes() == entries(10, 2) + bytes(60)


@pytest.mark.requirement("E017", "A011")
@pytest.mark.parametrize("files_before", [2, 2000])
def test_an_entry_is_found_with_one_read_at_its_place_however_many_files_there_are(
    tmp_path: Path, files_before: int
) -> None:
    disk = ReadingDisk()
    files = files_at(tmp_path, disk)
    last = files_before * FILE // ENTRY - 1
    for first in range(0, last + 1, FILE // ENTRY):
        files.tail[1].extend(entries(first, FILE // ENTRY))
    files.write_out()
    for number in (0, last // 2, last):
        files._handles.close()
        disk.opened.clear()
        disk.reads.clear()
        assert files.read(number * ENTRY, ENTRY) == entries(number, 1)
        assert disk.reads == [(ENTRY, number * ENTRY % FILE)]
        assert [Path(path).name for path in disk.opened] == [f"{number * ENTRY // FILE * FILE:020d}"]


class ReadingDisk(UnforcedDisk):
    """Notes which files are opened, and every read's length and position."""

    def __init__(self) -> None:
        super().__init__()
        self.opened: list[str] = []
        self.reads: list[tuple[int, int]] = []

    def open(self, path: str) -> int:
        self.opened.append(path)
        return super().open(path)

    def read_at(self, fd: int, length: int, position: int) -> bytes:
        self.reads.append((length, position))
        return super().read_at(fd, length, position)


def test_a_read_stays_within_one_file_or_within_the_tail(tmp_path: Path) -> None:
    files = files_at(tmp_path)
    files.tail[1].extend(entries(0, 7))
    files.write_out()
    files.tail[1].extend(entries(7, 2))
    assert files.read(60, 1000) == entries(3, 2)
    assert files.read(100, 1000) == entries(5, 2)
    assert files.read(140, 1000) == entries(7, 2)
    assert files.read(180, 1000) == b""


def test_a_file_that_vanished_reads_as_nothing(tmp_path: Path) -> None:
    files = files_at(tmp_path)
    files.tail[1].extend(entries(0, 7))
    files.write_out()
    files.drop_first_file()
    assert files.read(0, 100) == b""  # a reader that looked up the offset just before the file went
    assert files.first_byte == 100


def test_an_entry_can_be_replaced_in_a_file_and_in_the_tail(tmp_path: Path) -> None:
    files = files_at(tmp_path)
    files.tail[1].extend(entries(0, 4))
    files.write_out()
    files.sync(files.take_touched())
    files.tail[1].extend(entries(4, 2))
    files.overwrite(20, b"a" * 20)
    files.overwrite(80, b"b" * 20)
    assert files.read(20, 20) == b"a" * 20
    assert files.read(80, 20) == b"b" * 20
    assert files.touched == {0}


@pytest.mark.parametrize(
    ("position", "left", "rest"),
    [(240, 3, 2), (220, 3, 1), (200, 2, 5), (180, 2, 4), (100, 1, 5), (20, 1, 1), (0, 0, 0)],
)
def test_truncation_leaves_no_file_without_entries(tmp_path: Path, position: int, left: int, rest: int) -> None:
    files = files_at(tmp_path)
    files.tail[1].extend(entries(0, 12))
    files.write_out()
    files.tail[1].extend(entries(12, 3))
    files.truncate(position)

    assert files.end == position
    assert len(names(tmp_path)) == left
    if left:
        last = (tmp_path / "queue" / names(tmp_path)[-1]).read_bytes()
        assert last[rest * 20 :] == bytes(FILE - rest * 20)
        assert any(last[:20])
    files.tail[1].extend(entries(position // 20, 1))
    files.write_out()
    assert files.read(position, 20) == entries(position // 20, 1)


def test_a_truncated_tail_is_cut_without_touching_files(tmp_path: Path) -> None:
    files = files_at(tmp_path)
    files.tail[1].extend(entries(0, 4))
    files.truncate(40)
    assert (files.end, files.read(0, 100)) == (40, entries(0, 2))


def test_files_are_found_again_by_name_and_length(tmp_path: Path) -> None:
    files = files_at(tmp_path)
    files.tail[1].extend(entries(0, 12))
    files.write_out()
    again = files_at(tmp_path)
    assert again.load()
    assert again.starts == [0, 100, 200]
    assert again.end == 300  # recovery says where the entries really end
    (tmp_path / "queue" / f"{100:020d}").unlink()
    assert not files_at(tmp_path).load()


@pytest.mark.parametrize(("name", "length"), [("readme", 100), (f"{7:020d}", 100), (f"{0:020d}", 99)])
def test_a_file_that_cannot_belong_to_a_queue_is_refused_by_name(tmp_path: Path, name: str, length: int) -> None:
    (tmp_path / "queue").mkdir()
    (tmp_path / "queue" / name).write_bytes(bytes(length))
    with pytest.raises(CorruptFile, match=name):
        files_at(tmp_path).load()


def test_destroying_removes_files_and_directory(tmp_path: Path) -> None:
    files = files_at(tmp_path)
    files.tail[1].extend(entries(0, 12))
    files.write_out()
    files.destroy()
    assert not (tmp_path / "queue").exists()
    assert (files.end, files.starts, files.touched) == (0, [], set())


def test_each_written_file_is_forced_once(tmp_path: Path) -> None:
    disk = UnforcedDisk()
    files = files_at(tmp_path, disk)
    files.tail[1].extend(entries(0, 12))
    files.write_out()
    assert files.take_touched() == [0, 100, 200]
    assert files.take_touched() == []
    files.sync([0, 100, 200])
    assert disk.syncs == 3


def test_a_file_that_was_dropped_need_not_be_forced(tmp_path: Path) -> None:
    disk = UnforcedDisk()
    files = files_at(tmp_path, disk)
    files.tail[1].extend(entries(0, 7))
    files.write_out()
    touched = files.take_touched()
    files.drop_first_file()
    files.sync(touched)
    assert disk.syncs == 1
