"""`skyrocket dlq list | resend`: the dead letters of a consumer group."""

import json
from collections.abc import Sequence
from datetime import UTC, datetime, timedelta
from typing import TYPE_CHECKING, Annotated

import typer

from skyrocket.cli.cluster_options import client_command
from skyrocket.cli.options import JsonLinesOption, OnlySayWhichOption, limit_option
from skyrocket.clock import SystemClock
from skyrocket.errors import ConfigError
from skyrocket.remoting.event_loop import run

if TYPE_CHECKING:
    from skyrocket.client import ClientSettings, DeadLetterFilter, ReceivedMessage

_WHICH = "Which dead letters"

GroupArgument = Annotated[str, typer.Argument(help="The consumer group that gave them up.", show_default=False)]
SinceOption = Annotated[
    str | None,
    typer.Option("--since", help="Dead since 2h ago, or a time (2026-01-31T12:00).", rich_help_panel=_WHICH),
]
UntilOption = Annotated[str | None, typer.Option("--until", help="Dead before that.", rich_help_panel=_WHICH)]
KeyOption = Annotated[str | None, typer.Option("--key", help="With this key.", rich_help_panel=_WHICH)]
ErrorOption = Annotated[
    str | None,
    typer.Option("--error", help="With this in the exception's type, as OutOfStock.", rich_help_panel=_WHICH),
]
IdOption = Annotated[
    list[str] | None, typer.Option("--id", help="With this message id; may be repeated.", rich_help_panel=_WHICH)
]
LimitOption = Annotated[int, limit_option(_WHICH)]

dlq = typer.Typer(no_args_is_help=True, help="Dead letters: what consumer groups have given up.")


@dlq.command("list")
@client_command("dlq list")
def list_letters(
    settings: "ClientSettings",
    group: GroupArgument,
    since: SinceOption = None,
    until: UntilOption = None,
    key: KeyOption = None,
    error: ErrorOption = None,
    message_id: IdOption = None,
    limit: LimitOption = 100,
    trace: Annotated[bool, typer.Option("--trace", help="With traceback and attempts.")] = False,
    as_json: JsonLinesOption = False,
) -> None:
    """Show them, oldest first, with the cause that our consumers have written down.

    Exit code 0: shown, 1: it failed, 2: wrong usage.
    """
    found = run(_read(settings, group, _filter(since, until, key, error, message_id), limit))
    for message in found:
        typer.echo(_json_line(message) if as_json else _text(message, with_trace=trace))
    if not found and not as_json:
        typer.echo("no dead letters", err=True)


@dlq.command()
@client_command("dlq resend")
def resend(
    settings: "ClientSettings",
    group: GroupArgument,
    since: SinceOption = None,
    until: UntilOption = None,
    key: KeyOption = None,
    error: ErrorOption = None,
    message_id: IdOption = None,
    limit: LimitOption = 100,
    everything: Annotated[bool, typer.Option("--all", help="Without any choice.", rich_help_panel=_WHICH)] = False,
    to_topic: Annotated[
        bool, typer.Option("--to-topic", help="To the topics they came from, for all their groups.")
    ] = False,
    dry_run: OnlySayWhichOption = False,
) -> None:
    """Let the group have them again, with all attempts before them; they also stay where they are.

    Exit code 0: sent, 1: it failed, 2: wrong usage.
    """
    if not everything and not any((since, until, key, error, message_id)):
        raise ConfigError("say which: --since, --until, --key, --error, --id, or --all")
    wanted = _filter(since, until, key, error, message_id)
    if dry_run:
        for message in run(_read(settings, group, wanted, limit)):
            typer.echo(_text(message, with_trace=False))
        return
    sent = run(_resend(settings, group, wanted, limit, to_topic=to_topic))
    typer.echo(f"{sent} sent again")


async def _read(
    settings: "ClientSettings", group: str, wanted: "DeadLetterFilter", most: int
) -> "Sequence[ReceivedMessage]":
    from skyrocket.client import Admin

    async with Admin(client=settings) as admin:
        return await admin.dead_letters(group, wanted, most=most)


async def _resend(
    settings: "ClientSettings", group: str, wanted: "DeadLetterFilter", most: int, *, to_topic: bool
) -> int:
    from skyrocket.client import Admin

    async with Admin(client=settings) as admin:
        return len(await admin.resend_dead_letters(group, wanted, most=most, to_topic=to_topic))


def _filter(
    since: str | None, until: str | None, key: str | None, error: str | None, message_ids: list[str] | None
) -> "DeadLetterFilter":
    from skyrocket.client import DeadLetterFilter

    ids = frozenset(message_ids or ())
    return DeadLetterFilter(_moment(since), _moment(until), key=key, error=error, message_ids=ids)


def _moment(text: str | None) -> datetime | None:
    from skyrocket.cli.terminal.moments import moment_of, seconds_of

    if text is None:
        return None
    if text[-1:] in ("s", "m", "h", "d"):
        now = datetime.fromtimestamp(SystemClock().now_ms() / 1000, UTC)
        return now - timedelta(seconds=seconds_of(text))
    return moment_of(text)


def _text(message: "ReceivedMessage", *, with_trace: bool) -> str:
    from skyrocket.client import cause_of

    died = datetime.fromtimestamp(message.store_timestamp / 1000, UTC).astimezone().isoformat(" ", "seconds")
    cause = cause_of(message)
    why = "cause unknown" if cause is None else f"{cause.error_type}: {cause.error_message}".splitlines()[0]
    keys = f" keys={','.join(message.keys)}" if message.keys else ""
    line = f"{died} {message.message_id} {message.topic}{keys} attempts={message.reconsume_times} {why}"
    if not with_trace or cause is None:
        return line
    attempts = "".join(
        f"\n  attempt {each.number} {datetime.fromtimestamp(each.at_ms / 1000, UTC).astimezone():%F %T} "
        f"{each.host}: {each.error}"
        for each in cause.attempts
    )
    indented = "".join(f"\n  {each}" for each in cause.traceback.splitlines())
    return f"{line}\n  host {cause.host}{attempts}{indented}"


def _json_line(message: "ReceivedMessage") -> str:
    from skyrocket.client import cause_of

    cause = cause_of(message)
    return json.dumps(
        {
            "messageId": message.message_id,
            "topic": message.topic,
            "keys": message.keys,
            "tags": message.tags,
            "diedAtMs": message.store_timestamp,
            "attempts": message.reconsume_times,
            "error": None if cause is None else cause.error_type,
            "errorMessage": None if cause is None else cause.error_message,
            "traceback": None if cause is None else cause.traceback,
            "host": None if cause is None else cause.host,
            "history": [] if cause is None else [each._asdict() for each in cause.attempts],
            "body": message.body.decode("utf-8", "backslashreplace"),
        },
        ensure_ascii=False,
    )
