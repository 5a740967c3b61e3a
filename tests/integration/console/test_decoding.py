"""A body by the schema of its topic, in a real browser."""

import asyncio
from pathlib import Path

import pytest

from skyrocket.client import Message
from tests.cluster.console.test_decoding import ORDER, catalog
from tests.integration.console.shop import INJECTION
from tests.integration.console.test_pages import looking
from tests.unit.schemas.test_trees import avro

NOBODY = "http://127.0.0.1:1"


@pytest.mark.slow
async def test_a_body_is_a_tree_by_its_schema_and_the_reason_where_it_does_not_fit(tmp_path: Path) -> None:
    async with looking(orders=3, schemas=catalog(tmp_path, NOBODY)) as (one, browser):
        async with one.cluster.producer("late") as producer:
            body = avro(ORDER, {"id": "o-avro", "items": ["tea", INJECTION]})
            good = await producer.send(Message("Orders", body, keys="o-avro"))
            payment = await producer.send(Message("Payments", b"\x08\x0c\x12\x03tea", keys="p-proto"))

        def look() -> None:
            browser.open(f"/messages/Orders/{good.message_id}")
            browser.sees('"id": "o-avro"', "#decoded")
            assert INJECTION.replace('"', '\\"') in browser.text("#decoded")
            browser.sees("Schema: order.avsc")
            browser.button("Bytes")
            browser.sees("6f 2d 61 76 72 6f", "pre.body")
            browser.button("Base64")
            browser.button("Avro")
            browser.sees('"o-avro"', "#decoded")
            browser.open(f"/messages/Payments/{payment.message_id}")
            browser.sees('"cents": 12', "#decoded")
            browser.open("/messages?topic=Orders&id=o-1")
            browser.click("td.address a")
            browser.sees("Not decoded (order.avsc): the body", ".callout.warn")
            browser.sees('"order": 1', "pre.body")
            browser.click("#language")
            browser.sees("未解码 (order.avsc)")
            assert browser.complaints() == []

        await asyncio.to_thread(look)


@pytest.mark.slow
async def test_a_dead_letter_is_edited_with_all_its_sender_gave_and_a_body_that_is_no_text_stays_as_it_is() -> None:
    async with looking(orders=3) as (one, browser):
        async with one.cluster.producer("late") as producer:
            sent = await producer.send(
                Message("Refunds", b"\xff\x00", "late", "r-1", {"city": "La Paz", "note": "a\nb"}, sharding_key="s")
            )

        def edit() -> None:
            browser.open("/dead-letters/billing")
            browser.click("tbody td.mono a")
            browser.button("Edit and send", "dialog[open]")
            browser.type("body", "mended", "dialog[open]:last-of-type")
            browser.button("Send message", "dialog[open]:last-of-type")
            browser.sees("Sent:", "#notices")
            browser.open(f"/messages/Refunds/{sent.message_id}")
            browser.button("Edit and send")
            browser.sees("Properties of several lines are left out: note", "dialog[open]")
            browser.button("Send message", "dialog[open]")
            browser.sees("Sent:", "#notices")
            assert browser.complaints() == []

        await asyncio.to_thread(edit)
        mended = [each for each in one.cluster.messages("Orders") if each.body == b"mended"]
        assert [(each.tags, each.keys) for each in mended] == [("paid", ["o-broken"])]
        copy = one.cluster.messages("Refunds")[-1]
        assert (copy.body, copy.keys, copy.sharding_key) == (b"\xff\x00", ["r-1"], "s")
        assert (copy.properties["city"], "note" in copy.properties) == ("La Paz", False)


@pytest.mark.slow
async def test_the_tail_keeps_what_came_when_columns_change_and_after_a_pause() -> None:
    async with looking(orders=3) as (one, browser):

        def begin() -> None:
            browser.open("/topics/Refunds/tail")
            browser.sees("live")

        def paused() -> None:
            browser.sees("first", "#tail")
            browser.click(".bar label.check:nth-of-type(4) input")
            browser.sees("first", "#tail")
            assert "k-1" not in browser.text("#tail")
            assert "hide=keys" in browser.driver.current_url
            browser.click("#pause")
            browser.sees("paused")

        def on() -> None:
            browser.sees("· 2")
            assert "second" not in browser.text("#tail")
            browser.click("#pause")
            browser.sees("second", "#tail")
            browser.sees("first", "#tail")
            assert browser.complaints() == []

        await asyncio.to_thread(begin)
        async with one.cluster.producer("late") as producer:
            await producer.send(Message("Refunds", b"first", keys="k-1"))
            await asyncio.to_thread(paused)
            await producer.send(Message("Refunds", b"second", keys="k-2"))
            await asyncio.to_thread(on)
