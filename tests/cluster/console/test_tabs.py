"""The tabs of a topic and of a group that ask for more than their page does, over the JSON endpoints."""

import asyncio
from typing import Any

import pytest

from skyrocket.client import Message
from skyrocket.client.core.message import ReceivedMessage
from skyrocket.testing.async_cluster import AsyncLocalCluster
from tests.cluster.console.console_fixture import Visitor, console_of
from tests.integration.console.shop import ROOT, WITH_USERS
from tests.waiting import until


async def test_the_route_of_a_topic_is_what_the_name_servers_tell() -> None:
    async with AsyncLocalCluster(brokers=2) as cluster, console_of(cluster) as visitor:
        await visitor.log_in()
        await cluster.create_topic("Orders", queues=3)
        await visitor.change("PUT", "/api/topics/Orders", {"write_queues": 2, "permission": 4, "broker": "broker-a"})
        while (route := await visitor.get("/api/topics/Orders/route"))["rows"][0]["permission"] != 4:
            await asyncio.sleep(0.05)
        missing = await visitor.http.get("/api/topics/Nowhere/route")
    rows = {row["broker"]: row for row in route["rows"]}
    assert set(rows) == {"broker-a", "broker-b"}
    assert (rows["broker-a"]["read_queues"], rows["broker-a"]["write_queues"]) == (3, 2)
    assert (rows["broker-b"]["read_queues"], rows["broker-b"]["write_queues"], rows["broker-b"]["permission"]) == (
        3,
        3,
        6,
    )
    assert {name: row["addresses"] for name, row in rows.items()} == {
        name: {"0": address} for name, address in cluster.broker_addresses.items()
    }
    assert route["name_servers"] == [cluster.client_settings.name_servers]
    assert missing.status_code == 404
    assert "Nowhere" in missing.json()["error"]


async def test_the_producers_of_a_topic_are_told_apart_by_what_they_have_sent() -> None:
    async with AsyncLocalCluster() as cluster, console_of(cluster) as visitor:
        await cluster.create_topic("Orders", queues=2)
        await cluster.create_topic("Payments", queues=2)
        writing = cluster.producer("shop")
        async with writing:
            for number in range(5):
                await writing.send(Message("Orders", str(number).encode()))
            await until(lambda: cluster.messages("Orders"))
            while not (page := await visitor.get("/api/topics/Orders/producers"))["rows"][0]["group"]:
                await asyncio.sleep(0.05)
            silent = await visitor.get("/api/topics/Payments/producers")
        while (gone := await visitor.get("/api/topics/Orders/producers"))["rows"][0]["group"]:
            await asyncio.sleep(0.05)
    (row,) = (row for row in page["rows"] if row["group"] == "shop")
    assert (page["looked_at"], row["messages"]) == (5, 5)
    assert {row["group"] for row in page["rows"]} == {"shop"}, "not the inner group that every client has"
    assert row["last_sent_ms"] > 0
    assert (row["broker"], row["language"]) == ("broker-a", "PYTHON")
    (idle,) = (each for each in silent["rows"] if each["group"] == "shop")
    assert (silent["looked_at"], idle["messages"], idle["last_sent_ms"]) == (0, 0, None)
    assert [(each["group"], each["messages"]) for each in gone["rows"]] == [("", 5)]


@pytest.mark.requirement("D022")
async def test_the_rights_of_a_topic_are_those_that_name_it_and_shown_to_those_who_may_see_them() -> None:
    async with AsyncLocalCluster(settings=WITH_USERS) as cluster, console_of(cluster, credentials=ROOT) as visitor:
        path = "/api/access/topics/Orders"
        anonymous = await visitor.http.get(path)
        await visitor.post("/api/login", {"account": "rocketmq", "password": "12345678"})
        await visitor.post("/api/access/users", {"name": "alice", "password": "secret123"})
        for resource in ("Topic:Orders", "Topic:Ord*", "Topic:OrdersOfOld", "Topic:Payments", "Group:Orders"):
            await visitor.post(
                "/api/access/rights", {"subject": "User:alice", "resource": resource, "actions": ["Sub"]}
            )
        page = await visitor.get(path)
        alice = Visitor(visitor.console)
        async with alice.http:
            await alice.post("/api/login", {"account": "alice", "password": "secret123"})
            refused = await alice.http.get(path)
    assert anonymous.status_code == 401
    assert refused.status_code == 403
    assert [(row["subject"], row["resource"], row["actions"]) for row in page["rights"]] == [
        ("User:alice", "Topic:Ord*", ["Sub"]),
        ("User:alice", "Topic:Orders", ["Sub"]),
    ]
    assert page["trouble"] == ""


async def test_brokers_without_accounts_say_why_no_right_names_a_topic() -> None:
    async with AsyncLocalCluster() as cluster, console_of(cluster) as visitor:
        await visitor.log_in()
        page = await visitor.get("/api/access/topics/Orders")
    assert page["rights"] == []
    assert "authenticationEnabled=true" in page["trouble"]


async def test_retries_of_a_group_are_shown_with_when_they_are_due() -> None:
    levels = {"messageDelayLevel": "1s 5s 1h 2h"}  # the first retry waits for level 3
    async with AsyncLocalCluster(settings=levels) as cluster, console_of(cluster) as visitor:
        await cluster.create_topic("Orders", queues=1)
        await cluster.create_group("billing")
        await cluster.create_group("other")
        async with _failing(cluster, "billing"), _failing(cluster, "other"), cluster.producer() as producer:
            await producer.send(Message("Orders", b"<b>no stock</b>", "paid", "o-1"))
            first = await _retries(visitor, waiting=1)
        async with cluster.producer() as producer:
            await producer.send(Message("%RETRY%billing", b"come back", keys="o-2"))
        second = await _retries(visitor, due=1)
        narrow = await visitor.get("/api/groups/billing/retries", most=1)
        many = await visitor.http.get("/api/groups/billing/retries", params={"most": 501})
        nothing = await visitor.get("/api/groups/unheard/retries")
    (row,) = first["rows"]
    assert (row["topic"], row["retry_topic"], row["keys"], row["tags"]) == ("Orders", "%RETRY%billing", ["o-1"], "paid")
    assert (row["is_due"], row["attempts"], row["preview"]) == (False, 1, "<b>no stock</b>")
    assert row["due_ms"] == first["next_ms"]
    assert abs(row["due_ms"] - visitor.console.parts.clock.now_ms() - 3_600_000) < 300_000
    assert (first["topics"], first["is_complete"]) == (["%RETRY%billing"], True)
    assert [(each["keys"], each["is_due"]) for each in second["rows"]] == [(["o-2"], True), (["o-1"], False)]
    assert (len(narrow["rows"]), narrow["due"], narrow["waiting"], narrow["is_complete"]) == (1, 1, 1, False)
    assert "500" in many.json()["error"]
    assert (nothing["topics"], nothing["rows"]) == ([], [])


async def test_the_first_failure_of_a_group_is_shown_at_once_though_the_list_of_topics_is_older() -> None:
    async with AsyncLocalCluster() as cluster, console_of(cluster) as visitor:
        await cluster.create_topic("Orders", queues=1)
        before = await visitor.get("/api/groups/billing/retries")
        async with _failing(cluster, "billing"), cluster.producer() as producer:
            await producer.send(Message("Orders", b"no stock", keys="o-1"))
            await until(lambda: cluster.messages("SCHEDULE_TOPIC_XXXX"), "the broker delays the first retry")
            await cluster._routed("%RETRY%billing")
            assert "%RETRY%billing" not in (visitor.console.parts.view.topics.latest or {})
            page = await visitor.get("/api/groups/billing/retries")
    assert (before["topics"], before["rows"]) == ([], [])
    assert [(row["keys"], row["is_due"]) for row in page["rows"]] == [(["o-1"], False)]


def _failing(cluster: AsyncLocalCluster, group: str) -> Any:
    consumer = cluster.push_consumer(group)

    @consumer.on("Orders")
    async def fail(_: ReceivedMessage) -> None:
        raise ValueError("no stock")

    return consumer


async def _retries(visitor: Visitor, **wanted: int) -> Any:
    """The answer, once it has these numbers."""
    while True:
        visitor.console.parts.view.forget()
        page = await visitor.get("/api/groups/billing/retries")
        if all(page[name] == number for name, number in wanted.items()):
            return page
        await asyncio.sleep(0.05)
