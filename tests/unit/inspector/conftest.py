"""Golden stores, unpacked once per session and copied by links for each test that plants damage."""

import os
import shutil
from collections.abc import Callable
from pathlib import Path

import pytest

from tests.golden_store import GoldenStore
from tests.unit.inspector.damage import DamagedStore

Unpacked = Callable[[str, str], Path]
Copies = Callable[[str, str], DamagedStore]


@pytest.fixture(scope="session")
def unpacked(tmp_path_factory: pytest.TempPathFactory) -> Unpacked:
    """A golden store as it is; nobody may write into it."""
    roots: dict[tuple[str, str], Path] = {}

    def unpack(version: str, name: str) -> Path:
        if (version, name) not in roots:
            target = tmp_path_factory.mktemp(f"golden-{version}-{name}")
            roots[(version, name)] = GoldenStore(version, name).extract(target)
        return roots[(version, name)]

    return unpack


@pytest.fixture
def copy_of(unpacked: Unpacked, tmp_path: Path) -> Copies:
    """A copy of a golden store that may be damaged."""

    def copy(version: str, name: str) -> DamagedStore:
        root = tmp_path / f"{version}-{name}"
        shutil.copytree(unpacked(version, name), root, copy_function=os.link)
        return DamagedStore(root)

    return copy


@pytest.fixture(params=["4.9.7", "5.4.0"])
def store(request: pytest.FixtureRequest, copy_of: Copies) -> DamagedStore:
    """The clean store of each version, to be damaged; without the wheel, which is large and has tests of its own."""
    copy = copy_of(request.param, "clean")
    copy.path("timerwheel").unlink(missing_ok=True)
    return copy


@pytest.fixture(params=["4.9.7", "5.4.0"])
def small_store(request: pytest.FixtureRequest, copy_of: Copies) -> DamagedStore:
    """A store of 28 records of each version, to be damaged."""
    copy = copy_of(request.param, "ipv6")
    copy.path("timerwheel").unlink(missing_ok=True)
    return copy
