"""`skyrocket user`: users of brokers with access control 2.0."""

from typing import TYPE_CHECKING, Annotated, Any, Final

import typer

from skyrocket.cli.nouns.operator import BrokerOption, ClusterNameOption, Operator, operator_command, verbs
from skyrocket.cli.output.changes import Change, differences
from skyrocket.cli.output.rows import Column, Row
from skyrocket.errors import ConfigError

if TYPE_CHECKING:
    from skyrocket.client import Admin

user = verbs("Users of brokers.")

NameArgument = Annotated[str, typer.Argument(help="The user.", show_default=False)]
SuperOption = Annotated[bool | None, typer.Option("--super/--normal", help="May a user do everything?")]
PasswordOption = Annotated[
    str | None,
    typer.Option(
        "--password", envvar="SKYROCKET_PASSWORD", help="`-` asks for it, so that nobody sees it.", show_default=False
    ),
]

LISTED: Final = (Column("user"), Column("type"), Column("status"), Column("brokers"))


@user.command("list")
@operator_command("user list")
def list_users(
    operator: Operator,
    text: Annotated[str, typer.Argument(help="A part of the name.")] = "",
    cluster: ClusterNameOption = None,
    broker: BrokerOption = None,
) -> None:
    """Users; passwords are never shown."""
    found = operator.ask(lambda admin: admin.users(text, cluster=cluster, broker=broker))
    operator.show(LISTED, user_rows(found), empty="no users")


def user_rows(found: Any) -> list[Row]:
    """One row for each state of a user, with the brokers that have it so."""
    brokers: dict[tuple[str, str | None, str | None], list[str]] = {}
    for place, users in found.items():
        for each in users:
            brokers.setdefault((each.username or "", each.user_type, each.user_status), []).append(str(place))
    return [
        {"user": name, "type": kind, "status": status, "brokers": places}
        for (name, kind, status), places in sorted(brokers.items(), key=lambda pair: pair[0][0])
    ]


@user.command()
@operator_command("user show")
def show(
    operator: Operator, name: NameArgument, cluster: ClusterNameOption = None, broker: BrokerOption = None
) -> None:
    """One user, as brokers have it."""
    found = operator.ask(lambda admin: admin.user(name, cluster=cluster, broker=broker))
    operator.show(LISTED, user_rows({place: (each,) for place, each in found.items()}))


@user.command()
@operator_command("user create", writes=True)
def create(
    operator: Operator,
    name: NameArgument,
    password: PasswordOption = None,
    is_super: SuperOption = None,
    cluster: ClusterNameOption = None,
    broker: BrokerOption = None,
) -> None:
    """Create a user at masters and slaves."""
    secret = _password(password)
    if secret is None:
        raise ConfigError("give --password - to be asked for it, or $SKYROCKET_PASSWORD")
    kind = "Super" if is_super else "Normal"
    if _is_there(operator, name, cluster, broker):
        raise ConfigError(f"user {name} is there already: `skyrocket user update {name}` changes it")
    changes = _changes(operator, name, {"password": "***", "type": kind}, cluster, broker)
    operator.carry_out(
        changes,
        lambda admin: admin.create_user(name, secret, user_type=kind, cluster=cluster, broker=broker),
        done=f"user {name} is created",
    )


@user.command()
@operator_command("user update", writes=True)
def update(
    operator: Operator,
    name: NameArgument,
    password: PasswordOption = None,
    is_super: SuperOption = None,
    enabled: Annotated[bool | None, typer.Option("--enable/--disable", help="May the user log in?")] = None,
    cluster: ClusterNameOption = None,
    broker: BrokerOption = None,
) -> None:
    """Change what is named of a user, and nothing else."""
    secret = _password(password)
    kind = None if is_super is None else "Super" if is_super else "Normal"
    status = None if enabled is None else "enable" if enabled else "disable"
    named = {"password": "***" if secret else None, "type": kind, "status": status}
    wanted = {key: value for key, value in named.items() if value is not None}
    if not wanted:
        raise ConfigError("say what: --password, --super or --normal, --enable or --disable")
    found = operator.ask(lambda admin: admin.user(name, cluster=cluster, broker=broker))  # raises NotFound
    before = {place: {"type": each.user_type, "status": each.user_status} for place, each in found.items()}
    changes = [
        change
        for place, fields in before.items()
        for change in differences(f"user {name}", str(place), fields, {**fields, **wanted})
    ]

    async def change(admin: "Admin") -> None:
        # RocketMQ takes one of them at a time.
        for field in wanted:
            await admin.update_user(
                name,
                password=secret if field == "password" else None,
                user_type=kind if field == "type" else None,
                status=status if field == "status" else None,
                cluster=cluster,
                broker=broker,
            )

    question = f"User {name} cannot log in any more. Do it?" if enabled is False else None
    operator.carry_out(changes, change, question=question)


@user.command()
@operator_command("user delete", writes=True)
def delete(
    operator: Operator, name: NameArgument, cluster: ClusterNameOption = None, broker: BrokerOption = None
) -> None:
    """Delete a user."""
    found = operator.ask(lambda admin: admin.user(name, cluster=cluster, broker=broker))
    changes = [Change(f"user {name}", str(place), "type", each.user_type, None) for place, each in found.items()]
    operator.carry_out(
        changes,
        lambda admin: admin.delete_user(name, cluster=cluster, broker=broker),
        question=f"User {name} is deleted, and its clients are refused. Do it?",
        done=f"user {name} is deleted",
    )


def _is_there(operator: Operator, name: str, cluster: str | None, broker: str | None) -> bool:
    from skyrocket.client import NotFound

    try:
        operator.ask(lambda admin: admin.user(name, cluster=cluster, broker=broker))
    except NotFound:
        return False
    return True


def _changes(
    operator: Operator, name: str, wanted: dict[str, str], cluster: str | None, broker: str | None
) -> list[Change]:
    places = operator.ask(lambda admin: admin.brokers(cluster=cluster, broker=broker))
    return [Change(f"user {name}", str(place), key, None, value) for place in places for key, value in wanted.items()]


def _password(given: str | None) -> str | None:
    return typer.prompt("Password", hide_input=True, err=True) if given == "-" else given
