"""`skyrocket namesrv`: a name server as a program of its own."""

from dataclasses import replace
from pathlib import Path
from typing import Annotated

import typer

from skyrocket.cli.controller import build_controller, with_own_peer
from skyrocket.cli.program.disk import DiskWithDirectories
from skyrocket.cli.program.lifetime import failures_shown, stop_on_signals, until_stopped
from skyrocket.cli.program.options import ConfOption, LogOption, PrintOption, VerboseOption
from skyrocket.cli.program.settings import Sections, read_pairs, sections_from
from skyrocket.config.home import in_home
from skyrocket.config.rocketmq_keys import CONTROLLER_KEYS, NAME_SERVER_KEYS
from skyrocket.config.sections import ControllerConfig, NameServerConfig, TlsConfig
from skyrocket.config.sources import with_tls_file
from skyrocket.controller.controller import Controller
from skyrocket.format.config_files import KV_CONFIG, KvConfig
from skyrocket.namesrv.name_server import NameServer
from skyrocket.remoting.event_loop import run
from skyrocket.remoting.guard import raise_descriptor_limit
from skyrocket.store.config_file import ConfigFile

NAME_SERVER_SECTIONS = (NameServerConfig, TlsConfig)


def namesrv(
    conf: ConfOption = None,
    listen_port: Annotated[
        int | None, typer.Option(help="Port; 0 takes a free one.  [default: 9876]", show_default=False)
    ] = None,
    bind_address: Annotated[
        str | None, typer.Option(help="Interface to listen on.  [default: 0.0.0.0]", show_default=False)
    ] = None,
    settings: Annotated[
        list[str] | None, typer.Option("--set", help="One setting, as orderMessageEnable=true.")
    ] = None,
    print_settings: PrintOption = False,
    log: LogOption = None,
    verbose: VerboseOption = False,
) -> None:
    """Run a name server. Settings: the .conf file, then SKYROCKET_NAMESRV_LISTEN_PORT and the like, then options.

    SIGTERM and SIGINT stop it. Exit code 0: stopped, 1: it could not start, 2: wrong usage.
    """
    given = {"listenPort": listen_port, "bindAddress": bind_address}
    options = {key: str(value) for key, value in given.items() if value is not None}
    with failures_shown("namesrv", verbose, log):
        raise_descriptor_limit()
        sections = _settings(conf, options, settings or [])
        if print_settings:
            typer.echo(sections.text(), nl=False)
            return
        tls = sections[TlsConfig]
        controller = embedded_controller(sections[ControllerConfig], tls) if _has_controller(sections) else None
        run(_serve(name_server(sections[NameServerConfig], tls, controller)))


def _has_controller(sections: Sections) -> bool:
    return sections[NameServerConfig].with_controller


def embedded_controller(config: ControllerConfig, tls: TlsConfig) -> Controller:
    """A controller for the process of a name server, which shows its metrics; raises ConfigError."""
    return build_controller(replace(config, metrics_port=0), tls)


def _settings(conf: Path | None, options: dict[str, str], single: list[str]) -> Sections:
    pairs = read_pairs(
        "namesrv",
        (*NAME_SERVER_SECTIONS, ControllerConfig),
        NAME_SERVER_KEYS | CONTROLLER_KEYS,
        conf=conf,
        prefix="SKYROCKET_NAMESRV_",
        options=options,
        single=single,
        # As RocketMQ: changes go where settings came from.
        assumed={"configStorePath": str(conf.absolute())} if conf is not None else None,
    )
    pairs = with_tls_file(pairs)
    sections = sections_from(pairs, NAME_SERVER_SECTIONS)
    if not _has_controller(sections):
        return sections
    return with_own_peer(sections_from(pairs, (*NAME_SERVER_SECTIONS, ControllerConfig)))


def name_server(
    config: NameServerConfig, tls: TlsConfig | None = None, controller: Controller | None = None
) -> NameServer:
    """A name server on the real disk."""
    disk = DiskWithDirectories()
    kv_file = ConfigFile(
        disk,
        str(in_home(config.kv_config_path)),
        lambda data: KV_CONFIG.decode(data).namespaces,
        lambda namespaces: KV_CONFIG.encode(KvConfig(namespaces)),
    )
    settings_file = ConfigFile(disk, str(in_home(config.config_store_path)), bytes, bytes)
    return NameServer(config, kv_file, settings_file, tls, controller=controller)


async def _serve(server: NameServer) -> None:
    stopping = stop_on_signals()
    async with server:
        address = await server.start()
        # RocketMQ's words: scripts wait for them.
        typer.echo(f"The Name Server boot success. address={address}")
        failures = [server.failed()] if server.controller is None else [server.failed(), server.controller.failed()]
        await until_stopped(stopping, *failures)
    typer.echo("The Name Server has stopped.")
