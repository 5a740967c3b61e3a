"""The name servers: a fixed list, or one that an HTTP address tells; one is asked until it fails, then the next."""

import asyncio
import logging
from typing import Any, Final, TypeVar

from skyrocket.client.core.errors import HOW_TO_NAME_THEM, NoNameServer, NotANameServer
from skyrocket.protocol.errors import RequestNotSupported
from skyrocket.protocol.requests.header import Header, Request
from skyrocket.remoting.addresses import AddressList
from skyrocket.remoting.client import RemotingClient
from skyrocket.remoting.errors import NoAddressAnswered, plainly
from skyrocket.remoting.exchange import ONLY_SUCCESS, Reply

_logger = logging.getLogger(__name__)

A = TypeVar("A", bound=Header)

LOOKUP_INTERVAL: Final = 120.0
_LOOKUP_TIMEOUT: Final = 3.0


class NameServers:
    """Who is asked where topics are."""

    def __init__(
        self, remoting: RemotingClient, addresses: tuple[str, ...], lookup: str = "", unit_name: str = ""
    ) -> None:
        self._remoting = remoting
        self._list = AddressList(addresses)
        self.addresses = tuple(sorted(addresses))
        self.lookup_url = lookup_url(lookup, unit_name) if lookup and not addresses else ""

    def __str__(self) -> str:
        return ";".join(self.addresses) or f"(to be told by {self.lookup_url})"

    async def call(
        self, request: Request[A], body: bytes = b"", *, timeout: float, accepted: Any = ONLY_SUCCESS
    ) -> Reply[A]:
        """Ask one of them; raises RequestError, or NoNameServer when none answers."""
        if not self.addresses:
            await self.look_up()
        try:
            return await self._remoting.call_any(self._list, request, body, timeout_seconds=timeout, accepted=accepted)
        except NoAddressAnswered as error:
            raise self._none_answered(error) from error
        except RequestNotSupported as error:
            raise NotANameServer(str(self), error.remark) from error

    def _none_answered(self, error: NoAddressAnswered) -> NoNameServer:
        tried = "; ".join(str(failure) for failure in error.failures)
        return NoNameServer(
            f"no name server answered ({tried}): check the addresses ({HOW_TO_NAME_THEM}) and that one of them runs "
            "(`skyrocket namesrv`)"
        )

    async def look_up(self) -> None:
        """Ask the HTTP address; keeps what is known when it says nothing new. Raises NoNameServer."""
        try:
            text = await asyncio.wait_for(asyncio.to_thread(_get, self.lookup_url), _LOOKUP_TIMEOUT + 1)
        except (OSError, TimeoutError, ValueError) as error:
            raise NoNameServer(
                f"{self.lookup_url} did not tell the name servers ({plainly(error)}): check name_server_lookup"
            ) from error
        found = AddressList.parse(text).in_order()
        if not found:
            raise NoNameServer(f"{self.lookup_url} told no name server: its first line must be host:port;host:port")
        if tuple(sorted(found)) != self.addresses:
            _logger.info("name servers told url=%s addresses=%s", self.lookup_url, text)
            self._list = AddressList(found)
            self.addresses = tuple(sorted(found))


def lookup_url(base: str, unit_name: str = "") -> str:
    """RocketMQ's rule: a bare domain gets its port and path, a unit its suffix."""
    url = base if "://" in base else f"http://{base}"
    scheme, _, rest = url.partition("://")
    if "/" not in rest:
        rest = f"{rest if ':' in rest else rest + ':8080'}/rocketmq/nsaddr"
    return f"{scheme}://{rest}" + (f"-{unit_name}?nofix=1" if unit_name.strip() else "")


def _get(url: str) -> str:
    if not url.startswith(("http://", "https://")):
        raise ValueError("only http and https are asked")
    import urllib.request  # with http and email behind it: most clients are told addresses

    with urllib.request.urlopen(url, timeout=_LOOKUP_TIMEOUT) as answer:
        if answer.status != 200:
            raise OSError(f"status {answer.status}")
        lines = answer.read(65536).decode("utf-8", "replace").strip().splitlines()
    return lines[0].strip() if lines else ""
