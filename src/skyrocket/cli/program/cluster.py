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
from skyrocket.cli.program.contexts import read_contexts
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
        if "tls_ca" in said:
            said["tls_ca"] = None if context.tls_ca is None else Path(context.tls_ca)
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
        if (self.tls_ca is not None or self.tls_insecure) and not self.tls:
            option = "--tls-ca" if self.tls_ca is not None else "--tls-insecure-trust-any-server"
            raise ConfigError(f"{option} is for encrypted connections: add --tls")
        tls = _tls(self.tls_ca, insecure=self.tls_insecure) if self.tls else None
        return ClientSettings(self.namesrv or DEFAULT_NAMESRV, namespace=self.namespace, credentials=acl, tls=tls)


def _tls(authorities: Path | None, *, insecure: bool) -> ssl.SSLContext:
    from skyrocket.client.core.tls import tls_context

    try:
        return tls_context(authorities, insecure_trust_any_server=insecure)
    except OSError as error:
        raise ConfigError(f"--tls-ca {authorities} cannot be used: {error}") from None


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
