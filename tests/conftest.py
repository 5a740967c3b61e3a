"""Fixtures that several folders share."""

import tarfile

import hypothesis
import pytest

from tests.golden_store import GOLDEN_STORES, GoldenStore, Line
from tests.raw_store import RawStore

# The same examples in every run; a machine under load is not a failure.
hypothesis.settings.register_profile("skyrocket", deadline=None, derandomize=True)
hypothesis.settings.load_profile("skyrocket")


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
