"""What every command of an operator does the same way: whom it asks, how it shows, how it asks back, how it ends."""

import contextlib
import inspect
import sys
from collections.abc import Awaitable, Callable, Iterable, Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Annotated, Any, NoReturn, TypeVar

import typer

from skyrocket.cli.output.changes import Change, changes_text
from skyrocket.cli.output.rows import Column, Output, Row, rendered, rendered_object
from skyrocket.cli.output.text import visible_lines
from skyrocket.cli.output.writing import write
from skyrocket.cli.program.cluster import client_failures_shown, cluster_parameters, take_cluster
from skyrocket.cli.program.exit_codes import EXIT_NOT_FOUND, EXIT_PARTLY, exit_code_of
from skyrocket.cli.program.options import verbose_parameter, with_groups, with_parameters
from skyrocket.cli.program.usage import VerbGroup
from skyrocket.errors import ConfigError, SkyrocketError
from skyrocket.model.words import counted

if TYPE_CHECKING:
    from skyrocket.client import Admin, ClientSettings

T = TypeVar("T")

OutputOption = Annotated[Output, typer.Option("--output", help="How to show it.")]
DryRunOption = Annotated[bool, typer.Option("--dry-run", help="Only say what would be changed.")]
YesOption = Annotated[bool, typer.Option("--yes", "-y", help="Do it without a question.")]


class Operator:
    """One call of a command: the cluster, and how its user wants to hear of it."""

    def __init__(
        self, settings: "ClientSettings", output: Output = Output.TABLE, *, dry_run: bool = False, yes: bool = False
    ) -> None:
        self.settings = settings
        self.output = output
        self.dry_run = dry_run
        self.yes = yes
        self.failures: dict[str, Exception] = {}  # of brokers, while others did it
        self._silent: set[str] = set()  # who has let it wait: a command waits for nobody twice
        self._is_told = False  # that there are no rows

    def ask(self, question: "Callable[[Admin], Awaitable[T]]", *, timeout: float = 5.0) -> T:
        """What an admin of the cluster answers; brokers that fail beside others are remembered for the end."""
        from skyrocket.client import Admin
        from skyrocket.client.admin.admin_calls import news_of
        from skyrocket.remoting.event_loop import run

        async def asked() -> T:
            async with Admin(client=self.settings, timeout=timeout, tolerant=True, silent=self._silent) as admin:
                try:
                    return await question(admin)
                finally:
                    self.failures.update(news_of(admin.failures, self.failures))

        return run(asked())

    def begin_anew(self) -> None:
        """Ask everybody again, as if nobody had failed: for a look that is repeated."""
        self.failures.clear()
        self._silent.clear()

    def show(self, columns: Sequence[Column], rows: Iterable[Row], *, empty: str = "") -> None:
        """Rows in the form asked for; a table without rows says what is missing.

        JSON lines without rows are nothing at all: who waits for some is told once, on stderr.
        """
        rows = list(rows)
        if rows:
            self._is_told = False
        elif empty and (self.output.is_for_people or (self.output is Output.JSONL and not self._is_told)):
            typer.echo(empty, err=True)
            self._is_told = True
            return
        write(rendered(columns, rows, self.output))

    def show_object(self, fields: Row) -> None:
        """One object."""
        write(rendered_object(fields, self.output))

    def say(self, text: str) -> None:
        """A sentence for people; scripts that read JSON or CSV do not get it."""
        if self.output.is_for_people:
            write(text + "\n")

    def say_safely(self, text: str) -> None:
        """A sentence with words of strangers in it."""
        self.say(visible_lines(text))

    def carry_out(
        self,
        changes: Sequence[Change],
        do: "Callable[[Admin], Awaitable[object]]",
        *,
        question: str | None = None,
        done: str = "done",
    ) -> None:
        """Show changes, ask if there is a question, and make them; --dry-run only shows.

        A question is asked when something could be lost: on a terminal, else --yes must be given. Raises NotConfirmed.
        """
        people = self.output.is_for_people
        if not changes:
            self.say("nothing is to be changed")
            if not people:
                write(changes_text(changes, self.output, done=False))
            return
        if people or self.dry_run:
            write(changes_text(changes, self.output, done=False))
        if self.dry_run:
            self.say("nothing was changed: --dry-run")
            return
        if question is not None and not self.yes:
            self._confirm(question)
        self.ask(do)
        if not people:
            write(changes_text(changes, self.output, done=True, failed=self.failures))
        self.say(done)

    def _confirm(self, question: str) -> None:
        if not sys.stdin.isatty():
            raise ConfigError(f"{question} Nobody is there to answer: --yes does it without a question")
        try:
            agreed = typer.confirm(visible_lines(question), err=True)
        except typer.Abort:
            agreed = False
        if not agreed:
            raise NotConfirmed("nothing was changed")

    def end(self) -> None:
        """Leave with 3 when some brokers failed."""
        if self.failures:
            self.name_failures()
            raise typer.Exit(EXIT_PARTLY)

    def nothing_found(self) -> NoReturn:
        """Leave with 4; with 3 when some brokers failed, for it may be there."""
        self.end()
        raise typer.Exit(EXIT_NOT_FOUND)

    def code_of(self, error: SkyrocketError) -> int | None:
        """The code to leave with, None for wrong usage; what was not found may be at a broker that failed."""
        code = exit_code_of(error)
        return EXIT_PARTLY if code == EXIT_NOT_FOUND and self.failures else code

    def name_failures(self) -> None:
        """Each broker that failed, on a line of its own."""
        name_failures(self.failures)


def name_failures(failures: Mapping[str, Exception]) -> None:
    """Who failed, and why, on stderr; a line for each."""
    for where, error in failures.items():
        typer.echo(visible_lines(f"skyrocket: {where} failed: {error}"), err=True)


@contextlib.contextmanager
def sent_counted(operator: Operator, name: str, how: str) -> Iterator[Callable[[int], None]]:
    """Gives what hears how many messages were sent so far; it is said at the end, also of a command that fails.

    Who calls that again must know: those would be sent a second time.
    """
    sent = 0

    def told(count: int) -> None:
        nonlocal sent
        sent = count

    try:
        yield told
    except BaseException:
        if sent:
            typer.echo(
                f"skyrocket {name}: {counted(sent, 'message had', 'messages had')} been sent when it ended", err=True
            )
        raise
    operator.say(f"{counted(sent, 'message')} {how}")


class NotConfirmed(SkyrocketError):
    """The question was answered with no."""


def operator_command(name: str, *, writes: bool = False) -> Callable[[Callable[..., None]], Callable[..., None]]:
    """For a command whose first parameter is an Operator; --output and the options of the cluster come with it.

    `writes`: so do --dry-run and --yes, and a read-only context refuses it.
    """

    def with_options(command: Callable[..., None]) -> Callable[..., None]:
        own = with_groups(command)
        of_command = list(inspect.signature(own).parameters.values())[1:]

        def called(verbose: bool, output: Output, dry_run: bool = False, yes: bool = False, **given: Any) -> None:
            with client_failures_shown(name, verbose):
                cluster = take_cluster(given, writes=writes and not dry_run)
                operator = Operator(cluster.settings(), output, dry_run=dry_run, yes=yes)
                try:
                    own(operator=operator, **given)
                except SkyrocketError as error:
                    leave(name, error, operator)
                operator.end()

        shared = [_option("output", Output.TABLE, OutputOption)]
        if writes:
            shared += [_option("dry_run", False, DryRunOption), _option("yes", False, YesOption)]
        return with_parameters(called, command, [*of_command, *shared, *cluster_parameters(), verbose_parameter()])

    return with_options


def leave(name: str, error: SkyrocketError, operator: Operator) -> NoReturn:
    """Say what went wrong and leave with its code; wrong usage is raised again, for whoever shows that."""
    code = operator.code_of(error)
    if code is None:
        raise error
    operator.name_failures()
    typer.echo(visible_lines(f"skyrocket {name}: {error}{advice(error, operator.settings)}"), err=True)
    raise typer.Exit(code) from error


def advice(error: SkyrocketError, settings: "ClientSettings") -> str:
    """What to try when nobody is there, or an account is missing or has too few rights."""
    from skyrocket.client import BrokerRefused
    from skyrocket.client.core.errors import is_about_rights
    from skyrocket.protocol.codes import ResponseCode
    from skyrocket.remoting.errors import ConnectFailed

    if isinstance(error, ConnectFailed):
        return "; start it, open its port, or correct the address"
    if isinstance(error, BrokerRefused) and error.code == ResponseCode.CONSUMER_NOT_ONLINE:
        return "; none of its clients is connected: `skyrocket doctor --group` says more"
    if not isinstance(error, BrokerRefused) or not is_about_rights(error):
        return ""
    if "--access-key" in str(error):
        return ""  # it has been said
    if settings.credentials is None:
        return "; no account was given: --access-key and --secret-key, or $ROCKETMQ_ACCESS_KEY and $ROCKETMQ_SECRET_KEY"
    return f"; account {settings.credentials.access_key} may not do it, or its secret is wrong: `skyrocket acl list`"


def _option(name: str, default: object, annotation: Any) -> inspect.Parameter:
    return inspect.Parameter(name, inspect.Parameter.KEYWORD_ONLY, default=default, annotation=annotation)


def verbs(help_text: str) -> typer.Typer:
    """A noun, to which its verbs are added."""
    return typer.Typer(cls=VerbGroup, no_args_is_help=True, help=help_text, rich_markup_mode="rich")


def pairs_of(texts: Sequence[str] | None, option: str) -> dict[str, str]:
    """`KEY=VALUE` of an option that may be repeated; raises ConfigError."""
    found = {}
    for text in texts or ():
        key, equals, value = text.partition("=")
        if not equals or not key.strip():
            raise ConfigError(f"{option} {text!r} is not KEY=VALUE")
        found[key.strip()] = value
    return found


ClusterNameOption = Annotated[
    str | None, typer.Option("--cluster", "-c", help="Of this cluster.  [default: all]", show_default=False)
]
BrokerOption = Annotated[
    str | None,
    typer.Option("--broker", "-b", help="Of this broker: its name or address.  [default: all]", show_default=False),
]
