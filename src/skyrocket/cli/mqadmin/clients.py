"""mqadmin's commands of clients: who is connected, and what they tell of themselves."""

import asyncio
import re
import time
from collections.abc import Mapping
from pathlib import Path
from typing import Final

from skyrocket.cli.mqadmin.java_text import flag, queue_text, time_digits, time_s
from skyrocket.cli.mqadmin.options import Given
from skyrocket.cli.mqadmin.printing import Printer
from skyrocket.client import Admin
from skyrocket.client.admin.client_diagnosis import queue_findings, same_subscriptions, unowned_queues
from skyrocket.errors import SkyrocketError
from skyrocket.model.topic import RETRY_PREFIX
from skyrocket.protocol.bodies.connections import ConsumerConnections
from skyrocket.protocol.bodies.running_info import ConsumerRunningInfo, ProcessQueueInfo
from skyrocket.protocol.codes import version_name

# RocketMQ's formats of what a client tells.
_PAIR: Final = "%-40s: %s\n"
_SUBSCRIPTION: Final = "%03d Topic: %-40s ClassFilter: %-8s SubExpression: %s\n"
_HEADING: Final = "%-64s  %-32s  %-4s  %-20s\n"
_OFFSET: Final = "%-32s  %-32s  %-4d  %-20d\n"
_DETAIL: Final = "%-64s  %-32s  %-4d  %s\n"
_POP_HEADING: Final = "%-32s  %-32s  %-4s  %-20s\n"
_POPPED: Final = "%-32s  %-32s  %-4d  %s\n"
_RATES_HEADING: Final = "%-64s  %14s %14s %14s %14s %18s %25s\n"
_RATES: Final = "%-32s  %14.2f %14.2f %14.2f %14.2f %18.2f %25d\n"

_LONGEST_FILE_NAME: Final = 250  # bytes
_MONITORED_EVERY: Final = 60.0
_MUCH_LAG: Final = 100_000
_LONG_SECONDS: Final = 600


async def consumer_connection(admin: Admin, given: Given, out: Printer) -> None:
    members = await admin.consumer_connections(given["consumerGroup"], broker=given.get("brokerAddr"))
    rows = [
        (each.client_id, each.client_address, each.language, version_name(each.version)) for each in members.connections
    ]
    out.table("%-36s %-22s %-10s %s", ("#ClientId", "#ClientAddr", "#Language", "#Version"), rows)
    out.text("\nBelow is subscription:\n")
    if out.is_for_people:
        subscriptions = [(each.topic, each.expression) for _, each in sorted(members.subscriptions.items())]
        out.table("%-20s %s", ("#Topic", "#SubExpression"), subscriptions)
    out.line()
    out.line(f"ConsumeType: {members.consume_type}")
    out.line(f"MessageModel: {members.message_model}")
    out.line(f"ConsumeFromWhere: {members.consume_from_where}")


async def producer_connection(admin: Admin, given: Given, out: Printer) -> None:
    found = await admin.producer_connections(given["producerGroup"], given["topic"])
    rows = [
        (number, each.client_id, each.client_address, each.language, version_name(each.version))
        for number, each in enumerate(found.connections, 1)
    ]
    out.rows("%04d  %-32s %-22s %-8s %s", ("#Index", "#ClientId", "#ClientAddr", "#Language", "#Version"), rows)


async def producer(admin: Admin, given: Given, out: Printer) -> None:
    (table,) = (await admin.producers(broker=given["broker"])).values()
    rows = [
        (group, each.client_id, each.remote_address, each.language, each.version, each.last_update_timestamp)
        for group, connected in table.groups.items()
        for each in connected
    ]
    titles = ("group", "clientId", "remoteIP", "language", "version", "lastUpdateTimestamp")
    form = "producer group (%s) instance : clientId=%s,remoteIP=%s, language=%s, version=%d, lastUpdateTimestamp=%d"
    out.rows(form, titles, rows)


async def consumer_status(admin: Admin, given: Given, out: Printer) -> None:
    group, stacks = given["consumerGroup"], "jstack" in given
    if "clientId" in given:
        info = await admin.running_info(group, given["clientId"], with_stacks=stacks)
        out.text(running_text(info))
        return
    members = await admin.consumer_connections(group, broker=given.get("brokerAddr"))
    folder = Path(str(round(time.time() * 1000)))
    infos: dict[str, ConsumerRunningInfo] = {}
    silent: dict[str, Exception] = {}
    titles = ("#Index", "#ClientId", "#Version", "#ConsumerRunningInfoFile")
    out.table("%-10s %-40s %-20s %s", titles, ())
    for each in members.connections:
        try:
            info = await admin.running_info(group, each.client_id, with_stacks=stacks)
        except SkyrocketError as error:  # as RocketMQ: the others are shown
            silent[f"client {each.client_id}"] = error
            continue
        infos[each.client_id] = info
        path = _written(folder, each.client_id, running_text(info))
        row = (len(infos), each.client_id, version_name(each.version), str(path))
        out.rows("%-10d %-40s %-20s %s", titles, [row])
    if silent and not infos:
        raise next(iter(silent.values()))
    admin.failures.update(silent)
    if infos:
        await _judge(admin, members, infos, out, all_told=not silent)


def _written(folder: Path, client_id: str, text: str) -> Path:
    """A file named after a client, whatever it calls itself; raises SkyrocketError."""
    name = re.sub(r"[/\0]", "_", client_id).encode("utf-8", "replace")[:_LONGEST_FILE_NAME].decode("utf-8", "ignore")
    path = folder / (name if name.strip(".") else f"_{name}")
    try:
        folder.mkdir(exist_ok=True)
        path.write_text(text, encoding="utf-8", errors="backslashreplace")
    except OSError as error:
        raise SkyrocketError(f"{path} cannot be written: {error.strerror}; -i {client_id} shows it here") from error
    return path


async def _judge(
    admin: Admin,
    members: ConsumerConnections,
    infos: Mapping[str, ConsumerRunningInfo],
    out: Printer,
    *,
    all_told: bool,
) -> None:
    """What is wrong with a group; whose queues are nobody's can only be said when all of its clients told theirs."""
    if not same_subscriptions(infos):
        out.text("\n\nWARN: Different subscription in the same group of consumer!!!")
        return
    out.text("\n\nSame subscription in the same group of consumer")
    if all_told:
        unowned = await unowned_queues(admin, members, infos)
        out.text(f"\n\nRebalance {'OK' if not unowned else 'Failed'}\n")
        for queue in unowned:
            out.line(f"nobody has {queue_text(queue)}")
    for client_id, info in infos.items():
        for finding in queue_findings(client_id, info, round(time.time() * 1000)):
            out.line(finding)


def running_text(info: ConsumerRunningInfo) -> str:
    """ConsumerRunningInfo.formatString."""
    parts = ["#Consumer Properties#\n"]
    parts += [_PAIR % pair for pair in info.properties.items()]
    parts.append("\n\n#Consumer Subscription#\n")
    for number, each in enumerate(sorted(info.subscriptions, key=lambda each: each.topic), 1):
        parts.append(_SUBSCRIPTION % (number, each.topic, flag(each.is_class_filter), each.expression))
    queues = sorted(info.queues.items())
    parts.append("\n\n#Consumer Offset#\n" + _HEADING % ("#Topic", "#Broker Name", "#QID", "#Consumer Offset"))
    parts += [_OFFSET % (*queue, each.commit_offset) for queue, each in queues]
    parts.append("\n\n#Consumer MQ Detail#\n" + _HEADING % ("#Topic", "#Broker Name", "#QID", "#ProcessQueueInfo"))
    parts += [_DETAIL % (*queue, _process_queue(each)) for queue, each in queues]
    heading = _POP_HEADING % ("#Topic", "#Broker Name", "#QID", "#ProcessQueueInfo")
    parts.append("\n\n#Consumer Pop Detail#\n" + heading)
    for queue, popped in sorted((info.pop_queues or {}).items()):
        text = (
            f"PopProcessQueueInfo [waitAckCount:{popped.wait_ack_count}, droped:{flag(popped.is_dropped)}, "
            f"lastPopTimestamp:{popped.last_pop_timestamp}]"
        )
        parts.append(_POPPED % (*queue, text))
    return "".join(parts) + _rates_text(info)


def _rates_text(info: ConsumerRunningInfo) -> str:
    titles = (
        "#Topic",
        "#Pull RT",
        "#Pull TPS",
        "#Consume RT",
        "#ConsumeOK TPS",
        "#ConsumeFailed TPS",
        "#ConsumeFailedMsgsInHour",
    )
    parts = ["\n\n#Consumer RT&TPS#\n", _RATES_HEADING % titles]
    for topic, each in sorted(info.status.items()):
        rates = each.pull_rt, each.pull_tps, each.consume_rt, each.consume_ok_tps, each.consume_failed_tps
        parts.append(_RATES % (topic, *rates, each.consume_failed_messages))
    parts.append("\n\n#User Consume Info#\n")
    parts += [_PAIR % pair for pair in (info.user_info or {}).items()]
    if info.jstack is not None:
        parts.append("\n\n#Consumer jstack#\n" + info.jstack)
    return "".join(parts)


def _process_queue(info: ProcessQueueInfo) -> str:
    return (
        f"ProcessQueueInfo [commitOffset={info.commit_offset}, cachedMsgMinOffset={info.cached_min_offset}, "
        f"cachedMsgMaxOffset={info.cached_max_offset}, cachedMsgCount={info.cached_messages}, "
        f"cachedMsgSizeInMiB={info.cached_mib}, transactionMsgMinOffset={info.transaction_min_offset}, "
        f"transactionMsgMaxOffset={info.transaction_max_offset}, transactionMsgCount={info.transaction_messages}, "
        f"locked={flag(info.is_locked)}, tryUnlockTimes={info.try_unlock_times}, "
        f"lastLockTimestamp={time_digits(info.last_lock_timestamp)}, droped={flag(info.is_dropped)}, "
        f"lastPullTimestamp={time_digits(info.last_pull_timestamp)}, "
        f"lastConsumeTimestamp={time_digits(info.last_consume_timestamp)}]"
    )


async def start_monitoring(admin: Admin, _: Given, out: Printer) -> None:
    """Every minute: groups with much lag or late clients; RocketMQ writes it into a log alone."""
    while True:
        for topic in await admin.topics():
            if topic.startswith(RETRY_PREFIX):
                await _watch(admin, topic.removeprefix(RETRY_PREFIX), out)
        await asyncio.sleep(_MONITORED_EVERY)


async def _watch(admin: Admin, group: str, out: Printer) -> None:
    now_ms = round(time.time() * 1000)
    try:
        for each in await admin.consumer_lag(group):
            late = each.last_timestamp > 0 and now_ms - each.last_timestamp > _LONG_SECONDS * 1000
            if each.lag > _MUCH_LAG or (each.lag > 0 and late):
                since = f"since {time_s(each.last_timestamp)}" if each.last_timestamp > 0 else "since ever"
                out.line(
                    f"{time_s(now_ms)} group {group}: {each.lag} messages wait in {queue_text(each.queue)} {since}"
                )
        infos = {
            each.client_id: await admin.running_info(group, each.client_id)
            for each in (await admin.consumer_connections(group)).connections
        }
    except SkyrocketError as error:
        out.line(f"{time_s(now_ms)} group {group}: {error}")
        return
    if infos and not same_subscriptions(infos):
        out.line(f"{time_s(now_ms)} group {group}: its clients subscribe to different things")
    for client_id, info in infos.items():
        for finding in queue_findings(client_id, info, now_ms):
            out.line(f"{time_s(now_ms)} group {group}: {finding}")
