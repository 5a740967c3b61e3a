"""A broker that died without a word, which name servers still know: mqadmin goes on with the others and names it."""

import re
from collections.abc import Iterator
from pathlib import Path

import pytest

from skyrocket.client import Message
from skyrocket.testing import LocalCluster
from tests.cluster.broken_brokers import registered
from tests.cluster.command_line import Done, skyrocket
from tests.waiting import wait_until

pytestmark = pytest.mark.rocketmq(brokers=2)
DEAD = "broker-b"


@pytest.fixture
def dead(rocketmq: LocalCluster) -> Iterator[str]:
    """The address of a broker that was killed; its registration stands, as after a power cut of its machine.

    A name server forgets a broker at once when its connection breaks, and after two minutes when it only falls silent.
    """
    rocketmq.create_topic("Orders", queues=1)
    with rocketmq.producer() as producer:
        for number in range(4):
            producer.send(Message("Orders", b"%d" % number, keys="key"))
    address = rocketmq.broker_addresses[DEAD]
    rocketmq.kill_broker(DEAD)
    with rocketmq.admin() as admin:
        wait_until(lambda: len(admin.brokers()) == 1, "its broken connection was seen")
    with registered(rocketmq, DEAD, address, "Orders"):
        yield address


def run(rocketmq: LocalCluster, command: str) -> Done:
    return skyrocket(rocketmq, "mqadmin", *command.split())


@pytest.mark.parametrize(
    ("command", "shown"),
    [
        ("clusterList", "broker-a"),
        ("brokerStatus -c DefaultCluster", "brokerVersionDesc"),
        ("getBrokerConfig -c DefaultCluster", "brokerName"),
        ("haStatus -c DefaultCluster", "#MasterAddr"),
        ("updateTopic -c DefaultCluster -t New", "create topic to {alive} success."),
        ("updateSubGroup -c DefaultCluster -g Billing", "create subscription group to {alive} success."),
        ("updateBrokerConfig -c DefaultCluster -k fileReservedTime -v 96", "update broker config success, {alive}"),
        ("getColdDataFlowCtrInfo -c DefaultCluster", "{alive}"),
        ("exportMetadata -c DefaultCluster -f {folder}", "success"),
        ("exportConfigs -c DefaultCluster -f {folder}", "success"),
        ("exportMetrics -c DefaultCluster -f {folder}", "success"),
        ("cleanExpiredCQ -c DefaultCluster", "success"),
        ("topicStatus -t Orders", "broker-a"),
        ("statsAll", "#Topic"),
    ],
)
def test_the_others_are_shown_and_the_dead_one_is_named(
    rocketmq: LocalCluster, dead: str, tmp_path: Path, command: str, shown: str
) -> None:
    alive = rocketmq.broker_addresses["broker-a"]
    done = run(rocketmq, command.format(folder=tmp_path))
    assert done.code == 3, (done.output, done.errors)
    assert shown.format(alive=alive) in done.output
    assert dead in done.errors
    assert "failed" in done.errors


def test_a_dead_broker_that_is_asked_alone_is_a_failure(rocketmq: LocalCluster, dead: str) -> None:
    done = run(rocketmq, f"brokerStatus -b {dead}")
    assert done.code == 1
    assert dead in done.errors


@pytest.mark.parametrize("noun", ["transactions list", "timers list", "timers list --count", "msg find Orders key"])
def test_what_the_others_have_is_listed(rocketmq: LocalCluster, dead: str, noun: str) -> None:
    done = skyrocket(rocketmq, *noun.split())
    assert done.code == 3, (done.output, done.errors)
    assert dead in done.errors


@pytest.mark.parametrize(
    "noun",
    [
        "msg find Orders nobody",
        f"msg get Orders {'A' * 32}",
        "group describe Nobody",
        "mqadmin queryMsgByKey -t Orders -k nobody",
        "mqadmin getConsumerConfig -g Nobody",
    ],
)
def test_what_is_not_found_may_be_at_the_dead_one(rocketmq: LocalCluster, dead: str, noun: str) -> None:
    done = skyrocket(rocketmq, *noun.split())
    assert done.code == 3, (done.output, done.errors)
    assert dead in done.errors


@pytest.mark.parametrize(
    "command", ["resetOffsetByTime -g Billing -t Orders -s now", "skipAccumulatedMessage -g Billing -t Orders"]
)
def test_a_group_is_moved_at_the_others(rocketmq: LocalCluster, dead: str, command: str) -> None:
    assert run(rocketmq, "updateSubGroup -c DefaultCluster -g Billing").code == 3
    done = run(rocketmq, command)
    assert done.code == 3, (done.output, done.errors)
    assert re.search(r"broker-a +0 +\d", done.output)
    assert dead in done.errors
