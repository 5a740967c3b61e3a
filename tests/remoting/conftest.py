"""Coroutine tests run on both loops, each with a limit of time, and none may leave a task behind."""

import asyncio
import inspect
import logging
from collections.abc import Iterator

import pytest

from skyrocket.remoting.event_loop import loop_factory

_SECONDS = 100.0


def pytest_generate_tests(metafunc: pytest.Metafunc) -> None:
    if inspect.iscoroutinefunction(metafunc.function):
        metafunc.fixturenames.append("loop_kind")
        metafunc.parametrize("loop_kind", ["asyncio"] if loop_factory() is None else ["uvloop", "asyncio"])


@pytest.hookimpl(tryfirst=True)
def pytest_pyfunc_call(pyfuncitem: pytest.Function) -> bool | None:
    test = pyfuncitem.obj
    if not inspect.iscoroutinefunction(test):
        return None
    arguments = {name: pyfuncitem.funcargs[name] for name in inspect.signature(test).parameters}
    factory = loop_factory() if pyfuncitem.callspec.params["loop_kind"] == "uvloop" else None

    async def watched() -> None:
        await asyncio.wait_for(test(**arguments), _SECONDS)
        left = asyncio.all_tasks() - {asyncio.current_task()}
        assert not left, f"tasks left behind: {left}"

    with asyncio.Runner(loop_factory=factory) as runner:
        runner.run(watched())
    return True


@pytest.fixture(autouse=True)
def _no_complaints(caplog: pytest.LogCaptureFixture) -> Iterator[None]:
    """The loop complains in its log about exceptions that nobody took; then the test has failed."""
    yield
    complaints = [r for r in caplog.get_records("call") if r.name == "asyncio" and r.levelno >= logging.ERROR]
    assert not complaints, [record.getMessage() for record in complaints]
