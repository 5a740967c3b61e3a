"""A clock that stands still."""

import pytest

from skyrocket.testing.clock import FakeClock


@pytest.fixture
def clock() -> FakeClock:
    return FakeClock()
