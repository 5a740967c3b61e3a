"""Groups, dead letters, transactions, timers, settings and accounts over the JSON endpoints."""

import asyncio
import io
import time
from functools import partial
from urllib.parse import quote

import pyarrow.parquet
import pytest

from skyrocket.client import Acl, Message, PushConsumerSettings, TransactionProducer, TransactionState
from skyrocket.client.core.message import ReceivedMessage
from skyrocket.testing.async_cluster import AsyncLocalCluster
from tests.cluster.console.console_fixture import Visitor, console_of
from tests.waiting import until

ROOT = Acl("rocketmq", "12345678")
WITH_USERS = {
    "authenticationEnabled": "true",
    "authorizationEnabled": "true",
    "initAuthenticationUser": '{"username":"rocketmq","password":"12345678"}',
    "innerClientAuthenticationCredentials": '{"accessKey":"rocketmq","secretKey":"12345678"}',
}


async def test_a_group_is_reset_with_a_preview_of_what_it_skips_and_repeats() -> None:
    async with AsyncLocalCluster() as cluster, console_of(cluster) as visitor:
        await visitor.log_in()
        await cluster.create_topic("Orders", queues=2)
        async with cluster.producer() as producer:
            for number in range(10):
                await producer.send(Message("Orders", str(number).encode()))
        got = await _consumed(cluster, "billing", 10)
        page = await visitor.get("/api/groups/billing")
        plan = await visitor.get("/api/groups/billing/reset", topic="Orders", to="earliest")
        untold = await visitor.http.get("/api/groups/billing/reset", params={"topic": "Orders", "to": "time"})
        await visitor.post("/api/groups/billing/reset", {"topic": "Orders", "to": "earliest"})
        lag = (await visitor.get("/api/groups", search="bill"))["rows"][0]
    assert len(got) == 10
    assert sum(row["lag"] for row in page["queues"]) == 0
    assert (plan["skipped"], plan["repeated"]) == (0, 10)
    assert "at_ms is missing" in untold.json()["error"]
    assert (lag["lag"], lag["state"]) == (10, "stopped")


async def _consumed(cluster: AsyncLocalCluster, group: str, count: int) -> list[ReceivedMessage]:
    got: list[ReceivedMessage] = []
    consumer = cluster.push_consumer(group)

    @consumer.on("Orders")
    async def take(message: ReceivedMessage) -> None:
        got.append(message)

    async with consumer:
        await until(lambda: len(got) == count)
        await until(lambda: sum(cluster.offsets(group).values()) >= count)
    return got


async def test_members_are_shown_with_their_subscription_and_queues() -> None:
    async with AsyncLocalCluster() as cluster, console_of(cluster) as visitor:
        await cluster.create_topic("Orders", queues=2)
        consumer = cluster.push_consumer("billing")

        @consumer.on("Orders", tags="paid")
        async def take(_: ReceivedMessage) -> None: ...

        async with consumer, cluster.producer() as producer:
            await producer.send(Message("Orders", b"x", tags="paid"))
            await until(lambda: sum(cluster.offsets("billing").values()) >= 1)
            page = await visitor.get("/api/groups/billing")
            (client,) = page["clients"]
            member = await visitor.get(f"/api/groups/billing/clients/{quote(client['client_id'])}")
            everybody = await visitor.get("/api/clients")
    assert page["row"]["state"] == "online"
    assert {"topic": "Orders", "expression": "paid", "kind": "TAG"} in page["subscriptions"]
    assert {queue["queue"] for queue in member["queues"] if queue["topic"] == "Orders"} == {0, 1}
    assert {row["role"] for row in everybody["rows"]} == {"producer", "consumer"}
    assert all(0 < row["connected_ms"] <= cluster.now_ms for row in everybody["rows"])
    assert not any(row["is_outdated"] for row in (*everybody["rows"], *everybody["languages"]))


async def test_a_dead_letter_shows_its_cause_and_is_sent_again() -> None:
    async with AsyncLocalCluster() as cluster, console_of(cluster) as visitor:
        await visitor.log_in()
        await cluster.create_topic("Orders", queues=1)
        await cluster.create_group("billing", retries=0)
        calls: list[str] = []
        consumer = cluster.push_consumer("billing", settings=PushConsumerSettings(max_reconsume_times=0))

        @consumer.on("Orders")
        async def fail(message: ReceivedMessage) -> None:
            calls.append(message.body.decode())
            if len(calls) == 1:
                raise ValueError("<b>no stock</b>")

        async with consumer:
            async with cluster.producer() as producer:
                await producer.send(Message("Orders", b"o-1", keys="k-1"))
            page = await visitor.until("/api/dead-letters/billing", lambda page: page["rows"], key="k-1")
            (row,) = page["rows"]
            groups = await visitor.until(
                "/api/dead-letters", lambda page: any(each["oldest_ms"] is not None for each in page["rows"])
            )
            table = await visitor.http.get("/api/dead-letters/billing/export")
            other = await visitor.http.get("/api/dead-letters/billing/export", params={"contains": "o-2"})
            await visitor.post("/api/dead-letters/billing/resend", {"message_ids": [row["message_id"]]})
            await until(lambda: len(calls) == 2)
            empty = await visitor.post("/api/dead-letters/billing/resend", {"message_ids": []}, status=400)
    assert [(each["group"], each["messages"]) for each in groups["rows"]] == [("billing", 1)]
    assert (row["error"], row["error_message"], row["topic"]) == ("ValueError", "<b>no stock</b>", "Orders")
    assert groups["rows"][0]["oldest_ms"] == row["died_ms"]
    assert ("k-1" in table.text, "k-1" in other.text) == (True, False)
    assert "empty" in empty["error"]


async def test_dead_letters_are_sent_again_at_a_rate_exported_as_parquet_and_purged() -> None:
    async with AsyncLocalCluster() as cluster, console_of(cluster) as visitor:
        await visitor.log_in()
        await cluster.create_topic("Orders", queues=1)
        await cluster.create_group("billing", retries=0)
        consumer = cluster.push_consumer("billing", settings=PushConsumerSettings(max_reconsume_times=0))

        @consumer.on("Orders")
        async def fail(_: ReceivedMessage) -> None:
            raise ValueError("no stock")

        async with consumer:
            async with cluster.producer() as producer:
                for number in range(3):
                    await producer.send(Message("Orders", b"x" * 1000, keys=f"k-{number}"))
            # The broker has them before the name servers know their topic.
            page = await visitor.until("/api/dead-letters/billing", lambda page: len(page["rows"]) == 3)
        ids = [row["message_id"] for row in page["rows"]]
        slow = await visitor.post(
            "/api/dead-letters/billing/resend", {"message_ids": ids, "per_second": 0.01}, status=400
        )
        began = time.monotonic()
        again = {"message_ids": ids, "per_second": 4, "to_topic": True}
        await visitor.post("/api/dead-letters/billing/resend", again)
        took = time.monotonic() - began
        file = await visitor.http.get("/api/dead-letters/billing/export", params={"format": "parquet"})
        table = pyarrow.parquet.read_table(io.BytesIO(file.content))
        gone = await visitor.post("/api/dead-letters/billing/purge", {})
        left = await visitor.get("/api/dead-letters/billing")
        # Answers leave before the queues are brought up to date.
        await visitor.until("/api/topics/Orders", lambda page: page["messages"] >= 6)
        orders = await visitor.get("/api/topics/Orders")
    assert "300 s" in slow["error"]
    assert took >= 0.5, "three messages, four a second"
    assert sorted(table["keys"].to_pylist()) == [["k-0"], ["k-1"], ["k-2"]], "they failed side by side"
    assert {len(body) for body in table["body"].to_pylist()} == {1000}
    assert gone["done"] == "3 dead letters of billing are gone"
    assert left["rows"] == []
    assert orders["messages"] == 6, "what was sent again stays"


async def test_a_half_message_is_committed_and_a_timer_taken_back() -> None:
    async with AsyncLocalCluster(settings={"recallMessageEnable": "true"}) as cluster, console_of(cluster) as visitor:
        await visitor.log_in()
        await cluster.create_topic("Orders", queues=1)
        await cluster.create_topic("Payments", queues=1)
        sellers = TransactionProducer("Sellers", client=cluster.client_settings)
        sellers.checker(lambda _: TransactionState.UNKNOWN)
        async with sellers, cluster.producer() as producer:
            async with sellers.transaction(Message("Payments", b"half", keys="p-1")) as transaction:
                transaction.leave_open()
            await producer.send(Message("Orders", b"later", keys="k-9", delay=3600))
            (half,) = (await visitor.get("/api/transactions"))["rows"]
            place = {name: half[name] for name in ("broker", "transaction_id", "half_offset")}
            await visitor.post("/api/transactions/end", {**place, "outcome": "commit"})
            late = await visitor.post("/api/transactions/end", {**place, "outcome": "rollback"}, status=400)
            committed = await visitor.get("/api/topics/Payments/messages")
            while not (answer := await visitor.get("/api/timers"))["rows"]:
                await asyncio.sleep(0.01)
            (timer,) = answer["rows"]
            await visitor.post("/api/timers/recall", {"message_id": timer["message_id"]})
            while (await visitor.get("/api/timers"))["rows"]:  # the broker has it off its wheel soon
                await asyncio.sleep(0.01)
    assert (half["topic"], half["keys"], half["producer_group"]) == ("Payments", ["p-1"], "Sellers")
    assert [row["preview"] for row in committed["rows"]] == ["half"]
    assert "ended meanwhile" in late["error"]
    assert (timer["topic"], timer["keys"]) == ("Orders", ["k-9"])
    assert sum(step["messages"] for step in answer["histogram"]) == 1


async def test_a_setting_is_changed_with_a_preview_and_a_refusal_names_the_cause() -> None:
    async with AsyncLocalCluster() as cluster, console_of(cluster) as visitor:
        await visitor.log_in()
        (broker,) = (await visitor.get("/api/cluster"))["brokers"]
        path = f"/api/brokers/{broker['address']}/settings"
        wish = {"settings": {"fileReservedTime": "96"}}
        preview = await visitor.post(f"{path}/preview", wish)
        await visitor.change("PUT", path, wish)
        after = (await visitor.get(path))["settings"]
        refused = await visitor.change("PUT", path, {"settings": {"brokerName": "other"}}, status=403)
        elsewhere = await visitor.http.get("/api/brokers/10.0.0.1:80/settings")
    assert preview["differences"][0]["before"] == "72"
    assert after["fileReservedTime"] == "96"
    assert "brokerName" in refused["error"]
    assert elsewhere.status_code == 400


@pytest.mark.requirement("D022")
async def test_accounts_of_brokers_log_in_and_brokers_say_what_they_may() -> None:
    async with AsyncLocalCluster(settings=WITH_USERS) as cluster, console_of(cluster, credentials=ROOT) as visitor:
        await visitor.post("/api/login", {"account": "rocketmq", "password": "wrong"}, status=401)
        await visitor.post("/api/login", {"account": "rocketmq", "password": "12345678"})
        await visitor.post("/api/access/users", {"name": "alice", "password": "secret123"})
        await visitor.post(
            "/api/access/rights", {"subject": "User:alice", "resource": "Topic:Orders", "actions": ["Sub"]}
        )
        await visitor.post("/api/topics", {"name": "Orders"})
        page = await visitor.get("/api/access")
        may = await visitor.get("/api/access/may", user="alice", resource="Topic:Orders", action="Pub")
        entries = (await visitor.get("/api/audit"))["rows"]
        alice = Visitor(visitor.console)
        async with alice.http:
            await alice.post("/api/login", {"account": "alice", "password": "secret123"})
            refused = await alice.post("/api/topics", {"name": "Mine"}, status=403)
            hidden = await alice.http.get("/api/access")
            await alice.get("/api/overview")
    assert [(user["name"], user["kind"]) for user in page["users"]] == [("alice", "Normal"), ("rocketmq", "Super")]
    assert "password" not in str(page)
    assert may == {"allowed": False, "because": "no right of this user names the resource and the action"}
    assert "secret123" not in str(entries)
    assert "alice" in refused["error"] or "permission" in refused["error"]
    assert hidden.status_code == 403


async def test_a_cluster_without_accounts_says_how_to_log_in() -> None:
    async with AsyncLocalCluster() as cluster, console_of(cluster) as visitor:
        refused = await visitor.post("/api/login", {"account": "a", "password": "b"}, status=401)
    assert "token" in refused["error"]


def _has_died(cluster: AsyncLocalCluster, key: str) -> bool:
    return any(key in message.keys for message in cluster.dead_letters("billing"))


async def test_of_many_dead_letters_the_newest_are_shown_and_others_are_found_by_time_and_id() -> None:
    async with AsyncLocalCluster() as cluster, console_of(cluster) as visitor:
        await cluster.create_topic("Orders", queues=1)
        await cluster.create_group("billing", retries=0)
        consumer = cluster.push_consumer("billing", settings=PushConsumerSettings(max_reconsume_times=0))

        @consumer.on("Orders")
        async def fail(_: ReceivedMessage) -> None:
            raise ValueError("no stock")

        async with consumer, cluster.producer() as producer:
            for number in range(3):
                await producer.send(Message("Orders", b"x", keys=f"k-{number}"))
                await until(partial(_has_died, cluster, f"k-{number}"))
        every = await visitor.until("/api/dead-letters/billing", lambda page: len(page["rows"]) == 3, most=3)
        newest = await visitor.get("/api/dead-letters/billing", most=2)
        oldest = every["rows"][-1]
        by_time = await visitor.get("/api/dead-letters/billing", to_ms=oldest["died_ms"])
        by_id = await visitor.get("/api/dead-letters/billing", message_id=oldest["offset_message_id"])
        table = await visitor.http.get("/api/dead-letters/billing/export", params={"from_ms": oldest["died_ms"] + 1})
    assert [row["keys"] for row in every["rows"]] == [["k-2"], ["k-1"], ["k-0"]]
    assert [row["keys"] for row in newest["rows"]] == [["k-2"], ["k-1"]]
    assert (every["is_complete"], newest["is_complete"]) == (True, False)
    assert "k-0" in [key for row in by_time["rows"] for key in row["keys"]]
    assert by_id["rows"] == [oldest]
    assert "k-2" in table.text
