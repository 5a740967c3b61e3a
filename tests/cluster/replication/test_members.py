"""Who may copy the log: this machine, members that the name servers know, or the networks that were named."""

import asyncio
from pathlib import Path

import pytest

from skyrocket.broker.replication.members import Members
from skyrocket.broker.state.identity import BrokerIdentity
from skyrocket.errors import ConfigError
from skyrocket.protocol.requests.broker_registration import RegisterBroker
from skyrocket.remoting.addresses import Address
from skyrocket.remoting.client import RemotingClient
from tests.cluster.namesrv import name_server_fixture
from tests.waiting import until

MASTER = BrokerIdentity(Address("10.1.1.1", 10911), ip="10.1.1.1")
SLAVE, STRANGER = Address("192.0.2.7", 40000), Address("192.0.2.8", 40000)


def members(client: RemotingClient, name_server: str = "", networks: str = "") -> Members:
    return Members(client, [name_server] if name_server else [], MASTER, networks)


async def test_this_machine_may_copy_and_a_stranger_may_not() -> None:
    async with RemotingClient() as client:
        given = members(client)
        for host in ("127.0.0.1", "::1", "10.1.1.1"):
            assert given.refusal(Address(host, 1)) is None
        assert "no member of broker broker-a is registered with the address 192.0.2.8" in (
            given.refusal(STRANGER) or ""
        )


async def test_a_member_of_the_set_is_let_in_when_the_name_server_knows_it(tmp_path: Path) -> None:
    async with name_server_fixture.running(tmp_path) as (_, names), RemotingClient() as client:
        register = RegisterBroker(
            broker_name="broker-a",
            broker_addr=f"{SLAVE.host}:10921",
            cluster_name="DefaultCluster",
            ha_server_addr=f"{SLAVE.host}:10922",
            broker_id=1,
            enable_acting_master=False,
        )
        await client.call(str(names), register)
        given = members(client, str(names))
        assert given.refusal(SLAVE) is not None  # has it asked
        asking = asyncio.create_task(given.run())
        await until(lambda: given.refusal(SLAVE) is None)
        assert given.refusal(STRANGER) is not None
        asking.cancel()
        await asyncio.gather(asking, return_exceptions=True)


async def test_networks_that_were_named_count_alone() -> None:
    async with RemotingClient() as client:
        given = members(client, networks="192.0.2.0/29")
        assert given.refusal(SLAVE) is None
        assert given.refusal(STRANGER) == "192.0.2.8 is in none of haNetworks"
        assert given.refusal(Address("127.0.0.1", 1)) is not None
        with pytest.raises(ConfigError, match="haNetworks"):
            members(client, networks="everybody")
