"""Options that several commands share, each said once."""

from pathlib import Path
from typing import Annotated, Any

import typer

ConfOption = Annotated[Path | None, typer.Option("-c", "--conf", help="RocketMQ's .conf file.", show_default=False)]
SetOption = Annotated[list[str] | None, typer.Option("--set", help="One setting, as flushDiskType=SYNC_FLUSH.")]
PrintOption = Annotated[bool, typer.Option("-p", "--print", help="Print the settings and exit.")]
VerboseOption = Annotated[bool, typer.Option("-v", "--verbose", help="Log what happens, not only what is wrong.")]

JsonLinesOption = Annotated[bool, typer.Option("--json", help="JSON lines.")]
OnlySayWhichOption = Annotated[bool, typer.Option("--dry-run", help="Only say which.")]


def limit_option(panel: str | None = None) -> Any:
    """`--limit`, for an Annotated[int, …]; each command has its own panel."""
    return typer.Option("--limit", min=1, help="At most so many.", rich_help_panel=panel)


def topic_option(panel: str | None = None) -> Any:
    """`--topic` as a choice, for an Annotated[str | None, …]."""
    return typer.Option("--topic", help="Of this topic.", rich_help_panel=panel)


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
