"""The command line: `skyrocket inspect | namesrv | broker | standalone`, and more as the system grows."""

import asyncio
import contextlib
import dataclasses
import logging
import os
import signal
import sys
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Annotated

import typer

from skyrocket import __version__
from skyrocket.clock import SystemClock
from skyrocket.config.rocketmq_keys import BROKER_KEYS, NAME_SERVER_KEYS
from skyrocket.config.sections import BrokerConfig, NameServerConfig, StoreConfig, TlsConfig
from skyrocket.config.setting import section_from
from skyrocket.config.sources import gather, pairs_of, parse_properties, properties_text, unknown_settings
from skyrocket.errors import ConfigError, SkyrocketError
from skyrocket.format.config_files import kv_config
from skyrocket.namesrv.name_server import NameServer
from skyrocket.remoting.event_loop import run
from skyrocket.store.config_file import ConfigFile
from skyrocket.store.disk import Disk

EXIT_PROBLEMS = 1
EXIT_USAGE = 2

app = typer.Typer(no_args_is_help=True, add_completion=False, rich_markup_mode="rich")

_SHOW = "What to show"
_CHOOSE = "Which records, entries and keys"
_CHECK = "Checking"


def _print_version(wanted: bool) -> None:
    if wanted:
        typer.echo(f"skyrocket {__version__}")
        raise typer.Exit


@app.callback()
def skyrocket(
    version: Annotated[
        bool, typer.Option("--version", callback=_print_version, is_eager=True, help="Print the version.")
    ] = False,
) -> None:
    """Skyrocket: RocketMQ in Python."""


@app.command()
def inspect(
    path: Annotated[Path, typer.Argument(help="Store directory: the one that holds `commitlog`.", show_default=False)],
    records: Annotated[bool, typer.Option("--records", help="Records of the log.", rich_help_panel=_SHOW)] = False,
    queues: Annotated[
        bool,
        typer.Option("--queues", help="Queues; the entries of one with --topic and --queue.", rich_help_panel=_SHOW),
    ] = False,
    index: Annotated[
        bool, typer.Option("--index", help="Index files; hits of a key with --topic and --key.", rich_help_panel=_SHOW)
    ] = False,
    checkpoint: Annotated[bool, typer.Option("--checkpoint", help="The checkpoint.", rich_help_panel=_SHOW)] = False,
    config_files: Annotated[
        bool, typer.Option("--config-files", help="The files under `config`.", rich_help_panel=_SHOW)
    ] = False,
    timer: Annotated[bool, typer.Option("--timer", help="Timer log and wheel.", rich_help_panel=_SHOW)] = False,
    topic: Annotated[str | None, typer.Option(help="Of this topic only.", rich_help_panel=_CHOOSE)] = None,
    queue: Annotated[int | None, typer.Option(help="Of this queue id only.", rich_help_panel=_CHOOSE)] = None,
    from_offset: Annotated[
        int, typer.Option(help="From this physical offset on; with --queue: queue offset.", rich_help_panel=_CHOOSE)
    ] = 0,
    limit: Annotated[int, typer.Option(help="At most so many; 0: all.", min=0, rich_help_panel=_CHOOSE)] = 20,
    key: Annotated[str | None, typer.Option(help="With this key or unique key.", rich_help_panel=_CHOOSE)] = None,
    tag: Annotated[str | None, typer.Option(help="With these tags.", rich_help_panel=_CHOOSE)] = None,
    body: Annotated[bool, typer.Option("--body", help="Show inflated bodies.", rich_help_panel=_CHOOSE)] = False,
    verify: Annotated[
        bool, typer.Option("--verify", help="Compare log, queues, index, checkpoint.", rich_help_panel=_CHECK)
    ] = False,
    strict: Annotated[
        bool, typer.Option("--strict", help="Warnings count as problems too.", rich_help_panel=_CHECK)
    ] = False,
    conf: Annotated[Path | None, typer.Option(help="The broker's .conf file.", rich_help_panel=_CHECK)] = None,
    settings: Annotated[
        list[str] | None, typer.Option("--set", help="One setting, as maxHashSlotNum=500.", rich_help_panel=_CHECK)
    ] = None,
    as_json: Annotated[bool, typer.Option("--json", help="JSON lines instead of tables.")] = False,
) -> None:
    """Show and check a store directory of RocketMQ or Skyrocket, offline; no byte of it is changed.

    Without options: a summary. Exit code 0: fine, 1: --verify found problems, 2: wrong usage or not a store.
    """
    # Here, because a server needs neither their time nor numpy's memory.
    from skyrocket.inspector.output import JsonOutput, TableOutput
    from skyrocket.inspector.progress import ScanProgress
    from skyrocket.inspector.settings import inspection_settings
    from skyrocket.inspector.store_directory import QueueName, open_directory
    from skyrocket.inspector.verify import verify as verify_store
    from skyrocket.inspector.views.index import index_files, lookup
    from skyrocket.inspector.views.queues import entries
    from skyrocket.inspector.views.queues import queues as queues_view
    from skyrocket.inspector.views.records import RecordFilter
    from skyrocket.inspector.views.records import records as records_view
    from skyrocket.inspector.views.small_files import checkpoint as checkpoint_view
    from skyrocket.inspector.views.small_files import config_files as config_files_view
    from skyrocket.inspector.views.small_files import timer as timer_view
    from skyrocket.inspector.views.summary import summary

    try:
        given = inspection_settings(conf, settings or [])
        store = open_directory(path)
    except SkyrocketError as error:
        typer.echo(f"skyrocket inspect: {error}", err=True)
        raise typer.Exit(EXIT_USAGE) from error
    output = JsonOutput() if as_json else TableOutput()
    if not any((records, queues, index, checkpoint, config_files, timer, verify)):
        for view in summary(store):
            output.show(view)
    total = sum(file.size for file in store.commit_log.files)
    if records:
        wanted = RecordFilter(topic, queue, from_offset, key, tag)
        with ScanProgress(total, SystemClock()) as progress:
            output.show(records_view(store.commit_log, wanted, limit, body=body, advance=progress.advance))
    if queues:
        one = topic is not None and queue is not None
        output.show(
            entries(store, QueueName(topic or "", queue or 0), from_offset, limit)
            if one
            else queues_view(store, topic, queue)
        )
    if index:
        shape = given.index_shape
        one = topic is not None and key is not None
        output.show(lookup(store, shape, topic or "", key or "", limit) if one else index_files(store, shape))
    if checkpoint:
        output.show(checkpoint_view(store))
    if config_files:
        output.show(config_files_view(store))
    if timer:
        for view in timer_view(store, limit):
            output.show(view)
    if verify:
        with ScanProgress(total, SystemClock()) as progress:
            result = verify_store(store, given, progress.advance)
        output.show_verification(result, strict=strict)
        if result.has_problems(strict=strict):
            raise typer.Exit(EXIT_PROBLEMS)


@app.command()
def namesrv(
    conf: Annotated[
        Path | None, typer.Option("-c", "--conf", help="RocketMQ's .conf file.", show_default=False)
    ] = None,
    listen_port: Annotated[
        int | None, typer.Option(help="Port; 0 takes a free one.  [default: 9876]", show_default=False)
    ] = None,
    bind_address: Annotated[
        str | None, typer.Option(help="Interface to listen on.  [default: 0.0.0.0]", show_default=False)
    ] = None,
    settings: Annotated[
        list[str] | None, typer.Option("--set", help="One setting, as orderMessageEnable=true.")
    ] = None,
    print_settings: Annotated[bool, typer.Option("-p", "--print", help="Print the settings and exit.")] = False,
    verbose: Annotated[bool, typer.Option("-v", "--verbose", help="Log what happens, not only what is wrong.")] = False,
) -> None:
    """Run a name server. Settings: the .conf file, then SKYROCKET_NAMESRV_LISTEN_PORT and the like, then options.

    SIGTERM and SIGINT stop it. Exit code 0: stopped, 1: it could not start, 2: wrong usage.
    """
    logging.basicConfig(
        level=logging.INFO if verbose else logging.WARNING, format="%(asctime)s %(levelname)s %(name)s %(message)s"
    )
    try:
        config, tls = _name_server_settings(conf, listen_port, bind_address, settings or [])
        if print_settings:
            typer.echo(properties_text(pairs_of(config) | pairs_of(tls)), nl=False)
            return
        run(_serve(name_server(config, tls)))
    except ConfigError as error:
        typer.echo(f"skyrocket namesrv: {error}", err=True)
        raise typer.Exit(EXIT_USAGE) from error
    except SkyrocketError as error:
        typer.echo(f"skyrocket namesrv: {error}", err=True)
        raise typer.Exit(EXIT_PROBLEMS) from error


def _name_server_settings(
    conf: Path | None, listen_port: int | None, bind_address: str | None, single: list[str]
) -> tuple[NameServerConfig, TlsConfig]:
    sections = [NameServerConfig, TlsConfig]
    options = parse_properties("\n".join(single), "--set")
    for warning in unknown_settings(options, sections, NAME_SERVER_KEYS):
        raise ConfigError(f"--set: {warning}")
    if conf is not None:
        options.setdefault("configStorePath", str(conf.absolute()))  # as RocketMQ: changes go where settings came from
    if listen_port is not None:
        options["listenPort"] = str(listen_port)
    if bind_address is not None:
        options["bindAddress"] = bind_address
    pairs = gather(sections, conf=conf, environment=os.environ, prefix="SKYROCKET_NAMESRV_", options=options)
    for warning in unknown_settings(pairs, sections, NAME_SERVER_KEYS):
        typer.echo(f"skyrocket namesrv: {warning}", err=True)
    return (
        section_from(NameServerConfig, pairs, allow_unknown=True),
        section_from(TlsConfig, pairs, allow_unknown=True),
    )


def name_server(config: NameServerConfig, tls: TlsConfig | None = None) -> NameServer:
    """A name server on the real disk."""
    disk = _DiskWithDirectories()
    kv_file = ConfigFile(
        disk,
        str(Path(config.kv_config_path).expanduser()),
        lambda data: kv_config.decode(data).namespaces,
        lambda namespaces: kv_config.encode(kv_config.KvConfig(namespaces)),
    )
    settings_file = ConfigFile(disk, str(Path(config.config_store_path).expanduser()), bytes, bytes)
    return NameServer(config, kv_file, settings_file, tls)


class _DiskWithDirectories(Disk):
    """Makes the directory of a file when the file is first written: a name server that keeps nothing leaves none."""

    def write_file(self, path: str, data: bytes) -> None:
        self.make_directory(os.path.dirname(os.path.abspath(path)))
        super().write_file(path, data)


async def _serve(server: NameServer) -> None:
    """Until a signal comes; a second one does not wait."""
    stopping = asyncio.Event()
    loop = asyncio.get_running_loop()
    async with server:
        address = await server.start()
        for number in (signal.SIGTERM, signal.SIGINT):
            loop.add_signal_handler(number, _stop_or_leave, stopping)
        # RocketMQ's words: scripts wait for them.
        typer.echo(f"The Name Server boot success. address={address}")
        await stopping.wait()
    typer.echo("The Name Server has stopped.")


def _stop_or_leave(stopping: asyncio.Event) -> None:
    if stopping.is_set():
        os._exit(EXIT_PROBLEMS)
    stopping.set()


_ConfOption = Annotated[Path | None, typer.Option("-c", "--conf", help="RocketMQ's .conf file.", show_default=False)]
_StoreOption = Annotated[
    Path | None, typer.Option("--store", help="Store directory.  [default: ~/store]", show_default=False)
]
_BrokerPortOption = Annotated[
    int | None, typer.Option("--listen-port", help="Port; 0 takes a free one.  [default: 10911]", show_default=False)
]
_BrokerIpOption = Annotated[
    str | None, typer.Option("--broker-ip", help="Address that clients are told.", show_default=False)
]
_SetOption = Annotated[list[str] | None, typer.Option("--set", help="One setting, as flushDiskType=SYNC_FLUSH.")]
_VerboseOption = Annotated[bool, typer.Option("-v", "--verbose", help="Log what happens, not only what is wrong.")]


@app.command()
def broker(
    conf: _ConfOption = None,
    namesrv_addr: Annotated[
        str | None, typer.Option("-n", "--namesrv-addr", help="Name servers, as host:9876;other:9876.")
    ] = None,
    listen_port: _BrokerPortOption = None,
    broker_ip: _BrokerIpOption = None,
    store: _StoreOption = None,
    settings: _SetOption = None,
    verbose: _VerboseOption = False,
) -> None:
    """Run a broker. Settings: the .conf file, then SKYROCKET_BROKER_LISTEN_PORT and the like, then options.

    SIGTERM and SIGINT stop it. Exit code 0: stopped, 1: it could not start, 2: wrong usage.
    """
    options = _broker_options(namesrv_addr, listen_port, broker_ip, store)
    with _failures_shown("broker", verbose):
        config, store_config = _broker_settings("broker", conf, options, settings or [])
        run(_serve_broker(config, store_config))


@app.command()
def standalone(
    conf: _ConfOption = None,
    namesrv_port: Annotated[int, typer.Option(help="Port of the name server; 0 takes a free one.")] = 9876,
    listen_port: _BrokerPortOption = None,
    broker_ip: _BrokerIpOption = None,
    store: _StoreOption = None,
    settings: _SetOption = None,
    verbose: _VerboseOption = False,
) -> None:
    """Run a name server and a broker in one process. Settings are those of `skyrocket broker`.

    SIGTERM and SIGINT stop it. Exit code 0: stopped, 1: it could not start, 2: wrong usage.
    """
    options = _broker_options(None, listen_port, broker_ip, store)
    with _failures_shown("standalone", verbose):
        config, store_config = _broker_settings("standalone", conf, options, settings or [])
        names = NameServerConfig(listen_port=namesrv_port, bind_address=config.bind_address)
        run(_serve_standalone(names, config, store_config))


@contextlib.contextmanager
def _failures_shown(command: str, verbose: bool) -> Iterator[None]:
    logging.basicConfig(
        level=logging.INFO if verbose else logging.WARNING, format="%(asctime)s %(levelname)s %(name)s %(message)s"
    )
    try:
        yield
    except SkyrocketError as error:
        typer.echo(f"skyrocket {command}: {error}", err=True)
        raise typer.Exit(EXIT_USAGE if isinstance(error, ConfigError) else EXIT_PROBLEMS) from error


def _broker_options(
    namesrv_addr: str | None, listen_port: int | None, broker_ip: str | None, store: Path | None
) -> dict[str, str]:
    given = {
        "namesrvAddr": namesrv_addr,
        "listenPort": listen_port,
        "brokerIP1": broker_ip,
        "storePathRootDir": store,
    }
    return {key: str(value) for key, value in given.items() if value is not None}


def _broker_settings(
    command: str, conf: Path | None, options: dict[str, str], single: list[str]
) -> tuple[BrokerConfig, StoreConfig]:
    sections = [BrokerConfig, StoreConfig]
    singles = parse_properties("\n".join(single), "--set")
    for warning in unknown_settings(singles, sections, BROKER_KEYS):
        raise ConfigError(f"--set: {warning}")
    pairs = gather(
        sections, conf=conf, environment=os.environ, prefix="SKYROCKET_BROKER_", options={**singles, **options}
    )
    if "NAMESRV_ADDR" in os.environ:
        pairs.setdefault("namesrvAddr", os.environ["NAMESRV_ADDR"])  # as RocketMQ
    for warning in unknown_settings(pairs, sections, BROKER_KEYS):
        typer.echo(f"skyrocket {command}: {warning}", err=True)
    _check_log_path(pairs)
    return (
        section_from(BrokerConfig, pairs, allow_unknown=True),
        section_from(StoreConfig, pairs, allow_unknown=True),
    )


def _check_log_path(pairs: Mapping[str, str]) -> None:
    """RocketMQ can keep the log apart from the rest; whoever does must not find an empty broker here."""
    root = Path(pairs.get("storePathRootDir", BrokerConfig().store_root)).expanduser()
    log = pairs.get("storePathCommitLog")
    if log is not None and Path(log).expanduser() != root / "commitlog":
        raise ConfigError(f"storePathCommitLog={log} is not served: the log must be {root / 'commitlog'}")


async def _serve_broker(config: BrokerConfig, store_config: StoreConfig) -> None:
    # Here, because a name server does not need their memory.
    from skyrocket.broker.broker import Broker

    stopping = _stop_on_signals()
    async with Broker(config, store_config) as server:
        address = await server.start()
        # RocketMQ's words: scripts wait for them.
        names = f" and name server is {config.name_servers}" if config.name_servers else ""
        typer.echo(f"The broker[{config.broker_name}, {address}] boot success. serializeType=JSON{names}")
        await stopping.wait()
    typer.echo("The broker has stopped.")


async def _serve_standalone(names: NameServerConfig, config: BrokerConfig, store_config: StoreConfig) -> None:
    from skyrocket.broker.broker import Broker

    stopping = _stop_on_signals()
    async with name_server(names) as server:
        address = await server.start()
        config = dataclasses.replace(config, name_servers=f"127.0.0.1:{address.port}")
        async with Broker(config, store_config) as running:
            broker_address = await running.start()
            typer.echo(f"Skyrocket is ready. namesrv={address} broker={broker_address}")
            await stopping.wait()
    typer.echo("Skyrocket has stopped.")


def _stop_on_signals() -> asyncio.Event:
    stopping = asyncio.Event()
    for number in (signal.SIGTERM, signal.SIGINT):
        asyncio.get_running_loop().add_signal_handler(number, _stop_or_leave, stopping)
    return stopping


def main() -> None:
    """Entry point of the `skyrocket` command."""
    sys.exit(app())
