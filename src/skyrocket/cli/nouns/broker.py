"""`skyrocket broker`: run one; or list those that run, their state, their upkeep."""

from typing import TYPE_CHECKING, Annotated, Final

import typer

from skyrocket.cli.broker import broker as run_broker
from skyrocket.cli.nouns.broker_rows import LISTED, broker_row
from skyrocket.cli.nouns.moments import moment
from skyrocket.cli.nouns.operator import BrokerOption, ClusterNameOption, Operator, operator_command
from skyrocket.cli.nouns.server_noun import server_noun
from skyrocket.cli.output.changes import Change
from skyrocket.cli.output.rows import Column
from skyrocket.errors import ConfigError
from skyrocket.model.words import counted

if TYPE_CHECKING:
    from skyrocket.client import Admin

broker = server_noun(run_broker)

BrokerArgument = Annotated[str, typer.Argument(help="The broker: its name or address.", show_default=False)]
NameArgument = Annotated[str, typer.Argument(help="The broker's name.", show_default=False)]

_SENDS: Final = "producers are sent there"
REPLICAS: Final = (
    Column("broker"),
    Column("master"),
    Column("slave"),
    Column("ackOffset", "ACKNOWLEDGED", number=True),
    Column("behindBytes", "BEHIND", number=True),
    Column("inSync", "IN SYNC"),
    Column("bytesPerSecond", "BYTES/S", number=True),
    Column("masterOffset", wide=True, number=True),
)
PRODUCERS: Final = (
    Column("broker"),
    Column("group"),
    Column("clientId", "CLIENT"),
    Column("address"),
    Column("language"),
    Column("version"),
    Column("lastSeen", "LAST SEEN"),
)


@broker.command("list")
@operator_command("broker list")
def list_brokers(
    operator: Operator,
    cluster: ClusterNameOption = None,
) -> None:
    """Brokers with version, rates, disk and age of the oldest message."""
    found = operator.ask(lambda admin: admin.runtime_info(cluster=cluster))
    operator.show(LISTED, [broker_row(place, info) for place, info in found.items()], empty="no brokers")


@broker.command()
@operator_command("broker status")
def status(operator: Operator, name: BrokerArgument) -> None:
    """Everything that a broker counts."""
    found = operator.ask(lambda admin: admin.runtime_info(broker=name))
    rows = [
        {"broker": str(place), "key": key, "value": value}
        for place, info in found.items()
        for key, value in sorted(info.items())
    ]
    operator.show((Column("broker", wide=len(found) == 1), Column("key"), Column("value")), rows)


@broker.command()
@operator_command("broker replicas")
def replicas(operator: Operator, cluster: ClusterNameOption = None, name: BrokerOption = None) -> None:
    """How far slaves are behind their masters."""
    found = operator.ask(lambda admin: admin.ha_status(cluster=cluster, broker=name))
    rows = []
    for place, status in found.items():
        base = {"broker": place.broker_name, "master": place.address, "masterOffset": status.master_max_offset}
        rows += [
            {
                **base,
                "slave": each.address,
                "ackOffset": each.slave_ack_offset,
                "behindBytes": each.lag_bytes,
                "inSync": each.in_sync,
                "bytesPerSecond": each.transferred_bytes_per_second,
            }
            for each in status.connections
        ] or [base]
    operator.show(REPLICAS, rows)


@broker.command()
@operator_command("broker producers")
def producers(operator: Operator, cluster: ClusterNameOption = None, name: BrokerOption = None) -> None:
    """All producers that are connected."""
    from skyrocket.protocol.codes import version_name

    tables = operator.ask(lambda admin: admin.producers(cluster=cluster, broker=name))
    rows = [
        {
            "broker": str(place),
            "group": group,
            "clientId": each.client_id,
            "address": each.remote_address.removeprefix("/"),
            "language": each.language,
            "version": version_name(each.version),
            "lastSeen": moment(each.last_update_timestamp),
        }
        for place, table in tables.items()
        for group, connected in sorted(table.groups.items())
        for each in connected
    ]
    operator.show(PRODUCERS, rows, empty="no producers")


@broker.command()
@operator_command("broker pause-writes", writes=True)
def pause_writes(operator: Operator, name: NameArgument) -> None:
    """Let name servers send no producer to a broker any more, before it is stopped or replaced."""
    _check_name(operator, name)
    changes = [Change(f"broker {name}", "", _SENDS, "as its topics say", "no")]
    question = f"Producers stop sending to {name}. Do it?"
    told: dict[str, int] = {}

    async def wipe(admin: "Admin") -> None:
        told.update(await admin.wipe_write_permission(name))

    operator.carry_out(changes, wipe, question=question, done="producers are sent there no more")
    _say_topics(operator, told, "only read")


@broker.command()
@operator_command("broker resume-writes", writes=True)
def resume_writes(operator: Operator, name: NameArgument) -> None:
    """Let name servers send producers to a broker again."""
    _check_name(operator, name)
    # RocketMQ: whatever the permission of a topic was, it becomes both.
    changes = [Change(f"broker {name}", "", _SENDS, "no, if it was paused", "yes, for all its topics")]
    told: dict[str, int] = {}

    async def add(admin: "Admin") -> None:
        told.update(await admin.add_write_permission(name))

    operator.carry_out(changes, add, done="producers are sent there again")
    _say_topics(operator, told, "read and written")


def _say_topics(operator: Operator, told: "dict[str, int]", permission: str) -> None:
    for name_server, topics in told.items():
        operator.say(f"name server {name_server}: {counted(topics, 'topic')} can be {permission} there")


def _check_name(operator: Operator, name: str) -> None:
    """Raises ConfigError or NotFound: name servers answer a name that they do not know as any other."""
    if ":" in name:
        raise ConfigError(f"{name} is an address: name servers know brokers by name, see `skyrocket broker list`")
    operator.ask(lambda admin: admin.brokers(broker=name))


@broker.command()
@operator_command("broker clean", writes=True)
def clean(
    operator: Operator,
    cluster: ClusterNameOption = None,
    name: BrokerOption = None,
    logs: Annotated[bool, typer.Option("--logs", help="Log files that are older than the retention.")] = False,
    queues: Annotated[bool, typer.Option("--queues", help="Queue files whose messages are gone.")] = False,
) -> None:
    """Delete expired files now, not at the time set."""
    if not logs and not queues:
        raise ConfigError("say what: --logs, --queues or both")
    places = operator.ask(lambda admin: admin.brokers(cluster=cluster, broker=name, with_slaves=False))
    wanted = [kind for kind, chosen in (("logs", logs), ("queues", queues)) if chosen]
    changes = [Change(f"expired {kind}", str(place), "files", "kept", "deleted") for place in places for kind in wanted]

    async def clean_all(admin: "Admin") -> None:
        if logs:
            await admin.delete_expired_logs(cluster=cluster, broker=name)
        if queues:
            await admin.clean_expired_queues(cluster=cluster, broker=name)

    operator.carry_out(changes, clean_all)
