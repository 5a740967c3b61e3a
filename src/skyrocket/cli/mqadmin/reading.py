"""mqadmin's commands that show messages of topics and queues."""

from collections import Counter
from pathlib import Path
from typing import Final

from skyrocket.cli.mqadmin.java_text import charset_of, message_text, moment_ms, queue_text
from skyrocket.cli.mqadmin.options import Given
from skyrocket.cli.mqadmin.printing import Printer
from skyrocket.client import Admin, MessageQueue, NotFound, ReceivedMessage
from skyrocket.client.core.message import decode_messages
from skyrocket.errors import ConfigError, DataError

_FOUND: Final = ("MSGID", "queueId", "queueOffset", "tags", "keys", "body")


async def print_msg(admin: Admin, given: Given, out: Printer) -> None:
    topic, parent = given["topic"], given.get("lmqParentTopic")
    charset, with_body = charset_of(given.text("charsetName", "UTF-8")), given.is_true("printBody", default=True)
    for queue in await admin.queues(parent or topic):
        wanted = queue._replace(topic=topic)
        begin, end = await _range(admin, given, wanted)
        out.line(f"minOffset={begin}, maxOffset={end}, {queue_text(wanted)}")
        async for message in admin.read_queue(wanted, begin, end, expression=given.text("subExpression", "*")):
            _print(message, out, charset, with_body=with_body)
        out.line("-" * 56)


async def print_msg_by_queue(admin: Admin, given: Given, out: Printer) -> None:
    queue = await _queue(admin, given)
    charset = charset_of(given.text("charsetName", "UTF-8"))
    shows, with_body = given.is_true("print-msg"), given.is_true("printBody")
    begin, end = await _range(admin, given, queue)
    tags: Counter[str] = Counter()
    async for message in admin.read_queue(queue, begin, end, expression=given.text("subExpression", "*")):
        tags[message.tags or ""] += 1
        if shows:
            _print(message, out, charset, with_body=with_body)
    if given.is_true("calculate"):
        out.rows("Tag: %-30s Count: %d", ("Tag", "Count"), ((tag, n) for tag, n in tags.most_common() if tag))


async def consume_message(admin: Admin, given: Given, out: Printer) -> None:
    topic, most = given["topic"], given.number("MessageNumber", 128)
    _check(given, most)
    if "queueId" in given:
        queue = await _queue(admin, given)
        begin, end = await _range(admin, given, queue)
        if given.number("offset", 0) > end:
            out.line(f"{queue_text(queue)} no matched msg, offset={given.number('offset', 0)}")
            return
        begin = max(begin, given.number("offset", 0))
        if end - begin > most:
            out.line(f"The oldler {most} message will be provided")
        await _consume(admin, queue, begin, min(end, begin + most), out)
        if end - begin <= most:
            out.line(f"{queue_text(queue)} print msg finished. status=NO_NEW_MSG, offset={end}")
        return
    left = most
    queues = [each for each in await admin.queues(topic) if given.get("brokerName") in (None, each.broker_name)]
    if not queues:
        raise NotFound(f"topic {topic} has no queue at broker {given.get('brokerName')}")
    for queue in queues:
        if left <= 0:
            return
        begin, end = await _range(admin, given, queue)
        if end - begin > left:
            out.line(f"The older {left} message of the {queue.queue_id} queue will be provided")
        last = min(end, begin + left)
        await _consume(admin, queue, begin, last, out)
        if last == end:
            out.line(f"{queue_text(queue)} print msg finished. status=NO_NEW_MSG, offset={end}")
        left -= max(last - begin, 0)


async def _queue(admin: Admin, given: Given) -> MessageQueue:
    """The queue that is named; raises NotFound."""
    queue = MessageQueue(given["topic"], given["brokerName"], given.number("queueId"))
    if queue not in await admin.queues(queue.topic):
        raise NotFound(f"topic {queue.topic} has no queue {queue.queue_id} at broker {queue.broker_name}")
    return queue


def _check(given: Given, most: int) -> None:
    if most <= 0:
        raise ConfigError("Please input a positive messageNumber!")
    if "queueId" in given and "brokerName" not in given:
        raise ConfigError("Please set the brokerName before queueId!")
    if "offset" in given and "queueId" not in given:
        raise ConfigError("Please set queueId before offset!")


async def _consume(admin: Admin, queue: MessageQueue, begin: int, end: int, out: Printer) -> None:
    is_first = True
    async for message in admin.read_queue(queue, begin, end):
        if is_first:
            out.line("Consume ok")
            is_first = False
        _print(message, out, "utf-8", with_body=True)


async def _range(admin: Admin, given: Given, queue: MessageQueue) -> tuple[int, int]:
    begin, end = await admin.min_offset(queue), await admin.max_offset(queue)
    if "beginTimestamp" in given:
        begin = await admin.offset_at(queue, moment_ms(given["beginTimestamp"]) / 1000)
    if "endTimestamp" in given:
        end = await admin.offset_at(queue, moment_ms(given["endTimestamp"]) / 1000)
    return begin, end


def _print(message: ReceivedMessage, out: Printer, charset: str, *, with_body: bool) -> None:
    text = message_text(message)
    body = message.body.decode(charset, "replace") if with_body else "NOT PRINT BODY"
    if out.is_for_people:
        out.line(f"MSGID: {message.message_id} {text} BODY: {body}")
        return
    row = (message.message_id, message.queue_id, message.queue_offset, message.tags, message.keys, body)
    out.rows("%s", _FOUND, [row])


async def dump_compaction_log(_: Admin, given: Given, out: Printer) -> None:
    """Shows a file of records, up to where it is not written."""
    if "file" not in given:
        raise ConfigError("miss dump log file name")
    path = Path(given["file"])
    if not path.is_file():
        raise ConfigError(f"file {path} {'is a directory' if path.is_dir() else 'not exist'}.")
    data = path.read_bytes()
    at = 0
    while at + 4 <= len(data):
        size = int.from_bytes(data[at : at + 4], "big", signed=True)
        if size <= 0 or at + size > len(data):
            return
        try:
            (message,) = decode_messages(data[at : at + size], "")
        except (DataError, ValueError) as error:
            raise DataError(f"{path} at byte {at}: {error}") from error
        out.line(message_text(message, with_body=False))
        at += size
