"""Illnesses planted in clusters that run: the doctor names each."""

import json
from collections.abc import Iterable

import pytest

from skyrocket.client import Message, PushConsumerSettings, ReceivedMessage
from skyrocket.model.message_queue import MessageQueue
from skyrocket.model.subscription_group import SubscriptionGroup
from skyrocket.store.disk import Disk
from skyrocket.testing import LocalCluster
from tests.cluster.command_line import at, skyrocket, well
from tests.waiting import wait_until

WITH_USERS = {
    "authenticationEnabled": "true",
    "authorizationEnabled": "true",
    "initAuthenticationUser": '{"username":"rocketmq","password":"12345678"}',
    "innerClientAuthenticationCredentials": '{"accessKey":"rocketmq","secretKey":"12345678"}',
}


def named(rocketmq: LocalCluster, *options: str) -> set[str]:
    return _codes(skyrocket(rocketmq, "doctor", "--output", "json", "--notes", *options).output)


def _codes(output: str) -> set[str]:
    return {finding["code"] for finding in json.loads(output)}


def sent(rocketmq: LocalCluster, topic: str, count: int = 1) -> None:
    with rocketmq.producer() as producer:
        producer.send_batch([Message(topic, b"x") for _ in range(count)])


def placed(rocketmq: LocalCluster, group: str, topic: str, offsets: Iterable[int]) -> None:
    """A group that has been in each queue of a topic."""
    with rocketmq.admin() as admin:
        admin.create_group(SubscriptionGroup(group))
        for number, offset in enumerate(offsets):
            admin.set_offset(group, MessageQueue(topic, "broker-a", number), offset)


@pytest.mark.parametrize(("used", "code"), [(0.80, "disk-filling"), (0.96, "disk-full")])
def test_a_disk_that_fills(rocketmq: LocalCluster, monkeypatch: pytest.MonkeyPatch, used: float, code: str) -> None:
    monkeypatch.setattr(Disk, "used_ratio", lambda *_: used)
    assert named(rocketmq) == {"auto-create-topics", code}


def test_a_clock_that_is_ahead(rocketmq: LocalCluster) -> None:
    rocketmq.advance(minutes=1)
    assert named(rocketmq) == {"auto-create-topics", "clock-skew"}


def test_offsets_that_cannot_be_and_a_queue_that_has_it_all(rocketmq: LocalCluster) -> None:
    rocketmq.create_topic("Orders", queues=4)
    sent(rocketmq, "Orders", 1000)
    placed(rocketmq, "Billing", "Orders", [0, 0, 0, 0])
    placed(rocketmq, "Beyond", "Orders", [9000, 9000, 9000, 9000])
    assert named(rocketmq) >= {"offset-beyond-end", "queue-skewed", "no-client"}


def test_a_topic_that_groups_consume_and_nobody_may_read(rocketmq: LocalCluster) -> None:
    rocketmq.create_topic("Orders", queues=1)
    placed(rocketmq, "Billing", "Orders", [0])
    well(rocketmq, "topic", "update", "Orders", "--perm", "W", "--yes")
    assert named(rocketmq) == {"auto-create-topics", "topic-not-readable"}


@pytest.mark.rocketmq(brokers=2)
def test_a_topic_on_one_of_two_brokers(rocketmq: LocalCluster) -> None:
    well(rocketmq, "topic", "create", "Lonely", "--broker", "broker-a")
    assert "topic-on-one-broker" in named(rocketmq)


@pytest.mark.rocketmq(brokers=2)
def test_topics_and_groups_that_are_not_the_same_everywhere(rocketmq: LocalCluster) -> None:
    address = rocketmq.broker_addresses["broker-a"]
    well(rocketmq, "topic", "create", "Orders")
    well(rocketmq, "group", "create", "Billing")
    well(rocketmq, "group", "create", "Packing")
    assert named(rocketmq) == {"auto-create-topics"}
    well(rocketmq, "mqadmin", "updateTopic", "-b", address, "-t", "Orders", "-o", "true")
    well(rocketmq, "mqadmin", "updateSubGroup", "-b", address, "-g", "Billing", "-s", "false")
    well(rocketmq, "mqadmin", "updateSubGroup", "-b", address, "-g", "Packing", "-r", "3")
    assert named(rocketmq) == {"auto-create-topics", "topic-differs", "group-disabled", "group-differs"}


def test_a_retry_topic_that_nobody_may_write(rocketmq: LocalCluster) -> None:
    rocketmq.create_group("Billing")
    address = rocketmq.broker_addresses["broker-a"]
    well(rocketmq, "mqadmin", "updateTopic", "-b", address, "-t", "%RETRY%Billing", "-r", "1", "-w", "1", "-p", "4")
    assert named(rocketmq) == {"auto-create-topics", "retry-topic-closed"}


@pytest.mark.rocketmq(brokers=2, settings={"autoCreateSubscriptionGroup": "false"})
def test_a_group_that_one_broker_of_its_topic_does_not_know(rocketmq: LocalCluster) -> None:
    rocketmq.create_topic("Orders", queues=1)
    well(rocketmq, "group", "create", "Billing", "--broker", "broker-a")
    consumer = rocketmq.push_consumer("Billing")
    consumer.on("Orders")(_ignored)
    with consumer:
        wait_until(lambda: "group-missing" in named(rocketmq))


@pytest.mark.rocketmq(replicas=2)
def test_a_slave_that_keeps_messages_for_another_time_than_its_master(rocketmq: LocalCluster) -> None:
    assert "slave-settings-differ" not in named(rocketmq)
    well(rocketmq, "config", "set", "fileReservedTime=12", "--broker", "broker-a", "--yes")
    assert "slave-settings-differ" in named(rocketmq)


def test_a_name_server_without_brokers(rocketmq: LocalCluster) -> None:
    rocketmq.stop_broker("broker-a")
    assert named(rocketmq) == {"no-brokers"}


def test_name_servers_that_know_different_brokers(rocketmq: LocalCluster) -> None:
    with LocalCluster(brokers=2) as other:
        done = at(f"{rocketmq.name_server_address};{other.name_server_address}", "doctor", "--output", "json")
    assert _codes(done.output) >= {"name-servers-differ", "broker-twice"}  # broker-a of one is not that of the other


def test_a_loopback_address_is_told_to_clients_elsewhere(rocketmq: LocalCluster) -> None:
    port = rocketmq.name_server_address.rpartition(":")[2]
    done = at(f"0.0.0.0:{port}", "doctor", "--output", "json")  # another name of this machine
    assert _codes(done.output) == {"loopback-address"}


@pytest.mark.rocketmq(settings={"brokerRole": "SYNC_MASTER"})
def test_a_master_that_waits_for_a_slave_that_is_not_there(rocketmq: LocalCluster) -> None:
    assert "slave-missing" in named(rocketmq)


@pytest.mark.rocketmq(settings=WITH_USERS)
def test_a_password_that_everybody_knows_and_a_doctor_without_an_account(rocketmq: LocalCluster) -> None:
    assert named(rocketmq) == {"no-rights"}
    account = ("--access-key", "rocketmq", "--secret-key", "12345678")
    assert "default-password" in named(rocketmq, *account)


@pytest.mark.slow
@pytest.mark.rocketmq(replicas=2)
def test_a_slave_without_its_master(rocketmq: LocalCluster) -> None:
    with rocketmq.admin() as admin:
        rocketmq.stop_broker("broker-a")
        wait_until(lambda: all(0 not in each.addresses for each in admin.cluster().brokers.values()))
    assert "no-master" in named(rocketmq)


@pytest.mark.slow
def test_clients_of_a_group_that_want_different_things(rocketmq: LocalCluster) -> None:
    rocketmq.create_topic("Orders", queues=1)
    rocketmq.create_topic("Returns", queues=4)
    one, other = (rocketmq.push_consumer("Billing") for _ in range(2))
    one.on("Orders")(_ignored)
    other.on("Returns")(_ignored)
    with one, other:
        seen: set[str] = set()

        def are_named() -> bool:  # brokers know the subscription that they heard last: now of one client, now the other
            seen.update(named(rocketmq))
            return seen >= {"subscriptions-differ", "queue-without-owner"}

        wait_until(are_named)


@pytest.mark.slow
def test_more_clients_than_queues(rocketmq: LocalCluster) -> None:
    rocketmq.create_topic("Orders", queues=1)
    one, other = (rocketmq.push_consumer("Billing") for _ in range(2))
    one.on("Orders")(_ignored)
    other.on("Orders")(_ignored)
    with one, other:
        wait_until(lambda: "more-clients-than-queues" in named(rocketmq))


@pytest.mark.slow
def test_a_message_that_nobody_could_consume(rocketmq: LocalCluster) -> None:
    rocketmq.create_topic("Orders", queues=1)
    rocketmq.create_group("Billing", retries=0)
    consumer = rocketmq.push_consumer("Billing", settings=PushConsumerSettings(max_reconsume_times=0))

    @consumer.on("Orders")
    def fails(_: ReceivedMessage) -> None:
        raise ValueError("no such order")

    with consumer:
        sent(rocketmq, "Orders")
        wait_until(lambda: len(rocketmq.dead_letters("Billing")) == 1)
    assert "dead-letters" in named(rocketmq)


def _ignored(_: ReceivedMessage) -> None:
    pass
