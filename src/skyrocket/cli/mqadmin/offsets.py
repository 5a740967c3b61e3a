"""mqadmin's commands that move groups."""

import time
from typing import Final

from skyrocket.cli.mqadmin.java_text import flag, front, moment_ms
from skyrocket.cli.mqadmin.options import Given
from skyrocket.cli.mqadmin.printing import Printer
from skyrocket.cli.mqadmin.targets import broker_of
from skyrocket.client import Admin, BrokerRefused, MessageQueue, NotFound, ResetPreview
from skyrocket.client.admin.offset_admin import NO_RESET_THERE

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
    await _check_group(admin, group)
    moved = await _moved_by_brokers(admin, group, topic, ms / 1000, force=force)
    if moved is not None:
        out.line(f"start reset consumer offset by specified, group[{group}], {what}")
        _print_moved(moved, out)
        return
    preview = await admin.preview_reset(group, topic, ms / 1000)
    await admin.reset_offsets(group, topic, ms / 1000, force=force)
    out.line(f"reset consumer offset by specified consumerGroup[{group}], {what}")
    _print_preview(preview, "#resetOffset", out)


async def skip_accumulated_message(admin: Admin, given: Given, out: Printer) -> None:
    group, topic = given["group"], given["topic"]
    force = given.is_true("force", default=True)
    await _check_group(admin, group)
    moved = await _moved_by_brokers(admin, group, topic, _TO_THE_END, force=force)
    if moved is not None:
        _print_moved(moved, out)
        return
    preview = await admin.preview_reset(group, topic, _TO_THE_END)
    await admin.reset_offsets(group, topic, _TO_THE_END, force=force)
    _print_preview(preview, "#rollbackOffset", out)


async def _moved_by_brokers(
    admin: Admin, group: str, topic: str, moment: float | None, *, force: bool
) -> dict[MessageQueue, int] | None:
    """Where brokers have set it; None when those are of RocketMQ 4.x and nobody of the group runs."""
    try:
        return await admin.reset_by_brokers(group, topic, moment, force=force)
    except BrokerRefused as error:
        if error.code not in NO_RESET_THERE:
            raise
        return None


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
    if queue not in await admin.queues(topic):
        raise NotFound(f"topic {topic} has no queue {queue_id} at broker {place.broker_name}")
    out.line(
        f"start reset consumer offset by specified, group[{group}], topic[{topic}], queueId[{queue_id}], "
        f"broker[{place.address}], timestamp(string)[{given['timestamp']}], timestamp(long)[{ms}]"
    )
    offset = given.number("offset") if "offset" in given else await admin.offset_at(queue, ms / 1000)
    await admin.move_queue(group, queue, offset)  # RocketMQ does nothing for offset 0
    out.line(f"reset consumer offset to {offset}")


async def clone_group_offset(admin: Admin, given: Given, out: Printer) -> None:
    source, target, topic = given["srcGroup"], given["destGroup"], given["topic"]
    if all(each.queue.topic != topic for each in await admin.consumer_lag(source)):
        raise NotFound(f"group {source} has no offsets in topic {topic}")
    await admin.clone_offsets(source, target, topic, even_if_online=given.is_true("offline", default=True))
    out.text(f"clone group offset success. srcGroup[{source}], destGroup=[{target}], topic[{topic}]")
