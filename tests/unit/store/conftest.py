"""A clock that stands still and a way to open stores, for every test of the store."""

import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from skyrocket.testing.clock import FakeClock
from tests.unit.store.stores import Stores


@pytest.fixture
def clock() -> FakeClock:
    return FakeClock()


@pytest.fixture
def stores(tmp_path: Path, clock: FakeClock) -> Iterator[Stores]:
    opener = Stores(tmp_path, clock)
    yield opener
    opener.close()


@pytest.fixture
def hurried_threads() -> Iterator[None]:
    """Threads take turns after a microsecond, so that a missing lock shows."""
    interval = sys.getswitchinterval()
    sys.setswitchinterval(1e-6)
    yield
    sys.setswitchinterval(interval)
