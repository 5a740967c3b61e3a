"""`skyrocket topic`, and what all nouns share: forms of output, exit codes, --dry-run, --yes, contexts."""

import csv
import io
import json
from pathlib import Path

import pytest

from skyrocket.client import Message
from skyrocket.testing import LocalCluster
from tests.cluster.command_line import at, rows, skyrocket, well
from tests.ports import free_port

TWO = pytest.mark.rocketmq(brokers=2)


@TWO
@pytest.mark.requirement("B009")
def test_a_topic_is_created_listed_described_changed_and_deleted(rocketmq: LocalCluster) -> None:
    made = well(rocketmq, "topic", "create", "Orders", "--queues", "3", "--type", "fifo")
    assert "topic Orders is created at 2 brokers" in made
    (row,) = rows(rocketmq, "topic", "list", "Ord*")
    assert row == {
        "topic": "Orders",
        "type": "FIFO",
        "brokers": 2,
        "readQueues": 6,
        "writeQueues": 6,
        "permission": "RW",
        "ordered": False,
        "attributes": {"message.type": "FIFO"},
    }
    with rocketmq.producer() as producer:
        producer.send(Message("Orders", b"paid", sharding_key="a"))
    described = rows(rocketmq, "topic", "describe", "Orders")
    assert described["messages"] == 1
    assert sorted(described["brokers"]) == ["broker-a", "broker-b"]
    assert len(described["queues"]) == 6
    changed = well(rocketmq, "topic", "update", "Orders", "--perm", "R")
    assert "permission  6 → 4" in changed
    assert "read_queues" not in changed
    (row,) = rows(rocketmq, "topic", "list", "Orders")
    assert (row["permission"], row["readQueues"]) == ("R", 6)  # nothing but what was named
    refused = skyrocket(rocketmq, "topic", "delete", "Orders")
    assert refused.code == 2
    assert "1 message." in refused.errors
    assert "--yes does it without a question" in refused.errors
    assert "topic Orders is deleted" in well(rocketmq, "topic", "delete", "Orders", "--yes")
    gone = skyrocket(rocketmq, "topic", "describe", "Orders")
    assert gone.code == 4
    assert "no route for topic Orders" in gone.errors


def test_topics_that_brokers_name_after_themselves_are_the_systems(rocketmq: LocalCluster) -> None:
    rocketmq.create_topic("Orders", queues=1)
    assert [row["topic"] for row in rows(rocketmq, "topic", "list")] == ["Orders"]
    types = {row["topic"]: row["type"] for row in rows(rocketmq, "topic", "list", "--all")}
    assert {types[name] for name in ("DefaultCluster", "broker-a", "DefaultCluster_REPLY_TOPIC")} == {"SYSTEM"}
    assert rows(rocketmq, "topic", "describe", "broker-a")["type"] == "SYSTEM"


def test_a_dry_run_changes_nothing(rocketmq: LocalCluster) -> None:
    shown = well(rocketmq, "topic", "create", "Orders", "--dry-run")
    assert "read_queues   - → 8" in shown
    assert "nothing was changed: --dry-run" in shown
    assert rows(rocketmq, "topic", "list", "Orders") == []
    changes = rows(rocketmq, "topic", "create", "Orders", "--dry-run")
    assert {change["done"] for change in changes} == {False}


def test_a_topic_that_is_there_is_not_created_again(rocketmq: LocalCluster) -> None:
    rocketmq.create_topic("Orders", queues=2)
    again = skyrocket(rocketmq, "topic", "create", "Orders")
    assert again.code == 2
    assert "topic update Orders" in again.errors
    assert rows(rocketmq, "topic", "list", "Orders")[0]["readQueues"] == 2


def test_every_form_of_output_has_the_same_rows(rocketmq: LocalCluster) -> None:
    rocketmq.create_topic("Orders", queues=2)
    command = ("topic", "list", "Orders", "--output")
    heading, line = well(rocketmq, *command, "table").splitlines()
    assert heading.split() == ["TOPIC", "TYPE", "BROKERS", "READ", "WRITE", "PERM"]
    assert line.split() == ["Orders", "NORMAL", "1", "2", "2", "RW"]
    assert "ATTRIBUTES" in well(rocketmq, *command, "wide")
    as_json = json.loads(well(rocketmq, *command, "json"))
    as_lines = [json.loads(each) for each in well(rocketmq, *command, "jsonl").splitlines()]
    assert as_json == as_lines
    (as_csv,) = csv.DictReader(io.StringIO(well(rocketmq, *command, "csv")))
    assert as_csv["topic"] == "Orders"
    assert list(as_csv) == list(as_json[0])


def test_wrong_usage_is_2_and_what_is_not_there_4(rocketmq: LocalCluster) -> None:
    assert skyrocket(rocketmq, "topic", "create", "a b").code == 2
    assert skyrocket(rocketmq, "topic", "update", "Nowhere", "--perm", "X").code == 2
    assert skyrocket(rocketmq, "topic", "update", "Nowhere", "--perm", "R").code == 4
    cluster = skyrocket(rocketmq, "topic", "list", "--cluster", "Mars")
    assert cluster.code == 4
    assert "cluster Mars is not known; there are DefaultCluster" in cluster.errors
    assert skyrocket(rocketmq, "topic", "dance").code == 2


def test_a_name_server_that_is_away_or_is_none_fails_with_the_next_step(rocketmq: LocalCluster) -> None:
    away = at(f"127.0.0.1:{free_port()}", "topic", "list")
    assert away.code == 1
    assert "no name server answered" in away.errors
    broker = at(rocketmq.broker_addresses["broker-a"], "topic", "list")
    assert broker.code == 2
    assert "is not a name server" in broker.errors
    assert "9876" in broker.errors


@TWO
def test_when_some_brokers_are_away_the_others_answer_and_the_code_is_3(rocketmq: LocalCluster) -> None:
    rocketmq.create_topic("Orders", queues=2)
    away = f"127.0.0.1:{free_port()}"
    with rocketmq.admin() as admin:
        places = admin.brokers()
    assert len(places) == 2
    rocketmq.kill_broker("broker-b")
    done = skyrocket(rocketmq, "topic", "list", "Orders", "--output", "json")
    if done.code == 0:  # the name server has noticed already
        assert json.loads(done.output)[0]["brokers"] == 1
    else:
        assert done.code == 3
        assert "broker-b" in done.errors
        assert json.loads(done.output)[0]["brokers"] == 1
    assert away


def test_a_context_names_a_cluster_and_may_forbid_changes(
    rocketmq: LocalCluster, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    file = tmp_path / "contexts.yml"
    monkeypatch.setenv("SKYROCKET_CONTEXTS", str(file))
    monkeypatch.delenv("NAMESRV_ADDR", raising=False)

    def run(*arguments: str) -> tuple[int, str, str]:
        return at("", *arguments)

    address = rocketmq.name_server_address
    assert run("context", "set", "test", "--namesrv", address, "--read-only")[0] == 0
    assert file.stat().st_mode & 0o077 == 0
    assert json.loads(run("context", "list", "--output", "json")[1])[0]["current"] is True
    assert run("topic", "list", "--context", "test")[0] == 0
    code, _, errors = run("topic", "create", "Orders", "--context", "test")
    assert (code, "read-only" in errors) == (2, True)
    assert run("topic", "create", "Orders", "--context", "test", "--dry-run")[0] == 0
    assert run("produce", "Orders", "hello", "--context", "test")[0] == 2
    assert run("context", "set", "test", "--no-read-only")[0] == 0
    assert run("topic", "create", "Orders")[0] == 0  # the current one
    code, _, errors = run("topic", "list", "--context", "moon")
    assert (code, "there are test" in errors) == (2, True)
    # --context counts more than the environment, what was typed more than both
    assert at(f"127.0.0.1:{free_port()}", "topic", "list", "--context", "test").code == 0
    assert at(address, "topic", "list", "-n", f"127.0.0.1:{free_port()}", "--context", "test").code == 1
    file.write_text("contexts: {test: {nameserver: x}}")
    code, _, errors = run("topic", "list", "--context", "test")
    assert (code, "is not one of namesrv" in errors) == (2, True)


def test_a_name_that_could_command_a_terminal_is_shown_as_text(rocketmq: LocalCluster) -> None:
    evil = "x\x1b[2J\x9by"
    done = skyrocket(rocketmq, "topic", "describe", evil)
    assert done.code in (2, 4)
    assert "\x1b" not in done.errors
    assert "\x9b" not in done.errors
