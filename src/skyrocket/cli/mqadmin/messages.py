"""mqadmin's commands that find messages."""

import tempfile
from pathlib import Path
from typing import Any, Final

import orjson

from skyrocket.cli.mqadmin.java_text import (
    charset_of,
    consumption_text,
    java_map,
    receipt_text,
    shown_flag,
    time_ms,
    time_s,
    track_text,
)
from skyrocket.cli.mqadmin.options import Given
from skyrocket.cli.mqadmin.printing import Printer
from skyrocket.client import Admin, MessageQueue, NotFound, ReceivedMessage
from skyrocket.errors import ConfigError, SkyrocketError
from skyrocket.format.trace import CallBegan, CallEnded, Sent
from skyrocket.protocol.bodies.tables import QueueEntryInfo

_FAR: Final = (1 << 63) - 1


async def query_msg_by_id(admin: Admin, given: Given, out: Printer) -> None:
    topic = given["topic"]
    ids = [each.strip() for each in given["msgId"].split(",") if each.strip()]
    if not ids:
        raise ConfigError("--msgId names no message")
    for message_id in ids:
        message = await _found(admin, topic, message_id)
        if "consumerGroup" in given and "clientId" in given:
            await _deliver(admin, given, message, out)
        elif "sendMessage" in given:
            if given.is_true("sendMessage"):
                receipt = await admin.send_again(message, topic)
                out.text(f"prepare resend msg. originalMsgId={message_id}{receipt_text(receipt)}")
        else:
            await _show(admin, message, out, charset=given.get("bodyFormat"), with_offset_id=True)


async def _found(admin: Admin, topic: str, message_id: str) -> ReceivedMessage:
    try:
        return await admin.message(topic, message_id)
    except NotFound as error:
        raise NotFound(f"CODE: 208  DESC: query message by key finished, but no message.\n{error}") from error


async def _deliver(admin: Admin, given: Given, message: ReceivedMessage, out: Printer) -> None:
    group, client = given["consumerGroup"], given["clientId"]
    info = await admin.running_info(group, client)
    if info.properties.get("PROP_CONSUME_TYPE") != "CONSUME_PASSIVELY":
        out.line(f"this {client} client is not push consumer ,not support direct push ")
        return
    out.text(consumption_text(await admin.consume_directly(group, client, message)))


async def _show(
    admin: Admin,
    message: ReceivedMessage,
    out: Printer,
    *,
    charset: str | None = None,
    with_offset_id: bool = False,
    number: int = 0,
) -> None:
    path = _body_file(message, number)
    pairs: list[tuple[str, Any]] = [("OffsetID", message.offset_message_id)] if with_offset_id else []
    pairs += [
        ("Topic", message.topic),
        ("Tags", f"[{message.tags or 'null'}]"),
        ("Keys", f"[{' '.join(message.keys) or 'null'}]"),
        ("Queue ID", message.queue_id),
        ("Queue Offset", message.queue_offset),
        ("CommitLog Offset", message.physical_offset),
        ("Reconsume Times", message.reconsume_times),
        ("Born Timestamp", time_ms(message.born_timestamp)),
        ("Store Timestamp", time_ms(message.store_timestamp)),
        ("Born Host", message.born_host),
        ("Store Host", message.store_host),
        ("System Flag", shown_flag(message)),
        ("Properties", java_map(message.properties)),
        ("Message Body Path", str(path)),
    ]
    if charset is not None:
        pairs.append(("Message Body", message.body.decode(charset_of(charset), "replace")))
    out.pairs("%-20s %s", [(f"{key}:" if out.is_for_people else key, value) for key, value in pairs])
    tracks = await admin.message_track(message)
    if not tracks:
        out.text("\n\nWARN: No Consumer\n")
        return
    out.text("\n\n")
    for track in tracks:
        out.line(track_text(track))


def _body_file(message: ReceivedMessage, number: int) -> Path:
    """Where the body is written, as mqadmin does; the name is made of hex digits, whatever the message says."""
    folder = Path(tempfile.gettempdir()) / "rocketmq" / "msgbodys"
    name = message.message_id if message.message_id.isalnum() else message.offset_message_id
    path = folder / (f"{name}_{number}" if number else name)
    try:
        folder.mkdir(parents=True, exist_ok=True)
        path.write_bytes(message.body)
    except OSError as error:
        raise SkyrocketError(f"the body cannot be written to {path}: {error}; `skyrocket msg get` shows it") from error
    return path


async def query_msg_by_unique_key(admin: Admin, given: Given, out: Printer) -> None:
    topic, key = given["topic"], given["msgId"]
    begin = given.number("startTime") if "startTime" in given else None
    found = await admin.query_by_unique_key(topic, key, begin_ms=begin, end_ms=given.number("endTime", _FAR))
    if not found:
        raise NotFound(f"CODE: 208  DESC: query message by key finished, but no message.\nno message {key} in {topic}")
    if "consumerGroup" in given and "clientId" in given:
        await _deliver(admin, given, found[0], out)
        return
    for number, message in enumerate(found if "showAll" in given else found[:1]):
        await _show(admin, message, out, number=number)


async def query_msg_by_key(admin: Admin, given: Given, out: Printer) -> None:
    begin, end = given.number("beginTimestamp", 0), given.number("endTimestamp", _FAR)
    most = given.number("maxNum", 64)
    kind = given.text("keyType", "K")
    if kind not in ("K", "T"):
        raise ConfigError("index type error, just support K for keys or T for tags")
    query = admin.query_by_key if kind == "K" else admin.query_by_tag
    found = await query(given["topic"], given["msgKey"], most=most, begin_ms=begin, end_ms=end)
    if not found:
        raise NotFound("CODE: 208  DESC: query message by key finished, but no message.")
    rows = [(each.message_id, each.queue_id, each.queue_offset) for each in found]
    out.table("%-50s %4s %40s", ("#Message ID", "#QID", "#Offset"), rows, row_form="%-50s %4d %40d")


async def query_msg_by_offset(admin: Admin, given: Given, out: Printer) -> None:
    queue = MessageQueue(given["topic"], given["brokerName"], given.number("queueId"))
    await admin.route(queue.topic)
    message = await admin.message_at(queue, given.number("offset"))
    await _show(admin, message, out, charset=given.get("bodyFormat"), with_offset_id=True)


async def query_msg_trace_by_id(admin: Admin, given: Given, out: Printer) -> None:
    message_id = given["msgId"]
    events = await admin.trace(
        message_id,
        topic=given.text("traceTopic", "RMQ_SYS_TRACE_TOPIC"),
        most=given.number("maxNum", 64),
        begin_ms=given.number("beginTimestamp", 0),
        end_ms=given.number("endTimestamp", _FAR),
    )
    if not events:
        raise NotFound(f"CODE: 208  DESC: query message by key finished, but no message.\nnobody traced {message_id}")
    form = "%-10s %-20s %-20s %-20s %-10s %-10s"
    status = {True: "success", False: "failed"}
    for each in events:
        if isinstance(each, Sent):
            titles = ("#Type", "#ProducerGroup", "#ClientHost", "#SendTime", "#CostTimes", "#Status")
            row = (
                "Pub",
                each.group,
                each.client_host,
                time_s(each.timestamp),
                f"{each.cost_ms}ms",
                status[each.succeeded],
            )
            out.table(form, titles, [row])
            out.line()
    began = {each.request_id: each for each in events if isinstance(each, CallBegan)}
    calls: dict[str, list[tuple[Any, ...]]] = {}
    for each in events:
        if isinstance(each, CallEnded):
            start = began.get(each.request_id)
            group = each.group or (start.group if start else "")
            at = each.timestamp or (start.timestamp if start else 0)
            row = ("Sub", group, each.client_host, time_s(at), f"{each.cost_ms}ms", status[each.succeeded])
            calls.setdefault(group, []).append(row)
    for rows in calls.values():
        titles = ("#Type", "#ConsumerGroup", "#ClientHost", "#ConsumerTime", "#CostTimes", "#Status")
        out.table(form, titles, rows)
        out.line()


async def query_cq(admin: Admin, given: Given, out: Printer) -> None:
    topic, index = given["topic"], given.number("index")
    broker = given.get("broker")
    if broker is None:
        brokers = (await admin.route(topic)).data.brokers
        broker = next((each.addresses[0] for each in brokers if 0 in each.addresses), None)
        if broker is None:
            raise NotFound("No topic route data!")
    queue = MessageQueue(topic, "", given.number("queue"))
    found = await admin.queue_entries(
        queue, index, given.number("count", 10), group=given.get("consumer"), broker=broker
    )
    rule = "=" * 38
    if found.subscription is not None:
        text = orjson.dumps(orjson.loads(found.subscription.encode()), option=orjson.OPT_INDENT_2).decode()
        out.line(f"Subscription data: \n{text}\n{rule}")
    if found.filter_data is not None:
        out.line(f"Filter data: \n{found.filter_data}\n{rule}")
    out.line(f"Queue data: \nmax: {found.max_index}, min: {found.min_index}\n{rule}")
    for number, entry in enumerate(found.entries or (), index):
        out.line(f"idx: {number}\n{_entry_text(entry)}\n{rule}")
    if not out.is_for_people:
        titles = ("idx", "physicOffset", "physicSize", "tagsCode")
        entries = enumerate(found.entries or (), index)
        out.rows("%s", titles, [(n, e.physical_offset, e.record_size, e.tags_code) for n, e in entries])


def _entry_text(entry: QueueEntryInfo) -> str:
    return (
        f"ConsumeQueueData{{physicOffset={entry.physical_offset}, physicSize={entry.record_size}, "
        f"tagsCode={entry.tags_code}, extendDataJson='{entry.extension or 'null'}', "
        f"bitMap='{entry.bit_map or 'null'}', eval={'true' if entry.matches else 'false'}, "
        f"msg='{entry.message or 'null'}'}}"
    )
