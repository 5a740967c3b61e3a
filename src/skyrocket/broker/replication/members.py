"""Who may copy the log: hosts of the networks that were named, or this machine and the members of the set.

The plain HA protocol has no accounts, and whoever gets the log has every message. Members are those that the name
servers know under this broker's name; they are asked now and then, and when somebody unknown comes.
"""

import asyncio
import contextlib
import logging
from collections.abc import Sequence
from ipaddress import ip_address
from typing import Final

from skyrocket.broker.core.advertised_address import hosts_of
from skyrocket.broker.state.identity import BrokerIdentity
from skyrocket.errors import DataError
from skyrocket.protocol.bodies.route import BrokerMemberGroup
from skyrocket.protocol.errors import RequestError
from skyrocket.protocol.requests.broker_registration import GetBrokerMemberGroup
from skyrocket.remoting.addresses import Address
from skyrocket.remoting.client import RemotingClient
from skyrocket.remoting.errors import RemotingError
from skyrocket.remoting.guard import is_in, networks

_logger = logging.getLogger(__name__)

NOT_REGISTERED: Final = "is registered with the address"
_LOOK_SECONDS: Final = 30.0
_REST_SECONDS: Final = 1.0  # between two questions, however many strangers come


class Members:
    """The hosts that may copy."""

    def __init__(
        self, client: RemotingClient, name_servers: Sequence[str], identity: BrokerIdentity, allowed: str
    ) -> None:
        self._client = client
        self._name_servers = name_servers
        self._identity = identity
        self._networks = networks(allowed, "haNetworks")
        self._hosts: frozenset[str] = frozenset({identity.address.host, identity.ip})
        self._asked = asyncio.Event()

    def refusal(self, address: Address) -> str | None:
        """Why a host may not copy; None when it may."""
        if self._networks:
            return None if is_in(address.host, self._networks) else f"{address.host} is in none of haNetworks"
        if address.host in self._hosts or ip_address(address.host.partition("%")[0]).is_loopback:
            return None
        self._asked.set()
        return (
            f"no member of broker {self._identity.broker_name} {NOT_REGISTERED} {address.host}; "
            "a slave behind another address is let in by haNetworks"
        )

    async def run(self) -> None:
        """Ask the name servers until cancelled."""
        while not self._networks:
            with contextlib.suppress(TimeoutError):
                async with asyncio.timeout(_LOOK_SECONDS):
                    await self._asked.wait()
            self._asked.clear()
            await self._look()
            await asyncio.sleep(_REST_SECONDS)

    async def _look(self) -> None:
        identity = self._identity
        found: set[str] = {identity.address.host, identity.ip}
        members = await members_of_set(self._client, self._name_servers, identity) or {}
        for text in members.values():
            try:
                found |= await hosts_of(text)
            except (OSError, ValueError) as error:
                _logger.warning("a member's address is not known member=%s reason=%s", text, error)
        self._hosts |= found


async def members_of_set(
    client: RemotingClient, name_servers: Sequence[str], identity: BrokerIdentity
) -> dict[int, str] | None:
    """Who is registered with this broker's name, by id; None when no name server tells."""
    found: dict[int, str] | None = None
    request = GetBrokerMemberGroup(cluster_name=identity.cluster_name, broker_name=identity.broker_name)
    for name_server in name_servers:
        try:
            reply = await client.call(name_server, request)
            members = BrokerMemberGroup.decode(bytes(reply.body)).members.addresses
        except (RemotingError, RequestError, DataError) as error:
            _logger.warning("members of the set not known name_server=%s reason=%s", name_server, error)
        else:
            found = {**members, **(found or {})}
    return found
