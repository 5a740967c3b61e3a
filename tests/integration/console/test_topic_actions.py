"""What is done with a topic, and with its groups on its page, in a real browser."""

import asyncio
import json

import pytest

from skyrocket.client import Message
from tests.integration.console.test_pages import looking
from tests.waiting import until


@pytest.mark.slow
async def test_pause_reading_of_a_topic_and_resume_it() -> None:
    async with looking(orders=3) as (one, browser):

        def pause() -> None:
            browser.open("/topics/Orders")
            browser.sees("Messages", ".tabs")
            browser.sees("msg/s")
            browser.click("#reading")
            browser.sees("every group, and these pages", "dialog[open]")
            browser.sees("billing", "dialog[open] table")
            browser.button("Pause reading", "dialog[open]")
            browser.sees("is not read any more: changed on 2 brokers", "#notices")
            browser.sees("Reading is paused on broker-a, broker-b", ".callout.warn")
            browser.sees("Resume reading", "#reading")

        def resume() -> None:
            browser.click("#reading")
            browser.button("Resume reading", "dialog[open]")
            browser.sees("is read again", "#notices")
            browser.sees("Pause reading", "#reading")
            assert browser.complaints() == []

        await asyncio.to_thread(pause)
        before = sum(one.cluster.offsets("billing").values())
        async with one.cluster.producer("late") as producer:
            await producer.send(Message("Orders", b"meanwhile"))
        configs = await one.console.parts.accounts.own.admin.topic_configs("Orders")
        assert {config.permission for config in configs.values()} == {2}
        await asyncio.to_thread(resume)
        await until(lambda: sum(one.cluster.offsets("billing").values()) == before + 1)
        entries = [each for each in await one.console.parts.audit.entries() if "reading" in each.action]
        assert [json.loads(each.before)["broker-a permission"] for each in entries] == ["2", "6"]


@pytest.mark.slow
async def test_a_topic_is_created_on_the_broker_that_was_chosen() -> None:
    async with looking(orders=1) as (_, browser):

        def create() -> None:
            browser.open("/topics")
            browser.click("#create")
            browser.type("name", "Elsewhere")
            browser.type("where", "on broker-b of DefaultCluster")
            browser.button("Create topic", "dialog[open]")
            browser.sees("topic Elsewhere was created on broker-b", "#notices")
            assert browser.complaints() == []

        await asyncio.to_thread(create)


@pytest.mark.slow
async def test_reset_and_skip_a_group_on_the_page_of_its_topic() -> None:
    async with looking(orders=20) as (one, browser):

        def work() -> None:
            browser.open("/topics/Orders")
            browser.click("#reset")
            browser.sees("billing", "dialog[open] [name=group]")
            browser.type("to", "an offset of every queue")
            browser.sees("Messages that would be skipped: 0, consumed again: 21.", "#plan")
            browser.button("Reset offsets", "dialog[open]")
            browser.sees("goes on elsewhere", "#notices")
            browser.open("/topics/Orders?tab=groups")
            browser.button("Skip", "#groups")
            browser.sees("Skip what waits", "dialog[open]")
            browser.sees("Messages that would be skipped:", "#plan")
            browser.button("Skip", "dialog[open]")
            browser.sees("goes on elsewhere", "#notices")
            assert browser.complaints() == []

        await asyncio.to_thread(work)
        actions = [entry.action for entry in await one.console.parts.audit.entries()]
        assert actions.count("POST /api/groups/{group}/reset") == 2


@pytest.mark.slow
async def test_copy_messages_and_settings_of_a_topic() -> None:
    async with looking(orders=12) as (one, browser):

        def work() -> None:
            browser.open("/topics/Orders")
            browser.click("#copy")
            browser.type("what", "its settings")
            browser.sees("Messages and groups are not copied", "#plan")
            browser.type("target", "Orders-again")
            browser.button("Copy", "dialog[open]")
            browser.sees("with the settings of Orders", "#notices")
            browser.open("/topics/Orders")
            browser.click("#copy")
            browser.sees("Choose a topic", "#plan")
            browser.type("target", "Refunds")
            browser.type("most", "10")
            browser.type("per_second", "5\t")
            browser.sees("10 messages would be copied of 13 in 2 s at least", "#plan")
            browser.button("Copy", "dialog[open]")
            browser.sees("Copying 10 of Orders to Refunds", "#notices")
            browser.sees("running", "#copies")
            browser.sees("10 of 10", "#copies")
            browser.sees("done", "#copies")
            browser.open("/topics/Refunds")
            browser.sees("10 of 10", "#copies")
            browser.sees("o-0")
            assert browser.complaints() == []

        await asyncio.to_thread(work)
        assert len(one.cluster.messages("Refunds")) == 10
        assert "Orders-again" in await one.console.parts.accounts.own.admin.topics()


@pytest.mark.slow
async def test_a_copy_is_stopped_and_the_anonymous_may_do_nothing_of_it() -> None:
    async with looking(orders=12) as (one, browser):

        def work() -> None:
            browser.open("/topics/Orders")
            browser.click("#copy")
            browser.type("target", "Refunds")
            browser.type("per_second", "1\t")
            browser.sees("13 messages would be copied", "#plan")
            browser.button("Copy", "dialog[open]")
            browser.button("Stop", "#copies")
            browser.sees("stopped", "#copies")
            browser.click("#logout")
            browser.sees("Read-only")
            browser.open("/topics/Orders")
            for button in ("#send", "#reset", "#skip", "#reading", "#copy", "#delete"):
                assert not browser.find(button).is_enabled(), button
            assert browser.complaints() == []

        await asyncio.to_thread(work)
        assert 1 <= len(one.cluster.messages("Refunds")) < 13


@pytest.mark.slow
async def test_queues_of_a_topic_show_their_rate_and_how_far_back_they_reach() -> None:
    async with looking(orders=20) as (_, browser):

        def work() -> None:
            browser.open("/topics/Orders?tab=queues")
            for name in ("In/s", "Of the average", "Reaches back"):
                browser.sees(name, "#queues")
            browser.sees("×", "#queues")
            assert browser.complaints() == []

        await asyncio.to_thread(work)
