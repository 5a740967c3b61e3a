"""A way to open stores, for tests of their repair."""

from collections.abc import Iterator
from pathlib import Path

import pytest

from skyrocket.testing.clock import FakeClock
from tests.unit.store.stores import Stores


@pytest.fixture
def stores(tmp_path: Path) -> Iterator[Stores]:
    opener = Stores(tmp_path, FakeClock())
    yield opener
    opener.close()
