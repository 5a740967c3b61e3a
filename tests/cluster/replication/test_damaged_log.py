"""A master whose log is damaged in the middle: its slave has the same bytes, and says that its queues end there."""

from pathlib import Path

import pytest

from skyrocket.observability.exposition import render
from tests.cluster.broker.broker_fixture import TOPIC, RunningBroker
from tests.cluster.namesrv import name_server_fixture
from tests.cluster.replication.broker_pair import Pair, log_of, replication, running_master, running_slave
from tests.waiting import until


def damage(master: RunningBroker, physical_offset: int) -> None:
    """Write something else over the magic number of a record."""
    file = min(Path(master.broker.store.paths.root, "commitlog").iterdir())
    with file.open("r+b") as opened:
        opened.seek(physical_offset + 4)
        opened.write(b"oops")


async def test_a_slave_whose_dispatch_stops_at_damage_says_where_and_what_to_do(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    async with name_server_fixture.running(tmp_path) as (_, names), running_master(tmp_path, str(names)) as master:
        ends = []
        for number in range(10):
            await master.send(b"%d" % number)
            ends.append(master.broker.store.commit_log.written_offset)
        damage(master, ends[4])
        async with running_slave(tmp_path, str(names)) as slave:
            pair = Pair(master, slave)
            await pair.follows()
            assert log_of(slave.broker.store) == log_of(master.broker.store)
            await until(lambda: f"is damaged at offset {ends[4]}" in (pair.slave_side.trouble() or ""))
            assert "empty this slave's store directory" in (pair.slave_side.trouble() or "")
            assert slave.broker.store.max_offset(TOPIC, 0) == 5
            shown = render(replication(slave.broker).metrics(), {}).decode()
            assert "skyrocket_replication_dispatch_stopped 1" in shown
            await until(lambda: f"is damaged at offset {ends[4]}" in caplog.text)
            for _ in range(3):
                pair.slave_side.look()
            assert caplog.text.count("queues end there") == 1, "once a minute"
