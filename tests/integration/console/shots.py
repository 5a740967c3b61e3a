"""Pictures of all pages, light, dark and in Chinese: `make console-shots` puts them into var/console-shots.

`make console-shots ARGS='tab=route tab=retries'` takes those whose address contains one of these texts.
"""

import asyncio
import math
import sys
import tempfile
from pathlib import Path

from skyrocket.client import Message
from skyrocket.console.history.series import MINUTE_MS
from skyrocket.schemas.catalog import Catalog
from tests import ROOT
from tests.cluster.console.test_decoding import PROTO
from tests.integration.console.browser import Browser, browser_at
from tests.integration.console.shop import Shop, packing, shop
from tests.integration.console.test_pages import PAGES

FOLDER = ROOT / "var" / "console-shots"
SETTLED_SECONDS = 1.2


async def main() -> None:
    """All of them, or those that were named."""
    with tempfile.TemporaryDirectory() as folder:
        schemas = Path(folder) / "schemas.toml"
        schemas.write_text('[[schema]]\ntopics = "Payments"\nfile = "shop.proto"\nmessage = "shop.Payment"')
        schemas.with_name("shop.proto").write_text(PROTO)
        wanted = Catalog.read(schemas)
    async with shop(schemas=wanted) as one, packing(one.cluster), one.cluster.producer("late") as producer:
        await _past(one)
        payment = await producer.send(Message("Payments", b"\x08\x0c\x12\x03tea", keys="p-2"))
        await _all(one, payment.message_id)


async def _all(one: Shop, payment: str) -> None:
    address = next(iter(one.cluster.broker_addresses.values()))
    rows = one.cluster.messages("Orders")
    pages = [
        *PAGES,
        f"/cluster/{address}",
        f"/cluster/{address}?tab=settings",
        f"/messages/Orders/{rows[7].message_id}",
        "/groups/packing?tab=retries",
        f"/messages/Payments/{payment}",
    ]
    wanted = sys.argv[1:] or [""]
    chosen = [page for page in pages if any(text in page for text in wanted)]
    await asyncio.to_thread(_shoot, one, chosen)


async def _past(one: Shop) -> None:
    """A day that has not been, so that charts have lines."""
    series, now = one.console.parts.series, one.console.parts.clock.now_ms()
    for minute in range(1, 24 * 60):
        wave = 1 + math.sin(minute / 97) + 0.3 * math.sin(minute / 7)
        samples = {
            "in:cluster": 900 + 300 * wave,
            "out:cluster": 880 + 290 * wave,
            "lag:cluster": max(0.0, 4000 * math.sin(minute / 60)),
            "lag:group:billing": max(0.0, 4000 * math.sin(minute / 60)),
            "out:group:billing": 300 + 120 * wave,
            "in:topic:Orders": 310 + 120 * wave,
            "dead:cluster": 1.0,
        }
        await series.add(samples, now - minute * MINUTE_MS)


def _shoot(one: Shop, pages: list[str]) -> None:
    with browser_at(one.console.address) as browser:
        browser.driver.get(one.console.operator_address)
        browser.find("#account")
        for page in pages:
            _keep(browser, page, "light")
        browser.driver.execute_script("localStorage.setItem('theme', 'dark')")
        for page in pages:
            _keep(browser, page, "dark")
        browser.driver.execute_script("localStorage.setItem('language', 'zh'); localStorage.setItem('theme', 'light')")
        for page in pages:
            _keep(browser, page, "zh")
        for text in browser.complaints():
            print(text)  # noqa: T201


def _keep(browser: Browser, page: str, kind: str) -> None:
    browser.open(page)
    asyncio.run(asyncio.sleep(SETTLED_SECONDS))  # charts are drawn when their place has a size
    name = page.strip("/").replace("/", "-").replace("?", "-").replace("=", "-") or "overview"
    browser.shoot(FOLDER / f"{kind}-{name[:60]}.png")


if __name__ == "__main__":
    asyncio.run(main())
