"""Coroutine tests run on both loops."""

import inspect

import pytest

from skyrocket.remoting.event_loop import loop_factory


def pytest_generate_tests(metafunc: pytest.Metafunc) -> None:
    if inspect.iscoroutinefunction(metafunc.function):
        metafunc.fixturenames.append("loop_kind")
        metafunc.parametrize("loop_kind", ["asyncio"] if loop_factory() is None else ["uvloop", "asyncio"])
