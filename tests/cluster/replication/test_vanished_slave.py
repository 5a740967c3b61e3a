"""A slave whose machine is gone without a word: its connection stays, and counts for no message any more."""

import contextlib
from collections.abc import AsyncIterator
from dataclasses import replace
from pathlib import Path

import pytest

from skyrocket.config.sections import BrokerRole, StoreConfig
from skyrocket.protocol.codes import ResponseCode
from skyrocket.protocol.errors import SystemFailure
from skyrocket.remoting.addresses import Address
from tests.cluster.broker.broker_fixture import SMALL, TOPIC
from tests.cluster.namesrv import name_server_fixture
from tests.cluster.replication.broker_pair import Pair, running_master, running_slave
from tests.cluster.replication.test_broker_pair import send_code
from tests.faults.replicated_pair import Wire
from tests.waiting import until

SYNC = replace(SMALL, broker_role=BrokerRole.SYNC_MASTER, slave_timeout_ms=300)


@contextlib.asynccontextmanager
async def pair_behind(wire: Wire, folder: Path, store: StoreConfig) -> AsyncIterator[Pair]:
    """A pair whose log goes by a wire that a test can freeze."""
    await wire.listen()
    behind = replace(SMALL, ha_master_address=f"127.0.0.1:{wire.port}")
    try:
        async with (
            name_server_fixture.running(folder) as (_, names),
            running_master(folder, str(names), store) as master,
        ):
            wire.target = Address.parse(master.broker.parts.broker_set.ha_address).port
            async with running_slave(folder, str(names), behind) as slave:
                pair = Pair(master, slave)
                await until(lambda: pair.master_side.replicas.connected == 1)
                yield pair
    finally:
        await wire.close()


@pytest.mark.requirement("C050")
async def test_a_slave_that_vanished_is_not_in_sync_though_its_connection_stays(tmp_path: Path) -> None:
    wire = Wire()
    async with pair_behind(wire, tmp_path, SYNC) as pair:
        assert await send_code(pair.master, 1) == ResponseCode.SUCCESS
        wire.freeze()
        assert await send_code(pair.master, 2) == ResponseCode.FLUSH_SLAVE_TIMEOUT
        await until(lambda: not any(map(pair.master_side.is_in_sync, pair.master_side.slaves)))
        assert await send_code(pair.master, 3) == ResponseCode.SLAVE_NOT_AVAILABLE
        status = pair.master_side.status()
        assert (status.in_sync_slaves, [each.in_sync for each in status.connections]) == (0, [False])
        wire.mend()
        await pair.follows()
        assert await send_code(pair.master, 4) == ResponseCode.SUCCESS


async def test_a_master_that_must_have_two_in_sync_takes_nothing_when_its_slave_vanished(tmp_path: Path) -> None:
    """Nobody waits for the slave (inSyncReplicas=1): before, messages were acknowledged while its connection stayed."""
    wire = Wire()
    async with pair_behind(wire, tmp_path, replace(SYNC, in_sync_replicas=1, min_in_sync_replicas=2)) as pair:
        await pair.master.send(b"x")
        await pair.follows()
        wire.freeze()
        await pair.master.send(b"not known yet")
        await until(lambda: pair.master_side.trouble() is not None)
        with pytest.raises(SystemFailure, match="in-sync replicas not enough"):
            await pair.master.send(b"refused")
        assert pair.master.broker.store.max_offset(TOPIC, 0) == 2
