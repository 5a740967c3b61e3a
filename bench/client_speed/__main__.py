"""How fast the Python client is, in one run: `python -m bench.client_speed`.

One process, one connection to our broker, messages of 128 bytes. Every figure stands beside the bare protocol loop of
`bench.load`, measured in turn with it, and beside the official clients where they can be had (--others).
"""

import argparse
import asyncio
import os
from collections.abc import Sequence

from bench.client_speed import official_grpc, official_java
from bench.client_speed.bare_loop import BareLoop
from bench.client_speed.our_client import AUTO_BATCH, consumption, enqueues, sends
from bench.client_speed.rounds import Figure, one_round
from bench.load.own_server import OwnServer, own_server
from skyrocket.client import Admin, Message, Producer
from skyrocket.remoting.event_loop import run

QUEUES = 8
BODY = b"x" * 128
IN_FLIGHT = 64
BATCH = 150  # about what our automatic batches of 32 KiB hold
STOCK = 100_000  # messages that are consumed in a round
# Of one process, as messages per second.
TARGETS = {"send": 30_000, "batch": 150_000, "consume": 80_000}
# What its maintainer measured for one change of it; neither the machine nor the message is ours.
AIOKAFKA = "aiokafka, as published (github.com/aio-libs/aiokafka/pull/946): 141,686 messages/s sent in batches"


async def load(server: OwnServer, seconds: float, rounds: int) -> list[tuple[str, Figure, Figure]]:
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


def table(measured: Sequence[tuple[str, Figure, Figure]], others: dict[str, dict[str, float] | str]) -> str:
    """As Markdown."""
    titles = [
        "",
        "target",
        "ours, best",
        "CPU",
        "per CPU second",
        "bare loop",
        "CPU",
        "rate to bare",
        "CPU to bare",
        *others,
    ]
    lines = ["| " + " | ".join(titles) + " |", "|---" * len(titles) + "|"]
    for what, ours, bare in measured:
        cells = [
            ours.name,
            f"{TARGETS[what]:,}/s",
            f"{ours.best_rate:,.0f}/s",
            f"{ours.least_cpu_us:.1f} µs",
            f"{1e6 / ours.least_cpu_us:,.0f}",  # what a core of its own would allow; the broker may be slower
            f"{bare.best_rate:,.0f}/s",
            f"{bare.least_cpu_us:.1f} µs",
            f"{ours.best_rate / bare.best_rate:.2f}",
            f"{ours.least_cpu_us / bare.least_cpu_us:.1f}",
        ]
        for figures in others.values():
            rate = None if isinstance(figures, str) else figures.get(what)
            cells.append("–" if rate is None else f"{rate:,.0f}/s")
        lines.append("| " + " | ".join(cells) + " |")
    lines += ["", *(f"No {name}: {reason}" for name, reason in others.items() if isinstance(reason, str))]
    return "\n".join(lines)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--seconds", type=float, default=0.5, help="of a round")
    parser.add_argument("--rounds", type=int, default=12)
    parser.add_argument("--others", action="store_true", help="the official Java and Python gRPC clients as well")
    arguments = parser.parse_args()
    with own_server() as server:
        measured = run(load(server, arguments.seconds, arguments.rounds))
    others: dict[str, dict[str, float] | str] = {}
    if arguments.others:
        others["Java client, 64 threads"] = official_java.figures(max(arguments.seconds, 5.0))
        others["Python gRPC client, Apache's proxy"] = official_grpc.figures(max(arguments.seconds, 5.0))
    print(table(measured, others))
    print(f"\nbest of {arguments.rounds} rounds on {os.cpu_count()} CPUs; load average {os.getloadavg()[0]:.1f}")
    print(AIOKAFKA)


if __name__ == "__main__":
    main()
