"""Pages that stay open: when streams are refused for a while, who logs in later, and entries with odd names."""

import asyncio

import pytest

from tests.integration.console.browser import browser_at, require_chromium
from tests.integration.console.shop import shop
from tests.integration.console.test_pages import looking
from tests.waiting import until


@pytest.mark.slow
async def test_a_live_page_whose_stream_is_refused_asks_from_time_to_time_and_follows_when_it_may() -> None:
    async with looking(orders=3) as (one, browser):
        streams = one.console.parts.streams
        streams.open["elsewhere"] += 1000
        await asyncio.to_thread(browser.open, "/cluster")
        await asyncio.to_thread(browser.sees, "broker-a", "#main table")
        streams.open["elsewhere"] -= 1000
        await until(lambda: streams.open.total() >= 3)  # brokers, controllers and the strip


@pytest.mark.slow
async def test_a_live_page_says_so_when_the_console_is_gone() -> None:
    async with looking(orders=3) as (one, browser):
        await asyncio.to_thread(browser.open, "/cluster")
        await asyncio.to_thread(browser.sees, "broker-a", "#main table")
        await one.console.stop()
        await asyncio.to_thread(browser.sees, "the console does not answer", "#main .callout")


@pytest.mark.slow
async def test_who_logs_in_at_a_private_console_sees_what_is_wrong_at_once() -> None:
    require_chromium()
    async with shop(orders=3, anonymous_may_read=False) as one:

        def look() -> None:
            with browser_at(one.console.address) as browser:
                browser.open("/topics")
                assert browser.text("#health") == "…"
                browser.type("token", one.console.parts.token)
                browser.button("Log in", "dialog[open]")
                browser.sees("Orders", "#main table")
                browser.sees("warning", "#health")
                browser.click("#logout")
                browser.sees("…", "#health")

        await asyncio.to_thread(look)


@pytest.mark.slow
async def test_the_audit_shows_entries_with_a_percent_sign_and_so_do_addresses() -> None:
    async with looking(orders=3) as (_, browser):

        def look() -> None:
            browser.open("/alerts")
            browser.click("#new-rule")
            browser.type("id", "100%")
            browser.button("Apply", "dialog[open]")
            browser.sees("100%", "#rules")
            browser.open("/audit")
            browser.sees("PUT /api/alerts/rules/100%", "#main table")
            browser.open("/topics/%25DLQ%25billing")
            browser.sees("%DLQ%billing", "h1")
            assert browser.driver.find_elements("css selector", ".callout.bad") == []
            browser.open("/topics/100%")
            browser.sees("100%", "h1")

        await asyncio.to_thread(look)
