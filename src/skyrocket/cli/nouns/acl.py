"""`skyrocket acl`: rights of users at brokers with access control 2.0."""

from collections.abc import Iterable, Iterator, Sequence
from typing import TYPE_CHECKING, Annotated, Any, Final

import typer

from skyrocket.cli.nouns.operator import BrokerOption, ClusterNameOption, Operator, operator_command, verbs
from skyrocket.cli.output.changes import Change
from skyrocket.cli.output.rows import Column, Row
from skyrocket.errors import ConfigError

if TYPE_CHECKING:
    from skyrocket.client import Right

acl = verbs("Rights of users.")

_KINDS: Final = ("Cluster", "Namespace", "Topic", "Group")
_ACTIONS: Final = ("All", "Any", "Pub", "Sub", "Create", "Update", "Delete", "Get", "List")

SubjectArgument = Annotated[str, typer.Argument(help="As User:alice; a bare name is a user.", show_default=False)]

LISTED: Final = (
    Column("subject"),
    Column("resource"),
    Column("actions"),
    Column("decision"),
    Column("sourceIps", "FROM"),
    Column("policyType", "POLICY", wide=True),
    Column("brokers", wide=True),
)


@acl.command("list")
@operator_command("acl list")
def list_rights(
    operator: Operator,
    subject: Annotated[str, typer.Argument(help="A part of the subject.")] = "",
    resource: Annotated[str, typer.Option("--resource", help="A part of the resource.")] = "",
    cluster: ClusterNameOption = None,
    broker: BrokerOption = None,
) -> None:
    """Who may do what."""
    found = operator.ask(lambda admin: admin.rights(subject, resource, cluster=cluster, broker=broker))
    operator.show(LISTED, right_rows(found), empty="no rights")


@acl.command()
@operator_command("acl show")
def show(
    operator: Operator, subject: SubjectArgument, cluster: ClusterNameOption = None, broker: BrokerOption = None
) -> None:
    """The rights of one subject."""
    found = operator.ask(lambda admin: admin.rights_of(subject_of(subject), cluster=cluster, broker=broker))
    operator.show(LISTED, right_rows({place: (each,) for place, each in found.items()}))


def right_rows(found: Any) -> list[Row]:
    """One row for each right, with the brokers that know it."""
    from skyrocket.client.admin.account_admin import rights_in

    brokers: dict[Any, list[str]] = {}
    for place, acls in found.items():
        for each in acls:
            for right in rights_in(each):
                brokers.setdefault(right, []).append(str(place))
    return [
        {
            "subject": right.subject,
            "resource": right.resource,
            "actions": list(right.actions),
            "decision": right.decision,
            "sourceIps": list(right.source_ips),
            "policyType": right.policy_type,
            "brokers": places,
        }
        for right, places in brokers.items()
    ]


@acl.command()
@operator_command("acl grant", writes=True)
def grant(
    operator: Operator,
    subject: SubjectArgument,
    resources: Annotated[
        list[str], typer.Argument(metavar="RESOURCE...", help="As Topic:Orders, Group:Billing*, Cluster:*, *.")
    ],
    actions: Annotated[
        str, typer.Option("--actions", help="All, Pub, Sub, Create, Update, Delete, Get, List; joined by ,")
    ],
    deny: Annotated[bool, typer.Option("--deny", help="Forbid it instead.")] = False,
    source_ips: Annotated[str, typer.Option("--from", help="Only from these addresses or networks; joined by ,")] = "",
    cluster: ClusterNameOption = None,
    broker: BrokerOption = None,
) -> None:
    """Allow or deny actions, in place of what the subject has for the same resources."""
    from skyrocket.client import Right

    who = subject_of(subject)
    rights = [
        Right(
            who,
            resource_of(resource),
            actions_of(_parts(actions)),
            "Deny" if deny else "Allow",
            _parts(source_ips),
        )
        for resource in resources
    ]
    problems = [problem for right in rights for problem in problems_of(right.resource, right.actions)]
    if problems:
        raise ConfigError("; ".join(dict.fromkeys(problems)))
    places = operator.ask(lambda admin: admin.brokers(cluster=cluster, broker=broker))
    before = _rights_now(operator, who, cluster, broker)
    changes = [
        Change(f"rights of {who}", str(place), right.resource, before.get((place, right.resource)), shown_right(right))
        for place in places
        for right in rights
        if before.get((place, right.resource)) != shown_right(right)
    ]
    operator.carry_out(changes, lambda admin: admin.update_rights(rights, cluster=cluster, broker=broker))


@acl.command()
@operator_command("acl revoke", writes=True)
def revoke(
    operator: Operator,
    subject: SubjectArgument,
    resource: Annotated[str | None, typer.Argument(help="Without it, all.")] = None,
    cluster: ClusterNameOption = None,
    broker: BrokerOption = None,
) -> None:
    """Take rights away: those for one resource, or all."""
    from skyrocket.client import NotFound
    from skyrocket.client.admin.account_admin import rights_in

    who = subject_of(subject)
    resource = None if resource is None else resource_of(resource)
    found = operator.ask(lambda admin: admin.rights_of(who, cluster=cluster, broker=broker))
    changes = [
        Change(f"rights of {who}", str(place), right.resource, shown_right(right), None)
        for place, each in found.items()
        for right in rights_in(each)
        if resource in (None, right.resource)
    ]
    if not changes:
        raise NotFound(f"{who} has no rights for {resource}: `skyrocket acl show {subject}` lists those that it has")
    operator.carry_out(
        changes,
        lambda admin: admin.delete_rights(who, resource, cluster=cluster, broker=broker),
        question=f"{who} loses {resource or 'all rights'}. Do it?",
    )


def _rights_now(operator: Operator, who: str, cluster: str | None, broker: str | None) -> dict[tuple[Any, str], str]:
    """What the subject may do so far, by broker and resource."""
    from skyrocket.client import NotFound
    from skyrocket.client.admin.account_admin import rights_in

    try:
        found = operator.ask(lambda admin: admin.rights_of(who, cluster=cluster, broker=broker))
    except NotFound:
        return {}
    return {(place, right.resource): shown_right(right) for place, each in found.items() for right in rights_in(each)}


def shown_right(right: "Right") -> str:
    """As `Allow Pub,Sub from 10.0.0.0/8`."""
    origin = f" from {','.join(right.source_ips)}" if right.source_ips else ""
    return f"{right.decision} {','.join(right.actions)}{origin}"


def _parts(text: str) -> tuple[str, ...]:
    return tuple(filter(None, (each.strip() for each in text.split(","))))


def problems_of(resource: str, actions: Sequence[str]) -> Iterator[str]:
    """What brokers would not understand: they answer it as if a right were missing."""
    kind, colon, name = resource.partition(":")
    if resource != "*" and (not colon or not name or kind.lower() not in map(str.lower, _KINDS)):
        yield f"resource {resource!r} is neither * nor of the form KIND:NAME; kinds are {', '.join(_KINDS)}"
    unknown = [action for action in actions if action.lower() not in map(str.lower, _ACTIONS)]
    if unknown or not actions:
        yield f"{', '.join(unknown) or 'nothing'} is no action: choose of {', '.join(_ACTIONS)}"


def subject_of(text: str) -> str:
    """`alice` is `User:alice`."""
    return resource_of(text) if ":" in text else f"User:{text}"


def resource_of(text: str) -> str:
    """As brokers write it: `topic:Orders` is `Topic:Orders`."""
    kind, colon, name = text.partition(":")
    return f"{kind.capitalize()}{colon}{name}"


def actions_of(given: Iterable[str]) -> tuple[str, ...]:
    """As brokers write them: `pub` is `Pub`."""
    return tuple(dict.fromkeys(each.capitalize() for each in given))
