"""Every fault test: a time limit, no threads or descriptors left, a directory in memory where there is one."""

import shutil
import tempfile
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.faults.harness import no_leaks


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    for item in items:
        if "faults" in item.path.parts and item.get_closest_marker("timeout") is None:
            limit = 1800 if item.get_closest_marker("slow") is not None else 120
            item.add_marker(pytest.mark.timeout(limit))


@pytest.fixture(autouse=True)
def leaves_nothing_behind(caplog: pytest.LogCaptureFixture) -> Iterator[None]:
    with no_leaks():
        yield
        # A logged error holds its traceback, and that every object on its way.
        for phase in ("setup", "call"):
            caplog.get_records(phase).clear()


@pytest.fixture
def directory(tmp_path: Path) -> Iterator[Path]:
    """A directory on which fsync costs nothing: faults are simulated, the real disk has nothing to add."""
    memory = Path("/dev/shm")
    if not memory.is_dir():
        yield tmp_path
        return
    path = Path(tempfile.mkdtemp(prefix="skyrocket-faults-", dir=memory))
    yield path
    shutil.rmtree(path, ignore_errors=True)
