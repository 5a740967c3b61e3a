"""The commands, as `skyrocket --help` lists them."""

import sys
from typing import Annotated

import typer

from skyrocket import __version__
from skyrocket.cli.broker import broker
from skyrocket.cli.consume import consume
from skyrocket.cli.controller import controller
from skyrocket.cli.demo import demo
from skyrocket.cli.dlq import dlq
from skyrocket.cli.inspect import inspect
from skyrocket.cli.namesrv import namesrv
from skyrocket.cli.pipeline import pipeline
from skyrocket.cli.produce import produce
from skyrocket.cli.repair import convert, repair
from skyrocket.cli.reset import reset
from skyrocket.cli.standalone import standalone
from skyrocket.cli.timers import timers
from skyrocket.cli.transactions import transactions
from skyrocket.cli.worker import worker

app = typer.Typer(no_args_is_help=True, add_completion=False, rich_markup_mode="rich")


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


_COMMANDS = (
    inspect,
    repair,
    convert,
    namesrv,
    controller,
    broker,
    standalone,
    produce,
    consume,
    worker,
    reset,
    demo,
)
for _command in _COMMANDS:
    app.command()(_command)
app.add_typer(dlq, name="dlq")
app.add_typer(pipeline, name="pipeline")
app.add_typer(transactions, name="transactions")
app.add_typer(timers, name="timers")


def main() -> None:
    """Entry point of the `skyrocket` command."""
    sys.exit(app())
