"""A broker of a set whose slaves act as master hears its set before the name servers hear of it."""

from dataclasses import replace
from pathlib import Path

import pytest

from skyrocket.broker.delay.feature import DelayFeature
from skyrocket.broker.offsets.feature import OffsetsFeature
from skyrocket.broker.replication import pre_online
from skyrocket.broker.replication.members import NOT_REGISTERED
from skyrocket.format.config_files import DelayOffsets, offset_key
from skyrocket.model.data_version import DataVersion
from skyrocket.protocol.bodies.offsets import ConsumerOffsetTable, DelayOffsetTable
from skyrocket.protocol.bodies.replication import HaStatus
from skyrocket.protocol.bodies.route import BrokerMemberGroup
from skyrocket.protocol.errors import InvalidParameter
from skyrocket.protocol.requests.admin_broker import ExchangeBrokerHaInfo, GetBrokerHaStatus, ResetMasterFlushOffset
from skyrocket.protocol.requests.broker_registration import GetBrokerMemberGroup, RegisterBroker, UnregisterBroker
from skyrocket.protocol.requests.offsets import UpdateConsumerOffset
from skyrocket.remoting.addresses import Address
from skyrocket.remoting.client import RemotingClient
from tests.cluster.broker.broker_fixture import GROUP, SMALL, TOPIC, RunningBroker, running_broker
from tests.cluster.namesrv import name_server_fixture
from tests.cluster.replication.broker_pair import CONFIG, Pair, replication, running_master, running_slave
from tests.waiting import until

ACTING = replace(CONFIG, acting_master=True)
SET = replace(SMALL, total_replicas=2, ha_heartbeat_ms=100)


def is_isolated(broker: RunningBroker) -> bool:
    return broker.broker.parts.broker_set.is_isolated


def missing(broker: RunningBroker) -> str:
    """What `/ready` says about the set."""
    return replication(broker.broker).troubles()["set"]() or ""


async def members(broker: RunningBroker, names: Address) -> dict[int, str]:
    request = GetBrokerMemberGroup(cluster_name="DefaultCluster", broker_name="broker-a")
    reply = await broker.client.call(str(names), request)
    return dict(BrokerMemberGroup.decode(bytes(reply.body)).members.addresses)


async def online(broker: RunningBroker, names: Address) -> None:
    """Wait until the name server knows it."""
    broker_id = broker.broker.identity.broker_id
    await until(lambda: not is_isolated(broker))
    found: dict[int, str] = {}
    while broker_id not in found:
        found = await members(broker, names)


async def test_a_master_that_comes_back_has_what_its_slave_knows_better_before_it_is_registered(tmp_path: Path) -> None:
    async with name_server_fixture.running(tmp_path) as (_, names):
        async with running_master(tmp_path, str(names), SET, ACTING) as master:
            await online(master, names)
            await master.send(b"x")
            await master.beat()
            master.broker.tables.offsets.commit(GROUP, TOPIC, 0, 1)
            async with running_slave(tmp_path, str(names), SET, ACTING) as slave:
                await online(slave, names)
                await Pair(master, slave).follows()
        async with running_slave(tmp_path, str(names), SET, ACTING) as slave:
            await online(slave, names)
            commit = UpdateConsumerOffset(consumer_group=GROUP, topic=TOPIC, queue_id=0, commit_offset=5)
            await slave.client.call(slave.address, commit)
            slave.broker.feature(DelayFeature).offsets.advance({3: 7})
            async with running_master(tmp_path, str(names), SET, ACTING) as master:
                delays, offsets = master.broker.feature(DelayFeature).offsets, master.broker.tables.offsets
                seen: list[tuple[int | None, int]] = []
                master.broker.parts.broker_set.on_ask(
                    lambda: seen.append((offsets.committed(GROUP, TOPIC, 0), delays[3]))
                )
                await online(master, names)
                assert seen[0] == (5, 7), "what it knew when it was registered"
                await Pair(master, slave).follows()
                assert missing(master) == ""


async def test_a_master_that_lost_messages_stays_isolated_and_says_why(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(pre_online, "_HAND_SHAKE_SECONDS", 0.2)
    async with name_server_fixture.running(tmp_path) as (_, names):
        async with (
            running_master(tmp_path, str(names), SET, ACTING) as master,
            running_slave(tmp_path, str(names), SET, ACTING) as slave,
        ):
            await master.send(b"x")
            await Pair(master, slave).follows()
        (tmp_path / "master").rename(tmp_path / "lost")
        async with running_slave(tmp_path, str(names), SET, ACTING) as slave:
            await online(slave, names)
            async with running_master(tmp_path, str(names), SET, ACTING) as master:
                await until(lambda: "does not follow this log" in missing(master))
                assert is_isolated(master)
                assert list(await members(slave, names)) == [1]
                side = replication(slave.broker).slave
                assert side is not None
                await until(lambda: "records that this master lost or never had" in (side.trouble() or ""))
            hasty = replace(ACTING, skip_pre_online=True)
            async with running_master(tmp_path, str(names), SET, hasty) as master:
                await online(master, names)


async def test_a_slave_hears_its_master_first_and_nobody_where_there_is_none(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(pre_online, "_HAND_SHAKE_SECONDS", 0.2)
    gone = Address("127.0.0.1", 1)
    who = {"broker_name": "broker-a", "broker_addr": str(gone), "cluster_name": "DefaultCluster", "broker_id": 0}
    async with name_server_fixture.running(tmp_path) as (_, names), RemotingClient() as other:
        await other.call(str(names), RegisterBroker(**who, ha_server_addr=str(gone)))  # type: ignore[arg-type]
        async with running_slave(tmp_path, str(names), SET, ACTING) as slave:
            await until(lambda: "127.0.0.1:1" in missing(slave))
            assert is_isolated(slave)
            assert list(await members(slave, names)) == [0]
            await other.call(str(names), UnregisterBroker(**who))  # type: ignore[arg-type]
            await online(slave, names)
        async with running_master(tmp_path, str(names), SET, ACTING) as master:
            await online(master, names)
            async with running_slave(tmp_path, str(names), SET, ACTING) as slave:
                await online(slave, names)
                side = replication(slave.broker).slave
                assert side is not None
                assert side.follows


async def test_a_set_that_does_not_act_or_has_one_broker_is_not_isolated(tmp_path: Path) -> None:
    async with name_server_fixture.running(tmp_path) as (_, names):
        for number, (config, store) in enumerate([(CONFIG, SET), (ACTING, SMALL)]):
            async with running_master(tmp_path / str(number), str(names), store, config) as master:
                assert not is_isolated(master)
                assert 0 in await members(master, names)


async def test_a_slave_believes_a_master_that_speaks_of_itself_while_it_follows_nobody(tmp_path: Path) -> None:
    async with (
        name_server_fixture.running(tmp_path) as (_, names),
        running_slave(tmp_path, str(names), SET, ACTING) as slave,
    ):
        known = slave.broker.parts.broker_set

        async def say(address: str, ha_address: str) -> None:
            request = ExchangeBrokerHaInfo(master_ha_address=ha_address, master_address=address, master_flush_offset=77)
            await slave.client.call(slave.address, request)

        await say("192.0.2.1:10911", "192.0.2.1:10912")
        await say("127.0.0.1:10911", "192.0.2.1:10912")
        assert not known.master_ha_address
        with pytest.raises(InvalidParameter, match="cannot be read"):
            await say("127.0.0.1:10911", "127.0.0.1:none")
        await say("127.0.0.1:10911", "127.0.0.1:10912")
        heard = (known.master_address, known.master_ha_address)
        assert heard == ("127.0.0.1:10911", "127.0.0.1:10912")
        await slave.client.call(slave.address, ResetMasterFlushOffset(master_flush_offset=4096))
        status = HaStatus.decode(bytes((await slave.client.call(slave.address, GetBrokerHaStatus())).body))
        assert status.client is not None
        assert status.client.master_flush_offset == 4096


async def test_a_slave_that_the_master_does_not_know_yet_is_registered_first(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(pre_online, "_HAND_SHAKE_SECONDS", 0.2)
    async with (
        name_server_fixture.running(tmp_path) as (_, names),
        running_master(tmp_path, str(names), SET, ACTING) as master,
    ):
        await online(master, names)
        side = replication(master.broker).master
        assert side is not None
        refusal = f"no member of broker broker-a {NOT_REGISTERED} 192.0.2.7"
        monkeypatch.setattr(side.members, "refusal", lambda address: refusal)
        async with running_slave(tmp_path, str(names), SET, ACTING) as slave:
            await online(slave, names)
            copier = replication(slave.broker).slave
            assert copier is not None
            assert not copier.follows


@pytest.mark.parametrize(("counter", "expected"), [(4, {0: 7, 1: 5}), (5, {0: 7, 1: 5}), (6, {0: 7, 1: 3})])
async def test_a_newer_table_of_offsets_counts_and_of_others_the_larger_offset(
    tmp_path: Path, counter: int, expected: dict[int, int]
) -> None:
    async with running_broker(tmp_path) as master:
        offsets = master.broker.tables.offsets
        key = offset_key(TOPIC, GROUP)
        offsets.take_over({key: {0: 5, 1: 5}}, DataVersion(counter=5))
        (taken,) = master.broker.feature(OffsetsFeature).taken_back()
        taken.take(ConsumerOffsetTable({key: {0: 7, 1: 3}}, DataVersion(counter=counter)).encode())
        assert offsets.committed_queues(GROUP, TOPIC) == expected


@pytest.mark.parametrize("counter", [1, 50])
async def test_of_each_delay_level_the_larger_offset_counts_whichever_table_is_newer(
    tmp_path: Path, counter: int
) -> None:
    async with running_broker(tmp_path) as master:
        feature = master.broker.feature(DelayFeature)
        feature.offsets.replace(DelayOffsets(DataVersion(counter=10), {3: 5, 4: 5, 6: 1}))
        (taken,) = feature.taken_back()
        told = DelayOffsetTable({3: 7, 4: 2, 5: 9}, DataVersion(counter=counter))
        taken.take(told.encode())
        content = feature.offsets.content()
        assert content.offsets == {3: 7, 4: 5, 5: 9, 6: 1}
        assert content.data_version > max(DataVersion(counter=10), DataVersion(counter=counter)), "slaves take it"
