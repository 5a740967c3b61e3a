"""The console beside a standalone's servers: a convenience, without which they run as well."""

import contextlib
import json
import socket
from collections.abc import AsyncIterator, Coroutine
from pathlib import Path
from typing import Any, Final, NoReturn

import typer

from skyrocket.cli.console import require_console
from skyrocket.cli.program.settings import Sections
from skyrocket.config.sections import BrokerConfig, TlsConfig
from skyrocket.errors import ConfigError
from skyrocket.remoting.listening import CannotListen, why_not_listening
from skyrocket.remoting.tls import client_tls

_PORT_OPTION: Final = "--console-port"

Failures = tuple[Coroutine[Any, Any, NoReturn], ...]


@contextlib.asynccontextmanager
async def console_beside(
    wanted: tuple[str, int | None] | None, name_servers: str, sections: Sections
) -> AsyncIterator[Failures]:
    """At a host and port, unless None is wanted; what would end it is what is entered.

    Who did not choose the port runs without pages when it is taken. Raises CannotListen to the others.
    """
    if wanted is None:
        yield ()
        return
    try:
        require_console()
        from skyrocket.console.server import Console

        console = Console(_settings(wanted, name_servers, sections))
        await console.start(_PORT_OPTION)
    except (ConfigError, CannotListen) as error:
        if wanted[1] is not None:
            raise
        typer.echo(f"skyrocket standalone: warning: no console: {error}. Silence this with --no-console", err=True)
        yield ()
        return
    typer.echo(f"Console: {console.operator_address}")
    try:
        yield (console.failed(),)
    finally:
        await console.stop()


def refuse_taken_port(host: str, port: int | None) -> None:
    """Raises CannotListen when somebody chose this port and it is not to be had: before anything has begun."""
    if port is None:
        return
    try:
        socket.create_server((host, port), family=socket.AF_INET6 if ":" in host else socket.AF_INET).close()
    except OSError as error:
        problem = why_not_listening(error, host, port, port_option=_PORT_OPTION, host_option="--console-host")
        raise CannotListen(f"the console has no place: {problem}") from error


def _settings(wanted: tuple[str, int | None], name_servers: str, sections: Sections) -> Any:
    from skyrocket.client.core.settings import Acl, ClientSettings
    from skyrocket.console.core.settings import DEFAULT_PORT, ConsoleSettings

    config = sections[BrokerConfig]
    account = json.loads(config.inner_client_credentials) if config.inner_client_credentials else None
    credentials = None if account is None else Acl(account["accessKey"], account["secretKey"])
    client = ClientSettings(
        name_servers, instance_name="console", credentials=credentials, tls=client_tls(sections[TlsConfig])
    )
    host, port = wanted
    data = Path(config.store_root).expanduser() / "config" / "console.db"
    return ConsoleSettings(client, host, DEFAULT_PORT if port is None else port, data)
