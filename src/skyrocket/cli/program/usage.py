"""Wrong usage, as Typer tells it; and groups of commands that answer it with what there is."""

from typing import Any, Final

import typer
from typer.core import TyperGroup

WRONG_USAGE: Final[type[Any]] = typer.BadParameter.__bases__[0]  # typer does not export it by its name


class VerbGroup(TyperGroup):
    """A noun. A verb that it does not have, and that resembles none, is answered with those that it has."""

    def resolve_command(self, ctx: Any, args: list[str]) -> Any:
        try:
            return super().resolve_command(ctx, args)
        except WRONG_USAGE as error:
            if "Did you mean" not in error.message:
                error.message = f"{error.message.rstrip('.')}: there are {', '.join(self.commands)}."
            raise
