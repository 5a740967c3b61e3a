"""`skyrocket consume`: read a topic in the terminal."""

import sys
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Annotated, Any

import typer

from skyrocket.cli.output.writing import OutputNotTaken, drop_output
from skyrocket.cli.program.cluster import client_command
from skyrocket.cli.program.lifetime import stop_on_signals, unless_stopped
from skyrocket.cli.program.moments import start_of
from skyrocket.cli.program.options import panel
from skyrocket.cli.terminal.options import Format
from skyrocket.clock import SystemClock
from skyrocket.errors import ConfigError
from skyrocket.model.words import counted
from skyrocket.remoting.event_loop import run

if TYPE_CHECKING:
    from skyrocket.cli.terminal.tail import Tail
    from skyrocket.client import ClientSettings, ReceivedMessage

_which = panel("Which messages")
_reading = panel("Reading")


def commits(given: Mapping[str, Any]) -> bool:
    return given["group"] is not None and not given["no_commit"]


def show_messages(
    settings: "ClientSettings",
    topic: Annotated[str, typer.Argument(help="What to read.", show_default=False)],
    tags: Annotated[str, _which("--tags", help="With one of these tags, as 'TagA || TagB'.")] = "*",
    where: Annotated[str | None, _which("--where", help="With properties for which this SQL92 holds.")] = None,
    start: Annotated[
        str | None,
        _which(
            "--from",
            help="earliest, latest, an offset (1200), the last ten (-10), a while ago (15m, 2h), a time "
            "(2026-01-31T12:00).  [default: earliest, with --follow latest]",
            show_default=False,
        ),
    ] = None,
    queue: Annotated[
        list[int] | None, _which("--queue", min=0, help="Of these queue ids only; may be repeated.")
    ] = None,
    limit: Annotated[int, _which("--limit", min=0, help="This many; 0: all.")] = 0,
    follow: Annotated[bool, _reading("-f", "--follow", help="Wait for more until Ctrl-C.")] = False,
    group: Annotated[
        str | None,
        _reading("--group", help="Read as a member of this group and commit; without it, nothing is committed."),
    ] = None,
    no_commit: Annotated[bool, _reading("--no-commit", help="With --group: leave its offsets alone.")] = False,
    output: Annotated[Format, _reading("-o", "--format", "--output", help="How to show messages.")] = Format.TEXT,
) -> None:
    """Show the messages of a topic, of Skyrocket or Apache RocketMQ; they stay where they are.

    Without --follow it ends at the end. Exit code 0: read (also after Ctrl-C), 1: it failed, 2: wrong usage,
    4: there is no such topic.
    """
    from skyrocket.cli.terminal.tail import Tail
    from skyrocket.client import SqlFilter

    if where is not None and tags != "*":
        raise ConfigError("--tags and --where exclude each other: in SQL92 write TAGS = 'TagA' AND …")
    if group is None and no_commit:
        raise ConfigError("--no-commit is for --group: without a group nothing is committed anyway")
    if group is not None and queue:
        raise ConfigError("--queue and --group exclude each other: the group shares the queues out")
    tail = Tail(
        topic,
        tags if where is None else SqlFilter(where),
        None if start is None else start_of(start, SystemClock().now_ms()),
        group,
        not no_commit,
        limit,
        follow,
        frozenset(queue or ()),
    )
    run(_show(tail, settings, output))


consume = client_command("consume", writes=commits)(show_messages)


class _EnoughSeen(Exception):
    """Nobody reads our output any more."""


async def _show(tail: "Tail", settings: "ClientSettings", output: Format) -> None:
    from skyrocket.cli.terminal.formats import output_of
    from skyrocket.cli.terminal.tail import read

    heading, line_of = output_of(output)
    stopping = stop_on_signals()

    def show(messages: "Sequence[ReceivedMessage]") -> None:
        put(b"".join(map(line_of, messages)))

    def put(lines: bytes) -> None:
        try:
            sys.stdout.buffer.write(lines)
            sys.stdout.buffer.flush()
        except BrokenPipeError:  # `| head` has seen enough
            drop_output()
            raise _EnoughSeen from None
        except OSError as error:
            drop_output()
            raise OutputNotTaken(f"standard output cannot be written: {error.strerror}") from error

    try:
        put(heading)
        shown = await unless_stopped(read(tail, settings, SystemClock(), show), stopping)
    except _EnoughSeen:
        return
    if shown is not None and sys.stderr.isatty():
        typer.echo(f"{counted(shown, 'message')}", err=True)
