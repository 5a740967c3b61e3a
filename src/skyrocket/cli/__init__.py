"""The command line: a module per command, what they share beside them; `commands` is the list.

Nobody but `python -m skyrocket` and the installed `skyrocket` imports this.
"""

from skyrocket.cli.commands import app, main

__all__ = ["app", "main"]
