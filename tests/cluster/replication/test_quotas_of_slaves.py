"""A slave has the quotas of its master."""

from pathlib import Path

from skyrocket.broker.quotas.feature import QuotasFeature
from skyrocket.protocol.bodies.quotas import QuotaLimits
from skyrocket.protocol.requests.quotas import RemoveQuota, SetQuota
from tests.cluster.broker.broker_fixture import new_topic
from tests.cluster.replication.broker_pair import running_pair


async def test_a_slave_takes_over_the_quotas_of_its_master_and_forgets_those_that_are_removed(tmp_path: Path) -> None:
    async with running_pair(tmp_path) as pair:
        master, table = pair.master, pair.slave.broker.feature(QuotasFeature).table
        limits = {"readMessagesPerSecond": 100_000}
        await master.client.call(
            master.address, SetQuota(subject_type="account", name="alice"), QuotaLimits(limits).encode()
        )
        assert await pair.slave_side.sync.sync()
        assert dict(table.of("account")) == {"alice": limits}
        assert len(pair.slave.broker.parts.router._checks) == 1
        master.broker.feature(QuotasFeature).owners.asked_for("alice", ["Orders"])
        await master.client.call(master.address, new_topic("Orders"))
        assert await pair.slave_side.sync.sync()
        assert pair.slave.broker.feature(QuotasFeature).owners.counts() == {"alice": 1}
        await master.client.call(master.address, RemoveQuota(subject_type="account", name="alice"))
        assert await pair.slave_side.sync.sync()
        assert len(table) == 0
        assert pair.slave.broker.parts.router._checks == []
