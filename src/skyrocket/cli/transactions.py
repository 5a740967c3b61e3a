"""`skyrocket transactions list | commit | rollback`: transactions that wait for their producer's word."""

import json
from collections.abc import Sequence
from dataclasses import dataclass
from functools import partial
from typing import TYPE_CHECKING, Annotated

import typer

from skyrocket.cli.program.cluster import ask, client_command
from skyrocket.cli.program.moments import seconds_of
from skyrocket.cli.program.options import JsonLinesOption, OnlySayWhichOption, limit_option, panel, topic_option
from skyrocket.errors import ConfigError

if TYPE_CHECKING:
    from skyrocket.client import Admin, ClientSettings, OpenTransaction

_which = panel("Which transactions")

transactions = typer.Typer(no_args_is_help=True, help="Open transactions: those without a commit or rollback.")


@dataclass(frozen=True)
class TransactionOptions:
    """Which open transactions."""

    topic: Annotated[str | None, topic_option(_which)] = None
    producer_group: Annotated[str | None, _which("--producer-group", help="Of this producer group.")] = None
    older: Annotated[str | None, _which("--older", help="Open for at least this long: 30s, 10m, 2h.")] = None
    limit: Annotated[int, limit_option(_which)] = 100

    def found(self, settings: "ClientSettings", ids: Sequence[str] = ()) -> "list[OpenTransaction]":
        """Those with these ids, or all; raises NotFound for an id that is not open."""
        least_ms = 0.0 if self.older is None else seconds_of(self.older) * 1000
        return [each for each in ask(settings, partial(self._read, ids)) if each.age_ms >= least_ms]

    async def _read(self, ids: Sequence[str], admin: "Admin") -> "list[OpenTransaction]":
        from skyrocket.client import NotFound

        read = partial(admin.open_transactions, self.topic, producer_group=self.producer_group)
        if not ids:
            return await read(most=self.limit)
        found: list[OpenTransaction] = []
        for each in ids:
            of_id = await read(transaction_id=each)
            if not of_id:
                raise NotFound(f"no open transaction {each}: it has ended, or its id is another; nothing was done")
            found += of_id
        return found


@transactions.command("list")
@client_command("transactions list")
def list_open(settings: "ClientSettings", *, which: TransactionOptions, as_json: JsonLinesOption = False) -> None:
    """Show them, oldest first, with age and number of checks.

    Exit code 0: shown, 1: it failed, 2: wrong usage.
    """
    found = which.found(settings)
    for each in found:
        typer.echo(_json_line(each) if as_json else _text(each))
    if not found and not as_json:
        typer.echo("no open transactions", err=True)


def _add_ending(verb: str, done: str, effect: str) -> None:
    """`transactions commit` and `transactions rollback`: one command with two outcomes."""

    @transactions.command(
        verb,
        help=f"{effect} their messages: an operator's word in place of the producer's.\n\n"
        "Exit code 0: done, 1: it failed, 2: wrong usage, 4: there is no such transaction.",
    )
    @client_command(f"transactions {verb}", writes=True)
    def end(
        settings: "ClientSettings",
        ids: Annotated[
            list[str] | None, typer.Argument(metavar="[ID]...", help="Transaction ids, as `list` shows them.")
        ] = None,
        *,
        which: TransactionOptions,
        everything: Annotated[bool, _which("--all", help="All that the options choose, without ids.")] = False,
        dry_run: OnlySayWhichOption = False,
    ) -> None:
        if bool(ids) == everything:
            raise ConfigError("say which: ids of transactions, or --all with --topic, --producer-group or --older")
        chosen = which.found(settings, ids or ())

        async def end_all(admin: "Admin") -> None:
            for each in chosen:
                await admin.end_transaction(each, commit=verb == "commit")

        if not dry_run:
            ask(settings, end_all)
        for each in chosen:
            typer.echo(f"{'would be ' if dry_run else ''}{done}: {_text(each)}")
        if not chosen:
            typer.echo("no open transactions", err=True)


_add_ending("commit", "committed", "Deliver")
_add_ending("rollback", "rolled back", "Never deliver")


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
