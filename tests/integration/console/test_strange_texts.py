"""Words of strangers that are HTML: every page shows them as text."""

import asyncio
from dataclasses import replace
from urllib.parse import quote

import pytest

from skyrocket.client import Message, PushConsumer
from skyrocket.model.query_report import QUERIES, QueryReport, key_of
from tests.integration.console.browser import Browser
from tests.integration.console.test_pages import looking

# Without blanks, for keys are separated by them; HTML takes a slash as well.
CLIENT = "<img/class=strange/src=x/onerror=document.title=1>"
KEY, TAG = "<b/class=strange>key</b>", "<i/class=strange>tag</i>"
NAME, VALUE = "<u/class=strange>name</u>", "<s/class=strange>value</s>"
BODY = "<script/class=strange>document.title=2</script>"


def as_text(browser: Browser, address: str, *texts: str) -> None:
    """A page shows them, and has made nothing of them."""
    browser.open(address)
    for text in texts:
        browser.sees(text)
    assert browser.driver.find_elements("css selector", ".strange") == [], address
    assert browser.driver.title.endswith("Skyrocket"), address


@pytest.mark.slow
async def test_html_in_clients_keys_tags_properties_bodies_and_addresses_is_shown_as_text() -> None:
    async with looking(orders=3) as (one, browser):
        shared = replace(one.cluster.client_settings, instance_name=CLIENT)
        consumer = PushConsumer("watchers", client=shared)
        consumer.subscribe("Refunds", _nothing)
        async with one.cluster.producer("late") as producer, consumer:
            sent = await producer.send(Message("Refunds", BODY.encode(), TAG, KEY, {NAME: VALUE}))

            def look() -> None:
                as_text(browser, "/clients", CLIENT)
                as_text(browser, "/groups/watchers?tab=clients", CLIENT)
                as_text(browser, f"/messages?topic=Refunds&id={quote(KEY)}", KEY, BODY)
                as_text(browser, f"/messages/Refunds/{sent.message_id}", KEY, TAG, NAME, VALUE, BODY)
                as_text(browser, f"/topics/{quote(CLIENT, safe='')}", CLIENT)
                as_text(browser, f"/groups/{quote(CLIENT, safe='')}", CLIENT)
                as_text(browser, f"/topics?search={quote(CLIENT)}")
                # The browser itself notes every answer with an error: the names of the addresses are of nobody.
                assert [each for each in browser.complaints() if "404" not in each and "400" not in each] == []

            await asyncio.to_thread(look)


@pytest.mark.slow
async def test_a_report_of_a_query_is_text_and_only_an_address_of_the_web_is_a_link() -> None:
    async with looking(orders=3) as (one, browser):
        admin = one.console.parts.accounts.own.admin
        await one.cluster.create_group("report")
        for queue in await admin.queues("Refunds"):
            await admin.set_offset("report", queue, 0)
        report = QueryReport(KEY, "id", "run", "ended", 41, None, BODY, "javascript:document.title=3", 1)
        await admin.put_value(QUERIES, key_of("report", "strange"), report.text())
        usual = replace(report, name="usual", url="https://spark.example/StreamingQuery/statistics?id=run")
        await admin.put_value(QUERIES, key_of("report", "usual"), usual.text())
        one.console.parts.view.forget()

        def look() -> None:
            as_text(browser, "/pipelines", KEY, BODY, "41", "ended", "(javascript:document.title=3)")
            links = browser.driver.find_elements("css selector", "td a[target]")
            assert [(link.text, link.get_attribute("href")) for link in links] == [("usual", usual.url)]
            assert browser.complaints() == []

        await asyncio.to_thread(look)


async def _nothing(_: object) -> None:
    """The group needs a handler."""
