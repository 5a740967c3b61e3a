"""mqadmin's commands that send: one message, or many to see how long it takes."""

import asyncio
import time
from collections.abc import Sequence
from typing import Any, Final

from skyrocket.cli.mqadmin.cluster import interval_of
from skyrocket.cli.mqadmin.java_text import receipt_text, time_s
from skyrocket.cli.mqadmin.options import Given
from skyrocket.cli.mqadmin.printing import Printer
from skyrocket.client import Admin, ClientSettings, Message, MessageQueue, Producer, SendReceipt
from skyrocket.errors import ConfigError, SkyrocketError

_SENT: Final = ("#Broker Name", "#QID", "#Send Result", "#MsgId")
_FORM: Final = "%-32s  %-4s  %-20s    %s"
_LARGEST_BODY: Final = 64 << 20


def _producer(settings: ClientSettings) -> Producer:
    return Producer(f"mqadmin-{time.time_ns() // 1_000_000}", client=settings)


async def send_message(admin: Admin, given: Given, out: Printer) -> None:
    topic = given["topic"]
    if "qid" in given and "broker" not in given:
        raise ConfigError("Broker name must be set if the queue is chosen!")
    settings = admin.settings
    if given.is_true("msgTraceEnable"):
        from dataclasses import replace

        settings = replace(settings, trace=True)
    message = Message(topic, given["body"].encode(), given.get("tags"), given.get("key") or ())
    queue = None
    if "broker" in given:
        queue = MessageQueue(topic, given["broker"], given.number("qid", 0))
    try:
        async with _producer(settings) as producer:
            receipt = await producer.send(message, queue=queue)
    except SkyrocketError:
        out.table(_FORM, _SENT, [("Unknown", "Unknown", "Failed", "None")])
        raise
    row = receipt.queue.broker_name, receipt.queue.queue_id, receipt.status.name, receipt.message_id
    out.table(_FORM, _SENT, [row])


async def check_msg_send_rt(admin: Admin, given: Given, out: Printer) -> None:
    topic, amount = given["topic"], given.number("amount", 100)
    message = Message(topic, _body(given, "size"))
    titles = ("#Broker Name", "#QID", "#Send Result", "#RT")
    out.table(_FORM, titles, ())
    spent: list[int] = []
    failed: list[tuple[MessageQueue, SkyrocketError]] = []
    async with _producer(admin.settings) as producer:
        queues = await producer.queues(topic)
        for number in range(amount):
            queue = queues[number % len(queues)]
            sent, ms = await _timed(producer, message, queue)
            spent.append(ms)
            if isinstance(sent, SkyrocketError):
                failed.append((queue, sent))
            shown = "false" if isinstance(sent, SkyrocketError) else "true"
            out.rows(_FORM, titles, [(queue.broker_name, queue.queue_id, shown, ms)])
    out.line(f"Avg RT: {_average(spent):.2f}")
    if failed and len(failed) == amount:
        raise failed[0][1]
    admin.failures.update((f"queue {queue.queue_id} of {queue.broker_name}", error) for queue, error in failed)


def _body(given: Given, option: str) -> bytes:
    """So many bytes; raises ConfigError."""
    size = given.number(option, 128)
    if not 0 < size <= _LARGEST_BODY:
        raise ConfigError(f"--{option} {size} is not a number of bytes from 1 to {_LARGEST_BODY}")
    return b"a" * size


async def _timed(
    producer: Producer, message: Message, queue: MessageQueue | None
) -> tuple[SendReceipt | SkyrocketError, int]:
    began = time.monotonic()
    sent: SendReceipt | SkyrocketError
    try:
        sent = await producer.send(message, queue=queue, retries=0)
    except SkyrocketError as error:
        sent = error
    return sent, round((time.monotonic() - began) * 1000)


def _average(spent: Sequence[int]) -> float:
    """RocketMQ: the first one opens the connection and does not count."""
    return sum(spent[1:]) / max(len(spent) - 1, 1)


async def send_msg_status(admin: Admin, given: Given, out: Printer) -> None:
    """To the topic that a broker has under its own name."""
    message = Message(given["brokerName"], _body(given, "messageSize"))
    async with _producer(admin.settings) as producer:
        for _ in range(given.number("count", 50)):
            began = time.monotonic()
            receipt = await producer.send(message)
            ms = round((time.monotonic() - began) * 1000)
            out.rows("rt=%sms, SendResult=%s", ("rt", "SendResult"), [(ms, receipt_text(receipt))])


async def cluster_rt(admin: Admin, given: Given, out: Printer) -> None:
    """Every -i seconds, to the topic of each broker, until it is stopped."""
    as_log, room = given.is_true("print-log"), given.text("machine-room", "noname")
    body, seconds = _body(given, "size"), interval_of(given, 10)
    titles = ("#Cluster Name", "#Broker Name", "#RT", "#successCount", "#failCount")
    if not as_log:
        out.table("%-24s  %-24s  %-4s  %-8s  %-8s", titles, ())
    async with _producer(admin.settings) as producer:
        while True:
            for place in await admin.brokers(cluster=given.get("cluster"), with_slaves=False):
                row = await _round(producer, place.cluster, place.broker_name, body, given.number("amount", 100))
                if as_log:
                    now = time_s(round(time.time() * 1000))
                    out.line(f"{now}|{room}|{place.cluster}|{place.broker_name}|{float(row[2]):.0f}")
                else:
                    out.rows("%-24s  %-24s  %-8s  %-16s  %-16s", titles, [row])
            await asyncio.sleep(seconds)


async def _round(producer: Producer, cluster: str, broker_name: str, body: bytes, amount: int) -> tuple[Any, ...]:
    results = [await _timed(producer, Message(broker_name, body), None) for _ in range(amount)]
    sent = sum(isinstance(each, SendReceipt) for each, _ in results)
    return cluster, broker_name, f"{_average([ms for _, ms in results]):.2f}", sent, amount - sent
