"""`--watch`: the same look again and again, on a terminal in place of the last one."""

import itertools
import sys
import time
from collections.abc import Callable, Sequence
from typing import Annotated, Any, Final

import typer
from typer.core import TyperCommand

from skyrocket.cli.nouns.operator import Operator
from skyrocket.cli.program.exit_codes import EXIT_PARTLY

_USUAL_SECONDS: Final = "2"

WatchOption = Annotated[
    float | None,
    typer.Option(
        "--watch", "-w", min=0.2, help="Look again after 2 s, or so many seconds, until Ctrl-C.", show_default=False
    ),
]


class Watched(TyperCommand):
    """A command with --watch, whose seconds may be left out; Typer's options have a value always or never."""

    def parse_args(self, ctx: Any, args: list[str]) -> list[str]:
        return super().parse_args(ctx, with_seconds(args))


def with_seconds(arguments: Sequence[str]) -> list[str]:
    """The arguments with the usual seconds after a --watch that no number follows."""
    found = []
    for argument, following in itertools.zip_longest(arguments, arguments[1:], fillvalue=""):
        found.append(argument)
        if argument in ("--watch", "-w") and not following.replace(".", "", 1).isdecimal():
            found.append(_USUAL_SECONDS)
    return found


_HOME_AND_CLEAR: Final = "\033[H\033[J"


def repeat(look: Callable[[], None], seconds: float | None, operator: Operator) -> None:
    """Once, or until Ctrl-C; tables on a terminal are drawn over the last ones.

    Brokers that fail are named each time: what is shown is without them.
    """
    if seconds is None:
        look()
        return
    in_place = operator.output.is_for_people and sys.stdout.isatty()
    try:
        while True:
            if in_place:
                typer.echo(_HOME_AND_CLEAR, nl=False)
            operator.begin_anew()
            look()
            operator.name_failures()
            time.sleep(seconds)
    except KeyboardInterrupt:
        raise typer.Exit(EXIT_PARTLY if operator.failures else 0) from None
