"""RocketMQ's own Java client at a cluster inside the test, whose time is moved."""

from functools import partial
from pathlib import Path

import pytest

from skyrocket.testing import LocalCluster
from tests.interop.client_kinds import JAVA_54, launch_of
from tests.interop.client_program import message, running_client
from tests.waiting import wait_until

pytestmark = [pytest.mark.interop, pytest.mark.timeout(200)]


def test_delays_and_retries_of_a_java_client_happen_when_the_clock_is_moved(
    rocketmq: LocalCluster, tmp_path: Path
) -> None:
    launch = launch_of(JAVA_54)
    if isinstance(launch, str):
        pytest.skip(f"no Java client: {launch}")
    rocketmq.create_topic("Orders", queues=1)
    rocketmq.create_group("Billing")
    command = launch.command(rocketmq.name_server_address, tmp_path)
    with running_client(command, launch.environment, tmp_path) as java:
        java.consume("billing", "Billing", "Orders", failures=99, maxReconsumeTimes=4)
        java.send("sync", message("Orders", b"fail for ever"), message("Orders", b"late", delayLevel=18))
        for waiting, delay_s in ((2, 10), (3, 30), (4, 60), (5, 120)):  # the late one waits all the time
            wait_until(partial(_has_stored, rocketmq, waiting), f"{waiting} have waited for their time")
            assert [one.reconsume_times for one in java.deliveries("billing")] == list(range(waiting - 1))
            rocketmq.advance(seconds=delay_s + 1)
        wait_until(lambda: bool(rocketmq.dead_letters("Billing")), "it is given up")
        assert [one.reconsume_times for one in java.deliveries("billing")] == [0, 1, 2, 3, 4]
        assert [letter.body for letter in rocketmq.dead_letters("Billing")] == [b"fail for ever"]
        rocketmq.advance(hours=2)
        wait_until(lambda: java.deliveries("billing")[-1].body == b"late", "the late one comes")
        java.stop("billing")
    assert rocketmq.offsets("Billing")


def _has_stored(rocketmq: LocalCluster, count: int) -> bool:
    return len(rocketmq.messages("SCHEDULE_TOPIC_XXXX")) >= count
