"""What the page of a topic does: nobody reads it for a while, a group moves on, and copies, over the JSON endpoints."""

import asyncio
import json
from typing import Any

import pytest

from skyrocket.client import Message
from skyrocket.client.core.message import ReceivedMessage
from skyrocket.testing.async_cluster import AsyncLocalCluster
from tests.cluster.console.console_fixture import Visitor, console_of
from tests.integration.console.shop import ROOT, WITH_USERS
from tests.waiting import until

CHANGES: tuple[tuple[str, dict[str, Any]], ...] = (
    ("/api/topics/Orders/reading", {"allowed": False}),
    ("/api/topics/Orders/settings-copy", {"target": "Later"}),
    ("/api/topics/Orders/copy", {"target": "Copies", "since_ms": 0}),
    ("/api/copies/1/stop", {}),
    ("/api/controllers/elect", {"broker": "broker-a", "broker_id": 2}),
)


async def _audited(visitor: Visitor) -> list[Any]:
    return await visitor.console.parts.audit.entries()


@pytest.mark.requirement("B018")
async def test_a_paused_topic_is_read_by_nobody_and_resumed_as_it_was() -> None:
    async with AsyncLocalCluster(brokers=2) as cluster, console_of(cluster) as visitor:
        await visitor.log_in()
        await cluster.create_topic("Orders", queues=1)
        await visitor.change("PUT", "/api/topics/Orders", {"permission": 4, "broker": "broker-b"})
        got: list[bytes] = []
        consumer = cluster.push_consumer("billing")

        @consumer.on("Orders")
        async def take(message: ReceivedMessage) -> None:
            got.append(message.body)

        async with consumer, cluster.producer() as producer:
            await producer.send(Message("Orders", b"before"))
            await until(lambda: got == [b"before"])
            done = await visitor.post("/api/topics/Orders/reading", {"allowed": False})
            paused = await visitor.get("/api/topics/Orders")
            impact = await visitor.get("/api/topics/Orders/impact")
            await producer.send(Message("Orders", b"meanwhile"))
            while (await visitor.get("/api/topics/Orders/spans"))["rows"]:  # name servers have not heard of it
                await asyncio.sleep(0.05)
            seen = list(got)
            await visitor.post("/api/topics/Orders/reading", {"allowed": True})
            await until(lambda: got == [b"before", b"meanwhile"])
        resumed = await visitor.get("/api/topics/Orders")
        entry = next(each for each in await _audited(visitor) if '"allowed":false' in each.details)
    assert "is not read any more: changed on 2 brokers" in done["done"]
    assert {each["broker"]: each["permission"] for each in paused["configs"]} == {"broker-a": 2, "broker-b": 0}
    assert {each["broker"]: each["permission"] for each in resumed["configs"]} == {"broker-a": 6, "broker-b": 4}
    assert [group["group"] for group in impact["groups"]] == ["billing"]
    assert seen == [b"before"]
    assert json.loads(entry.before) == {"broker-a permission": "6", "broker-b permission": "4"}
    assert entry.outcome == "done"


async def test_a_group_is_moved_to_an_offset_of_every_queue_after_its_preview() -> None:
    async with AsyncLocalCluster() as cluster, console_of(cluster) as visitor:
        await visitor.log_in()
        await cluster.create_topic("Orders", queues=2)
        await cluster.create_group("billing")
        async with cluster.producer() as producer, cluster.admin() as admin:
            queues = await admin.queues("Orders")
            for number in range(8):
                await producer.send(Message("Orders", str(number).encode()), queue=queues[number % 4 == 0])
            plan = await visitor.get("/api/groups/billing/reset", topic="Orders", to="offset", offset=4)
            wrong = await visitor.http.get("/api/groups/billing/reset", params={"topic": "Orders", "to": "offset"})
            await visitor.post("/api/groups/billing/reset", {"topic": "Orders", "to": "offset", "offset": 4})
            offsets = [await admin.committed("billing", queue) for queue in queues]
    assert [(move["queue"], move["target"], move["skipped"]) for move in plan["moves"]] == [(0, 4, 4), (1, 2, 2)]
    assert offsets == [4, 2], "the end, where it comes before the offset"
    assert wrong.status_code == 400
    assert "offset is missing" in wrong.json()["error"]


async def test_a_topic_is_made_with_the_settings_of_another_one() -> None:
    async with AsyncLocalCluster(brokers=2) as cluster, console_of(cluster) as visitor:
        await visitor.log_in()
        await visitor.post("/api/topics", {"name": "Orders", "kind": "FIFO", "queues": 3, "broker": "broker-a"})
        await until(lambda: cluster.messages("Orders") == [])
        done = await visitor.post("/api/topics/Orders/settings-copy", {"target": "Later"})
        while (answer := await visitor.http.get("/api/topics/Later")).status_code != 200:
            await asyncio.sleep(0.05)
        again = await visitor.post("/api/topics/Orders/settings-copy", {"target": "Later"}, status=400)
        await visitor.post("/api/topics/Nowhere/settings-copy", {"target": "Else"}, status=404)
        first = (await visitor.get("/api/topics/Orders"))["configs"]
    assert "created on broker-a with the settings of Orders" in done["done"]
    assert answer.json()["configs"] == first
    assert "is there already" in again["error"]


async def test_topics_and_groups_are_created_where_one_chooses_and_later_elsewhere() -> None:
    async with AsyncLocalCluster(brokers=2) as cluster, console_of(cluster) as visitor, cluster.admin() as admin:
        await visitor.log_in()
        choices = (await visitor.get("/api/places"))["brokers"]
        here = await visitor.post("/api/topics", {"name": "Orders", "broker": "broker-a"})
        await until(lambda: cluster.messages("Orders") == [])
        again = await visitor.post("/api/topics", {"name": "Orders", "broker": "broker-a"}, status=400)
        address = cluster.broker_addresses["broker-a"]
        by_address = await visitor.post("/api/topics", {"name": "Orders", "queues": 1, "broker": address}, status=400)
        rest = await visitor.post("/api/topics", {"name": "Orders", "cluster": "DefaultCluster"})
        other = await visitor.post("/api/topics", {"name": "Others", "broker": address})
        await visitor.post("/api/groups", {"name": "billing", "broker": "broker-b"})
        groups = {place.broker_name: "billing" in table for place, table in (await admin.group_table()).items()}
        nowhere = await visitor.post("/api/groups", {"name": "mails", "broker": "broker-x"}, status=404)
    assert choices == [{"broker": name, "cluster": "DefaultCluster"} for name in ("broker-a", "broker-b")]
    assert here["done"] == "topic Orders was created on broker-a"
    assert "is there already" in again["error"]
    assert "is there already" in by_address["error"], "it is not replaced by one with other queues"
    assert other["done"] == f"topic Others was created on {address}"
    assert rest["done"] == "topic Orders was created on broker-b"
    assert groups == {"broker-a": False, "broker-b": True}
    assert "broker-x" in nowhere["error"]


async def test_messages_are_copied_after_a_preview_with_progress_and_an_entry_for_the_end() -> None:
    async with AsyncLocalCluster() as cluster, console_of(cluster) as visitor:
        await visitor.log_in()
        await cluster.create_topic("Orders", queues=3)
        await cluster.create_topic("Copies", queues=1)
        await cluster.create_group("billing")
        async with cluster.producer() as producer, cluster.admin() as admin:
            for number in range(12):
                await producer.send(Message("Orders", str(number).encode(), "paid", f"o-{number}"))
            await admin.set_offset("billing", (await admin.queues("Copies"))[0], 0)
            wanted = {"target": "Copies", "since_ms": 0, "most": 10, "per_second": 1000}
            plan = await visitor.get("/api/topics/Orders/copy", **wanted)
            begun = await visitor.post("/api/topics/Orders/copy", wanted)
            state = await _ended(visitor, begun["id"])
        copies = cluster.messages("Copies")
        listed = await visitor.get("/api/copies")
        entries = await _audited(visitor)
    assert (plan["messages"], plan["copied"], plan["seconds"]) == (12, 10, 0.01)
    assert [group["group"] for group in plan["groups"]] == ["billing"]
    assert (state["state"], state["copied"], state["messages"]) == ("done", 10, 10)
    assert listed["rows"] == [state]
    assert [copy.body for copy in copies] == [str(number).encode() for number in range(10)]
    assert [copy.keys for copy in copies][:2] == [["o-0"], ["o-1"]]
    # A short one may have ended before its beginning is written down.
    assert {(each.action, each.outcome) for each in entries} >= {
        ("POST /api/topics/{topic}/copy", "done"),
        ("copy ended", "done: 10 messages of 10 copied"),
    }


async def _ended(visitor: Visitor, number: int) -> Any:
    while (state := await visitor.get(f"/api/copies/{number}"))["state"] == "running":
        await asyncio.sleep(0.02)
    return state


async def test_a_copy_is_stopped_and_what_was_copied_stays() -> None:
    async with AsyncLocalCluster() as cluster, console_of(cluster) as visitor:
        await visitor.log_in()
        await cluster.create_topic("Orders", queues=1)
        await cluster.create_topic("Copies", queues=1)
        async with cluster.producer() as producer:
            for number in range(20):
                await producer.send(Message("Orders", str(number).encode()))
        wanted = {"target": "Copies", "since_ms": 0, "per_second": 0.5}
        begun = await visitor.post("/api/topics/Orders/copy", wanted)
        for _ in range(3):
            await visitor.post("/api/topics/Orders/copy", wanted)
        many = await visitor.post("/api/topics/Orders/copy", wanted, status=400)
        done = await visitor.post(f"/api/copies/{begun['id']}/stop")
        state = await visitor.get(f"/api/copies/{begun['id']}")
        missing = await visitor.http.get("/api/copies/99")
        number = len(cluster.messages("Copies"))
    assert (begun["state"], state["state"]) == ("running", "stopped")
    assert f"after {state['copied']} of 20" in done["done"]
    assert number >= state["copied"] >= 1
    assert "4 copies run already" in many["error"]
    assert missing.status_code == 400


async def test_what_cannot_be_copied_is_refused_before_it_begins() -> None:
    async with AsyncLocalCluster() as cluster, console_of(cluster) as visitor:
        await visitor.log_in()
        await cluster.create_topic("Orders", queues=1)
        path = "/api/topics/Orders/copy"
        nowhere = await visitor.post(path, {"target": "Nowhere", "since_ms": 0}, status=404)
        empty = await visitor.post(path, {"target": " ", "since_ms": 0}, status=400)
        backwards = await visitor.post(path, {"target": "Orders", "since_ms": 5, "until_ms": 5}, status=400)
        many = await visitor.post(path, {"target": "Orders", "since_ms": 0, "most": 1_000_001}, status=400)
        slow = await visitor.post(path, {"target": "Orders", "since_ms": 0, "per_second": -1}, status=400)
    assert "Nowhere" in nowhere["error"]
    assert "to which topic" in empty["error"]
    assert "not behind" in backwards["error"]
    assert "1,000,000" in many["error"]
    assert "per_second" in slow["error"]


@pytest.mark.requirement("D022")
async def test_the_anonymous_and_an_account_without_rights_are_refused_everything() -> None:
    async with AsyncLocalCluster(settings=WITH_USERS) as cluster, console_of(cluster, credentials=ROOT) as visitor:
        anonymous = [
            await visitor.http.post(path, json=body, headers={"X-Skyrocket-Csrf": "x"}) for path, body in CHANGES
        ]
        await visitor.post("/api/login", {"account": "rocketmq", "password": "12345678"})
        for name in ("Orders", "Copies"):
            await visitor.post("/api/topics", {"name": name, "queues": 1})
            while (await visitor.http.get(f"/api/topics/{name}")).status_code != 200:
                await asyncio.sleep(0.05)
        await visitor.post("/api/topics/Orders/messages", {"body": "paid"})
        await visitor.post("/api/access/users", {"name": "alice", "password": "secret123"})
        right = {"subject": "User:alice", "resource": "Topic:*", "actions": ["Sub", "Get"]}
        await visitor.post("/api/access/rights", right)
        alice = Visitor(visitor.console)
        async with alice.http:
            await alice.post("/api/login", {"account": "alice", "password": "secret123"})
            statuses = {path: await _status(alice, path, body) for path, body in CHANGES[:3]}
        topics = await visitor.console.parts.accounts.own.admin.topics()
        page = await visitor.get("/api/topics/Orders")
        copies = await visitor.get("/api/topics/Copies")
    assert {answer.status_code for answer in anonymous} == {401}
    assert statuses == {path: 403 for path, _ in CHANGES[:3]}
    assert "Later" not in topics
    assert (page["configs"][0]["permission"], copies["messages"]) == (6, 0)


async def _status(visitor: Visitor, path: str, body: Any) -> int:
    csrf = (await visitor.get("/api/session"))["csrf"]
    return (await visitor.http.post(path, json=body, headers={"X-Skyrocket-Csrf": csrf})).status_code


async def test_queues_tell_how_fast_they_grow_and_how_far_back_they_reach() -> None:
    async with AsyncLocalCluster() as cluster, console_of(cluster) as visitor:
        await cluster.create_topic("Orders", queues=2)
        async with cluster.producer() as producer, cluster.admin() as admin:
            first = (await admin.queues("Orders"))[0]
            await visitor.get("/api/topics/Orders")
            await asyncio.sleep(1.1)
            await producer.send(Message("Orders", b"one"), queue=first)
            rows = (await visitor.get("/api/topics/Orders"))["queues"]
            spans = await visitor.get("/api/topics/Orders/spans")
    assert [row["in_per_second"] > 0 for row in rows] == [True, False]
    assert [span["oldest_ms"] == rows[0]["newest_ms"] for span in spans["rows"]] == [True, False]
    assert (spans["rows"][1]["oldest_ms"], spans["is_complete"]) == (None, True)
