"""A clock that is moved by hand, and a store with timers on it."""

from collections.abc import Iterator
from pathlib import Path

import pytest

from skyrocket.testing.clock import FakeClock
from tests.unit.broker.timer.timed import Timed


@pytest.fixture
def clock() -> FakeClock:
    return FakeClock()


@pytest.fixture
def timed(tmp_path: Path, clock: FakeClock) -> Iterator[Timed]:
    given = Timed(tmp_path / "store", clock)
    yield given
    given.stop()
