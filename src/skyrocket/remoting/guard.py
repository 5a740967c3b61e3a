"""Who may connect, how many of them, and how much of unfinished frames they may leave with us.

A server without file descriptors can neither write its files nor say so. A new descriptor has the lowest free number:
the number of an accepted socket tells how many the whole process uses, whoever has opened them, and connections are
shown out while enough are left for files.
"""

import logging
import resource
from collections import Counter
from collections.abc import Hashable
from ipaddress import IPv4Address, IPv4Network, IPv6Address, IPv6Network, ip_address, ip_network
from typing import Final, TypeAlias

from skyrocket.clock import Clock, Seldom
from skyrocket.errors import ConfigError

_logger = logging.getLogger(__name__)

Network: TypeAlias = IPv4Network | IPv6Network

_RESERVED_DESCRIPTORS: Final = 1024  # for files, HTTP pages and our own connections; at most half of all
_TROUBLE_SECONDS: Final = 10.0  # after the last connection that found no place


def raise_descriptor_limit() -> int:
    """Use as many file descriptors as the operator allows (the hard limit), not as few as shells start with."""
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    if soft != hard:
        resource.setrlimit(resource.RLIMIT_NOFILE, (hard, hard))
    return hard


def descriptor_limit() -> int:
    """How many this process may have."""
    return resource.getrlimit(resource.RLIMIT_NOFILE)[0]


def networks(text: str, key: str) -> tuple[Network, ...]:
    """Networks and addresses joined by commas; raises ConfigError."""
    try:
        return tuple(ip_network(part.strip()) for part in text.split(",") if part.strip())
    except ValueError as error:
        raise ConfigError(f"{key}: {error}. Name networks as 10.0.0.0/8,192.168.7.4") from error


class Door:
    """Counts those inside; the caller tells it of everyone who comes and goes."""

    def __init__(self, max_connections: int, max_per_address: int, clock: Clock) -> None:
        """`max_per_address` 0: half of all."""
        limit = descriptor_limit()
        self._first_reserved = limit - min(_RESERVED_DESCRIPTORS, limit // 2)
        self._max_connections = max_connections
        most = min(max_connections, self._first_reserved)
        self._max_per_address = max_per_address or max(most // 2, 1)
        self._clock = clock
        self._inside = 0
        self._by_host: dict[str, int] = {}
        self._seldom = Seldom(clock)
        self._last_full: float | None = None

    def refusal(self, host: str, descriptor: int) -> str | None:
        """Why somebody cannot come in; None: he can."""
        if descriptor >= self._first_reserved:
            reason = f"{descriptor} file descriptors are in use, the rest is kept for files; raise `ulimit -n`"
        elif self._inside >= self._max_connections:
            reason = f"{self._inside} connections are open, more are not allowed"
        else:
            return self.refusal_of(host)
        self._last_full = self._clock.monotonic()
        if self._seldom.may_say("full"):
            _logger.warning("connections are refused reason=%s", reason)
        return reason

    def refusal_of(self, host: str) -> str | None:
        """Why an address may not have another connection, None if it may; "" is not known yet."""
        if not host or self._by_host.get(host, 0) < self._max_per_address:
            return None
        reason = f"{host} has {self._max_per_address} connections; maxConnectionsPerAddress allows no more"
        if self._seldom.may_say(host):
            _logger.warning("connections are refused reason=%s", reason)
        return reason

    def entered(self, host: str) -> None:
        self._inside += 1
        self._by_host[host] = self._by_host.get(host, 0) + 1

    def left(self, host: str) -> None:
        self._inside -= 1
        self._by_host[host] -= 1
        if not self._by_host[host]:
            del self._by_host[host]

    def trouble(self) -> str | None:
        """Why new connections find no place; None while they do."""
        if self._last_full is None or self._clock.monotonic() - self._last_full > _TROUBLE_SECONDS:
            return None
        return (
            f"{self._inside} connections are open and new ones are refused; "
            f"file descriptors for connections: {self._first_reserved} of {descriptor_limit()} (`ulimit -n`)"
        )


class UnfinishedFrames:
    """How many bytes all connections of a server have left with it: incomplete frames, and what waits for its time.

    Beyond the bound the address that has left most loses a frame: of those that are not small the one that has been
    unfinished for longest. So whoever has left less than others is not the one to pay for them.
    """

    def __init__(self, max_size: int) -> None:
        self._max_size = max_size
        self._held: dict[Hashable, tuple[int, str]] = {}  # size and host, in the order in which the frames were begun
        self.size = 0

    def holds(self, holder: Hashable, host: str, size: int, *, is_new: bool) -> None:
        """Somebody has so many bytes of a frame now; `is_new`: of another one than before."""
        before, _ = self._held.pop(holder, (0, "")) if is_new else self._held.get(holder, (0, ""))
        self.size += size - before
        self._held[holder] = (size, host)

    def released(self, holder: Hashable) -> None:
        """Somebody has no unfinished frame any more."""
        size, _ = self._held.pop(holder, (0, ""))
        self.size -= size

    def to_give_up(self) -> Hashable | None:
        """Whose frame is one too many."""
        if self.size <= self._max_size:
            return None
        by_host: Counter[str] = Counter()
        for size, host in self._held.values():
            by_host[host] += size
        ((most, held_size),) = by_host.most_common(1)
        of_host = [(holder, size) for holder, (size, host) in self._held.items() if host == most]
        return next(holder for holder, size in of_host if 2 * size * len(of_host) >= held_size)


def is_in(host: str, allowed: tuple[Network, ...]) -> bool:
    """Whether an address belongs to one of the networks; "" is that of a peer that was gone before it was accepted."""
    if not allowed or not host:
        return False
    address = plain_address(host)
    return any(address in network for network in allowed)


def plain_address(host: str) -> IPv4Address | IPv6Address:
    """A host's number, without its zone; IPv4 as such where a socket of both kinds shows it as IPv6."""
    address = ip_address(host.partition("%")[0])
    return getattr(address, "ipv4_mapped", None) or address
