"""`skyrocket apply` with users and rights: what each broker has is compared, and what differs is shown and changed."""

from pathlib import Path

import pytest

from skyrocket.testing import LocalCluster
from tests.cluster.command_line import rows, well
from tests.cluster.nouns.test_nouns import USERS

ACCOUNT = ("--access-key", "root", "--secret-key", "secret-1")
DECLARED = """
users:
  alice: {password_env: ALICE, super: %s}
rights:
  - {subject: alice, resources: ["topic:Orders"], actions: [sub, Pub]}
  - {subject: "user:alice", resources: ["Group:*"], actions: [Sub], from: [10.0.0.0/8, 127.0.0.1]}
"""


@pytest.fixture
def file(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("ALICE", "secret-3")
    file = tmp_path / "cluster.yml"
    file.write_text(DECLARED % "false")
    return file


def applied(rocketmq: LocalCluster, file: Path) -> str:
    return " ".join(well(rocketmq, "apply", "-f", str(file), *ACCOUNT).split())


@USERS
def test_a_second_time_changes_nothing_however_words_are_written(rocketmq: LocalCluster, file: Path) -> None:
    first = applied(rocketmq, file)
    assert "type - → Normal" in first
    assert "Topic:Orders - → Allow Sub,Pub" in first
    assert "nothing is to be changed" in applied(rocketmq, file)


@USERS
def test_what_is_there_and_differs_is_shown_and_changed(rocketmq: LocalCluster, file: Path) -> None:
    applied(rocketmq, file)
    file.write_text(DECLARED.replace("sub, Pub", "Pub") % "true")
    changed = applied(rocketmq, file)
    assert "type Normal → Super" in changed
    assert "Topic:Orders Allow Sub,Pub → Allow Pub" in changed
    assert rows(rocketmq, "user", "show", "alice", *ACCOUNT)[0]["type"] == "Super"
    file.write_text("users:\n  alice: {password_env: ALICE}\n")  # what is not said stays
    assert "nothing is to be changed" in applied(rocketmq, file)


@pytest.mark.rocketmq(brokers=2, **USERS.kwargs)
def test_a_user_and_a_right_that_one_broker_has_are_given_to_the_other(rocketmq: LocalCluster, file: Path) -> None:
    of_one = ("--broker", "broker-a", *ACCOUNT)
    well(rocketmq, "user", "create", "alice", "--password", "secret-3", *of_one)
    well(rocketmq, "acl", "grant", "alice", "Topic:Orders", "--actions", "Pub,Sub", *of_one)
    changed = applied(rocketmq, file)
    assert changed.count("type - → Normal") == 1
    assert changed.count("Topic:Orders - → Allow") == 1
    assert "nothing is to be changed" in applied(rocketmq, file)
    assert len(rows(rocketmq, "user", "show", "alice", *ACCOUNT)[0]["brokers"]) == 2
