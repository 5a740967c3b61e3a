"""How commands that are clients find their cluster, and how they fail."""

import contextlib
import inspect
import ssl
from collections.abc import Awaitable, Callable, Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, fields, replace
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, TypeVar

import typer

from skyrocket.cli.output.text import visible_lines
from skyrocket.cli.program.contexts import FILES_OF_TLS, read_contexts
from skyrocket.cli.program.exit_codes import EXIT_NOT_FOUND, EXIT_PARTLY, exit_code_of
from skyrocket.cli.program.lifetime import failures_shown
from skyrocket.cli.program.options import (
    log_parameter,
    options_of,
    panel,
    verbose_parameter,
    with_groups,
    with_parameters,
)
from skyrocket.errors import ConfigError, MessageRefused, SkyrocketError
from skyrocket.remoting.event_loop import run

if TYPE_CHECKING:
    from skyrocket.client import Admin, ClientSettings

T = TypeVar("T")

_cluster = panel("Cluster")

NamesrvOption = Annotated[str, _cluster("-n", "--namesrv", envvar="NAMESRV_ADDR", help="Name servers, joined by ;")]
AccessKeyOption = Annotated[
    str | None,
    _cluster(
        "--access-key",
        envvar="ROCKETMQ_ACCESS_KEY",
        help="Account (ACL 1.0: accessKey, 2.0: user).",
        show_default=False,
    ),
]
SecretKeyOption = Annotated[
    str | None,
    _cluster(
        "--secret-key",
        envvar="ROCKETMQ_SECRET_KEY",
        help="Its secret; better in the environment than here, where `ps` shows it.",
        show_default=False,
    ),
]
SecurityTokenOption = Annotated[
    str | None,
    _cluster(
        "--security-token", envvar="ROCKETMQ_SECURITY_TOKEN", help="Token of a temporary account.", show_default=False
    ),
]
NamespaceOption = Annotated[str, _cluster("--namespace", help="Stands in front of topics and groups.")]
TlsOption = Annotated[bool, _cluster("--tls", help="Encrypt connections.")]
TlsCaOption = Annotated[
    Path | None,
    _cluster(
        "--tls-ca",
        help="With --tls: the authorities to trust (PEM) instead of the system's.",
        show_default=False,
    ),
]
TlsCertOption = Annotated[
    Path | None,
    _cluster(
        "--tls-cert",
        help="With --tls: the certificate that is shown to servers which ask for one (PEM).",
        show_default=False,
    ),
]
TlsKeyOption = Annotated[
    Path | None,
    _cluster("--tls-key", help="Its private key (PEM), unless the same file has both.", show_default=False),
]
TlsInsecureOption = Annotated[
    bool,
    _cluster("--tls-insecure-trust-any-server", help="With --tls: check neither certificates nor host names."),
]

ContextOption = Annotated[
    str | None,
    _cluster(
        "--context",
        envvar="SKYROCKET_CONTEXT",
        help="A cluster by its name (`skyrocket context`).  [default: the current one, unless --namesrv is given]",
        show_default=False,
    ),
]

DEFAULT_NAMESRV = "127.0.0.1:9876"


@dataclass(frozen=True)
class ClusterOptions:
    """Which cluster, and as whom."""

    namesrv: Annotated[
        str | None,
        _cluster(
            "-n",
            "--namesrv",
            envvar="NAMESRV_ADDR",
            help=f"Name servers, joined by ;  [default: {DEFAULT_NAMESRV}]",
            show_default=False,
        ),
    ] = None
    access_key: AccessKeyOption = None
    secret_key: SecretKeyOption = None
    security_token: SecurityTokenOption = None
    namespace: NamespaceOption = ""
    tls: TlsOption = False
    tls_ca: TlsCaOption = None
    tls_cert: TlsCertOption = None
    tls_key: TlsKeyOption = None
    tls_insecure: TlsInsecureOption = False
    context: ContextOption = None
    read_only: bool = False  # said by a context, not by an option

    def in_context(self, typed: Collection[str]) -> "ClusterOptions":
        """With what the context says of all that was not typed; raises ConfigError.

        --context counts, else name servers that were typed or are in the environment, else the current context.
        """
        contexts = read_contexts()
        name = self.context or (contexts.current if self.namesrv is None else None)
        if name is None:
            return self
        context = contexts.named(name)
        said = {each.name: getattr(context, each.name) for each in fields(context) if each.name not in typed}
        for name in FILES_OF_TLS & said.keys():
            said[name] = None if said[name] is None else Path(said[name])
        if not context.namesrv and "namesrv" in said:
            said["namesrv"] = self.namesrv
        return replace(self, **said)

    def check_may(self, *, writes: bool) -> None:
        """Raises ConfigError when a command that changes something was called in a read-only context."""
        if writes and self.read_only:
            raise ConfigError(
                "the context is marked read-only, and this command changes something: choose another with --context, "
                "or take the mark away with `skyrocket context set NAME --no-read-only`"
            )

    def settings(self) -> "ClientSettings":
        """For clients; raises ConfigError or WrongUse."""
        from skyrocket.client import Acl, ClientSettings

        if (self.access_key is None) != (self.secret_key is None):
            given, missing = "--access-key", "--secret-key"
            if self.access_key is None:
                given, missing = missing, given
            raise ConfigError(f"{given} needs {missing}, or the variables ROCKETMQ_ACCESS_KEY and ROCKETMQ_SECRET_KEY")
        acl = None
        if self.access_key is not None and self.secret_key is not None:
            acl = Acl(self.access_key, self.secret_key, self.security_token)
        tls = self._tls()
        return ClientSettings(self.namesrv or DEFAULT_NAMESRV, namespace=self.namespace, credentials=acl, tls=tls)

    def _tls(self) -> ssl.SSLContext | None:
        """Raises ConfigError."""
        from skyrocket.client.core.tls import tls_context

        given = {
            "--tls-ca": self.tls_ca,
            "--tls-cert": self.tls_cert,
            "--tls-key": self.tls_key,
            "--tls-insecure-trust-any-server": self.tls_insecure or None,
        }
        option = next((name for name, value in given.items() if value is not None), None)
        if not self.tls:
            if option is not None:
                raise ConfigError(f"{option} is for encrypted connections: add --tls")
            return None
        if self.tls_key is not None and self.tls_cert is None:
            raise ConfigError("--tls-key is the key of a certificate: add --tls-cert")
        try:
            return tls_context(self.tls_ca, self.tls_cert, self.tls_key, insecure_trust_any_server=self.tls_insecure)
        except OSError as error:
            raise ConfigError(_unusable(error, self.tls_ca, self.tls_cert, self.tls_key)) from None


def _unusable(error: OSError, authorities: Path | None, certificate: Path | None, key: Path | None) -> str:
    """Which of the files cannot be used, and why: OpenSSL does not say which one it was."""
    for option, path in (("--tls-ca", authorities), ("--tls-cert", certificate), ("--tls-key", key)):
        if path is not None and not path.is_file():
            return f"{option} {path}: there is no such file"
    if authorities is not None and not _has_authorities(authorities):
        return f"--tls-ca {authorities} cannot be used: it has no certificate (PEM, -----BEGIN CERTIFICATE-----)"
    reason = (getattr(error, "reason", None) or error.strerror or str(error)).lower().replace("_", " ")
    shown = f"--tls-cert {certificate}" + ("" if key is None else f" with --tls-key {key}")
    return (
        f"{shown} cannot be used: {reason}. It needs a certificate and the key that belongs to it, without a password"
    )


def _has_authorities(path: Path) -> bool:
    try:
        ssl.create_default_context(cafile=path)
    except OSError:
        return False
    return True


@contextlib.contextmanager
def client_failures_shown(command: str, verbose: bool, log: Sequence[str] | None = None) -> Iterator[None]:
    """As for servers; what a client calls wrong use is wrong usage here."""
    from skyrocket.client import WrongUse

    with failures_shown(command, verbose, log):
        try:
            yield
        except (WrongUse, MessageRefused) as error:
            raise ConfigError(str(error)) from error


@contextlib.contextmanager
def _missing_shown(command: str) -> Iterator[None]:
    """What was named is not there, or not all brokers did it: codes of their own, for scripts."""
    try:
        yield
    except SkyrocketError as error:
        code = exit_code_of(error)
        if code not in (EXIT_NOT_FOUND, EXIT_PARTLY):
            raise
        typer.echo(visible_lines(f"skyrocket {command}: {error}"), err=True)
        raise typer.Exit(code) from error


def cluster_parameters() -> list[inspect.Parameter]:
    """The options of the cluster, with Typer's context before them: it knows what was typed."""
    context = inspect.Parameter("ctx", inspect.Parameter.KEYWORD_ONLY, annotation=typer.Context)
    return [context, *(each for each in options_of(ClusterOptions) if each.name != "read_only")]


def take_cluster(given: dict[str, Any], *, writes: bool) -> ClusterOptions:
    """The options of the cluster out of all that was given, in their context; raises ConfigError."""
    ctx: typer.Context = given.pop("ctx")
    names = [each.name for each in fields(ClusterOptions) if each.name != "read_only"]
    typed = {name for name in names if getattr(ctx.get_parameter_source(name), "name", "") == "COMMANDLINE"}
    cluster = ClusterOptions(**{name: given.pop(name) for name in names}).in_context(typed)
    cluster.check_may(writes=writes)
    return cluster


def client_command(
    name: str, *, writes: bool | Callable[[Mapping[str, Any]], bool] = False, is_server: bool = False
) -> Callable[[Callable[..., None]], Callable[..., None]]:
    """For a command whose first parameter is the client's settings: users give the options of the cluster instead.

    Other parameters may be groups of options; --verbose comes with it, and --log for a server.
    `writes`: refused in a read-only context; options may decide it.
    """
    of_cluster = cluster_parameters()
    of_logs = [log_parameter()] if is_server else []

    def with_options(command: Callable[..., None]) -> Callable[..., None]:
        own = with_groups(command)
        of_command = list(inspect.signature(own).parameters.values())[1:]

        def called(verbose: bool, log: Sequence[str] | None = None, **given: Any) -> None:
            with client_failures_shown(name, verbose, log):
                changes = writes(given) if callable(writes) else writes
                settings = take_cluster(given, writes=changes).settings()
                with _missing_shown(name):
                    own(settings=settings, **given)

        return with_parameters(called, command, [*of_command, *of_cluster, *of_logs, verbose_parameter()])

    return with_options


def ask(settings: "ClientSettings", question: "Callable[[Admin], Awaitable[T]]") -> T:
    """What an Admin of the cluster answers."""
    from skyrocket.client import Admin

    async def asked() -> T:
        async with Admin(client=settings) as admin:
            return await question(admin)

    return run(asked())
