"""What people do in the pages, in a real browser: nothing may stand in its log afterwards."""

import asyncio
import contextlib
from collections.abc import AsyncIterator

import pytest

from skyrocket.client import Message
from skyrocket.console.alerts.rules import Rule
from tests.integration.console.browser import Browser, browser_at, require_chromium
from tests.integration.console.shop import INJECTION, Shop, shop
from tests.waiting import wait_until

PAGES = (
    "/",
    "/topics",
    "/topics/Orders",
    "/topics/Orders?tab=queues",
    "/topics/Orders?tab=groups",
    "/topics/Orders?tab=producers",
    "/topics/Orders?tab=route",
    "/topics/Orders?tab=config",
    "/topics/Orders?tab=statistics",
    "/topics/Orders?tab=rights",
    "/topics/Orders/tail",
    "/messages",
    "/groups",
    "/groups/billing",
    "/groups/billing?tab=clients",
    "/groups/billing?tab=subscriptions",
    "/groups/billing?tab=retries",
    "/groups/billing?tab=dead-letters",
    "/groups/billing?tab=config",
    "/dead-letters",
    "/dead-letters/billing",
    "/delayed",
    "/transactions",
    "/traces",
    "/cluster",
    "/clients",
    "/pipelines",
    "/metrics",
    "/alerts",
    "/access",
    "/audit",
    "/docs",
    "/counter",
)


@contextlib.asynccontextmanager
async def looking(**options: object) -> AsyncIterator[tuple[Shop, Browser]]:
    """A shop, its console and a browser that is logged in; calls of the browser belong into threads."""
    require_chromium()
    async with shop(**options) as one:  # type: ignore[arg-type]
        opened = browser_at(one.console.address)
        browser = await asyncio.to_thread(opened.__enter__)
        try:
            await asyncio.to_thread(browser.driver.get, one.console.operator_address)
            await asyncio.to_thread(browser.sees, "operator", "#account")  # who leaves before it is not logged in
            yield one, browser
        finally:
            await asyncio.to_thread(opened.__exit__, None, None, None)


async def test_the_first_page_comes_up_in_a_browser_without_complaint() -> None:
    async with looking(orders=3) as (_, browser):

        def look() -> None:
            browser.sees("operator", "#account")
            browser.sees("Messages per second")
            browser.sees("broker-b")
            assert browser.complaints() == []
            assert "token" not in browser.driver.current_url

        await asyncio.to_thread(look)


@pytest.mark.slow
async def test_every_page_has_an_address_and_shows_its_data_without_complaint_in_both_languages() -> None:
    async with looking() as (_, browser):

        def look() -> None:
            for page in PAGES:
                browser.open(page)
                assert browser.driver.find_elements("css selector", ".callout.bad") == [], page
            browser.click("#language")
            browser.sees("概览")
            browser.open("/groups/billing")
            browser.sees("积压")
            assert browser.complaints() == []

        await asyncio.to_thread(look)


@pytest.mark.slow
async def test_ages_grow_on_a_page_whose_data_do_not_change() -> None:
    age = """
        const rows = [...document.querySelectorAll("#main tr")];
        return rows.find((row) => row.textContent.startsWith("Orders")).cells[7].textContent;
    """
    async with looking(orders=3) as (_, browser):

        def grows() -> None:
            shown = browser.driver.execute_script(age)
            wait_until(lambda: browser.driver.execute_script(age) != shown, f"it says another age than {shown}")

        def look() -> None:
            browser.open("/topics")
            browser.sees("ago", "#main table")
            for _ in range(3):  # the first looks may bring news: rates that end
                grows()

        await asyncio.to_thread(look)


@pytest.mark.slow
async def test_create_a_topic_send_find_by_key_and_delete_it() -> None:
    async with looking(orders=3) as (one, browser):

        def work() -> None:
            browser.open("/topics")
            browser.click("#create")
            browser.type("name", "Returns")
            browser.type("queues", "2")
            browser.button("Create topic", "dialog[open]")
            browser.sees("Returns", "h1")
            browser.click("#send")
            browser.type("body", INJECTION)
            browser.type("keys", "r-1")
            browser.type("properties", f"city={INJECTION}")
            browser.button("Send message", "dialog[open]")
            browser.sees("Sent:", "#notices")
            browser.open("/messages?topic=Returns&id=r-1")
            browser.sees(INJECTION, "table")
            browser.click("td.address a")
            browser.sees("Who has consumed it")
            browser.sees(INJECTION, "pre.body")
            assert browser.driver.title.endswith("Skyrocket")
            browser.open("/topics/Returns")
            browser.click("#delete")
            browser.type("confirm", "Returns")
            browser.button("Delete topic", "dialog[open]")
            browser.sees("Orders", "table")
            assert browser.complaints() == []

        await asyncio.to_thread(work)
        assert "Returns" not in await one.console.parts.accounts.own.admin.topics()


@pytest.mark.slow
async def test_follow_a_topic_live() -> None:
    async with looking(orders=3) as (one, browser):
        await asyncio.to_thread(browser.open, "/topics/Refunds/tail")
        await asyncio.to_thread(browser.sees, "live")
        async with one.cluster.producer("late") as producer:
            await producer.send(Message("Refunds", INJECTION.encode(), keys="f-1"))
        await asyncio.to_thread(browser.sees, INJECTION, "#tail")
        await asyncio.to_thread(browser.click, "#pause")
        await asyncio.to_thread(browser.sees, "paused")
        assert await asyncio.to_thread(browser.complaints) == []


@pytest.mark.slow
async def test_reset_an_offset_after_its_preview() -> None:
    async with looking(orders=20) as (one, browser):

        def work() -> None:
            browser.open("/groups/billing")
            browser.click("#reset")
            browser.type("topic", "Orders")
            browser.type("to", "the beginning: everything again")
            browser.sees("Messages that would be skipped: 0, consumed again: 21.", "#plan")
            browser.button("Reset offsets", "dialog[open]")
            browser.sees("goes on elsewhere", "#notices")
            assert browser.complaints() == []

        await asyncio.to_thread(work)
        actions = [entry.action for entry in await one.console.parts.audit.entries()]
        assert actions[0] == "POST /api/groups/{group}/reset"


@pytest.mark.slow
async def test_resend_a_dead_letter_commit_a_half_message_and_take_back_a_timer() -> None:
    async with looking(orders=3) as (one, browser):

        def work() -> None:
            browser.open("/dead-letters/billing")
            browser.sees("the order has no items")
            browser.click("tbody input[type=checkbox]")
            browser.click("#resend")
            browser.button("Send again", "dialog[open]")
            browser.sees("1 message was sent again", "#notices")
            browser.open("/transactions")
            browser.sees("p-1")
            browser.button("Commit", "table")
            browser.button("Commit", "dialog[open]")
            browser.sees("No open transaction")
            browser.open("/delayed")
            browser.sees("s-1")
            browser.button("Take back", "table")
            browser.button("Take back", "dialog[open]")
            browser.sees("was taken back", "#notices")
            assert browser.complaints() == []

        await asyncio.to_thread(work)
        assert [message.body for message in one.cluster.messages("Payments")] == [b'{"paid": 12}']


@pytest.mark.slow
async def test_delete_the_dead_letters_of_a_group_by_its_name() -> None:
    async with looking(orders=3) as (one, browser):

        def work() -> None:
            browser.open("/dead-letters/billing")
            browser.sees("the order has no items")
            browser.click("#purge")
            browser.type("confirm", "billing")
            browser.button("Delete all", "dialog[open]")
            browser.sees("1 dead letter of billing is gone", "#notices")
            browser.sees("No dead letters")
            assert browser.complaints() == []

        await asyncio.to_thread(work)
        actions = [entry.action for entry in await one.console.parts.audit.entries()]
        assert actions[0] == "POST /api/dead-letters/{group}/purge"


@pytest.mark.slow
async def test_change_a_setting_of_a_broker() -> None:
    async with looking(orders=3) as (one, browser):
        address = next(iter(one.cluster.broker_addresses.values()))

        def work() -> None:
            browser.open(f"/cluster/{address}?tab=settings")
            browser.find("#setting-filter").send_keys("fileReservedTime")
            browser.click("[data-key=fileReservedTime]")
            browser.type("value", "96")
            browser.sees("72", "dialog[open] .before")
            browser.button("Apply", "dialog[open]")
            browser.sees("was changed", "#notices")
            browser.sees("96", "table")
            assert browser.complaints() == []

        await asyncio.to_thread(work)


@pytest.mark.slow
async def test_mute_one_alert_and_a_whole_rule() -> None:
    async with looking(orders=3) as (one, browser):
        watcher = one.console.parts.watcher
        await watcher.keep([Rule("late", "lag", 1, minutes=0)])
        watcher.look({"lag": {"billing": 5.0}})

        def work() -> None:
            browser.open("/alerts")
            browser.button("Mute", "#firing")
            browser.sees("Mute late: billing", "dialog[open]")
            browser.button("Mute", "dialog[open]")
            browser.sees("billing of rule late is muted for 60 minutes", "#notices")
            browser.sees("muted until", "#firing")
            browser.sees("billing", "#muted")
            browser.click("#notices button")
            browser.button("Change", "#muted")
            browser.type("minutes", "not any more")
            browser.button("Mute", "dialog[open]")
            browser.sees("billing of rule late is told again", "#notices")
            assert browser.complaints() == []

        await asyncio.to_thread(work)
        assert watcher.mutes == ()


@pytest.mark.slow
async def test_set_a_quota_change_it_and_take_it_away() -> None:
    async with looking(orders=3) as (one, browser):

        def work() -> None:
            browser.open("/access")
            browser.click("#new-quota")
            browser.type("subject", "namespace")
            browser.type("name", "shop")
            browser.type("quota", "topics")
            browser.type("limit", "12")
            browser.button("Apply", "dialog[open]")
            browser.sees("topics of namespace shop is 12", "#notices")
            browser.click("#notices button")  # it lies above the table
            browser.sees("12", "#quotas table")
            browser.button("Change", "#quotas")
            browser.type("limit", "34")
            browser.button("Apply", "dialog[open]")
            browser.sees("topics of namespace shop is 34", "#notices")
            browser.click("#notices button")
            browser.sees("34", "#quotas table")
            browser.button("Delete", "#quotas")
            browser.button("Delete", "dialog[open]")
            browser.sees("No quotas", "#quotas")
            assert browser.complaints() == []

        await asyncio.to_thread(work)
        quotas = await one.console.parts.accounts.own.admin.quotas()
        assert [row for rows in quotas.values() for row in rows] == []


@pytest.mark.slow
async def test_a_user_with_few_rights_looks_and_is_refused_by_the_brokers() -> None:
    async with looking(users=True) as (one, browser):
        admin = one.console.parts.accounts.own.admin
        await admin.create_topic("Orders")
        await admin.create_user("alice", "secret123")

        def work() -> None:
            browser.sees("operator", "#account")
            browser.click("#logout")
            browser.sees("Read-only")
            browser.open("/topics")
            assert not browser.find("#create").is_enabled()
            browser.click("#login")
            browser.type("account", "alice")
            browser.type("password", "secret123")
            browser.button("Log in", "dialog[open]")
            browser.sees("alice", "#account")
            browser.click("#create")
            browser.type("name", "Mine")
            browser.button("Create topic", "dialog[open]")
            browser.sees("refused", "dialog[open] .callout.bad")
            # The browser itself notes every answer with an error.
            assert [each for each in browser.complaints() if "403" not in each] == []

        await asyncio.to_thread(work)
        assert "Mine" not in await admin.topics()
