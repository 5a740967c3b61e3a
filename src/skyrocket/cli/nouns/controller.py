"""`skyrocket controller`: run one; or who is master of replica sets, and choosing another."""

from typing import TYPE_CHECKING, Annotated, Final

import typer

from skyrocket.cli.controller import controller as run_controller
from skyrocket.cli.nouns.operator import ClusterNameOption, Operator, operator_command, pairs_of
from skyrocket.cli.nouns.server_noun import server_noun
from skyrocket.cli.output.changes import Change
from skyrocket.cli.output.rows import Column

if TYPE_CHECKING:
    from skyrocket.client import Admin

controller = server_noun(run_controller)

AddressArgument = Annotated[str, typer.Argument(metavar="CONTROLLER", help="Its address.", show_default=False)]
BrokerNameArgument = Annotated[str, typer.Argument(metavar="BROKER", help="The name of the set.", show_default=False)]

REPLICAS: Final = (
    Column("broker"),
    Column("brokerId", "ID", number=True),
    Column("address"),
    Column("role"),
    Column("inSync", "IN SYNC"),
    Column("alive"),
    Column("masterEpoch", "EPOCH", number=True, wide=True),
    Column("syncStateSetEpoch", "SET EPOCH", number=True, wide=True),
)


@controller.command()
@operator_command("controller status")
def status(operator: Operator, address: AddressArgument) -> None:
    """Who leads the controllers, and who they are."""
    found = operator.ask(lambda admin: admin.controller_metadata(address))
    operator.show_object(
        {
            "group": found.group,
            "leaderId": found.controller_leader_id,
            "leaderAddress": found.controller_leader_address,
            "peers": [peer for peer in (found.peers or "").split(";") if peer],
        }
    )


@controller.command()
@operator_command("controller replicas")
def replicas(
    operator: Operator,
    address: AddressArgument,
    names: Annotated[list[str] | None, typer.Argument(metavar="[BROKER]...", help="Sets.  [default: all]")] = None,
    cluster: ClusterNameOption = None,
) -> None:
    """The replicas of sets: who is master, who is in sync, who lives."""

    async def look(admin: "Admin") -> list[dict[str, object]]:
        wanted = names or await _sets(admin, address, cluster)
        rows: list[dict[str, object]] = []
        found = await admin.replica_sets(address, wanted) if wanted else {}
        for name, info in sorted(found.items()):
            for is_in_sync, all_of in ((True, info.in_sync_replicas), (False, info.not_in_sync_replicas)):
                rows += [
                    {
                        "broker": name,
                        "brokerId": each.broker_id,
                        "address": each.broker_address,
                        "role": "master" if each.broker_id == info.master_broker_id else "slave",
                        "inSync": is_in_sync,
                        "alive": each.alive,
                        "masterEpoch": info.master_epoch,
                        "syncStateSetEpoch": info.sync_state_set_epoch,
                    }
                    for each in all_of
                ]
        return rows

    operator.show(REPLICAS, operator.ask(look), empty=f"controller {address} knows no replica set")


async def _sets(admin: "Admin", address: str, cluster: str | None) -> list[str]:
    """Those of a cluster, as name servers know it; else all of the controller, if it is one that lists them."""
    from skyrocket.client import NotOffered

    if cluster is None:
        try:
            return await admin.replica_set_names(address)
        except NotOffered:
            pass  # Apache's: the brokers that name servers know are asked for
    return sorted({place.broker_name for place in await admin.brokers(cluster=cluster)})


@controller.command()
@operator_command("controller elect", writes=True)
def elect(
    operator: Operator,
    address: AddressArgument,
    name: BrokerNameArgument,
    broker_id: Annotated[int, typer.Argument(metavar="ID", help="The replica that shall be master.")],
    cluster: Annotated[str, typer.Option("--cluster", "-c", help="Its cluster.")] = "DefaultCluster",
) -> None:
    """Make another replica the master of its set."""
    from skyrocket.client import NotFound

    found = operator.ask(lambda admin: admin.replica_sets(address, [name]))[name]
    known = sorted(each.broker_id for each in (*found.in_sync_replicas, *found.not_in_sync_replicas))
    if broker_id not in known:
        raise NotFound(f"set {name} has no replica {broker_id}; there are {', '.join(map(str, known))}")
    before = found.master_broker_id
    changes = [Change(f"set {name}", address, "master", before, broker_id)] if before != broker_id else []
    operator.carry_out(
        changes,
        lambda admin: admin.elect_master(address, cluster, name, broker_id),
        question=f"Replica {broker_id} becomes master of {name}; clients fail until they know it. Do it?",
    )


@controller.command()
@operator_command("controller forget", writes=True)
def forget(
    operator: Operator,
    address: AddressArgument,
    name: BrokerNameArgument,
    broker_id: Annotated[list[int] | None, typer.Option("--id", help="Only these replicas; may be repeated.")] = None,
    even_if_alive: Annotated[bool, typer.Option("--even-if-alive", help="Also those that run.")] = False,
    cluster: ClusterNameOption = None,
) -> None:
    """Let the controllers forget a set, or some of its replicas."""
    ids = tuple(broker_id or ())
    changes = [Change(f"set {name}", address, "replicas", ",".join(map(str, ids)) or "all", None)]

    async def do(admin: "Admin") -> None:
        await admin.forget_replicas(address, name, cluster=cluster, broker_ids=ids, even_if_alive=even_if_alive)

    operator.carry_out(changes, do, question=f"Controllers forget replicas of {name}. Do it?")


@controller.command()
@operator_command("controller settings")
def settings(operator: Operator, addresses: Annotated[list[str], typer.Argument(metavar="CONTROLLER...")]) -> None:
    """The settings of controllers."""
    found = operator.ask(lambda admin: admin.controller_settings(addresses))
    rows = [
        {"controller": address, "key": key, "value": value}
        for address, pairs in found.items()
        for key, value in sorted(pairs.items())
    ]
    operator.show((Column("controller"), Column("key"), Column("value")), rows)


@controller.command("set")
@operator_command("controller set", writes=True)
def set_settings(
    operator: Operator,
    address: AddressArgument,
    pairs: Annotated[list[str], typer.Argument(metavar="KEY=VALUE...", help="Settings.")],
) -> None:
    """Change settings of a controller while it runs; shows the difference first."""
    wanted = pairs_of(pairs, "argument")
    known = operator.ask(lambda admin: admin.controller_settings([address]))[address]
    changes = [
        Change("settings", address, key, known.get(key), value)
        for key, value in wanted.items()
        if known.get(key) != value
    ]
    operator.carry_out(changes, lambda admin: admin.change_controller_settings([address], wanted))
