"""How coroutine tests run, and fixtures that several folders share."""

import inspect
import logging
import os
import sys
import tarfile
from collections.abc import Iterator
from pathlib import Path

import hypothesis
import pytest

from skyrocket.remoting.event_loop import loop_factory
from tests import ROOT
from tests.golden_store import GOLDEN_STORES, GoldenStore, Line
from tests.left_clients import description_of, end_those_of_the_process, running_clients
from tests.loops import run_on
from tests.outcomes import Recorder
from tests.raw_store import RawStore
from tests.requirements import MarkListener

FOLDERS = ("unit", "cluster", "integration", "interop", "faults", "pipeline")

# Helpers explain their asserts as tests do.
pytest.register_assert_rewrite("tests.client_steps", *(f"tests.{folder}" for folder in FOLDERS))

# The same examples in every run of the same modules (Hypothesis mixes in constants of whatever is loaded, so a worker
# that had other tests before has others); a machine under load is not a failure. `make faults-formats` asks for the
# thorough profile.
hypothesis.settings.register_profile("skyrocket", deadline=None, derandomize=True, max_examples=40)
hypothesis.settings.register_profile("thorough", deadline=None, derandomize=True, max_examples=300)
hypothesis.settings.load_profile("skyrocket")

# Hundreds of programs are started: each would compile all modules where none may lie beside its source.
if os.environ.pop("PYTHONDONTWRITEBYTECODE", None):
    os.environ["PYTHONPYCACHEPREFIX"] = sys.pycache_prefix = str(ROOT / "var" / "pycache")
    sys.dont_write_bytecode = False

REQUIREMENT_MARKS = pytest.StashKey[dict[str, set[str]]]()
SLOW_FILES = pytest.StashKey[set[Path]]()
SHORT_SECONDS = 120  # what takes longer hangs; slow tests have the limit of pyproject.toml, or their own


def pytest_addoption(parser: pytest.Parser) -> None:
    parser.addoption("--record", metavar="SUITE", help="write what becomes of each test to var/suites/SUITE.json")


def pytest_configure(config: pytest.Config) -> None:
    suite = config.getoption("--record")
    if suite and not hasattr(config, "workerinput"):  # the workers of xdist tell the main process
        config.pluginmanager.register(Recorder(suite))


@pytest.hookimpl(tryfirst=True)  # before pytest leaves out tests
def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    listener = MarkListener()
    listener.pytest_collection_modifyitems(items)
    config.stash[REQUIREMENT_MARKS] = listener.tests
    config.stash[SLOW_FILES] = {item.path for item in items if item.get_closest_marker("slow")}
    for item in items:
        if not any(item.get_closest_marker(name) for name in ("slow", "interop", "timeout")):
            item.add_marker(pytest.mark.timeout(SHORT_SECONDS))


@pytest.hookimpl(tryfirst=True)
def pytest_pyfunc_call(pyfuncitem: pytest.Function) -> bool | None:
    """A coroutine runs on the loop that servers have, or on the one that its parameter `loop_kind` names."""
    test = pyfuncitem.obj
    if not inspect.iscoroutinefunction(test):
        return None
    arguments = {name: pyfuncitem.funcargs[name] for name in inspect.signature(test).parameters}
    kind = pyfuncitem.callspec.params.get("loop_kind") if hasattr(pyfuncitem, "callspec") else None
    run_on(None if kind == "asyncio" else loop_factory(), test(**arguments), _seconds_of(pyfuncitem))
    return True


def _seconds_of(item: pytest.Item) -> float:
    """Less than what pytest-timeout allows, so that the coroutine is told of it and cleans up."""
    marker = item.get_closest_marker("timeout")
    allowed = float(marker.args[0]) if marker is not None else float(item.config.getini("timeout"))
    return allowed - min(20.0, allowed / 6)


@pytest.fixture(autouse=True)
def _no_complaints(caplog: pytest.LogCaptureFixture) -> Iterator[None]:
    """A loop complains in its log about exceptions that nobody took; then the test has failed."""
    yield
    complaints = [r for r in caplog.get_records("call") if r.name == "asyncio" and r.levelno >= logging.ERROR]
    assert not complaints, [record.getMessage() for record in complaints]


@pytest.fixture(autouse=True)
def _no_clients() -> Iterator[None]:
    """Who makes a client stops it, in the thread of the blocking ones as well; those of wider fixtures may go on."""
    before = running_clients()
    yield
    if running_clients() - before:
        end_those_of_the_process()
    left = running_clients() - before
    assert not left, f"left behind: {[*map(description_of, left)]}"


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
