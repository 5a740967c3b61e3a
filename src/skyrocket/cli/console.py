"""`skyrocket console`: a cluster in the browser."""

from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Final

import typer

from skyrocket.cli.program.cluster import client_command
from skyrocket.cli.program.lifetime import stop_on_signals, until_stopped
from skyrocket.cli.program.options import panel
from skyrocket.config.home import in_home
from skyrocket.errors import ConfigError
from skyrocket.remoting.event_loop import run

if TYPE_CHECKING:
    from skyrocket.client import ClientSettings
    from skyrocket.console.alerts.mail import MailSettings
    from skyrocket.console.core.settings import ConsoleSettings

HOW_TO_GET_IT: Final = "pip install 'skyrocket[console]'"
_DEFAULT_DATA: Final = Path("~/.skyrocket/console.db")

_server, _mails = panel("Server"), panel("Alerts by e-mail")


@dataclass(frozen=True, slots=True)
class MailOptions:
    """Who is told of alerts by e-mail, and through whom."""

    mail_to: Annotated[
        list[str] | None, _mails("--mail-to", help="Address that is told of alerts; may be repeated.")
    ] = None
    mail_from: Annotated[
        str, _mails("--mail-from", help="Sender; without it the first --mail-to.", show_default=False)
    ] = ""
    smtp: Annotated[
        str, _mails("--smtp", help="Mail server: smtp://HOST, smtp+starttls://USER@HOST, smtps://USER@HOST.")
    ] = "smtp://127.0.0.1"
    smtp_password: Annotated[
        str,
        _mails("--smtp-password", envvar="SKYROCKET_CONSOLE_SMTP_PASSWORD", help="Of its user.", show_default=False),
    ] = ""
    smtp_ca: Annotated[
        Path | None,
        _mails("--smtp-ca", help="Its authority (PEM), unless the machine knows it.", show_default=False),
    ] = None

    def settings(self) -> "MailSettings | None":
        """None when nobody is told; raises ConfigError."""
        from skyrocket.console.alerts.mail import MailServer, MailSettings

        if not self.mail_to:
            return None
        server = MailServer.parse(self.smtp, self.smtp_password, self.smtp_ca)
        return MailSettings(server, tuple(self.mail_to), self.mail_from or self.mail_to[0])


@client_command("console", is_server=True)
def console(
    settings: "ClientSettings",
    host: Annotated[str, _server("--host", help="Address of the interface; 0.0.0.0 for all.")] = "127.0.0.1",
    port: Annotated[int, _server("--port", help="Port; 0 takes a free one.")] = 8082,
    data: Annotated[Path, _server("--data", help="Its file: rates, lag and audit.")] = _DEFAULT_DATA,
    token: Annotated[
        str,
        _server(
            "--token",
            envvar="SKYROCKET_CONSOLE_TOKEN",
            help="Logs in as operator; without it one is made and printed.",
            show_default=False,
        ),
    ] = "",
    private: Annotated[bool, _server("--private", help="Show nothing to those who have not logged in.")] = False,
    host_name: Annotated[
        list[str] | None, _server("--host-name", help="A name under which browsers reach it; may be repeated.")
    ] = None,
    cert: Annotated[Path | None, _server("--cert", help="Certificate (PEM): HTTPS.", show_default=False)] = None,
    cert_key: Annotated[Path | None, _server("--cert-key", help="Its key.", show_default=False)] = None,
    behind_https: Annotated[bool, _server("--behind-https", help="A proxy in front speaks HTTPS.")] = False,
    webhook: Annotated[str, _server("--webhook", help="URL that is told when alerts begin and end.")] = "",
    schemas: Annotated[
        Path | None,
        _server(
            "--schemas",
            help="File (TOML) of topics and their schemas: Avro and Protobuf are decoded.",
            show_default=False,
        ),
    ] = None,
    audit_webhook: Annotated[str, _server("--audit-webhook", help="URL that is told of each change.")] = "",
    *,
    mail: MailOptions,
) -> None:
    """Show a cluster of Skyrocket or Apache RocketMQ in the browser.

    Everybody who reaches it may look; changes need a login. SIGTERM and SIGINT stop it.

    Exit code 0: stopped, 1: it could not go on, 2: wrong usage.
    """
    require_console()
    from skyrocket.console.core.settings import ConsoleSettings
    from skyrocket.schemas.catalog import catalog_of

    if (cert is None) != (cert_key is None):
        raise ConfigError("--cert and --cert-key belong together")
    wanted = ConsoleSettings(
        settings,
        host,
        port,
        in_home(data),
        token=token,
        anonymous_may_read=not private,
        certificate=cert,
        certificate_key=cert_key,
        behind_https=behind_https,
        host_names=tuple(host_name or ()),
        webhook=webhook,
        audit_webhook=audit_webhook,
        mail=mail.settings(),
        schemas=catalog_of(schemas),
    )
    run(_serve(wanted))


def require_console() -> None:
    """Raises ConfigError when what the console needs is not installed."""
    try:
        import starlette  # noqa: F401
        import uvicorn  # noqa: F401
    except ImportError as error:
        raise ConfigError(f"the console needs {error.name}, which is not installed: {HOW_TO_GET_IT}") from None


async def _serve(settings: "ConsoleSettings") -> None:
    from skyrocket.console.server import Console

    stopping = stop_on_signals()
    async with Console(settings) as server:
        typer.echo(f"Skyrocket's console: {server.operator_address if not settings.token else server.address}")
        typer.echo("Whoever opens this address may change things; without its # part it is for looking. Ctrl-C stops.")
        await until_stopped(stopping, server.failed())
    typer.echo("The console has stopped.")
