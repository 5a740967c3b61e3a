"""`--watch`: the same look again and again, on a terminal in place of the last one."""

import sys
import time
from collections.abc import Callable
from typing import Annotated, Final

import typer

from skyrocket.cli.output.rows import Output

WatchOption = Annotated[
    float | None,
    typer.Option("--watch", "-w", min=0.2, help="Look again after so many seconds, until Ctrl-C.", show_default=False),
]

_HOME_AND_CLEAR: Final = "\033[H\033[J"


def repeat(look: Callable[[], None], seconds: float | None, output: Output) -> None:
    """Once, or until Ctrl-C; tables on a terminal are drawn over the last ones."""
    if seconds is None:
        look()
        return
    in_place = output.is_for_people and sys.stdout.isatty()
    try:
        while True:
            if in_place:
                typer.echo(_HOME_AND_CLEAR, nl=False)
            look()
            time.sleep(seconds)
    except KeyboardInterrupt:
        return
