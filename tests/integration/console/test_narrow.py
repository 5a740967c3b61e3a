"""On a narrow screen: pages scroll up and down, tables in themselves, and nothing else sideways; dialogues fit."""

import asyncio

import pytest
from selenium.webdriver.common.keys import Keys

from skyrocket.client import Message
from tests.integration.console.browser import Browser
from tests.integration.console.test_keyboard import focused, press
from tests.integration.console.test_pages import PAGES, looking
from tests.waiting import wait_until

WIDTH, HEIGHT = 400, 850
# Of the page, or of an open dialogue: its width, and what of it reaches beyond the screen. Tables and texts of messages
# scroll in themselves.
_TOO_WIDE = """
const top = document.querySelector("dialog[open]") || document.documentElement;
const beyond = [...top.querySelectorAll("*")].filter((one) => one.getBoundingClientRect().right > innerWidth + 1
  && !one.closest(".table-wrap, pre, .skip"));
return [Math.max(document.documentElement.scrollWidth, top.scrollWidth),
  beyond.slice(0, 5).map((one) => `${one.tagName}.${one.className}#${one.id} ${one.textContent.slice(0, 40)}`)];
"""
DIALOGS = (
    ("/topics", "#create"),
    ("/topics/Orders", "#send"),
    ("/topics/Orders", "#reading"),
    ("/topics/Orders", "#reset"),
    ("/topics/Orders", "#skip"),
    ("/topics/Orders", "#copy"),
    ("/topics/Orders", "#delete"),
    ("/groups", "#create"),
    ("/groups/billing", "#reset"),
    ("/groups/billing", "#clone"),
    ("/groups/billing", "#delete"),
    ("/groups/billing?tab=config", "#edit"),
    ("/access", "#new-user"),
    ("/access", "#new-quota"),
    ("/access", "#new-token"),
    ("/alerts", "#new-rule"),
    ("/delayed", "#soonest td button"),
)


def _too_wide(browser: Browser) -> tuple[bool, list[str]]:
    width, beyond = browser.driver.execute_script(_TOO_WIDE)
    return width > WIDTH, beyond


def _has_its_data(browser: Browser) -> None:
    wait_until(lambda: not browser.driver.find_elements("css selector", ".skeleton"), browser.driver.current_url)


def _open_and_leave(browser: Browser, button: str) -> None:
    """By keys alone."""
    wait_until(lambda: browser.find(button).is_enabled(), f"{button} can be pressed at {browser.driver.current_url}")
    browser.driver.execute_script("document.querySelector(arguments[0]).focus()", button)
    before = focused(browser)["name"]
    press(browser, Keys.ENTER)
    browser.find("dialog[open]")
    assert focused(browser)["inDialog"], button
    assert _too_wide(browser) == (False, []), button
    press(browser, Keys.ESCAPE)
    wait_until(lambda: not browser.driver.find_elements("css selector", "dialog"), "Escape closes it")
    wait_until(lambda: focused(browser)["name"] == before, f"the focus is back on {before}")


@pytest.mark.slow
async def test_no_page_scrolls_sideways_on_a_narrow_screen_in_both_languages() -> None:
    async with looking(orders=3) as (one, browser):
        broker = next(iter(one.cluster.broker_addresses.values()))
        message = one.cluster.messages("Orders")[0].message_id
        async with one.cluster.producer("long") as producer:
            await producer.send(Message("Refunds", b"x" * 300, "t" * 100, "k" * 200, {"p" * 100: "v" * 200}))
        long = one.cluster.messages("Refunds")[0].message_id
        pages = (
            *PAGES,
            f"/cluster/{broker}",
            f"/cluster/{broker}?tab=settings",
            f"/messages/Orders/{message}",
            f"/messages/Refunds/{long}",
            "/messages?topic=Refunds",
            f"/traces?id={message}",
            "/topics/" + "a" * 120,  # there is none: what is said of it is as long
        )

        def look() -> None:
            browser.resize(WIDTH, HEIGHT)
            for language in ("en", "zh"):
                browser.driver.execute_script("localStorage.setItem('language', arguments[0])", language)
                for page in pages:
                    browser.open(page)
                    _has_its_data(browser)
                    assert _too_wide(browser) == (False, []), (language, page)

        await asyncio.to_thread(look)


@pytest.mark.slow
async def test_every_dialogue_fits_a_narrow_screen_takes_the_focus_and_gives_it_back_on_escape() -> None:
    async with looking(orders=3) as (_, browser):

        def work() -> None:
            browser.resize(WIDTH, HEIGHT)
            for page, button in DIALOGS:
                browser.open(page)
                _open_and_leave(browser, button)
            assert browser.complaints() == []

        await asyncio.to_thread(work)
