"""Commands in the form that scripts read, and the names by which commands speak of themselves."""

import csv
import json
from pathlib import Path

import pytest

from skyrocket.client import Message
from skyrocket.testing import LocalCluster
from tests.cluster.command_line import at


def test_a_reset_is_shown_in_every_form(rocketmq: LocalCluster) -> None:
    rocketmq.create_topic("Orders", queues=1)
    rocketmq.create_group("Billing")
    with rocketmq.producer() as producer:
        producer.send(Message("Orders", b"1"))
    names = rocketmq.name_server_address
    line = ("reset", "--group", "Billing", "--topic", "Orders", "--to", "latest", "--dry-run")
    forms = {form: at(names, *line, "--output", form).output for form in ("table", "json", "jsonl", "csv")}
    rows = json.loads(forms["json"])
    assert [(row["broker"], row["queueId"], row["skipped"], row["done"]) for row in rows] == [("broker-a", 0, 1, False)]
    assert [json.loads(each) for each in forms["jsonl"].splitlines()] == rows
    assert at(names, *line, "--json").output == forms["jsonl"], "its old name"
    assert [row["target"] for row in csv.DictReader(forms["csv"].splitlines())] == ["1"]
    assert forms["table"].split()[:4] == ["BROKER", "QUEUE", "COMMITTED", "TARGET"]
    both = at(names, *line, "--json", "--output", "csv")
    assert (both.code, "give one of them" in both.errors) == (2, True)


@pytest.mark.parametrize("command", ["produce", "msg send"])
def test_a_send_that_fails_names_the_command_that_was_typed(command: str, rocketmq: LocalCluster) -> None:
    done = at(rocketmq.name_server_address, *command.split(), "SCHEDULE_TOPIC_XXXX", "body")
    assert done.code != 0
    assert done.errors.startswith(f"skyrocket {command}: ")


@pytest.mark.parametrize("command", ["consume", "msg print", "msg tail"])
def test_a_reader_that_fails_names_the_command_that_was_typed(command: str, rocketmq: LocalCluster) -> None:
    done = at(rocketmq.name_server_address, *command.split(), "Nowhere")
    assert done.code == 4
    assert done.errors.startswith(f"skyrocket {command}: ")


def test_changes_of_contexts_are_told_to_scripts_without_the_secret(tmp_path: Path) -> None:
    def rows(*arguments: str) -> list[tuple[str, str, str | bool | None, str | bool | None]]:
        done = at("", "context", *arguments, "--output", "json", SKYROCKET_CONTEXTS=str(tmp_path / "contexts.yml"))
        assert done.code == 0, done.errors
        assert "hidden" not in done.output
        return [(row["what"], row["field"], row["before"], row["after"]) for row in json.loads(done.output)]

    made = rows("set", "prod", "-n", "a:9876", "--access-key", "ops", "--secret-key", "hidden")
    assert made == [
        ("context prod", "namesrv", None, "a:9876"),
        ("context prod", "access_key", None, "ops"),
        ("context prod", "secret_key", None, "***"),
    ]
    files = rows("set", "prod", "--tls", "--tls-ca", "ca.pem", "--tls-cert", "me.pem", "--tls-key", "/keys/me.key")
    assert files == [
        ("context prod", "tls", None, True),
        ("context prod", "tls_ca", None, str(Path.cwd() / "ca.pem")),
        ("context prod", "tls_cert", None, str(Path.cwd() / "me.pem")),
        ("context prod", "tls_key", None, "/keys/me.key"),
    ], "a context is used in any directory"
    rows("set", "test", "-n", "b:9876")
    assert rows("use", "test") == [("contexts", "current", "prod", "test")]
    assert rows("use", "test") == []
    assert rows("delete", "test") == [("context test", "namesrv", "b:9876", None)]


def _keys(value: object) -> set[str]:
    if isinstance(value, dict):
        return set(value) | {key for each in value.values() for key in _keys(each)}
    return {key for each in value for key in _keys(each)} if isinstance(value, list) else set()


def test_objects_for_scripts_have_keys_of_one_kind(rocketmq: LocalCluster, tmp_path: Path) -> None:
    rocketmq.create_topic("Orders", queues=1)
    rocketmq.create_group("Billing")
    names, contexts = rocketmq.name_server_address, str(tmp_path / "contexts.yml")
    at("", "context", "set", "prod", "-n", "a:9876", "--read-only", SKYROCKET_CONTEXTS=contexts)
    for done in (
        at(names, "topic", "describe", "Orders", "--output", "json"),
        at(names, "group", "describe", "Billing", "--output", "json"),
        at("", "context", "show", "prod", "--output", "json", SKYROCKET_CONTEXTS=contexts),
    ):
        assert done.code == 0, done.errors
        assert {key for key in _keys(json.loads(done.output)) if "_" in key} == set()


def test_json_lines_without_rows_say_so_beside_them(rocketmq: LocalCluster) -> None:
    done = at(rocketmq.name_server_address, "group", "lag", "--output", "jsonl")
    assert (done.code, done.output, done.errors) == (0, "", "no lag is known\n")
