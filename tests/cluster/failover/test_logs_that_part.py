"""Logs that went different ways: what nobody acknowledged is cut off and kept aside, and the sets go on."""

from dataclasses import replace
from pathlib import Path

import pytest

from skyrocket.protocol.errors import RequestError
from skyrocket.remoting.errors import RemotingError
from tests.cluster.broker.broker_fixture import message
from tests.cluster.failover.replica_set import STORE, ReplicaSet, replica_set
from tests.waiting import until


async def send_alone(found: ReplicaSet, number: int, body: bytes) -> None:
    """To one broker, whatever it answers."""
    with pytest.raises((RemotingError, RequestError)):
        await found.client.call(f"127.0.0.1:{found.ports[number]}", message(), body, timeout_seconds=0.5)


def keep_from_slaves(found: ReplicaSet, number: int) -> None:
    """As if the network were slow: slaves are connected, and nothing more comes."""
    master = found.brokers[number].master
    assert master is not None
    for slave in master.slaves:
        slave.pause_writing()


async def test_an_old_master_that_wrote_alone_cuts_its_log_when_it_comes_back(tmp_path: Path) -> None:
    async with replica_set(tmp_path, store=replace(STORE, slave_timeout_ms=60_000)) as found:
        first = await found.in_sync(3)
        await found.send(b"common;")
        keep_from_slaves(found, first)
        await send_alone(found, first, b"alone;")
        await found.kill(first)
        second = await found.led_by()
        await found.send(b"later;")
        await found.start(first)
        await found.equal_of(first, second)
        kept = list((found.root(first) / "skyrocket.cut").rglob("0*"))
        assert any(b"alone;" in path.read_bytes() for path in kept if path.is_file())
        log = found.log(first)
        assert (b"common;" in log, b"later;" in log, b"alone;" in log) == (True, True, False)


async def test_consumers_see_nothing_that_is_not_confirmed(tmp_path: Path) -> None:
    async with replica_set(tmp_path, store=replace(STORE, slave_timeout_ms=60_000)) as found:
        first = await found.in_sync(3)
        await found.send(b"common;")
        store = found.brokers[first].life.store
        await until(lambda: store.max_offset("Orders", 0) == 1)
        keep_from_slaves(found, first)
        await send_alone(found, first, b"alone;")
        assert b"alone;" in found.log(first)
        assert store.max_offset("Orders", 0) == 1


async def test_a_master_that_is_restarted_before_anybody_noticed_goes_on_in_its_epoch(tmp_path: Path) -> None:
    async with replica_set(tmp_path) as found:
        first = await found.in_sync(3)
        await found.send(b"before;")
        machine = found.controller.machine
        machine.in_need = lambda now: []  # type: ignore[method-assign]
        machine.has_lost_master = lambda key: False  # type: ignore[method-assign]
        epochs = found.brokers[first].epochs.all
        await found.kill(first)
        await found.start(first)
        assert await found.in_sync(3) == first
        assert found.brokers[first].epochs.all == epochs
        await found.send(b"after;")
        log = await found.equal()
        assert b"before;" in log
        assert b"after;" in log


async def test_without_enough_members_nothing_is_taken(tmp_path: Path) -> None:
    async with replica_set(tmp_path, 2, replace(STORE, min_in_sync_replicas=2)) as found:
        first = await found.in_sync(2)
        await found.send(b"both;")
        second = 3 - first
        await found.stop(second)
        await found.in_sync(1)
        with pytest.raises(RequestError, match="in-sync replicas not enough"):
            await found.client.call(f"127.0.0.1:{found.ports[first]}", message(), b"alone;")
        await found.start(second)
        await found.in_sync(2)
        await found.send(b"again;")
        assert b"again;" in await found.equal()
