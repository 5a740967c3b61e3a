"""`skyrocket standalone`: a name server with one broker in the same process, or with several as their own processes."""

import asyncio
import contextlib
import socket
from collections.abc import AsyncIterator, Sequence
from pathlib import Path
from typing import Annotated, Final

import typer

from skyrocket.cli.broker import broker_sections, build_broker, warn_of_address
from skyrocket.cli.console_beside import Pages, console_beside, refuse_taken_port
from skyrocket.cli.controller import build_controller
from skyrocket.cli.fleet.own_logs import with_own_logs
from skyrocket.cli.fleet.plan import BrokerPlan, Places, plan_brokers
from skyrocket.cli.fleet.readiness import await_brokers
from skyrocket.cli.fleet.supervisor import Serving, serve_brokers
from skyrocket.cli.namesrv import name_server
from skyrocket.cli.program.lifetime import failures_shown, stop_on_signals, unless_stopped, until_stopped
from skyrocket.cli.program.options import (
    BrokerIpOption,
    BrokerPortOption,
    BrokersOption,
    ConfOption,
    LogOption,
    SetOption,
    StoreOption,
    VerboseOption,
    broker_options,
)
from skyrocket.cli.program.settings import Sections
from skyrocket.config.home import in_home
from skyrocket.config.sections import BrokerConfig, ControllerConfig, MetricsExporter, NameServerConfig, TlsConfig
from skyrocket.controller.controller import Controller
from skyrocket.remoting.addresses import Address
from skyrocket.remoting.event_loop import run
from skyrocket.remoting.guard import raise_descriptor_limit
from skyrocket.remoting.listening import why_no_metrics
from skyrocket.remoting.tls import client_tls

_DEFAULTS: Final = {"metricsExporterType": "PROM"}
_CONTROLLER_DISTANCE: Final = 2  # 9876 and 9878 are RocketMQ's ports
_SCAN_MS: Final = 500


def standalone(
    conf: ConfOption = None,
    namesrv_port: Annotated[int, typer.Option(help="Port of the name server; 0 takes a free one.")] = 9876,
    namesrv_bind: Annotated[
        str | None,
        typer.Option(help="Address of the interface of the name server; that of the broker.", show_default=False),
    ] = None,
    listen_port: BrokerPortOption = None,
    broker_ip: BrokerIpOption = None,
    store: StoreOption = None,
    brokers: BrokersOption = 1,
    replicas: Annotated[
        int, typer.Option(min=1, max=4, help="Broker processes with the same log: 2 is a master with a slave.")
    ] = 1,
    failover: Annotated[
        bool,
        typer.Option(
            "--failover",
            help="With --replicas 3: when a master dies a controller, which runs here too, chooses another.",
        ),
    ] = False,
    console: Annotated[
        bool,
        typer.Option("--console/--no-console", help="Pages for the browser; with --listen-port 0 only if asked for."),
    ] = True,
    console_host: Annotated[str, typer.Option(help="Address of the interface of the console.")] = "127.0.0.1",
    console_port: Annotated[
        int | None, typer.Option(help="Port of the console, 8082; 0 takes a free one.", show_default=False)
    ] = None,
    console_schemas: Annotated[
        Path | None,
        typer.Option(help="Schemas of topics for the console, as `console --schemas` takes them.", show_default=False),
    ] = None,
    settings: SetOption = None,
    log: LogOption = None,
    verbose: VerboseOption = False,
) -> None:
    """Run a name server and a broker in one process, or beside it --brokers N and their --replicas.

    Settings: those of `skyrocket broker`.

    SIGTERM and SIGINT stop it. Exit code 0: stopped, 1: it could not start or go on, 2: wrong usage.
    """
    from skyrocket.schemas.catalog import catalog_of

    options = broker_options(listen_port, broker_ip, store)
    with failures_shown("standalone", verbose, log):
        raise_descriptor_limit()
        # Who wants a free port wants it for everything: several may then run on one machine.
        defaults = _DEFAULTS if listen_port != 0 else {**_DEFAULTS, "metricsPromExporterPort": "0"}
        sections = broker_sections("standalone", conf, options, settings or [], defaults)
        config = sections[BrokerConfig]
        plans = plan_brokers(
            config, brokers, conf, settings or [], replicas=replicas, failover=failover, verbose=verbose
        )
        plans = with_own_logs(plans, log)
        names = _name_server_config(config, namesrv_port, namesrv_bind or config.bind_address)
        # Who runs several on free ports does not look for pages.
        has_pages = console and (listen_port != 0 or console_port is not None)
        pages = Pages(console_host, console_port, catalog_of(console_schemas)) if has_pages else None
        if pages is not None:
            refuse_taken_port(pages)
        run(_serve(names, sections, plans, pages))


def _name_server_config(config: BrokerConfig, port: int, bind_address: str) -> NameServerConfig:
    """Its files lie with the broker's: two on one machine share nothing, and who moves the store moves all."""
    folder = in_home(config.store_root) / "config" / "namesrv"
    return NameServerConfig(
        listen_port=port,
        bind_address=bind_address,
        kv_config_path=str(folder / "kvConfig.json"),
        config_store_path=str(folder / "namesrv.properties"),
    )


def _controller(config: BrokerConfig, names: NameServerConfig, tls: TlsConfig) -> Controller:
    """Its decisions lie with the stores that they are about, in one file."""
    folder = in_home(config.store_root) / "config" / "controller"
    port = names.listen_port and names.listen_port + _CONTROLLER_DISTANCE
    # Its brokers are here, and go where it says that it is: not to an address that may lead out of a container.
    own = Address(_local_host(names.bind_address), port)
    return build_controller(
        ControllerConfig(
            bind_address=names.bind_address,
            peers=f"n0-{own}",
            self_id="n0",
            store=f"file:{folder / 'replica-sets'}",
            scan_interval_ms=_SCAN_MS,
            master_scan_interval_ms=_SCAN_MS,
            config_store_path=str(folder / "controller.properties"),
        ),
        tls,
    )


def _local_host(host: str) -> str:
    return "127.0.0.1" if host == "0.0.0.0" else host


def _places(controller: Controller, plans: Sequence[BrokerPlan], addresses: Sequence[str]) -> str:
    """What is where."""
    lines = [f"controller  {controller.address}, decisions are kept in {controller.keeps_in}"]
    lines += [f"{plan.label}  {address}, store {plan.store}" for plan, address in zip(plans, addresses, strict=True)]
    return "\n".join(lines)


async def _serve(names: NameServerConfig, sections: Sections, plans: Sequence[BrokerPlan], pages: Pages | None) -> None:
    config = sections[BrokerConfig]
    stopping = stop_on_signals()
    warn_of_address("standalone", config)
    controller = _controller(config, names, sections[TlsConfig]) if plans[0].has_failover else None
    async with name_server(names, sections[TlsConfig], controller) as server:
        address = await server.start("--namesrv-port")
        local = str(Address(_local_host(address.host), address.port))
        if len(plans) > 1:
            tls = client_tls(sections[TlsConfig])
            places = Places(local, "" if controller is None else str(controller.address))
            brokers = serve_brokers(plans, places, config.bind_address, stopping, tls)
        else:
            brokers = _one_broker(_observed_if_free(sections.changed(BrokerConfig, name_servers=local)), stopping)
        async with brokers as serving:
            if serving is not None:
                typer.echo(f"Skyrocket is ready. namesrv={address} broker={','.join(serving.addresses)}")
                typer.echo(_next_step(address.port, serving.addresses))
                if controller is not None:
                    typer.echo(_places(controller, plans, serving.addresses))
                failures = [server.failed(), serving.failed()]
                failures += [] if controller is None else [controller.failed()]
                async with console_beside(pages, local, sections):
                    await until_stopped(stopping, *failures)
    typer.echo("Skyrocket has stopped.")


@contextlib.asynccontextmanager
async def _one_broker(sections: Sections, stopping: asyncio.Event) -> AsyncIterator[Serving | None]:
    config = sections[BrokerConfig]
    async with build_broker(sections) as broker:
        address = str(await broker.start())
        tls = client_tls(sections[TlsConfig])
        ready = await_brokers(config.name_servers, [(config.broker_name, address)], config.bind_address, tls)
        await unless_stopped(ready, stopping)
        yield None if stopping.is_set() else Serving([address], broker.failed)


def _observed_if_free(sections: Sections) -> Sections:
    """Metrics and health are a convenience here: a second standalone on the machine starts without them.

    Who chose a port gets that one, or is told by the broker why not.
    """
    config = sections[BrokerConfig]
    if config.metrics_exporter is not MetricsExporter.PROM or sections.was_said("metricsPromExporterPort"):
        return sections
    host, port = config.metrics_host or config.bind_address, config.metrics_port
    try:
        with socket.create_server((host, port)):
            return sections
    except OSError as error:
        typer.echo(
            "skyrocket standalone: warning: runs without metrics and health page, "
            + why_no_metrics(error, host, port, without="metricsExporterType=DISABLE"),
            err=True,
        )
        return sections.changed(BrokerConfig, metrics_exporter=MetricsExporter.DISABLE)


def _next_step(name_server_port: int, addresses: Sequence[str]) -> str:
    """The line that says which address clients need."""
    host = Address.parse(addresses[0]).host
    here = f"127.0.0.1:{name_server_port}"
    if host not in ("127.0.0.1", "::1", "localhost"):
        here += f", from other machines {Address(host, name_server_port)}"
    return f"Name server address for clients: {here}. Ctrl-C stops."
