"""Topics that nobody may read for a while, and topics that are copied: settings, and messages."""

import asyncio
import threading
from datetime import UTC, datetime, timedelta

import pytest

from skyrocket.client import Message, PushConsumerSettings, ReceivedMessage
from skyrocket.testing import LocalCluster
from skyrocket.testing.async_cluster import AsyncLocalCluster
from tests.cluster.command_line import rows, skyrocket, well
from tests.waiting import wait_until

TWO = pytest.mark.rocketmq(brokers=2)


@TWO
@pytest.mark.requirement("B009")
def test_a_paused_topic_is_read_by_nobody_until_it_is_resumed(rocketmq: LocalCluster) -> None:
    rocketmq.create_topic("Orders", queues=2)
    got: list[bytes] = []
    arrived = threading.Event()
    consumer = rocketmq.push_consumer("Billing", settings=PushConsumerSettings())

    @consumer.on("Orders")
    def take(message: ReceivedMessage) -> None:
        got.append(message.body)
        arrived.set()

    with consumer, rocketmq.producer() as producer:
        producer.send(Message("Orders", b"before"))
        assert arrived.wait(30)
        refused = skyrocket(rocketmq, "topic", "pause", "Orders")
        assert refused.code == 2
        assert "that stops 1 group (Billing)" in refused.errors
        shown = well(rocketmq, "topic", "pause", "Orders", "--yes")
        assert shown.count("permission  6 → 2") == 2
        assert "nothing is to be changed" in well(rocketmq, "topic", "pause", "Orders", "--yes")
        producer.send(Message("Orders", b"meanwhile"))  # writing goes on
        with rocketmq.admin() as admin:
            wait_until(lambda: admin.queues("Orders") == [])  # name servers have heard of it
        assert got == [b"before"]
        assert "read again" in well(rocketmq, "topic", "resume", "Orders")
        wait_until(lambda: got == [b"before", b"meanwhile"])
    (row,) = rows(rocketmq, "topic", "list", "Orders")
    assert row["permission"] == "RW"


def test_a_topic_without_writing_is_without_anything_while_it_is_paused(rocketmq: LocalCluster) -> None:
    rocketmq.create_topic("Orders", queues=1)
    well(rocketmq, "topic", "update", "Orders", "--perm", "R")
    well(rocketmq, "topic", "pause", "Orders", "--yes")
    assert rows(rocketmq, "topic", "list", "Orders")[0]["permission"] == "none"
    well(rocketmq, "topic", "resume", "Orders")
    assert rows(rocketmq, "topic", "list", "Orders")[0]["permission"] == "R", "as it was before"


@TWO
def test_the_settings_of_a_topic_are_copied_to_a_new_one_alone(rocketmq: LocalCluster) -> None:
    well(rocketmq, "topic", "create", "Orders", "--type", "fifo", "--queues", "3", "--broker", "broker-b")
    well(rocketmq, "topic", "update", "Orders", "--write-queues", "2")
    assert "nothing was changed" in well(rocketmq, "topic", "copy", "Orders", "Later", "--dry-run")
    made = well(rocketmq, "topic", "copy", "Orders", "Later")
    assert "topic Later is created at 1 broker with the settings of Orders" in made
    wait_until(lambda: skyrocket(rocketmq, "topic", "describe", "Later").code == 0)
    first, second = (rows(rocketmq, "topic", "describe", name)["settings"] for name in ("Orders", "Later"))
    assert list(second) == ["broker-b"]
    assert {**first["broker-b"], "name": "Later"} == second["broker-b"]
    again = skyrocket(rocketmq, "topic", "copy", "Orders", "Later")
    assert again.code == 2
    assert "is there already" in again.errors
    assert skyrocket(rocketmq, "topic", "copy", "Nowhere", "Else").code == 4


def test_a_group_is_paused_in_a_topic_and_goes_on_after_it(rocketmq: LocalCluster) -> None:
    rocketmq.create_topic("Orders", queues=1)
    rocketmq.create_group("Billing")
    assert skyrocket(rocketmq, "group", "pause", "Billing", "--topic", "Orders").code == 2
    well(rocketmq, "group", "pause", "Billing", "--topic", "Orders", "--yes")
    got: list[bytes] = []
    consumer = rocketmq.push_consumer("Billing")

    @consumer.on("Orders")
    def take(message: ReceivedMessage) -> None:
        got.append(message.body)

    with consumer, rocketmq.producer() as producer:
        producer.send(Message("Orders", b"one"))
        wait_until(lambda: skyrocket(rocketmq, "group", "members", "Billing").code == 0)
        assert got == []
        assert "reads Orders again" in well(rocketmq, "group", "resume", "Billing", "--topic", "Orders")
        wait_until(lambda: got == [b"one"])
    assert skyrocket(rocketmq, "group", "resume", "Nobody", "--topic", "Orders").code == 4


async def test_messages_of_a_while_are_copied_in_the_order_in_which_they_were_stored() -> None:
    async with AsyncLocalCluster(brokers=2) as cluster, cluster.producer() as producer:
        await cluster.create_topic("Orders", queues=3)
        for number in range(40):
            await producer.send(
                Message("Orders", str(number).encode(), "odd" if number % 2 else "even", f"o-{number}", {"n": "1"})
            )
            await asyncio.sleep(0.003)
        async with cluster.admin() as admin:
            await admin.create_topic("Copies", queues=1, broker="broker-a")
            stored = sorted(cluster.messages("Orders"), key=lambda message: message.store_timestamp)
            since, until = stored[10].store_timestamp / 1000, stored[30].store_timestamp / 1000
            told: list[int] = []
            counted = await admin.count_between("Orders", since, until)
            copied = await admin.copy_messages("Orders", "Copies", since, until, most=15, told=told.append)
            odd = [message.tags async for message in admin.messages_between("Orders", since, until, tags="odd")]
            day = timedelta(days=1)
            nothing = await admin.count_between("Orders", datetime.now(UTC) + day, datetime.now(UTC) + 2 * day)
            everything = await admin.count_between("Orders", 0, datetime.now(UTC) + day)
            began = asyncio.get_running_loop().time()
            await admin.copy_messages("Orders", "Orders", 0, datetime.now(UTC) + day, most=5, rate=50)
            took = asyncio.get_running_loop().time() - began
        copies = cluster.messages("Copies")
    assert (counted, copied, told, nothing, everything) == (20, 15, list(range(1, 16)), 0, 40)
    assert [copy.body for copy in copies] == [message.body for message in stored[10:25]]
    assert {copy.properties["n"] for copy in copies} == {"1"}
    assert [copy.keys for copy in copies] == [message.keys for message in stored[10:25]]
    assert odd == ["odd"] * 10
    assert took >= 0.08, "five at fifty a second"
