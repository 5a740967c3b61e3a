"""The walk through the log, in windows of any size."""

import tracemalloc
from pathlib import Path

import pytest

from skyrocket.format.record import WalkEnd
from skyrocket.offline.log_walk import Hole, HoleKind, LogWalk, read_run
from skyrocket.offline.offset_files import OffsetFiles, read_at
from tests.golden_store import GoldenStore
from tests.unit.inspector.conftest import Copies, Unpacked


def offsets(walk: LogWalk) -> list[int]:
    return [offset for run in walk for offset in run.parts.heads["physical_offset"].tolist()]


@pytest.mark.requirement("A026")
@pytest.mark.parametrize("window_bytes", [64, 1000, 4096, 70_000, 1 << 25])
def test_windows_of_any_size_give_the_same_records(window_bytes: int, unpacked: Unpacked) -> None:
    log = OffsetFiles(unpacked("4.9.7", "ipv6") / "commitlog")
    walk = LogWalk(log, window_bytes=window_bytes)
    expected = [line["physicalOffset"] for line in GoldenStore("4.9.7", "ipv6").messages() if line["kind"] == "message"]
    assert offsets(walk) == expected
    assert walk.end_offset == 8834
    assert [hole.kind for hole in walk.holes] == [HoleKind.ZEROS]


@pytest.mark.parametrize("window_bytes", [200, 4096, 1 << 25])
def test_a_magic_across_two_windows_is_found_again(window_bytes: int, copy_of: Copies) -> None:
    store = copy_of("4.9.7", "ipv6")
    log = "commitlog/00000000000000000000"
    records = store.log_records(log)
    store.flip(log, records[5].physical_offset + 5)
    walk = LogWalk(OffsetFiles(store.path("commitlog")), window_bytes=window_bytes)
    assert offsets(walk) == [head.physical_offset for head in records if head is not records[5]]
    damaged = [hole for hole in walk.holes if hole.kind is HoleKind.DAMAGED]
    assert [(hole.start, hole.end) for hole in damaged] == [(records[5].physical_offset, records[6].physical_offset)]


def test_the_walk_tells_how_far_it_is(unpacked: Unpacked) -> None:
    log = OffsetFiles(unpacked("4.9.7", "clean") / "commitlog")
    steps: list[int] = []
    offsets(LogWalk(log, steps.append, window_bytes=10_000))
    assert sum(steps) == sum(file.size for file in log.files)


def test_a_file_that_shrinks_under_the_walk_is_a_hole(copy_of: Copies) -> None:
    store = copy_of("4.9.7", "clean")
    log = OffsetFiles(store.path("commitlog"))
    second = log.files[1]
    store.replace("commitlog/00000000000000262144", second.path.read_bytes()[:1000])  # after its size was noted
    walk = LogWalk(log)
    offsets(walk)
    assert [hole.file for hole in walk.holes if hole.kind is HoleKind.SHRANK] == [second]


def test_an_empty_directory_is_an_empty_log(tmp_path: Path) -> None:
    walk = LogWalk(OffsetFiles(tmp_path))
    assert offsets(walk) == []
    assert walk.holes == list[Hole]()


def test_reading_a_file_that_is_gone_gives_nothing(tmp_path: Path) -> None:
    assert read_at(tmp_path / "gone", 0, 100) == b""


def test_the_zeros_behind_the_last_record_cost_little() -> None:
    """A log ends with up to a gigabyte of them: a step for each would be minutes, and more memory than there is."""
    zeros = bytes(1 << 20)
    tracemalloc.start()
    try:
        run = read_run(zeros, 0, whole_file=True)
        _, most_bytes = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()
    assert (run.end, run.stop) == (WalkEnd.ZERO, 0)
    assert most_bytes < len(zeros)
