"""Masters and slaves as processes: RocketMQ's files, kill -9 of either side, a master whose disk is gone."""

import asyncio
import shutil
from pathlib import Path

import pytest

from skyrocket.format.record import decode_records
from skyrocket.protocol.bodies.replication import HaStatus
from skyrocket.protocol.codes import ResponseCode
from skyrocket.protocol.errors import RequestError, TopicNotExist
from skyrocket.protocol.requests.admin_broker import GetBrokerHaStatus
from skyrocket.remoting.client import RemotingClient
from skyrocket.remoting.errors import RemotingError
from tests.faults.broker_load import GROUP, PULL_CODES, TOPIC, send_request
from tests.integration.program import SMALL_FILES, Program, Standalone, children_of
from tests.pulls import pull_at
from tests.waiting import SECONDS

# conf/2m-2s-sync and conf/2m-2s-async of RocketMQ 5.4.0, but for the license at their head.
MASTER_CONF = """brokerClusterName=DefaultCluster
brokerName=broker-a
brokerId=0
deleteWhen=04
fileReservedTime=48
brokerRole={role}
flushDiskType=ASYNC_FLUSH
"""
SLAVE_CONF = MASTER_CONF.replace("brokerId=0", "brokerId=1").format(role="SLAVE")


def conf(folder: Path, name: str, text: str) -> str:
    path = folder / name
    path.write_text(text)
    return str(path)


def broker(folder: Path, name: str, conf_file: str, name_server: str, port: int = 0) -> Program:
    """`skyrocket broker -c FILE`, with what two on one machine need."""
    arguments = ["broker", "-c", conf_file, "-n", name_server, "--listen-port", str(port), "--broker-ip", "127.0.0.1"]
    arguments += ["--store", str(folder / name)]
    # Kept apart from the file, which stays as RocketMQ wrote it.
    for setting in (*SMALL_FILES, "slaveReadEnable=true", f"brokerConfigPath={folder / name}.properties"):
        arguments += ["--set", setting]
    return Program(*arguments, home=folder)


def address_of(program: Program) -> str:
    return program.await_line(r"The broker\[broker-a, (\S+)\] boot success")[1]


async def slaves_in_sync(client: RemotingClient, master: str) -> int:
    return HaStatus.decode(bytes((await client.call(master, GetBrokerHaStatus())).body)).in_sync_slaves


async def await_slave(client: RemotingClient, master: str) -> None:
    async with asyncio.timeout(SECONDS):
        while not await slaves_in_sync(client, master):
            await asyncio.sleep(0.05)


async def acknowledged(client: RemotingClient, master: str, numbers: range) -> list[bytes]:
    """Send one after the other; what was answered with SEND_OK."""
    done = []
    for number in numbers:
        try:
            await client.call(master, send_request(0), b"%d" % number, timeout_seconds=10)
        except (RemotingError, RequestError):
            continue
        done.append(b"%d" % number)
    return done


async def bodies(client: RemotingClient, address: str) -> list[bytes]:
    """All that a broker has of the queue; a slave that has not heard of the topic yet has nothing."""
    found: list[bytes] = []
    request = pull_at(GROUP, TOPIC, 0, 0)
    while True:
        try:
            reply = await client.call(address, request, accepted=PULL_CODES)
        except TopicNotExist:
            return []
        if reply.code != ResponseCode.SUCCESS:
            return found
        found += [record.body for record in decode_records(reply.body)]
        request = pull_at(GROUP, TOPIC, 0, reply.header.next_begin_offset)


@pytest.mark.requirement("B018", "B042")
async def test_rocketmqs_files_start_a_synchronous_pair_and_nothing_acknowledged_is_lost_with_the_masters_disk(
    tmp_path: Path,
) -> None:
    names = Program("namesrv", "--listen-port", "0", "--bind-address", "127.0.0.1", home=tmp_path)
    with names:
        name_server = "127.0.0.1:" + names.await_line(r":(\d+)")[1]
        sync_master = conf(tmp_path, "broker-a.properties", MASTER_CONF.format(role="SYNC_MASTER"))
        slave_conf = conf(tmp_path, "broker-a-s.properties", SLAVE_CONF)
        with (
            broker(tmp_path, "master", sync_master, name_server) as master,
            broker(tmp_path, "slave", slave_conf, name_server) as slave,
        ):
            async with RemotingClient() as client:
                at, slave_at = address_of(master), address_of(slave)
                await await_slave(client, at)
                sending = asyncio.create_task(acknowledged(client, at, range(3000)))
                await asyncio.sleep(1)
                master.kill()
                done = await sending
                shutil.rmtree(tmp_path / "master")
                assert done
                kept = await bodies(client, slave_at)
                assert set(done) <= set(kept)
                slave.kill()
        with broker(tmp_path, "slave", slave_conf, name_server) as slave:
            async with RemotingClient() as client:
                assert set(done) <= set(await bodies(client, address_of(slave)))


@pytest.mark.requirement("B042", "B043")
async def test_rocketmqs_files_start_an_asynchronous_pair_and_a_killed_slave_catches_up(tmp_path: Path) -> None:
    names = Program("namesrv", "--listen-port", "0", "--bind-address", "127.0.0.1", home=tmp_path)
    with names:
        name_server = "127.0.0.1:" + names.await_line(r":(\d+)")[1]
        async_master = conf(tmp_path, "broker-a.properties", MASTER_CONF.format(role="ASYNC_MASTER"))
        slave_conf = conf(tmp_path, "broker-a-s.properties", SLAVE_CONF)
        with broker(tmp_path, "master", async_master, name_server) as master:
            async with RemotingClient() as client:
                at = address_of(master)
                with broker(tmp_path, "slave", slave_conf, name_server) as slave:
                    await await_slave(client, at)
                    assert len(await acknowledged(client, at, range(300))) == 300
                    slave.kill()
                assert len(await acknowledged(client, at, range(300, 600))) == 300
                with broker(tmp_path, "slave", slave_conf, name_server) as slave:
                    async with asyncio.timeout(SECONDS):
                        while len(await bodies(client, address_of(slave))) < 600:
                            await asyncio.sleep(0.1)
                    assert slave.stop() == 0
                assert master.stop() == 0


async def test_standalone_with_replicas_is_ready_when_its_slave_follows(tmp_path: Path) -> None:
    with Standalone(tmp_path, arguments=("--replicas", "2")) as program:
        master, slave = program.brokers
        assert len(children_of(program.process.pid)) == 2
        async with RemotingClient() as client:
            assert await slaves_in_sync(client, master) == 1
            reply = await client.call(master, send_request(0), b"x", accepted=frozenset(ResponseCode))
            assert reply.code == ResponseCode.SUCCESS
            async with asyncio.timeout(SECONDS):
                while await bodies(client, slave) != [b"x"]:
                    await asyncio.sleep(0.05)
        assert program.stop() == 0
