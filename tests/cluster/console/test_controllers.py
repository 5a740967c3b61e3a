"""Controllers in the console: found through brokers' settings, with their sets, and another master chosen."""

import asyncio
import json
from typing import Any

import pytest

from skyrocket.client import Message
from skyrocket.testing.async_cluster import AsyncLocalCluster
from tests.cluster.console.console_fixture import Visitor, console_of


async def _until_in_sync(visitor: Visitor, replicas: int) -> Any:
    while True:
        visitor.console.parts.view.forget()
        visitor.console.parts.controllers.forget()
        page = await visitor.get("/api/controllers")
        if page["sets"] and sum(each["is_in_sync"] for each in page["sets"][0]["replicas"]) == replicas:
            return page
        await asyncio.sleep(0.1)


async def test_a_cluster_without_controllers_says_so() -> None:
    async with AsyncLocalCluster() as cluster, console_of(cluster) as visitor:
        await visitor.log_in()
        page = await visitor.get("/api/controllers")
        refused = await visitor.post("/api/controllers/elect", {"broker": "broker-a", "broker_id": 2}, status=400)
    assert (page["is_configured"], page["controllers"], page["sets"]) == (False, [], [])
    assert "no controller knows a set broker-a" in refused["error"]


@pytest.mark.timeout(120)
@pytest.mark.requirement("B018")
async def test_sets_are_shown_and_another_replica_is_made_master() -> None:
    async with AsyncLocalCluster(replicas=3, failover=True) as cluster, console_of(cluster) as visitor:
        await visitor.log_in()
        await cluster.create_topic("Orders", queues=1)
        async with cluster.producer() as producer:
            await producer.send(Message("Orders", b"one"))
        page = await _until_in_sync(visitor, 3)
        (known,) = page["sets"]
        other = next(each for each in known["replicas"] if each["role"] == "slave")
        wanted = {"broker": "broker-a", "broker_id": other["broker_id"]}
        done = await visitor.post("/api/controllers/elect", wanted)
        after = (await _until_in_sync(visitor, 3))["sets"][0]
        again = await visitor.post("/api/controllers/elect", wanted, status=400)
        nobody = await visitor.post("/api/controllers/elect", {"broker": "broker-a", "broker_id": 77}, status=502)
        entry = next(
            e for e in await visitor.console.parts.audit.entries() if e.outcome == "done" and "elect" in e.action
        )
    (controller,) = page["controllers"]
    assert (page["is_configured"], controller["is_up"], controller["is_leader"]) == (True, True, True)
    assert (known["broker"], known["cluster"], len(known["replicas"])) == ("broker-a", "DefaultCluster", 3)
    assert known["master_address"] == next(e["address"] for e in known["replicas"] if e["role"] == "master")
    assert {each["behind_bytes"] for each in known["replicas"]} == {0}
    assert {each["is_alive"] for each in known["replicas"]} == {True}
    assert f"replica {other['broker_id']} is master of broker-a now" in done["done"]
    assert after["master_id"] == other["broker_id"]
    assert after["master_epoch"] > known["master_epoch"]
    assert "is master of broker-a already" in again["error"]
    assert "77" in nobody["error"]
    assert json.loads(entry.before)["master"] == known["master_id"]
