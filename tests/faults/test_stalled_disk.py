"""A real disk that stands still under load: pulls of what is in memory go on."""

from collections.abc import Iterator
from pathlib import Path
from statistics import median

import pytest
from bench.stalls import measure

from skyrocket.testing.stalling_disk import NoStallingDisk, StallingDisk, stalling_disk

pytestmark = [pytest.mark.requirement("E021"), pytest.mark.timeout(300)]

SECONDS = 2.0
LIGHT = ["--connections", "8", "--rate", "500"]
ALWAYS = ["commitLogWriteThread=ALWAYS"]


@pytest.fixture
def disk(tmp_path: Path) -> Iterator[StallingDisk]:
    try:
        with stalling_disk(tmp_path) as made:
            yield made
    except NoStallingDisk as reason:
        pytest.skip(f"no disk can be stopped here: {reason}")


def assert_pulls_go_on(disk: StallingDisk, frozen: bool, stalls: int) -> None:
    """In most of the stalls: one that begins while the index is written through its map holds up everybody.

    How long pulls wait is a question to `bench.stalls` on a quiet machine; a busy one is slow, but not as the disk.
    """
    settings = ALWAYS if frozen else []
    found = measure(disk, stalls=stalls, seconds=SECONDS, frozen=frozen, settings=settings, extra=LIGHT)
    assert median(stall.pulls for stall in found) > 100
    assert median(stall.longest_ms for stall in found) < SECONDS * 500, found


@pytest.mark.parametrize("frozen", [True, False], ids=["file system", "device"])
def test_pulls_go_on_while_the_disk_stands_still(disk: StallingDisk, frozen: bool) -> None:
    assert_pulls_go_on(disk, frozen, stalls=3)


@pytest.mark.slow
@pytest.mark.parametrize("frozen", [True, False], ids=["file system", "device"])
def test_pulls_go_on_in_ten_stalls(disk: StallingDisk, frozen: bool) -> None:
    assert_pulls_go_on(disk, frozen, stalls=10)
