"""Two operators at once: each changes what he has named, whatever the other changes between look and yes."""

import pytest

from skyrocket.client import NotFound
from skyrocket.testing import LocalCluster
from tests.cluster.command_line import rows


def test_a_topic_keeps_what_was_changed_after_the_plan(rocketmq: LocalCluster) -> None:
    rocketmq.create_topic("Orders", queues=4)
    with rocketmq.admin() as first, rocketmq.admin() as second:
        planned = first.topic_changes("Orders", read_queues=2)  # and then a question is asked
        second.apply_topic_changes(second.topic_changes("Orders", permission=4, attributes={"message.type": "FIFO"}))
        first.apply_topic_changes(planned)
        (row,) = rows(rocketmq, "topic", "list", "Orders")
        assert (row["permission"], row["type"]) == ("R", "FIFO")
        assert (row["readQueues"], row["writeQueues"]) == (2, 4)
        planned = first.topic_changes("Orders", permission=6)
        second.delete_topic("Orders")
        with pytest.raises(NotFound):  # what was deleted does not come again
            first.apply_topic_changes(planned)


def test_a_group_keeps_what_was_changed_after_the_plan(rocketmq: LocalCluster) -> None:
    rocketmq.create_group("Billing")
    with rocketmq.admin() as first, rocketmq.admin() as second:
        planned = first.group_changes("Billing", {"may_consume": False})
        second.apply_group_changes(second.group_changes("Billing", {"retry_max_times": 3}))
        first.apply_group_changes(planned)
    (row,) = rows(rocketmq, "group", "list", "Billing")
    assert (row["consumes"], row["retryMaxTimes"]) == (False, 3)
