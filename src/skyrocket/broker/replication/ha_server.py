"""The master's HA port: a `MasterStream` per slave between its socket and the log.

Bounds: so many connections in all, so many bytes per slave and turn of the loop, and no more than the transport's own
buffer ahead of a slave that reads slowly. A connection that is refused is closed after a line in the log, one a minute
for each host and reason. When all
places are taken, the oldest that has not said where its log ends makes room: who only connects keeps no slave out.
"""

import asyncio
import logging
import re
import ssl
from collections.abc import Callable, Iterator
from typing import Any, Final, Protocol, cast

from skyrocket.broker.replication.master_stream import LogBytes, MasterStream, ReplicaRefused, TransferRules
from skyrocket.broker.replication.pace import Pace
from skyrocket.clock import Clock, Seldom
from skyrocket.protocol.errors import ProtocolError
from skyrocket.remoting.addresses import Address

_logger = logging.getLogger(__name__)

MAX_CONNECTIONS: Final = 64
_NUMBERS: Final = re.compile(r"\d+")
_HANDSHAKE_SECONDS: Final = 10.0
_BYTES_PER_TURN: Final = 1 << 20
_BUFFERED_BYTES: Final = 4 << 20


class Acknowledgements(Protocol):
    """Who hears what slaves have; `Replicas` is one."""

    def acknowledge(self, slave: Any, offset: int, /) -> None: ...

    def leave(self, slave: Any, /) -> None: ...


Admit = Callable[[Address], str | None]  # why an address may not replicate; None when it may


class HaServer:
    """Listens for slaves and owns their connections."""

    def __init__(
        self,
        log: LogBytes,
        replicas: Acknowledgements,
        clock: Clock,
        admit: Admit,
        rules: TransferRules | None = None,
        new_stream: Callable[[LogBytes, TransferRules, float], MasterStream] = MasterStream,
    ) -> None:
        self.log = log
        self.replicas = replicas
        self.new_stream = new_stream
        self.clock = clock
        self.rules = rules or TransferRules()
        self._admit = admit
        self._seldom = Seldom(clock)
        self._listener: asyncio.Server | None = None
        self._links: dict[SlaveLink, None] = {}  # in the order of their coming

    async def listen(self, host: str, port: int, tls: ssl.SSLContext | None = None) -> Address:
        """Accept slaves; port 0 takes a free one."""
        loop = asyncio.get_running_loop()
        self._listener = await loop.create_server(
            lambda: SlaveLink(self),
            host,
            port,
            backlog=MAX_CONNECTIONS,
            ssl=tls,
            ssl_handshake_timeout=_HANDSHAKE_SECONDS if tls is not None else None,
        )
        address = Address(*self._listener.sockets[0].getsockname()[:2])
        _logger.info("listening for slaves address=%s", address)
        return address

    def stop(self) -> None:
        """Let all slaves go."""
        if self._listener is not None:
            self._listener.close()
        for link in list(self._links):
            link.close("this master stops")

    def appended(self) -> None:
        """The log has grown: send it."""
        for link in self._links:
            link.appended()

    def slaves(self) -> Iterator["SlaveLink"]:
        """Those that have said where they stand."""
        return (link for link in self._links if link.stream.next_offset >= 0)

    def admit(self, link: "SlaveLink", address: Address) -> str | None:
        """Why a connection is not taken; None when it is."""
        reason = self._admit(address)
        if reason is not None:
            return reason
        if len(self._links) >= MAX_CONNECTIONS:
            silent = next((other for other in self._links if other.stream.next_offset < 0), None)
            if silent is None:
                return f"there are {MAX_CONNECTIONS} slaves already"
            self._links.pop(silent)
            silent.close("it said nothing, and another needs the place")
        self._links[link] = None
        return None

    def may_tell(self, address: Address, reason: str) -> bool:
        """Whether the log has said for a minute nothing of a host that was let go for the same reason."""
        return self._seldom.may_say((address.host, _NUMBERS.sub("#", reason)))

    def left(self, link: "SlaveLink") -> None:
        """A connection is gone."""
        self._links.pop(link, None)
        self.replicas.leave(link)


class SlaveLink(asyncio.Protocol):
    """One slave's connection."""

    def __init__(self, server: HaServer) -> None:
        self._server = server
        self.stream = server.new_stream(server.log, server.rules, server.clock.monotonic())
        self.address = Address("", 0)
        self._transport: asyncio.Transport | None = None
        self.pace = Pace()
        self._is_paused = False
        self._timer: asyncio.TimerHandle | None = None
        self._gathering: asyncio.TimerHandle | None = None

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        self._transport = transport = cast(asyncio.Transport, transport)  # uvloop's is one in all but its base class
        peer = transport.get_extra_info("peername")
        if peer is None:  # reset before it was accepted: somebody has looked whether the port is open
            transport.abort()
            return
        self.address = Address(*peer[:2])
        transport.set_write_buffer_limits(_BUFFERED_BYTES)
        reason = self._server.admit(self, self.address)
        if reason is not None:
            self.close(reason)
            return
        self._look_again()

    def data_received(self, data: bytes) -> None:
        is_first = self.stream.next_offset < 0
        try:
            self.stream.receive(data, self._server.clock.monotonic())
        except (ReplicaRefused, ProtocolError) as error:
            self.close(str(error))
            return
        if self.stream.acknowledged_offset >= 0:
            self._server.replicas.acknowledge(self, self.stream.acknowledged_offset)
        if is_first or not self._server.rules.gather_seconds:
            self.ship()  # the log, or what else the slave waits for

    def appended(self) -> None:
        """The log has grown; where nobody waits for this slave, what comes within a moment goes together, to a bound.

        Each transfer costs a system call and a report, and wakes the slave: with one for each turn of the loop senders
        had a fifth less.
        """
        gather_seconds = self._server.rules.gather_seconds
        if not gather_seconds or self.stream.lacks_much:
            self.ship()
        elif self._gathering is None:
            self._gathering = asyncio.get_running_loop().call_later(gather_seconds, self._gathered)

    def _gathered(self) -> None:
        self._gathering = None
        self.ship()

    def ship(self) -> None:
        """Send what the log has, a bounded number of bytes at a time so that others have their turn."""
        transport, sent = self._transport, 0
        if transport is None:
            return
        try:
            while not self._is_paused and sent < _BYTES_PER_TURN:
                parts = self.stream.send(self._server.clock.monotonic())
                if not parts:
                    return
                transport.writelines(parts)
                sent += sum(map(len, parts))
        except ReplicaRefused as error:
            self.close(str(error))
            return
        if not self._is_paused:
            asyncio.get_running_loop().call_soon(self.ship)

    def _look_again(self) -> None:
        self.ship()
        if self._transport is not None:
            pause = self.stream.next_look(self._server.clock.monotonic())
            self._timer = asyncio.get_running_loop().call_later(pause, self._look_again)

    def pause_writing(self) -> None:
        self._is_paused = True

    def resume_writing(self) -> None:
        self._is_paused = False
        self.ship()

    def close(self, reason: str) -> None:
        """Let this slave go."""
        if self._transport is not None:
            level = logging.WARNING if self._server.may_tell(self.address, reason) else logging.DEBUG
            _logger.log(level, "slave let go address=%s reason=%s", self.address, reason)
            self._transport.abort()
            self._transport = None

    def connection_lost(self, error: Exception | None) -> None:
        self._transport = None
        for timer in (self._timer, self._gathering):
            if timer is not None:
                timer.cancel()
        self._server.left(self)
        if error is not None:
            _logger.info("slave gone address=%s reason=%s", self.address, error)
