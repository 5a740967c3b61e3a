"""Where consumers are sent: to the slave with an old backlog, back to the master when they have caught up."""

from pathlib import Path

import pytest

from skyrocket.protocol.codes import ResponseCode
from tests.cluster.broker.broker_fixture import TOPIC
from tests.cluster.replication.broker_pair import Pair, running_pair
from tests.waiting import until

MASTER, SLAVE = 0, 1


async def fill(pair: Pair, count: int = 10) -> None:
    for number in range(count):
        await pair.master.send(bytes(1000), properties=f"UNIQ_KEY\x01{number}\x02")
    await pair.follows()
    await until(lambda: pair.slave.broker.store.max_offset(TOPIC, 0) == count)
    await pair.slave_side.sync.sync()


@pytest.mark.requirement("B045", "B047", "C113", "C114", "E011")
async def test_a_reader_of_old_messages_is_sent_to_the_slave_and_comes_back_when_it_has_caught_up(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    async with running_pair(tmp_path) as pair:
        await fill(pair)
        assert (await pair.master.pull(0)).header.suggest_which_broker_id == MASTER
        for broker in (pair.master, pair.slave):
            # Records further from the end of the log are taken for old ones, which are on disk.
            monkeypatch.setattr(broker.broker.store.reader, "_near", 3000)
        found = await pair.master.pull(0, count=1)
        assert (found.code, found.header.suggest_which_broker_id) == (ResponseCode.SUCCESS, SLAVE)
        healthy = await pair.master.pull(9, count=1)
        assert (healthy.code, healthy.header.suggest_which_broker_id) == (ResponseCode.SUCCESS, MASTER)
        at_slave = await pair.slave.pull(1, count=1)
        assert (at_slave.code, at_slave.header.suggest_which_broker_id) == (ResponseCode.SUCCESS, SLAVE)
        last = await pair.slave.pull(9, count=1)
        assert (last.code, last.header.suggest_which_broker_id) == (ResponseCode.SUCCESS, MASTER)
        assert (await pair.master.send(b"new")).queue_offset == 10


async def test_a_slave_whose_master_lives_keeps_nobody_waiting_and_corrects_no_offset(tmp_path: Path) -> None:
    async with running_pair(tmp_path) as pair:
        await fill(pair, 2)
        await until(lambda: not pair.slave.broker.parts.broker_set.is_looking)
        for offset in (2, 50):
            found = await pair.slave.pull(offset, suspend_ms=20_000)
            assert found.code == ResponseCode.PULL_RETRY_IMMEDIATELY
            assert (found.header.suggest_which_broker_id, found.header.next_begin_offset) == (MASTER, offset)


async def test_at_a_slave_without_master_pulls_wait_as_at_a_master(tmp_path: Path) -> None:
    async with running_pair(tmp_path) as pair:
        await fill(pair, 2)
        pair.slave_side.client.stop()
        pair.slave.broker.parts.broker_set.is_looking = True
        for offset in (2, 50):  # the next one, and one that only the lost master had
            found = await pair.slave.pull(offset, suspend_ms=50)
            assert found.code == ResponseCode.PULL_NOT_FOUND
            assert found.header.next_begin_offset == offset
