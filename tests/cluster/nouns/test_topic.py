"""`skyrocket topic`, and what all nouns share: forms of output, exit codes, --dry-run, --yes, contexts."""

import asyncio
import csv
import io
import json
from pathlib import Path

import pytest

from skyrocket.cli.nouns.watching import with_seconds
from skyrocket.client import Message
from skyrocket.testing import LocalCluster
from tests.cluster.command_line import at, rows, skyrocket, well
from tests.cluster.namesrv import name_server_fixture
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
    assert "there is no topic Orders" in gone.errors


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


@pytest.mark.parametrize("noun", ["topic", "group"])
def test_a_dry_run_does_not_promise_a_name_that_cannot_be(rocketmq: LocalCluster, noun: str) -> None:
    done = skyrocket(rocketmq, noun, "create", "<script>", "--dry-run")
    assert (done.code, done.output) == (2, "")
    assert "only letters, digits and % | _ - are allowed" in done.errors


def test_what_is_to_be_deleted_and_is_not_there_is_not_to_be_created(rocketmq: LocalCluster) -> None:
    done = skyrocket(rocketmq, "topic", "delete", "Nope", "--yes")
    assert done.code == 4
    assert done.errors == "skyrocket topic delete: there is no topic Nope: `skyrocket topic list` has all\n"


def test_a_verb_that_is_not_there_is_answered_with_those_that_are(rocketmq: LocalCluster) -> None:
    words = " ".join(skyrocket(rocketmq, "topic", "show", "Orders").errors.replace("│", " ").split())
    assert "No such command 'show': there are list, describe, status, route, groups, create" in words
    words = " ".join(skyrocket(rocketmq, "broker", "lst").errors.replace("│", " ").split())
    assert "No such command 'lst'. Did you mean 'list'?" in words


async def test_who_asks_before_a_broker_is_there_is_told_to_wait_a_moment(tmp_path: Path) -> None:
    """As right after `skyrocket standalone`: its name server answers first."""
    async with name_server_fixture.running(tmp_path) as (_, names):
        done = await asyncio.to_thread(at, str(names), "topic", "list")
    assert done.code == 1
    assert f"no broker with a master is registered at {names}: start one" in done.errors
    assert "one that was started just now takes a moment" in done.errors


def test_contexts_say_when_there_are_none_and_when_the_environment_counts_more(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("XDG_CONFIG_HOME", str(tmp_path))
    nothing = at("h:1", "context", "list")
    assert (nothing.code, nothing.output) == (0, "")
    assert "`skyrocket context set NAME -n HOST:9876` makes one" in nothing.errors
    assert at("h:1", "context", "set", "prod", "-n", "h:9876").code == 0
    assert "NAMESRV_ADDR is set and counts more" in at("h:1", "context", "use", "prod").errors
    assert at("", "context", "use", "prod").errors == ""


@pytest.mark.parametrize(
    ("given", "taken"),
    [
        (["--watch"], ["--watch", "2"]),
        (["billing", "-w"], ["billing", "-w", "2"]),
        (["--watch", "billing"], ["--watch", "2", "billing"]),
        (["--watch", "0.5", "billing"], ["--watch", "0.5", "billing"]),
        (["--watch", "--output", "json"], ["--watch", "2", "--output", "json"]),
        (["--watch=3"], ["--watch=3"]),
        ([], []),
    ],
)
def test_the_seconds_of_a_watch_may_be_left_out(given: list[str], taken: list[str]) -> None:
    assert with_seconds(given) == taken
