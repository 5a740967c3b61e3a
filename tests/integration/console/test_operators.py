"""What operators do beside messages: make a token, have a transaction checked, look at what was found; in a browser."""

import asyncio

import httpx
import pytest

from skyrocket.client import Message
from skyrocket.console.alerts.rules import Rule
from skyrocket.console.core.settings import ConsoleSettings
from skyrocket.console.server import Console
from skyrocket.testing.async_cluster import AsyncLocalCluster
from tests.integration.console.browser import browser_at, require_chromium
from tests.integration.console.test_pages import looking


@pytest.mark.slow
async def test_make_a_token_for_a_script_and_take_it_back() -> None:
    async with looking(orders=3) as (one, browser):

        def make() -> str:
            browser.open("/access")
            browser.click("#new-token")
            browser.type("name", "report")
            browser.button("Create", "dialog[open]")
            browser.sees("sky_", "#token-text")
            text = browser.text("#token-text").strip()
            browser.button("Close", "dialog[open]")
            browser.sees("report", "#tokens")
            return text

        def take_back() -> None:
            browser.button("Take back", "#tokens")
            browser.button("Take back", "dialog[open]")
            browser.sees("No tokens", "#tokens")
            browser.open("/audit")
            browser.sees("access/tokens")
            assert browser.complaints() == []

        text = await asyncio.to_thread(make)
        headers = {"Authorization": f"Bearer {text}"}
        async with httpx.AsyncClient(base_url=one.console.address, headers=headers) as script:
            known = await script.get("/api/audit")
            await asyncio.to_thread(take_back)
            unknown = await script.get("/api/audit")
    assert (known.status_code, unknown.status_code) == (200, 401)
    assert text not in known.text


@pytest.mark.slow
async def test_have_a_transaction_checked_and_find_a_timer_by_its_key() -> None:
    async with looking(orders=3) as (one, browser):

        def work() -> None:
            browser.open("/transactions")
            browser.button("Check", "#open")
            browser.sees("counts as one of its checks", "dialog[open]")
            browser.button("Check", "dialog[open]")
            browser.sees("a producer is asked about transaction", "#notices")
            browser.open("/delayed?key=s-1")
            browser.sees("s-1", "#soonest")
            browser.open("/delayed?key=s-9")
            browser.sees("Nothing waits")
            assert browser.complaints() == []

        await asyncio.to_thread(work)
        (left,) = await one.console.parts.accounts.own.admin.open_transactions()
    assert left.checks == 1  # the shop's producer does not know how it ends


@pytest.mark.slow
async def test_the_strip_is_on_every_page_and_lists_name_what_is_wrong() -> None:
    async with looking(orders=3) as (one, browser):
        watcher = one.console.parts.watcher
        await watcher.keep([Rule("fullest", "disk", 0.0, minutes=0)])
        watcher.look({"disk": {"broker-a:0": 0.5}})
        async with one.cluster.producer() as producer:
            await producer.send(Message("Refunds", b"old"))

        def look() -> None:
            browser.open("/")
            browser.sees("broker-a:0", "#recent-alerts")
            browser.sees("1 fires", "#recent-alerts")
            browser.sees("1 warning", "#health")  # a dead letter of this hour, as the doctor says
            for page in ("/topics", "/clients", "/metrics", "/access", "/audit", "/docs"):
                browser.open(page)
                browser.sees("1 warning", "#health")
            browser.open("/alerts")
            browser.sees("`dlq resend` tries again")
            browser.sees("examined")
            browser.open("/metrics")
            browser.sees("metricsExporterType=PROM", "#prometheus")
            browser.open("/clients")
            browser.sees("PYTHON", "#matrix")
            browser.open("/topics?search=Refunds")
            browser.sees("Oldest")
            browser.sees("ago", "table")
            browser.click("#create")
            browser.sees("for 72 hours", "#retention")
            assert browser.complaints() == []

        await asyncio.to_thread(look)


@pytest.mark.slow
async def test_a_healthy_cluster_is_called_so_and_notes_stand_on_the_page_of_alerts_alone() -> None:
    require_chromium()
    async with (
        AsyncLocalCluster(settings={"autoCreateTopicEnable": "true"}) as cluster,
        Console(ConsoleSettings(cluster.client_settings, port=0)) as console,
    ):

        def look() -> None:
            with browser_at(console.address) as browser:
                browser.open("/alerts")
                browser.sees("topics are created by the first send")
                browser.sees("All well", "#health")
                browser.open("/")
                browser.sees("All well", "#findings")
                browser.sees("1 note", "#findings")
                browser.sees("All well", "#health")
                assert "topics are created by the first send" not in browser.text()
                assert browser.complaints() == []

        await asyncio.to_thread(look)
