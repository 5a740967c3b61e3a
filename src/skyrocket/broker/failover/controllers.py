"""The controllers of a broker: which of them leads, what is asked of it, and signs of life to all of them."""

import asyncio
import logging
from collections.abc import Callable, Sequence
from typing import Final, TypeVar

from skyrocket.protocol.command import Body
from skyrocket.protocol.errors import NotControllerLeader, RequestError
from skyrocket.protocol.requests.broker_registration import BrokerHeartbeat
from skyrocket.protocol.requests.controller import GetControllerMetadata
from skyrocket.protocol.requests.header import Header, Request
from skyrocket.remoting.client import RemotingClient
from skyrocket.remoting.errors import RemotingError
from skyrocket.remoting.exchange import Reply

_logger = logging.getLogger(__name__)

_ASK_SECONDS: Final = 3.0
_BEAT_SECONDS: Final = 1.0

A = TypeVar("A", bound=Header)


class NoController(RemotingError):
    """None of the controllers answers, or none knows who leads."""


class Controllers:
    """All of them; the one that leads decides, and may change."""

    def __init__(self, client: RemotingClient, addresses: Sequence[str]) -> None:
        self._client = client
        self._addresses = tuple(dict.fromkeys(addresses))
        self.leader: str | None = None

    async def call(self, request: Request[A], body: Body = b"") -> Reply[A]:
        """Ask the one that leads; raises RequestError, and RemotingError when there is no answer."""
        if self.leader is None:
            await self.find_leader()
        assert self.leader is not None
        try:
            return await self._client.call(self.leader, request, body, timeout_seconds=_ASK_SECONDS)
        except NotControllerLeader:
            await self.find_leader()
        except RemotingError:
            self.leader = None
            raise
        return await self._client.call(self.leader, request, body, timeout_seconds=_ASK_SECONDS)

    async def find_leader(self) -> None:
        """Ask all of them who leads; raises NoController."""
        told = await asyncio.gather(*(self._leader_by(address) for address in self._addresses))
        named = [leader for leader in told if leader]
        if not named:
            self.leader = None
            raise NoController(";".join(self._addresses), "none of these controllers says which one leads")
        # One that is cut off may still name an old leader: most of them know better.
        leader = max(dict.fromkeys(named), key=named.count)
        if leader != self.leader:
            _logger.info("the controllers are led by %s", leader)
        self.leader = leader

    async def _leader_by(self, address: str) -> str | None:
        try:
            reply = await self._client.call(address, GetControllerMetadata(), timeout_seconds=_ASK_SECONDS)
        except (RemotingError, RequestError) as error:
            _logger.debug("a controller does not answer controller=%s reason=%s", address, error)
            return None
        return reply.header.controller_leader_address or None

    async def beat(self, heartbeat: Callable[[], BrokerHeartbeat | None], interval_seconds: float) -> None:
        """Tell all of them that this broker lives, until cancelled; one that is gone delays no other."""
        await asyncio.gather(*(self._beat(address, heartbeat, interval_seconds) for address in self._addresses))

    async def _beat(
        self, address: str, heartbeat: Callable[[], BrokerHeartbeat | None], interval_seconds: float
    ) -> None:
        while True:
            request = heartbeat()
            if request is not None:
                try:
                    await self._client.call_oneway(address, request, timeout_seconds=_BEAT_SECONDS)
                except RemotingError as error:
                    _logger.debug("no heartbeat controller=%s reason=%s", address, error)
            await asyncio.sleep(interval_seconds)
