"""A broker whose disk stands still: pulls are answered at once, sends when the page cache has them."""

import asyncio
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from skyrocket.broker.broker import Broker
from skyrocket.config.sections import BrokerConfig, LogWriteThread
from skyrocket.protocol.errors import FlushDiskTimeout, SystemBusy
from skyrocket.remoting.client import RemotingClient
from tests.cluster.broker.broker_fixture import GROUP, SMALL, TOPIC, message
from tests.pulls import pull_at
from tests.unit.store.test_log_writer import StandingDisk
from tests.waiting import until

STORE = replace(SMALL, log_write_thread=LogWriteThread.ALWAYS)


@pytest.fixture
def disk() -> Iterator[StandingDisk]:
    disk = StandingDisk()
    yield disk
    disk.moves.set()


def broker_on(disk: StandingDisk, folder: Path, **changes: Any) -> Broker:
    config = BrokerConfig(
        listen_port=0, bind_address="127.0.0.1", broker_ip="127.0.0.1", store_root=str(folder / "store")
    )
    return Broker(config, replace(STORE, **changes), disk=disk)


@pytest.mark.requirement("E021")
async def test_pulls_are_answered_while_sends_wait_for_the_disk(tmp_path: Path, disk: StandingDisk) -> None:
    async with broker_on(disk, tmp_path) as broker, RemotingClient() as client:
        address = str(await broker.start())
        await client.call(address, message(), b"first")
        disk.moves.clear()
        sends = [asyncio.create_task(client.call(address, message(), b"later")) for _ in range(3)]
        await until(lambda: broker.store.commit_log.is_behind)
        for _ in range(20):
            answer = await client.call(address, pull_at(GROUP, TOPIC, 0, 0))
            assert answer.header.max_offset == 1, "what waits is not shown"
        assert not any(send.done() for send in sends)
        disk.moves.set()
        assert sorted([(await send).header.queue_offset for send in sends]) == [1, 2, 3]
        await until(lambda: broker.store.max_offset(TOPIC, 0) == 4, "they are dispatched without another send")


async def test_a_send_that_waited_too_long_hears_so_and_is_stored(tmp_path: Path, disk: StandingDisk) -> None:
    async with broker_on(disk, tmp_path, sync_flush_timeout_ms=50) as broker, RemotingClient() as client:
        address = str(await broker.start())
        await client.call(address, message(), b"first")
        disk.moves.clear()
        with pytest.raises(FlushDiskTimeout):
            await client.call(address, message(), b"second")
        disk.moves.set()
        await until(lambda: broker.store.max_offset(TOPIC, 0) == 2)


@pytest.mark.requirement("C162")
async def test_sends_are_refused_as_busy_when_the_disk_has_stood_still_for_long(
    tmp_path: Path, disk: StandingDisk
) -> None:
    async with broker_on(disk, tmp_path, page_cache_busy_ms=50) as broker, RemotingClient() as client:
        address = str(await broker.start())
        await client.call(address, message(), b"first")
        disk.moves.clear()
        waiting = asyncio.create_task(client.call(address, message(), b"second"))
        await until(lambda: broker.store.page_cache_busy)
        with pytest.raises(SystemBusy):
            await client.call(address, message(), b"third")
        disk.moves.set()
        assert (await waiting).header.queue_offset == 1
        await until(lambda: not broker.store.page_cache_busy and not broker.parts.classes.send.is_rejecting)
        assert (await client.call(address, message(), b"third")).header.queue_offset == 2
