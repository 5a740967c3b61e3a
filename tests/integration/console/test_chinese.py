"""What the server finds, warns of, refuses and has done, on the Chinese pages, in a real browser."""

import asyncio

import pytest

from skyrocket.console.alerts.rules import Rule
from tests.integration.console.shop import INJECTION
from tests.integration.console.test_pages import looking


@pytest.mark.slow
async def test_findings_remedies_alerts_and_refusals_are_in_chinese_with_their_values_as_text() -> None:
    async with looking(orders=3) as (one, browser):
        watcher = one.console.parts.watcher
        await watcher.keep([Rule("disk", "disk", 0.8, minutes=0)])
        watcher.look({"disk": {"broker-a:0": 0.9}})

        def look() -> None:
            browser.open("/alerts")
            browser.sees("Disk (0 to 1)", "#firing")
            browser.sees("topics are created by the first send", "#checks")
            browser.click("#language")
            browser.sees("磁盘", "#firing")
            browser.sees("首次发送会自动创建主题", "#checks")
            browser.sees("→ 生产环境请设置 autoCreateTopicEnable=false", "#checks")
            assert "created by the first send" not in browser.text("#checks")
            browser.open("/topics")
            browser.click("#create")
            for name, said in (
                ("Orders", "主题 Orders 已存在：请在它的页面上修改"),
                (INJECTION, f"主题 {INJECTION!r} 含有 '<'：只允许字母"),
                ("$&{wrong}", "主题 '$&{wrong}' 含有 '$'：只允许字母"),
            ):
                browser.type("name", name)
                browser.click("dialog[open] button.primary")
                browser.sees(said, "dialog[open] .callout.bad")

        await asyncio.to_thread(look)


@pytest.mark.slow
async def test_what_was_done_is_told_in_chinese_with_its_values_as_text() -> None:
    async with looking(orders=3) as (_, browser):

        def work() -> None:
            browser.driver.execute_script("localStorage.setItem('language', 'zh')")
            browser.open("/topics")
            browser.click("#create")
            browser.type("name", "Returns")
            browser.click("dialog[open] button.primary")
            browser.sees("已在 broker-a, broker-b 上创建主题 Returns", "#notices")
            browser.click("#reading")
            browser.click("dialog[open] button.primary")
            browser.sees("主题 Returns 已暂停读取：已在 2 个 Broker 上修改", "#notices")
            browser.open("/groups/billing")
            browser.click("#reset")
            browser.find("dialog[open] .callout")
            browser.click("dialog[open] button.primary")
            browser.sees("消费组 billing 在 Orders 的 8 个队列中改从新的位点继续", "#notices")
            browser.open("/dead-letters/billing")
            browser.click("#purge")
            browser.type("confirm", "billing")
            browser.click("dialog[open] button.primary")
            browser.sees("已删除 billing 的 1 条死信", "#notices")
            browser.open("/traces")
            browser.sees("没有轨迹主题 RMQ_SYS_TRACE_TOPIC：本集群没有客户端开启轨迹", "#main")
            assert browser.complaints() == []

        await asyncio.to_thread(work)
