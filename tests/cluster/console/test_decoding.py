"""Bodies by the schemas of their topics: in a message, in lists, in the tail and among dead letters."""

import asyncio
import base64
import json
import struct
from pathlib import Path
from typing import Any

import pytest

from skyrocket.client import Message, PushConsumerSettings
from skyrocket.console.live.tail import TailWanted, tail
from skyrocket.format.compression import CompressionType
from skyrocket.schemas.catalog import Catalog
from skyrocket.testing.async_cluster import AsyncLocalCluster
from tests.cluster.console.console_fixture import console_of
from tests.schema_registry import schema_registry
from tests.unit.schemas.test_trees import avro
from tests.waiting import until

ORDER: dict[str, Any] = {
    "type": "record",
    "name": "Order",
    "fields": [{"name": "id", "type": "string"}, {"name": "items", "type": {"type": "array", "items": "string"}}],
}
VALUE = {"id": "o-1", "items": ["tea", "cup"]}
TEXT = """
[[schema]]
topics = "Orders"
file = "order.avsc"
[[schema]]
topics = "Payments"
file = "shop.proto"
message = "shop.Payment"
[[schema]]
topics = "*"
registry = "REGISTRY"
"""
PROTO = """syntax = "proto3"; package shop; message Payment { int32 cents = 1; string note = 2; }"""


def catalog(folder: Path, registry: str) -> Catalog:
    (folder / "order.avsc").write_text(json.dumps(ORDER))
    (folder / "shop.proto").write_text(PROTO)
    (folder / "schemas.toml").write_text(TEXT.replace("REGISTRY", registry))
    return Catalog.read(folder / "schemas.toml")


@pytest.mark.requirement("B009", "D022")
async def test_a_message_is_shown_as_its_schema_says_or_with_the_reason(tmp_path: Path) -> None:
    answers = {"/schemas/ids/7": {"schema": json.dumps(ORDER)}}
    with schema_registry(answers) as registry:
        async with AsyncLocalCluster() as cluster, console_of(cluster, schemas=catalog(tmp_path, registry)) as visitor:
            await visitor.log_in()

            async def page(topic: str, body: bytes) -> Any:
                sent = await visitor.post(
                    f"/api/topics/{topic}/messages", {"body_base64": base64.b64encode(body).decode()}
                )
                return await visitor.get(f"/api/topics/{topic}/messages/{sent['message_id']}")

            for topic in ("Orders", "Payments", "Refunds"):
                await cluster.create_topic(topic)
            of_file = await page("Orders", avro(ORDER, VALUE))
            wrong = await page("Orders", b"\x99\x99")
            payment = await page("Payments", b"\x08\x0c\x12\x03tea")
            framed = await page("Refunds", struct.pack(">bI", 0, 7) + avro(ORDER, VALUE))
            unknown = await page("Refunds", struct.pack(">bI", 0, 8) + b"x")
            plain = await page("Refunds", b"plain")
            listed = await visitor.get("/api/topics/Orders/messages")
            document = await visitor.get("/api/openapi.json")
    assert of_file["decoded"] == {"format": "Avro", "schema": "order.avsc", "value": VALUE, "trouble": ""}
    assert (wrong["decoded"]["value"], "no datum of the Avro" in wrong["decoded"]["trouble"]) == (None, True)
    assert base64.b64decode(wrong["message"]["body"]) == b"\x99\x99"
    assert payment["decoded"]["value"] == {"cents": 12, "note": "tea"}
    assert payment["decoded"]["schema"] == "shop.proto shop.Payment"
    assert (framed["decoded"]["value"], framed["decoded"]["schema"]) == (VALUE, f"{registry}, number 7")
    assert "404" in unknown["decoded"]["trouble"]
    assert plain["decoded"] is None
    assert [row["preview"] for row in listed["rows"]] == ["(2 bytes)", '{"id":"o-1","items":["tea","cup"]}']
    assert "Decoded" in document["components"]["schemas"]


async def test_the_tail_and_dead_letters_are_decoded_too(tmp_path: Path) -> None:
    async with (
        AsyncLocalCluster() as cluster,
        console_of(cluster, schemas=catalog(tmp_path, "http://127.0.0.1:1")) as visitor,
    ):
        await cluster.create_topic("Orders", queues=1)
        await cluster.create_group("billing", retries=0)
        parts = visitor.console.parts
        events = tail(parts.accounts.own.admin, "Orders", TailWanted(), parts.streams.admit("::1"), parts.decoder, _may)
        await anext(events)
        consumer = cluster.push_consumer("billing", settings=PushConsumerSettings(max_reconsume_times=0))
        consumer.subscribe("Orders", _refuse)
        async with consumer, cluster.producer() as producer:
            await producer.send(Message("Orders", avro(ORDER, VALUE)))
            while not (seen := await asyncio.wait_for(anext(events), 30)).startswith(b"event: message"):
                pass
            await until(lambda: cluster.dead_letters("billing"))
            (row,) = (await visitor.get("/api/dead-letters/billing"))["rows"]
            letter = await visitor.get(f"/api/dead-letters/billing/messages/{row['message_id']}")
        await events.aclose()
    shown = json.loads(seen.split(b"data: ")[1])["preview"]
    assert json.loads(shown) == json.loads(row["preview"]) == letter["decoded"]["value"] == VALUE


async def _refuse(_: object) -> None:
    await asyncio.sleep(0)
    raise ValueError("no")


async def test_a_compressed_body_is_shown_unpacked_and_said_to_be() -> None:
    async with AsyncLocalCluster() as cluster, console_of(cluster) as visitor:
        await cluster.create_topic("Orders")
        async with cluster.producer() as producer:
            sent = await producer.send(Message("Orders", b"tea " * 5000))
        page = await visitor.get(f"/api/topics/Orders/messages/{sent.message_id}")
    message = page["message"]
    assert message["compression"] == CompressionType.ZLIB.name.lower()
    assert message["body_bytes"] == 20_000 > 10 * message["stored_body_bytes"]
    assert base64.b64decode(message["body"]) == b"tea " * 5000


def _may() -> None:
    """Whoever follows may go on."""
