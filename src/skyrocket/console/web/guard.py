"""In front of everything: only under names that are ours, and with headers that keep pages from being misused."""

import ipaddress
from collections.abc import Iterable
from typing import Final

from starlette.datastructures import Headers, MutableHeaders
from starlette.responses import PlainTextResponse
from starlette.types import ASGIApp, Message, Receive, Scope, Send

_HEADERS: Final = {
    "X-Content-Type-Options": "nosniff",
    "X-Frame-Options": "DENY",
    "Referrer-Policy": "no-referrer",
    "Cross-Origin-Opener-Policy": "same-origin",
    "Cross-Origin-Resource-Policy": "same-origin",
    "Permissions-Policy": "camera=(), microphone=(), geolocation=()",
}
# Nothing is loaded from elsewhere, and no text of a message can become code.
_POLICY: Final = (
    "default-src 'none'; script-src 'self' {inline}; style-src 'self' {inline}; img-src 'self'; "
    "connect-src 'self'; font-src 'self'; manifest-src 'self'; base-uri 'none'; form-action 'self'; "
    "frame-ancestors 'none'; require-trusted-types-for 'script'"
)
_HTTPS_ONLY: Final = "max-age=31536000"


class Guard:
    """Wraps the application; `inline_hashes` are of what stands in the document itself."""

    def __init__(
        self, app: ASGIApp, host_names: Iterable[str], inline_hashes: Iterable[str], *, is_https: bool
    ) -> None:
        self._app = app
        self._names = {"localhost", *(name.lower() for name in host_names)}
        policy = {"Content-Security-Policy": _POLICY.format(inline=" ".join(inline_hashes))}
        self._headers = {**_HEADERS, **policy, **({"Strict-Transport-Security": _HTTPS_ONLY} if is_https else {})}

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] == "websocket":
            await send({"type": "websocket.close"})  # 403: there are none here
        if scope["type"] != "http":
            return
        host = Headers(scope=scope).get("host", "")

        async def send_guarded(message: Message) -> None:
            if message["type"] == "http.response.start":
                MutableHeaders(scope=message).update(self._headers)
            await send(message)

        if not self._is_ours(host):
            # Another name for this address: a page of that name could read what only this machine may (DNS rebinding).
            text = f"this console does not go by the name {host!r}: start it with --host-name for each name it has\n"
            await PlainTextResponse(text, 421)(scope, receive, send_guarded)
            return
        await self._app(scope, receive, send_guarded)

    def _is_ours(self, host: str) -> bool:
        name = host[1:].partition("]")[0] if host.startswith("[") else host.partition(":")[0]
        try:
            ipaddress.ip_address(name)
        except ValueError:
            return name.lower() in self._names
        return True
