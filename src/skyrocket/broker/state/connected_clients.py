"""A client on one connection, as the tables of producers and consumers know it."""

from dataclasses import dataclass
from typing import Generic, Protocol, TypeVar

from skyrocket.protocol.bodies.connections import ClientConnection
from skyrocket.protocol.codes import version_name
from skyrocket.protocol.errors import SystemFailure

EXPIRY_SECONDS = 120.0


class Channel(Protocol):
    """What these tables ask of a connection; `remoting.peer.Peer` is one. Tables have it as key."""

    @property
    def is_open(self) -> bool: ...

    @property
    def is_writable(self) -> bool: ...


C = TypeVar("C", bound=Channel)


@dataclass(frozen=True, slots=True)
class Client(Generic[C]):
    """Who sends heartbeats on a connection."""

    connection: C
    client_id: str
    address: str = ""  # 192.0.2.1:50000
    language: str | None = "JAVA"
    version: int = 0

    def body(self) -> ClientConnection:
        """As operators see it."""
        return ClientConnection(self.client_id, self.address, self.language, self.version)


@dataclass(slots=True)
class Member(Generic[C]):
    """A client in one group, and when it was last heard of there."""

    client: Client[C]
    seen_at: float  # monotonic
    seen_ms: int


def too_old(version: int) -> SystemFailure:
    """A client of before the request existed."""
    return SystemFailure(f"the client does not support this feature. version={version_name(version)}")
