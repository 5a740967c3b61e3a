"""`skyrocket controller`: a controller as a program of its own."""

from pathlib import Path
from typing import Annotated

import typer

from skyrocket.broker.core.advertised_address import own_ip
from skyrocket.cli.program.disk import DiskWithDirectories
from skyrocket.cli.program.lifetime import failures_shown, stop_on_signals, until_stopped
from skyrocket.cli.program.options import ConfOption, LogOption, PrintOption, VerboseOption
from skyrocket.cli.program.settings import Sections, read_pairs, sections_from
from skyrocket.clock import Clock
from skyrocket.config.home import in_home
from skyrocket.config.rocketmq_keys import CONTROLLER_KEYS
from skyrocket.config.sections import ControllerConfig, TlsConfig
from skyrocket.config.sections.controller import DEFAULT_CONTROLLER_PORT
from skyrocket.config.sources import with_tls_file
from skyrocket.controller.controller import Controller
from skyrocket.controller.engine_choice import engine_of
from skyrocket.remoting.event_loop import run
from skyrocket.remoting.guard import raise_descriptor_limit
from skyrocket.store.config_file import ConfigFile

CONTROLLER_SECTIONS = (ControllerConfig, TlsConfig)


def controller(
    conf: ConfOption = None,
    self_id: Annotated[
        str | None, typer.Option("--id", help="Name of this controller.  [default: n0]", show_default=False)
    ] = None,
    peers: Annotated[
        str | None,
        typer.Option(
            "--peers",
            help="Controllers, this one among them, as n0-10.0.0.1:9878;n1-10.0.0.2:9878.",
            show_default=False,
        ),
    ] = None,
    store: Annotated[
        str | None,
        typer.Option(
            "--store",
            help="Engine: zookeeper://h1,h2/skyrocket, etcd://h1,h2/skyrocket, file:PATH.",
            show_default=False,
        ),
    ] = None,
    settings: Annotated[
        list[str] | None, typer.Option("--set", help="One setting, as enableElectUncleanMaster=true.")
    ] = None,
    print_settings: PrintOption = False,
    log: LogOption = None,
    verbose: VerboseOption = False,
) -> None:
    """Run a controller: it gives every replica set of brokers a master, and another when that one dies.

    Settings: the .conf file, then SKYROCKET_CONTROLLER_… of the environment, then options. SIGTERM and SIGINT stop it.
    Exit code 0: stopped, 1: it could not start, 2: wrong usage.
    """
    given = {"controllerDLegerSelfId": self_id, "controllerDLegerPeers": peers, "controllerStore": store}
    options = {key: value for key, value in given.items() if value is not None}
    with failures_shown("controller", verbose, log):
        raise_descriptor_limit()
        sections = _settings(conf, options, settings or [])
        if print_settings:
            typer.echo(sections.text(), nl=False)
            return
        run(_serve(build_controller(sections[ControllerConfig], sections[TlsConfig])))


def _settings(conf: Path | None, options: dict[str, str], single: list[str]) -> Sections:
    pairs = read_pairs(
        "controller",
        CONTROLLER_SECTIONS,
        CONTROLLER_KEYS,
        conf=conf,
        prefix="SKYROCKET_CONTROLLER_",
        options=options,
        single=single,
        # As RocketMQ: changes go where settings came from.
        assumed={"configStorePath": str(conf.absolute())} if conf is not None else None,
    )
    return with_own_peer(sections_from(with_tls_file(pairs), CONTROLLER_SECTIONS))


def with_own_peer(sections: Sections) -> Sections:
    """Where nobody says where this controller is: the usual port at this machine's address."""
    config = sections[ControllerConfig]
    if config.peers:
        return sections
    return sections.changed(ControllerConfig, peers=f"{config.self_id}-{own_ip()}:{DEFAULT_CONTROLLER_PORT}")


def build_controller(config: ControllerConfig, tls: TlsConfig | None = None, clock: Clock | None = None) -> Controller:
    """A controller with its engine, on the real disk; raises ConfigError."""
    disk = DiskWithDirectories()
    settings_file = ConfigFile(disk, str(in_home(config.config_store_path)), bytes, bytes)
    return Controller(config, engine_of(config, disk), settings_file, tls, clock)


async def _serve(server: Controller) -> None:
    stopping = stop_on_signals()
    async with server:
        address = await server.start()
        # RocketMQ's words: scripts wait for them.
        typer.echo(f"The Controller Server boot success. address={address}, decisions are kept in {server.keeps_in}")
        await until_stopped(stopping, server.failed())
    typer.echo("The Controller Server has stopped.")
