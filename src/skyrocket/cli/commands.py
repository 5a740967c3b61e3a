"""The commands, as `skyrocket --help` lists them; the module of each is loaded when it is called."""

import os
import sys
from importlib import import_module
from typing import Annotated, Any, Final, NamedTuple

import typer
from typer.core import TyperCommand, TyperGroup

from skyrocket import __version__
from skyrocket.cli.program.descriptors import escape_what_is_not_in_the_locale, open_missing_descriptors


class Entry(NamedTuple):
    """One command: where it is, and its line in the list."""

    module: str  # below skyrocket.cli
    name: str  # a function, or a Typer with verbs
    line: str


SERVERS, MESSAGES, OPERATE, DATA = "Servers", "Messages", "Operate a cluster", "Stores and pipelines"

COMMANDS: Final[dict[str, dict[str, Entry]]] = {
    SERVERS: {
        "standalone": Entry("standalone", "standalone", "A name server and brokers under one command."),
        "namesrv": Entry("nouns.namesrv", "namesrv", "Run a name server; its settings and values."),
        "broker": Entry("nouns.broker", "broker", "Run a broker; list brokers, their state and their upkeep."),
        "controller": Entry("nouns.controller", "controller", "Run a controller; masters and replicas of sets."),
        "console": Entry("console", "console", "A cluster in the browser."),
        "demo": Entry("demo", "demo", "A shop that sends orders, and a live report made by Spark."),
    },
    MESSAGES: {
        "produce": Entry("produce", "produce", "Send messages."),
        "consume": Entry("consume", "consume", "Show the messages of a topic."),
        "worker": Entry("worker", "worker", "Run the consumers of an application."),
        "msg": Entry("nouns.msg", "msg", "Find messages, follow a topic, hand one to a client."),
        "trace": Entry("nouns.trace", "trace", "What clients have told about a message."),
        "dlq": Entry("nouns.dlq", "dlq", "Dead letters: what consumer groups have given up."),
        "transactions": Entry("nouns.transactions", "transactions", "Transactions without an end."),
        "timers": Entry("nouns.timers", "timers", "Messages that wait for their time."),
    },
    OPERATE: {
        "doctor": Entry("nouns.doctor", "doctor", "What is wrong with a cluster, and why a group does not consume."),
        "cluster": Entry("nouns.cluster", "cluster", "Brokers and their rates, at a glance."),
        "topic": Entry("nouns.topic", "topic", "Topics: list, create, change, delete."),
        "group": Entry("nouns.group", "group", "Consumer groups: lag, members, offsets."),
        "reset": Entry("reset", "reset", "Move a group to a moment."),
        "config": Entry("nouns.config", "config", "Settings of running brokers."),
        "user": Entry("nouns.user", "user", "Users of brokers."),
        "acl": Entry("nouns.acl", "acl", "Rights of users."),
        "quota": Entry("nouns.quota", "quota", "How much accounts and namespaces may use."),
        "apply": Entry("nouns.apply", "apply", "Declared topics, groups, users and rights: plan, then apply."),
        "context": Entry("nouns.context", "context", "Named clusters, so that nobody types addresses."),
        "completion": Entry("completion", "completion", "Let your shell complete commands and options."),
        "mqadmin": Entry("mqadmin.command", "mqadmin", "RocketMQ's mqadmin: its names, options and tables."),
    },
    DATA: {
        "inspect": Entry("inspect", "inspect", "Show or verify a store directory."),
        "repair": Entry("repair", "repair", "Repair a store, with a plan."),
        "convert": Entry("repair", "convert", "A store whose tables are in RocksDB becomes one of files."),
        "pipeline": Entry("pipeline", "pipeline", "Pipelines and jobs on Spark."),
    },
}
_BY_NAME: Final = {name: entry for panel in COMMANDS.values() for name, entry in panel.items()}


def load(name: str) -> Any:
    """The command itself, as Typer runs it."""
    entry = _BY_NAME[name]
    found = getattr(import_module(f"skyrocket.cli.{entry.module}"), entry.name)
    if isinstance(found, typer.Typer):
        command = typer.main.get_group(found)
    else:
        alone = typer.Typer(add_completion=False, rich_markup_mode="rich")
        alone.command(name)(found)
        command = typer.main.get_command(alone)  # type: ignore[assignment]
    command.name = name
    return command


class LazyCommands(TyperGroup):
    """Knows names and lines of all commands, and loads the one that is called."""

    def __init__(self, **attributes: Any) -> None:
        super().__init__(**attributes)
        for panel, entries in COMMANDS.items():
            for name, entry in entries.items():
                self.add_command(TyperCommand(name, help=entry.line, rich_help_panel=panel))

    def resolve_command(self, ctx: Any, args: list[str]) -> Any:
        """The command that is called, loaded."""
        name, command, rest = super().resolve_command(ctx, args)
        return name, command if name is None else load(name), rest


app = typer.Typer(cls=LazyCommands, no_args_is_help=True, add_completion=False, rich_markup_mode="rich")


def _print_version(wanted: bool) -> None:
    if wanted:
        typer.echo(f"skyrocket {__version__}")
        raise typer.Exit


@app.callback()
def skyrocket(
    version: Annotated[
        bool, typer.Option("--version", callback=_print_version, is_eager=True, help="Print the version.")
    ] = False,
) -> None:
    """Skyrocket: RocketMQ in Python."""


def main() -> None:
    """Entry point of the `skyrocket` command."""
    open_missing_descriptors()
    escape_what_is_not_in_the_locale()
    if "_SKYROCKET_COMPLETE" in os.environ:  # the shell asks what could be typed
        from typer.completion import completion_init  # type: ignore[attr-defined]

        completion_init()
    sys.exit(app(prog_name="skyrocket"))
