"""Options of `produce` and `consume`, apart from what they do: --help needs only these."""

from dataclasses import dataclass
from enum import StrEnum
from typing import Annotated

import typer

_SENDING = "Sending"


class Format(StrEnum):
    """The choices of `consume --format`."""

    TEXT = "text"
    JSON = "json"
    BODY = "body"
    TABLE = "table"


class Receipts(StrEnum):
    """The choices of --receipts."""

    TEXT = "text"
    JSON = "json"
    NONE = "none"


@dataclass(frozen=True)
class SendingOptions:
    """How messages are sent, and what is said about each."""

    group: Annotated[str, typer.Option("--group", help="Producer group.", rich_help_panel=_SENDING)] = (
        "skyrocket_produce"
    )
    in_flight: Annotated[
        int, typer.Option("--in-flight", min=1, help="Sends under way at once.", rich_help_panel=_SENDING)
    ] = 32
    batch: Annotated[
        bool, typer.Option("--batch", help="Messages that come together travel together.", rich_help_panel=_SENDING)
    ] = False
    rate: Annotated[
        float | None, typer.Option("--rate", min=0.001, help="At most so many per second.", rich_help_panel=_SENDING)
    ] = None
    timeout: Annotated[
        float,
        typer.Option("--timeout", min=0.001, help="Seconds for a send, retries included.", rich_help_panel=_SENDING),
    ] = 3.0
    keep_going: Annotated[
        bool, typer.Option("--keep-going", help="Report a failed send and go on.", rich_help_panel=_SENDING)
    ] = False
    receipts: Annotated[
        Receipts | None,
        typer.Option(
            "--receipts",
            help="What to print for each message.  [default: text for arguments and --whole, else none]",
            show_default=False,
            rich_help_panel=_SENDING,
        ),
    ] = None
