"""`skyrocket group lag`: for how long the oldest message has waited that a group has not consumed."""

import pytest

from skyrocket.cli.nouns import group_lag
from skyrocket.client import Message
from skyrocket.testing import LocalCluster
from skyrocket.testing.clock import FakeClock
from tests.cluster.command_line import rows


def test_the_first_message_after_hours_is_not_hours_late(
    rocketmq: LocalCluster, monkeypatch: pytest.MonkeyPatch
) -> None:
    rocketmq.create_topic("Orders", queues=1)
    rocketmq.create_group("Billing")
    with rocketmq.producer() as producer, rocketmq.admin() as admin:
        (queue,) = admin.queues("Orders")
        producer.send(Message("Orders", b"old"))
        admin.set_offset("Billing", queue, 1)
        rocketmq.advance(hours=3)
        producer.send(Message("Orders", b"new"))
        rocketmq.advance(minutes=5)
    clock = FakeClock()
    clock.set(rocketmq.now_ms)
    monkeypatch.setattr(group_lag, "SystemClock", lambda: clock)
    for command in (("group", "lag", "Billing"), ("group", "lag", "--topic", "Orders")):
        (row,) = rows(rocketmq, *command)
        assert row["lag"] == 1
        assert 300 <= row["behindSeconds"] < 400, command
    (queue_row,) = rows(rocketmq, "group", "describe", "Billing")["queues"]
    assert 300 <= queue_row["behindSeconds"] < 400
