"""Fixtures of the interop tests: every test below runs once per version of Apache RocketMQ."""

import functools
from collections.abc import Callable

import pytest

from tests.interop.apache import IN_SHORT_MODE, VERSIONS, Apache, Unavailable, obtain


@functools.cache
def _obtained(version: str) -> Apache | str:
    try:
        return obtain(version)
    except Unavailable as reason:
        return str(reason)


@pytest.fixture(scope="session")
def apache_of_version() -> Callable[[str], Apache]:
    """RocketMQ of a given version, or a skip that says what is missing."""

    def ready(version: str) -> Apache:
        found = _obtained(version)
        return found if isinstance(found, Apache) else pytest.skip(f"no Apache RocketMQ {version}: {found}")

    return ready


@pytest.fixture(params=[v if v in IN_SHORT_MODE else pytest.param(v, marks=pytest.mark.slow) for v in VERSIONS])
def apache(request: pytest.FixtureRequest, apache_of_version: Callable[[str], Apache]) -> Apache:
    return apache_of_version(request.param)
