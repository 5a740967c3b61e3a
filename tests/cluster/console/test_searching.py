"""Messages found by SQL, offset and offset id; and no address that a visitor names is asked."""

import asyncio
import json
from collections.abc import AsyncGenerator

import pytest

from skyrocket.client import Message, MessageQueue
from skyrocket.console.live.tail import TailWanted, tail
from skyrocket.testing.async_cluster import AsyncLocalCluster
from tests.cluster.console.console_fixture import console_of


@pytest.mark.requirement("B009", "D022")
async def test_messages_are_found_by_sql_by_offset_and_by_offset_id_without_a_topic() -> None:
    async with AsyncLocalCluster() as cluster, console_of(cluster) as visitor:
        await cluster.create_topic("Orders", queues=2)
        async with cluster.producer() as producer:
            for number in range(6):
                queue = MessageQueue("Orders", "broker-a", number % 2)
                message = Message("Orders", str(number).encode(), "paid", properties={"price": str(number)})
                sent = await producer.send(message, queue=queue)
        base = "/api/topics/Orders/messages"
        dear = await visitor.get(base, sql="price > 3 AND TAGS = 'paid'")
        second = await visitor.get(base, offset=1)
        one = await visitor.get(base, offset=1, broker="broker-a", queue=1)
        none = await visitor.get(base, offset=99)
        bad = await visitor.http.get(base, params={"sql": "price >"})
        anywhere = await visitor.get("/api/messages", id=sent.offset_message_id)
        page = await visitor.get(f"{base}/{sent.offset_message_id}")
    assert [row["preview"] for row in dear["rows"]] == ["5", "4"]
    assert [row["preview"] for row in second["rows"]] == ["3", "2"]
    assert [row["preview"] for row in one["rows"]] == ["3"]
    assert (none["rows"], none["is_complete"]) == ([], True)
    assert (bad.status_code, "the SQL filter cannot be read" in bad.json()["error"]) == (400, True)
    assert [row["preview"] for row in anywhere["rows"]] == ["5"]
    assert page["message"]["message_id"] == sent.message_id


async def test_the_tail_takes_sql_and_tells_what_is_wrong_with_it() -> None:
    async with AsyncLocalCluster() as cluster, console_of(cluster) as visitor:
        await cluster.create_topic("Orders", queues=1)
        parts = visitor.console.parts

        def follow(sql: str) -> AsyncGenerator[bytes, None]:
            return tail(
                parts.accounts.own.admin, "Orders", TailWanted(sql=sql), parts.streams.admit("::1"), parts.decoder, _may
            )

        refused = [each async for each in follow("price >")]
        events = follow("price > 3")
        await anext(events)
        async with cluster.producer() as producer:
            for price in ("2", "5"):
                await producer.send(Message("Orders", price.encode(), properties={"price": price}))
        while not (seen := await asyncio.wait_for(anext(events), 30)).startswith(b"event: message"):
            pass
        await events.aclose()
    (told,) = refused
    assert told.startswith(b"event: trouble")
    assert b"the SQL filter cannot be read" in told
    assert json.loads(seen.split(b"data: ")[1])["preview"] == "5"


async def test_an_id_that_names_an_address_outside_the_cluster_asks_nobody_there() -> None:
    asked: list[object] = []

    async def somebody(_: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        asked.append(writer.get_extra_info("peername"))
        writer.close()

    server = await asyncio.start_server(somebody, "127.0.0.1", 0)
    port = server.sockets[0].getsockname()[1]
    message_id = f"7F000001{port:08X}{0:016X}"
    async with server, AsyncLocalCluster() as cluster, console_of(cluster) as visitor:
        await cluster.create_topic("Orders")
        page = await visitor.http.get(f"/api/topics/Orders/messages/{message_id}")
        anywhere = await visitor.get("/api/messages", id=message_id)
    assert (page.status_code, "no offset id of a broker of this cluster" in page.json()["error"]) == (404, True)
    assert anywhere["rows"] == []
    assert asked == []


def _may() -> None:
    """Whoever follows may go on."""
