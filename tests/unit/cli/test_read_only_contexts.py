"""A read-only context: what changes a cluster is refused, before anybody is asked; also by RocketMQ's names."""

from pathlib import Path

import pytest

from skyrocket.cli.mqadmin.commands import COMMANDS
from skyrocket.cli.mqadmin.options import parse
from skyrocket.cli.mqadmin.read_only import READING, changes_something
from tests.cluster.command_line import at

LOOKS = ("get", "list", "query", "print", "export", "topic", "consumer", "producer", "cluster", "broker", "stats", "ha")


def test_what_only_looks_is_a_name_and_sounds_like_it() -> None:
    assert COMMANDS.keys() > READING
    odd = {name for name in READING if not name.startswith(LOOKS)}
    assert odd == {
        "allocateMQ",
        "startMonitoring",
        "checkRocksdbCqWriteProgress",
        "consumeMessage",
        "dumpCompactionLog",
    }
    verbs = ("update", "delete", "create", "remove", "set", "reset", "clean", "copy", "send", "wipe", "elect", "skip")
    assert [name for name in READING if name.startswith(verbs)] == []


@pytest.mark.parametrize(
    ("line", "changes"),
    [
        ("queryMsgById -t T -i X", False),
        ("queryMsgById -t T -i X -s true", True),
        ("queryMsgById -t T -i X -s false", False),
        ("queryMsgByUniqueKey -t T -i X -g G -d C", True),
        ("updateOrderConf -t T -m get", False),
        ("updateOrderConf -t T -m put -v a:1", True),
        ("clusterRT", True),
    ],
)
def test_options_decide_where_a_name_does_both(line: str, changes: bool) -> None:
    name, *words = line.split()
    assert changes_something(name, parse(name, words)) is changes


@pytest.mark.parametrize(
    ("line", "refused"),
    [
        ("mqadmin deleteTopic -t Orders -c DefaultCluster", True),
        ("mqadmin topicList", False),
        ("topic delete Orders --yes", True),
        ("topic list", False),
        ("consume Orders --group Billing", True),
        ("consume Orders --group Billing --no-commit", False),
        ("msg tail Orders --group Billing", True),
        ("consume Orders", False),
        ("reset --group Billing --topic Orders --to earliest", True),
        ("reset --group Billing --topic Orders --to earliest --dry-run", False),
    ],
)
def test_a_read_only_context_refuses_what_changes_something(tmp_path: Path, line: str, refused: bool) -> None:
    contexts = tmp_path / "contexts.yml"
    contexts.write_text("current: prod\ncontexts:\n  prod: {namesrv: '127.0.0.1:1', read_only: true}\n")
    done = at("", *line.split(), SKYROCKET_CONTEXTS=str(contexts))
    assert done.code == (2 if refused else 1)
    assert ("the context is marked read-only" if refused else "127.0.0.1:1") in done.errors
