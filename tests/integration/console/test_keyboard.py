"""The pages without a mouse: what Tab reaches is seen, Enter does it, Escape leaves it."""

import asyncio

import pytest
from selenium.webdriver.common.action_chains import ActionChains
from selenium.webdriver.common.keys import Keys

from tests.integration.console.browser import Browser
from tests.integration.console.test_pages import looking
from tests.waiting import wait_until

# Of the element that has the focus: where it stands among all, and whether people see that it has it.
_FOCUSED = """
const one = document.activeElement, style = getComputedStyle(one), box = one.getBoundingClientRect();
return {
  place: [...document.querySelectorAll("*")].indexOf(one),
  name: one === document.body ? "BODY" : one.id ? "#" + one.id
    : (one.tagName + " " + (one.textContent || one.getAttribute("aria-label") || "")).trim(),
  outlined: style.outlineStyle !== "none" && parseFloat(style.outlineWidth) >= 2,
  shown: box.width > 0 && box.height > 0 && box.left >= 0 && box.top >= 0,
  inDialog: one.closest("dialog[open]") !== null,
};
"""

_FOCUS_IN_THE_LAST_ROW = """
const stops = [...document.querySelectorAll("#main td a, #main td button")];
const one = stops.filter((stop) => stop.textContent === arguments[0]).pop();
one.dataset.before = "";
one.focus();
return [one.textContent, one.closest("tr").nextSibling === null];
"""
_ROW_OF_THE_FOCUS = """
const one = document.activeElement, row = one.closest("tr");
return [one.textContent, row !== null && row.nextSibling === null]; // rows of retries may have come before it
"""


def press(browser: Browser, *keys: str) -> None:
    for key in keys:
        ActionChains(browser.driver).send_keys(key).perform()


def focused(browser: Browser) -> dict[str, object]:
    found: dict[str, object] = browser.driver.execute_script(_FOCUSED)
    return found


def is_at(browser: Browser, path: str) -> None:
    wait_until(lambda: browser.driver.current_url.split("?")[0].endswith(path), f"the address is {path}")


@pytest.mark.slow
async def test_tab_goes_through_a_page_in_its_order_and_the_focus_is_seen() -> None:
    async with looking(orders=3) as (_, browser):

        def look() -> None:
            browser.open("/topics")
            browser.sees("Orders", "table")
            browser.driver.execute_script("document.activeElement.blur()")
            stops: list[dict[str, object]] = []
            while not any(stop["name"] == "A Orders" for stop in stops):
                press(browser, Keys.TAB)
                stops.append(focused(browser))
                assert len(stops) < 80, stops
            assert stops[0]["name"] == "A Skip to content"
            assert [stop["name"] for stop in stops if not (stop["outlined"] and stop["shown"])] == []
            assert [stop["place"] for stop in stops] == sorted({int(str(stop["place"])) for stop in stops})
            press(browser, Keys.ENTER)
            is_at(browser, "/topics/Orders")
            assert browser.complaints() == []

        await asyncio.to_thread(look)


@pytest.mark.slow
async def test_a_dialog_is_opened_filled_left_and_done_with_keys_alone() -> None:
    async with looking(orders=3) as (one, browser):

        def work() -> None:
            browser.open("/topics")
            browser.sees("Orders", "table")
            browser.driver.execute_script("document.getElementById('create').focus()")
            press(browser, Keys.ENTER)
            browser.find("dialog[open]")
            assert focused(browser)["inDialog"]
            for _ in range(12):  # Tab stays inside, or leaves for the browser's own bar
                press(browser, Keys.TAB)
                assert focused(browser)["inDialog"] or focused(browser)["name"] == "BODY"
            press(browser, Keys.ESCAPE)
            wait_until(lambda: not browser.driver.find_elements("css selector", "dialog"), "Escape closes it")
            assert focused(browser)["name"] == "#create"
            press(browser, Keys.ENTER)
            browser.type("name", "Returns")
            press(browser, Keys.ENTER)
            browser.sees("Returns", "h1")
            assert browser.complaints() == []

        await asyncio.to_thread(work)
        assert "Returns" in await one.console.parts.accounts.own.admin.topics()


@pytest.mark.slow
async def test_single_keys_find_and_go_but_not_while_somebody_writes() -> None:
    async with looking(orders=3) as (_, browser):

        def work() -> None:
            browser.open("/")
            press(browser, "g", "g")
            is_at(browser, "/groups")
            press(browser, "/")
            wait_until(lambda: focused(browser)["name"] == "#find", "the field for finding has the focus")
            press(browser, "g", "t", Keys.BACKSPACE, Keys.BACKSPACE)  # letters, no ways
            is_at(browser, "/groups")
            press(browser, "Orders", Keys.ENTER)
            is_at(browser, "/topics/Orders")
            browser.driver.execute_script("document.activeElement.blur()")
            press(browser, "?")
            browser.sees("Keyboard", "dialog[open]")
            press(browser, Keys.ESCAPE)
            wait_until(lambda: not browser.driver.find_elements("css selector", "dialog"))
            assert browser.complaints() == []

        await asyncio.to_thread(work)


@pytest.mark.slow
async def test_reading_of_a_topic_is_paused_and_resumed_by_keys_alone() -> None:
    async with looking(orders=3) as (_, browser):

        def work() -> None:
            browser.open("/topics/Orders")
            browser.sees("msg/s")
            for button, outcome in (("Pause reading", "is not read any more"), ("Resume reading", "is read again")):
                browser.sees(button, "#reading")
                browser.driver.execute_script("document.querySelector('#reading').focus()")
                press(browser, Keys.ENTER)
                browser.find("dialog[open]")
                press(browser, Keys.ESCAPE)
                wait_until(lambda: not browser.driver.find_elements("css selector", "dialog[open]"), "it has closed")
                browser.driver.execute_script("document.querySelector('#reading').focus()")
                press(browser, Keys.ENTER)
                browser.find("dialog[open]")
                while focused(browser)["name"] != f"BUTTON {button}":
                    press(browser, Keys.TAB)
                    assert focused(browser)["inDialog"] or focused(browser)["name"] == "BODY"
                press(browser, Keys.ENTER)
                browser.sees(outcome, "#notices")
            assert browser.complaints() == []

        await asyncio.to_thread(work)


@pytest.mark.slow
@pytest.mark.parametrize(("page", "link"), [("/", "broker-b"), ("/topics", "Orders"), ("/groups/billing", "Move")])
async def test_the_focus_stays_where_it_is_when_new_data_is_drawn(page: str, link: str) -> None:
    async with looking(orders=3) as (_, browser):

        def work() -> None:
            browser.open(page)
            browser.sees(link, "#main table")
            reached = browser.driver.execute_script(_FOCUS_IN_THE_LAST_ROW, link)
            wait_until(
                lambda: browser.driver.execute_script("return document.querySelector('[data-before]') === null"),
                "the table is drawn anew",
            )
            assert browser.driver.execute_script(_ROW_OF_THE_FOCUS) == reached
            assert browser.complaints() == []

        await asyncio.to_thread(work)
