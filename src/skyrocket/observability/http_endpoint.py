"""A few pages over HTTP/1.1, on the event loop of the server that they tell of.

Three paths that are asked for every few seconds need no web framework: that would be more code in the process than the
broker itself. So: GET and HEAD, one answer for each connection, then it is closed. Everything is bounded: connections
(a new one takes the place of the oldest), the size of a request, the time until it is there. An answer from here also
shows that the event loop turns, which a thread of its own would not.
"""

import asyncio
import contextlib
import logging
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from http import HTTPStatus
from typing import Final, cast

_logger = logging.getLogger(__name__)

MAX_CONNECTIONS: Final = 64
MAX_HEAD_BYTES: Final = 8192
SECONDS: Final = 5.0  # for a request to be there, and for its answer to be taken

_METHODS: Final = (b"GET", b"HEAD")
_TEXT: Final = "text/plain; charset=utf-8"


@dataclass(frozen=True, slots=True)
class Page:
    """What is answered."""

    status: int
    content_type: str
    body: bytes


class HttpEndpoint:
    """Serves pages by their path; `stop` must be called."""

    def __init__(self, pages: Mapping[str, Callable[[], Page]], seconds: float = SECONDS) -> None:
        self._pages = dict(pages)
        self._seconds = seconds
        self._open: dict[_Visit, None] = {}  # the oldest first
        self._server: asyncio.Server | None = None

    async def listen(self, host: str, port: int) -> int:
        """Returns the port, which was chosen when 0 was asked for; raises OSError."""
        assert self._server is None
        self._server = await asyncio.get_running_loop().create_server(lambda: _Visit(self), host, port)
        taken = int(self._server.sockets[0].getsockname()[1])
        _logger.info("metrics and health host=%s port=%d", host, taken)
        return taken

    async def stop(self) -> None:
        """Close everything; may be called again."""
        if self._server is not None:
            self._server.close()
            for visit in tuple(self._open):
                visit.end()
            with contextlib.suppress(TimeoutError):
                await asyncio.wait_for(self._server.wait_closed(), 1.0)
            self._server = None

    # ── for a visit ──────────────────────────────────────────────────────────────────────────────────────────────────

    def admit(self, visit: "_Visit") -> float:
        """How many seconds it has; when there are too many, the one that has dawdled for longest leaves."""
        if len(self._open) >= MAX_CONNECTIONS:
            oldest = next(iter(self._open))
            self.left(oldest)
            oldest.end()
        self._open[visit] = None
        return self._seconds

    def left(self, visit: "_Visit") -> None:
        self._open.pop(visit, None)

    def page(self, path: str) -> Page:
        """The page of a path; one that cannot be made becomes an error page."""
        make = self._pages.get(path)
        if make is None:
            known = " ".join(sorted(self._pages))
            return Page(HTTPStatus.NOT_FOUND, _TEXT, f"not here; there are: {known}\n".encode())
        try:
            return make()
        except Exception:
            _logger.exception("a page could not be made path=%s", path)
            return Page(HTTPStatus.INTERNAL_SERVER_ERROR, _TEXT, b"the page could not be made, the log says why\n")


class _Visit(asyncio.Protocol):
    """One connection."""

    def __init__(self, endpoint: HttpEndpoint) -> None:
        self._endpoint = endpoint
        self._transport: asyncio.Transport | None = None
        self._received = b""
        self._timer: asyncio.TimerHandle | None = None

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        self._transport = cast(asyncio.Transport, transport)  # uvloop's are not derived from it
        self._timer = asyncio.get_running_loop().call_later(self._endpoint.admit(self), self.end)

    def data_received(self, data: bytes) -> None:
        if self._transport is None or self._transport.is_closing():
            return
        self._received += data
        head, complete, _ = self._received.partition(b"\r\n\r\n")
        if complete:
            self._answer(head)
        elif len(self._received) > MAX_HEAD_BYTES:
            self._write(Page(HTTPStatus.REQUEST_HEADER_FIELDS_TOO_LARGE, _TEXT, b"the request is too large\n"))

    def _answer(self, head: bytes) -> None:
        words = head.split(b"\r\n", 1)[0].split(b" ")
        if len(words) != 3 or not words[2].startswith(b"HTTP/1."):
            self._write(Page(HTTPStatus.BAD_REQUEST, _TEXT, b"this is not an HTTP/1.1 request\n"))
        elif words[0] not in _METHODS:
            self._write(Page(HTTPStatus.METHOD_NOT_ALLOWED, _TEXT, b"only GET and HEAD\n"))
        else:
            path = words[1].split(b"?", 1)[0].decode("latin-1")
            self._write(self._endpoint.page(path), with_body=words[0] == b"GET")

    def _write(self, page: Page, *, with_body: bool = True) -> None:
        assert self._transport is not None
        lines = (
            f"HTTP/1.1 {page.status} {HTTPStatus(page.status).phrase}",
            f"Content-Type: {page.content_type}",
            f"Content-Length: {len(page.body)}",
            "Cache-Control: no-store",
            "Connection: close",
        )
        head = "".join(f"{line}\r\n" for line in lines).encode() + b"\r\n"
        self._transport.write(head + page.body if with_body else head)
        self._transport.close()

    def end(self) -> None:
        """Cut it off."""
        if self._transport is not None:
            self._transport.abort()

    def connection_lost(self, _: Exception | None) -> None:
        if self._timer is not None:
            self._timer.cancel()
        self._endpoint.left(self)
