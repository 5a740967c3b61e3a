"""`skyrocket timers list | recall`: messages that wait for their time."""

import json
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Annotated

import typer

from skyrocket.cli.program.cluster import ask, client_command
from skyrocket.cli.program.moments import moment_of
from skyrocket.cli.program.options import JsonLinesOption, limit_option, topic_option

if TYPE_CHECKING:
    from skyrocket.client import Admin, ClientSettings, PendingTimer

timers = typer.Typer(no_args_is_help=True, help="Timers: messages that wait for their time.")


@timers.command("list")
@client_command("timers list")
def list_pending(
    settings: "ClientSettings",
    topic: Annotated[str | None, topic_option()] = None,
    due_from: Annotated[
        str | None, typer.Option("--from", help="Due at this time (2026-01-31T12:00) or later.")
    ] = None,
    limit: Annotated[int, limit_option()] = 100,
    count: Annotated[bool, typer.Option("--count", help="Only how many wait, by topic.")] = False,
    as_json: JsonLinesOption = False,
) -> None:
    """Show them, soonest first, and how many there are.

    Exit code 0: shown, 1: it failed, 2: wrong usage.
    """
    begin = 0.0 if due_from is None else moment_of(due_from).timestamp()

    async def pending(admin: "Admin") -> "tuple[list[PendingTimer], dict[str, int]]":
        timers = [] if count else await admin.pending_timers(topic, due_from=begin, most=limit)
        return timers, await admin.timer_counts()

    found, counts = ask(settings, pending)
    for each in found:
        typer.echo(_json_line(each) if as_json else _text(each))
    for name, number in sorted(counts.items()):
        if topic in (None, name) and (count or not as_json):
            typer.echo(json.dumps({"topic": name, "waiting": number}) if as_json else f"{number} wait for {name}")
    if not found and not counts and not as_json:
        typer.echo("no timers", err=True)


@timers.command()
@client_command("timers recall", writes=True)
def recall(
    settings: "ClientSettings",
    which: Annotated[list[str], typer.Argument(metavar="ID...", help="Message ids, or recall handles of receipts.")],
) -> None:
    """Take messages back that wait: they are not delivered. The broker must allow it (recallMessageEnable).

    Exit code 0: taken back, 1: it failed, 2: wrong usage, 4: no such message waits.
    """

    async def recall_all(admin: "Admin") -> None:
        for each in which:
            typer.echo(f"{await admin.recall(each)} is taken back")

    ask(settings, recall_all)


def _text(timer: "PendingTimer") -> str:
    due = datetime.fromtimestamp(timer.due_ms / 1000, UTC).astimezone().isoformat(" ", "seconds")
    keys = f" keys={','.join(timer.keys)}" if timer.keys else ""
    return f"{due} {timer.message_id} {timer.topic}{keys} {timer.broker_name}"


def _json_line(timer: "PendingTimer") -> str:
    return json.dumps(
        {
            "messageId": timer.message_id,
            "topic": timer.topic,
            "queueId": timer.queue_id,
            "keys": timer.keys,
            "dueMs": timer.due_ms,
            "broker": timer.broker_name,
        },
        ensure_ascii=False,
    )
