"""`skyrocket mqadmin`: finds the command, reads its options, runs it, and leaves with a code that tells."""

import os
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, NoReturn

import typer

from skyrocket.cli.mqadmin.commands import COMMANDS
from skyrocket.cli.mqadmin.options import Given, command_named, parse, usage
from skyrocket.cli.mqadmin.printing import Printer
from skyrocket.cli.mqadmin.read_only import changes_something
from skyrocket.cli.nouns.operator import Operator, advice
from skyrocket.cli.output.rows import Output
from skyrocket.cli.output.text import visible_lines
from skyrocket.cli.output.writing import OutputNotTaken, write
from skyrocket.cli.program.cluster import ClusterOptions
from skyrocket.cli.program.exit_codes import EXIT_FAILED
from skyrocket.cli.program.lifetime import EXIT_USAGE
from skyrocket.errors import ConfigError, SkyrocketError

if TYPE_CHECKING:
    from skyrocket.client import Admin, ClientSettings

_TIMEOUT_SECONDS = 15.0

mqadmin = typer.Typer(add_completion=False, rich_markup_mode="rich")


def _names(ctx: typer.Context, incomplete: str) -> list[str]:
    """For shells: the commands; what follows a name is its own."""
    given = ctx.params.get("words") or ()
    return [] if given else [name for name in sorted(COMMANDS) if name.lower().startswith(incomplete.lower())]


@mqadmin.callback(
    invoke_without_command=True,
    context_settings={"ignore_unknown_options": True, "allow_extra_args": True, "help_option_names": []},
)
def run_mqadmin(
    ctx: typer.Context,
    words: Annotated[list[str] | None, typer.Argument(hidden=True, autocompletion=_names)] = None,
) -> None:
    """RocketMQ's mqadmin: `skyrocket mqadmin NAME options`; without a name, the list of names.

    Exit code 0: done, 1: it failed, 2: wrong usage, 3: some brokers failed, 4: what was named is not there.
    """
    name, *rest = [*(words or []), *ctx.args] or ["help"]
    if name in ("help", "-h", "--help"):
        _help(rest)
        return
    try:
        command = command_named(name)
        given = parse(command, rest)
    except ConfigError as error:
        _leave(name, error, EXIT_USAGE)
    if "help" in given:
        _write(command, usage(command))
        return
    if given.ignored:  # RocketMQ says nothing, and a name with a blank in it is soon typed
        words_shown = " ".join(map(repr, given.ignored))
        typer.echo(visible_lines(f"skyrocket mqadmin {command}: no option takes {words_shown}: ignored"), err=True)
    _run(command, given)


def _help(words: list[str]) -> None:
    if words:
        try:
            text = usage(command_named(words[0]))
        except ConfigError as error:
            _leave("help", error, EXIT_USAGE)
        _write("help", text)
        return
    lines = [f"   {name:34} {COMMANDS[name].line}\n" for name in sorted(COMMANDS, key=str.lower)]
    heading = "The commands of mqadmin; `skyrocket mqadmin help NAME` has the options of each:\n"
    _write("help", heading + "".join(lines))


def _write(command: str, text: str) -> None:
    try:
        write(text)
    except OutputNotTaken as error:
        _leave(command, error)


def _run(command: str, given: Given) -> None:
    from skyrocket.cli.mqadmin.handlers import handler_of

    try:
        printer = Printer(_output(given))
        operator = Operator(_settings(given, writes=changes_something(command, given)))
    except SkyrocketError as error:
        _leave(command, error, EXIT_USAGE)

    async def answer(admin: "Admin") -> None:
        await handler_of(command)(admin, given, printer)

    try:
        try:
            operator.ask(answer, timeout=_TIMEOUT_SECONDS)
        finally:
            printer.end()
    except SkyrocketError as error:
        operator.name_failures()
        code = operator.code_of(error)
        _leave(command, error, EXIT_USAGE if code is None else code, advice(error, operator.settings))
    operator.end()


def _leave(command: str, error: Exception, code: int = EXIT_FAILED, hint: str = "") -> NoReturn:
    typer.echo(visible_lines(f"skyrocket mqadmin {command}: {_java_words(error)}{error}{hint}"), err=True)
    raise typer.Exit(code)


def _java_words(error: Exception) -> str:
    """`CODE: 17  DESC: …`, for scripts that look for them in what mqadmin says."""
    from skyrocket.client import BrokerRefused, NoRoute

    refusal = error if isinstance(error, BrokerRefused) else error.__cause__
    if isinstance(refusal, BrokerRefused):
        return f"CODE: {refusal.code}  DESC: {refusal.remark}\n"
    route = error if isinstance(error, NoRoute) else error.__cause__  # a group that nobody knows has no retry topic
    if isinstance(route, NoRoute):
        return f"CODE: 17  DESC: No topic route info in name server for the topic: {route.topic}\n"
    return ""


def _output(given: Given) -> Output:
    try:
        return Output(given.text("output", Output.TABLE.value))
    except ValueError:
        raise ConfigError(f"--output {given['output']} is none of {', '.join(each.value for each in Output)}") from None


def _settings(given: Given, *, writes: bool) -> "ClientSettings":
    """-n, else $NAMESRV_ADDR, else the context; the account of the environment, else of RocketMQ's tools.yml."""
    names = given.get("namesrvAddr") or given.get("nameserverAddr")
    cluster = ClusterOptions(
        namesrv=names or os.environ.get("NAMESRV_ADDR") or None,
        access_key=os.environ.get("ROCKETMQ_ACCESS_KEY"),
        secret_key=os.environ.get("ROCKETMQ_SECRET_KEY"),
        context=given.get("context"),
    ).in_context({"namesrv"} if names else set())
    cluster.check_may(writes=writes)
    if cluster.access_key is None:
        cluster = replace(cluster, **_tools_account())
    return cluster.settings()


def _tools_account() -> dict[str, Any]:
    home = os.environ.get("ROCKETMQ_HOME")
    path = Path(home or "") / "conf" / "tools.yml"
    if not home or not path.exists():
        return {}
    import yaml

    try:
        content = yaml.safe_load(path.read_text(encoding="utf-8")) or {}
    except (OSError, UnicodeDecodeError, yaml.YAMLError) as error:
        raise ConfigError(f"{path} cannot be read: {error}") from None
    if not isinstance(content, dict):
        raise ConfigError(f"{path} is no list of settings: it needs `accessKey: …` and `secretKey: …`")
    key, secret = content.get("accessKey"), content.get("secretKey")
    return {"access_key": str(key), "secret_key": str(secret)} if key and secret else {}
