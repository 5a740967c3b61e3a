"""Topics and messages over the JSON endpoints: create, send, find, follow, change, delete."""

import asyncio
import base64
import contextlib
import json
from collections.abc import AsyncIterator

import pytest

from skyrocket.client import Message
from skyrocket.client.core.errors import NotFound
from skyrocket.console.cluster.message_search import MessageFilter, newest
from skyrocket.console.live.tail import TailWanted, tail
from skyrocket.model.message_queue import MessageQueue
from skyrocket.testing.async_cluster import AsyncLocalCluster
from tests.cluster.console.console_fixture import Visitor, console_of

INJECTION = '<img src=x onerror="alert(1)"><script>alert(2)</script>'


@contextlib.asynccontextmanager
async def operator(*, brokers: int = 1) -> AsyncIterator[tuple[AsyncLocalCluster, Visitor]]:
    async with AsyncLocalCluster(brokers=brokers) as cluster, console_of(cluster) as visitor:
        await visitor.log_in()
        yield cluster, visitor


@pytest.mark.requirement("B009", "D022")
async def test_a_topic_is_created_changed_with_a_preview_and_deleted_with_its_impact() -> None:
    async with operator(brokers=2) as (_, visitor):
        await visitor.post("/api/topics", {"name": "Orders", "queues": 4, "kind": "FIFO"})
        again = await visitor.post("/api/topics", {"name": "Orders"}, status=400)
        page = await visitor.get("/api/topics", search="ord")
        preview = await visitor.post("/api/topics/Orders/preview", {"write_queues": 6})
        await visitor.change("PUT", "/api/topics/Orders", {"write_queues": 6})
        after = await visitor.get("/api/topics/Orders")
        impact = await visitor.get("/api/topics/Orders/impact")
        await visitor.change("DELETE", "/api/topics/Orders")
        gone = await visitor.http.get("/api/topics/Orders")
        entries = (await visitor.get("/api/audit"))["rows"]
    assert "there already" in again["error"]
    assert [(row["name"], row["kind"], row["read_queues"]) for row in page["rows"]] == [("Orders", "FIFO", 8)]
    assert {(each["field"], each["before"], each["after"]) for each in preview["differences"]} == {
        ("write_queues", "4", "6")
    }
    assert {(config["read_queues"], config["write_queues"]) for config in after["configs"]} == {(4, 6)}
    assert impact["messages"] == 0
    assert gone.status_code == 404
    assert [entry["action"].split()[0] for entry in entries] == ["DELETE", "PUT", "POST", "POST", "POST"]
    assert entries[0]["account"] == "operator"
    assert json.loads(entries[1]["before"]) == {"broker-a write_queues": "4", "broker-b write_queues": "4"}


async def test_a_message_is_sent_and_found_by_key_id_tag_text_and_property_and_shown_as_text() -> None:
    async with operator() as (cluster, visitor):
        await cluster.create_topic("Orders", queues=2)
        body = json.dumps({"note": INJECTION})
        sent = await visitor.post(
            "/api/topics/Orders/messages",
            {"body": body, "tags": "paid", "keys": "o-1 o-2", "properties": {"city": INJECTION}},
        )
        await visitor.post("/api/topics/Orders/messages", {"body_base64": base64.b64encode(b"\x00\xff").decode()})
        bad = await visitor.post("/api/topics/Orders/messages", {"body_base64": "§"}, status=400)
        by_key = await visitor.get("/api/topics/Orders/messages", key="o-2")
        newest_first = await visitor.get("/api/topics/Orders/messages")
        by_tag = await visitor.get("/api/topics/Orders/messages", tags="paid")
        by_text = await visitor.get("/api/topics/Orders/messages", contains="onerror", property_name="city")
        page = await visitor.get(f"/api/topics/Orders/messages/{sent['message_id']}")
        anywhere = await visitor.get("/api/messages", id="o-1")
        copy = await visitor.post(f"/api/topics/Orders/messages/{sent['message_id']}/again")
        copied = await visitor.get(f"/api/topics/Orders/messages/{copy['message_id']}")
    wanted = [sent["message_id"]]
    for answer in (by_key, by_tag, by_text, anywhere):
        assert [row["message_id"] for row in answer["rows"]] == wanted
    assert [row["preview"] for row in newest_first["rows"]] == ["(2 bytes)", body]
    assert "base64" in bad["error"]
    assert base64.b64decode(page["message"]["body"]).decode() == body
    assert page["message"]["properties"]["city"] == INJECTION
    assert page["message"]["own_properties"] == {"city": INJECTION}
    assert copied["message"]["properties"]["city"] == INJECTION
    assert (copied["message"]["keys"], copied["message"]["tags"]) == (["o-1", "o-2"], "paid")


async def test_only_the_newest_of_many_messages_are_shown_and_a_span_of_time_can_be_chosen() -> None:
    async with operator() as (cluster, visitor):
        await cluster.create_topic("Orders", queues=2)
        async with cluster.producer() as producer:
            for number in range(30):
                await producer.send(Message("Orders", str(number).encode()))
            await cluster.advance(seconds=60)
            middle_ms = cluster.now_ms
            await cluster.advance(seconds=60)
            await producer.send(Message("Orders", b"late"))
        shown = await visitor.get("/api/topics/Orders/messages", most=3)
        after = await visitor.get("/api/topics/Orders/messages", from_ms=middle_ms)
        before = await visitor.get("/api/topics/Orders/messages", to_ms=middle_ms, most=200)
        admin = visitor.console.parts.accounts.own.admin
        nothing = await newest(
            admin, "Orders", MessageFilter(contains="never"), from_ms=None, to_ms=None, queue=None, most=5
        )
    assert [row["preview"] for row in shown["rows"]] == ["late", "29", "28"]
    assert not shown["is_complete"]
    assert [row["preview"] for row in after["rows"]] == ["late"]
    assert len(before["rows"]) == 30
    assert (nothing.messages, nothing.read, nothing.is_complete) == ([], 31, True)


async def test_a_topic_is_followed_live_and_no_faster_than_asked_for() -> None:
    async with operator() as (cluster, visitor):
        await cluster.create_topic("Orders", queues=1)
        parts = visitor.console.parts
        events = tail(
            parts.accounts.own.admin,
            "Orders",
            TailWanted(per_second=4),
            parts.streams.admit("::1"),
            parts.decoder,
            _may,
        )
        assert (await anext(events)).startswith(b"event: begun")
        async with cluster.producer() as producer:
            for number in range(5):
                await producer.send(Message("Orders", str(number).encode()))
        seen: list[bytes] = []
        while b"event: skipped" not in b"".join(seen):
            seen.append(await asyncio.wait_for(anext(events), 30))
        await events.aclose()
    shown = [json.loads(each.split(b"data: ")[1])["preview"] for each in seen if each.startswith(b"event: message")]
    assert shown == ["3", "4"]
    assert not parts.streams.open


async def test_a_tail_says_its_trouble_and_when_that_is_over(monkeypatch: pytest.MonkeyPatch) -> None:
    async def fail(_: MessageQueue) -> int:
        raise NotFound("the broker is away")

    async with operator() as (cluster, visitor):
        await cluster.create_topic("Orders", queues=1)
        parts = visitor.console.parts
        admin = parts.accounts.own.admin
        events = tail(admin, "Orders", TailWanted(), parts.streams.admit("::1"), parts.decoder, _may)
        seen = [await anext(events)]
        with monkeypatch.context() as away:
            away.setattr(admin, "max_offset", fail)
            seen.append(await anext(events))
        seen.append(await anext(events))
        await events.aclose()
    assert [each.split(b"\n")[0] for each in seen] == [b"event: begun", b"event: trouble", b"event: begun"]


async def test_lists_are_cut_into_pages_and_wrong_wishes_name_the_field() -> None:
    async with operator() as (cluster, visitor):
        for number in range(5):
            await cluster.create_topic(f"T{number}")
        visitor.console.parts.view.forget()
        page = await visitor.get("/api/topics", size=2, page=2, sort="-name")
        beyond = await visitor.get("/api/topics", size=2, page=99, sort="-name")
        wrong = await visitor.http.get("/api/topics", params={"sort": "colour"})
        unknown = await visitor.http.get("/api/topics", params={"colour": "red"})
        no_json = await visitor.http.post(
            "/api/topics", content=b"{", headers={"X-Skyrocket-Csrf": (await visitor.get("/api/session"))["csrf"]}
        )
    assert [row["name"] for row in page["rows"]] == ["T2", "T1"]
    assert [row["name"] for row in beyond["rows"]] == ["T0"], "the last page"
    assert page["total"] == 5
    assert "choose one of name" in wrong.json()["error"]
    assert "colour is not known here" in unknown.json()["error"]
    assert (no_json.status_code, "not JSON" in no_json.json()["error"]) == (400, True)


def _may() -> None:
    """Whoever follows may go on."""
