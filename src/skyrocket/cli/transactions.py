"""`skyrocket transactions list | commit | rollback`: transactions that wait for their producer's word."""

import json
from typing import TYPE_CHECKING, Annotated

import typer

from skyrocket.cli.cluster_options import (
    DEFAULT_NAMESRV,
    AccessKeyOption,
    NamespaceOption,
    NamesrvOption,
    SecretKeyOption,
    SecurityTokenOption,
    TlsCaOption,
    TlsOption,
    client_failures_shown,
    client_settings,
)
from skyrocket.cli.options import VerboseOption
from skyrocket.errors import ConfigError
from skyrocket.remoting.event_loop import run

if TYPE_CHECKING:
    from skyrocket.client import ClientSettings, OpenTransaction

_WHICH = "Which transactions"
_SAY_WHICH = "say which: ids of transactions, or --all with --topic, --producer-group or --older"

IdsArgument = Annotated[
    list[str] | None, typer.Argument(metavar="[ID]...", help="Transaction ids, as `list` shows them.")
]
TopicOption = Annotated[str | None, typer.Option("--topic", help="Of this topic.", rich_help_panel=_WHICH)]
ProducerGroupOption = Annotated[
    str | None, typer.Option("--producer-group", help="Of this producer group.", rich_help_panel=_WHICH)
]
OlderOption = Annotated[
    str | None, typer.Option("--older", help="Open for at least so long: 30s, 10m, 2h.", rich_help_panel=_WHICH)
]
LimitOption = Annotated[int, typer.Option("--limit", min=1, help="At most so many.", rich_help_panel=_WHICH)]
AllOption = Annotated[
    bool, typer.Option("--all", help="All that the options choose, without ids.", rich_help_panel=_WHICH)
]
DryRunOption = Annotated[bool, typer.Option("--dry-run", help="Only say which.")]

transactions = typer.Typer(no_args_is_help=True, help="Open transactions: those without a commit or rollback.")


@transactions.command("list")
def list_open(
    topic: TopicOption = None,
    producer_group: ProducerGroupOption = None,
    older: OlderOption = None,
    limit: LimitOption = 100,
    as_json: Annotated[bool, typer.Option("--json", help="JSON lines.")] = False,
    namesrv: NamesrvOption = DEFAULT_NAMESRV,
    access_key: AccessKeyOption = None,
    secret_key: SecretKeyOption = None,
    security_token: SecurityTokenOption = None,
    namespace: NamespaceOption = "",
    tls: TlsOption = False,
    tls_ca: TlsCaOption = None,
    verbose: VerboseOption = False,
) -> None:
    """Show them, oldest first, with age and number of checks.

    Exit code 0: shown, 1: it failed, 2: wrong usage.
    """
    with client_failures_shown("transactions list", verbose):
        settings = client_settings(namesrv, access_key, secret_key, security_token, namespace, tls, tls_ca)
        found = _old_enough(run(_chosen(settings, [], topic, producer_group, limit)), older)
        for each in found:
            typer.echo(_json_line(each) if as_json else _text(each))
        if not found and not as_json:
            typer.echo("no open transactions", err=True)


@transactions.command()
def commit(
    ids: IdsArgument = None,
    topic: TopicOption = None,
    producer_group: ProducerGroupOption = None,
    older: OlderOption = None,
    limit: LimitOption = 100,
    everything: AllOption = False,
    dry_run: DryRunOption = False,
    namesrv: NamesrvOption = DEFAULT_NAMESRV,
    access_key: AccessKeyOption = None,
    secret_key: SecretKeyOption = None,
    security_token: SecurityTokenOption = None,
    namespace: NamespaceOption = "",
    tls: TlsOption = False,
    tls_ca: TlsCaOption = None,
    verbose: VerboseOption = False,
) -> None:
    """Deliver their messages: an operator's word in place of the producer's.

    Exit code 0: done, 1: it failed, 2: wrong usage.
    """
    with client_failures_shown("transactions commit", verbose):
        settings = client_settings(namesrv, access_key, secret_key, security_token, namespace, tls, tls_ca)
        if bool(ids) == everything:
            raise ConfigError(_SAY_WHICH)
        chosen = _old_enough(run(_chosen(settings, ids or [], topic, producer_group, limit)), older)
        _end(settings, chosen, commit=True, dry_run=dry_run)


@transactions.command()
def rollback(
    ids: IdsArgument = None,
    topic: TopicOption = None,
    producer_group: ProducerGroupOption = None,
    older: OlderOption = None,
    limit: LimitOption = 100,
    everything: AllOption = False,
    dry_run: DryRunOption = False,
    namesrv: NamesrvOption = DEFAULT_NAMESRV,
    access_key: AccessKeyOption = None,
    secret_key: SecretKeyOption = None,
    security_token: SecurityTokenOption = None,
    namespace: NamespaceOption = "",
    tls: TlsOption = False,
    tls_ca: TlsCaOption = None,
    verbose: VerboseOption = False,
) -> None:
    """Never deliver their messages: an operator's word in place of the producer's.

    Exit code 0: done, 1: it failed, 2: wrong usage.
    """
    with client_failures_shown("transactions rollback", verbose):
        settings = client_settings(namesrv, access_key, secret_key, security_token, namespace, tls, tls_ca)
        if bool(ids) == everything:
            raise ConfigError(_SAY_WHICH)
        chosen = _old_enough(run(_chosen(settings, ids or [], topic, producer_group, limit)), older)
        _end(settings, chosen, commit=False, dry_run=dry_run)


def _old_enough(found: "list[OpenTransaction]", older: str | None) -> "list[OpenTransaction]":
    from skyrocket.cli.terminal.moments import seconds_of

    least_ms = 0.0 if older is None else seconds_of(older) * 1000
    return [each for each in found if each.age_ms >= least_ms]


def _end(settings: "ClientSettings", chosen: "list[OpenTransaction]", *, commit: bool, dry_run: bool) -> None:
    if not dry_run:
        run(_end_all(settings, chosen, commit=commit))
    word = "committed" if commit else "rolled back"
    for each in chosen:
        typer.echo(f"{'would be ' if dry_run else ''}{word}: {_text(each)}")
    if not chosen:
        typer.echo("no open transactions", err=True)


async def _chosen(
    settings: "ClientSettings", ids: list[str], topic: str | None, producer_group: str | None, most: int
) -> "list[OpenTransaction]":
    from skyrocket.client import Admin, ClientError

    async with Admin(client=settings) as admin:
        if not ids:  # all
            return await admin.open_transactions(topic, producer_group=producer_group, most=most)
        found: list[OpenTransaction] = []
        for each in ids:
            of_id = await admin.open_transactions(topic, producer_group=producer_group, transaction_id=each)
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
