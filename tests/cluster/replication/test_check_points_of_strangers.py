"""Check points of pop come from other brokers: who is none of the cluster writes none."""

import contextlib
from collections.abc import AsyncIterator
from dataclasses import replace
from pathlib import Path

import pytest

from skyrocket.broker.state.system_topics import revive_topic
from skyrocket.config.sections import BrokerConfig
from skyrocket.protocol.codes import RequestCode, ResponseCode
from skyrocket.protocol.command import RemotingCommand
from skyrocket.protocol.frames import encode
from skyrocket.protocol.requests.broker_registration import RegisterBroker, UnregisterBroker
from skyrocket.remoting.addresses import Address
from tests.cluster.broker.broker_fixture import SMALL, RunningBroker, message, running_broker
from tests.cluster.namesrv import name_server_fixture
from tests.unit.remoting.peers import RawPeer
from tests.waiting import until

ELSEWHERE = "127.0.0.2"  # another machine, as far as a broker can see
CONFIG = BrokerConfig(acting_master=True, remote_escape=True, revive_queues=2)


@contextlib.asynccontextmanager
async def master(folder: Path, networks: str = "") -> AsyncIterator[tuple[RunningBroker, Address]]:
    """Of one set of the cluster; it has heard its name server once."""
    async with name_server_fixture.running(folder) as (_, names):
        config, store = replace(CONFIG, name_servers=str(names)), replace(SMALL, ha_networks=networks)
        async with running_broker(folder, config, store) as given:
            knows = given.broker.tables.topics.takes_check_points_of
            await until(lambda: knows("127.0.0.1"))
            yield given, names


async def send_check_points(
    given: RunningBroker, source: str, *, code: int = RequestCode.SEND_MESSAGE_V2, count: int = 2
) -> set[int]:
    """The codes of the answers; all of the same look, as a broker remembers it."""
    request = message(revive_topic("DefaultCluster"), 0, "UNIQ_KEY\x01k\x02")
    async with RawPeer.connected(Address("127.0.0.1", given.port), source=source) as peer:
        return {
            (await peer.asks(encode(RemotingCommand(code, number, 0, request.to_fields(), b"x")))).code
            for number in range(count)
        }


def registration(name: str, cluster: str) -> dict[str, object]:
    return {"broker_name": name, "broker_addr": f"{ELSEWHERE}:10911", "cluster_name": cluster, "broker_id": 1}


async def test_a_stranger_writes_no_check_points_and_a_broker_of_the_cluster_does(tmp_path: Path) -> None:
    async with master(tmp_path) as (given, names):
        assert await send_check_points(given, "127.0.0.1") == {ResponseCode.SUCCESS}
        assert await send_check_points(given, ELSEWHERE) == {ResponseCode.NO_PERMISSION}
        await given.client.call(
            str(names),
            RegisterBroker(**registration("broker-z", "OtherCluster"), ha_server_addr=f"{ELSEWHERE}:1"),  # type: ignore[arg-type]
        )
        knows = given.broker.tables.topics.takes_check_points_of
        assert await send_check_points(given, ELSEWHERE) == {ResponseCode.NO_PERMISSION}
        ours = registration("broker-b", "DefaultCluster")
        await given.client.call(str(names), RegisterBroker(**ours, ha_server_addr=f"{ELSEWHERE}:1"))  # type: ignore[arg-type]
        await until(lambda: knows(ELSEWHERE))
        assert await send_check_points(given, ELSEWHERE) == {ResponseCode.SUCCESS}
        await given.client.call(str(names), UnregisterBroker(**ours))  # type: ignore[arg-type]
        await until(lambda: not knows(ELSEWHERE) or knows("192.0.2.1"))  # a stranger has the name servers asked
        assert await send_check_points(given, ELSEWHERE) == {ResponseCode.NO_PERMISSION}


@pytest.mark.parametrize("code", [RequestCode.SEND_MESSAGE_V2, RequestCode.SEND_BATCH_MESSAGE])
async def test_other_forms_of_a_send_are_no_way_round(tmp_path: Path, code: int) -> None:
    async with master(tmp_path) as (given, _):
        assert await send_check_points(given, ELSEWHERE, code=code) == {ResponseCode.NO_PERMISSION}


async def test_a_reply_is_no_check_point_whoever_sends_it(tmp_path: Path) -> None:
    async with master(tmp_path) as (given, _):
        code = RequestCode.SEND_REPLY_MESSAGE_V2
        assert await send_check_points(given, "127.0.0.1", code=code) == {ResponseCode.NO_PERMISSION}


async def test_networks_that_may_copy_the_log_may_write_check_points(tmp_path: Path) -> None:
    async with master(tmp_path, "127.0.0.2/32") as (given, _):
        assert await send_check_points(given, ELSEWHERE) == {ResponseCode.SUCCESS}
        assert await send_check_points(given, "127.0.0.3") == {ResponseCode.NO_PERMISSION}
