"""Whose check points of pop are taken: those of brokers that the name servers know in this cluster.

Who writes a check point has any message of any topic handed out by a pop of his, and who writes acknowledgements has
messages of others passed over. A connection shows its host and not which program it is: programs on a broker's own
machine are let in with the broker. Networks of `haNetworks` are let in too, for brokers behind other addresses than
those they register; who may copy the log may write check points.
"""

import asyncio
import contextlib
import logging
from collections.abc import Sequence
from typing import Final

from skyrocket.broker.core.advertised_address import hosts_of
from skyrocket.clock import Clock, Seldom
from skyrocket.errors import DataError
from skyrocket.protocol.bodies.route import ClusterInfo
from skyrocket.protocol.errors import RequestError
from skyrocket.protocol.requests.name_server import GetBrokerClusterInfo
from skyrocket.remoting.client import RemotingClient
from skyrocket.remoting.errors import RemotingError
from skyrocket.remoting.guard import is_in, networks, plain_address

_logger = logging.getLogger(__name__)

_LOOK_SECONDS: Final = 30.0
_REST_SECONDS: Final = 1.0  # between two questions, however many strangers come
_ASK_SECONDS: Final = 3.0


class ClusterHosts:
    """The hosts of the cluster's brokers; asked for now and then, and when a stranger comes."""

    def __init__(
        self, client: RemotingClient, name_servers: Sequence[str], cluster: str, allowed: str, clock: Clock
    ) -> None:
        self._client = client
        self._name_servers = tuple(name_servers)
        self._cluster = cluster
        self._networks = networks(allowed, "haNetworks")
        self._hosts: frozenset[str] = frozenset()
        self._seldom = Seldom(clock)
        self._asked = asyncio.Event()

    def are_known(self, host: str) -> bool:
        """Whether a broker of the cluster is on this host, as far as is known now."""
        if not host:
            return False
        plain = str(plain_address(host))
        if plain in self._hosts or is_in(plain, self._networks):
            return True
        self._asked.set()
        if self._seldom.may_say(plain):
            _logger.warning(
                "a check point of pop is refused: no broker of cluster %s is registered with the address %s; "
                "a broker behind another address is let in by haNetworks",
                self._cluster,
                plain,
            )
        return False

    async def run(self) -> None:
        """Ask the name servers until cancelled."""
        while True:
            self._asked.clear()
            await self.look()
            await asyncio.sleep(_REST_SECONDS)
            with contextlib.suppress(TimeoutError):
                async with asyncio.timeout(_LOOK_SECONDS):
                    await self._asked.wait()

    async def look(self) -> None:
        """Ask all name servers; who was known stays so while none of them answers."""
        told = await asyncio.gather(*(self._addresses(name_server) for name_server in self._name_servers))
        answered = [addresses for addresses in told if addresses is not None]
        if not answered:
            return
        found: set[str] = set()
        for address in {address for addresses in answered for address in addresses}:
            try:
                found |= {str(plain_address(host)) for host in await hosts_of(address)}
            except (OSError, ValueError) as error:
                _logger.warning("a broker's address is not known broker=%s reason=%s", address, error)
        self._hosts = frozenset(found)

    async def _addresses(self, name_server: str) -> set[str] | None:
        try:
            reply = await self._client.call(name_server, GetBrokerClusterInfo(), timeout_seconds=_ASK_SECONDS)
            info = ClusterInfo.decode(bytes(reply.body))
        except (RemotingError, RequestError, DataError) as error:
            _logger.info("brokers of the cluster not known name_server=%s reason=%s", name_server, error)
            return None
        names = info.clusters.get(self._cluster, ())
        return {address for name in names if name in info.brokers for address in info.brokers[name].addresses.values()}
