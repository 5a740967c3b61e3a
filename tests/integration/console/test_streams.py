"""Pages that are open while their console is away, while another window logs in, and while nobody may read a topic."""

import asyncio
from dataclasses import replace
from urllib.parse import urlsplit

import pytest

from skyrocket.client import Message
from skyrocket.console.server import Console
from tests.integration.console.browser import Browser
from tests.integration.console.shop import Shop
from tests.integration.console.test_pages import looking
from tests.waiting import wait_until

_LOG_IN_ELSEWHERE = """
const done = arguments[arguments.length - 1];
fetch("/api/login", {
  method: "POST",
  headers: {"Content-Type": "application/json", "X-Skyrocket-Csrf": arguments[0]},
  body: JSON.stringify({token: arguments[1]}),
}).then((answer) => done(answer.status));
"""


def begun_anew(one: Shop) -> Console:
    """The console of the shop once more, at the same port."""
    return Console(replace(one.console.settings, port=urlsplit(one.console.address).port or 0))


def knows(browser: Browser, text: str, selector: str, *, still: bool = True) -> None:
    wait_until(lambda: (text in browser.text(selector)) is still, f"{text!r} in {selector}: {still}")


@pytest.mark.slow
async def test_an_open_page_says_that_the_console_is_away_goes_on_when_it_is_back_and_offers_the_login() -> None:
    async with looking(orders=3) as (one, browser):
        await asyncio.to_thread(browser.open, "/dead-letters")
        await asyncio.to_thread(browser.sees, "billing", "#main table")
        await one.console.stop()
        await asyncio.to_thread(knows, browser, "the console does not answer", "#main")
        await asyncio.to_thread(knows, browser, "the console does not answer", "#health")
        async with begun_anew(one):
            await asyncio.to_thread(knows, browser, "the console does not answer", "#main", still=False)
            await asyncio.to_thread(knows, browser, "the console does not answer", "#health", still=False)
            await asyncio.to_thread(browser.open, "/topics")
            await asyncio.to_thread(browser.sees, "Log in", "#top")


@pytest.mark.slow
async def test_a_change_that_is_refused_since_the_console_was_begun_anew_offers_the_login() -> None:
    async with looking(orders=3) as (one, browser):
        await asyncio.to_thread(browser.open, "/topics")
        await asyncio.to_thread(browser.sees, "Orders", "#main table")
        await one.console.stop()
        async with begun_anew(one):

            def change() -> None:
                browser.click("#create")
                browser.type("name", "Returns")
                browser.button("Create topic", "dialog[open]")
                browser.sees("log in first", "dialog[open] .callout.bad")
                browser.sees("Read-only", "#top")

            await asyncio.to_thread(change)


@pytest.mark.slow
async def test_the_tail_says_that_nothing_was_followed_and_since_when() -> None:
    async with looking(orders=3) as (one, browser), one.cluster.producer("late") as producer:
        await asyncio.to_thread(browser.open, "/topics/Refunds/tail")
        await asyncio.to_thread(browser.sees, "live", ".page-head")
        await one.console.stop()
        await asyncio.to_thread(browser.sees, "not connected", ".page-head")
        await producer.send(Message("Refunds", b"missed"))
        async with begun_anew(one):
            await asyncio.to_thread(browser.sees, "Nothing was followed from", ".callout.warn")
            await producer.send(Message("Refunds", b"seen"))
            await asyncio.to_thread(browser.sees, "seen", "#tail")
            assert "missed" not in await asyncio.to_thread(browser.text, "#tail")


@pytest.mark.slow
async def test_a_window_hears_that_another_one_has_logged_in_and_goes_on() -> None:
    async with looking(orders=3) as (one, browser):

        def work() -> None:
            browser.open("/topics")
            browser.click("#create")
            browser.type("name", "Returns")
            done = browser.driver.execute_async_script(_LOG_IN_ELSEWHERE, _word_of(browser), one.console.parts.token)
            assert done == 200
            browser.button("Create topic", "dialog[open]")
            browser.sees("Another window has logged in as operator", "dialog[open] .callout.bad")
            browser.button("Create topic", "dialog[open]")
            browser.sees("Returns", "h1")

        await asyncio.to_thread(work)


def _word_of(browser: Browser) -> str:
    script = "const done = arguments[0]; fetch('/api/session').then((a) => a.json()).then((a) => done(a.csrf));"
    return str(browser.driver.execute_async_script(script))


@pytest.mark.slow
async def test_the_pages_of_a_topic_that_nobody_may_read_say_so_and_complain_of_nothing() -> None:
    async with looking(orders=3) as (one, browser):
        admin = one.console.parts.accounts.own.admin
        await admin.apply_topic_changes(await admin.reading_changes("Orders", allowed=False))
        one.console.parts.view.forget()

        def look() -> None:
            browser.open("/topics/Orders/tail")
            browser.sees("no queue of topic Orders can be read", ".callout.bad")
            browser.open("/topics/Orders?tab=statistics")
            browser.sees("Reading is paused", ".callout.warn")
            browser.sees("No messages")
            assert browser.complaints() == []

        await asyncio.to_thread(look)


@pytest.mark.slow
async def test_an_address_that_is_encoded_wrongly_is_of_nothing_but_a_page() -> None:
    async with looking(orders=3) as (_, browser):

        def look() -> None:
            browser.open("/topics/%E4%zz")
            browser.sees("%E4%zz", "h1")
            browser.find(".callout.bad")

        await asyncio.to_thread(look)
