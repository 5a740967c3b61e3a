"""Files in offset order: found by arithmetic, mapped a few at a time, dropped without harm to readers."""

import gc
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from skyrocket.errors import CorruptFile
from skyrocket.store.mapped_file_queue import MappedFileQueue
from tests.unit.store.stores import CountingDisk

SIZE = 4096


@pytest.fixture
def disk() -> CountingDisk:
    return CountingDisk()


def queue_of(disk: CountingDisk, path: Path, files: int, *, max_mapped: int = 64) -> MappedFileQueue:
    queue = MappedFileQueue(disk, str(path), SIZE, max_mapped)
    queue.load()
    for number in range(files):
        file = queue.append_file(number * SIZE)
        file.map[:4] = b"%04d" % number
    return queue


class CountingStarts(list[int]):
    """A list that counts how often one of its numbers is looked at."""

    looks = 0

    def __getitem__(self, index: Any) -> Any:
        self.looks += 1
        return super().__getitem__(index)

    def __iter__(self) -> Iterator[int]:
        for number in super().__iter__():
            self.looks += 1
            yield number

    def __contains__(self, number: object) -> bool:
        self.looks += len(self)
        return super().__contains__(number)


@pytest.mark.requirement("E017")
def test_a_file_is_found_with_the_same_few_looks_among_ten_and_among_a_hundred_thousand(
    disk: CountingDisk, tmp_path: Path
) -> None:
    looks: dict[int, set[int]] = {}
    for count in (10, 100_000):
        queue = MappedFileQueue(disk, str(tmp_path), SIZE, 64)
        for number in (0, count // 2, count - 2, count - 1):
            starts = queue._starts = CountingStarts(range(0, count * SIZE, SIZE))
            queue.find(number * SIZE + 1)  # none of the files exists: this is about the search alone
            looks.setdefault(count, set()).add(starts.looks)
    assert looks[10] == looks[100_000]


@pytest.mark.requirement("A006", "C105")
def test_an_offset_belongs_to_the_file_that_begins_at_or_before_it(disk: CountingDisk, tmp_path: Path) -> None:
    queue = queue_of(disk, tmp_path, 3)
    for offset, start in [(0, 0), (SIZE - 1, 0), (SIZE, SIZE), (3 * SIZE - 1, 2 * SIZE)]:
        file = queue.find(offset)
        assert file is not None
        assert file.start_offset == start
    assert queue.find(-1) is None
    assert queue.find(3 * SIZE) is None


def test_the_first_file_need_not_begin_at_zero(disk: CountingDisk, tmp_path: Path) -> None:
    queue = queue_of(disk, tmp_path, 4)
    queue.drop_file(0)
    queue.drop_file(SIZE)
    reopened = MappedFileQueue(disk, str(tmp_path), SIZE, 64)
    reopened.load()
    assert (reopened.min_offset, reopened.end_offset) == (2 * SIZE, 4 * SIZE)
    assert reopened.find(SIZE) is None
    found = reopened.find(3 * SIZE + 1)
    assert found is not None
    assert bytes(found.view[:4]) == b"0003"


def test_an_empty_directory_has_no_offsets(disk: CountingDisk, tmp_path: Path) -> None:
    queue = queue_of(disk, tmp_path, 0)
    assert (queue.min_offset, queue.end_offset, queue.find(0), queue.pin_last()) == (0, 0, None, None)


@pytest.mark.requirement("A028")
def test_only_so_many_files_are_mapped_and_open_at_a_time(disk: CountingDisk, tmp_path: Path) -> None:
    queue = queue_of(disk, tmp_path, 20, max_mapped=4)
    for number in [*range(20), 3, 7, 11]:
        file = queue.find(number * SIZE)
        assert file is not None
        assert bytes(file.view[:4]) == b"%04d" % number
        del file
    gc.collect()
    assert len(disk.opened) <= 5  # four, and the one that is written
    queue.close()
    gc.collect()
    assert not disk.opened


def test_a_slice_outlives_the_forgetting_and_the_deletion_of_its_file(disk: CountingDisk, tmp_path: Path) -> None:
    queue = queue_of(disk, tmp_path, 3)
    file = queue.find(0)
    assert file is not None
    view = file.view[:4]
    del file
    queue.drop_file(0)
    queue.close()
    gc.collect()
    assert bytes(view) == b"0000"
    assert not (tmp_path / f"{0:020d}").exists()


def test_a_reader_never_gets_the_wrong_file_while_the_oldest_is_dropped(disk: CountingDisk, tmp_path: Path) -> None:
    queue = queue_of(disk, tmp_path, 3)
    starts = queue._starts
    queue.drop_file(0)
    # A reader that is between two looks at the list still holds the list of before.
    assert starts == [0, SIZE, 2 * SIZE]
    assert queue.starts == [SIZE, 2 * SIZE]


def test_a_file_that_was_deleted_under_a_reader_is_not_found(disk: CountingDisk, tmp_path: Path) -> None:
    queue = queue_of(disk, tmp_path, 3, max_mapped=1)
    (tmp_path / f"{0:020d}").unlink()
    assert queue.find(0) is None


def test_truncation_drops_later_files_and_zeroes_the_rest(disk: CountingDisk, tmp_path: Path) -> None:
    queue = queue_of(disk, tmp_path, 4)
    second = queue.find(SIZE)
    assert second is not None
    second.map[:] = b"y" * SIZE
    queue.truncate(SIZE + 100)

    assert queue.starts == [0, SIZE]
    data = (tmp_path / f"{SIZE:020d}").read_bytes()
    assert data == b"y" * 100 + bytes(SIZE - 100)
    assert sorted(path.name for path in tmp_path.iterdir()) == [f"{0:020d}", f"{SIZE:020d}"]


def test_truncation_at_the_end_of_a_file_keeps_it_whole(disk: CountingDisk, tmp_path: Path) -> None:
    queue = queue_of(disk, tmp_path, 3)
    queue.truncate(SIZE)
    assert queue.starts == [0, SIZE]  # the file that begins there stays, without content
    assert not any((tmp_path / f"{SIZE:020d}").read_bytes())


@pytest.mark.parametrize(
    ("name", "length", "text"),
    [
        (f"{SIZE:020d}", 100, "100 bytes"),
        (f"{2 * SIZE:020d}", SIZE, "missing"),
        ("notes.txt", 10, "does not belong"),
        ("1234", SIZE, "does not belong"),
    ],
    ids=["length", "gap", "text", "short name"],
)
def test_a_directory_that_cannot_be_a_log_is_refused_by_name(
    disk: CountingDisk, tmp_path: Path, name: str, length: int, text: str
) -> None:
    queue_of(disk, tmp_path, 1)
    (tmp_path / name).write_bytes(bytes(length))
    queue = MappedFileQueue(disk, str(tmp_path), SIZE, 4)
    with pytest.raises(CorruptFile, match=text) as raised:
        queue.load()
    assert str(raised.value.path).endswith(name)


def test_an_empty_last_file_and_directories_are_passed_over(disk: CountingDisk, tmp_path: Path) -> None:
    queue_of(disk, tmp_path, 1)
    (tmp_path / f"{SIZE:020d}").write_bytes(b"")
    (tmp_path / "0backup").mkdir()
    queue = MappedFileQueue(disk, str(tmp_path), SIZE, 4)
    queue.load()
    assert queue.starts == [0]
    assert not (tmp_path / f"{SIZE:020d}").exists()
