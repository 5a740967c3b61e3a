"""The console beside a standalone's servers: a convenience, without which they run as well."""

import asyncio
import contextlib
import json
import logging
import socket
from collections.abc import AsyncIterator
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final

import typer

from skyrocket.cli.console import require_console
from skyrocket.cli.program.settings import Sections
from skyrocket.config.home import in_home
from skyrocket.config.sections import BrokerConfig, TlsConfig
from skyrocket.errors import ConfigError
from skyrocket.remoting.listening import CannotListen, why_not_listening
from skyrocket.remoting.tls import client_tls

if TYPE_CHECKING:
    from skyrocket.console.server import Console
    from skyrocket.schemas.catalog import Catalog

_logger = logging.getLogger(__name__)

_PORT_OPTION: Final = "--console-port"


@dataclass(frozen=True, slots=True)
class Pages:
    """Where the console is wanted, and what it knows of bodies."""

    host: str
    port: int | None  # None: the usual one, if it is free
    schemas: "Catalog"


@contextlib.asynccontextmanager
async def console_beside(wanted: Pages | None, name_servers: str, sections: Sections) -> AsyncIterator[None]:
    """As wanted, unless None is; what ends it later is said, and ends nothing else.

    Who did not choose the port runs without pages when it is taken. Raises CannotListen to the others.
    """
    if wanted is None:
        yield
        return
    try:
        require_console()
        from skyrocket.console.server import Console

        console = Console(_settings(wanted, name_servers, sections))
        await console.start(_PORT_OPTION)
    except (ConfigError, CannotListen) as error:
        if wanted.port is not None:
            raise
        typer.echo(f"skyrocket standalone: warning: no console: {error}. Silence this with --no-console", err=True)
        yield
        return
    typer.echo(f"Console: {console.operator_address}")
    watching = asyncio.create_task(_until_it_fails(console), name="console-beside")
    try:
        yield
    finally:
        watching.cancel()
        await asyncio.gather(watching, return_exceptions=True)
        await console.stop()


async def _until_it_fails(console: "Console") -> None:
    try:
        await console.failed()
    except Exception as error:  # an edge: whatever the pages died of, messages go on
        _logger.error("the console has ended", exc_info=error)
        typer.echo("skyrocket standalone: warning: the console has ended, and all else goes on: see the log", err=True)
        await console.stop()


def refuse_taken_port(pages: Pages) -> None:
    """Raises CannotListen when somebody chose this port and it is not to be had: before anything has begun."""
    host, port = pages.host, pages.port
    if port is None:
        return
    try:
        socket.create_server((host, port), family=socket.AF_INET6 if ":" in host else socket.AF_INET).close()
    except OSError as error:
        problem = why_not_listening(error, host, port, port_option=_PORT_OPTION, host_option="--console-host")
        raise CannotListen(f"the console has no place: {problem}") from error


def _settings(wanted: Pages, name_servers: str, sections: Sections) -> Any:
    from skyrocket.client.core.settings import Acl, ClientSettings
    from skyrocket.console.core.settings import DEFAULT_PORT, ConsoleSettings

    config = sections[BrokerConfig]
    account = json.loads(config.inner_client_credentials) if config.inner_client_credentials else None
    credentials = None if account is None else Acl(account["accessKey"], account["secretKey"])
    client = ClientSettings(
        name_servers, instance_name="console", credentials=credentials, tls=client_tls(sections[TlsConfig])
    )
    port = DEFAULT_PORT if wanted.port is None else wanted.port
    data = in_home(config.store_root) / "config" / "console.db"
    return ConsoleSettings(client, wanted.host, port, data, schemas=wanted.schemas)
