"""`skyrocket namesrv`: run one; or its settings and values."""

from typing import Annotated

import typer

from skyrocket.cli.namesrv import namesrv as run_name_server
from skyrocket.cli.nouns.operator import Operator, operator_command, pairs_of
from skyrocket.cli.nouns.server_noun import server_noun
from skyrocket.cli.output.changes import Change
from skyrocket.cli.output.rows import Column

namesrv = server_noun(run_name_server)

NamespaceArgument = Annotated[
    str, typer.Argument(metavar="NAMESPACE", help="As ORDER_TOPIC_CONFIG.", show_default=False)
]
KeyArgument = Annotated[str, typer.Argument(help="The key.", show_default=False)]


@namesrv.command()
@operator_command("namesrv settings")
def settings(operator: Operator) -> None:
    """The settings of all name servers."""
    found = operator.ask(lambda admin: admin.name_server_settings())
    rows = [
        {"nameServer": address, "key": key, "value": value}
        for address, pairs in found.items()
        for key, value in sorted(pairs.items())
    ]
    operator.show((Column("nameServer", "NAME SERVER"), Column("key"), Column("value")), rows)


@namesrv.command("set")
@operator_command("namesrv set", writes=True)
def set_settings(
    operator: Operator, pairs: Annotated[list[str], typer.Argument(metavar="KEY=VALUE...", help="Settings.")]
) -> None:
    """Change settings of all name servers while they run; shows the difference first."""
    wanted = pairs_of(pairs, "argument")
    found = operator.ask(lambda admin: admin.name_server_settings())
    changes = [
        Change("settings", address, key, known.get(key), value)
        for address, known in found.items()
        for key, value in wanted.items()
        if known.get(key) != value
    ]
    operator.carry_out(changes, lambda admin: admin.change_name_server_settings(wanted))


@namesrv.command()
@operator_command("namesrv values")
def values(operator: Operator, space: NamespaceArgument) -> None:
    """The values that name servers keep in a namespace."""
    found = operator.ask(lambda admin: admin.values(space))
    rows = [{"namespace": space, "key": key, "value": value} for key, value in sorted(found.items())]
    operator.show((Column("namespace", wide=True), Column("key"), Column("value")), rows, empty=f"nothing in {space}")


@namesrv.command("put")
@operator_command("namesrv put", writes=True)
def put_value(
    operator: Operator,
    space: NamespaceArgument,
    key: KeyArgument,
    value: Annotated[str, typer.Argument(help="The value.", show_default=False)],
) -> None:
    """Keep a value at all name servers."""
    before = operator.ask(lambda admin: admin.value(space, key))
    changes = [Change(f"namespace {space}", "", key, before, value)] if before != value else []
    operator.carry_out(changes, lambda admin: admin.put_value(space, key, value))


@namesrv.command("remove")
@operator_command("namesrv remove", writes=True)
def remove_value(operator: Operator, space: NamespaceArgument, key: KeyArgument) -> None:
    """Forget a value at all name servers."""
    before = operator.ask(lambda admin: admin.value(space, key))
    changes = [] if before is None else [Change(f"namespace {space}", "", key, before, None)]
    question = f"{key} of {space} is forgotten: {before!r}. Do it?"
    operator.carry_out(changes, lambda admin: admin.delete_value(space, key), question=question)
