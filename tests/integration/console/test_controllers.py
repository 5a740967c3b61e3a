"""The cluster's page with and without controllers, in a real browser."""

import asyncio
import contextlib
from collections.abc import AsyncIterator

import pytest

from skyrocket.console.core.settings import ConsoleSettings
from skyrocket.console.server import Console
from skyrocket.testing.async_cluster import AsyncLocalCluster
from tests.integration.console.browser import Browser, browser_at, require_chromium
from tests.integration.console.test_pages import looking
from tests.waiting import wait_until


@contextlib.asynccontextmanager
async def led_set() -> AsyncIterator[Console]:
    """Three brokers under a controller, and their console."""
    async with AsyncLocalCluster(replicas=3, failover=True) as cluster:
        await cluster.create_topic("Orders")
        async with Console(ConsoleSettings(cluster.client_settings, port=0)) as console:
            yield console


@pytest.mark.slow
async def test_a_cluster_without_controllers_says_how_to_have_one() -> None:
    async with looking(orders=3) as (_, browser):

        def work() -> None:
            browser.open("/cluster")
            browser.sees("No broker is under a controller", "#controllers")
            browser.sees("enableControllerMode=true", "#controllers")
            assert browser.complaints() == []

        await asyncio.to_thread(work)


@pytest.mark.slow
@pytest.mark.timeout(180)
async def test_see_who_is_in_sync_and_make_another_replica_master() -> None:
    require_chromium()
    async with led_set() as console:

        def work() -> None:
            with browser_at(console.address) as browser:
                browser.driver.get(console.operator_address)
                browser.sees("operator", "#account")
                browser.open("/cluster")
                browser.sees("leads", "#controllers")
                wait_until(lambda: browser.text("#replica-sets").count("in sync") == 3, "three are in sync")
                first = _slaves(browser)
                browser.click("[data-elect]")
                browser.sees("becomes master of broker-a in place of replica", "dialog[open]")
                browser.button("Make master", "dialog[open]")
                browser.sees("is master of broker-a now", "#notices")
                wait_until(lambda: _slaves(browser) not in ("", first), "another one is master")
                assert browser.complaints() == []

        await asyncio.to_thread(work)
        actions = [entry.action for entry in await console.parts.audit.entries()]
        assert actions[0] == "POST /api/controllers/elect"


def _slaves(browser: Browser) -> str:
    """The ids of the replicas that could be made master."""
    found = browser.driver.execute_script(
        "return [...document.querySelectorAll('[data-elect]')].map((e) => e.dataset.elect).join()"
    )
    return str(found)
