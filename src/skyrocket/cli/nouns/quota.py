"""`skyrocket quota`: how much accounts and namespaces may use of Skyrocket's brokers."""

from typing import Annotated, Any, Final

import typer

from skyrocket.cli.nouns.operator import BrokerOption, ClusterNameOption, Operator, operator_command, pairs_of, verbs
from skyrocket.cli.output.changes import Change, differences
from skyrocket.cli.output.rows import Column, Row
from skyrocket.errors import ConfigError

quota = verbs("Quotas of accounts and namespaces.")

AccountOption = Annotated[
    str | None,
    typer.Option("--account", help="A user or access key; '*': each without a quota of its own.", show_default=False),
]
NamespaceOption = Annotated[
    str | None,
    typer.Option(
        "--of-namespace",
        "--topics-of",
        help="The same for a namespace, SHOP of SHOP%Orders.",
        show_default=False,
    ),
]
LimitsArgument = Annotated[
    list[str],
    typer.Argument(
        metavar="KIND=NUMBER...",
        help="sendMessagesPerSecond, sendBytesPerSecond, readMessagesPerSecond, readBytesPerSecond, topics, "
        "storedBytes; of accounts also connections, newConnectionsPerSecond. KIND=none takes a limit away.",
        show_default=False,
    ),
]

_MOST_DIGITS: Final = 19  # of any number that brokers have room for
LISTED: Final = (
    Column("subject"),
    Column("name"),
    Column("quota"),
    Column("limit", number=True),
    Column("used", number=True),
    Column("exceeded", number=True),
    Column("broker"),
)


@quota.command("list")
@operator_command("quota list")
def list_quotas(operator: Operator, cluster: ClusterNameOption = None, broker: BrokerOption = None) -> None:
    """Quotas, what is used of each, and how often somebody wanted more; each broker counts for itself."""
    found = operator.ask(lambda admin: admin.quotas(cluster=cluster, broker=broker))
    operator.show(LISTED, quota_rows(found), empty="no quotas")


def quota_rows(found: Any) -> list[Row]:
    """One row for each limit of each broker."""
    return [
        {
            "subject": row.subject_type,
            "name": row.name,
            "quota": use.kind,
            "limit": use.limit,
            "used": round(use.used, 1) if use.used % 1 else int(use.used),
            "exceeded": use.exceeded,
            "broker": str(place),
        }
        for place, rows in found.items()
        for row in rows
        for use in row.uses
    ]


@quota.command("set")
@operator_command("quota set", writes=True)
def set_quota(
    operator: Operator,
    limits: LimitsArgument,
    account: AccountOption = None,
    of_namespace: NamespaceOption = None,
    cluster: ClusterNameOption = None,
    broker: BrokerOption = None,
) -> None:
    """Set limits of an account or of a namespace; those that are not named stay."""
    wanted = {kind: _number(kind, text) for kind, text in pairs_of(limits, "the limit").items()}
    operator.carry_out(
        _changes(operator, account, of_namespace, wanted, cluster, broker),
        lambda admin: admin.set_quota(wanted, account=account, namespace=of_namespace, cluster=cluster, broker=broker),
        done="the quota is in force",
    )


@quota.command()
@operator_command("quota remove", writes=True)
def remove(
    operator: Operator,
    account: AccountOption = None,
    of_namespace: NamespaceOption = None,
    cluster: ClusterNameOption = None,
    broker: BrokerOption = None,
) -> None:
    """Take all limits of an account or of a namespace away."""
    from skyrocket.client import NotFound
    from skyrocket.model.quota import shown

    changes = _changes(operator, account, of_namespace, None, cluster, broker)
    if not changes:
        raise NotFound(f"{shown(*_subject(account, of_namespace))} has no quota of its own: `quota list` has all")
    operator.carry_out(
        changes,
        lambda admin: admin.remove_quota(account=account, namespace=of_namespace, cluster=cluster, broker=broker),
        done="the quota is removed",
    )


def _subject(account: str | None, namespace: str | None) -> tuple[str, str]:
    from skyrocket.client.admin.quota_admin import subject_of

    if (account is None) == (namespace is None):
        raise ConfigError("name either --account or --of-namespace (--namespace is for names of topics and groups)")
    return subject_of(account, namespace)


def _changes(
    operator: Operator,
    account: str | None,
    namespace: str | None,
    wanted: dict[str, int | None] | None,
    cluster: str | None,
    broker: str | None,
) -> list[Change]:
    """What becomes different at each broker; without `wanted` nothing is left."""
    from skyrocket.model.quota import NO_LIMIT, shown, wrong_quota

    subject, name = _subject(account, namespace)
    wrong = wrong_quota(subject, name, {kind: NO_LIMIT if n is None else n for kind, n in (wanted or {}).items()})
    if wrong is not None:
        raise ConfigError(wrong)
    changes: list[Change] = []
    for place, rows in operator.ask(lambda admin: admin.quotas(cluster=cluster, broker=broker)).items():
        own = [row for row in rows if (row.subject_type, row.name) == (subject, name)]
        before = {use.kind: use.limit for row in own for use in row.uses}
        after = {} if wanted is None else {**before, **wanted}
        changes += differences(f"quota of {shown(subject, name)}", str(place), before, after)
    return changes


def _number(kind: str, text: str) -> int | None:
    if text == "none":
        return None
    if not text.isdecimal() or len(text) > _MOST_DIGITS:
        raise ConfigError(f"{kind}={text}: write a whole number, or none to take the limit away")
    return int(text)
