"""How fast the Python client is, against our broker in a process of its own: `python -m bench.client_speed`.

One process, one connection: sends with 64 in flight, automatic batches, and consumption with a trivial handler, each
with the CPU that the client spends per message (wall-clock rates on a busy machine say little).
"""

import argparse
import asyncio
import contextlib
import re
import subprocess
import sys
import tempfile
import time
from collections.abc import Awaitable, Callable, Iterator

from skyrocket.client import (
    ConsumeFromWhere,
    Message,
    Producer,
    ProducerSettings,
    PushConsumer,
    PushConsumerSettings,
    ReceivedMessage,
)
from skyrocket.remoting.event_loop import run

TOPIC = "Speed"
BODY = b"x" * 128


async def measure(name: str, work: Callable[[], Awaitable[int]]) -> None:
    """Print messages per second and client CPU for each."""
    began, cpu = time.perf_counter(), time.process_time()
    count = await work()
    passed, used = time.perf_counter() - began, time.process_time() - cpu
    print(f"{name:<28}{count / passed:>12,.0f}/s{used / count * 1e6:>10.1f} µs CPU")


async def sends(producer: Producer, seconds: float, in_flight: int) -> int:
    """Coroutines that send one message after the other."""
    deadline, count = time.perf_counter() + seconds, 0

    async def one() -> None:
        nonlocal count
        while time.perf_counter() < deadline:
            await producer.send(Message(TOPIC, BODY))
            count += 1

    await asyncio.gather(*(one() for _ in range(in_flight)))
    return count


async def batches(producer: Producer, seconds: float) -> int:
    """One coroutine that queues messages as fast as it can."""
    deadline, count, last = time.perf_counter() + seconds, 0, None
    while time.perf_counter() < deadline:
        for _ in range(500):
            last = await producer.enqueue(Message(TOPIC, BODY))
        count += 500
        await asyncio.sleep(0)
    assert last is not None
    await producer.flush()
    await last
    return count


async def consumption(names: str, total: int) -> int:
    """A new group reads all that was sent."""
    count = 0
    settings = PushConsumerSettings(consume_from=ConsumeFromWhere.CONSUME_FROM_FIRST_OFFSET)
    consumer = PushConsumer("Reader", names, settings)

    @consumer.on(TOPIC)
    async def handle(_: ReceivedMessage) -> None:
        nonlocal count
        count += 1

    async with consumer:
        while count < total:
            await asyncio.sleep(0.005)
    return count


async def load(names: str, seconds: float) -> None:
    """All measurements in one run."""
    total = 0

    async def counted(work: Awaitable[int]) -> int:
        nonlocal total
        made = await work
        total += made
        return made

    async with Producer("Bench", names) as producer:
        await producer.send(Message(TOPIC, BODY))
        total += 1
        await asyncio.sleep(0.3)
        await measure("send, 64 in flight", lambda: counted(sends(producer, seconds, 64)))
        await measure("enqueue", lambda: counted(batches(producer, seconds)))
    async with Producer("Bench", names, ProducerSettings(auto_batch=True, auto_batch_delay=0.002)) as producer:
        await measure("send with auto_batch, 2000", lambda: counted(sends(producer, seconds, 2000)))
    await measure("consume", lambda: consumption(names, total))


@contextlib.contextmanager
def server() -> Iterator[str]:
    """A name server and a broker."""
    with tempfile.TemporaryDirectory() as store:
        command = [sys.executable, "-m", "skyrocket", "standalone", "--namesrv-port", "0", "--listen-port", "0"]
        command += ["--broker-ip", "127.0.0.1", "--store", store]
        with subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True) as process:
            assert process.stdout is not None
            ready = re.search(r"namesrv=\S+:(\d+)", process.stdout.readline())
            assert ready is not None, "the server did not start"
            try:
                yield f"127.0.0.1:{ready[1]}"
            finally:
                process.terminate()


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--seconds", type=float, default=3.0, help="of each measurement")
    parser.add_argument("--name-servers", help="of a running cluster; without it one is started")
    arguments = parser.parse_args()
    with contextlib.ExitStack() as stack:
        names = arguments.name_servers or stack.enter_context(server())
        run(load(names, arguments.seconds))


if __name__ == "__main__":
    main()
