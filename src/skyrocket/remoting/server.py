"""The server: listeners that share one router, limits, idle sweep, and a stop in order.

    router = Router()
    router.serve(GetMaxOffset, max_offset)
    async with RemotingServer(router) as server:
        await server.listen("0.0.0.0", 10911)
        await server.listen("0.0.0.0", 10909, without=NOT_ON_VIP_PORT)

Stop: take no connections ▸ for a while tell those who understand it to go away ▸ read nothing more ▸ let what is in
hand be answered and sent ▸ close.
"""

import asyncio
import contextlib
import logging
import socket
from collections.abc import Callable, Collection, Iterator
from dataclasses import dataclass, field
from functools import partial
from typing import Final, Self, cast

from skyrocket.clock import Clock, Seldom, SystemClock
from skyrocket.config.sections.listening import ListeningConfig
from skyrocket.protocol.errors import ProtocolError
from skyrocket.remoting import proxy_protocol
from skyrocket.remoting.addresses import Address
from skyrocket.remoting.connection import Connection
from skyrocket.remoting.guard import Door, Network, UnfinishedFrames, is_in, networks
from skyrocket.remoting.limits import ConnectionLimits, TurnLimits
from skyrocket.remoting.peer import CloseReason, Peer
from skyrocket.remoting.router import GoingAway, Router
from skyrocket.remoting.tls import ServerTls, TlsMode
from skyrocket.remoting.tls_transport import TlsTransport
from skyrocket.remoting.turn import Turn

_logger = logging.getLogger(__name__)

_MAX_SWEEP_SECONDS: Final = 10.0
_CLOSING_SECONDS: Final = 10.0  # for a peer to take what was sent before the close
_POLL_SECONDS: Final = 0.01
_TLS_HANDSHAKE: Final = 0x16


@dataclass(frozen=True, slots=True)
class ServerSettings:
    """The bounds of a server; seconds and counts."""

    max_connections: int = 65_535  # and not more than file descriptors allow
    max_connections_per_address: int = 0  # 0: half of all
    max_unfinished_size: int = 128 << 20  # bytes of incomplete frames of all connections
    idle_seconds: float = 120.0  # without read and write
    frame_seconds: float = 120.0  # for a frame that was begun to be completed
    handshake_seconds: float = 10.0
    backlog: int = 1024
    proxy_networks: tuple[Network, ...] = ()  # whose PROXY headers are believed
    limits: ConnectionLimits = field(default_factory=ConnectionLimits)


def settings_of(config: ListeningConfig) -> ServerSettings:
    """The bounds that an operator has chosen; raises ConfigError."""
    return ServerSettings(
        idle_seconds=config.idle_seconds,
        max_connections_per_address=config.max_connections_per_address,
        max_unfinished_size=config.max_unfinished_bytes,
        proxy_networks=networks(config.proxy_networks, "proxyProtocolNetworks"),
    )


@dataclass(slots=True)
class ServerCounters:
    """What happened to connections since the start."""

    opened: int = 0
    refused: int = 0  # no place, for all or for their address
    closed: dict[CloseReason, int] = field(default_factory=lambda: dict.fromkeys(CloseReason, 0))


class RemotingServer:
    """Accepts connections and owns them."""

    def __init__(
        self,
        router: Router,
        settings: ServerSettings | None = None,
        tls: ServerTls | None = None,
        clock: Clock | None = None,
        turn: Turn | None = None,
    ) -> None:
        self.router = router
        self.turn = turn or Turn(TurnLimits())
        self.counters = ServerCounters()
        self._settings = settings or ServerSettings()
        self._tls = tls
        self._clock = clock or SystemClock()
        self._listeners: list[asyncio.Server] = []
        self.door = Door(self._settings.max_connections, self._settings.max_connections_per_address, self._clock)
        self.seldom = Seldom(self._clock)
        self._unfinished = UnfinishedFrames(self._settings.max_unfinished_size)
        self._connections: dict[Connection, _Progress] = {}
        self._close_callbacks: list[Callable[[Peer, CloseReason], None]] = []
        self._sweep_timer: asyncio.TimerHandle | None = None
        self._is_stopping = False

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(self, *_: object) -> None:
        await self.stop()

    def on_turn_end(self, callback: Callable[[], None]) -> None:
        """Call after the requests of a turn were handed out and before its answers are written."""
        self.turn.on_end(callback)

    def on_close(self, callback: Callable[[Peer, CloseReason], None]) -> None:
        """Call for every connection that had been open."""
        self._close_callbacks.append(callback)

    @property
    def connection_count(self) -> int:
        """All that hold a socket, also those whose kind is not known yet."""
        return len(self._connections)

    def connections(self) -> Iterator[Connection]:
        """Those that are open."""
        return (connection for connection, progress in self._connections.items() if progress.is_open)

    async def listen(self, host: str, port: int, *, without: Collection[int] = ()) -> Address:
        """Accept on one more address; port 0 takes a free one. Requests of the codes in `without` get code 3."""
        assert not self._is_stopping
        router = self.router.without(without) if without else self.router
        bound = _bound_socket(host, port)
        address = Address(*bound.getsockname()[:2])
        loop = asyncio.get_running_loop()
        try:
            server = await loop.create_server(
                lambda: _Arrival(self, router), sock=bound, backlog=self._settings.backlog
            )
        except BaseException:
            bound.close()
            raise
        self._listeners.append(server)
        if self._sweep_timer is None:
            self._schedule_sweep()
        _logger.info("listening address=%s", address)
        return address

    async def stop(self, *, drain_seconds: float = 3.0, go_away_seconds: float = 0.0) -> None:
        """End in order; see above. Nothing is left behind, whatever peers and handlers do."""
        if self._is_stopping:
            return
        self._is_stopping = True
        for listener in self._listeners:
            listener.close()
        if go_away_seconds > 0:
            await self._send_away(go_away_seconds)
        for connection in self._connections:
            connection.take_no_requests()
        await self._until(lambda: not self._is_busy(), drain_seconds)
        await self.router.tasks.drain(0)
        for connection in list(self._connections):
            connection.close()
        await self._until(lambda: not self._connections, min(drain_seconds, 1.0))
        for connection in list(self._connections):
            connection.abort(CloseReason.LOCAL)
        await self._until(lambda: not self._connections, 1.0)
        if self._sweep_timer is not None:
            self._sweep_timer.cancel()
        for listener in self._listeners:
            with contextlib.suppress(TimeoutError):
                await asyncio.wait_for(listener.wait_closed(), 1.0)

    async def _send_away(self, seconds: float) -> None:
        for connection in self._connections:
            assert isinstance(connection.router, Router)
            connection.router = GoingAway(connection.router)
        await self._until(lambda: not self._connections, seconds)

    def _is_busy(self) -> bool:
        return len(self.router.tasks) > 0 or any(
            connection.unanswered_count or connection.unsent_size for connection in self._connections
        )

    async def _until(self, condition: Callable[[], bool], seconds: float) -> None:
        loop = asyncio.get_running_loop()
        deadline = loop.time() + seconds
        await asyncio.sleep(0)
        while not condition() and loop.time() < deadline:
            await asyncio.sleep(_POLL_SECONDS)

    # ── connections ──────────────────────────────────────────────────────────────────────────────────────────────────

    def accepted(self, transport: asyncio.Transport, router: Router) -> None:
        """A socket came: watch its first byte, or close it."""
        address = _peer_address(transport)
        believed = is_in(address.host, self._settings.proxy_networks)
        descriptor = transport.get_extra_info("socket").fileno()
        # Those whom a proxy brings are counted by the address that it will name.
        host = "" if believed else address.host
        if self._is_stopping or self.door.refusal(host, descriptor) is not None:
            self.counters.refused += 1
            transport.abort()
            return
        connection = Connection(address, router, self.turn, self, self._settings.limits, self._clock)
        self.door.entered(host)
        self._connections[connection] = _Progress(host)
        first = FirstByte(connection, self, self._tls, believes_proxy=believed)
        transport.set_protocol(first)
        first.connection_made(transport)

    def comes_from(self, connection: Connection, source: Address) -> bool:
        """A proxy has said whose connection it is; whether that one may come in."""
        if self.door.refusal_of(source.host) is not None:
            self.counters.refused += 1
            return False
        progress = self._connections[connection]
        self.door.left(progress.host)
        self.door.entered(source.host)
        progress.host = source.host
        connection.comes_from(source)
        return True

    def holds(self, connection: Connection, size: int, *, is_new: bool) -> None:
        if not size:
            self._unfinished.released(connection)
            return
        self._unfinished.holds(connection, self._connections[connection].host, size, is_new=is_new)
        while (holder := self._unfinished.to_give_up()) is not None:
            assert isinstance(holder, Connection)
            if self.seldom.may_say("unfinished"):
                _logger.warning(
                    "too much of unfinished frames, the oldest of who has most is given up peer=%s size=%d in_all=%d",
                    holder.remote_address,
                    holder.incomplete_size,
                    self._unfinished.size,
                )
            self._unfinished.released(holder)
            holder.abort(CloseReason.SLOW)

    def opened(self, connection: Connection) -> None:
        self.counters.opened += 1
        self._connections[connection].is_open = True

    def closed(self, connection: Connection, reason: CloseReason) -> None:
        self.counters.closed[reason] += 1
        progress = self._connections.pop(connection)
        self.door.left(progress.host)
        self._unfinished.released(connection)
        if progress.is_open:
            for callback in self._close_callbacks:
                self._notify(connection, partial(callback, connection, reason))

    def _notify(self, connection: Connection, call: Callable[[], None]) -> None:
        try:
            call()
        except Exception:
            _logger.exception("a callback failed peer=%s", connection.remote_address)

    # ── the sweep ────────────────────────────────────────────────────────────────────────────────────────────────────

    def _schedule_sweep(self) -> None:
        limits = (self._settings.idle_seconds, self._settings.frame_seconds, self._settings.handshake_seconds)
        interval = max(0.02, min(_MAX_SWEEP_SECONDS, min(limits) / 4))
        self._sweep_timer = asyncio.get_running_loop().call_later(interval, self._sweep_and_go_on)

    def _sweep_and_go_on(self) -> None:
        self.sweep()
        self._schedule_sweep()

    def sweep(self) -> None:
        """Close who is idle, and cut off who began something and does not finish it."""
        now = self._clock.monotonic()
        for connection, progress in list(self._connections.items()):
            if connection.closing_since is not None:
                if now - connection.closing_since > _CLOSING_SECONDS:
                    connection.abort(CloseReason.SLOW)
            elif now - connection.last_activity >= self._settings.idle_seconds:
                connection.abort(CloseReason.IDLE)
            elif connection.handshake_since is not None:
                if now - connection.handshake_since > self._settings.handshake_seconds:
                    connection.abort(CloseReason.SLOW)
            elif progress.unfinished_for(connection, now) > self._settings.frame_seconds:
                connection.abort(CloseReason.SLOW)


class _Progress:
    """What the server remembers of a connection: whose it is, and since when one and the same frame is incomplete."""

    __slots__ = ("frames", "host", "is_open", "since")

    def __init__(self, host: str) -> None:
        self.host = host
        self.is_open = False
        self.frames = -1
        self.since = 0.0

    def unfinished_for(self, connection: Connection, now: float) -> float:
        if not connection.incomplete_size or connection.frames_received != self.frames:
            self.frames = connection.frames_received if connection.incomplete_size else -1
            self.since = now
        return now - self.since


class _Arrival(asyncio.Protocol):
    """A socket in the moment it is accepted; which listener it came to decides over its router."""

    def __init__(self, server: RemotingServer, router: Router) -> None:
        self._server = server
        self._router = router

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        # uvloop's transports are not derived from asyncio's.
        self._server.accepted(cast(asyncio.Transport, transport), self._router)


def _bound_socket(host: str, port: int) -> socket.socket:
    bound = socket.socket(socket.AF_INET6 if ":" in host else socket.AF_INET, socket.SOCK_STREAM)
    try:
        bound.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        bound.bind((host, port))
        bound.setblocking(False)
    except BaseException:
        bound.close()
        raise
    return bound


def _peer_address(transport: asyncio.Transport) -> Address:
    without_delay(transport)
    name = transport.get_extra_info("peername")
    return Address(name[0], name[1]) if isinstance(name, tuple) else Address("", 0)


def without_delay(transport: asyncio.Transport) -> None:
    """TCP_NODELAY; both loops set it as well, but do not promise it."""
    sock = transport.get_extra_info("socket")
    if sock is not None:
        with contextlib.suppress(OSError):
            sock.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)


class FirstByte(asyncio.Protocol):
    """Listens until it is clear what comes, then leaves the transport to the connection.

    0x50 or 0x0D   PROXY header v1 or v2; what follows it is looked at again
    0x16           TLS handshake: disabled ▸ close, otherwise TLS (close when there is no certificate)
    else           a frame, whose length begins with 0x00 or 0x01: enforcing ▸ close, otherwise plain
    """

    def __init__(
        self, connection: Connection, server: RemotingServer, tls: ServerTls | None, *, believes_proxy: bool
    ) -> None:
        self._connection = connection
        self._server = server
        self._tls = tls
        self._believes_proxy = believes_proxy
        self._is_first = True
        self._transport: asyncio.Transport | None = None
        self._held = b""

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        self._transport = cast(asyncio.Transport, transport)  # uvloop's are not derived from it
        self._connection.accepted(self._transport)

    def data_received(self, data: bytes) -> None:
        data = self._held + data
        try:
            if self._is_first and proxy_protocol.begins(data[0]):
                data = self._without_proxy_header(data)
        except ProtocolError as error:
            self._refuse(error.reason, CloseReason.PROTOCOL)
            return
        if not data:
            return
        mode = TlsMode.DISABLED if self._tls is None else self._tls.mode
        if data[0] == _TLS_HANDSHAKE:
            self._start_tls(data)
        elif mode is TlsMode.ENFORCING:
            self._refuse("it speaks no TLS, and tls.server.mode is enforcing", CloseReason.REFUSED)
        else:
            self._hand_over(self._connection, data)

    def eof_received(self) -> None:
        self._connection.abort(CloseReason.PEER)

    def connection_lost(self, error: Exception | None) -> None:
        self._connection.connection_lost(error)

    def _refuse(self, reason: str, kind: CloseReason) -> None:
        peer = self._connection.remote_address
        if self._server.seldom.may_say((peer.host, reason)):
            _logger.warning("a connection was refused peer=%s reason=%s", peer, reason)
        self._connection.abort(kind)

    def _without_proxy_header(self, data: bytes) -> bytes:
        if not self._believes_proxy:
            raise ProtocolError(
                "it begins with a PROXY header, and its address is not in proxyProtocolNetworks"
                if data[:6] == b"PROXY "[: len(data)] or data[:4] == b"\r\n\r\n"[: len(data)]
                else "what came is no frame"
            )
        header = proxy_protocol.parse(data)
        if header is None:
            self._held = data
            return b""
        self._held = b""
        self._is_first = False
        if header.source is not None and header.destination is not None:
            if not self._server.comes_from(self._connection, header.source):
                self._connection.abort(CloseReason.REFUSED)
                return b""
            self._connection.attributes["proxy_destination"] = header.destination
        return data[header.size :]

    def _start_tls(self, data: bytes) -> None:
        if self._tls is None or self._tls.mode is TlsMode.DISABLED:
            self._refuse("it speaks TLS, and tls.server.mode is disabled", CloseReason.REFUSED)
            return
        context = self._tls.context()
        if context is None:
            self._refuse("it speaks TLS, and there is no certificate", CloseReason.REFUSED)
            return
        self._connection.handshake_began()
        self._hand_over(TlsTransport(context, self._connection, server_side=True, on_failure=self._tls_failed), data)

    def _tls_failed(self, reason: str) -> None:
        peer = self._connection.remote_address
        if self._server.seldom.may_say((peer.host, reason)):
            _logger.warning("TLS failed peer=%s reason=%s", peer, reason)

    def _hand_over(self, protocol: asyncio.Protocol, data: bytes) -> None:
        assert self._transport is not None
        self._transport.set_protocol(protocol)
        protocol.connection_made(self._transport)
        protocol.data_received(data)
