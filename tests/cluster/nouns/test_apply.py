"""`skyrocket apply`, completion, and the list of commands."""

import os
import subprocess
import sys
from pathlib import Path

import pytest

from skyrocket.cli.commands import COMMANDS, load
from skyrocket.client import BrokerPlace
from skyrocket.client.admin.topic_admin import TopicAdmin
from skyrocket.model.topic_config import TopicConfig
from skyrocket.testing import LocalCluster
from tests.cluster.command_line import rows, skyrocket, well

DECLARED = """
topics:
  Orders: {queues: 3, type: fifo}
  Audit: {read_queues: 2, write_queues: 2, perm: R}
groups:
  Billing: {retry_max_times: 3, consumes_orderly: true}
settings:
  waitTimeMillsInSendQueue: 300
"""


def test_a_file_is_planned_and_applied_and_then_nothing_is_left_to_do(rocketmq: LocalCluster, tmp_path: Path) -> None:
    file = tmp_path / "cluster.yml"
    file.write_text(DECLARED)
    planned = well(rocketmq, "apply", "-f", str(file), "--dry-run")
    assert "topic Orders at broker-a" in planned
    assert "waitTimeMillsInSendQueue  200 → 300" in planned
    assert rows(rocketmq, "topic", "list", "Orders") == []
    assert "applied" in well(rocketmq, "apply", "-f", str(file))
    assert rows(rocketmq, "topic", "list", "Orders")[0]["type"] == "FIFO"
    assert rows(rocketmq, "topic", "list", "Audit")[0]["permission"] == "R"
    assert rows(rocketmq, "group", "list", "Billing")[0]["retryMaxTimes"] == 3
    assert "nothing is to be changed" in well(rocketmq, "apply", "-f", str(file))
    file.write_text(DECLARED.replace("queues: 3", "queues: 4"))
    changed = well(rocketmq, "apply", "-f", str(file))
    assert "read_queues   3 → 4" in changed
    assert "group" not in changed


@pytest.mark.parametrize(
    ("text", "reason"),
    [
        ("queues: {}", "queues is not one of topics, groups"),
        ("topics: {Orders: {queue: 3}}", "topic Orders has 'queue'"),
        ("topics: {Orders: {queues: 0}}", "not a number from 1 to 65536"),
        ("groups: {Billing: {colour: red}}", "group Billing: colour is not a field of a group"),
        ("users: {alice: {}}", "password_env must name a variable"),
        ("rights: [{subject: alice}]", "subject, resources and actions must be said"),
        ("topics: [", ", line 1 is not YAML: expected the node content"),
        ("topics: {Orders: {type: WEIRD}}", "topic Orders: WEIRD is no type of a topic: choose of UNSPECIFIED"),
        ("groups: {Billing: {retry_max_times: -5}}", "group Billing: retry_max_times=-5 is not a number from 0 to"),
        ("groups: {Billing: {retry_max_times: 2147483648}}", "retry_max_times=2147483648 is not a number from 0 to"),
        ("1: {}", "1 is not one of topics, groups"),
        ("topics: {Orders: {queues: true}}", "read_queues is True, not a number from 1 to 65536"),
        ("topics: {Orders: {queues: 65537}}", "read_queues is 65537, not a number from 1 to 65536"),
        ("topics: {Orders: {ordered: 'no'}}", "topic Orders: ordered is 'no', neither true nor false"),
        ("users: {bob: {password_env: PATH, super: 'false'}}", "user bob: super is 'false', neither true nor false"),
        (
            "rights: [{subject: bob, resources: ['Topic:A'], actions: [Pub], form: [10.0.0.1]}]",
            "right of bob has 'form', not one of subject, resources, actions, from, decision",
        ),
        (
            "rights: [{subject: bob, resources: ['Topic:A'], actions: [Pub], decision: forbid}]",
            "right of bob: decision is 'forbid', neither Allow nor Deny",
        ),
        ("rights: [{subject: u, resources: ['Thing:T'], actions: [Pub]}]", "right of u: resource 'Thing:T' is neither"),
        ("rights: [{subject: u, resources: ['Topic:T'], actions: [Fly]}]", "right of u: Fly is no action: choose of"),
        (
            "topics: [{name: Orders, queues: 4}]",
            "topics is [{'name': 'Orders', 'queues': 4}], not names with their values",
        ),
        ("settings: {deleteWhen: 2026-13-45}", "is not YAML: month must be in 1..12"),
        ("topics: {Orders: 4}", "topics.Orders is 4, not names with their values"),
        ("topics: {Orders: {attributes: [x]}}", "topics.Orders.attributes is ['x'], not names with their values"),
        ("settings: [x]", "settings is ['x'], not names with their values"),
        ("rights: {subject: u}", "rights is {'subject': 'u'}, not a list"),
        ("rights: [{subject: u, resources: T, actions: [Pub]}]", "right of u: resources is 'T', not a list"),
        (
            "rights: [{subject: u, resources: ['Topic:T', 'topic:T'], actions: [Pub]}]",
            "right of User:u for Topic:T is declared 2 times: brokers keep one of each",
        ),
    ],
)
def test_a_wrong_file_is_refused_with_the_place(rocketmq: LocalCluster, tmp_path: Path, text: str, reason: str) -> None:
    file = tmp_path / "cluster.yml"
    file.write_text(text)
    done = skyrocket(rocketmq, "apply", "-f", str(file))
    assert done.code == 2
    assert reason in done.errors


def test_what_could_be_lost_or_has_no_effect_is_asked_for_as_by_the_other_commands(
    rocketmq: LocalCluster, tmp_path: Path
) -> None:
    file = tmp_path / "cluster.yml"
    file.write_text("topics: {Orders: {queues: 4}}")
    well(rocketmq, "apply", "-f", str(file))
    file.write_text("topics: {Orders: {queues: 2}}\nsettings: {nonsense: 1}")
    done = skyrocket(rocketmq, "apply", "-f", str(file))
    assert done.code == 2
    assert "Fewer read queues for Orders: messages of the others are not consumed." in done.errors
    assert "Brokers do not show nonsense among their settings. Do it?" in done.errors
    assert rows(rocketmq, "topic", "list", "Orders")[0]["readQueues"] == 4
    file.write_text("topics: {Orders: {queues: 2}}")
    well(rocketmq, "apply", "-f", str(file), "--yes")
    assert rows(rocketmq, "topic", "list", "Orders")[0]["readQueues"] == 2
    assert rows(rocketmq, "apply", "-f", str(file)) == [], "nothing to be changed is JSON, too"


@pytest.mark.parametrize("verb", ["create", "update", "apply"])
def test_attributes_that_a_broker_forgets_are_not_claimed(
    rocketmq: LocalCluster, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, verb: str
) -> None:
    """RocketMQ 4.x takes them without a word; everything else is done."""
    put = TopicAdmin._put_topic

    async def put_without(self: TopicAdmin, place: BrokerPlace, config: TopicConfig, _: object) -> None:
        await put(self, place, config, {})

    file = tmp_path / "cluster.yml"
    file.write_text("topics:\n  Orders: {queues: 3, type: FIFO}\ngroups:\n  Billing: {retry_max_times: 3}\n")
    if verb == "update":
        rocketmq.create_topic("Orders", queues=2)
    monkeypatch.setattr(TopicAdmin, "_put_topic", put_without)
    given = (
        ("apply", "-f", str(file)) if verb == "apply" else ("topic", verb, "Orders", "--queues", "3", "--type", "fifo")
    )
    done = skyrocket(rocketmq, *given)
    assert done.code == 1, done.output
    said = " ".join(done.errors.split())
    assert "topic Orders is at broker-a" in said
    assert "but without message.type: that broker keeps no attributes" in said
    assert rows(rocketmq, "topic", "list", "Orders")[0]["readQueues"] == 3
    assert [row["group"] for row in rows(rocketmq, "group", "list", "Bill*")] == (
        ["Billing"] if verb == "apply" else []
    )


def test_every_command_of_the_list_loads() -> None:
    for panel in COMMANDS.values():
        for name in panel:
            assert load(name).name == name


@pytest.mark.parametrize(
    ("line", "completed"),
    [
        ("skyrocket topic de", ["describe", "delete"]),
        ("skyrocket mqadmin updateTopic", ["updateTopic", "updateTopicList", "updateTopicPerm"]),
    ],
)
def test_a_shell_completes_verbs(line: str, completed: list[str]) -> None:
    asked = {
        "_SKYROCKET_COMPLETE": "complete_bash",
        "_TYPER_COMPLETE_ARGS": line,
        "COMP_WORDS": line,
        "COMP_CWORD": "2",
    }
    done = subprocess.run(
        [sys.executable, "-m", "skyrocket"], env={**os.environ, **asked}, capture_output=True, text=True, timeout=60
    )
    assert done.stdout.split() == completed
    script = subprocess.run(
        [sys.executable, "-m", "skyrocket", "completion", "zsh"], capture_output=True, text=True, timeout=60
    )
    assert "#compdef skyrocket" in script.stdout


def test_the_list_of_commands_loads_none_of_them() -> None:
    program = (
        "import sys; from skyrocket.cli.commands import app; "
        "print([m for m in sys.modules if m.startswith('skyrocket.') and not m.startswith('skyrocket.cli')])"
    )
    assert subprocess.check_output([sys.executable, "-c", program], text=True).strip() == "[]"
