"""mqadmin's commands that tell how far groups are, and how fast."""

from collections.abc import AsyncIterator, Awaitable
from typing import Any, Final, TypeVar

from skyrocket.cli.mqadmin.java_text import front, time_s
from skyrocket.cli.mqadmin.options import Given
from skyrocket.cli.mqadmin.printing import Printer
from skyrocket.client import Admin, GroupProgress, MessageQueue, NotFound
from skyrocket.errors import SkyrocketError
from skyrocket.model.topic import DLQ_PREFIX, RETRY_PREFIX
from skyrocket.protocol.bodies.statistics import BrokerStatsData
from skyrocket.protocol.codes import version_name
from skyrocket.remoting.errors import RemotingError

T = TypeVar("T")

_QUEUES: Final = (
    "#Topic",
    "#Broker Name",
    "#QID",
    "#Broker Offset",
    "#Consumer Offset",
    "#Diff",
    "#Inflight",
    "#LastTime",
)
_GROUPS: Final = ("#Group", "#Count", "#Version", "#Type", "#Model", "#TPS", "#Diff Total")
_BROKER: Final = (
    "#Topic",
    "#Group",
    "#Broker Name",
    "#QID",
    "#Broker Offset",
    "#Consumer Offset",
    "#Diff",
    "#LastTime",
)
_RATES: Final = (
    "#Topic",
    "#Consumer Group",
    "#Accumulation",
    "#InTPS",
    "#OutTPS",
    "#InMsg24Hour",
    "#OutMsg24Hour",
)


async def consumer_progress(admin: Admin, given: Given, out: Printer) -> None:
    if "groupName" not in given:
        form = "%-64s  %-6s  %-24s %-5s  %-14s  %-7s  %s"
        out.table(form, _GROUPS, [row async for row in _all_groups(admin)])
        return
    group = given["groupName"]
    progress = await admin.group_progress(group, given.get("topicName"))
    owners = await _owners(admin, group) if given.is_true("showClientIP") else None
    _print_queues(progress, owners, out)
    out.line()
    out.line(f"Consume TPS: {progress.consume_tps:.2f}")
    out.line(f"Consume Diff Total: {progress.lag}")
    out.line(f"Consume Inflight Total: {sum(each.in_flight for each in progress.queues)}")


def _print_queues(progress: GroupProgress, owners: dict[MessageQueue, str] | None, out: Printer) -> None:
    rows: list[tuple[Any, ...]] = []
    for each in progress.queues:
        last = "N/A" if each.last_timestamp == 0 else time_s(each.last_timestamp)
        queue = front(each.queue.topic, 64), front(each.queue.broker_name, 32), each.queue.queue_id
        client = () if owners is None else (owners.get(each.queue, "N/A"),)
        rows.append((*queue, each.broker_offset, each.consumer_offset, *client, each.lag, each.in_flight, last))
    if owners is None:
        form = "%-64s  %-32s  %-4s  %-20s  %-20s  %-20s %-20s%s"
        out.table(form, _QUEUES, rows, row_form="%-64s  %-32s  %-4d  %-20d  %-20d  %-20d %-20d %s")
    else:
        titles = (*_QUEUES[:5], "#Client IP", *_QUEUES[5:])
        form = "%-64s  %-32s  %-4s  %-20s  %-20s  %-20s %-20s %-20s%s"
        out.table(form, titles, rows, row_form="%-64s  %-32s  %-4d  %-20d  %-20d  %-20s %-20d %-20d %s")


async def _owners(admin: Admin, group: str) -> dict[MessageQueue, str]:
    """Which client, by its address, has which queue; nobody has one of a group that is not there."""
    owners: dict[MessageQueue, str] = {}
    members = await _if_known(admin.consumer_connections(group))
    for client in members.connections if members is not None else ():
        try:
            info = await admin.running_info(group, client.client_id)
        except SkyrocketError as error:  # as RocketMQ: its queues are nobody's; but it is named
            admin.failures[f"client {client.client_id}"] = error
            continue
        owners |= dict.fromkeys(info.queues, client.client_id.split("@")[0])
    return owners


async def _all_groups(admin: Admin) -> AsyncIterator[tuple[Any, ...]]:
    for topic in await admin.topics():
        if not topic.startswith(RETRY_PREFIX):
            continue
        group = topic.removeprefix(RETRY_PREFIX)
        progress = await _if_known(admin.group_progress(group))
        members = await _if_known(admin.consumer_connections(group))
        count = 0 if members is None else len(members.connections)
        version, kind, model = "OFFLINE", "", ""
        if members is not None and count:
            version = version_name(min(each.version for each in members.connections))
            kind = "PULL" if members.consume_type == "CONSUME_ACTIVELY" else "PUSH"
            model = (members.message_model or "") if members.consume_type == "CONSUME_PASSIVELY" else ""
        tps = 0 if progress is None else int(progress.consume_tps)
        yield front(group, 64), count, version, kind, model, tps, 0 if progress is None else progress.lag


async def _if_known(question: Awaitable[T]) -> T | None:
    """As RocketMQ: what is not known is left empty, as the offsets of a group that broadcasts."""
    try:
        return await question
    except SkyrocketError:
        return None


async def broker_consume_stats(admin: Admin, given: Given, out: Printer) -> None:
    level = given.number("level", 0)
    given.number("timeoutMillis", 50_000)  # the limit is that of all commands; what is no number is refused
    (stats,) = (await admin.broker_lag(broker=given["brokerAddr"], ordered=given.is_true("order"))).values()
    rows = [
        (
            front(queue.topic, 64),
            group,
            front(queue.broker_name, 32),
            queue.queue_id,
            lag.broker_offset,
            lag.consumer_offset,
            lag.broker_offset - lag.consumer_offset,
            time_s(lag.last_timestamp),
        )
        for groups in stats.groups
        for group, all_of in groups.items()
        for each in all_of
        for queue, lag in sorted(each.offsets.items())
        if lag.last_timestamp > 0 and lag.broker_offset - lag.consumer_offset >= level
    ]
    form = "%-64s  %-64s  %-32s  %-4s  %-20s  %-20s  %-20s  %s"
    out.table(form, _BROKER, rows, row_form="%-64s  %-64s  %-32s  %-4d  %-20d  %-20d  %-20d  %s")
    out.line()
    out.line(f"Diff Total: {stats.total_lag}")


async def stats_all(admin: Admin, given: Given, out: Printer) -> None:
    out.table("%-64s  %-64s %12s %11s %11s %14s %14s", _RATES, ())
    wanted = given.get("topic")
    topics = await admin.topics()
    if wanted and wanted not in topics:
        raise NotFound(f"there is no topic {wanted}")
    for topic in topics:
        if topic.startswith((RETRY_PREFIX, DLQ_PREFIX)) or (wanted and topic != wanted):
            continue
        try:
            await _topic_rates(admin, topic, out, only_active="activeTopic" in given)
        except RemotingError as error:  # as RocketMQ: a topic whose broker is away is left out; but the broker is named
            admin.failures[error.address] = error
        except SkyrocketError as error:
            admin.failures[f"topic {topic}"] = error


async def _topic_rates(admin: Admin, topic: str, out: Printer, *, only_active: bool) -> None:
    places = [
        address
        for broker in (await admin.route(topic)).data.brokers
        if (address := broker.addresses.get(0)) is not None
    ]
    groups = await admin.groups_of_topic(topic)
    puts = [await admin.statistics("TOPIC_PUT_NUMS", topic, broker=address) for address in places]
    in_tps, in_day = sum(each.minute.tps for each in puts), sum(map(_day_sum, puts))
    name = front(topic, 64)
    if not groups and (not only_active or in_day > 0):
        row = (name, "", 0, in_tps, "", in_day, "NO_CONSUMER")
        out.rows("%-64s  %-64s %12d %11.2f %11s %14d %14s", _RATES, [row])
    for group in groups:
        gets = [await admin.statistics("GROUP_GET_NUMS", f"{topic}@{group}", broker=address) for address in places]
        out_tps, out_day = sum(each.minute.tps for each in gets), sum(map(_day_sum, gets))
        if not only_active or in_day > 0 or out_day > 0:
            waiting = max(sum(each.lag for each in await admin.consumer_lag(group, topic)), 0)
            row = (name, front(group, 64), waiting, in_tps, out_tps, in_day, out_day)  # type: ignore[assignment]
            out.rows("%-64s  %-64s %12d %11.2f %11.2f %14d %14d", _RATES, [row])


def _day_sum(stats: BrokerStatsData) -> int:
    """RocketMQ: of the day, else of the hour, else of the minute, whichever is known."""
    return stats.day.sum or stats.hour.sum or stats.minute.sum
