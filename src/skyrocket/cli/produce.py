"""`skyrocket produce`: send messages from the terminal."""

import inspect
import sys
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from skyrocket.cli.program.cluster import client_command
from skyrocket.cli.program.moments import moment_of, seconds_of
from skyrocket.cli.program.options import panel, with_parameters
from skyrocket.cli.terminal.options import Receipts, SendingOptions
from skyrocket.errors import ConfigError
from skyrocket.remoting.event_loop import run

if TYPE_CHECKING:
    from skyrocket.client import ClientSettings

_input = panel("Input")
_message = panel("Every message")


def send_messages(
    settings: "ClientSettings",
    topic: Annotated[str, typer.Argument(help="Where to send.", show_default=False)],
    bodies: Annotated[
        list[str] | None, typer.Argument(help="Messages; without any, lines of standard input.", show_default=False)
    ] = None,
    file: Annotated[list[Path] | None, _input("--file", help="Read messages from a file; - is standard input.")] = None,
    whole: Annotated[bool, _input("--whole", help="A file is one message, not a message per line.")] = False,
    as_json: Annotated[
        bool,
        _input(
            "--json",
            help="Lines are JSON: body (or body_base64), tags, keys, properties, sharding_key, delay, delay_level, "
            "deliver_at; what `consume --format json` writes.",
        ),
    ] = False,
    repeat: Annotated[int, _input("--repeat", min=1, help="Send messages given as arguments this many times.")] = 1,
    tags: Annotated[str | None, _message("--tags", help="Its tag.")] = None,
    key: Annotated[list[str] | None, _message("--key", help="To find it by; may be repeated.")] = None,
    prop: Annotated[list[str] | None, _message("--property", help="As name=value; may be repeated.")] = None,
    sharding_key: Annotated[str | None, _message("--sharding-key", help="One key, one queue, in order.")] = None,
    delay: Annotated[str | None, _message("--delay", help="Deliver after 30s, 10m, 2h, ….")] = None,
    delay_level: Annotated[int, _message("--delay-level", min=0, help="Deliver after a level (1: 1s … 18: 2h).")] = 0,
    deliver_at: Annotated[str | None, _message("--deliver-at", help="Deliver at 2026-01-31T12:00.")] = None,
    *,
    sending: SendingOptions,
    command: str,
) -> None:
    """Send messages: arguments, lines of standard input, files, JSON lines. To Skyrocket or Apache RocketMQ.

    Exit code 0: all confirmed, 1: a send failed, 2: wrong usage or input, 130: stopped by Ctrl-C.
    """
    from skyrocket.cli.terminal.json_lines import Template
    from skyrocket.cli.terminal.produce_job import Input, ProduceJob

    if bodies and file:
        raise ConfigError("messages come from arguments or from --file, not from both")
    template = Template(
        topic,
        tags,
        tuple(key or ()),
        _pairs(prop or []),
        sharding_key,
        None if delay is None else seconds_of(delay),
        delay_level,
        None if deliver_at is None else moment_of(deliver_at),
    )
    given = Input(tuple(bodies or ()) * repeat, tuple(file or ()), whole, as_json)
    if sending.receipts is None:
        sending = replace(sending, receipts=Receipts.TEXT if bodies or whole else Receipts.NONE)
    if not bodies and not file and sys.stdin.isatty():
        typer.echo("Every line is a message; Ctrl-D ends.", err=True)
    code = run(ProduceJob(template, given, settings, sending, command).run())
    if code:
        raise typer.Exit(code)


def sending_command(name: str) -> Callable[..., None]:
    """The command under one of its names, which its errors say."""

    def called(**given: Any) -> None:
        send_messages(command=name, **given)

    options = [each for each in inspect.signature(send_messages).parameters.values() if each.name != "command"]
    return client_command(name, writes=True)(with_parameters(called, send_messages, options))


produce = sending_command("produce")


def _pairs(texts: list[str]) -> dict[str, str]:
    pairs = {}
    for text in texts:
        name, separator, value = text.partition("=")
        if not separator or not name:
            raise ConfigError(f"--property {text!r} is not of the form name=value")
        pairs[name] = value
    return pairs
