"""The health strip has what the doctor finds, the first page what alerts have told; lists say what waits how long."""

import asyncio
from dataclasses import replace

from skyrocket.client import Message
from skyrocket.console.alerts.measures import measures
from skyrocket.console.alerts.queue_progress import QueueProgress
from skyrocket.console.alerts.rules import Rule
from skyrocket.testing.async_cluster import AsyncLocalCluster
from tests.cluster.console.console_fixture import console_of
from tests.waiting import until


async def test_the_strip_shows_what_the_doctor_finds_and_a_change_makes_it_look_again() -> None:
    async with AsyncLocalCluster(brokers=2) as cluster, console_of(cluster) as visitor:
        await cluster.create_topic("Orders")
        await visitor.log_in()
        await visitor.change("PUT", "/api/topics/Orders", {"write_queues": 16})
        before = await visitor.get("/api/health")
        checkup = visitor.console.parts.view.checkup
        await until(lambda: checkup.examined_ms is not None, seconds=30)
        after = await visitor.get("/api/health")
        await visitor.get("/api/overview")
    assert before["examined_ms"] is None
    found = {(each["code"], each["name"]): each for each in after["findings"]}
    assert found["queues-differ", "Orders"]["severity"] == "critical"
    assert found["queues-differ", "Orders"]["subject"] == "topic"
    phrase = found["queues-differ", "Orders"]["says_phrase"]
    assert phrase["template"] == "{written}, but {read} at {place}"
    assert phrase["values"]["written"] == {"template": "{n} write queues", "values": {"n": "16"}}
    assert after["critical"] >= 1


async def test_only_those_who_are_logged_in_read_of_accounts_in_the_strip() -> None:
    async with AsyncLocalCluster() as cluster, console_of(cluster) as visitor:
        checkup = visitor.console.parts.view.checkup
        await visitor.get("/api/health")
        await until(lambda: checkup.examined_ms is not None, seconds=30)
        known = checkup.found[:1]
        assert known  # topics are created by the first send
        checkup.found = [replace(known[0], code="default-password")]
        anonymous = await visitor.get("/api/health")
        await visitor.log_in()
        operator = await visitor.get("/api/health")
    assert [each["code"] for each in anonymous["findings"]] == []
    assert [each["code"] for each in operator["findings"]] == ["default-password"]


async def test_alerts_that_began_lately_are_on_the_first_page() -> None:
    async with AsyncLocalCluster() as cluster:
        await cluster.create_topic("Orders")
        await cluster.create_group("billing")
        async with console_of(cluster) as visitor:
            parts = visitor.console.parts
            await parts.watcher.keep([Rule("disk", "disk", 0.0, minutes=0)])
            found = await measures(parts.view, parts.series, QueueProgress(), parts.clock.now_ms())
            parts.watcher.look(found)
            answer = await visitor.get("/api/overview")
    assert answer["firing"] == 1
    assert [(each["kind"], each["is_firing"]) for each in answer["recent_alerts"]] == [("disk", True)]


async def test_lists_say_how_old_the_oldest_message_is_what_is_tried_again_and_whether_lag_grows() -> None:
    async with AsyncLocalCluster() as cluster:
        await cluster.create_topic("Orders")
        await cluster.create_topic("Empty")
        await cluster.create_group("billing")
        async with cluster.producer() as producer, console_of(cluster) as visitor:
            await producer.send(Message("Orders", b"one"))
            page = await visitor.until("/api/topics", lambda answer: any(row["oldest_ms"] for row in answer["rows"]))
            newest = page["rows"]
            async with cluster.admin() as admin:
                for queue in await admin.queues("Orders"):
                    await admin.set_offset("billing", queue, 0)
            visitor.console.parts.view.forget()
            await visitor.get("/api/groups")
            (row,) = (await visitor.get("/api/groups"))["rows"]
    by_name = {row["name"]: row for row in newest}
    assert by_name["Orders"]["oldest_ms"] == by_name["Orders"]["newest_ms"]
    assert by_name["Empty"]["oldest_ms"] is None
    assert (row["lag"], row["retries"], row["lag_change"]) == (1, 0, 1)


async def test_places_tell_how_long_messages_are_kept_and_where_prometheus_looks() -> None:
    settings = {"fileReservedTime": "48", "metricsExporterType": "PROM", "metricsPromExporterPort": "0"}
    async with AsyncLocalCluster(settings=settings) as cluster, console_of(cluster) as visitor:
        places = await visitor.get("/api/places")
        metrics = await visitor.get("/api/metrics-places")
    assert places["retention_hours"] == [48]
    assert metrics["rows"] == [{"broker": "broker-a:0", "exporter": "PROM", "address": ""}]


async def test_a_group_that_commits_without_a_client_is_a_pipeline_with_its_rates_and_offsets() -> None:
    async with AsyncLocalCluster() as cluster, console_of(cluster) as visitor, cluster.admin() as admin:
        await cluster.create_topic("Orders", queues=1)
        await cluster.create_group("report")
        (queue,) = await admin.queues("Orders")
        async with cluster.producer() as producer:
            for _ in range(20):
                await producer.send(Message("Orders", b"x"))
        rows: list[dict[str, object]] = []
        for offset in range(1, 20):  # a batch each time
            await admin.set_offset("report", queue, offset)
            visitor.console.parts.view.forget()
            rows = (await visitor.get("/api/pipelines"))["rows"]
            if rows:
                break
            await asyncio.sleep(0.3)  # two looks within a second are one
    (row,) = rows
    assert (row["group"], row["topics"], row["offset"], row["lag"]) == ("report", ["Orders"], offset, 20 - offset)
    assert row["in_per_second"] is not None
