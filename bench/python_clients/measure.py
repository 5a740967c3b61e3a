"""The same work for every system: awaited sends, batched sends, consumption, latency; what the server spent on it."""

import asyncio
import contextlib
import os
import time
from collections.abc import Awaitable, Callable
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from itertools import count

from bench.load import server_usage
from bench.python_clients.system import BODY_BYTES, Client, NotOffered, Row, Running, System
from skyrocket.remoting.event_loop import run

IN_FLIGHT = 64
_CONNECT_S = 60.0
_PHASE_S = 180.0  # beyond this something hangs
_SETTLE_S = 2.0
_GRACE_S = 10.0


@dataclass(frozen=True)
class Amounts:
    """How long and how much."""

    seconds: float  # of awaited sends
    rounds: int  # of each phase; the best counts
    batched: int  # messages
    stock: int
    latency_rate: int  # messages per second
    latency_seconds: float


@dataclass
class _Phase:
    rate: float = 0.0
    server_cpu_us: float = float("inf")
    client_cpu_us: float = float("inf")


def measured(system: System, amounts: Amounts) -> Row:
    """Start it, use it, end it; raises Missing, or what the client raises."""
    amounts = replace(amounts, batched=int(amounts.batched * system.share), stock=int(amounts.stock * system.share))
    load_before = os.getloadavg()[0]
    with system.start() as running:
        return run(_measure(system, running, amounts, load_before))


async def _measure(system: System, running: Running, amounts: Amounts, load_before: float) -> Row:
    client = running.client()
    row = Row(system.name, system.promise, f"{datetime.now(UTC):%Y-%m-%d %H:%M}", load_before)
    body, readers = b"x" * BODY_BYTES, count(1)
    await _open(client)
    try:
        await _first_message(client)
        row.first_message_s = time.monotonic() - running.began
        await asyncio.sleep(_SETTLE_S)
        row.idle_mb = server_usage.memory(running.pids).anonymous / 1e6
        awaited = await _best(running, amounts.rounds, lambda: _awaited(client, body, amounts.seconds))
        row.awaited_rate, row.awaited_server_cpu_us = awaited.rate, awaited.server_cpu_us
        row.awaited_client_cpu_us = awaited.client_cpu_us

        async def batched() -> int:
            await client.send_many(body, amounts.batched)
            return amounts.batched

        many = await _best(running, amounts.rounds, batched)
        row.batched_rate, row.batched_server_cpu_us = many.rate, many.server_cpu_us
        row.loaded_mb = server_usage.memory(running.pids).anonymous / 1e6
        await asyncio.wait_for(client.fill(body, amounts.stock), _PHASE_S)

        rounds = amounts.rounds

        async def consume(how: Callable[[int, str], Awaitable[None]]) -> int:
            await how(amounts.stock, f"reader{next(readers)}")
            return amounts.stock

        single = await _best(running, rounds, lambda: consume(client.consume_one_by_one), client.refill)
        row.one_by_one_rate, row.one_by_one_client_cpu_us = single.rate, single.client_cpu_us
        bulk = await _best(running, rounds, lambda: consume(client.consume_in_bulk), client.refill)
        row.bulk_rate, row.bulk_client_cpu_us = bulk.rate, bulk.client_cpu_us
        with contextlib.suppress(NotOffered):
            columns = await _best(running, rounds, lambda: consume(client.consume_as_columns), client.refill)
            row.columns_rate = columns.rate
        row.loaded_mb = max(row.loaded_mb, server_usage.memory(running.pids).anonymous / 1e6)
        latencies = await _latencies(client, amounts)
        row.latency_p50_ms = latencies[len(latencies) // 2] * 1000
        row.latency_p99_ms = latencies[len(latencies) * 99 // 100] * 1000
        return row
    finally:
        await client.close()


async def _open(client: Client) -> None:
    deadline = time.monotonic() + _CONNECT_S
    while True:
        try:
            await asyncio.wait_for(client.open(), _CONNECT_S)
            return
        except Exception:  # every client has its own errors for a server that is still starting
            if time.monotonic() > deadline:
                raise
            await asyncio.sleep(0.05)


async def _first_message(client: Client) -> None:
    arrived = asyncio.Event()
    following = asyncio.create_task(client.follow(lambda _: arrived.set()))
    try:
        deadline = time.monotonic() + _CONNECT_S
        while not arrived.is_set():
            await client.send(b"first")
            try:
                await asyncio.wait_for(arrived.wait(), 0.1)
            except TimeoutError:
                if following.done():
                    following.result()
                if time.monotonic() > deadline:
                    raise
    finally:
        await _ended(following)


async def _best(
    running: Running,
    rounds: int,
    work: Callable[[], Awaitable[int]],
    before: Callable[[], Awaitable[None]] | None = None,
) -> _Phase:
    """The best of some rounds: on a busy machine it says what the system can, the others what else ran.

    What is done `before` each does not count.
    """
    phase = _Phase()
    for _ in range(rounds):
        if before is not None:
            await asyncio.wait_for(before(), _PHASE_S)
        server, client = server_usage.cpu_seconds(running.pids), time.process_time()
        began = time.perf_counter()
        done = await asyncio.wait_for(work(), _PHASE_S)
        phase.rate = max(phase.rate, done / (time.perf_counter() - began))
        phase.client_cpu_us = min(phase.client_cpu_us, (time.process_time() - client) / done * 1e6)
        spent = server_usage.cpu_seconds(running.pids) - server
        phase.server_cpu_us = min(phase.server_cpu_us, spent / done * 1e6)
    return phase


async def _awaited(client: Client, body: bytes, seconds: float) -> int:
    deadline, done = time.perf_counter() + seconds, 0

    async def one() -> None:
        nonlocal done
        while time.perf_counter() < deadline:
            await client.send(body)
            done += 1

    await asyncio.gather(*(one() for _ in range(IN_FLIGHT)))
    return done


async def _latencies(client: Client, amounts: Amounts) -> list[float]:
    """From the call of `send` to the reader's hands, sorted; a send that is late is late for its receiver too."""
    found: list[float] = []

    def seen(body: bytes) -> None:
        if body.startswith(b"at "):
            found.append(time.perf_counter() - float(body[3:]))

    following = asyncio.create_task(client.follow(seen))
    try:
        deadline = time.monotonic() + _CONNECT_S
        while not found and time.monotonic() < deadline:  # until the reader follows
            await client.send(b"at %.9f" % time.perf_counter())
            await asyncio.sleep(0.1)
        await asyncio.sleep(0.5)
        found.clear()
        sends, begin = [], time.perf_counter()
        total = int(amounts.latency_rate * amounts.latency_seconds)
        for number in range(total):
            await asyncio.sleep(max(begin + number / amounts.latency_rate - time.perf_counter(), 0))
            sends.append(asyncio.create_task(client.send(b"at %.9f" % time.perf_counter())))
        await asyncio.gather(*sends)
        patience = time.monotonic() + _GRACE_S
        while len(found) < total and time.monotonic() < patience:
            await asyncio.sleep(0.01)
        if len(found) < total:
            raise RuntimeError(f"only {len(found)} of {total} messages came")
        return sorted(found)
    finally:
        await _ended(following)


async def _ended(task: "asyncio.Task[None]") -> None:
    """Cancelled as often as it takes: redis-py loses a cancellation that meets an answer."""
    deadline = time.monotonic() + _GRACE_S
    while not task.done() and time.monotonic() < deadline:
        task.cancel()
        await asyncio.wait((task,), timeout=0.2)
    if not task.done():
        raise RuntimeError("the reader does not end")
    if not task.cancelled():
        task.result()
