"""Options of `produce` and `consume`, apart from what they do: --help needs only these."""

from dataclasses import dataclass
from enum import StrEnum
from typing import Annotated

from skyrocket.cli.program.options import panel

_sending = panel("Sending")


class Format(StrEnum):
    """The choices of `consume --format`, those of all commands' `--output` among them."""

    TEXT = "text"
    BODY = "body"
    TABLE = "table"
    WIDE = "wide"
    JSON = "json"
    JSONL = "jsonl"  # the same: messages come one by one
    CSV = "csv"


class Receipts(StrEnum):
    """The choices of --receipts, those of all commands' `--output` among them."""

    TEXT = "text"
    TABLE = "table"  # as text: receipts come one by one
    WIDE = "wide"
    JSON = "json"
    JSONL = "jsonl"  # the same
    CSV = "csv"
    NONE = "none"


@dataclass(frozen=True)
class SendingOptions:
    """How messages are sent, and what is said about each."""

    group: Annotated[str, _sending("--group", help="Producer group.")] = "skyrocket_produce"
    in_flight: Annotated[int, _sending("--in-flight", min=1, help="Sends under way at once.")] = 32
    batch: Annotated[bool, _sending("--batch", help="Messages that come together travel together.")] = False
    rate: Annotated[float | None, _sending("--rate", min=0.001, help="At most this many per second.")] = None
    timeout: Annotated[float, _sending("--timeout", min=0.001, help="Seconds for a send, retries included.")] = 3.0
    keep_going: Annotated[bool, _sending("--keep-going", help="Report a failed send and go on.")] = False
    receipts: Annotated[
        Receipts | None,
        _sending(
            "--receipts",
            "--output",
            help="What to print for each message.  [default: text for arguments and --whole, else none]",
            show_default=False,
        ),
    ] = None
