"""The console in front of Apache RocketMQ: every page has its data, and changes are made there."""

import asyncio
import contextlib
from collections.abc import AsyncIterator
from pathlib import Path

import pytest

from skyrocket.client import ClientSettings
from skyrocket.console.core.settings import ConsoleSettings
from skyrocket.console.server import Console
from tests.cluster.console.console_fixture import TOKEN, Visitor
from tests.integration.client.servers import running

pytestmark = [pytest.mark.slow, pytest.mark.interop, pytest.mark.timeout(240)]

READ = (
    "/api/overview",
    "/api/health",
    "/api/topics?kind=all",
    "/api/topics/Orders",
    "/api/topics/Orders/statistics",
    "/api/groups?system=true",
    "/api/groups/billing",
    "/api/dead-letters",
    "/api/timers",
    "/api/transactions",
    "/api/cluster",
    "/api/clients",
    "/api/pipelines",
    "/api/places",
    "/api/metrics-places",
    "/api/transactions/given-up",
    "/api/timers?key=nobody",
    "/api/alerts",
)


@contextlib.asynccontextmanager
async def visiting(names: str) -> AsyncIterator[Visitor]:
    console = Console(ConsoleSettings(ClientSettings(names, instance_name="console"), token=TOKEN))
    await console.open()
    visitor = Visitor(console)
    try:
        async with visitor.http:
            await visitor.log_in()
            yield visitor
    finally:
        await console.close()


@pytest.mark.parametrize("version", ["5.4.0", "4.9.7"])
def test_pages_have_their_data_and_changes_are_made(tmp_path: Path, version: str) -> None:
    with running(version, tmp_path) as servers:
        asyncio.run(_scenario(servers.names))


async def _scenario(names: str) -> None:
    async with visiting(names) as visitor:
        await visitor.post("/api/topics", {"name": "Orders", "queues": 2})
        await visitor.post("/api/groups", {"name": "billing"})
        for _ in range(600):  # name servers hear of a new topic from the broker
            if (await visitor.http.get("/api/topics/Orders")).status_code == 200:
                break
            await asyncio.sleep(0.1)
        sent = await visitor.post("/api/topics/Orders/messages", {"body": "paid", "keys": "o-1", "tags": "t"})
        found: list[str] = []
        while not found:  # Java's broker makes its index after the answer
            rows = (await visitor.get("/api/topics/Orders/messages", key="o-1"))["rows"]
            found = [row["message_id"] for row in rows]
            await asyncio.sleep(0.05)
        newest = await visitor.get("/api/topics/Orders/messages")
        page = await visitor.get(f"/api/topics/Orders/messages/{sent['message_id']}")
        plan = await visitor.get("/api/groups/billing/reset", topic="Orders", to="latest")
        await visitor.post("/api/groups/billing/reset", {"topic": "Orders", "to": "latest"})  # it has no offset yet
        after = await visitor.get("/api/groups/billing/reset", topic="Orders", to="latest")
        await visitor.change("PUT", "/api/topics/Orders", {"write_queues": 3})
        (broker,) = (await visitor.get("/api/cluster"))["brokers"]
        settings = f"/api/brokers/{broker['address']}/settings"
        await visitor.change("PUT", settings, {"settings": {"fileReservedTime": "96"}})
        answers = {path: await visitor.http.get(path) for path in READ}
        configs = answers["/api/topics/Orders"].json()["configs"]
        await visitor.change("DELETE", "/api/topics/Orders")
    assert found == [sent["message_id"]]
    assert [row["preview"] for row in newest["rows"]] == ["paid"]
    assert page["message"]["tags"] == "t"
    assert plan["moves"]
    assert sum(move["committed"] for move in after["moves"]) == 1
    assert {path: answer.text[:200] for path, answer in answers.items() if answer.status_code != 200} == {}
    assert [config["write_queues"] for config in configs] == [3]
    assert answers["/api/transactions"].json()["offered"] is False
