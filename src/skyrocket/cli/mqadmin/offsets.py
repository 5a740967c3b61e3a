"""mqadmin's commands that move groups."""

import time
from typing import Final

from skyrocket.cli.mqadmin.java_text import flag, front, moment_ms
from skyrocket.cli.mqadmin.options import Given
from skyrocket.cli.mqadmin.printing import Printer
from skyrocket.cli.mqadmin.targets import broker_of
from skyrocket.client import Admin, BrokerRefused, MessageQueue, NotFound, ResetPreview
from skyrocket.protocol.codes import ResponseCode

_MOVED: Final = ("#brokerName", "#queueId", "#offset")
_TO_THE_END: Final = None


async def reset_offset_by_time(admin: Admin, given: Given, out: Printer) -> None:
    group, topic, text = given["group"], given["topic"], given["timestamp"]
    ms = round(time.time() * 1000) if text == "now" else moment_ms(text)
    if "broker" in given and "queue" in given:
        await _reset_queue(admin, given, out, ms)
        return
    force = given.is_true("force", default=True)
    what = f"topic[{topic}], force[{flag(force)}], timestamp(string)[{text}], timestamp(long)[{ms}]"
    if await _is_online(admin, group):
        moved = await admin.reset_offsets(group, topic, ms / 1000, force=force)
        out.line(f"start reset consumer offset by specified, group[{group}], {what}")
        _print_moved(moved, out)
        return
    await _check_group(admin, group)
    preview = await admin.preview_reset(group, topic, ms / 1000)
    await admin.reset_offsets(group, topic, ms / 1000, force=force)
    out.line(f"reset consumer offset by specified consumerGroup[{group}], {what}")
    _print_preview(preview, "#resetOffset", out)


async def skip_accumulated_message(admin: Admin, given: Given, out: Printer) -> None:
    group, topic = given["group"], given["topic"]
    force = given.is_true("force", default=True)
    if await _is_online(admin, group):
        _print_moved(await admin.reset_offsets(group, topic, _TO_THE_END, force=force), out)
        return
    await _check_group(admin, group)
    preview = await admin.preview_reset(group, topic, _TO_THE_END)
    await admin.reset_offsets(group, topic, _TO_THE_END, force=force)
    _print_preview(preview, "#rollbackOffset", out)


async def _is_online(admin: Admin, group: str) -> bool:
    try:
        return bool((await admin.consumer_connections(group)).connections)
    except BrokerRefused as error:
        if error.code != ResponseCode.CONSUMER_NOT_ONLINE:
            raise
        return False


async def _check_group(admin: Admin, group: str) -> None:
    """RocketMQ's answer to a group that nobody knows; raises NotFound."""
    try:
        await admin.group_configs(group)
    except NotFound as error:
        raise NotFound(f"CODE: 26  DESC: Group {group} does not exist; check its name") from error


def _print_moved(moved: dict[MessageQueue, int], out: Printer) -> None:
    rows = [(front(queue.broker_name, 32), queue.queue_id, offset) for queue, offset in sorted(moved.items())]
    out.table("%-40s  %-40s  %-40s", _MOVED, rows, row_form="%-40s  %-40d  %-40d")


def _print_preview(preview: ResetPreview, last: str, out: Printer) -> None:
    titles = ("#brokerName", "#queueId", "#brokerOffset", "#consumerOffset", "#timestampOffset", last)
    rows = [
        (
            front(move.queue.broker_name, 32),
            move.queue.queue_id,
            move.end,
            move.first if move.committed is None else move.committed,
            move.target,
            move.target,
        )
        for move in preview.moves
    ]
    form = "%-20s  %-20s  %-20s  %-20s  %-20s  %-20s"
    out.table(form, titles, rows, row_form="%-20s  %-20d  %-20d  %-20d  %-20d  %-20d")


async def _reset_queue(admin: Admin, given: Given, out: Printer, ms: int) -> None:
    group, topic, queue_id = given["group"], given["topic"], given.number("queue")
    place = await broker_of(admin, given["broker"])
    queue = MessageQueue(topic, place.broker_name, queue_id)
    out.line(
        f"start reset consumer offset by specified, group[{group}], topic[{topic}], queueId[{queue_id}], "
        f"broker[{place.address}], timestamp(string)[{given['timestamp']}], timestamp(long)[{ms}]"
    )
    await admin.route(topic)
    offset = given.number("offset") if "offset" in given else await admin.offset_at(queue, ms / 1000)
    await admin.move_queue(group, queue, offset)  # RocketMQ does nothing for offset 0
    out.line(f"reset consumer offset to {offset}")


async def clone_group_offset(admin: Admin, given: Given, out: Printer) -> None:
    source, target, topic = given["srcGroup"], given["destGroup"], given["topic"]
    await admin.clone_offsets(source, target, topic)
    out.text(f"clone group offset success. srcGroup[{source}], destGroup=[{target}], topic[{topic}]")
