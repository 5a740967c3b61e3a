"""What handlers know of the other side."""

from collections.abc import Callable, Collection
from enum import Enum
from typing import Any, Protocol, TypeVar

from skyrocket.protocol.codes import LanguageCode
from skyrocket.protocol.command import Body, RemotingCommand
from skyrocket.protocol.requests.header import Header, Request
from skyrocket.remoting.addresses import Address
from skyrocket.remoting.exchange import ONLY_SUCCESS, Reply

A = TypeVar("A", bound=Header)


class CloseReason(Enum):
    """Why a connection ended."""

    PEER = "the peer closed it"
    LOCAL = "we closed it"
    IDLE = "nothing was read or written for too long"
    ERROR = "the network failed"
    PROTOCOL = "what came was not a frame"
    SLOW = "the peer did not take what was sent, or did not finish what it began"
    REFUSED = "not taken in: too many connections, or the wrong kind of first byte"


class Peer(Protocol):
    """One connection as handlers see it. `attributes` belongs to them: the client id of a heartbeat, for example.

    `version` and `language` are those of the request that is being served: peers say them with each.
    """

    version: int
    language: LanguageCode | None

    @property
    def remote_address(self) -> Address: ...

    @property
    def attributes(self) -> dict[str, Any]: ...

    @property
    def is_open(self) -> bool: ...

    @property
    def is_writable(self) -> bool:
        """Whether the peer takes what is sent: open, and not too much waits to be sent."""
        ...

    @property
    def unanswered_count(self) -> int:
        """Requests of the peer that wait for their answers."""
        ...

    async def call(
        self,
        request: Request[A],
        body: Body = b"",
        *,
        timeout_seconds: float = 3.0,
        accepted: Collection[int] = ONLY_SUCCESS,
    ) -> Reply[A]:
        """Ask; raises RequestError for a code that is not accepted, RemotingError when no answer comes."""
        ...

    async def invoke(self, command: RemotingCommand, timeout_seconds: float = 3.0) -> RemotingCommand:
        """Ask with a command instead of a typed request."""
        ...

    def send_oneway(self, request: Request[Any], body: Body = b"") -> bool:
        """Tell; False when the peer is gone or too slow, and nothing was sent."""
        ...

    def on_close(self, callback: Callable[["Peer", CloseReason], None]) -> None:
        """Call once when the connection has ended."""
        ...

    def close(self, reason: CloseReason = CloseReason.LOCAL) -> None:
        """End the connection after what is waiting has been sent."""
        ...
