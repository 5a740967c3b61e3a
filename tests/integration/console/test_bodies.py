"""Bodies as they are: numbers that browsers round, and more bytes than a page gets."""

import asyncio

import pytest

from skyrocket.client import Message
from tests.integration.console.test_pages import looking

MEBIBYTE = 1024 * 1024


@pytest.mark.slow
async def test_numbers_in_the_tree_of_a_body_are_as_they_were_written() -> None:
    async with looking(orders=3) as (one, browser):
        async with one.cluster.producer("late") as producer:
            body = b'{"id": 9007199254740993, "amount": 12.10, "much": 1e400, "none": null, "is": true}'
            sent = await producer.send(Message("Refunds", body))
            plain = await producer.send(Message("Refunds", b"42"))

        def look() -> None:
            browser.open(f"/messages/Refunds/{sent.message_id}")
            for text in ('"id": 9007199254740993', '"amount": 12.10', '"much": 1e400', '"none": null', '"is": true'):
                browser.sees(text, "pre.json")
            browser.open(f"/messages/Refunds/{plain.message_id}")
            browser.sees("42", "pre.body")
            assert browser.driver.find_elements("css selector", "pre.json") == []
            assert browser.complaints() == []

        await asyncio.to_thread(look)


@pytest.mark.slow
async def test_a_body_of_which_only_the_beginning_is_shown_is_not_sent_from_there() -> None:
    async with looking(orders=3) as (one, browser):
        async with one.cluster.producer("late") as producer:
            text = "茶" * (MEBIBYTE // 3 + 1)  # the last letter is cut
            sent = await producer.send(Message("Refunds", text.encode()))
            short = await producer.send(Message("Refunds", "茶".encode()))

        def look() -> None:
            browser.open(f"/messages/Refunds/{sent.message_id}")
            browser.sees("Only the first mebibyte is shown.")
            browser.sees("茶茶茶", "pre.body")
            assert not browser.find("#edit").is_enabled()
            assert browser.find("#again").is_enabled()
            browser.open(f"/messages/Refunds/{short.message_id}")
            browser.sees("茶", "pre.body")
            assert browser.find("#edit").is_enabled()
            assert browser.complaints() == []

        await asyncio.to_thread(look)
