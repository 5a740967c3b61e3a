"""The first bytes of a connection: a PROXY header, a TLS handshake, or at once a frame.

0x50 or 0x0D   PROXY header v1 or v2; what follows it is looked at again
0x16           TLS handshake: disabled ▸ close, otherwise TLS (close when there is no certificate)
else           a frame, whose length begins with 0x00 or 0x01: enforcing ▸ close, otherwise plain
"""

import asyncio
import logging
from typing import cast

from skyrocket.protocol.errors import ProtocolError
from skyrocket.remoting import proxy_protocol
from skyrocket.remoting.connection import Connection
from skyrocket.remoting.peer import CloseReason
from skyrocket.remoting.tls import ServerTls, TlsMode
from skyrocket.remoting.tls_transport import TlsTransport

_logger = logging.getLogger(__name__)

_TLS_HANDSHAKE = 0x16


class FirstByte(asyncio.Protocol):
    """Listens until it is clear what comes, then leaves the transport to the connection."""

    def __init__(self, connection: Connection, tls: ServerTls | None, expects_proxy: bool) -> None:
        self._connection = connection
        self._tls = tls
        self._expects_proxy = expects_proxy
        self._transport: asyncio.Transport | None = None
        self._held = b""

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        self._transport = cast(asyncio.Transport, transport)  # uvloop's are not derived from it
        self._connection.accepted(self._transport)

    def data_received(self, data: bytes) -> None:
        data = self._held + data
        try:
            if self._expects_proxy and proxy_protocol.begins(data[0]):
                data = self._without_proxy_header(data)
        except ProtocolError as error:
            _logger.debug("refused peer=%s reason=%s", self._connection.remote_address, error.reason)
            self._connection.abort(CloseReason.PROTOCOL)
            return
        if not data:
            return
        mode = TlsMode.DISABLED if self._tls is None else self._tls.mode
        if data[0] == _TLS_HANDSHAKE:
            self._start_tls(data)
        elif mode is TlsMode.ENFORCING:
            self._connection.abort(CloseReason.REFUSED)
        else:
            self._hand_over(self._connection, data)

    def eof_received(self) -> None:
        self._connection.abort(CloseReason.PEER)

    def connection_lost(self, error: Exception | None) -> None:
        self._connection.connection_lost(error)

    def _without_proxy_header(self, data: bytes) -> bytes:
        header = proxy_protocol.parse(data)
        if header is None:
            self._held = data
            return b""
        self._held = b""
        self._expects_proxy = False
        if header.source is not None and header.destination is not None:
            self._connection.comes_from(header.source)
            self._connection.attributes["proxy_destination"] = header.destination
        return data[header.size :]

    def _start_tls(self, data: bytes) -> None:
        context = None if self._tls is None or self._tls.mode is TlsMode.DISABLED else self._tls.context()
        if context is None:
            self._connection.abort(CloseReason.REFUSED)
            return
        self._connection.handshake_began()
        self._hand_over(TlsTransport(context, self._connection, server_side=True), data)

    def _hand_over(self, protocol: asyncio.Protocol, data: bytes) -> None:
        assert self._transport is not None
        self._transport.set_protocol(protocol)
        protocol.connection_made(self._transport)
        protocol.data_received(data)
