"""Alerts over the endpoints, and the webhook that is told."""

import asyncio
import contextlib
import json
import sqlite3
from pathlib import Path

import pytest

from skyrocket.client import Message
from skyrocket.console.alerts.measures import measures
from skyrocket.console.alerts.queue_progress import QueueProgress
from skyrocket.console.alerts.watcher import Watcher
from skyrocket.console.history import series as series_module
from skyrocket.console.history.database import FileTrouble
from skyrocket.testing.async_cluster import AsyncLocalCluster
from skyrocket.testing.clock import FakeClock
from tests.cluster.console.console_fixture import console_of
from tests.waiting import until


@pytest.mark.requirement("B018")
async def test_a_rule_fires_is_told_to_the_webhook_and_can_be_removed() -> None:
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
        found = await measures(parts.view, parts.series, QueueProgress(), parts.clock.now_ms())
        parts.watcher.tell(parts.watcher.look(found))
        await until(lambda: told)
        answer = await visitor.get("/api/alerts")
        ended = parts.watcher.look({"lag": {"billing": 0.0}})
        await visitor.change("DELETE", "/api/alerts/rules/any")
        after = await visitor.get("/api/alerts")
    assert [(each["name"], each["rule"]) for each in answer["firing"]] == [("billing", "any")]
    assert told[0]["alerts"][0]["is_firing"] is True  # type: ignore[index]
    assert "choose one of" in wrong["error"]
    assert wrong["phrase"]["template"] == "kind is {kind}: choose one of {names}"
    assert wrong["phrase"]["values"]["kind"] == "'mood'"
    assert [news.is_firing for news in ended] == [False]
    assert [each["is_firing"] for each in after["news"]] == [False, True]
    assert "any" not in {rule["id"] for rule in after["rules"]}


async def test_one_alert_is_muted_for_a_while_written_down_and_still_muted_after_a_restart(tmp_path: Path) -> None:
    mute = "/api/alerts/rules/group-lag/mute"
    async with AsyncLocalCluster() as cluster:
        async with console_of(cluster, database=tmp_path / "c.db") as visitor:
            refused = await visitor.post(mute, {"minutes": 60}, status=401)
            await visitor.log_in()
            done = await visitor.post(mute, {"minutes": 60, "name": "billing"})
            await visitor.post(mute, {"minutes": 1})
            again = await visitor.post(mute, {"minutes": 0})
            nonsense = [
                await visitor.post(mute, {"minutes": minutes, "name": name}, status=400)
                for minutes, name in ((-1, "*"), (10**9, "*"), (5, ""))
            ]
            await visitor.change("PUT", "/api/alerts/rules/group-lag", {"kind": "lag", "threshold": 7})
            written = (await visitor.get("/api/audit"))["rows"]
        async with console_of(cluster, database=tmp_path / "c.db") as visitor:
            found = await visitor.get("/api/alerts")
            muted = visitor.console.parts.watcher.muted_until_ms
            assert muted("group-lag", "billing") > 0
            assert muted("group-lag", "mails") == muted("group-late", "billing") == 0
            await visitor.log_in()
            await visitor.change("DELETE", "/api/alerts/rules/group-lag")
            assert (await visitor.get("/api/alerts"))["mutes"] == []
    assert "log in" in refused["error"]
    assert done["done"] == "billing of rule group-lag is muted for 60 minutes"
    assert again["done"] == "rule group-lag is told again"
    assert all("minutes is" in each["error"] or "name is empty" in each["error"] for each in nonsense)
    assert [(each["rule"], each["name"], each["by"]) for each in found["mutes"]] == [
        ("group-lag", "billing", "operator")
    ]
    first = next(each for each in written if "billing" in each["details"])
    assert (first["account"], first["target"], first["outcome"]) == ("operator", mute, "done")


async def test_mutes_of_earlier_releases_are_kept(tmp_path: Path) -> None:
    """They were a field of the rule."""
    rule = {"id": "any", "kind": "lag", "threshold": 1, "subject": "*", "minutes": 5, "severity": "warning"}
    async with AsyncLocalCluster() as cluster:
        async with console_of(cluster, database=tmp_path / "c.db"):
            pass
        with contextlib.closing(sqlite3.connect(tmp_path / "c.db")) as file, file:
            text = json.dumps([{**rule, "muted_until_ms": 1 << 50}, {**rule, "id": "told", "muted_until_ms": 0}])
            file.execute("INSERT OR REPLACE INTO kept VALUES ('alert rules', ?)", (text,))
        async with console_of(cluster, database=tmp_path / "c.db") as visitor:
            found = await visitor.get("/api/alerts")
    assert [each["id"] for each in found["rules"]] == ["any", "told"]
    assert [(each["rule"], each["name"]) for each in found["mutes"]] == [("any", "*")]


async def test_the_first_dead_letters_of_a_group_have_grown_from_nothing() -> None:
    async with AsyncLocalCluster() as cluster, cluster.producer() as producer:
        await cluster.create_topic("%DLQ%before", queues=1)
        await producer.send(Message("%DLQ%before", b"old"))
        async with console_of(cluster) as visitor:
            parts, recorder = visitor.console.parts, visitor.console.recorder
            await recorder.record()
            await cluster.create_topic("%DLQ%billing", queues=1)
            for body in (b"1", b"2"):
                await producer.send(Message("%DLQ%billing", body))
            for _ in range(2):
                parts.view.forget()
                await recorder.record()
            found = await measures(parts.view, parts.series, QueueProgress(), parts.clock.now_ms())
    assert found["dead_letters_per_hour"] == {"before": 0.0, "billing": 2.0}


async def test_brokers_that_went_with_their_name_server_are_down_and_told() -> None:
    cluster = AsyncLocalCluster()
    async with cluster, console_of(cluster) as visitor:
        parts = visitor.console.parts
        await parts.view.brokers.get()
        await cluster.stop()
        parts.view.forget()
        found = await measures(parts.view, parts.series, QueueProgress(), parts.clock.now_ms())
    assert found["broker_down"] == {"broker-a:0": 1.0}
    assert found["disk"] == {}, "of a broker that is down nobody knows how full its disk is"


async def test_name_servers_that_are_all_away_are_told_while_brokers_are_up() -> None:
    cluster = AsyncLocalCluster()
    async with cluster, console_of(cluster) as visitor:
        parts, address, clock = visitor.console.parts, cluster.name_server_address, FakeClock()
        watcher = Watcher(parts.view, parts.series, parts.database, clock)
        await cluster.create_topic("Orders", queues=1)

        async def look() -> list[tuple[str, str, bool]]:
            parts.view.forget()
            found = await measures(parts.view, parts.series, QueueProgress(), parts.clock.now_ms())
            clock.advance(seconds=61)
            return [(news.kind, news.name, news.is_firing) for news in watcher.look(found)]

        assert await look() == []
        await cluster._serving().stop()
        assert await look() == [], "it may be a restart"
        assert await look() == [("name_server_down", address, True)]
        assert await look() == [], "it was told"
        (server,) = (await visitor.get("/api/cluster"))["name_servers"]
        assert (server["address"], server["is_up"]) == (address, False)
        ended = []
        for _ in range(3):
            clock.advance(seconds=61)
            ended += watcher.look({"name_server_down": {address: 0.0}})
    assert [(news.kind, news.name, news.is_firing) for news in ended] == [("name_server_down", address, False)]


async def test_a_full_disk_ends_no_service_of_the_console(monkeypatch: pytest.MonkeyPatch) -> None:
    async with AsyncLocalCluster() as cluster, console_of(cluster) as visitor:
        await visitor.log_in()

        def full(*_: object) -> None:
            raise sqlite3.OperationalError("database or disk is full")

        monkeypatch.setattr(series_module, "_add", full)
        with pytest.raises(FileTrouble, match="database or disk is full"):
            await visitor.console.recorder.record()
        recording = asyncio.create_task(visitor.console.recorder.run())
        await asyncio.sleep(0.2)
        assert not recording.done()
        recording.cancel()


async def test_a_rule_that_nothing_could_end_is_refused() -> None:
    async with AsyncLocalCluster() as cluster, console_of(cluster) as visitor:
        await visitor.log_in()
        for threshold in (0, -5):
            wanted = {"kind": "lag", "threshold": threshold}
            refused = await visitor.change("PUT", "/api/alerts/rules/any", wanted, status=400)
            assert refused["error"] == f"threshold is {threshold:.1f}: it must be above 0"
