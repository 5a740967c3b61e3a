"""`skyrocket doctor` on a cluster that is well, and on one with illnesses planted by hand."""

import json
from typing import Any

import pytest

from skyrocket.client import Message, ReceivedMessage
from skyrocket.model.subscription_group import SubscriptionGroup
from skyrocket.testing import LocalCluster
from tests.cluster.command_line import at, rows, skyrocket, well
from tests.ports import free_port
from tests.waiting import wait_until


def codes(rocketmq: LocalCluster, *options: str) -> set[str]:
    done = skyrocket(rocketmq, "doctor", "--output", "json", *options)
    assert done.code in (0, 1), done.errors
    return {finding["code"] for finding in json.loads(done.output)}


def consume_all(rocketmq: LocalCluster, group: str) -> None:
    seen: list[ReceivedMessage] = []
    consumer = rocketmq.push_consumer(group)
    consumer.on("Orders")(seen.append)
    with consumer, rocketmq.admin() as admin:
        wait_until(lambda: len(seen) == 2)
        wait_until(lambda: sum(each.lag for each in admin.consumer_lag(group, "Orders")) == 0)


@pytest.fixture
def shop(rocketmq: LocalCluster) -> LocalCluster:
    rocketmq.create_topic("Orders", queues=2)
    with rocketmq.producer() as producer:
        for body in (b"1", b"2"):
            producer.send(Message("Orders", body))
    return rocketmq


def test_a_healthy_cluster_has_no_findings_and_the_code_is_0(shop: LocalCluster) -> None:
    consume_all(shop, "Billing")
    text = well(shop, "doctor")
    assert text.startswith("healthy: 1 broker, ")
    assert ", 1 group were examined" in text
    assert codes(shop, "--notes") == {"auto-create-topics"}


@pytest.mark.rocketmq(brokers=2)
def test_planted_illnesses_are_named(shop: LocalCluster) -> None:
    consume_all(shop, "Billing")
    with shop.producer() as producer, shop.admin() as admin:
        for _ in range(4):  # one in each queue, whichever the group has an offset of
            producer.send(Message("Orders", b"3"))
        admin.create_group(SubscriptionGroup("Idle", may_consume=False))
        well(shop, "topic", "create", "Narrow", "--read-queues", "1", "--write-queues", "2")
        well(shop, "topic", "create", "ReadOnly", "--perm", "R")
        well(shop, "config", "set", "brokerPermission=4", "--broker", "broker-b")
        wait_until(lambda: bool(rows(shop, "broker", "producers")))  # brokers have heard of our producer
        expected = {"no-client", "group-disabled", "queues-differ", "topic-not-writable", "broker-not-writable"}
        assert codes(shop) == expected
    done = skyrocket(shop, "doctor")
    assert done.code == 1
    assert "→ `skyrocket group update Idle --enable`" in done.output
    assert skyrocket(shop, "doctor", "--fail-on", "never").code == 0


def test_a_consumer_whose_only_topic_does_not_exist_is_named(rocketmq: LocalCluster) -> None:
    consumer = rocketmq.push_consumer("Lost")
    consumer.on("Missing")(lambda _: None)
    with consumer:
        wait_until(lambda: "no-such-topic" in codes(rocketmq))
        text = skyrocket(rocketmq, "doctor").output
        assert "no-such-topic  Lost: it subscribes to Missing, which no broker has" in text
        assert "1 finding: 1 broker, " in text
        told = skyrocket(rocketmq, "doctor", "--group", "Lost", "--sample", "0")
        assert told.code == 1
        assert "✗ route" in told.output


def test_paused_writes_are_an_illness(shop: LocalCluster) -> None:
    well(shop, "broker", "pause-writes", "broker-a", "--yes")
    done = skyrocket(shop, "doctor")
    assert done.code == 1
    assert "→ `skyrocket broker resume-writes broker-a`" in done.output


def test_a_broker_that_cannot_be_reached_is_an_illness(shop: LocalCluster) -> None:
    with shop.admin() as admin:
        (place,) = admin.brokers()
    shop.kill_broker("broker-a")
    done = skyrocket(shop, "doctor", "--output", "json")
    assert done.code == 1
    found: list[dict[str, Any]] = json.loads(done.output)
    assert {each["code"] for each in found} <= {"broker-unreachable", "no-brokers"}  # as the name server knows it
    assert found
    assert place.broker_name == "broker-a"


def test_a_name_server_that_is_away_is_an_illness(shop: LocalCluster) -> None:
    away = f"127.0.0.1:{free_port()}"
    done = at(f"{shop.name_server_address};{away}", "doctor", "--output", "json")
    assert done.code == 1
    assert [each["where"] for each in json.loads(done.output) if each["code"] == "name-server-down"] == [away]
    alone = at(away, "doctor")
    assert alone.code == 1
    assert "name-server-down" in alone.output


def test_a_broker_that_is_taken_for_a_name_server_is_called_one(shop: LocalCluster) -> None:
    with shop.admin() as admin:
        (place,) = admin.brokers()
    done = at(place.address, "doctor")
    assert done.code == 1
    assert "it is not a name server, but a broker or a proxy" in done.output
    assert "→ give the address of a name server, whose usual port is 9876" in done.output


def test_a_group_is_explained_step_by_step(shop: LocalCluster) -> None:
    consume_all(shop, "Billing")
    text = well(shop, "doctor", "--group", "Billing", "--sample", "0")
    assert "✓ name server" in text
    assert "✗ clients\n    note no-client: no client runs, it has consumed all that came" in text
    assert "0 messages wait; 0.0 come and 0.0 are consumed per second" in text, "the age of nothing is not told"
    assert "cause: nothing waits for it, and no client runs" in text
    with shop.producer() as producer:
        for _ in range(2):
            producer.send(Message("Orders", b"3"))
    done = skyrocket(shop, "doctor", "--group", "Billing", "--sample", "0")
    assert done.code == 1
    assert "✗ clients" in done.output
    assert "cause: no client runs; gone never at these rates" in done.output
    told = json.loads(skyrocket(shop, "doctor", "--group", "Billing", "--sample", "0", "--output", "json").output)
    assert (told["lag"], told["cause"]) == (2, "no client runs")
    assert skyrocket(shop, "doctor", "--group", "Nobody").code == 4
    assert rows(shop, "group", "list", "Billing")[0]["lag"] == 2
