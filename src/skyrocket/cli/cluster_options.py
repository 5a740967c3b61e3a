"""How commands that are clients find their cluster, and how they fail: 2 for wrong usage, 1 for everything else."""

import contextlib
import ssl
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from skyrocket.cli.lifetime import failures_shown
from skyrocket.errors import ConfigError, MessageRefused

if TYPE_CHECKING:
    from skyrocket.client import ClientSettings

_CLUSTER = "Cluster"

NamesrvOption = Annotated[
    str,
    typer.Option("-n", "--namesrv", envvar="NAMESRV_ADDR", help="Name servers, joined by ;", rich_help_panel=_CLUSTER),
]
AccessKeyOption = Annotated[
    str | None,
    typer.Option(
        "--access-key",
        envvar="ROCKETMQ_ACCESS_KEY",
        help="Account (ACL 1.0: accessKey, 2.0: user).",
        show_default=False,
        rich_help_panel=_CLUSTER,
    ),
]
SecretKeyOption = Annotated[
    str | None,
    typer.Option(
        "--secret-key",
        envvar="ROCKETMQ_SECRET_KEY",
        help="Its secret; better in the environment than here, where `ps` shows it.",
        show_default=False,
        rich_help_panel=_CLUSTER,
    ),
]
SecurityTokenOption = Annotated[
    str | None,
    typer.Option(
        "--security-token",
        envvar="ROCKETMQ_SECURITY_TOKEN",
        help="Token of a temporary account.",
        show_default=False,
        rich_help_panel=_CLUSTER,
    ),
]
NamespaceOption = Annotated[
    str, typer.Option("--namespace", help="Stands in front of topics and groups.", rich_help_panel=_CLUSTER)
]
TlsOption = Annotated[bool, typer.Option("--tls", help="Encrypt connections.", rich_help_panel=_CLUSTER)]
TlsCaOption = Annotated[
    Path | None,
    typer.Option(
        "--tls-ca",
        help="With --tls: whom to trust (PEM), whatever host names say; else the system's authorities.",
        show_default=False,
        rich_help_panel=_CLUSTER,
    ),
]

DEFAULT_NAMESRV = "127.0.0.1:9876"


def client_settings(
    namesrv: str,
    access_key: str | None,
    secret_key: str | None,
    security_token: str | None,
    namespace: str,
    tls: bool,
    tls_ca: Path | None,
) -> "ClientSettings":
    """From the options above; raises ConfigError or WrongUse."""
    from skyrocket.client import Acl, ClientSettings

    if (access_key is None) != (secret_key is None):
        given, missing = ("--access-key", "--secret-key") if secret_key is None else ("--secret-key", "--access-key")
        raise ConfigError(f"{given} needs {missing}, or the variables ROCKETMQ_ACCESS_KEY and ROCKETMQ_SECRET_KEY")
    acl = None if access_key is None or secret_key is None else Acl(access_key, secret_key, security_token)
    if tls_ca is not None and not tls:
        raise ConfigError("--tls-ca is for encrypted connections: add --tls")
    return ClientSettings(namesrv, namespace=namespace, credentials=acl, tls=_tls(tls_ca) if tls else None)


def _tls(authorities: Path | None) -> ssl.SSLContext:
    try:
        context = ssl.create_default_context(cafile=authorities)
    except OSError as error:
        raise ConfigError(f"--tls-ca {authorities} cannot be used: {error}") from None
    # RocketMQ: brokers are called by address, certificates name the cluster; who gives its authority trusts that.
    context.check_hostname = authorities is None
    return context


@contextlib.contextmanager
def client_failures_shown(command: str, verbose: bool) -> Iterator[None]:
    """As for servers; what a client calls wrong use is wrong usage here."""
    from skyrocket.client import WrongUse

    with failures_shown(command, verbose):
        try:
            yield
        except (WrongUse, MessageRefused) as error:
            raise ConfigError(str(error)) from error
