"""`skyrocket quota` and what Admin does behind it."""

import pytest

from skyrocket.client import ClientError, Message, NotFound, WrongUse
from skyrocket.testing import LocalCluster
from tests.cluster.command_line import rows, skyrocket, well


@pytest.mark.requirement("D035")
def test_quotas_are_set_listed_with_their_use_and_removed(rocketmq: LocalCluster) -> None:
    assert rows(rocketmq, "quota", "list") == []
    said = well(rocketmq, "quota", "set", "--of-namespace", "shop", "topics=5", "sendMessagesPerSecond=100")
    assert "topics                 - → 5" in said
    rocketmq.create_topic("shop%Orders", queues=1)
    listed = rows(rocketmq, "quota", "list")
    assert [(row["subject"], row["name"], row["quota"], row["limit"]) for row in listed] == [
        ("namespace", "shop", "topics", 5),
        ("namespace", "shop", "sendMessagesPerSecond", 100),
    ]
    assert listed[0]["used"] == 1
    only_said = well(rocketmq, "quota", "set", "--of-namespace", "shop", "topics=none", "--dry-run")
    assert "nothing was changed: --dry-run" in only_said
    well(rocketmq, "quota", "set", "--of-namespace", "shop", "topics=none")
    assert [row["quota"] for row in rows(rocketmq, "quota", "list")] == ["sendMessagesPerSecond"]
    well(rocketmq, "quota", "remove", "--of-namespace", "shop")
    assert rows(rocketmq, "quota", "list") == []
    assert skyrocket(rocketmq, "quota", "remove", "--of-namespace", "shop").code == 4


def test_wrong_quotas_are_refused_before_anything_is_asked(rocketmq: LocalCluster) -> None:
    for arguments, words in (
        (("topics=5",), "name either --account or --of-namespace"),
        (("--account", "a", "--of-namespace", "b", "topics=5"), "name either --account or --of-namespace"),
        (("--of-namespace", "a", "connections=5"), "connections is counted for each account, not for each namespace"),
        (("--account", "a", "connections=many"), "write a whole number, or none"),
        (("--account", "a", "connections=" + "9" * 5000), "write a whole number, or none"),
        (("--account", "a", "connections"), "'connections' is not KEY=VALUE"),
        (("--account", "a", "connections=0"), "it must be 1 or more"),
    ):
        done = skyrocket(rocketmq, "quota", "set", *arguments)
        assert done.code == 2
        assert words in " ".join(done.errors.split())
    with rocketmq.admin() as admin:
        with pytest.raises(WrongUse, match="name at least one limit"):
            admin.set_quota({}, account="alice")
        with pytest.raises(NotFound, match="account alice has no quota of its own"):
            admin.remove_quota(account="alice")


def test_our_producer_goes_on_when_its_quota_allows_it_again(rocketmq: LocalCluster) -> None:
    rocketmq.create_topic("Orders", queues=1)
    with rocketmq.admin() as admin:
        admin.set_quota({"sendMessagesPerSecond": 5, "connections": 100}, account="*")
    with rocketmq.producer() as producer:
        sent = 0
        while sent < 8:
            try:
                producer.send(Message("Orders", b"x"))
                sent += 1
            except ClientError as error:  # what a client reports after its own retries
                assert "[QUOTA] account anonymous: 5 messages/s" in str(error)  # noqa: PT017
                assert "(`skyrocket quota list` shows what is used of it)" in str(error)  # noqa: PT017
                assert "overloaded" not in str(error)  # noqa: PT017
    assert len(rocketmq.messages("Orders")) == 8
