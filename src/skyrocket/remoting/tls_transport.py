"""TLS between a transport and a protocol, on memory buffers.

`loop.start_tls` cannot be given bytes that have already been read, and a server that looks at the first byte has read
some. So the handshake is done here: to the socket's transport this is the protocol, to the connection the transport.
"""

import asyncio
import contextlib
import logging
import ssl
from collections.abc import Callable, Iterable
from typing import Any, TypeAlias, cast

Chunk: TypeAlias = "bytes | bytearray | memoryview[Any]"

_logger = logging.getLogger(__name__)

_WORDS = {
    "WRONG_VERSION_NUMBER": "the other side does not speak TLS",
    "TLSV1_ALERT_UNKNOWN_CA": "the client does not trust our certificate",
    "SSLV3_ALERT_CERTIFICATE_UNKNOWN": "the client does not trust our certificate",
    "SSLV3_ALERT_BAD_CERTIFICATE": "the other side does not accept our certificate",
    "PEER_DID_NOT_RETURN_A_CERTIFICATE": "the client shows no certificate, and tls.server.need.client.auth is require",
    "TLSV13_ALERT_CERTIFICATE_REQUIRED": "the server wants a certificate of the client",
}
_READ_SIZE = 256 << 10
_JOIN_BELOW = 16 << 10  # the size of a TLS record


def failure_text(error: ssl.SSLError) -> str:
    """What went wrong, in words that say what to do."""
    if isinstance(error, ssl.SSLCertVerificationError):
        if "ostname mismatch" in error.verify_message or "IP address mismatch" in error.verify_message:
            return f"the host name differs from the certificate: {error.verify_message}"
        return f"the certificate is not trusted: {error.verify_message}"
    reason = (error.reason or str(error)).lower().replace("_", " ")
    return _WORDS.get(error.reason or "", reason)


class TlsTransport(asyncio.Transport, asyncio.Protocol):
    """One TLS session; `connection_made` of the protocol above is called when the handshake is done."""

    def __init__(
        self,
        context: ssl.SSLContext,
        protocol: asyncio.Protocol,
        *,
        server_side: bool,
        server_hostname: str | None = None,
        on_failure: Callable[[str], None] | None = None,
    ) -> None:
        """`server_hostname` is the name that a client expects; `on_failure` hears why the session ended early."""
        super().__init__()
        self._incoming, self._outgoing = ssl.MemoryBIO(), ssl.MemoryBIO()
        self._session = context.wrap_bio(
            self._incoming, self._outgoing, server_side=server_side, server_hostname=server_hostname
        )
        self._on_failure = on_failure or (lambda reason: None)
        self._above = protocol
        self._below: asyncio.Transport | None = None
        self._is_ready = False
        self._is_closing = False

    # ── what the socket's transport calls ────────────────────────────────────────────────────────────────────────────

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        self._below = cast(asyncio.Transport, transport)  # uvloop's are not derived from it
        self._advance()

    def data_received(self, data: bytes) -> None:
        self._incoming.write(data)
        self._advance()

    def eof_received(self) -> bool:
        if self._is_ready:
            return bool(self._above.eof_received())
        return False

    def connection_lost(self, error: Exception | None) -> None:
        self._is_closing = True
        self._above.connection_lost(error)

    def pause_writing(self) -> None:
        self._above.pause_writing()

    def resume_writing(self) -> None:
        self._above.resume_writing()

    def _advance(self) -> None:
        try:
            if not self._is_ready:
                self._session.do_handshake()
                self._is_ready = True
                self._above.connection_made(self)
            plain, at_end = self._read()
        except ssl.SSLWantReadError:
            self._send()
            return
        except ssl.SSLError as error:
            self._on_failure(failure_text(error))
            self._send()  # the alert that tells the peer
            self._close_below()
            return
        self._send()
        if plain:
            self._above.data_received(plain)
        if at_end and not self._above.eof_received():
            self.close()

    def _read(self) -> tuple[bytes, bool]:
        """All that can be decrypted, and whether the peer has said that nothing more will come."""
        chunks: list[bytes] = []
        try:
            while chunk := self._session.read(_READ_SIZE):
                chunks.append(chunk)
        except ssl.SSLWantReadError:
            return b"".join(chunks), False
        except ssl.SSLZeroReturnError:
            pass
        return b"".join(chunks), True

    def _send(self) -> None:
        if self._outgoing.pending and self._below is not None and not self._below.is_closing():
            self._below.write(self._outgoing.read())

    def _close_below(self) -> None:
        self._is_closing = True
        if self._below is not None:
            self._below.close()

    # ── what the connection calls ────────────────────────────────────────────────────────────────────────────────────

    def write(self, data: Chunk) -> None:
        if not self._is_closing and data:
            self._encrypt(data)
            self._send()

    def writelines(self, pieces: Iterable[Chunk]) -> None:
        if self._is_closing:
            return
        small: list[Chunk] = []
        for piece in pieces:
            if len(piece) < _JOIN_BELOW:
                small.append(piece)
                continue
            self._encrypt(b"".join(small))
            small = []
            self._encrypt(piece)
        self._encrypt(b"".join(small))
        self._send()

    def _encrypt(self, data: Chunk) -> None:
        view = memoryview(data)
        try:
            while view:
                view = view[self._session.write(view) :]
        except ssl.SSLError as error:
            _logger.debug("TLS failed peer=%s reason=%s", self.get_extra_info("peername"), error)
            self.abort()

    def close(self) -> None:
        if self._is_closing:
            return
        if self._is_ready:
            with contextlib.suppress(ssl.SSLError):  # the peer's farewell is not awaited
                self._session.unwrap()
            self._send()
        self._close_below()

    def abort(self) -> None:
        self._is_closing = True
        if self._below is not None:
            self._below.abort()

    def is_closing(self) -> bool:
        return self._is_closing or self._below is None or self._below.is_closing()

    def pause_reading(self) -> None:
        self._on_below(lambda below: below.pause_reading())

    def resume_reading(self) -> None:
        self._on_below(lambda below: below.resume_reading())

    def is_reading(self) -> bool:
        return self._below is not None and self._below.is_reading()

    def get_write_buffer_size(self) -> int:
        return 0 if self._below is None else self._below.get_write_buffer_size()

    def set_write_buffer_limits(self, high: int | None = None, low: int | None = None) -> None:
        self._on_below(lambda below: below.set_write_buffer_limits(high, low))

    def get_extra_info(self, name: str, default: Any = None) -> Any:
        if name == "ssl_object":
            return self._session
        return default if self._below is None else self._below.get_extra_info(name, default)

    def _on_below(self, action: Callable[[asyncio.Transport], None]) -> None:
        if self._below is not None:
            action(self._below)
