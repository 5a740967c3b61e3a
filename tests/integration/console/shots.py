"""Pictures of all pages, light, dark, narrow and in Chinese: `make console-shots` puts them into var/console-shots.

`make console-shots ARGS='tab=route tab=retries'` takes those whose address contains one of these texts. Dialogues have
pictures, too: `#reading` behind an address is the button that is clicked. Two more clusters have what the shop has not:
one with accounts (`/topics/Orders?tab=rights`), one with controllers (`/cluster`).
"""

import asyncio
import math
import re
import sys
import tempfile
from collections.abc import Sequence
from pathlib import Path

from skyrocket.client import Message, Right
from skyrocket.console.cluster.copies import Copy, CopyOrder
from skyrocket.console.history.series import MINUTE_MS
from skyrocket.console.server import Console
from skyrocket.schemas.catalog import Catalog
from tests import ROOT
from tests.cluster.console.test_decoding import PROTO
from tests.integration.console.browser import Browser, browser_at
from tests.integration.console.shop import Shop, packing, shop
from tests.integration.console.test_controllers import led_set
from tests.integration.console.test_pages import PAGES

FOLDER = ROOT / "var" / "console-shots"
SETTLED_SECONDS = 1.2


DIALOGS = (
    "/topics/Orders#reading",
    "/topics/Orders#reset",
    "/topics/Orders#skip",
    "/topics/Orders#copy",
)


def _chosen(pages: Sequence[str]) -> list[str]:
    wanted = sys.argv[1:] or [""]
    return [page for page in pages if any(text in page for text in wanted)]


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
        _copy(one.console)
        address = next(iter(one.cluster.broker_addresses.values()))
        rows = one.cluster.messages("Orders")
        pages = [
            *PAGES,
            f"/cluster/{address}",
            f"/cluster/{address}?tab=settings",
            f"/messages/Orders/{rows[7].message_id}",
            "/groups/packing?tab=retries",
            f"/messages/Payments/{payment.message_id}",
            *DIALOGS,
        ]
        if chosen := _chosen(pages):
            await asyncio.to_thread(_shoot, one.console, chosen)
    if chosen := _chosen(["/topics/Orders?tab=rights"]):
        async with shop(users=True) as one:
            await _rights(one.console)
            await asyncio.to_thread(_shoot, one.console, chosen, "with-accounts-")
    if chosen := _chosen(["/cluster", "/cluster#elect"]):
        async with led_set() as console:
            await asyncio.to_thread(_shoot, console, chosen, "with-controllers-")


async def _rights(console: Console) -> None:
    admin = console.parts.accounts.own.admin
    await admin.create_topic("Orders")
    for user, resource, actions in (
        ("shop", "Topic:Orders", ("Pub",)),
        ("billing", "Topic:Ord*", ("Sub",)),
        ("report", "Topic:*", ("Sub", "Get")),
    ):
        await admin.create_user(user, "secret123")
        await admin.create_rights([Right(f"User:{user}", resource, actions)])


def _copy(console: Console) -> None:
    """One that runs all the while."""

    async def ended(_: Copy) -> None:
        return None

    order = CopyOrder("Orders", "Refunds", 0, console.parts.clock.now_ms(), 200, 0.5)
    console.parts.copies.start(console.settings.client, order, 200, "operator", ended)


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


def _shoot(console: Console, pages: Sequence[str], prefix: str = "") -> None:
    with browser_at(console.address) as browser:
        browser.driver.get(console.operator_address)
        browser.find("#account")
        for page in pages:
            _keep(browser, page, f"light-{prefix}")
        browser.driver.execute_script("localStorage.setItem('theme', 'dark')")
        for page in pages:
            _keep(browser, page, f"dark-{prefix}")
        browser.driver.execute_script("localStorage.setItem('language', 'zh'); localStorage.setItem('theme', 'light')")
        for page in pages:
            _keep(browser, page, f"zh-{prefix}")
        browser.resize(400, 850)
        for page in pages:
            _keep(browser, page, f"narrow-{prefix}")
        for text in browser.complaints():
            print(text)  # noqa: T201


def _keep(browser: Browser, page: str, kind: str) -> None:
    path, _, button = page.partition("#")
    browser.open(path)
    if button:
        browser.click("[data-elect]" if button == "elect" else f"#{button}")
        browser.find("dialog[open]")
    asyncio.run(asyncio.sleep(SETTLED_SECONDS))  # charts are drawn when their place has a size
    name = re.sub(r"[/?=#]", "-", page.strip("/")) or "overview"
    browser.shoot(FOLDER / f"{kind}{name[:60]}.png")


if __name__ == "__main__":
    asyncio.run(main())
