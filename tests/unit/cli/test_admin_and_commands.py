"""Admin in Python can do whatever the command line can, and the command line whatever operators want of Admin."""

import ast
import inspect
from collections.abc import Iterator
from typing import Final

from skyrocket.client import Admin
from tests import ROOT

CLI: Final = ROOT / "src" / "skyrocket" / "cli"
OPERATORS: Final = ("nouns", "mqadmin")  # the commands of operators; others run servers

# What no command calls itself, with what an operator has instead.
NOT_CALLED: Final = {
    "client_offsets": "`group client` shows where a member is, of what it tells itself",
    "cluster_at": "`doctor` compares what name servers know",
    "committed": "`group lag GROUP --topic TOPIC` has it for each queue",
    "controller_addresses": "the verbs of `controller` are given its address",
    "copy_messages": "`msg copy` goes on from a place that it keeps",
    "count_between": "`msg copy` counts what it shows of the places",
    "create_group": "`group create` looks where it is missing, and applies changes there",
    "each_dead_letter": "`dlq list` shows as many as are asked for",
    "earliest_time": "`broker list` has the age of the oldest message; `msg at` shows any queue's first",
    "groups": "`group list` shows what `group_table` has of each broker",
    "message_by_offset_id": "`msg get` takes both kinds of ids",
    "messages_between": "`msg copy` reads from a place that it keeps",
    "put_topic": "`topic create` looks where it is missing, and applies changes there",
    "set_offset": "`reset --queue` moves a queue, of a running group too",
    "time_spans": "`group lag` has lag in time",
    "topic_config": "`topic describe` shows what `topic_configs` tells of all brokers",
    "start": "commands open and close their own",
    "stop": "commands open and close their own",
}


def methods() -> set[str]:
    found = inspect.getmembers(Admin, inspect.isroutine)
    return {name for name, _ in found if not name.startswith("_")}


def trees(*folders: str) -> Iterator[tuple[str, ast.Module]]:
    for folder in folders or (".",):
        for path in sorted((CLI / folder).rglob("*.py")):
            yield str(path.relative_to(CLI)), ast.parse(path.read_text(encoding="utf-8"))


def of_admins(tree: ast.Module) -> Iterator[str]:
    """Each x of `admin.x` and `self._admin.x`."""
    for node in ast.walk(tree):
        if isinstance(node, ast.Attribute):
            owner = node.value
            name = owner.id if isinstance(owner, ast.Name) else owner.attr if isinstance(owner, ast.Attribute) else ""
            if name.strip("_") == "admin":
                yield node.attr


def test_every_method_of_admin_is_behind_a_command_or_says_what_is_there_instead() -> None:
    called = {name for _, tree in trees() for name in of_admins(tree)} & methods()
    assert sorted(methods() - called) == sorted(NOT_CALLED)


def test_commands_of_operators_ask_brokers_through_admin_alone() -> None:
    around = [
        (file, node.module)
        for file, tree in trees(*OPERATORS)
        for node in ast.walk(tree)
        if isinstance(node, ast.ImportFrom)
        and (node.module or "").startswith(("skyrocket.protocol.requests", "skyrocket.remoting.client"))
    ]
    private = [(file, name) for file, tree in trees() for name in of_admins(tree) if name.startswith("_")]
    assert around + private == []
