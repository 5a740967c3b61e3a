"""What the server finds, warns of and refuses, on the Chinese pages, in a real browser."""

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
