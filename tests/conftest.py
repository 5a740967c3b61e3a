"""Fixtures that several folders share."""

import os
import sys
import tarfile

import hypothesis
import pytest

from tests.golden_store import GOLDEN_STORES, GoldenStore, Line
from tests.raw_store import RawStore
from tests.requirements import ROOT, MarkListener

# The same examples in every run; a machine under load is not a failure. `make faults` asks for the thorough profile.
hypothesis.settings.register_profile("skyrocket", deadline=None, derandomize=True, max_examples=40)
hypothesis.settings.register_profile("thorough", deadline=None, derandomize=True, max_examples=300)
hypothesis.settings.load_profile("skyrocket")

# Hundreds of programs are started: each would compile all modules where none may lie beside its source.
if os.environ.pop("PYTHONDONTWRITEBYTECODE", None):
    os.environ["PYTHONPYCACHEPREFIX"] = sys.pycache_prefix = str(ROOT / "var" / "pycache")
    sys.dont_write_bytecode = False

REQUIREMENT_MARKS = pytest.StashKey[dict[str, set[str]]]()
SHORT_SECONDS = 120  # what takes longer hangs; slow tests have the limit of pyproject.toml, or their own


@pytest.hookimpl(tryfirst=True)  # before pytest leaves out tests
def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    listener = MarkListener()
    listener.pytest_collection_modifyitems(items)
    config.stash[REQUIREMENT_MARKS] = listener.tests
    for item in items:
        if not any(item.get_closest_marker(name) for name in ("slow", "interop", "timeout")):
            item.add_marker(pytest.mark.timeout(SHORT_SECONDS))


@pytest.fixture(scope="session", params=GOLDEN_STORES, ids=str)
def golden(request: pytest.FixtureRequest) -> GoldenStore:
    """Each store of tests/golden in turn; `parametrize("golden", [...], indirect=True)` chooses some."""
    store: GoldenStore = request.param
    return store


@pytest.fixture(scope="session")
def golden_lines(golden: GoldenStore) -> list[Line]:
    """What RocketMQ reads from the store's log: every record and blank, in physical order."""
    return golden.messages()


@pytest.fixture(scope="session")
def golden_files(golden: GoldenStore) -> RawStore:
    """The store's files as they are on disk, in memory."""
    with tarfile.open(golden.path / "store.tar.xz") as archive:
        members = [member for member in archive if member.isfile() and not member.name.endswith("/timerwheel")]
        return RawStore({m.name.removeprefix("./"): _content(archive, m) for m in members})


def _content(archive: tarfile.TarFile, member: tarfile.TarInfo) -> bytes:
    file = archive.extractfile(member)
    assert file is not None
    return file.read()
