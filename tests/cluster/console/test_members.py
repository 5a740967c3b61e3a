"""The clients of a group side by side, and moving the group to an offset with its preview."""

from dataclasses import replace
from typing import Any

import pytest

from skyrocket.client import Message, PushConsumer
from skyrocket.client.core.message import ReceivedMessage
from skyrocket.testing.async_cluster import AsyncLocalCluster
from tests.cluster.console.console_fixture import Visitor, console_of
from tests.waiting import until


def member(cluster: AsyncLocalCluster, name: str, tags: str) -> PushConsumer:
    consumer = PushConsumer("billing", client=replace(cluster.client_settings, instance_name=name))

    @consumer.on("Orders", tags=tags)
    async def take(_: ReceivedMessage) -> None: ...

    return consumer


async def members(visitor: Visitor, count: int) -> Any:
    visitor.console.parts.view.forget()
    answer = await visitor.get("/api/groups/billing/members")
    assert len(answer["rows"]) == count
    return answer


@pytest.mark.requirement("B009", "D022")
async def test_clients_tell_what_they_want_and_have_and_differences_are_named() -> None:
    async with AsyncLocalCluster() as cluster, console_of(cluster) as visitor:
        await cluster.create_topic("Orders", queues=4)
        nobody = await visitor.get("/api/groups/billing/members")
        async with member(cluster, "one", "paid"):
            await until(lambda: cluster.offsets("billing") is not None)
            alone = await members(visitor, 1)
            async with member(cluster, "two", "paid"):
                same = await members(visitor, 2)
            async with member(cluster, "three", "refused"):
                differing = await members(visitor, 2)
    assert (nobody["rows"], nobody["is_consistent"]) == ([], None)
    (row,) = alone["rows"]
    assert row["subscriptions"] == [{"topic": "Orders", "expression": "paid", "kind": "TAG"}]
    assert (row["language"], row["blocked"], row["trouble"]) == ("PYTHON", [], "")
    assert row["queues"] == [{"topic": "Orders", "broker": "broker-a", "queues": [0, 1, 2, 3]}]
    assert alone["is_consistent"] is None
    assert (same["is_consistent"], same["differences"]) == (True, [])
    assert differing["is_consistent"] is False
    texts = differing["differences"]
    assert [text.split(":")[0] for text in texts] == ["Orders paid (TAG)", "Orders refused (TAG)"]


async def test_a_group_is_moved_to_an_offset_of_every_queue_after_its_preview() -> None:
    async with AsyncLocalCluster() as cluster, console_of(cluster) as visitor:
        await visitor.log_in()
        await cluster.create_topic("Orders", queues=2)
        async with cluster.producer() as producer:
            for number in range(10):
                await producer.send(Message("Orders", str(number).encode()))
        async with member(cluster, "one", "*"):
            await until(lambda: sum(cluster.offsets("billing").values()) >= 10)
        wanted = {"topic": "Orders", "to": "offset", "offset": 3}
        plan = await visitor.get("/api/groups/billing/reset", **wanted)
        far = await visitor.get("/api/groups/billing/reset", topic="Orders", to="offset", offset=99)
        missing = await visitor.http.get("/api/groups/billing/reset", params={"topic": "Orders", "to": "offset"})
        done = await visitor.post("/api/groups/billing/reset", wanted)
        after = await visitor.get("/api/groups/billing")
        entry = (await visitor.get("/api/audit"))["rows"][0]
    assert [(move["committed"], move["target"], move["repeated"]) for move in plan["moves"]] == [(5, 3, 2), (5, 3, 2)]
    assert [move["target"] for move in far["moves"]] == [5, 5]
    assert "offset is missing" in missing.json()["error"]
    assert set(done["details"].values()) == {"3"}
    assert [row["consumer_offset"] for row in after["queues"] if row["topic"] == "Orders"] == [3, 3]
    assert (entry["action"], '"broker-a:0":5' in entry["before"].replace(" ", "")) == (
        "POST /api/groups/{group}/reset",
        True,
    )
