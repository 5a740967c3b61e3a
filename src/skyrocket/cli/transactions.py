"""`skyrocket transactions list | commit | rollback`: transactions that wait for their producer's word."""

import json
from typing import TYPE_CHECKING, Annotated, NamedTuple

import typer

from skyrocket.cli.cluster_options import client_command
from skyrocket.cli.options import JsonLinesOption, OnlySayWhichOption, limit_option, topic_option
from skyrocket.errors import ConfigError
from skyrocket.remoting.event_loop import run

if TYPE_CHECKING:
    from skyrocket.client import ClientSettings, OpenTransaction

_WHICH = "Which transactions"

IdsArgument = Annotated[
    list[str] | None, typer.Argument(metavar="[ID]...", help="Transaction ids, as `list` shows them.")
]
TopicOption = Annotated[str | None, topic_option(_WHICH)]
ProducerGroupOption = Annotated[
    str | None, typer.Option("--producer-group", help="Of this producer group.", rich_help_panel=_WHICH)
]
OlderOption = Annotated[
    str | None, typer.Option("--older", help="Open for at least so long: 30s, 10m, 2h.", rich_help_panel=_WHICH)
]
LimitOption = Annotated[int, limit_option(_WHICH)]
AllOption = Annotated[
    bool, typer.Option("--all", help="All that the options choose, without ids.", rich_help_panel=_WHICH)
]

transactions = typer.Typer(no_args_is_help=True, help="Open transactions: those without a commit or rollback.")


@transactions.command("list")
@client_command("transactions list")
def list_open(
    settings: "ClientSettings",
    topic: TopicOption = None,
    producer_group: ProducerGroupOption = None,
    older: OlderOption = None,
    limit: LimitOption = 100,
    as_json: JsonLinesOption = False,
) -> None:
    """Show them, oldest first, with age and number of checks.

    Exit code 0: shown, 1: it failed, 2: wrong usage.
    """
    found = _chosen(settings, _Which([], topic, producer_group, older, limit))
    for each in found:
        typer.echo(_json_line(each) if as_json else _text(each))
    if not found and not as_json:
        typer.echo("no open transactions", err=True)


@transactions.command()
@client_command("transactions commit")
def commit(
    settings: "ClientSettings",
    ids: IdsArgument = None,
    topic: TopicOption = None,
    producer_group: ProducerGroupOption = None,
    older: OlderOption = None,
    limit: LimitOption = 100,
    everything: AllOption = False,
    dry_run: OnlySayWhichOption = False,
) -> None:
    """Deliver their messages: an operator's word in place of the producer's.

    Exit code 0: done, 1: it failed, 2: wrong usage.
    """
    which = _Which(ids or [], topic, producer_group, older, limit)
    _end(settings, which, everything=everything, commit=True, dry_run=dry_run)


@transactions.command()
@client_command("transactions rollback")
def rollback(
    settings: "ClientSettings",
    ids: IdsArgument = None,
    topic: TopicOption = None,
    producer_group: ProducerGroupOption = None,
    older: OlderOption = None,
    limit: LimitOption = 100,
    everything: AllOption = False,
    dry_run: OnlySayWhichOption = False,
) -> None:
    """Never deliver their messages: an operator's word in place of the producer's.

    Exit code 0: done, 1: it failed, 2: wrong usage.
    """
    which = _Which(ids or [], topic, producer_group, older, limit)
    _end(settings, which, everything=everything, commit=False, dry_run=dry_run)


class _Which(NamedTuple):
    ids: list[str]
    topic: str | None
    producer_group: str | None
    older: str | None
    limit: int


def _end(settings: "ClientSettings", which: _Which, *, everything: bool, commit: bool, dry_run: bool) -> None:
    if bool(which.ids) == everything:
        raise ConfigError("say which: ids of transactions, or --all with --topic, --producer-group or --older")
    chosen = _chosen(settings, which)
    if not dry_run:
        run(_end_all(settings, chosen, commit=commit))
    word = "committed" if commit else "rolled back"
    for each in chosen:
        typer.echo(f"{'would be ' if dry_run else ''}{word}: {_text(each)}")
    if not chosen:
        typer.echo("no open transactions", err=True)


def _chosen(settings: "ClientSettings", which: _Which) -> "list[OpenTransaction]":
    from skyrocket.cli.terminal.moments import seconds_of

    least_ms = 0.0 if which.older is None else seconds_of(which.older) * 1000
    return [each for each in run(_found(settings, which)) if each.age_ms >= least_ms]


async def _found(settings: "ClientSettings", which: _Which) -> "list[OpenTransaction]":
    from skyrocket.client import Admin, ClientError

    topic, group = which.topic, which.producer_group
    async with Admin(client=settings) as admin:
        if not which.ids:  # all
            return await admin.open_transactions(topic, producer_group=group, most=which.limit)
        found: list[OpenTransaction] = []
        for each in which.ids:
            of_id = await admin.open_transactions(topic, producer_group=group, transaction_id=each)
            if not of_id:
                raise ClientError(f"no open transaction {each}: it has ended, or its id is another; nothing was done")
            found += of_id
        return found


async def _end_all(settings: "ClientSettings", chosen: "list[OpenTransaction]", *, commit: bool) -> None:
    from skyrocket.client import Admin

    async with Admin(client=settings) as admin:
        for each in chosen:
            await admin.end_transaction(each, commit=commit)


def _text(each: "OpenTransaction") -> str:
    keys = f" keys={','.join(each.keys)}" if each.keys else ""
    name = each.transaction_id or f"(without an id, offset {each.half_offset})"
    return (
        f"{name} {each.topic}{keys} group={each.producer_group} age={each.age_ms / 1000:.0f}s checks={each.checks} "
        f"{each.broker_name}"
    )


def _json_line(each: "OpenTransaction") -> str:
    return json.dumps(
        {
            "transactionId": each.transaction_id,
            "topic": each.topic,
            "keys": each.keys,
            "producerGroup": each.producer_group,
            "ageMs": each.age_ms,
            "checks": each.checks,
            "broker": each.broker_name,
            "halfOffset": each.half_offset,
        },
        ensure_ascii=False,
    )
