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
