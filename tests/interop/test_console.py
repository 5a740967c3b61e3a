"""The console in front of Apache RocketMQ: every page has its data, and changes are made there."""

import asyncio
import contextlib
from collections.abc import AsyncIterator, Callable
from pathlib import Path
from typing import Any

import pytest

from skyrocket.client import ClientSettings, PushConsumer, ReceivedMessage
from skyrocket.console.core.settings import ConsoleSettings
from skyrocket.console.server import Console
from skyrocket.remoting.client import RemotingClient
from tests.cluster.console.console_fixture import TOKEN, Visitor
from tests.integration.client.servers import running
from tests.interop.apache import Apache
from tests.interop.controller_mode import BROKER, apache_replicas, in_sync, until_set
from tests.interop.failover.sets import apaches_controller
from tests.interop.test_replication_pairs import our_name_server
from tests.waiting import until

pytestmark = [pytest.mark.slow, pytest.mark.interop, pytest.mark.timeout(240)]

READ = (
    "/api/overview",
    "/api/health",
    "/api/topics?kind=all",
    "/api/topics/Orders",
    "/api/topics/Orders/statistics",
    "/api/topics/Orders/spans",
    "/api/topics/Orders/producers",
    "/api/topics/Orders/route",
    "/api/topics/Orders/impact",
    "/api/access",
    "/api/access/topics/Orders",
    "/api/copies",
    "/api/groups?system=true",
    "/api/groups/billing",
    "/api/groups/billing/retries",
    "/api/dead-letters",
    "/api/dead-letters/billing",
    "/api/timers",
    "/api/transactions",
    "/api/cluster",
    "/api/controllers",
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
        while not (told := await visitor.get(f"/api/brokers/{broker['address']}"))["state"]["is_up"]:
            # 4.9.7 refuses to say how it is until it has counted for a while: NoSuchElementException.
            assert "NoSuchElementException" in told["state"]["trouble"]
            visitor.console.parts.view.forget()
            await asyncio.sleep(0.2)
        shown = await visitor.get(settings)
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
    assert [row["messages"] for row in answers["/api/topics/Orders/producers"].json()["rows"]] == [1]
    assert [row["permission"] for row in answers["/api/topics/Orders/route"].json()["rows"]] == [6]
    assert any(row["oldest_ms"] for row in answers["/api/topics/Orders/spans"].json()["rows"])
    assert answers["/api/access/topics/Orders"].json()["rights"] == []
    assert answers["/api/controllers"].json()["is_configured"] is False
    assert {group["name"] for group in told["runtime"] if group["rows"]} >= {"General", "Store", "Rates"}
    assert (shown["settings"]["fileReservedTime"], shown["defaults"]["fileReservedTime"]) == ("96", "72")


@pytest.mark.parametrize("version", ["5.4.0", "4.9.7"])
def test_a_topic_is_paused_moved_and_copied(tmp_path: Path, version: str) -> None:
    with running(version, tmp_path) as servers:
        asyncio.run(_actions(servers.names))


async def _actions(names: str) -> None:
    async with visiting(names) as visitor:
        admin = visitor.console.parts.accounts.own.admin
        for topic in ("Orders", "Copies"):
            await visitor.post("/api/topics", {"name": topic, "queues": 1})
            await _there(visitor, topic)
        for number in range(8):
            await visitor.post("/api/topics/Orders/messages", {"body": f"{number}", "keys": f"o-{number}"})
            await asyncio.sleep(0.005)
        (queue,) = await admin.queues("Orders")
        got: list[bytes] = []
        consumer = PushConsumer("billing", client=ClientSettings(names, instance_name="reader", route_refresh=1.0))

        @consumer.on("Orders")
        async def take(message: ReceivedMessage) -> None:
            got.append(message.body)

        async with consumer:
            await until(lambda: len(got) == 8)
            await visitor.post("/api/topics/Orders/reading", {"allowed": False})
            paused = await visitor.get("/api/topics/Orders")
            await visitor.post("/api/topics/Orders/messages", {"body": "meanwhile"})
            while await admin.queues("Orders"):  # name servers hear of it from the broker
                await asyncio.sleep(0.1)
            seen = len(got)
            await visitor.post("/api/topics/Orders/reading", {"allowed": True})
            await until(lambda: got[8:] == [b"meanwhile"])
        while await visitor.console.parts.view.members.get("billing") is not None:
            visitor.console.parts.view.forget()
            await asyncio.sleep(0.1)
        plan = await visitor.get("/api/groups/billing/reset", topic="Orders", to="offset", offset=3)
        await visitor.post("/api/groups/billing/reset", {"topic": "Orders", "to": "offset", "offset": 3})
        moved = await admin.committed("billing", queue)
        middle = (await admin.message_at(queue, 4)).store_timestamp
        wanted = {"target": "Copies", "since_ms": middle, "most": 3}
        counted = await visitor.get("/api/topics/Orders/copy", **wanted)
        begun = await visitor.post("/api/topics/Orders/copy", {**wanted, "per_second": 0})
        while (copy := await visitor.get(f"/api/copies/{begun['id']}"))["state"] == "running":
            await asyncio.sleep(0.05)
        (target,) = await admin.queues("Copies")
        bodies = [message.body async for message in admin.read_queue(target, 0, await admin.max_offset(target))]
        await visitor.change("PUT", "/api/topics/Orders", {"read_queues": 3})
        await visitor.post("/api/topics/Orders/settings-copy", {"target": "Later"})
        await _there(visitor, "Later")
        later = await visitor.get("/api/topics/Later")
    assert [config["permission"] for config in paused["configs"]] == [2]
    assert seen == 8
    assert (plan["repeated"], moved) == (6, 3)
    assert (counted["messages"], counted["copied"]) == (5, 3)
    assert (copy["state"], copy["copied"], bodies) == ("done", 3, [b"4", b"5", b"6"])
    assert [(config["read_queues"], config["write_queues"]) for config in later["configs"]] == [(3, 1)]


async def _there(visitor: Visitor, topic: str) -> None:
    while (await visitor.http.get(f"/api/topics/{topic}")).status_code != 200:
        await asyncio.sleep(0.1)


@pytest.mark.timeout(600)
async def test_controllers_and_sets_of_rocketmq_are_shown_and_another_master_is_chosen(
    tmp_path: Path, apache_of_version: Callable[[str], Apache]
) -> None:
    newest = apache_of_version("5.4.0")
    with (
        our_name_server(tmp_path) as names,
        apaches_controller(newest, tmp_path) as controller,
        apache_replicas(newest, tmp_path, 2, names, controller) as (first, second),
    ):
        async with visiting(names) as visitor, RemotingClient() as client:
            await until_set(client, controller, lambda info: in_sync(info) == 2, "both are in sync")
            page = await _set_with(visitor, first.address)
            (other,) = (row for row in page["sets"][0]["replicas"] if row["role"] == "slave")
            await visitor.post("/api/controllers/elect", {"broker": BROKER, "broker_id": other["broker_id"]})
            after = await _set_with(visitor, second.address)
    assert [(row["address"], row["is_up"], row["is_leader"]) for row in page["controllers"]] == [
        (controller, True, True)
    ]
    assert (other["address"], other["is_in_sync"], other["is_alive"]) == (second.address, True, True)
    assert after["sets"][0]["master_epoch"] == page["sets"][0]["master_epoch"] + 1


async def _set_with(visitor: Visitor, master: str) -> Any:
    """The page, once this one is master, and both replicas are registered at name servers."""
    while True:
        visitor.console.parts.view.forget()
        visitor.console.parts.controllers.forget()
        page = await visitor.get("/api/controllers")
        is_led = page["sets"] and page["sets"][0]["master_address"] == master
        if is_led and all(row["behind_bytes"] is not None for row in page["sets"][0]["replicas"]):
            return page
        await asyncio.sleep(0.2)
