"""`skyrocket dlq list | resend`: the dead letters of a consumer group."""

import json
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Annotated

import typer

from skyrocket.cli.program.cluster import ask, client_command
from skyrocket.cli.program.moments import ago_or_at
from skyrocket.cli.program.options import JsonLinesOption, OnlySayWhichOption, limit_option, panel
from skyrocket.clock import SystemClock
from skyrocket.errors import ConfigError

if TYPE_CHECKING:
    from skyrocket.client import ClientSettings, DeadLetterFilter, ReceivedMessage

_which = panel("Which dead letters")

GroupArgument = Annotated[str, typer.Argument(help="The consumer group that gave them up.", show_default=False)]

dlq = typer.Typer(no_args_is_help=True, help="Dead letters: what consumer groups have given up.")


@dataclass(frozen=True)
class LetterOptions:
    """Which dead letters."""

    since: Annotated[str | None, _which("--since", help="Dead since 2h ago, or a time (2026-01-31T12:00).")] = None
    until: Annotated[str | None, _which("--until", help="Dead before that.")] = None
    key: Annotated[str | None, _which("--key", help="With this key.")] = None
    error: Annotated[str | None, _which("--error", help="With this in the exception's type, as OutOfStock.")] = None
    message_id: Annotated[list[str] | None, _which("--id", help="With this message id; may be repeated.")] = None
    limit: Annotated[int, limit_option(_which)] = 100

    @property
    def are_given(self) -> bool:
        return any((self.since, self.until, self.key, self.error, self.message_id))

    def filter(self) -> "DeadLetterFilter":
        """As our client takes it; raises ConfigError."""
        from skyrocket.client import DeadLetterFilter

        now_ms = SystemClock().now_ms()
        since, until = (None if text is None else ago_or_at(text, now_ms) for text in (self.since, self.until))
        ids = frozenset(self.message_id or ())
        return DeadLetterFilter(since, until, key=self.key, error=self.error, message_ids=ids)


@dlq.command("list")
@client_command("dlq list")
def list_letters(
    settings: "ClientSettings",
    group: GroupArgument,
    *,
    which: LetterOptions,
    trace: Annotated[bool, typer.Option("--trace", help="With traceback and attempts.")] = False,
    as_json: JsonLinesOption = False,
) -> None:
    """Show them, oldest first, with the cause that our consumers have written down.

    Exit code 0: shown, 1: it failed, 2: wrong usage, 4: there is no such group.
    """
    found = _letters(settings, group, which)
    for message in found:
        typer.echo(_json_line(message) if as_json else _text(message, with_trace=trace))
    if not found and not as_json:
        typer.echo("no dead letters", err=True)


@dlq.command()
@client_command("dlq resend", writes=True)
def resend(
    settings: "ClientSettings",
    group: GroupArgument,
    *,
    which: LetterOptions,
    everything: Annotated[bool, _which("--all", help="Without any choice.")] = False,
    to_topic: Annotated[
        bool, typer.Option("--to-topic", help="To the topics they came from, for all their groups.")
    ] = False,
    dry_run: OnlySayWhichOption = False,
) -> None:
    """Let the group have them again, with all attempts before them; they also stay where they are.

    Exit code 0: sent, 1: it failed, 2: wrong usage, 4: there is no such group.
    """
    if not everything and not which.are_given:
        raise ConfigError("say which: --since, --until, --key, --error, --id, or --all")
    if dry_run:
        for message in _letters(settings, group, which):
            typer.echo(_text(message, with_trace=False))
        return
    chosen, limit = which.filter(), which.limit
    sent = ask(settings, lambda admin: admin.resend_dead_letters(group, chosen, most=limit, to_topic=to_topic))
    typer.echo(f"{len(sent)} sent again")


def _letters(settings: "ClientSettings", group: str, which: LetterOptions) -> "Sequence[ReceivedMessage]":
    chosen = which.filter()
    return ask(settings, lambda admin: admin.dead_letters(group, chosen, most=which.limit))


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
