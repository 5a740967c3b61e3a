"""mqadmin's commands that send: one message, or many to see how long it takes."""

import asyncio
import time
from collections.abc import Sequence
from typing import Any, Final

from skyrocket.cli.mqadmin.java_text import receipt_text, time_s
from skyrocket.cli.mqadmin.options import Given
from skyrocket.cli.mqadmin.printing import Printer
from skyrocket.client import Admin, ClientSettings, Message, MessageQueue, Producer, SendReceipt
from skyrocket.errors import ConfigError, SkyrocketError

_SENT: Final = ("#Broker Name", "#QID", "#Send Result", "#MsgId")
_FORM: Final = "%-32s  %-4s  %-20s    %s"


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
    message = Message(topic, b"a" * given.number("size", 128))
    titles = ("#Broker Name", "#QID", "#Send Result", "#RT")
    out.table(_FORM, titles, ())
    spent: list[int] = []
    async with _producer(admin.settings) as producer:
        queues = await producer.queues(topic)
        for number in range(amount):
            queue = queues[number % len(queues)]
            receipt, ms = await _timed(producer, message, queue)
            spent.append(ms)
            out.rows(_FORM, titles, [(queue.broker_name, queue.queue_id, "true" if receipt else "false", ms)])
    out.line(f"Avg RT: {_average(spent):.2f}")


async def _timed(producer: Producer, message: Message, queue: MessageQueue | None) -> tuple[SendReceipt | None, int]:
    began = time.monotonic()
    try:
        receipt = await producer.send(message, queue=queue, retries=0)
    except SkyrocketError:
        receipt = None
    return receipt, round((time.monotonic() - began) * 1000)


def _average(spent: Sequence[int]) -> float:
    """RocketMQ: the first one opens the connection and does not count."""
    return sum(spent[1:]) / max(len(spent) - 1, 1)


async def send_msg_status(admin: Admin, given: Given, out: Printer) -> None:
    """To the topic that a broker has under its own name."""
    message = Message(given["brokerName"], b"a" * given.number("messageSize", 128))
    async with _producer(admin.settings) as producer:
        for _ in range(given.number("count", 50)):
            began = time.monotonic()
            receipt = await producer.send(message)
            ms = round((time.monotonic() - began) * 1000)
            out.rows("rt=%sms, SendResult=%s", ("rt", "SendResult"), [(ms, receipt_text(receipt))])


async def cluster_rt(admin: Admin, given: Given, out: Printer) -> None:
    """Every -i seconds, to the topic of each broker, until it is stopped."""
    as_log, room = given.is_true("print-log"), given.text("machine-room", "noname")
    titles = ("#Cluster Name", "#Broker Name", "#RT", "#successCount", "#failCount")
    if not as_log:
        out.table("%-24s  %-24s  %-4s  %-8s  %-8s", titles, ())
    body = b"a" * given.number("size", 128)
    async with _producer(admin.settings) as producer:
        while True:
            for place in await admin.brokers(cluster=given.get("cluster"), with_slaves=False):
                row = await _round(producer, place.cluster, place.broker_name, body, given.number("amount", 100))
                if as_log:
                    now = time_s(round(time.time() * 1000))
                    out.line(f"{now}|{room}|{place.cluster}|{place.broker_name}|{float(row[2]):.0f}")
                else:
                    out.rows("%-24s  %-24s  %-8s  %-16s  %-16s", titles, [row])
            await asyncio.sleep(given.number("interval", 10))


async def _round(producer: Producer, cluster: str, broker_name: str, body: bytes, amount: int) -> tuple[Any, ...]:
    results = [await _timed(producer, Message(broker_name, body), None) for _ in range(amount)]
    sent = sum(receipt is not None for receipt, _ in results)
    return cluster, broker_name, f"{_average([ms for _, ms in results]):.2f}", sent, amount - sent
