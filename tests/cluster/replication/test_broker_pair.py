"""A master and its slave as brokers: who takes what, what is copied, and what senders hear."""

import asyncio
import re
import socket
from dataclasses import replace
from pathlib import Path

import pytest

from skyrocket.config.sections import BrokerConfig, BrokerRole, FlushDiskType, StoreConfig
from skyrocket.errors import ConfigError
from skyrocket.model.subscription_group import SubscriptionGroup
from skyrocket.model.topic_config import TopicConfig
from skyrocket.observability.exposition import render
from skyrocket.protocol.bodies.assignment import RequestMode, RequestModeTable
from skyrocket.protocol.bodies.replication import HaStatus
from skyrocket.protocol.codes import ResponseCode
from skyrocket.protocol.errors import SystemBusy, SystemFailure
from skyrocket.protocol.requests.admin_broker import ExchangeBrokerHaInfo, GetBrokerHaStatus, UpdateBrokerConfig
from skyrocket.protocol.requests.broker_registration import NotifyMinBrokerIdChange
from skyrocket.protocol.requests.offsets import UpdateConsumerOffset
from skyrocket.protocol.requests.pop import GetAllMessageRequestMode, SetMessageRequestMode
from skyrocket.protocol.requests.table_pages import PAGE_ROWS
from tests.cluster.broker.broker_fixture import (
    GROUP,
    SMALL,
    TOPIC,
    RunningBroker,
    message,
    running_broker,
)
from tests.cluster.namesrv import name_server_fixture
from tests.cluster.replication.broker_pair import (
    CONFIG,
    Pair,
    log_of,
    replication,
    running_master,
    running_pair,
    running_slave,
)
from tests.ports import free_port
from tests.waiting import until

SYNC = replace(SMALL, broker_role=BrokerRole.SYNC_MASTER)
KEY = "UNIQ_KEY\x01{}\x02"
STORED = frozenset({ResponseCode.SUCCESS, ResponseCode.FLUSH_DISK_TIMEOUT, ResponseCode.FLUSH_SLAVE_TIMEOUT,
                    ResponseCode.SLAVE_NOT_AVAILABLE})  # fmt: skip


async def send_code(broker: RunningBroker, number: int = 0, *, wait: bool = True) -> int:
    """The code of the answer to one message."""
    properties = KEY.format(number) + ("" if wait else "WAIT\x01false\x02")
    return (
        await broker.client.call(
            broker.address, message(properties=properties), b"x", accepted=STORED, timeout_seconds=20
        )
    ).code


@pytest.mark.requirement("B043", "E010", "E012")
async def test_a_slave_has_log_queues_and_topics_of_its_master_and_serves_them(tmp_path: Path) -> None:
    async with running_pair(tmp_path) as pair:
        for number in range(50):
            await pair.master.send(b"%d" % number, properties=KEY.format(number))
        await pair.follows()
        assert log_of(pair.slave.broker.store) == log_of(pair.master.broker.store)
        await until(lambda: pair.slave.broker.tables.topics.find(TOPIC) is not None)
        await until(lambda: pair.slave.broker.store.max_offset(TOPIC, 0) == 50)
        found = await pair.slave.pull(0)
        assert (found.code, found.header.max_offset) == (ResponseCode.SUCCESS, 50)


@pytest.mark.requirement("E011")
async def test_a_slave_takes_no_messages(tmp_path: Path) -> None:
    async with running_pair(tmp_path) as pair:
        with pytest.raises(SystemBusy, match="REJECTREQUEST"):
            await pair.slave.send(b"x")
        assert pair.slave.broker.store.commit_log.written_offset == pair.master.broker.store.commit_log.written_offset


async def test_a_slave_refuses_pulls_unless_it_was_told_to_serve_them(tmp_path: Path) -> None:
    async with running_pair(tmp_path, config=BrokerConfig()) as pair:
        await pair.master.send(b"x")
        with pytest.raises(SystemBusy, match="REJECTREQUEST"):
            await pair.slave.pull(0)
        await pair.follows()
        await pair.slave_side.sync.sync()
        await pair.slave.client.call(pair.slave.address, UpdateBrokerConfig(), b"slaveReadEnable=true")
        assert (await pair.slave.pull(0)).code == ResponseCode.SUCCESS


async def test_groups_offsets_and_changed_topics_reach_the_slave(tmp_path: Path) -> None:
    async with running_pair(tmp_path) as pair:
        await pair.master.send(b"x")
        await pair.master.beat()
        commit = UpdateConsumerOffset(consumer_group=GROUP, topic=TOPIC, queue_id=0, commit_offset=1)
        await pair.master.client.call(pair.master.address, commit)
        pair.master.broker.tables.topics.update(TopicConfig("Other", 3, 3))
        await pair.slave_side.sync.sync()
        tables = pair.slave.broker.tables
        assert tables.groups.find(GROUP) is not None
        assert tables.offsets.committed(GROUP, TOPIC, 0) == 1
        assert tables.topics.existing("Other", "").write_queues == 3
        assert tables.topics.data_version == pair.master.broker.tables.topics.data_version


async def test_who_pops_a_topic_at_the_master_pops_it_at_the_slave(tmp_path: Path) -> None:
    async with running_pair(tmp_path) as pair:
        await pair.master.send(b"x")
        mode = RequestMode(topic=TOPIC, group=GROUP, mode="POP", pop_share_queues=8)
        await pair.master.client.call(pair.master.address, SetMessageRequestMode(), mode.encode())
        assert await pair.slave_side.sync.sync()
        told = await pair.slave.client.call(pair.slave.address, GetAllMessageRequestMode())
        assert RequestModeTable.decode(bytes(told.body)).modes == {TOPIC: {GROUP: mode}}


async def test_more_topics_and_groups_than_a_page_has_reach_the_slave(tmp_path: Path) -> None:
    async with running_pair(tmp_path) as pair:
        tables, copies = pair.master.broker.tables, pair.slave.broker.tables
        tables.topics.update_all([TopicConfig(f"T{number}") for number in range(PAGE_ROWS)])
        tables.groups.update_all([SubscriptionGroup(f"G{number}") for number in range(PAGE_ROWS)])
        assert len(tables.topics.topics) > PAGE_ROWS < len(tables.groups.groups), "some come with the broker"
        await pair.slave_side.sync.sync()
        assert copies.topics.topics == tables.topics.topics
        assert copies.groups.groups == tables.groups.groups


@pytest.mark.requirement("B042", "D023")
@pytest.mark.parametrize("disk", list(FlushDiskType))
@pytest.mark.parametrize("slave_disk", list(FlushDiskType))
async def test_a_synchronous_master_answers_when_its_slave_has_the_message(
    tmp_path: Path, disk: FlushDiskType, slave_disk: FlushDiskType
) -> None:
    async with running_pair(
        tmp_path, replace(SYNC, flush_disk_type=disk), replace(SMALL, flush_disk_type=slave_disk)
    ) as pair:
        for number in range(20):
            assert await send_code(pair.master, number) == ResponseCode.SUCCESS
            slave = pair.slave.broker.store.commit_log
            has = slave.flushed_offset if slave_disk is FlushDiskType.SYNC_FLUSH else slave.written_offset
            assert has == pair.master.broker.store.commit_log.written_offset


@pytest.mark.requirement("C050")
async def test_without_a_slave_the_sender_hears_that_none_is_there(tmp_path: Path) -> None:
    async with running_broker(tmp_path, store=SYNC) as master:
        assert await send_code(master) == ResponseCode.SLAVE_NOT_AVAILABLE
        assert await send_code(master, wait=False) == ResponseCode.SUCCESS
        assert master.broker.store.max_offset(TOPIC, 0) == 2  # stored all the same


@pytest.mark.requirement("C049")
async def test_a_slave_that_does_not_answer_is_waited_for_no_longer_than_told(tmp_path: Path) -> None:
    async with running_pair(tmp_path, replace(SYNC, slave_timeout_ms=50)) as pair:
        deaf(pair)
        assert await send_code(pair.master) == ResponseCode.FLUSH_SLAVE_TIMEOUT
        both = await asyncio.gather(*(send_code(pair.master, number) for number in range(3)))
        assert set(both) == {ResponseCode.FLUSH_SLAVE_TIMEOUT}
        assert await send_code(pair.master, wait=False) == ResponseCode.SUCCESS


async def test_a_slave_too_far_behind_counts_as_none(tmp_path: Path) -> None:
    async with running_pair(tmp_path, replace(SYNC, ha_max_gap_bytes=200)) as pair:
        deaf(pair)
        await pair.master.send(bytes(500), properties="WAIT\x01false\x02")
        assert await send_code(pair.master) == ResponseCode.SLAVE_NOT_AVAILABLE


async def test_one_replica_in_sync_means_that_nobody_waits(tmp_path: Path) -> None:
    async with running_broker(tmp_path, store=replace(SYNC, in_sync_replicas=1)) as master:
        assert await send_code(master) == ResponseCode.SUCCESS


async def test_fewer_in_sync_than_demanded_refuse_before_anything_is_stored(tmp_path: Path) -> None:
    demanding = replace(SYNC, in_sync_replicas=2, min_in_sync_replicas=2)
    async with running_broker(tmp_path, store=demanding) as master:
        for properties in ("", KEY.format(1), KEY.format(2)):
            with pytest.raises(SystemFailure, match="in-sync replicas not enough"):
                await master.send(b"x", properties=properties)
        assert master.broker.store.max_offset(TOPIC, 0) == 0
        side = replication(master.broker).master
        assert side is not None
        assert "1 broker is in sync" in (side.trouble() or "")


async def test_the_number_of_waited_for_follows_those_in_sync_if_that_is_allowed(tmp_path: Path) -> None:
    config = replace(SYNC, in_sync_replicas=3, auto_in_sync_replicas=True, slave_timeout_ms=100)
    async with running_broker(tmp_path / "alone", store=config) as master:
        assert await send_code(master) == ResponseCode.SUCCESS
    async with running_pair(tmp_path, config) as pair:
        assert await send_code(pair.master) == ResponseCode.SUCCESS
        deaf(pair)
        assert await send_code(pair.master) == ResponseCode.FLUSH_SLAVE_TIMEOUT


async def test_how_many_are_waited_for_can_be_changed_while_the_master_runs(tmp_path: Path) -> None:
    async with running_broker(tmp_path, store=SYNC) as master:
        assert await send_code(master) == ResponseCode.SLAVE_NOT_AVAILABLE
        await master.client.call(master.address, UpdateBrokerConfig(), b"inSyncReplicas=1")
        assert await send_code(master) == ResponseCode.SUCCESS


async def test_more_replicas_than_there_are_end_in_a_time_out(tmp_path: Path) -> None:
    async with running_pair(tmp_path, replace(SYNC, in_sync_replicas=3, slave_timeout_ms=50)) as pair:
        assert await send_code(pair.master) == ResponseCode.FLUSH_SLAVE_TIMEOUT


def deaf(pair: Pair) -> None:
    """Let the master take no more reports of its slave."""
    pair.master_side.replicas.acknowledge = lambda slave, offset: None  # type: ignore[method-assign]


async def test_a_slave_that_was_away_catches_up_and_a_master_that_comes_back_is_found(tmp_path: Path) -> None:
    async with name_server_fixture.running(tmp_path) as (_, names):
        async with running_master(tmp_path, str(names)) as master:
            await master.send(b"before")
            async with running_slave(tmp_path, str(names)) as slave:
                await Pair(master, slave).follows()
            await master.send(b"away", queue_id=1)
            async with running_slave(tmp_path, str(names)) as slave:
                await Pair(master, slave).follows()
                await master.send(b"again", queue_id=2)
                await Pair(master, slave).follows()
        async with running_slave(tmp_path, str(names)) as slave, running_master(tmp_path, str(names)) as master:
            await master.send(b"last", queue_id=3)
            await Pair(master, slave).follows()
            assert log_of(slave.broker.store) == log_of(master.broker.store)


async def test_a_master_that_is_stopped_leaves_all_of_its_log_with_its_slave(tmp_path: Path) -> None:
    slow = replace(SMALL, ha_flow_control=True, ha_bytes_per_second=1 << 19)  # a second and a half of five
    async with running_pair(tmp_path, slow) as pair:
        await asyncio.gather(*(pair.master.send(bytes(100_000), queue_id=number % 4) for number in range(8)))
        end = pair.master.broker.store.commit_log.written_offset
        assert pair.slave.broker.store.commit_log.written_offset < end
        await pair.master_side.finish()  # the end of a stop: nothing is put any more
        assert pair.slave.broker.store.commit_log.written_offset == end


async def test_a_slave_whose_log_went_another_way_follows_nobody_and_says_so(tmp_path: Path) -> None:
    async with name_server_fixture.running(tmp_path) as (_, names):
        async with running_master(tmp_path, str(names)) as master, running_slave(tmp_path, str(names)) as slave:
            await master.send(b"one")
            await Pair(master, slave).follows()
            before = log_of(slave.broker.store)
        (tmp_path / "master").rename(tmp_path / "lost")
        async with running_master(tmp_path, str(names)) as master:
            for _ in range(2):
                await master.send(b"two")
            async with running_slave(tmp_path, str(names)) as slave:
                side = Pair(master, slave).slave_side
                await until(lambda: "gone different ways" in (side.client.trouble or ""))
                assert log_of(slave.broker.store) == before
                assert not side.has_followed
                assert "gone different ways" in (side.trouble() or "")


async def test_a_slave_that_is_ahead_of_its_master_says_so_and_keeps_its_log(tmp_path: Path) -> None:
    async with name_server_fixture.running(tmp_path) as (_, names):
        async with running_master(tmp_path, str(names)) as master, running_slave(tmp_path, str(names)) as slave:
            await master.send(b"one")
            await Pair(master, slave).follows()
            before = log_of(slave.broker.store)
        (tmp_path / "master").rename(tmp_path / "lost")
        async with running_master(tmp_path, str(names)) as master, running_slave(tmp_path, str(names)) as slave:
            side = Pair(master, slave).slave_side
            await until(lambda: "records that this master lost or never had" in (side.trouble() or ""))
            assert log_of(slave.broker.store) == before


async def test_a_slave_that_may_not_copy_hears_why(tmp_path: Path) -> None:
    closed = replace(SMALL, ha_networks="192.0.2.0/24")
    async with (
        name_server_fixture.running(tmp_path) as (_, names),
        running_master(tmp_path, str(names), closed) as master,
        running_slave(tmp_path, str(names)) as slave,
    ):
        side = Pair(master, slave).slave_side
        await until(lambda: "127.0.0.1 is in none of haNetworks" in (side.trouble() or ""))


async def test_a_slave_needs_an_account_where_the_master_asks_for_one(tmp_path: Path) -> None:
    secret = replace(CONFIG, acl_enabled=True)
    account = '{"accessKey":"rocketmq2","secretKey":"12345678"}'
    (tmp_path / "master" / "store" / "config").mkdir(parents=True)
    (tmp_path / "master" / "store" / "config" / "plain_acl.yml").write_text(
        "accounts:\n- {accessKey: rocketmq2, secretKey: '12345678', admin: true}\n"
    )
    async with (
        name_server_fixture.running(tmp_path) as (_, names),
        running_master(tmp_path, str(names), config=secret) as master,
    ):
        async with running_slave(tmp_path, str(names)) as slave:
            side = Pair(master, slave).slave_side
            await until(lambda: "does not tell its tables" in (side.trouble() or ""))
            assert side.sync.synced_at is None
        known = replace(CONFIG, inner_client_credentials=account)
        async with running_slave(tmp_path, str(names), config=known) as slave:
            side = Pair(master, slave).slave_side
            await until(lambda: side.client.stream is not None)
            await until(lambda: side.trouble() is None)


async def test_a_word_from_anybody_does_not_make_another_master(tmp_path: Path) -> None:
    async with running_pair(tmp_path) as pair:
        known = pair.slave.broker.parts.broker_set
        before = (known.master_address, known.master_ha_address)
        other = "192.0.2.1:10911"
        for request in (
            NotifyMinBrokerIdChange(min_broker_id=0, min_broker_addr=other, ha_broker_addr=other),
            ExchangeBrokerHaInfo(master_ha_address=other, master_address=other),
        ):
            await pair.slave.client.call(pair.slave.address, request)
        assert (known.master_address, known.master_ha_address) == before


@pytest.mark.parametrize(
    "store",
    [
        replace(SMALL, in_sync_replicas=2),
        replace(SMALL, min_in_sync_replicas=2),
        replace(SMALL, all_ack_in_sync=True),
    ],
)
async def test_copies_that_nobody_would_wait_for_are_not_promised(tmp_path: Path, store: StoreConfig) -> None:
    with pytest.raises(ConfigError, match="promises copies, but brokerRole=ASYNC_MASTER waits for no slave"):
        async with running_broker(tmp_path, store=store):
            pass
    async with running_broker(tmp_path, replace(CONFIG, broker_id=1), replace(store, broker_role=BrokerRole.SLAVE)):
        pass  # for the day on which it is the master


async def test_a_taken_port_stops_a_synchronous_master_alone(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = taken.getsockname()[1]
        with pytest.raises(ConfigError, match=f"cannot listen for slaves: port {port} is taken .* haListenPort"):
            async with running_broker(tmp_path, store=replace(SYNC, ha_listen_port=port)):
                pass
    with socket.create_server(("127.0.0.1", free_port() + 1)) as taken:
        listen_port = taken.getsockname()[1] - 1
        async with running_broker(tmp_path, listen_port=listen_port) as master:
            await master.send()
        assert "no slave can copy from this broker" in caplog.text


async def test_operators_see_both_sides(tmp_path: Path) -> None:
    async with running_pair(tmp_path) as pair:
        await pair.master.send(b"x")
        await pair.follows()
        answers = [
            HaStatus.decode(bytes((await each.client.call(each.address, GetBrokerHaStatus())).body))
            for each in (pair.master, pair.slave)
        ]
        master, slave = answers
        end = pair.master.broker.store.commit_log.written_offset
        assert (master.is_master, master.in_sync_slaves, master.master_max_offset) == (True, 1, end)
        (connection,) = master.connections
        assert (connection.slave_ack_offset, connection.lag_bytes, connection.in_sync) == (end, 0, True)
        assert not slave.is_master
        assert slave.client is not None
        assert (slave.client.max_offset, slave.client.is_activated) == (end, True)
        await until(lambda: pair.slave_side.trouble() is None)
        rows = [replication(each.broker).runtime_rows() for each in (pair.master, pair.slave)]
        assert rows[0] == {"brokerRole": "ASYNC_MASTER", "haSlaves": "1", "haInSyncReplicas": "2", "haLagBytes": "0"}
        assert (rows[1]["haFollowing"], rows[1]["haLagBytes"]) == ("true", "0")
        shown = render(replication(pair.master.broker).metrics(), {}).decode()
        assert "skyrocket_replication_in_sync 2" in shown
        assert re.search(r'skyrocket_replication_lag_bytes\{slave="127.0.0.1:\d+"\} 0', shown)
        assert "skyrocket_replication_following 1" in render(replication(pair.slave.broker).metrics(), {}).decode()


async def test_a_slave_knows_what_it_lacks(tmp_path: Path) -> None:
    async with running_pair(tmp_path) as pair:
        pair.slave_side.client.stop()
        await until(lambda: pair.slave_side.client.stream is None)
        has = pair.slave.broker.store.commit_log.written_offset
        await pair.master.send(bytes(1000))
        await pair.slave_side.sync.sync()
        lacks = pair.master.broker.store.commit_log.written_offset - has
        assert lacks > 1000
        assert pair.slave_side.lag_bytes == lacks
        assert replication(pair.slave.broker).runtime_rows()["haLagBytes"] == str(lacks)


@pytest.mark.parametrize(
    ("broker_id", "role"),
    [(0, BrokerRole.SLAVE), (1, BrokerRole.SYNC_MASTER), (1, BrokerRole.ASYNC_MASTER)],
)
async def test_an_id_that_does_not_fit_the_role_is_refused(tmp_path: Path, broker_id: int, role: BrokerRole) -> None:
    config = replace(CONFIG, broker_id=broker_id)
    with pytest.raises(ConfigError, match="brokerId"):
        async with running_broker(tmp_path, config, StoreConfig(broker_role=role)):
            pass
