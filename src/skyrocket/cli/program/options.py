"""Options that several commands share, each said once; families of them are groups.

A group is a dataclass whose fields are options. A command takes it as one parameter, `with_groups` puts its options in
that parameter's place:

    @app.command()
    @with_groups
    def show(topic: str, *, window: WindowOptions) -> None: ...          # show TOPIC --since … --until …
"""

import inspect
from collections.abc import Callable
from dataclasses import MISSING, fields, is_dataclass
from functools import partial
from pathlib import Path
from typing import Annotated, Any, TypeVar, get_type_hints

import typer

T = TypeVar("T")

ConfOption = Annotated[Path | None, typer.Option("-c", "--conf", help="RocketMQ's .conf file.", show_default=False)]
SetOption = Annotated[list[str] | None, typer.Option("--set", help="One setting, as flushDiskType=SYNC_FLUSH.")]
PrintOption = Annotated[bool, typer.Option("-p", "--print", help="Print the settings and exit.")]
LogOption = Annotated[
    list[str] | None,
    typer.Option(
        "--log", help="How to log: format=json, level=INFO, file=PATH, fileBytes=N, fileCount=N.", show_default=False
    ),
]
VerboseOption = Annotated[bool, typer.Option("-v", "--verbose", help="Log what happens, not only what is wrong.")]

SchemasOption = Annotated[
    Path | None,
    typer.Option(
        "--schemas", help="File (TOML) of topics and their schemas: Avro and Protobuf are decoded.", show_default=False
    ),
]
JsonLinesOption = Annotated[bool, typer.Option("--json", help="JSON lines.")]


def panel(name: str) -> Callable[..., Any]:
    """typer.Option for the options that --help shows together under this name."""
    return partial(typer.Option, rich_help_panel=name)


def limit_option(option: Callable[..., Any] = typer.Option) -> Any:
    """`--limit`, for an Annotated[int, …]; each command has its own panel."""
    return option("--limit", min=1, help="At most this many.")


def topic_option(option: Callable[..., Any] = typer.Option) -> Any:
    """`--topic` as a choice, for an Annotated[str | None, …]."""
    return option("--topic", help="Of this topic.")


BrokerPortOption = Annotated[
    int | None, typer.Option("--listen-port", help="Port; 0 takes a free one.  [default: 10911]", show_default=False)
]
BrokerIpOption = Annotated[
    str | None,
    typer.Option("--broker-ip", help="Address or host name that clients are told (brokerIP1).", show_default=False),
]
StoreOption = Annotated[
    Path | None, typer.Option("--store", help="Store directory.  [default: ~/store]", show_default=False)
]
BrokersOption = Annotated[
    int, typer.Option("--brokers", min=1, max=26, help="Broker processes, each with a port and a store of its own.")
]


def broker_options(
    listen_port: int | None, broker_ip: str | None, store: Path | None, namesrv_addr: str | None = None
) -> dict[str, str]:
    """What was given on the command line, by RocketMQ's keys."""
    given = {
        "namesrvAddr": namesrv_addr,
        "listenPort": listen_port,
        "brokerIP1": broker_ip,
        "storePathRootDir": store,
    }
    return {key: str(value) for key, value in given.items() if value is not None}


def with_groups(command: Callable[..., T]) -> Callable[..., T]:
    """The command with the options of its groups in their place; it is called by name."""
    parameters = list(inspect.signature(command).parameters.values())
    groups: dict[str, Any] = {each.name: each.annotation for each in parameters if is_dataclass(each.annotation)}

    def called(**given: Any) -> T:
        for name, group in groups.items():
            given[name] = group(**{field.name: given.pop(field.name) for field in fields(group)})
        return command(**given)

    expanded: list[inspect.Parameter] = []
    for each in parameters:
        expanded += options_of(groups[each.name]) if each.name in groups else [each]
    return with_parameters(called, command, expanded)


def with_parameters(
    called: Callable[..., T], command: Callable[..., Any], parameters: list[inspect.Parameter]
) -> Callable[..., T]:
    """`called` under the command's name and help, with these parameters."""
    called.__name__, called.__doc__ = command.__name__, command.__doc__
    called.__annotations__ = {}  # typer reads the signature; from here it would take types for these options
    keywords = [each.replace(kind=inspect.Parameter.KEYWORD_ONLY) for each in parameters]
    called.__signature__ = inspect.Signature(keywords)  # type: ignore[attr-defined]
    return called


def verbose_parameter() -> inspect.Parameter:
    """`--verbose`, the last option of every command."""
    return inspect.Parameter("verbose", inspect.Parameter.KEYWORD_ONLY, default=False, annotation=VerboseOption)


def log_parameter() -> inspect.Parameter:
    """`--log`, of a server that is a client, too."""
    return inspect.Parameter("log", inspect.Parameter.KEYWORD_ONLY, default=None, annotation=LogOption)


def options_of(group: Any) -> list[inspect.Parameter]:
    """The fields of a group as parameters."""
    annotations = get_type_hints(group, include_extras=True)
    return [
        inspect.Parameter(
            field.name,
            inspect.Parameter.KEYWORD_ONLY,
            default=inspect.Parameter.empty if field.default is MISSING else field.default,
            annotation=annotations[field.name],
        )
        for field in fields(group)
    ]
