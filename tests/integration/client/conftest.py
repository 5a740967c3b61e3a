"""Outcomes of the tests that run once per server are kept for the table of `make interop-client`."""

from collections.abc import Generator

import pytest

from tests.integration.client import matrix


@pytest.hookimpl(wrapper=True)
def pytest_runtest_makereport(
    item: pytest.Item, call: pytest.CallInfo[None]
) -> Generator[None, pytest.TestReport, pytest.TestReport]:
    report = yield
    matrix.note(item, report)
    return report
