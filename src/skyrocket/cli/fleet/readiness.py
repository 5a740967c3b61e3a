"""Whether brokers are what clients need: known to a name server under their address, and listening."""

import asyncio
import contextlib
import ssl
from collections.abc import Mapping, Sequence
from typing import Final

import typer

from skyrocket.protocol.bodies.controller import BROKER_NAMES, BrokerReplicasInfo, ReplicasInfo
from skyrocket.protocol.bodies.replication import HaStatus
from skyrocket.protocol.bodies.route import ClusterInfo
from skyrocket.protocol.errors import RequestError
from skyrocket.protocol.requests.admin_broker import GetBrokerHaStatus
from skyrocket.protocol.requests.controller import GetSyncStateData
from skyrocket.protocol.requests.name_server import GetBrokerClusterInfo
from skyrocket.remoting.addresses import Address, AddressList
from skyrocket.remoting.client import RemotingClient
from skyrocket.remoting.errors import RemotingError

_ASK_SECONDS: Final = 3.0
_PAUSE_SECONDS: Final = 0.05
_REPORT_SECONDS: Final = 10.0


async def await_brokers(
    name_servers: str, addresses: Sequence[tuple[str, str]], bind_address: str, tls: ssl.SSLContext | None = None
) -> None:
    """Wait until all brokers, name and address, are registered and listen; every 10 s say who is missing."""
    loop = asyncio.get_running_loop()
    next_report = loop.time() + _REPORT_SECONDS
    servers = AddressList.parse(name_servers).in_order()
    async with RemotingClient(tls=tls) as client:
        while missing := await _missing(client, servers, addresses, bind_address):
            if loop.time() >= next_report:
                next_report += _REPORT_SECONDS
                typer.echo(f"skyrocket: still waiting for {', '.join(missing)}", err=True)
            await asyncio.sleep(_PAUSE_SECONDS)


async def _missing(
    client: RemotingClient, servers: Sequence[str], addresses: Sequence[tuple[str, str]], bind_address: str
) -> list[str]:
    registered = [await _registered(client, server) for server in servers]
    missing = [
        f"{name} to register at {'; '.join(servers)}"
        for name, address in addresses
        if servers and not any(address in found.get(name, ()) for found in registered)
    ]
    return missing or [
        f"{name} to listen on port {Address.parse(address).port}"
        for name, address in addresses
        if not await _listens(bind_address, Address.parse(address).port)
    ]


async def await_slaves(masters: Sequence[str], count: int, tls: ssl.SSLContext | None = None) -> None:
    """Wait until each master has so many slaves in sync: before that its senders hear SLAVE_NOT_AVAILABLE."""
    async with RemotingClient(tls=tls) as client:
        for master in masters:
            while await _slaves_in_sync(client, master) < count:
                await asyncio.sleep(_PAUSE_SECONDS)


async def await_sync_sets(controller: str, names: Sequence[str], count: int, tls: ssl.SSLContext | None = None) -> None:
    """Wait until each set has a master that so many replicas are in sync with, itself among them."""
    async with RemotingClient(tls=tls) as client:
        while not _are_complete(await replica_sets(client, controller, names), names, count):
            await asyncio.sleep(_PAUSE_SECONDS)


def _are_complete(sets: Mapping[str, ReplicasInfo], names: Sequence[str], count: int) -> bool:
    return all(
        name in sets and sets[name].master_address and len(sets[name].in_sync_replicas) >= count for name in names
    )


async def replica_sets(client: RemotingClient, controller: str, names: Sequence[str]) -> Mapping[str, ReplicasInfo]:
    """What the controller knows of these sets; nothing while it does not answer."""
    try:
        reply = await client.call(
            controller, GetSyncStateData(), BROKER_NAMES.encode(tuple(names)), timeout_seconds=_ASK_SECONDS
        )
    except (RemotingError, RequestError):
        return {}  # asked again
    return BrokerReplicasInfo.decode(reply.body).replicas


async def _slaves_in_sync(client: RemotingClient, master: str) -> int:
    try:
        reply = await client.call(master, GetBrokerHaStatus(), timeout_seconds=_ASK_SECONDS)
    except (RemotingError, RequestError):
        return 0  # asked again
    return HaStatus.decode(bytes(reply.body)).in_sync_slaves


async def _registered(client: RemotingClient, name_server: str) -> dict[str, set[str]]:
    """Addresses by broker name."""
    try:
        reply = await client.call(name_server, GetBrokerClusterInfo(), timeout_seconds=_ASK_SECONDS)
    except (RemotingError, RequestError):
        return {}  # asked again; who stays away is reported as missing
    return {name: set(data.addresses.values()) for name, data in ClusterInfo.decode(reply.body).brokers.items()}


async def _listens(bind_address: str, port: int) -> bool:
    # Not at the advertised address: from inside a container it often leads nowhere.
    host = {"0.0.0.0": "127.0.0.1", "::": "::1"}.get(bind_address, bind_address)
    try:
        _, writer = await asyncio.wait_for(asyncio.open_connection(host, port), _ASK_SECONDS)
    except OSError:
        return False
    writer.close()
    with contextlib.suppress(OSError):
        await writer.wait_closed()
    return True
