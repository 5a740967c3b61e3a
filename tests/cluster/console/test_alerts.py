"""Alerts over the endpoints, and the webhook that is told."""

import asyncio
import json

import pytest

from skyrocket.client import Message
from skyrocket.console.alerts.measures import measures
from skyrocket.testing.async_cluster import AsyncLocalCluster
from tests.cluster.console.console_fixture import console_of
from tests.waiting import until


@pytest.mark.requirement("B018")
async def test_a_rule_fires_is_told_to_the_webhook_and_is_not_told_while_it_is_muted() -> None:
    told: list[dict[str, object]] = []

    async def hook(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        head = (await reader.readuntil(b"\r\n\r\n")).decode().lower()
        size = int(head.split("content-length:")[1].split()[0])
        told.append(json.loads(await reader.readexactly(size)))
        writer.write(b"HTTP/1.1 200 OK\r\nContent-Length: 0\r\nConnection: close\r\n\r\n")
        writer.close()

    server = await asyncio.start_server(hook, "127.0.0.1", 0)
    port = server.sockets[0].getsockname()[1]
    async with (
        server,
        AsyncLocalCluster() as cluster,
        console_of(cluster, webhook=f"http://127.0.0.1:{port}/") as visitor,
    ):
        await visitor.log_in()
        await cluster.create_topic("Orders", queues=1)
        await cluster.create_group("billing")
        async with cluster.producer() as producer:
            await producer.send(Message("Orders", b"1"))
        await visitor.post("/api/groups/billing/reset", {"topic": "Orders", "to": "earliest"})
        await visitor.change("PUT", "/api/alerts/rules/any", {"kind": "lag", "threshold": 1, "minutes": 0})
        wrong = await visitor.change("PUT", "/api/alerts/rules/x", {"kind": "mood", "threshold": 1}, status=400)
        parts = visitor.console.parts
        parts.view.forget()
        found = await measures(parts.view, parts.series, parts.clock.now_ms())
        parts.watcher.tell(parts.watcher.look(found))
        await until(lambda: told)
        answer = await visitor.get("/api/alerts")
        await visitor.post("/api/alerts/rules/any/mute", {"minutes": 60})
        ended = parts.watcher.look({"lag": {"billing": 0.0}})
        await visitor.change("DELETE", "/api/alerts/rules/any")
        after = await visitor.get("/api/alerts")
    assert [(each["name"], each["rule"]) for each in answer["firing"]] == [("billing", "any")]
    assert told[0]["alerts"][0]["is_firing"] is True  # type: ignore[index]
    assert "choose one of" in wrong["error"]
    assert ended == []
    assert [each["is_firing"] for each in after["news"]] == [False, True]
    assert "any" not in {rule["id"] for rule in after["rules"]}
