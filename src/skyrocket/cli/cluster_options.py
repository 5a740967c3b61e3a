"""How commands that are clients find their cluster, and how they fail: 2 for wrong usage, 1 for everything else."""

import contextlib
import inspect
import ssl
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from skyrocket.cli.lifetime import failures_shown
from skyrocket.cli.options import VerboseOption
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
    namesrv: NamesrvOption = DEFAULT_NAMESRV,
    access_key: AccessKeyOption = None,
    secret_key: SecretKeyOption = None,
    security_token: SecurityTokenOption = None,
    namespace: NamespaceOption = "",
    tls: TlsOption = False,
    tls_ca: TlsCaOption = None,
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


def client_command(name: str) -> Callable[[Callable[..., None]], Callable[..., None]]:
    """For a command whose first parameter is the cluster: users give the options above instead, and --verbose."""
    of_cluster = inspect.signature(client_settings).parameters
    verbosity = inspect.Parameter("verbose", inspect.Parameter.KEYWORD_ONLY, default=False, annotation=VerboseOption)

    def with_options(command: Callable[..., None]) -> Callable[..., None]:
        def called(verbose: bool, **given: Any) -> None:
            cluster = {option: given.pop(option) for option in of_cluster}
            with client_failures_shown(name, verbose):
                command(client_settings(**cluster), **given)

        own = list(inspect.signature(command).parameters.values())[1:]
        called.__name__, called.__doc__ = command.__name__, command.__doc__
        called.__annotations__ = {}  # typer reads the signature; from here it would take types for these options
        called.__signature__ = inspect.Signature(  # type: ignore[attr-defined]
            [each.replace(kind=inspect.Parameter.KEYWORD_ONLY) for each in (*own, *of_cluster.values(), verbosity)]
        )
        return called

    return with_options
