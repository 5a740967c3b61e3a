"""Three brokers and a controller in one process: roles, fail-over, and logs that went different ways."""

from pathlib import Path

from tests.cluster.failover.replica_set import replica_set


async def test_one_of_three_becomes_master_and_the_others_follow(tmp_path: Path) -> None:
    async with replica_set(tmp_path) as found:
        await found.in_sync(3)
        await found.send(b"first")
        assert b"first" in await found.equal()
        identities = {(tmp_path / f"broker-{number}" / "brokerIdentity").read_text() for number in (1, 2, 3)}
        assert identities == {f"DefaultCluster#broker-a#{number}" for number in (1, 2, 3)}


async def test_a_master_that_is_killed_is_replaced_and_nothing_acknowledged_is_lost(tmp_path: Path) -> None:
    async with replica_set(tmp_path) as found:
        first = await found.in_sync(3)
        for number in range(20):
            await found.send(b"before %d;" % number)
        await found.kill(first)
        second = await found.led_by()
        assert second != first
        for number in range(20):
            await found.send(b"after %d;" % number)
        await found.start(first)
        await found.in_sync(3)
        log = await found.equal()
        for number in range(20):
            assert log.count(b"before %d;" % number) == 1
            assert log.count(b"after %d;" % number) == 1
        third = await found.in_sync(3)
        await found.kill(third)
        await found.led_by()
        await found.send(b"last;")
        assert b"last;" in await found.equal()
