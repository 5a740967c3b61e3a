"""A master and a slave under faults in random order: nothing acknowledged is lost with the master's disk.

Short mode: five faults of a synchronous pair, of which one throws the master's store away, and one loss of an
asynchronous master. Long mode: 200 faults. SKYROCKET_PAIR_SEED=n runs another order.
"""

import asyncio
import logging
import os
import time
from collections.abc import Awaitable, Callable, Sequence
from pathlib import Path
from random import Random

import pytest

from tests.faults.broker_load import Ledger, check
from tests.faults.replicated_pair import SLAVE_TIMEOUT_MS, ReplicatedPair, Senders, acknowledging
from tests.waiting import SECONDS, until

_logger = logging.getLogger(__name__)

SEED = int(os.environ.get("SKYROCKET_PAIR_SEED", "1"))
HEARD_PER_ROUND = 60

Fault = Callable[[ReplicatedPair, Random], Awaitable[None]]


async def kill_slave(pair: ReplicatedPair, _: Random) -> None:
    await pair.restart_slave()


async def kill_master(pair: ReplicatedPair, _: Random) -> None:
    await pair.restart_master()


async def stop_slave_for_a_while(pair: ReplicatedPair, random: Random) -> None:
    await pair.pause(pair.slave, random.uniform(0.2, 2.0))


async def stop_master_for_a_while(pair: ReplicatedPair, random: Random) -> None:
    await pair.pause(pair.master, random.uniform(0.2, 1.0))


async def cut_the_wire(pair: ReplicatedPair, random: Random) -> None:
    pair.wire.cut()
    await asyncio.sleep(random.uniform(0.05, 1.0))
    pair.wire.mend()


async def freeze_the_wire(pair: ReplicatedPair, random: Random) -> None:
    pair.wire.freeze()
    await asyncio.sleep(random.uniform(0.2, 2.0))
    pair.wire.mend()


async def slow_wire(pair: ReplicatedPair, random: Random) -> None:
    pair.wire.pause_seconds = random.uniform(0.01, 0.2)
    await asyncio.sleep(random.uniform(0.3, 1.0))
    pair.wire.mend()


async def cut_and_kill_master(pair: ReplicatedPair, random: Random) -> None:
    """The slave lacks something when the master dies, and gets it from the master's next life."""
    pair.wire.cut()
    await asyncio.sleep(random.uniform(0.05, 0.3))
    await pair.restart_master()
    pair.wire.mend()


async def starve_slave(pair: ReplicatedPair, random: Random) -> None:
    await pair.starve(pair.slave, random.uniform(0.5, 2.0))


async def starve_master(pair: ReplicatedPair, random: Random) -> None:
    await pair.starve(pair.master, random.uniform(0.5, 1.5))


async def slow_disk_of_slave(pair: ReplicatedPair, random: Random) -> None:
    with pair.slow_disk(pair.slave_store, random.uniform(0.05, 2.0)):
        await asyncio.sleep(random.uniform(0.5, 2.0))


async def slow_disk_of_master(pair: ReplicatedPair, random: Random) -> None:
    with pair.slow_disk(pair.master_store, random.uniform(0.05, 2.0)):
        await asyncio.sleep(random.uniform(0.5, 2.0))


async def slow_disks_and_kill_master(pair: ReplicatedPair, random: Random) -> None:
    """It dies while both wait for their disks."""
    with pair.slow_disk(pair.master_store, 0.5), pair.slow_disk(pair.slave_store, random.uniform(0.05, 1.0)):
        await asyncio.sleep(random.uniform(0.1, 1.0))
        await asyncio.to_thread(pair.master.kill)
    await pair.start_master()


async def fill_disk_of_slave(pair: ReplicatedPair, random: Random) -> None:
    """It appends nothing, so nothing is acknowledged, until there is room again."""
    if pair.has_disks:
        await pair.fill(pair.slave_store, random.uniform(0.5, 2.0))


async def fill_disk_of_master(pair: ReplicatedPair, random: Random) -> None:
    if pair.has_disks:
        await pair.fill(pair.master_store, random.uniform(0.5, 2.0))


async def fill_disk_and_kill_slave(pair: ReplicatedPair, random: Random) -> None:
    """It begins anew on a disk that has had no room for what it was writing."""
    if pair.has_disks:
        await pair.fill(pair.slave_store, random.uniform(0.2, 1.0))
    await pair.restart_slave()


async def lose_master(pair: ReplicatedPair, _: Random) -> None:
    await pair.lose_master()


FAULTS: tuple[Fault, ...] = (
    kill_slave,
    kill_master,
    stop_slave_for_a_while,
    stop_master_for_a_while,
    cut_the_wire,
    freeze_the_wire,
    slow_wire,
    cut_and_kill_master,
    starve_slave,
    starve_master,
    slow_disk_of_slave,
    slow_disk_of_master,
    slow_disks_and_kill_master,
    fill_disk_of_slave,
    fill_disk_of_master,
    fill_disk_and_kill_slave,
)
LOSSES_EVERY = 5


def order_of_faults(rounds: int, random: Random) -> list[Fault]:
    """Every fifth throws the master's store away; the others come as they like."""
    return [lose_master if number % LOSSES_EVERY == 3 else random.choice(FAULTS) for number in range(rounds)]


async def check_soon(ledger: Ledger, address: str, *, whole: bool = False) -> None:
    """The slave builds its queues a moment after it has the log; what it lacks after a minute it will never have."""
    deadline = time.monotonic() + SECONDS
    while True:
        try:
            return await check(ledger, address, whole=whole)
        except AssertionError as error:
            if "were promised" not in str(error) or time.monotonic() > deadline:
                raise
        await asyncio.sleep(0.1)


async def live_through(folder: Path, faults: Sequence[Fault], pause: float) -> None:
    """Both force each message to disk before they speak of it, so that a slow disk is felt."""
    random, ledger = Random(SEED), Ledger()
    async with ReplicatedPair(folder, "SYNC_MASTER", "flushDiskType=SYNC_FLUSH") as pair:
        await pair.in_sync()
        senders = Senders(pair, ledger, connections=4, on_their_way=4, pause=pause)
        for number, fault in enumerate(faults):
            _logger.info("round %d: %s, acknowledged before %d", number, fault.__name__, ledger.acknowledged_count)
            async with acknowledging(senders, ledger, HEARD_PER_ROUND):
                await asyncio.sleep(random.uniform(0.1, 0.5))
                await fault(pair, random)
            await pair.in_sync()
            await check_soon(ledger, pair.slave_at)
        _logger.info("acknowledged %d, refused or unanswered %d", ledger.acknowledged_count, senders.refused)
        await check_soon(ledger, pair.slave_at, whole=True)
        await check_soon(ledger, pair.master_at, whole=True)


async def test_a_synchronous_pair_loses_nothing_acknowledged_in_five_faults(tmp_path: Path) -> None:
    await live_through(tmp_path, order_of_faults(5, Random(SEED)), pause=0.05)


@pytest.mark.requirement("B042")
async def test_a_pair_whose_disks_are_full_and_slow_loses_nothing_acknowledged(tmp_path: Path) -> None:
    """Each once, in any run: the short mode draws five of all faults, and may draw none of these."""
    faults = [fill_disk_of_slave, slow_disk_of_slave, fill_disk_of_master, slow_disks_and_kill_master, lose_master]
    await live_through(tmp_path, faults, pause=0.05)


async def test_nothing_is_acknowledged_while_a_slaves_disk_takes_longer_than_senders_wait(tmp_path: Path) -> None:
    ledger = Ledger()
    async with ReplicatedPair(tmp_path, "SYNC_MASTER", "flushDiskType=SYNC_FLUSH") as pair:
        await pair.in_sync()
        senders = Senders(pair, ledger, connections=1, on_their_way=1, pause=0.01)
        async with acknowledging(senders, ledger, 20):
            pass
        with pair.slow_disk(pair.slave_store, 2 * SLAVE_TIMEOUT_MS / 1000):
            async with senders:
                await until(lambda: senders.refused >= 2)
            heard = ledger.acknowledged_count
            async with senders:
                await until(lambda: senders.refused >= 3)
            assert ledger.acknowledged_count == heard
        await pair.in_sync()
        await check_soon(ledger, pair.slave_at, whole=True)


@pytest.mark.slow
@pytest.mark.timeout(1500)
async def test_a_synchronous_pair_loses_nothing_acknowledged_in_two_hundred_faults(tmp_path: Path) -> None:
    await live_through(tmp_path, order_of_faults(200, Random(SEED)), pause=0.02)


async def test_an_asynchronous_master_loses_no_more_than_the_lag_that_it_reported(tmp_path: Path) -> None:
    ledger = Ledger()
    async with ReplicatedPair(tmp_path, "ASYNC_MASTER") as pair:
        await pair.in_sync()
        async with acknowledging(Senders(pair, ledger, connections=4, on_their_way=4, pause=0.01), ledger, 200):
            pass
        await pair.in_sync()
        await check_soon(ledger, pair.slave_at)
        kept = [dict(queue.acknowledged) for queue in ledger.queues]
        pair.wire.freeze()
        async with acknowledging(Senders(pair, ledger, connections=4, on_their_way=4, pause=0.01), ledger, 200):
            status = await pair.status()
        reported = (await pair.status()).connections[0]
        assert reported.lag_bytes > 0
        assert reported.slave_ack_offset >= status.connections[0].slave_ack_offset
        pair.wire.mend()
        pair.wire.cut()
        await pair.lose_master()
        for queue, before in zip(ledger.queues, kept, strict=True):
            queue.acknowledged = before  # what the slave had said that it has
        await check_soon(ledger, pair.master_at, whole=True)
        pair.wire.mend()
        new = await pair.status()
        assert new.master_max_offset >= reported.slave_ack_offset, "what was reported as copied is there"
