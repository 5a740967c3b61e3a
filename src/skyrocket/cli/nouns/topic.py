"""`skyrocket topic`: list, create, change and delete topics."""

from collections.abc import Collection, Mapping, Sequence
from fnmatch import fnmatchcase
from typing import TYPE_CHECKING, Annotated, Any, Final

import typer

from skyrocket.cli.nouns.moments import moment
from skyrocket.cli.nouns.operator import (
    BrokerOption,
    ClusterNameOption,
    Operator,
    operator_command,
    pairs_of,
    verbs,
)
from skyrocket.cli.output.changes import Change, differences, fields_of, shown_fields
from skyrocket.cli.output.rows import Column, Row
from skyrocket.errors import ConfigError
from skyrocket.model.message_type import MessageType
from skyrocket.model.permission import PERM_READ, PERM_WRITE, permission_text
from skyrocket.model.topic import DLQ_PREFIX, RETRY_PREFIX, is_system_topic
from skyrocket.model.topic_config import MOST_QUEUES
from skyrocket.model.words import counted

if TYPE_CHECKING:
    from skyrocket.client import Admin, BrokerPlace, QueueLag, TopicChange
    from skyrocket.model.topic_config import TopicConfig

topic = verbs("Topics: list, create, change, delete.")

TopicArgument = Annotated[str, typer.Argument(help="The topic.", show_default=False)]
PermissionOption = Annotated[
    str | None, typer.Option("--perm", help="R, W or RW; or RocketMQ's 4, 2, 6.", show_default=False)
]
TypeOption = Annotated[
    str | None,
    typer.Option("--type", help="NORMAL, FIFO, DELAY, TRANSACTION or MIXED (5.x brokers).", show_default=False),
]
AttributeOption = Annotated[
    list[str] | None, typer.Option("--attribute", help="KEY=VALUE of a 5.x broker; may be repeated.")
]
QueuesOption = Annotated[
    int | None, typer.Option("--queues", min=1, max=MOST_QUEUES, help="Read and write queues of each broker.")
]
ReadQueuesOption = Annotated[
    int | None, typer.Option("--read-queues", min=1, max=MOST_QUEUES, help="Read queues, if they differ.")
]
WriteQueuesOption = Annotated[
    int | None, typer.Option("--write-queues", min=1, max=MOST_QUEUES, help="Write queues, if they differ.")
]

LISTED: Final = (
    Column("topic"),
    Column("type"),
    Column("brokers", number=True),
    Column("readQueues", "READ", number=True),
    Column("writeQueues", "WRITE", number=True),
    Column("permission", "PERM"),
    Column("ordered", wide=True),
    Column("attributes", wide=True),
)
QUEUES: Final = (
    Column("broker"),
    Column("queueId", "QUEUE", number=True),
    Column("minOffset", "MIN", number=True),
    Column("maxOffset", "MAX", number=True),
    Column("messages", number=True),
    Column("lastWrite", "LAST WRITE"),
)
ROUTE: Final = (
    Column("cluster"),
    Column("broker"),
    Column("addresses"),
    Column("readQueues", "READ", number=True),
    Column("writeQueues", "WRITE", number=True),
    Column("permission", "PERM"),
)
_DEFAULT_QUEUES: Final = 8
_TYPES: Final = tuple(each.value for each in MessageType)  # another one of a newer release: --attribute message.type=…


@topic.command("list")
@operator_command("topic list")
def list_topics(
    operator: Operator,
    pattern: Annotated[str, typer.Argument(help="Names with * and ?.")] = "*",
    everything: Annotated[
        bool, typer.Option("--all", help="Also retry topics, dead letters and topics of the system.")
    ] = False,
    cluster: ClusterNameOption = None,
) -> None:
    """Topics with their queues, added up over brokers."""
    from skyrocket.client.admin.places import topics_named_after

    async def look(admin: "Admin") -> "tuple[dict[BrokerPlace, dict[str, TopicConfig]], set[str]]":
        return await admin.topic_table(cluster=cluster), topics_named_after(await admin.cluster())

    tables, of_system = operator.ask(look)
    by_name: dict[str, list[TopicConfig]] = {}
    for table in tables.values():
        for name, config in table.items():
            if fnmatchcase(name, pattern) and (everything or kind_of(name, of_system) is None):
                by_name.setdefault(name, []).append(config)
    rows = [listed(name, configs, of_system) for name, configs in sorted(by_name.items())]
    operator.show(LISTED, rows, empty="no topics; --all also lists those of the system")


def kind_of(name: str, of_system: Collection[str] = ()) -> str | None:
    """RETRY, DLQ or SYSTEM; None for a topic of applications. `of_system`: more names that are the system's."""
    if name.startswith(RETRY_PREFIX):
        return "RETRY"
    if name.startswith(DLQ_PREFIX):
        return "DLQ"
    return "SYSTEM" if is_system_topic(name) or name in of_system else None


def listed(name: str, configs: "list[TopicConfig]", of_system: Collection[str]) -> Row:
    """One row of a topic that brokers have."""
    permissions = sorted({permission_text(config.permission).replace("-", "") or "none" for config in configs})
    return {
        "topic": name,
        "type": kind_of(name, of_system) or configs[0].message_type,
        "brokers": len(configs),
        "readQueues": sum(config.read_queues for config in configs),
        "writeQueues": sum(config.write_queues for config in configs),
        "permission": "/".join(permissions),
        "ordered": any(config.ordered for config in configs),
        "attributes": {key: value for config in configs for key, value in config.attributes.items()},
    }


@topic.command()
@operator_command("topic describe")
def describe(operator: Operator, name: TopicArgument) -> None:
    """One topic: settings, queues, and the groups that consume it with their lag."""
    import asyncio

    from skyrocket.client.admin.places import topics_named_after
    from skyrocket.client.admin.side_by_side import each

    async def look(admin: "Admin") -> dict[str, Any]:
        configs = await _there(admin, name)
        offsets, groups, statistics = await asyncio.gather(
            admin.topic_offsets(name), admin.groups_of_topic(name), admin.topic_statistics(name)
        )
        lags = await each(groups, lambda group: admin.consumer_lag(group, name))
        rate = sum(each.put_tps or 0.0 for each in statistics.values())
        of_system = topics_named_after(await admin.cluster())
        row = listed(name, list(configs.values()), of_system)
        return described(row, configs, queue_rows(offsets), lags, rate)

    found = operator.ask(look)
    if not operator.output.is_for_people:
        operator.show_object(found)
        return
    flat = {key: value for key, value in found.items() if key not in ("queues", "groups", "settings")}
    operator.show_object(flat)
    operator.say("")
    operator.show(QUEUES, found["queues"])
    if found["groups"]:
        operator.say("")
        operator.show(
            (Column("group"), Column("lag", number=True), Column("lastConsumed", "LAST CONSUMED")), found["groups"]
        )


def described(
    row: Row,
    configs: "Mapping[BrokerPlace, TopicConfig]",
    queues: list[Row],
    lags: "Mapping[str, list[QueueLag]]",
    rate: float,
) -> dict[str, Any]:
    """A topic as one object: its row, and what a list has no room for."""
    return {
        **row,
        "brokers": [place.broker_name for place in configs],
        "messages": sum(queue["messages"] for queue in queues),
        "putTps": rate,
        "settings": {place.broker_name: shown_fields(config) for place, config in configs.items()},
        "queues": queues,
        "groups": [
            {
                "group": group,
                "lag": sum(queue.lag for queue in all_of),
                "lastConsumed": moment(max((queue.last_timestamp for queue in all_of), default=0)),
            }
            for group, all_of in lags.items()
        ],
    }


def queue_rows(offsets: Mapping[Any, Any]) -> list[Row]:
    """The queues of a topic with their offsets."""
    return [
        {
            "broker": queue.broker_name,
            "queueId": queue.queue_id,
            "minOffset": offset.min_offset,
            "maxOffset": offset.max_offset,
            "messages": offset.max_offset - offset.min_offset,
            "lastWrite": moment(offset.last_update_timestamp),
        }
        for queue, offset in sorted(offsets.items())
    ]


@topic.command()
@operator_command("topic status")
def status(operator: Operator, name: TopicArgument) -> None:
    """The queues of a topic: first and last offset, last write."""
    operator.show(QUEUES, queue_rows(operator.ask(lambda admin: admin.topic_offsets(name))))


@topic.command()
@operator_command("topic route")
def route(operator: Operator, name: TopicArgument) -> None:
    """Where name servers send the clients of a topic."""
    data = operator.ask(lambda admin: admin.route(name)).data
    brokers = {broker.broker_name: broker for broker in data.brokers}
    operator.show(
        ROUTE,
        [
            {
                "cluster": brokers[queues.broker_name].cluster if queues.broker_name in brokers else None,
                "broker": queues.broker_name,
                "addresses": list(brokers[queues.broker_name].addresses.values())
                if queues.broker_name in brokers
                else [],
                "readQueues": queues.read_queues,
                "writeQueues": queues.write_queues,
                "permission": permission_text(queues.permission).replace("-", "") or "none",
            }
            for queues in data.queues
        ],
    )


@topic.command()
@operator_command("topic groups")
def groups(operator: Operator, name: TopicArgument) -> None:
    """The groups that consume a topic."""
    found = operator.ask(lambda admin: admin.groups_of_topic(name))
    operator.show((Column("group"),), [{"group": group} for group in found], empty=f"no group consumes {name}")


@topic.command()
@operator_command("topic create", writes=True)
def create(
    operator: Operator,
    name: TopicArgument,
    queues: QueuesOption = None,
    read_queues: ReadQueuesOption = None,
    write_queues: WriteQueuesOption = None,
    permission: PermissionOption = None,
    message_type: TypeOption = None,
    attribute: AttributeOption = None,
    ordered: Annotated[bool, typer.Option("--ordered", help="RocketMQ 4.x's mark of ordered topics.")] = False,
    cluster: ClusterNameOption = None,
    broker: BrokerOption = None,
) -> None:
    """Create a topic on all masters, or those of a cluster or a broker; one that is there is left alone."""
    from skyrocket.client.admin.topic_admin import TopicChange
    from skyrocket.client.core.names import check_creatable
    from skyrocket.model.topic_config import TopicConfig

    check_creatable(name)  # before the plan is shown: a dry run would promise what cannot be done
    wanted = TopicConfig(
        name,
        read_queues or queues or _DEFAULT_QUEUES,
        write_queues or queues or _DEFAULT_QUEUES,
        PERM_READ | PERM_WRITE if permission is None else permission_of(permission),
        ordered=ordered,
        attributes=attributes_of(message_type, attribute),
    )

    async def missing(admin: "Admin") -> "list[BrokerPlace]":
        tables = await admin.topic_table(cluster=cluster, broker=broker)
        return [place for place, table in tables.items() if name not in table]

    places = operator.ask(missing)
    if not places:
        raise ConfigError(f"topic {name} is there already: `skyrocket topic update {name}` changes it")

    changes = [TopicChange(place, None, wanted) for place in places]

    async def create_all(admin: "Admin") -> None:
        await admin.apply_topic_changes(changes)
        await admin.check_attributes_kept(changes)

    done = f"topic {name} is created at {counted(len(places), 'broker')}"
    operator.carry_out(_shown(changes, name), create_all, done=done)


@topic.command()
@operator_command("topic update", writes=True)
def update(
    operator: Operator,
    name: TopicArgument,
    queues: QueuesOption = None,
    read_queues: ReadQueuesOption = None,
    write_queues: WriteQueuesOption = None,
    permission: PermissionOption = None,
    message_type: TypeOption = None,
    attribute: AttributeOption = None,
    remove_attribute: Annotated[list[str] | None, typer.Option("--remove-attribute", help="KEY.")] = None,
    ordered: Annotated[bool | None, typer.Option("--ordered/--not-ordered", help="The mark of 4.x.")] = None,
    broker: BrokerOption = None,
) -> None:
    """Change what is named, and nothing else, wherever the topic is; shows the difference first."""
    attributes: dict[str, str | None] = {**attributes_of(message_type, attribute)}
    attributes |= dict.fromkeys(remove_attribute or ())
    changes = operator.ask(
        lambda admin: admin.topic_changes(
            name,
            read_queues=read_queues or queues,
            write_queues=write_queues or queues,
            permission=None if permission is None else permission_of(permission),
            ordered=ordered,
            attributes=attributes,
            broker=broker,
        )
    )
    fewer = any(each.before is not None and each.after.read_queues < each.before.read_queues for each in changes)
    question = (
        f"Topic {name} gets fewer read queues: messages of the others are not consumed. Do it?" if fewer else None
    )

    async def change_all(admin: "Admin") -> None:
        await admin.apply_topic_changes(changes)
        await admin.check_attributes_kept(changes)

    operator.carry_out(_shown(changes, name), change_all, question=question)


@topic.command()
@operator_command("topic copy", writes=True)
def copy(
    operator: Operator,
    source: Annotated[str, typer.Argument(help="With the settings of this topic.", show_default=False)],
    target: Annotated[str, typer.Argument(help="The new topic.", show_default=False)],
) -> None:
    """Create a topic with the settings of another one, on the same brokers; `msg copy` copies messages."""
    changes = operator.ask(lambda admin: admin.copied_topic(source, target))

    async def create_all(admin: "Admin") -> None:
        await admin.apply_topic_changes(changes)
        await admin.check_attributes_kept(changes)

    done = f"topic {target} is created at {counted(len(changes), 'broker')} with the settings of {source}"
    operator.carry_out(_shown(changes, target), create_all, done=done)


@topic.command()
@operator_command("topic pause", writes=True)
def pause(operator: Operator, name: TopicArgument) -> None:
    """Let nobody read a topic: its brokers refuse every group, messages wait; `topic resume` ends it."""

    async def look(admin: "Admin") -> "tuple[list[TopicChange], list[str]]":
        return await admin.reading_changes(name, allowed=False), await admin.groups_of_topic(name)

    changes, groups = operator.ask(look)
    who = f"{counted(len(groups), 'group')} ({', '.join(groups)})" if groups else "nobody for now"
    operator.carry_out(
        _shown(changes, name),
        lambda admin: admin.apply_topic_changes(changes),
        question=f"Brokers let nobody read topic {name} any more: that stops {who}. Do it?",
        done=f"topic {name} is not read any more: `skyrocket topic resume {name}` ends it",
    )


@topic.command()
@operator_command("topic resume", writes=True)
def resume(operator: Operator, name: TopicArgument) -> None:
    """Let a topic be read again after `topic pause`; groups go on where they were."""
    changes = operator.ask(lambda admin: admin.reading_changes(name, allowed=True))
    operator.carry_out(
        _shown(changes, name), lambda admin: admin.apply_topic_changes(changes), done=f"topic {name} is read again"
    )


def _shown(changes: "Sequence[TopicChange]", name: str) -> list[Change]:
    def named(config: "TopicConfig | None") -> Row:
        fields = {} if config is None else fields_of(config)
        return {key: value for key, value in fields.items() if key != "name"}

    return [
        change
        for each in changes
        for change in differences(f"topic {name}", str(each.place), named(each.before), named(each.after))
    ]


@topic.command()
@operator_command("topic delete", writes=True)
def delete(
    operator: Operator,
    name: TopicArgument,
    cluster: ClusterNameOption = None,
) -> None:
    """Delete a topic with its messages, at brokers and name servers; says first what is lost."""

    async def look(admin: "Admin") -> tuple[list[Change], str]:
        configs = await _there(admin, name)
        offsets = await admin.topic_offsets(name)
        messages = sum(each.max_offset - each.min_offset for each in offsets.values())
        losses = await _losses(admin, name)
        changes = [
            Change(f"topic {name}", str(place), "queues", config.read_queues, None)
            for place, config in configs.items()
            if cluster in (None, place.cluster)
        ]
        return changes, ", ".join([counted(messages, "message"), *losses])

    changes, lost = operator.ask(look)
    if operator.dry_run:
        operator.say_safely(f"would be lost: {lost}")
    question = f"Topic {name} is deleted: {lost}. Do it?"
    operator.carry_out(
        changes,
        lambda admin: admin.delete_topic(name, cluster=cluster),
        question=question,
        done=f"topic {name} is deleted",
    )


async def _there(admin: "Admin", name: str) -> "Mapping[BrokerPlace, TopicConfig]":
    """A topic wherever it is; raises NotFound, without advice to create what shall be deleted."""
    from skyrocket.client import NoRoute, NotFound

    try:
        return await admin.topic_configs(name)
    except NoRoute as error:
        raise NotFound(f"there is no topic {name}: `skyrocket topic list` has all") from error


async def _losses(admin: "Admin", name: str) -> list[str]:
    """What groups lose: messages that they have not consumed, clients that run."""
    from skyrocket.client import BrokerRefused
    from skyrocket.client.admin.side_by_side import each

    async def loss(group: str) -> str:
        lag = sum(queue.lag for queue in await admin.consumer_lag(group, name))
        try:
            clients = len((await admin.consumer_connections(group)).connections)
        except BrokerRefused:
            clients = 0
        return f"group {group} with {lag:,} to consume and {counted(clients, 'client')}"

    return list((await each(await admin.groups_of_topic(name), loss)).values())


@topic.command()
@operator_command("topic clean", writes=True)
def clean(operator: Operator, cluster: ClusterNameOption = None, broker: BrokerOption = None) -> None:
    """Remove queue files of topics that are gone."""
    places = operator.ask(lambda admin: admin.brokers(cluster=cluster, broker=broker, with_slaves=False))
    changes = [Change("unused queues", str(place), "files", "kept", "removed") for place in places]
    operator.carry_out(changes, lambda admin: admin.clean_unused_topics(cluster=cluster, broker=broker))


def permission_of(text: str) -> int:
    """`RW`, `R`, `W`, or RocketMQ's number; raises ConfigError."""
    named = {"RW": 6, "R": 4, "W": 2, "NONE": 0, "6": 6, "4": 4, "2": 2}
    if text.upper() not in named:
        raise ConfigError(f"--perm {text!r} is none of R, W, RW, or 4, 2, 6")
    return named[text.upper()]


def attributes_of(message_type: str | None, given: list[str] | None) -> dict[str, str]:
    """--type and --attribute; raises ConfigError."""
    found = pairs_of(given, "--attribute")
    if message_type is not None:
        found["message.type"] = message_type.upper()
        if found["message.type"] not in _TYPES:
            raise ConfigError(f"{message_type} is no type of a topic: choose of {', '.join(_TYPES)}")
    return found
