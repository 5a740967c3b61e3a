"""Our client's ways to send and to consume, each in turn with the bare loop."""

import asyncio

from bench.client_speed.bare_loop import BareLoop
from bench.client_speed.our_client import AUTO_BATCH, consumption, enqueues, sends
from bench.client_speed.rounds import Figure, one_round
from bench.load.own_server import OwnServer
from skyrocket.client import Admin, Message, Producer

QUEUES = 8
BODY = b"x" * 128
IN_FLIGHT = 64
BATCH = 150  # about what our automatic batches of 32 KiB hold
STOCK = 100_000  # messages that are consumed in a round


async def beside_bare(server: OwnServer, seconds: float, rounds: int) -> list[tuple[str, Figure, Figure]]:
    """(what, ours, bare) for each way."""
    names = f"127.0.0.1:{server.name_server[1]}"
    async with Admin(names) as admin:
        for topic in ("Speed", "Stock"):
            await admin.create_topic(topic, QUEUES)
        while any([len(await admin.queues(topic)) != QUEUES for topic in ("Speed", "Stock")]):
            await asyncio.sleep(0.05)
    bare = BareLoop(server.broker, "Speed", QUEUES, len(BODY))
    single, bare_single = Figure("send, 64 in flight"), Figure("bare")
    queued, bare_batch = Figure("enqueue"), Figure("bare")
    automatic = Figure("send with auto_batch, 2000 in flight")
    read, bare_read = Figure("consume"), Figure("bare")

    def message() -> Message:
        return Message("Speed", BODY)

    async with Producer("Bench", names) as producer, Producer("BenchAuto", names, AUTO_BATCH) as batching:
        await producer.send_batch([Message("Stock", BODY)] * STOCK, timeout=60)
        await producer.send(message())
        await sends(batching, message, 0.2, IN_FLIGHT)
        for _ in range(rounds):
            await one_round(bare_single, lambda: bare.send(seconds, IN_FLIGHT))
            await one_round(single, lambda: sends(producer, message, seconds, IN_FLIGHT))
            await one_round(bare_batch, lambda: bare.send(seconds, 8, BATCH))
            await one_round(queued, lambda: enqueues(producer, message, seconds))
            await one_round(automatic, lambda: sends(batching, message, seconds, 2000))
    stock = BareLoop(server.broker, "Stock", QUEUES, len(BODY))
    for number in range(max(rounds // 4, 2)):
        await one_round(bare_read, lambda: stock.pull(32))
        await one_round(read, lambda group=f"Reader{number}": consumption(names, "Stock", group, STOCK))  # type: ignore[misc]
    return [
        ("send", single, bare_single),
        ("batch", queued, bare_batch),
        ("batch", automatic, bare_batch),
        ("consume", read, bare_read),
    ]
