"""The console in front of a full cluster: 1,000 topics, 200 groups, 10,000 queues.

python -m bench.console_pages           what the broker pays while nobody looks, how soon each page has its data

The broker is a process of its own; the console runs here, and Chromium looks at it (without Chromium: endpoints alone).
Each page is opened several times with nothing of it in the browser's memory but the modules, and the first page in
browsers that were just started, with nothing at all; the slowest time counts.
"""

import argparse
import asyncio
import functools
import os
import shutil
import time
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Final

import httpx

from bench.load.own_server import OwnServer, own_server
from skyrocket.client import Message, Producer
from skyrocket.client.admin.admin import Admin
from skyrocket.client.core.settings import ClientSettings
from skyrocket.console.core.settings import ConsoleSettings
from skyrocket.console.server import Console
from skyrocket.model.message_queue import MessageQueue
from skyrocket.model.subscription_group import SubscriptionGroup
from skyrocket.model.topic_config import TopicConfig

if TYPE_CHECKING:
    from tests.integration.console.browser import Browser

TOPICS: Final = 1000
GROUPS: Final = 200
QUEUES: Final = 10
IDLE_SECONDS: Final = 60.0
ROUNDS: Final = 3
PAINTED_MS, DATA_MS = 300, 1000
PAGES: Final = (
    "/",
    "/topics",
    "/topics/Topic-0007",
    "/topics/Topic-0007?tab=queues",
    "/topics/Topic-0007?tab=groups",
    "/topics/Topic-0007?tab=producers",
    "/topics/Topic-0007?tab=route",
    "/topics/Topic-0007?tab=config",
    "/topics/Topic-0007?tab=statistics",
    "/topics/Topic-0007?tab=rights",
    "/groups",
    "/groups/group-007",
    "/groups/group-007?tab=retries",
    "/groups/group-007?tab=dead-letters",
    "/cluster",
    "/cluster/BROKER",
    "/cluster/BROKER?tab=settings",
    "/messages",
    "/messages/Topic-0007/MESSAGE",
    "/clients",
    "/topics/Topic-0007/tail",
    "/dead-letters",
    "/dead-letters/group-007",
    "/delayed",
    "/transactions",
    "/traces",
    "/pipelines",
    "/metrics",
    "/alerts",
    "/access",
    "/audit",
    "/counter",
    "/docs",
)
ENDPOINTS: Final = ("/api/overview", "/api/topics", "/api/topics?sort=-in", "/api/groups?sort=-lag", "/api/cluster")
_PAINTED: Final = """
    const paint = performance.getEntriesByType('paint').find((entry) => entry.name === 'first-contentful-paint');
    return [paint ? paint.startTime : null, performance.now(), document.querySelector('.skeleton') === null];
"""


async def fill(admin: Admin, client: ClientSettings) -> dict[str, str]:
    """Topics, groups, offsets of each group in five topics, one message; what stands for names in PAGES."""
    await admin.put_topics([TopicConfig(f"Topic-{number:04}", QUEUES, QUEUES) for number in range(TOPICS)])
    await admin.put_groups([SubscriptionGroup(f"group-{number:03}") for number in range(GROUPS)])
    (broker,) = await admin.brokers()
    for number in range(GROUPS):
        for topic in range(5):
            name = f"Topic-{(number * 5 + topic) % TOPICS:04}"
            queues = [MessageQueue(name, broker.broker_name, queue) for queue in range(QUEUES)]
            await asyncio.gather(*(admin.set_offset(f"group-{number:03}", queue, 0) for queue in queues))
    async with Producer("bench", client=client) as producer:
        sent = await producer.send(Message("Topic-0007", b'{"order": 7}', keys=("7",)))
    return {"BROKER": broker.address, "MESSAGE": sent.message_id}


def cpu_seconds(pid: int) -> float:
    """User and system time of a process."""
    with open(f"/proc/{pid}/stat") as file:
        fields = file.read().rpartition(")")[2].split()
    return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")


async def main(idle_seconds: float) -> None:
    """All figures, as text."""
    with own_server() as server:
        client = ClientSettings(f"{server.name_server[0]}:{server.name_server[1]}")
        async with Admin(client=client) as admin:
            names = await fill(admin, client)
        alone = await _share(server, idle_seconds)
        async with Console(ConsoleSettings(client, port=0)) as console:
            await console.recorder.record()
            with_console = await _share(server, idle_seconds)
            print(f"broker's CPU, nobody looks: {alone:.2%} alone, {with_console:.2%} with the console")
            await _endpoints(console.address)
            if shutil.which("chromium") and shutil.which("chromedriver"):
                await asyncio.to_thread(_pages, console.address, names)
            else:
                print("no chromium here: apt-get install chromium chromium-driver")


async def _share(server: OwnServer, seconds: float) -> float:
    began, used = time.monotonic(), cpu_seconds(server.pid)
    await asyncio.sleep(seconds)
    return (cpu_seconds(server.pid) - used) / (time.monotonic() - began)


async def _endpoints(address: str) -> None:
    async with httpx.AsyncClient(base_url=address, timeout=30) as http:
        for path in ENDPOINTS:
            began = time.monotonic()
            answer = await http.get(path)
            answer.raise_for_status()
            print(f"{path:32} {(time.monotonic() - began) * 1000:6.0f} ms {len(answer.content):9,} bytes")


def _pages(address: str, names: Mapping[str, str]) -> None:
    from tests.integration.console.browser import browser_at

    missed, first = 0, []
    for _ in range(ROUNDS):
        with browser_at(address) as browser:
            first.append(_open(browser, "/"))
    missed += _told("the very first visit, /", first)
    with browser_at(address) as browser:
        _open(browser, "/")
        for page in PAGES:
            path = functools.reduce(lambda text, name: text.replace(name, names[name]), names, page)
            missed += _told(page, [_open(browser, path) for _ in range(ROUNDS)])
    print(f"{missed} of {len(PAGES) + 1} missed {PAINTED_MS} ms or {DATA_MS} ms")


def _told(page: str, rounds: Sequence[tuple[float, float]]) -> bool:
    painted, data = max(each for each, _ in rounds), max(each for _, each in rounds)
    print(f"{page:32} painted after {painted:5.0f} ms, data after at most {data:5.0f} ms")
    return painted >= PAINTED_MS or data >= DATA_MS


def _open(browser: "Browser", path: str) -> tuple[float, float]:
    """Milliseconds until something was painted, and until nothing waits for its data."""
    browser.driver.get(browser.address + path)
    painted, now, has_data = browser.driver.execute_script(_PAINTED)
    while not has_data or painted is None:
        time.sleep(0.02)
        painted, now, has_data = browser.driver.execute_script(_PAINTED)
    return painted, now


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--idle-seconds", type=float, default=IDLE_SECONDS)
    asyncio.run(main(parser.parse_args().idle_seconds))
