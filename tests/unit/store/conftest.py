"""A clock that stands still and a way to open stores, for every test of the store."""

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
