"""`skyrocket completion`: a script that lets a shell complete commands, verbs and options."""

from enum import Enum
from typing import Annotated

import typer


class Shell(Enum):
    """Those that it knows."""

    BASH = "bash"
    ZSH = "zsh"
    FISH = "fish"


def completion(shell: Annotated[Shell, typer.Argument(help="Your shell.", show_default=False)]) -> None:
    """Print a script for a shell: `source <(skyrocket completion bash)`, best in ~/.bashrc.

    zsh: the same in ~/.zshrc; fish: `skyrocket completion fish > ~/.config/fish/completions/skyrocket.fish`.
    """
    from typer.completion import get_completion_script  # type: ignore[attr-defined]

    typer.echo(get_completion_script(prog_name="skyrocket", complete_var="_SKYROCKET_COMPLETE", shell=shell.value))
