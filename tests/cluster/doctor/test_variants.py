"""Illnesses where nobody looks for them, health that looks odd, and remedies that are carried out as written."""

import contextlib
import json
import re
import socket
from collections.abc import Iterator
from typing import Any

import pytest

from skyrocket.client import ClientSettings, Message, MessageModel, PushConsumerSettings, ReceivedMessage, blocking
from skyrocket.model.message_queue import MessageQueue
from skyrocket.model.subscription_group import SubscriptionGroup
from skyrocket.testing import LocalCluster
from tests.cluster.broken_brokers import registered
from tests.cluster.command_line import at, rows, skyrocket, well
from tests.waiting import wait_until

IN_SHOP = ("--namespace", "shop")


def found(rocketmq: LocalCluster, *options: str) -> list[dict[str, Any]]:
    done = skyrocket(rocketmq, "doctor", "--output", "json", *options)
    assert done.code in (0, 1), done.errors
    findings: list[dict[str, Any]] = json.loads(done.output)
    return findings


def codes(rocketmq: LocalCluster, *options: str) -> set[str]:
    return {each["code"] for each in found(rocketmq, *options)}


def waiting(rocketmq: LocalCluster, group: str, topic: str, queues: int = 1) -> None:
    """A group for which messages wait, and nobody runs."""
    rocketmq.create_topic(topic, queues=queues)
    with rocketmq.producer() as producer, rocketmq.admin() as admin:
        for _ in range(2 * queues):
            producer.send(Message(topic, b"x"))
        admin.create_group(SubscriptionGroup(group))
        for queue in admin.queues(topic):
            admin.set_offset(group, queue, 0)


def beside(rocketmq: LocalCluster, number: int) -> ClientSettings:
    """A client of its own among several of one group."""
    return ClientSettings(rocketmq.name_server_address, client_ip="127.0.0.1", instance_name=f"client-{number}")


@contextlib.contextmanager
def mute_server() -> Iterator[str]:
    """It takes connections and never answers."""
    with socket.create_server(("127.0.0.1", 0)) as never_accepts:
        yield f"127.0.0.1:{never_accepts.getsockname()[1]}"


# ── namespaces and topics alone ──────────────────────────────────────────────────────────────────────────────────────


def test_a_group_in_a_namespace_is_examined_and_explained_there(rocketmq: LocalCluster) -> None:
    well(rocketmq, "topic", "create", "Orders", "--queues", "1", *IN_SHOP)
    well(rocketmq, "group", "create", "Billing", *IN_SHOP)
    well(rocketmq, "msg", "send", "Orders", "1", "2", *IN_SHOP)
    well(rocketmq, "reset", "--group", "Billing", "--topic", "Orders", "--to", "earliest", "--yes", *IN_SHOP)
    (finding,) = found(rocketmq, *IN_SHOP)
    assert (finding["code"], finding["where"]) == ("no-client", "Billing")
    told = json.loads(skyrocket(rocketmq, "doctor", "--group", "Billing", "--output", "json", *IN_SHOP).output)
    assert (told["lag"], told["cause"]) == (2, "no client runs")
    assert told["behindSeconds"] is not None
    assert found(rocketmq, "--namespace", "bank") == []


def test_a_healthy_consumer_in_a_namespace_is_silent(rocketmq: LocalCluster) -> None:
    well(rocketmq, "topic", "create", "Orders", "--queues", "2", *IN_SHOP)
    seen: list[ReceivedMessage] = []
    client = ClientSettings(rocketmq.name_server_address, namespace="shop")
    consumer = blocking.PushConsumer("Billing", client=client)
    consumer.on("Orders")(seen.append)
    with consumer:
        well(rocketmq, "msg", "send", "Orders", "1", *IN_SHOP)
        wait_until(lambda: len(seen) == 1)
        wait_until(lambda: codes(rocketmq, *IN_SHOP) == set())
        told = json.loads(skyrocket(rocketmq, "doctor", "--group", "Billing", "--output", "json", *IN_SHOP).output)
        assert all(step["findings"] == [] for step in told["steps"])


def test_with_a_topic_its_groups_alone_are_looked_at(rocketmq: LocalCluster) -> None:
    waiting(rocketmq, "Billing", "Orders")
    waiting(rocketmq, "Packing", "Parcels")
    consumer = rocketmq.push_consumer("Billing")
    consumer.on("Orders")(_ignored)
    consumer.on("Parcels")(_ignored)
    with consumer:
        wait_until(lambda: found(rocketmq, "--topic", "Orders") == [])
        assert [each["where"] for each in found(rocketmq, "--topic", "Parcels")] == ["Packing"]
    missing = skyrocket(rocketmq, "doctor", "--topic", "Oders")
    assert (missing.code, "there is no topic Oders" in missing.errors) == (4, True)


# ── servers that are half there ──────────────────────────────────────────────────────────────────────────────────────


@pytest.mark.rocketmq(brokers=2)
def test_a_topic_of_a_broker_that_is_down_is_not_said_to_be_missing(rocketmq: LocalCluster) -> None:
    well(rocketmq, "topic", "create", "Lonely", "--broker", "broker-b")
    consumer = rocketmq.push_consumer("Billing")
    consumer.on("Lonely")(_ignored)
    with consumer:
        wait_until(lambda: bool(rows(rocketmq, "group", "members", "Billing")))
        rocketmq.kill_broker("broker-b")
        assert "no-such-topic" not in codes(rocketmq)


def test_a_broker_that_hangs_is_named_and_the_rest_is_examined(rocketmq: LocalCluster) -> None:
    waiting(rocketmq, "Billing", "Orders")
    with mute_server() as address, registered(rocketmq, "broker-z", address, "Orders", "%RETRY%Billing"):
        named = found(rocketmq)
    assert [(each["code"], each["where"]) for each in named] == [
        ("broker-unreachable", f"broker-z ({address})"),
        ("no-client", "Billing"),
    ]


def test_a_name_server_that_hangs_or_has_no_address_is_named_and_the_rest_is_examined(rocketmq: LocalCluster) -> None:
    waiting(rocketmq, "Billing", "Orders")
    with mute_server() as hangs:
        for away in (hangs, "no-such-host.invalid:9876"):
            done = at(f"{away};{rocketmq.name_server_address}", "doctor", "--output", "json")
            assert done.code == 1, done.errors
            named = [(each["code"], each["where"]) for each in json.loads(done.output)]
            assert named == [("name-server-down", away), ("no-client", "Billing")]


# ── health that looks odd ────────────────────────────────────────────────────────────────────────────────────────────


def test_tags_in_another_order_and_many_who_broadcast_are_no_illness(rocketmq: LocalCluster) -> None:
    rocketmq.create_topic("Orders", queues=2)
    one, other = (blocking.PushConsumer("Billing", client=beside(rocketmq, number)) for number in range(2))
    one.on("Orders", tags="paid || open")(_ignored)
    other.on("Orders", tags="open||paid")(_ignored)
    settings = PushConsumerSettings(message_model=MessageModel.BROADCASTING)
    many = [blocking.PushConsumer("Screens", client=beside(rocketmq, number), settings=settings) for number in range(3)]
    for each in many:
        each.on("Orders")(_ignored)
    with contextlib.ExitStack() as running:
        for consumer in (one, other, *many):
            running.enter_context(consumer)
        wait_until(lambda: len(rows(rocketmq, "group", "members", "Billing")) == 2)
        wait_until(lambda: codes(rocketmq) == set())


def test_more_who_pop_than_there_are_queues_are_no_illness(rocketmq: LocalCluster) -> None:
    rocketmq.create_topic("Orders", queues=1)
    rocketmq.create_group("Billing")
    with contextlib.ExitStack() as running:
        for number in range(3):
            client = beside(rocketmq, number)
            running.enter_context(blocking.SimpleConsumer("Billing", subscription={"Orders": "*"}, client=client))
        wait_until(lambda: len(rows(rocketmq, "group", "members", "Billing")) == 3)
        assert codes(rocketmq) == set()


# ── remedies ─────────────────────────────────────────────────────────────────────────────────────────────────────────


def remedied(rocketmq: LocalCluster, code: str, **given: str) -> None:
    """Carries out the command of a finding's remedy, and sees that the finding is gone."""
    remedies = [each["remedy"] for each in found(rocketmq, "--notes") if each["code"] == code]
    assert remedies, code
    command = re.search("`skyrocket ([^`]+)`", remedies[0])
    assert command is not None, remedies[0]
    text = command[1]
    for word, value in given.items():
        text = text.replace(word, value)
    done = skyrocket(rocketmq, *text.split())
    if done.code == 2 and "--yes" in done.errors:
        done = skyrocket(rocketmq, *text.split(), "--yes")
    assert done.code == 0, (text, done.errors)
    wait_until(lambda: code not in codes(rocketmq, "--notes"), f"{code} is gone after {text}")


@pytest.mark.rocketmq(brokers=2)
def test_remedies_that_are_commands_work_as_they_are_written(rocketmq: LocalCluster) -> None:
    address = rocketmq.broker_addresses["broker-a"]
    well(rocketmq, "topic", "create", "Orders", "--queues", "2")
    well(rocketmq, "topic", "create", "Lonely", "--broker", "broker-a")
    remedied(rocketmq, "topic-on-one-broker")
    well(rocketmq, "mqadmin", "updateTopic", "-b", address, "-t", "Orders", "-o", "true")
    remedied(rocketmq, "topic-differs")
    well(rocketmq, "topic", "update", "Orders", "--write-queues", "4")
    remedied(rocketmq, "queues-differ", N="4")
    well(rocketmq, "broker", "pause-writes", "broker-a", "--yes")
    remedied(rocketmq, "writes-paused")
    well(rocketmq, "config", "set", "brokerPermission=4", "--broker", "broker-b", "--yes")
    remedied(rocketmq, "broker-not-writable", **{"…": "broker-b"})


def test_remedies_for_groups_work_as_they_are_written(rocketmq: LocalCluster) -> None:
    waiting(rocketmq, "Billing", "Orders")
    address = rocketmq.broker_addresses["broker-a"]
    well(rocketmq, "topic", "update", "Orders", "--perm", "W", "--yes")
    remedied(rocketmq, "topic-not-readable")
    well(rocketmq, "mqadmin", "updateTopic", "-b", address, "-t", "%RETRY%Billing", "-r", "1", "-w", "1", "-p", "4")
    remedied(rocketmq, "retry-topic-closed")
    well(rocketmq, "group", "update", "Billing", "--disable", "--yes")
    remedied(rocketmq, "group-disabled")
    with rocketmq.admin() as admin:
        admin.set_offset("Billing", MessageQueue("Orders", "broker-a", 0), 9000)
    remedied(rocketmq, "offset-beyond-end")


@pytest.mark.rocketmq(replicas=2)
def test_a_master_with_its_slave_is_healthy_and_settings_that_differ_are_mended_as_written(
    rocketmq: LocalCluster,
) -> None:
    assert codes(rocketmq) == set()
    well(rocketmq, "config", "set", "fileReservedTime=12", "--broker", "broker-a", "--yes")
    remedied(rocketmq, "slave-settings-differ")


def _ignored(_: ReceivedMessage) -> None:
    pass
