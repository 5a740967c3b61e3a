"""A client on one connection, as the tables of producers and consumers know it."""

from dataclasses import dataclass, field
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


@dataclass(slots=True)
class Member(Generic[C]):
    """A client in one group, when it joined and when it was last heard of there."""

    client: Client[C]
    seen_at: float  # monotonic
    seen_ms: int
    joined_ms: int = field(init=False)

    def __post_init__(self) -> None:
        self.joined_ms = self.seen_ms

    def body(self, *, with_times: bool = False) -> ClientConnection:
        """As operators see it; `with_times` adds what RocketMQ does not tell."""
        client, since_ms = self.client, self.joined_ms if with_times else None
        return ClientConnection(client.client_id, client.address, client.language, client.version, since_ms)


def too_old(version: int) -> SystemFailure:
    """A client of before the request existed."""
    return SystemFailure(f"the client does not support this feature. version={version_name(version)}")
