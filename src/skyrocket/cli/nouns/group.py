"""`skyrocket group`: consumer groups, their members and how far they are."""

from fnmatch import fnmatchcase
from typing import TYPE_CHECKING, Annotated, Any, Final

import typer

from skyrocket.cli.nouns.group_lag import GROUP_LAGS, QUEUE_LAGS, group_lag_rows, queue_lag_rows
from skyrocket.cli.nouns.operator import BrokerOption, ClusterNameOption, Operator, operator_command, pairs_of, verbs
from skyrocket.cli.nouns.watching import Watched, WatchOption, repeat
from skyrocket.cli.output.changes import Change, differences, fields_of, shown_fields
from skyrocket.cli.output.rows import Column, Row
from skyrocket.cli.program.numbers import MOST_INT
from skyrocket.errors import ConfigError
from skyrocket.model.system_groups import is_system_group
from skyrocket.model.words import counted

if TYPE_CHECKING:
    from skyrocket.client import Admin, BrokerPlace, GroupProgress
    from skyrocket.model.subscription_group import SubscriptionGroup

group = verbs("Consumer groups: lag, members, offsets.")

GroupArgument = Annotated[str, typer.Argument(help="The group.", show_default=False)]
TopicOption = Annotated[str | None, typer.Option("--topic", "-t", help="In this topic.  [default: all]")]
TopicToReadOption = Annotated[str, typer.Option("--topic", "-t", help="The topic.", show_default=False)]
FieldOption = Annotated[
    list[str] | None, typer.Option("--set", help="Any field, as retry_max_times=3; may be repeated.")
]

LISTED: Final = (
    Column("group"),
    Column("consumes"),
    Column("orderly"),
    Column("broadcast", wide=True),
    Column("retryMaxTimes", "RETRIES", number=True),
    Column("brokers", number=True),
    Column("lag", number=True),
    Column("attributes", wide=True),
)
MEMBERS: Final = (
    Column("clientId", "CLIENT"),
    Column("address"),
    Column("language"),
    Column("version"),
)
SUBSCRIPTIONS: Final = (Column("topic"), Column("expression"), Column("type"))


@group.command("list")
@operator_command("group list")
def list_groups(
    operator: Operator,
    pattern: Annotated[str, typer.Argument(help="Names with * and ?.")] = "*",
    everything: Annotated[bool, typer.Option("--all", help="Also groups of the system.")] = False,
    cluster: ClusterNameOption = None,
) -> None:
    """Groups with their settings and total lag."""

    async def look(admin: "Admin") -> list[Row]:
        tables = await admin.group_table(cluster=cluster)
        lags = await admin.all_lag(cluster=cluster)
        by_name: dict[str, list[SubscriptionGroup]] = {}
        for table in tables.values():
            for name, config in table.items():
                if fnmatchcase(name, pattern) and (everything or not is_system_group(name)):
                    by_name.setdefault(name, []).append(config)
        return [_listed(name, all_of, lags) for name, all_of in sorted(by_name.items())]

    operator.show(LISTED, operator.ask(look), empty="no groups; --all also lists those of the system")


def _listed(name: str, configs: "list[SubscriptionGroup]", lags: dict[str, Any]) -> Row:
    return {
        "group": name,
        "consumes": all(config.may_consume for config in configs),
        "orderly": any(config.consumes_orderly for config in configs),
        "broadcast": all(config.may_consume_broadcast for config in configs),
        "retryMaxTimes": max(config.retry_max_times for config in configs),
        "brokers": len(configs),
        "lag": sum(queue.lag for queue in lags[name]) if name in lags else None,
        "attributes": {key: value for config in configs for key, value in config.attributes.items()},
    }


@group.command()
@operator_command("group describe")
def describe(operator: Operator, name: GroupArgument) -> None:
    """One group: settings, members with their subscriptions, and lag per queue."""
    from skyrocket.client import BrokerRefused, NoRoute

    async def look(admin: "Admin") -> dict[str, Any]:
        configs = await admin.group_configs(name)
        found: dict[str, Any] = {
            "group": name,
            "settings": {p.broker_name: shown_fields(c) for p, c in configs.items()},
        }
        try:
            members = await admin.consumer_connections(name)
        except (BrokerRefused, NoRoute):
            found |= {"members": [], "subscriptions": []}
        else:
            found |= {
                "consumeType": members.consume_type,
                "messageModel": members.message_model,
                "consumeFrom": members.consume_from_where,
                "members": member_rows(members.connections),
                "subscriptions": subscription_rows(members.subscriptions),
            }
        try:
            progress = await admin.group_progress(name)
        except NoRoute:
            found["queues"] = []
        else:
            found |= {"lag": progress.lag, "consumeTps": progress.consume_tps}
            found["queues"] = await queue_lag_rows(admin, name, progress.queues)
        return found

    found = operator.ask(look)
    if not operator.output.is_for_people:
        operator.show_object(found)
        return
    tables = ("members", "subscriptions", "queues")
    first = next(iter(found["settings"].values()))
    operator.show_object({key: value for key, value in found.items() if key not in (*tables, "settings")} | first)
    for key, columns in zip(tables, (MEMBERS, SUBSCRIPTIONS, QUEUE_LAGS), strict=True):
        if found[key]:
            operator.say("")
            operator.show(columns, found[key])


def member_rows(connections: Any) -> list[Row]:
    """The clients of a group."""
    from skyrocket.protocol.codes import version_name

    return [
        {
            "clientId": each.client_id,
            "address": each.client_address,
            "language": each.language,
            "version": version_name(each.version),
        }
        for each in connections
    ]


def subscription_rows(subscriptions: Any) -> list[Row]:
    """What a group wants."""
    return [
        {"topic": topic, "expression": each.expression, "type": each.expression_type}
        for topic, each in sorted(subscriptions.items())
    ]


@group.command()
@operator_command("group members")
def members(operator: Operator, name: GroupArgument) -> None:
    """The clients of a group that are connected to any broker."""
    found = operator.ask(lambda admin: admin.consumer_connections(name))
    operator.show(MEMBERS, member_rows(found.connections))


@group.command()
@operator_command("group topics")
def topics(operator: Operator, name: GroupArgument) -> None:
    """The topics that a group consumes."""
    found = operator.ask(lambda admin: admin.topics_of_group(name))
    operator.show((Column("topic"),), [{"topic": topic} for topic in found], empty=f"group {name} consumes nothing")


@group.command()
@operator_command("group client")
def client(
    operator: Operator,
    name: GroupArgument,
    client_id: Annotated[str, typer.Argument(metavar="CLIENT", help="As `group members` shows it.")],
    stacks: Annotated[bool, typer.Option("--stacks", help="With the stacks of its threads.")] = False,
) -> None:
    """What one client tells of itself: settings, queues, rates."""
    info = operator.ask(lambda admin: admin.running_info(name, client_id, with_stacks=stacks))
    queues = [
        {
            "topic": queue.topic,
            "broker": queue.broker_name,
            "queueId": queue.queue_id,
            "committed": each.commit_offset,
            "cached": each.cached_messages,
            "locked": each.is_locked,
            "dropped": each.is_dropped,
        }
        for queue, each in sorted(info.queues.items())
    ]
    rates = [
        {
            "topic": topic,
            "pullTps": each.pull_tps,
            "consumeTps": each.consume_ok_tps,
            "failedTps": each.consume_failed_tps,
            "consumeMs": each.consume_rt,
        }
        for topic, each in sorted(info.status.items())
    ]
    if not operator.output.is_for_people:
        operator.show_object(
            {"clientId": client_id, "properties": dict(info.properties), "queues": queues, "rates": rates}
            | ({"stacks": info.jstack} if stacks else {})
        )
        return
    operator.show_object(dict(sorted(info.properties.items())))
    for each_rows in (queues, rates):
        if each_rows:
            operator.say("")
            operator.show([Column(key) for key in each_rows[0]], each_rows)
    if stacks:
        operator.say_safely("\n" + (info.jstack or "no stacks"))


@group.command(cls=Watched)
@operator_command("group lag")
def lag(
    operator: Operator,
    name: Annotated[
        str | None, typer.Argument(metavar="[GROUP]", help="Queue by queue; without it, all groups.")
    ] = None,
    topic: TopicOption = None,
    cluster: ClusterNameOption = None,
    watch: WatchOption = None,
    everything: Annotated[bool, typer.Option("--all", help="Also groups of the system.")] = False,
) -> None:
    """How many messages wait for groups, and for how long."""

    async def of_group(admin: "Admin", group: str) -> "tuple[GroupProgress, list[Row]]":
        progress = await admin.group_progress(group, topic)
        return progress, await queue_lag_rows(admin, group, progress.queues)

    def look() -> None:
        if name is None:
            rows = operator.ask(lambda admin: group_lag_rows(admin, cluster, topic))
            shown = [row for row in rows if everything or not is_system_group(str(row["group"]))]
            operator.show(GROUP_LAGS, shown, empty="no lag is known")
            return
        progress, rows = operator.ask(lambda admin: of_group(admin, name))
        operator.show(QUEUE_LAGS, rows, empty=f"group {name} has consumed nothing yet")
        wait = counted(progress.lag, "message waits", "messages wait")
        operator.say(f"{wait}, {progress.consume_tps:.2f} are consumed per second")

    repeat(look, watch, operator)


@group.command()
@operator_command("group create", writes=True)
def create(
    operator: Operator,
    name: GroupArgument,
    retries: Annotated[
        int | None, typer.Option("--retries", min=0, max=MOST_INT, help="Attempts after the first.")
    ] = None,
    orderly: Annotated[bool, typer.Option("--orderly", help="Pops are handed out in order.")] = False,
    field: FieldOption = None,
    cluster: ClusterNameOption = None,
    broker: BrokerOption = None,
) -> None:
    """Create a group on all masters, or those of a cluster or a broker; one that is there is left alone."""
    from skyrocket.client import GroupChange
    from skyrocket.client.core.names import check_group
    from skyrocket.model.subscription_group import SubscriptionGroup

    check_group(name)  # before the plan is shown
    wanted = SubscriptionGroup(name, **group_fields(field, retries, orderly or None))

    async def missing(admin: "Admin") -> "list[BrokerPlace]":
        tables = await admin.group_table(cluster=cluster, broker=broker)
        return [place for place, table in tables.items() if name not in table]

    places = operator.ask(missing)
    if not places:
        raise ConfigError(f"group {name} is there already: `skyrocket group update {name}` changes it")

    changes = [GroupChange(place, None, wanted) for place in places]
    fields = {key: value for key, value in fields_of(wanted).items() if key != "name"}
    shown = [change for place in places for change in differences(f"group {name}", str(place), {}, fields)]
    done = f"group {name} is created at {counted(len(places), 'broker')}"
    operator.carry_out(shown, lambda admin: admin.apply_group_changes(changes), done=done)


@group.command()
@operator_command("group update", writes=True)
def update(
    operator: Operator,
    name: GroupArgument,
    retries: Annotated[
        int | None, typer.Option("--retries", min=0, max=MOST_INT, help="Attempts after the first.")
    ] = None,
    orderly: Annotated[
        bool | None, typer.Option("--orderly/--not-orderly", help="Pops are handed out in order.")
    ] = None,
    enabled: Annotated[bool | None, typer.Option("--enable/--disable", help="May the group consume at all?")] = None,
    field: FieldOption = None,
    cluster: ClusterNameOption = None,
    broker: BrokerOption = None,
) -> None:
    """Change what is named, and nothing else, wherever the group is; shows the difference first."""
    wanted = group_fields(field, retries, orderly)
    if enabled is not None:
        wanted["may_consume"] = enabled
    changes = operator.ask(lambda admin: admin.group_changes(name, wanted, cluster=cluster, broker=broker))
    shown = [
        change
        for each in changes
        for change in differences(f"group {name}", str(each.place), fields_of(each.before), fields_of(each.after))
    ]
    question = f"Group {name} will consume nothing any more. Do it?" if enabled is False else None
    operator.carry_out(shown, lambda admin: admin.apply_group_changes(changes), question=question)


@group.command()
@operator_command("group pause", writes=True)
def pause(operator: Operator, name: GroupArgument, topic: TopicToReadOption) -> None:
    """Let a group read a topic no more: brokers refuse its pulls, messages wait; `group resume` ends it. Not at 4.x."""
    _read(operator, name, topic, allowed=False)


@group.command()
@operator_command("group resume", writes=True)
def resume(operator: Operator, name: GroupArgument, topic: TopicToReadOption) -> None:
    """Let a group read a topic again after `group pause`; it goes on where it was."""
    _read(operator, name, topic, allowed=True)


def _read(operator: Operator, name: str, topic: str, *, allowed: bool) -> None:
    """Brokers tell nobody what is forbidden, so that what was before is not shown."""
    operator.ask(lambda admin: admin.group_configs(name))
    operator.carry_out(
        [Change(f"group {name}", f"topic {topic}", "may read", None, allowed)],
        lambda admin: admin.forbid_reading(name, topic, forbidden=not allowed),
        question=None if allowed else f"Group {name} gets nothing of topic {topic} any more. Do it?",
        done=f"group {name} {'reads' if allowed else 'does not read'} {topic}{' again' if allowed else ' any more'}",
    )


def group_fields(given: list[str] | None, retries: int | None, orderly: bool | None) -> dict[str, Any]:
    """Fields of a SubscriptionGroup by their names there; raises ConfigError."""
    import dataclasses

    from skyrocket.model.subscription_group import SubscriptionGroup

    kinds = {each.name: each.default for each in dataclasses.fields(SubscriptionGroup)}
    settable = {name: type(default) for name, default in kinds.items() if isinstance(default, bool | int)}
    found: dict[str, Any] = {}
    for key, text in pairs_of(given, "--set").items():
        if key not in settable:
            raise ConfigError(f"--set {key} is not a field of a group: {', '.join(settable)}")
        found[key] = _value(key, text, settable[key])
    if retries is not None:
        found["retry_max_times"] = retries
    if orderly is not None:
        found["consumes_orderly"] = orderly
    return found


def _value(key: str, text: str, kind: type) -> bool | int:
    if kind is bool:
        if text.lower() not in ("true", "false"):
            raise ConfigError(f"--set {key}={text} is neither true nor false")
        return text.lower() == "true"
    if not text.isdecimal() or len(text) > len(str(MOST_INT)) or int(text) > MOST_INT:
        raise ConfigError(f"--set {key}={text} is not a number from 0 to {MOST_INT}")
    return int(text)


@group.command()
@operator_command("group delete", writes=True)
def delete(
    operator: Operator,
    name: GroupArgument,
    with_offsets: Annotated[bool, typer.Option("--with-offsets", help="Forget how far it is as well.")] = False,
    with_topics: Annotated[
        bool, typer.Option("--with-topics", help="Delete its retry topic and its dead letters as well.")
    ] = False,
    cluster: ClusterNameOption = None,
) -> None:
    """Delete a group; says first what is lost."""
    from skyrocket.client import BrokerRefused, NoRoute
    from skyrocket.model.topic import DLQ_PREFIX, RETRY_PREFIX

    async def look(admin: "Admin") -> tuple[list[Change], str]:
        configs = await admin.group_configs(name, cluster=cluster)
        try:
            clients = len((await admin.consumer_connections(name)).connections)
        except (BrokerRefused, NoRoute):
            clients = 0
        try:
            waiting = (await admin.group_progress(name)).lag
        except (NoRoute, BrokerRefused):
            waiting = 0
        changes = [Change(f"group {name}", str(place), "settings", "kept", None) for place in configs]
        return (
            changes,
            f"{counted(waiting, 'message')} to consume, {counted(clients, 'client that runs', 'clients that run')}",
        )

    async def delete_all(admin: "Admin") -> None:
        await admin.delete_group(name, cluster=cluster, with_offsets=with_offsets)
        for prefix in (RETRY_PREFIX, DLQ_PREFIX) if with_topics else ():
            await admin.delete_topic(prefix + name, cluster=cluster)

    changes, lost = operator.ask(look)
    if operator.dry_run:
        operator.say_safely(f"would be lost: {lost}")
    operator.carry_out(
        changes, delete_all, question=f"Group {name} is deleted: {lost}. Do it?", done=f"group {name} is deleted"
    )
