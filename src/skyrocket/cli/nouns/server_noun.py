"""A noun that is also a server: `skyrocket broker` runs one, `skyrocket broker list` asks those that run."""

import inspect
from collections.abc import Callable
from typing import Any

import typer

from skyrocket.cli.program.options import with_parameters
from skyrocket.cli.program.usage import VerbGroup


def server_noun(run_server: Callable[..., None]) -> typer.Typer:
    """A noun with the options of its server; without a verb the server runs."""
    noun = typer.Typer(cls=VerbGroup, rich_markup_mode="rich", subcommand_metavar="[VERB [ARGS]...]")
    parameters = list(inspect.signature(run_server).parameters.values())
    context = inspect.Parameter("ctx", inspect.Parameter.KEYWORD_ONLY, annotation=typer.Context)

    def called(ctx: typer.Context, **given: Any) -> None:
        if ctx.invoked_subcommand is None:
            run_server(**given)

    noun.callback(invoke_without_command=True)(with_parameters(called, run_server, [*parameters, context]))
    return noun
