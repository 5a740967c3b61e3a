"""Standard output of commands, and what becomes of it when nobody takes it."""

import os
import sys

import typer

from skyrocket.errors import SkyrocketError


class OutputNotTaken(SkyrocketError):
    """Standard output goes to a file that cannot be written."""


def write(text: str) -> None:
    """To standard output, at once; a reader that has gone away, as `head`, ends it quietly. Raises OutputNotTaken."""
    try:
        typer.echo(text, nl=False)
        sys.stdout.flush()
    except BrokenPipeError:
        drop_output()
        raise typer.Exit(0) from None
    except OSError as error:
        drop_output()
        raise OutputNotTaken(f"standard output cannot be written: {error.strerror}") from error


def drop_output() -> None:
    """What is still to be written is not: the interpreter's end would try it again and fail."""
    os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
