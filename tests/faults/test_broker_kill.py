"""kill -9 of the broker under load, again and again: nothing acknowledged is lost, consumers go on where they were."""

import asyncio
import time
from pathlib import Path
from random import Random

import pytest

from skyrocket.remoting.client import RemotingClient
from tests.faults.broker_load import CONNECTIONS, Ledger, Load, check, check_offsets, pull, send_request
from tests.integration.program import Standalone

OFFSET_INTERVAL_MS = 100
SLACK_SECONDS = 1.5  # the machine is busy
GENTLE_SECONDS = 0.03  # between two messages of a sender, where the machine has other things to do
FLUSH_MODES = ["ASYNC_FLUSH", "SYNC_FLUSH"]
WRITE_MODES = [*FLUSH_MODES, "ASYNC_FLUSH commitLogWriteThread=ALWAYS"]


async def load_flows(running: "asyncio.Task[None]", load: Load) -> None:
    """Wait until messages are sent on every connection and consumed, however busy the machine is."""
    sent, commits = load.ledger.acknowledged_count, _commit_count(load.ledger)
    while load.ledger.acknowledged_count < sent + 3 * CONNECTIONS or _commit_count(load.ledger) == commits:
        await asyncio.wait((running,), timeout=0.02)
        assert not running.done(), running.exception()


def _commit_count(ledger: Ledger) -> int:
    return sum(len(queue.commits) for queue in ledger.queues)


async def kill_under_load(program: Standalone, load: Load, seconds: float) -> float:
    """Run the load for some time, kill; returns the moment of death."""
    running = asyncio.create_task(load.run())
    await load_flows(running, load)
    await asyncio.wait((running,), timeout=seconds)
    assert not running.done() or running.exception() is None, running.exception()
    moment = time.monotonic()
    program.process.kill()
    await asyncio.wait_for(running, 60)
    return moment


async def live_and_die(folder: Path, flush: str, rounds: int, seed: int, pause: float = 0.0) -> None:
    ledger, random = Ledger(), Random(seed)
    settings = (*f"flushDiskType={flush}".split(), f"flushConsumerOffsetInterval={OFFSET_INTERVAL_MS}")
    died_at = time.monotonic()
    kept = 0
    for life in range(rounds + 1):
        safe_before = died_at - OFFSET_INTERVAL_MS / 1000 - SLACK_SECONDS
        with Standalone(folder, *settings) as program:
            if life > 0:
                await check(ledger, program.broker)
                kept = max(kept, await check_offsets(ledger, program.broker, safe_before))
            if life == rounds:
                await check(ledger, program.broker, whole=True)
                break
            seconds = random.uniform(SLACK_SECONDS + 0.3, SLACK_SECONDS + 0.7)
            died_at = await kill_under_load(program, Load(ledger, program.broker, life, pause), seconds)
    assert ledger.acknowledged_count > 10 * rounds
    assert kept > 0, "no offset was old enough to be checked"


@pytest.mark.parametrize("flush", WRITE_MODES)
async def test_a_killed_broker_keeps_acknowledged_messages_their_order_and_committed_offsets(
    tmp_path: Path, flush: str
) -> None:
    await live_and_die(tmp_path, flush, rounds=2, seed=1, pause=GENTLE_SECONDS)


async def test_a_topic_survives_a_kill_right_after_its_first_message_was_acknowledged(tmp_path: Path) -> None:
    async def send_first(address: str) -> None:
        async with RemotingClient() as client:
            await client.call(address, send_request(1), b"first")

    async def read_it(address: str) -> list[bytes]:
        async with RemotingClient() as client:
            return await pull(client, address, 1, 0)

    with Standalone(tmp_path) as program:
        await send_first(program.broker)
        program.kill()
    with Standalone(tmp_path, "autoCreateTopicEnable=false") as program:
        assert await read_it(program.broker) == [b"first"]


@pytest.mark.slow
@pytest.mark.parametrize("flush", WRITE_MODES)
async def test_a_broker_killed_fifty_times_keeps_its_promises(tmp_path: Path, flush: str) -> None:
    await live_and_die(tmp_path, flush, rounds=50, seed=2)


@pytest.mark.parametrize("flush", ["SYNC_FLUSH", pytest.param("ASYNC_FLUSH", marks=pytest.mark.slow)])
async def test_sigterm_under_load_stops_within_seconds_and_loses_nothing(tmp_path: Path, flush: str) -> None:
    ledger = Ledger()

    async def stop_under_load(program: Standalone) -> float:
        load = Load(ledger, program.broker, 0, GENTLE_SECONDS)
        running = asyncio.create_task(load.run())
        await load_flows(running, load)
        began = time.monotonic()
        assert await asyncio.to_thread(program.stop) == 0
        took = time.monotonic() - began
        await asyncio.wait_for(running, 60)
        return took

    with Standalone(tmp_path, f"flushDiskType={flush}") as program:
        assert await stop_under_load(program) < 30
    assert not (tmp_path / "store" / "abort").exists()
    with Standalone(tmp_path) as program:
        await check(ledger, program.broker, whole=True)
        assert await check_offsets(ledger, program.broker, time.monotonic()) > 0
    assert ledger.acknowledged_count > 10
