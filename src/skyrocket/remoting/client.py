"""The client: one connection per address, calls matched by opaque number.

    async with RemotingClient() as client:
        reply = await client.call("127.0.0.1:10911", GetMaxOffset(topic="T", queue_id=0))
        reply.header.offset

A connection is made by the first call that needs it and is shared by all. After a failed attempt an address rests
for a moment that grows with every failure; calls meanwhile fail at once, so that callers try another address.
"""

import asyncio
import contextlib
import ssl
from collections.abc import Callable, Collection
from dataclasses import dataclass, field
from functools import partial
from typing import Any, Final, Self, TypeVar

from skyrocket.clock import Clock, SystemClock
from skyrocket.protocol.codes import ResponseCode
from skyrocket.protocol.command import ONEWAY_FLAG, Body, RemotingCommand
from skyrocket.protocol.requests.header import Header, Request
from skyrocket.remoting.addresses import Address, AddressList
from skyrocket.remoting.connection import Connection
from skyrocket.remoting.errors import (
    CallTimeout,
    ConnectFailed,
    ConnectionLost,
    NoAddressAnswered,
    RemotingClosed,
    RemotingError,
)
from skyrocket.remoting.exchange import ONLY_SUCCESS, Reply, command_of, reply_of
from skyrocket.remoting.limits import ConnectionLimits
from skyrocket.remoting.peer import CloseReason
from skyrocket.remoting.router import Router
from skyrocket.remoting.tasks import TaskSet
from skyrocket.remoting.tls_transport import TlsTransport
from skyrocket.remoting.turn import Turn

A = TypeVar("A", bound=Header)

_FIRST_REST_SECONDS: Final = 0.05
_MAX_REST_SECONDS: Final = 2.0
_CLOSE_SECONDS: Final = 1.0
_SWEEP_SECONDS: Final = 10.0


@dataclass(frozen=True, slots=True)
class ClientSettings:
    """The bounds of a client."""

    connect_seconds: float = 3.0
    idle_seconds: float = 120.0
    closes_on_timeout: bool = True  # RocketMQ: a connection on which a call timed out is not trusted any more
    limits: ConnectionLimits = field(default_factory=lambda: ConnectionLimits(max_calls=65_535))


class RemotingClient:
    """Calls to any number of addresses.

    `router` answers what servers ask; without one they hear that nothing is supported. `before_send` may add fields
    to a request; `signer` then signs it, so that nothing is added after the signature.
    """

    def __init__(
        self,
        settings: ClientSettings | None = None,
        router: Router | None = None,
        tls: ssl.SSLContext | None = None,
        before_send: Callable[[str, RemotingCommand], None] | None = None,
        clock: Clock | None = None,
        *,
        signer: Callable[[RemotingCommand], None] | None = None,
    ) -> None:
        self.router = router or Router()
        self._settings = settings or ClientSettings()
        self._tls = tls
        self._before_send = before_send
        self.signer = signer
        self._clock = clock or SystemClock()
        self._turn = Turn()
        self._known: dict[str, _KnownAddress] = {}
        self._connections: set[Connection] = set()
        self._retired: set[Connection] = set()
        self._attempts = TaskSet()
        self._sweep_timer: asyncio.TimerHandle | None = None
        self._is_closed = False

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(self, *_: object) -> None:
        await self.close()

    # ── asking ───────────────────────────────────────────────────────────────────────────────────────────────────────

    async def call(
        self,
        address: str,
        request: Request[A],
        body: Body = b"",
        *,
        timeout_seconds: float = 3.0,
        accepted: Collection[int] = ONLY_SUCCESS,
        closes_on_timeout: bool | None = None,
    ) -> Reply[A]:
        """Ask; raises RequestError for a code that is not accepted, RemotingError when there is no answer."""
        answer = await self.invoke(
            address, command_of(request, body), timeout_seconds, closes_on_timeout=closes_on_timeout
        )
        return reply_of(request, answer, accepted)

    async def call_any(
        self,
        addresses: AddressList,
        request: Request[A],
        body: Body = b"",
        *,
        timeout_seconds: float = 3.0,
        accepted: Collection[int] = ONLY_SUCCESS,
    ) -> Reply[A]:
        """Ask one of equal servers, the next when it does not answer; the first that does is kept to."""
        failures: list[RemotingError] = []
        for address in addresses.in_order():
            try:
                answer = await self.invoke(address, command_of(request, body), timeout_seconds)
            except RemotingClosed:
                raise
            except RemotingError as error:
                failures.append(error)
                continue
            addresses.choose(address)
            return reply_of(request, answer, accepted)
        raise NoAddressAnswered(failures)

    async def call_oneway(
        self, address: str, request: Request[Any], body: Body = b"", *, timeout_seconds: float = 3.0
    ) -> None:
        """Tell; returns when the bytes are on their way, raises RemotingError when they are not."""
        await self.tell(address, command_of(request, body, ONEWAY_FLAG), timeout_seconds)

    async def tell(self, address: str, command: RemotingCommand, timeout_seconds: float = 3.0) -> None:
        """Tell with a plain command that bears the oneway flag; raises RemotingError."""
        connection = await self._connection(address, timeout_seconds)
        if self._before_send is not None:
            self._before_send(address, command)
        if self.signer is not None:
            self.signer(command)
        if not connection.send(command):
            raise ConnectionLost(address, "the peer does not take what is sent")

    async def invoke(
        self,
        address: str,
        command: RemotingCommand,
        timeout_seconds: float = 3.0,
        *,
        closes_on_timeout: bool | None = None,
    ) -> RemotingCommand:
        """Ask with a plain command."""
        if self._before_send is not None:
            self._before_send(address, command)
        if self.signer is not None:
            self.signer(command)
        closes = self._settings.closes_on_timeout if closes_on_timeout is None else closes_on_timeout
        deadline = self._clock.monotonic() + timeout_seconds
        answer = await self._invoke_once(address, command, deadline, closes)
        if answer.code == ResponseCode.GO_AWAY and answer.is_response:
            # RocketMQ: connect again and send the same once more; a second 1500 is the answer.
            answer = await self._invoke_once(address, command, deadline, closes)
        return answer

    async def _invoke_once(
        self, address: str, command: RemotingCommand, deadline: float, closes_on_timeout: bool
    ) -> RemotingCommand:
        began = self._clock.monotonic()
        connection = await self._connection(address, deadline - began)
        sent = self._clock.monotonic()
        try:
            answer = await connection.invoke(command, max(deadline - sent, 0.0))
        except CallTimeout:
            waited = deadline - sent
            # RocketMQ: but not when making the connection took the time.
            if closes_on_timeout and (waited > 0.1 or waited > (deadline - began) / 4):
                connection.close()
            raise
        finally:
            if connection in self._retired and not connection.calls_in_flight:
                connection.close()
        if answer.code == ResponseCode.GO_AWAY:
            self._retire(address, connection)
        return answer

    # ── connections ──────────────────────────────────────────────────────────────────────────────────────────────────

    async def _connection(self, address: str, seconds: float) -> Connection:
        """The address's connection, made when there is none; raises ConnectFailed or RemotingClosed."""
        if self._is_closed:
            raise RemotingClosed(address, "the client is closed")
        known = self._known.get(address)
        if known is None:
            known = self._known[address] = _KnownAddress(address)
        if known.connection is not None and known.connection.is_open:
            return known.connection
        if known.attempt is None:
            known.check_rest(self._clock.monotonic())
            known.attempt = self._attempts.start(self._attempt(known), name=f"connect {address}")
        attempt = known.attempt
        await asyncio.wait((attempt,), timeout=max(seconds, 0.0))
        if not attempt.done():
            raise ConnectFailed(address, "the connection was not made in time")
        if attempt.cancelled():
            raise RemotingClosed(address, "the client was closed")
        made = attempt.result()
        if isinstance(made, RemotingError):
            raise type(made)(address, made.what, made.__cause__)  # each caller gets an exception of its own
        return made

    async def _attempt(self, known: "_KnownAddress") -> "Connection | ConnectFailed":
        try:
            connection = await asyncio.wait_for(self._connect(known.address), self._settings.connect_seconds)
        except (OSError, ValueError, TimeoutError) as error:
            failure = ConnectFailed(known.address, "could not connect", error)
            known.failed(failure, self._clock.monotonic())
            return failure
        finally:
            known.attempt = None
        known.succeeded(connection)
        return connection

    async def _connect(self, text: str) -> Connection:
        address = Address.parse(text)
        connection = Connection(address, self.router, self._turn, self, self._settings.limits, self._clock)
        opening = self._opening(connection)
        protocol: asyncio.Protocol = connection
        if self._tls is None:
            connection.lost_before_answer = _WANTS_TLS
        else:
            protocol = self._over_tls(connection, address.host)
        transport, _ = await asyncio.get_running_loop().create_connection(lambda: protocol, address.host, address.port)
        try:
            await opening
        except BaseException:
            transport.abort()
            raise
        return connection

    def _over_tls(self, connection: Connection, host: str) -> TlsTransport:
        assert self._tls is not None
        connection.attributes[_TLS_FAILURE] = _NO_TLS

        def failed(reason: str) -> None:
            text = f"{reason.rstrip('.')}. {_next_step(reason, host)}"
            connection.attributes[_TLS_FAILURE] = text
            connection.lost_before_answer = text  # since TLS 1.3 a server looks at our certificate after the handshake

        return TlsTransport(self._tls, connection, server_side=False, server_hostname=host, on_failure=failed)

    def _opening(self, connection: Connection) -> "asyncio.Future[None]":
        future: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        connection.attributes[_OPENING] = future
        return future

    def _retire(self, address: str, connection: Connection) -> None:
        """Use it for no more calls; it closes when its last answer is there."""
        known = self._known.get(address)
        if known is not None and known.connection is connection:
            known.connection = None
        self._retired.add(connection)
        if not connection.calls_in_flight:
            connection.close()

    def opened(self, connection: Connection) -> None:
        self._connections.add(connection)
        connection.attributes.pop(_OPENING).set_result(None)
        if self._sweep_timer is None:
            self._schedule_sweep()

    def closed(self, connection: Connection, reason: CloseReason) -> None:
        opening = connection.attributes.pop(_OPENING, None)
        if opening is not None and not opening.done():
            opening.set_exception(ConnectionError(connection.attributes.pop(_TLS_FAILURE, reason.value)))
        self._connections.discard(connection)
        self._retired.discard(connection)
        for known in list(self._known.values()):
            if known.connection is connection:
                known.connection = None

    def holds(self, connection: Connection, size: int, *, is_new: bool) -> None:
        """Servers were chosen by us: what they send is bounded by the size of a frame each."""

    def connection(self, address: str) -> Connection | None:
        """The open connection to an address, if there is one."""
        known = self._known.get(address)
        return None if known is None else known.connection

    # ── idle connections, and the end ────────────────────────────────────────────────────────────────────────────────

    def _schedule_sweep(self) -> None:
        interval = max(0.02, min(_SWEEP_SECONDS, self._settings.idle_seconds / 4))
        self._sweep_timer = asyncio.get_running_loop().call_later(interval, self._sweep)

    def _sweep(self) -> None:
        self._sweep_timer = None
        now = self._clock.monotonic()
        for connection in list(self._connections):
            if now - connection.last_activity >= self._settings.idle_seconds:
                connection.abort(CloseReason.IDLE)
        for known in list(self._known.values()):
            if known.is_forgettable(now):
                del self._known[known.address]
        if self._connections:
            self._schedule_sweep()

    async def close(self) -> None:
        """End all calls and connections."""
        self._is_closed = True
        await self._attempts.cancel()
        for connection in list(self._connections):
            connection.fail_calls(partial(RemotingClosed, str(connection.remote_address), "the client was closed"))
            connection.close()
        await self.router.tasks.cancel()
        with contextlib.suppress(TimeoutError):
            await asyncio.wait_for(self._all_closed(), _CLOSE_SECONDS)
        for connection in list(self._connections):
            connection.abort(CloseReason.LOCAL)
        with contextlib.suppress(TimeoutError):
            await asyncio.wait_for(self._all_closed(), _CLOSE_SECONDS)
        if self._sweep_timer is not None:
            self._sweep_timer.cancel()

    async def _all_closed(self) -> None:
        while self._connections:
            await asyncio.sleep(0.001)


_OPENING: Final = "remoting.opening"
_TLS_FAILURE: Final = "remoting.tls failure"
_NO_TLS: Final = (
    "the connection ended before TLS began: the server does not speak TLS. "
    "Connect without it, or set the server's tls.server.mode"
)
_WANTS_TLS: Final = (
    "the server closed the connection before its first answer: maybe the server wants TLS. "
    "Connect with it (--tls, tls=… of ClientSettings); the server's log says why it was closed"
)


def _next_step(reason: str, host: str) -> str:
    if "not trusted" in reason:
        return "Name the authority that signed it (--tls-ca, tlsTrustCertPath, cafile of the ssl context)"
    if "host name" in reason:
        return f"Give the server a certificate that names {host}, or connect by a name that it has"
    if "certificate of the client" in reason:
        return "Show one (--tls-cert and --tls-key, tlsCertPath and tlsKeyPath, load_cert_chain of the ssl context)"
    return "docs/guides/tls.md shows both ends"


class _KnownAddress:
    """What the client knows of one address."""

    __slots__ = ("address", "attempt", "connection", "failures", "last_error", "rests_until")

    def __init__(self, address: str) -> None:
        self.address = address
        self.connection: Connection | None = None
        self.attempt: asyncio.Task[Connection | ConnectFailed] | None = None
        self.failures = 0
        self.last_error: ConnectFailed | None = None
        self.rests_until = 0.0

    def check_rest(self, now: float) -> None:
        if now < self.rests_until:
            left_ms = (self.rests_until - now) * 1000
            what = f"could not connect {self.failures} times, next attempt in {left_ms:.0f} ms"
            cause = None if self.last_error is None else self.last_error.__cause__
            raise ConnectFailed(self.address, what, cause)

    def failed(self, error: ConnectFailed, now: float) -> None:
        self.failures += 1
        self.last_error = error
        self.rests_until = now + rest_seconds(self.failures)

    def succeeded(self, connection: Connection) -> None:
        self.connection = connection
        self.failures = 0
        self.last_error = None
        self.rests_until = 0.0

    def is_forgettable(self, now: float) -> bool:
        return self.connection is None and self.attempt is None and now >= self.rests_until


def rest_seconds(failures: int) -> float:
    """How long an address rests after a number of failures in a row."""
    return min(_FIRST_REST_SECONDS * float(2 ** min(failures - 1, 20)), _MAX_REST_SECONDS)
