"""A console that runs: its parts, its recorder, and uvicorn around the application; in an event loop of yours."""

import asyncio
import contextlib
import secrets
import socket
from collections.abc import Iterator
from functools import partial
from typing import Any, Final, NoReturn, Self
from urllib.parse import urlsplit

import uvicorn

from skyrocket.clock import ServiceClock, SystemClock
from skyrocket.console.alerts.mail import mails
from skyrocket.console.alerts.news import News
from skyrocket.console.alerts.watcher import Watcher
from skyrocket.console.cluster.controllers import Controllers
from skyrocket.console.cluster.copies import Copies
from skyrocket.console.cluster.decoding import Decoder
from skyrocket.console.cluster.view import ClusterView
from skyrocket.console.core.parts import Parts
from skyrocket.console.core.settings import ConsoleSettings
from skyrocket.console.history.database import Database
from skyrocket.console.history.recorder import Recorder
from skyrocket.console.history.series import Series
from skyrocket.console.login.accounts import Accounts
from skyrocket.console.login.attempts import Attempts
from skyrocket.console.login.audit import Audit, AuditEntry
from skyrocket.console.login.sessions import Sessions
from skyrocket.console.login.tokens import Tokens
from skyrocket.console.telling.outbox import Outbox
from skyrocket.console.telling.webhook import post
from skyrocket.console.web.app import application
from skyrocket.errors import SkyrocketError
from skyrocket.remoting.listening import CannotListen, why_not_listening
from skyrocket.remoting.services import Services

_GRACE_SECONDS: Final = 2
_MOST_CONNECTIONS: Final = 1000
_TOKEN_BYTES: Final = 18


class _Uvicorn(uvicorn.Server):
    """Signals are the program's matter."""

    @contextlib.contextmanager
    def capture_signals(self) -> Iterator[None]:
        yield


class Console:
    """Started and stopped as one."""

    def __init__(self, settings: ConsoleSettings, clock: ServiceClock | None = None) -> None:
        clock = clock or SystemClock()
        self.settings = settings
        accounts, database = Accounts(settings.client), Database(settings.database)
        view, series = ClusterView(accounts.reading.admin, clock), Series(database, settings.max_database_bytes)
        self.parts = Parts(
            settings,
            settings.token or secrets.token_urlsafe(_TOKEN_BYTES),
            clock,
            view,
            database,
            series,
            Audit(database, clock, _told_of_changes(settings, clock)),
            accounts,
            Sessions(clock),
            Attempts(clock),
            Watcher(view, series, database, clock, _outboxes(settings, clock)),
            Copies(clock),
            Controllers(accounts.reading.admin, view, clock),
            Decoder(settings.schemas, clock),
            Tokens(database, clock),
        )
        self.recorder = Recorder(view, series, clock)
        self.app = application(self.parts)
        self._services = Services(clock)
        self._server: _Uvicorn | None = None
        self._serving: asyncio.Task[None] | None = None
        self._is_open = False
        self.address = ""  # as a browser takes it, from the start on

    async def __aenter__(self) -> Self:
        await self.start()
        return self

    async def __aexit__(self, *_: object) -> None:
        await self.stop()

    async def open(self) -> None:
        """All but the port: for who serves `app` otherwise."""
        await self.parts.database.open()
        try:
            await self.parts.accounts.start()
            await self.parts.watcher.load()
            await self.parts.tokens.load()
        except BaseException:
            await self.parts.accounts.stop()
            await self.parts.database.close()
            raise
        self._is_open = True
        self._services.start(self.recorder.run, "console-recorder")
        self._services.start(self.parts.watcher.run, "console-alerts")
        outboxes: list[Outbox[Any]] = [*self.parts.watcher.outboxes, *self.parts.audit.outboxes]
        for outbox in outboxes:
            self._services.start(outbox.run, f"console-tells-{outbox.receiver}")

    async def start(self, port_option: str = "--port") -> str:
        """Its address; raises CannotListen, and ConfigError when its file cannot be used.

        `port_option` is what the user gives for another port.
        """
        listening = self._listen(port_option)
        try:
            await self.open()
        except BaseException:
            listening.close()
            raise
        settings = self.settings
        config = uvicorn.Config(
            self.app,
            lifespan="off",
            log_config=None,
            access_log=False,
            server_header=False,
            proxy_headers=settings.behind_https,  # else anybody on this machine could say to come from elsewhere
            limit_concurrency=_MOST_CONNECTIONS,
            timeout_graceful_shutdown=_GRACE_SECONDS,
            ssl_certfile=settings.certificate,
            ssl_keyfile=settings.certificate_key,
        )
        self._server = _Uvicorn(config)
        self._serving = asyncio.create_task(self._server.serve([listening]), name="console")
        host, port = listening.getsockname()[:2]
        host = {"0.0.0.0": "127.0.0.1", "::": "[::1]"}.get(host, f"[{host}]" if ":" in host else host)
        scheme = "https" if settings.certificate is not None else "http"
        self.address = f"{scheme}://{host}:{port}/"
        return self.address

    def _listen(self, port_option: str) -> socket.socket:
        settings = self.settings
        family = socket.AF_INET6 if ":" in settings.host else socket.AF_INET
        try:
            listening = socket.create_server((settings.host, settings.port), family=family)
        except OSError as error:
            problem = why_not_listening(error, settings.host, settings.port, port_option=port_option)
            raise CannotListen(f"the console has no place: {problem} (0 takes a free one)") from error
        # Head and body are written apart: without this every answer waits for the browser's acknowledgement.
        listening.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        return listening

    @property
    def operator_address(self) -> str:
        """The address that logs in whoever opens it; browsers do not send what follows the #."""
        return f"{self.address}#token={self.parts.token}"

    async def failed(self) -> NoReturn:
        """Wait for the end of what should not end; raises what it was."""
        assert self._serving is not None
        services = asyncio.ensure_future(self._services.failed())
        try:
            await asyncio.wait((self._serving, services), return_when=asyncio.FIRST_COMPLETED)
            if services.done():
                services.result()
            self._serving.result()
            raise SkyrocketError("the console's web server has ended")
        finally:
            services.cancel()

    async def stop(self) -> None:
        """Streams end, then connections, then everything else; may be called again."""
        self.parts.streams.closing.set()
        if self._server is not None and self._serving is not None:
            self._server.should_exit = True
            await asyncio.gather(self._serving, return_exceptions=True)
            self._server = self._serving = None
        await self.close()

    async def close(self) -> None:
        """What `open` has opened."""
        if not self._is_open:
            return
        self._is_open = False
        await self._services.end()
        await self.parts.copies.end()
        await self.parts.controllers.end()
        await self.parts.view.end()
        self.parts.decoder.close()
        await self.parts.accounts.stop()
        await self.parts.database.close()


def _outboxes(settings: ConsoleSettings, clock: ServiceClock) -> list[Outbox[News]]:
    """Who is told of alerts."""
    found: list[Outbox[News]] = []
    if settings.webhook:
        found.append(Outbox(_webhook(settings.webhook), partial(post, settings.webhook, "alerts"), clock))
    if settings.mail is not None:
        receivers = ", ".join(settings.mail.receivers)
        given = settings.client.name_servers
        names = given if isinstance(given, str) else ";".join(given)
        found.append(Outbox(receivers, mails(settings.mail, names), clock))
    return found


def _told_of_changes(settings: ConsoleSettings, clock: ServiceClock) -> list[Outbox[AuditEntry]]:
    """Who is told of what is written into the audit."""
    url = settings.audit_webhook
    return [Outbox(_webhook(url), partial(post, url, "audit"), clock, "change")] if url else []


def _webhook(url: str) -> str:
    """What logs call it: the rest of its address is often a secret."""
    return f"the webhook at {urlsplit(url).hostname}"
