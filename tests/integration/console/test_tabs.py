"""Tabs of a topic and of a group in a real browser."""

import asyncio

import pytest

from tests.integration.console.browser import Browser
from tests.integration.console.shop import packing
from tests.integration.console.test_pages import looking
from tests.waiting import wait_until


@pytest.mark.slow
async def test_see_who_writes_to_a_topic_where_it_is_and_who_may_use_it() -> None:
    async with looking(orders=3) as (one, browser):
        addresses = one.cluster.broker_addresses

        def work() -> None:
            browser.open("/topics/Orders")
            browser.button("Producers", ".tabs")
            browser.sees("the newest 4 messages say who sent them")
            browser.sees("shop", "#producers")
            browser.sees("PYTHON", "#producers")
            browser.button("Route", ".tabs")
            for name, address in addresses.items():
                browser.sees(name, "#route")
                browser.sees(address, "#route")
            browser.sees("read and write", "#route")
            browser.button("Rights", ".tabs")
            browser.sees("authenticationEnabled=true", ".callout.warn")
            assert browser.driver.current_url.endswith("/topics/Orders?tab=rights")
            assert browser.complaints() == []

        await asyncio.to_thread(work)


def sees_after_looking_again(browser: Browser, *texts: str) -> bool:
    """Whether all of them stand in the list of retries, which is not followed: one has to look again."""
    browser.button("Look again")
    shown = browser.text("#retries")
    return all(text in shown for text in texts)


@pytest.mark.slow
async def test_see_what_a_group_will_try_again_and_send_it_what_it_gave_up() -> None:
    async with looking(orders=3) as (one, browser), packing(one.cluster):

        def work() -> None:
            browser.open("/groups/packing")
            browser.button("Retries", ".tabs")
            wait_until(
                lambda: sees_after_looking_again(browser, "o-broken", "waits"), "the broken order will come again"
            )
            browser.open("/groups/billing")
            browser.button("Dead letters", ".tabs")
            browser.sees("the order has no items")
            browser.type("key", "nobody", inside="form")
            browser.button("Search", "form")
            browser.sees("No dead letters")
            assert "tab=dead-letters" in browser.driver.current_url
            browser.open("/groups/billing?tab=dead-letters")
            browser.click("tbody input[type=checkbox]")
            browser.click("#resend")
            browser.button("Send again", "dialog[open]")
            browser.sees("1 message was sent again", "#notices")
            assert browser.complaints() == []

        await asyncio.to_thread(work)


@pytest.mark.slow
async def test_rights_of_a_topic_are_hidden_from_the_anonymous_and_shown_to_the_operator() -> None:
    async with looking(users=True) as (one, browser):
        admin = one.console.parts.accounts.own.admin
        await admin.create_topic("Orders")
        await admin.create_user("alice", "secret123")

        def work() -> None:
            browser.open("/access")
            browser.click("#new-right")
            browser.type("subject", "User:alice")
            browser.type("resource", "Topic:Ord*")
            browser.click("dialog[open] [name=action-Sub]")
            browser.button("Give", "dialog[open]")
            browser.sees("User:alice has the right", "#notices")
            browser.open("/topics/Orders?tab=rights")
            browser.sees("Topic:Ord*", "#rights")
            browser.click("#logout")
            browser.sees("Read-only")
            browser.open("/topics/Orders?tab=rights")
            browser.sees("Log in to see accounts.")
            assert browser.text("#rights") == ""
            assert browser.complaints() == []

        await asyncio.to_thread(work)
