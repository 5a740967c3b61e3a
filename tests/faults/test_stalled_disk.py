"""A real disk that stands still under load: pulls of what is in memory go on."""

from collections.abc import Iterator
from pathlib import Path

import pytest
from bench.stalls import TARGET_MS, measure

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


@pytest.mark.parametrize("frozen", [True, False], ids=["file system", "device"])
def test_pulls_go_on_while_the_disk_stands_still(disk: StallingDisk, frozen: bool) -> None:
    settings = ALWAYS if frozen else []
    (stall,) = measure(disk, stalls=1, seconds=SECONDS, frozen=frozen, settings=settings, extra=LIGHT)
    assert stall.pulls > 100
    assert stall.longest_ms < SECONDS * 500, "a machine with much else to do may be slow, but not as slow as the disk"


@pytest.mark.slow
@pytest.mark.parametrize("frozen", [True, False], ids=["file system", "device"])
def test_pulls_wait_less_than_50_ms_in_ten_stalls(disk: StallingDisk, frozen: bool) -> None:
    settings = ALWAYS if frozen else []
    stalls = measure(disk, stalls=10, seconds=SECONDS, frozen=frozen, settings=settings, extra=LIGHT)
    assert [round(stall.p99_ms) for stall in stalls if stall.p99_ms >= TARGET_MS] == []
