"""The one search box, the clients of a group, and moving it, in a real browser."""

import asyncio
from dataclasses import replace

import pytest

from skyrocket.client import Message, Producer, PushConsumer
from tests.integration.console.browser import Browser
from tests.integration.console.test_pages import looking


def search(browser: Browser, text: str, *found: str) -> None:
    browser.open("/messages")
    browser.find("#search-box").send_keys(text)
    browser.click("#search")
    for each in found:
        browser.sees(each, "table")


@pytest.mark.slow
async def test_one_box_takes_ids_keys_and_whatever_a_topic_is_searched_for() -> None:
    async with looking(orders=20) as (one, browser):
        async with one.cluster.producer("late") as producer:
            sent = await producer.send(
                Message("Refunds", b"dear tea", "late", "r-1", {"price": "40", "city": "La Paz"})
            )
            await producer.send(Message("Refunds", b"cheap cup", "late", "r-2", {"price": "4"}))
        place = f"queue:{sent.queue.broker_name}/{sent.queue.queue_id} offset:{sent.queue_offset}"

        def look() -> None:
            search(browser, "o-7", "o-7")
            search(browser, sent.message_id, "dear tea")
            search(browser, sent.offset_message_id, "dear tea")
            for text in (
                'topic:Refunds sql:"price > 10"',
                "topic:Refunds body:dear",
                'topic:Refunds property:"city=La Paz" tag:late since:1h',
                f"topic:Refunds {place}",
            ):
                search(browser, text, "dear tea")
                assert "cheap cup" not in browser.text("table")
            assert browser.find("#search-box").get_attribute("value") == f"topic:Refunds offset:0 {place.split()[0]}"
            browser.open("/messages")
            browser.find("#search-box").send_keys("colour:red")
            browser.click("#search")
            browser.sees("colour: is not known here; there are topic, id, key", ".callout.bad")
            browser.open("/messages?topic=Refunds&sql=price+%3E")
            browser.sees("the SQL filter cannot be read", ".callout.bad")
            browser.open("/topics/Orders")
            browser.find("#search-box").send_keys("o-3")
            browser.click("#search")
            browser.sees("o-3", "table")
            assert browser.driver.current_url.split("?")[0].endswith("/topics/Orders")
            # What an endpoint refuses stands in the browser's log as well.
            assert [text for text in browser.complaints() if "400" not in text] == []

        await asyncio.to_thread(look)


@pytest.mark.slow
async def test_clients_show_what_they_have_and_whether_they_agree_and_the_group_is_moved_to_an_offset() -> None:
    async with looking(orders=20) as (one, browser):
        other = PushConsumer("billing", client=replace(one.cluster.client_settings, instance_name="other"))

        @other.on("Orders", tags="refused")
        async def take(_: object) -> None: ...

        def differ() -> None:
            browser.open("/groups/billing?tab=subscriptions")
            browser.sees("Clients subscribe to different things", "#agreement")
            browser.sees("Orders refused (TAG)", "#agreement")

        def agree() -> None:
            browser.open("/groups/billing?tab=clients")
            browser.sees("Assigned queues")
            browser.sees("PYTHON")
            browser.sees("Orders *", "tbody")
            browser.sees("Orders broker-a: 0 1 2 3", "tbody")
            browser.button("Look inside", "table")
            browser.sees("In hand", "dialog[open]")
            browser.open("/groups/billing")
            browser.click("#reset")
            browser.type("topic", "Orders")
            browser.type("to", "an offset of every queue")
            browser.type("offset", "1\t")
            browser.sees("consumed again: 13.", "#plan")
            browser.button("Reset offsets", "dialog[open]")
            browser.sees("goes on elsewhere", "#notices")
            browser.click("#notices button")
            browser.click("#skip")
            browser.type("topic", "Orders")
            browser.sees("Messages that would be skipped:", "#plan")
            browser.button("Skip", "dialog[open]")
            browser.sees("goes on elsewhere", "#notices")
            assert browser.complaints() == []

        async with other:
            await asyncio.sleep(0)
            one.console.parts.view.forget()
            await asyncio.to_thread(differ)
        one.console.parts.view.forget()
        await asyncio.to_thread(agree)
        actions = [entry.action for entry in await one.console.parts.audit.entries()]
        assert actions[:2] == ["POST /api/groups/{group}/reset"] * 2


@pytest.mark.slow
async def test_traces_go_through_the_store_and_percentiles_stand_before_any_id() -> None:
    async with looking(orders=3) as (one, browser):
        client = replace(one.cluster.client_settings, trace="Traces")
        await one.cluster.create_topic("Traces", queues=1)
        async with Producer("traced", client=client) as producer:
            sent = await producer.send(Message("Refunds", b"x", keys="t-1"))

        def look() -> None:
            browser.open("/traces?topic=Traces")
            browser.sees("p99", "#times")
            browser.sees("Refunds", "#times")
            browser.open(f"/traces?topic=Traces&id={sent.message_id}")
            browser.sees("store", ".waterfall")
            browser.sees("send", ".waterfall")
            browser.open("/dead-letters")
            browser.sees("Oldest", "thead")
            assert browser.complaints() == []

        await asyncio.to_thread(look)
