"""`skyrocket context`: named clusters in a file."""

import os
from dataclasses import fields, replace
from pathlib import Path
from typing import Annotated, Any, Final

import typer

from skyrocket.cli.nouns.operator import OutputOption, verbs
from skyrocket.cli.output.changes import Change, camel_case, changes_text, differences
from skyrocket.cli.output.rows import Column, Output, rendered, rendered_object
from skyrocket.cli.output.writing import write
from skyrocket.cli.program.contexts import Context, Contexts, read_contexts, write_contexts
from skyrocket.cli.program.lifetime import failures_shown
from skyrocket.errors import ConfigError

context = verbs("Named clusters, so that nobody types addresses.")

NameArgument = Annotated[str, typer.Argument(help="The context.", show_default=False)]

_SECRETS: Final = ("secret_key", "security_token")
LISTED: Final = (
    Column("current"),
    Column("name"),
    Column("namesrv"),
    Column("accessKey", "ACCOUNT"),
    Column("readOnly", "READ-ONLY"),
    Column("namespace", wide=True),
    Column("tls", wide=True),
)


@context.command("list")
def list_contexts(output: OutputOption = Output.TABLE) -> None:
    """All contexts of the file; secrets are not shown."""
    with failures_shown("context list", verbose=False):
        contexts = read_contexts()
        rows = [
            {
                "current": name == contexts.current,
                "name": name,
                "namesrv": each.namesrv,
                "accessKey": each.access_key,
                "readOnly": each.read_only,
                "namespace": each.namespace,
                "tls": each.tls,
            }
            for name, each in sorted(contexts.by_name.items())
        ]
        if not rows and output.is_for_people:
            typer.echo("no contexts: `skyrocket context set NAME -n HOST:9876` makes one", err=True)
            return
        write(rendered(LISTED, rows, output))


@context.command()
def show(
    name: Annotated[str | None, typer.Argument(help="Without it, the current one.")] = None,
    output: OutputOption = Output.TABLE,
) -> None:
    """One context; its secret is not shown."""
    with failures_shown("context show", verbose=False):
        contexts = read_contexts()
        chosen = name or contexts.current
        if chosen is None:
            raise ConfigError("no context is current: name one, or choose one with `skyrocket context use NAME`")
        found = contexts.named(chosen)
        shown = {camel_case(each): value for each, value in _shown(found).items()}
        write(rendered_object({"name": chosen, **shown}, output))


@context.command("set")
def set_context(
    name: NameArgument,
    namesrv: Annotated[str | None, typer.Option("-n", "--namesrv", help="Name servers, joined by ;")] = None,
    access_key: Annotated[str | None, typer.Option("--access-key", help="Account.")] = None,
    secret_key: Annotated[
        str | None, typer.Option("--secret-key", help="Its secret; `-` asks for it, so that nobody sees it.")
    ] = None,
    namespace: Annotated[str | None, typer.Option("--namespace", help="Stands in front of topics and groups.")] = None,
    tls: Annotated[bool | None, typer.Option("--tls/--no-tls", help="Encrypt connections.")] = None,
    tls_ca: Annotated[Path | None, typer.Option("--tls-ca", help="Authorities to trust (PEM).")] = None,
    tls_cert: Annotated[Path | None, typer.Option("--tls-cert", help="Certificate to show to servers (PEM).")] = None,
    tls_key: Annotated[Path | None, typer.Option("--tls-key", help="Its private key (PEM).")] = None,
    read_only: Annotated[
        bool | None, typer.Option("--read-only/--no-read-only", help="Refuse commands that change something.")
    ] = None,
    output: OutputOption = Output.TABLE,
) -> None:
    """Make a context, or change what is named of it; the first one becomes current."""
    with failures_shown("context set", verbose=False):
        contexts = read_contexts()
        if secret_key == "-":
            secret_key = typer.prompt("Secret key", hide_input=True, err=True)
        given = {
            "namesrv": namesrv,
            "access_key": access_key,
            "secret_key": secret_key,
            "namespace": namespace,
            "tls": tls,
            "tls_ca": _from_anywhere(tls_ca),
            "tls_cert": _from_anywhere(tls_cert),
            "tls_key": _from_anywhere(tls_key),
            "read_only": read_only,
        }
        changed = {key: value for key, value in given.items() if value is not None}
        before = contexts.by_name.get(name, Context())
        after = replace(before, **changed)  # type: ignore[arg-type]
        if not after.namesrv:
            raise ConfigError(f"context {name} has no name server: give --namesrv host:9876")
        updated = contexts.with_one(name, after)
        if updated.current is None:
            updated = replace(updated, current=name)
        path = write_contexts(updated)
    changes = list(differences(f"context {name}", str(path), _fields(before), _fields(after)))
    _done(f"context {name} is kept in {path}", changes, output)


def _from_anywhere(path: Path | None) -> str | None:
    """A context is used in any directory, its files are named in one."""
    return None if path is None else str(path.expanduser().absolute())


@context.command()
def use(name: NameArgument, output: OutputOption = Output.TABLE) -> None:
    """Make a context the current one."""
    with failures_shown("context use", verbose=False):
        contexts = read_contexts()
        contexts.named(name)
        path = write_contexts(Contexts(contexts.by_name, name))
    changes = [] if contexts.current == name else [Change("contexts", str(path), "current", contexts.current, name)]
    _done(f"context {name} is current", changes, output)
    if os.environ.get("NAMESRV_ADDR"):
        typer.echo("NAMESRV_ADDR is set and counts more: unset it, or give --context", err=True)


@context.command()
def delete(name: NameArgument, output: OutputOption = Output.TABLE) -> None:
    """Forget a context."""
    with failures_shown("context delete", verbose=False):
        contexts = read_contexts()
        gone = contexts.named(name)
        path = write_contexts(contexts.without(name))
    _done(f"context {name} is forgotten", list(differences(f"context {name}", str(path), _fields(gone), {})), output)


def _fields(context: Context) -> dict[str, Any]:
    """What is set of it; its secrets are not shown."""
    return {name: value for name, value in _shown(context).items() if value not in (None, "", False)}


def _shown(context: Context) -> dict[str, Any]:
    shown = {each.name: getattr(context, each.name) for each in fields(Context)}
    return shown | {name: "***" for name in _SECRETS if shown[name]}


def _done(sentence: str, changes: list[Change], output: Output) -> None:
    """A sentence for people, a row for each field for scripts."""
    if output.is_for_people:
        typer.echo(sentence)
    else:
        write(changes_text(changes, output, done=True))
