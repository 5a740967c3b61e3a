"""`skyrocket broker`: one broker in this process, or several as processes of their own."""

import asyncio
import os
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from skyrocket.cli.fleet.own_logs import with_own_logs
from skyrocket.cli.fleet.plan import BrokerPlan, Places, plan_brokers
from skyrocket.cli.fleet.supervisor import serve_brokers
from skyrocket.cli.program.lifetime import failures_shown, stop_on_signals, stop_with_parent, until_stopped
from skyrocket.cli.program.options import (
    BrokerIpOption,
    BrokerPortOption,
    BrokersOption,
    ConfOption,
    LogOption,
    PrintOption,
    SetOption,
    StoreOption,
    VerboseOption,
    broker_options,
)
from skyrocket.cli.program.settings import Sections, read_pairs, sections_from
from skyrocket.config.home import in_home
from skyrocket.config.rocketmq_keys import BROKER_KEYS
from skyrocket.config.sections import BrokerConfig, StoreConfig, TlsConfig
from skyrocket.config.sources import parse_properties, read_conf, with_tls_file
from skyrocket.config.unkept_promises import ignored_promises, refuse_unkept_promises
from skyrocket.errors import ConfigError
from skyrocket.remoting.event_loop import run
from skyrocket.remoting.guard import raise_descriptor_limit
from skyrocket.remoting.tls import client_tls

if TYPE_CHECKING:
    from skyrocket.broker.broker import Broker
    from skyrocket.broker.failover.failover_broker import FailoverBroker

BROKER_SECTIONS = (BrokerConfig, StoreConfig, TlsConfig)  # a part that has settings of its own adds its section here


def broker(
    conf: ConfOption = None,
    namesrv_addr: Annotated[
        str | None, typer.Option("-n", "--namesrv-addr", help="Name servers, as host:9876;other:9876.")
    ] = None,
    listen_port: BrokerPortOption = None,
    broker_ip: BrokerIpOption = None,
    store: StoreOption = None,
    brokers: BrokersOption = 1,
    settings: SetOption = None,
    print_settings: PrintOption = False,
    log: LogOption = None,
    verbose: VerboseOption = False,
    stop_with_stdin: Annotated[
        bool, typer.Option("--stop-with-stdin", help="Stop when standard input ends: for programs that start brokers.")
    ] = False,
) -> None:
    """Run a broker. Settings: the .conf file, then SKYROCKET_BROKER_LISTEN_PORT and the like, then options.

    SIGTERM and SIGINT stop it. Exit code 0: stopped, 1: it could not start or go on, 2: wrong usage.
    """
    options = broker_options(listen_port, broker_ip, store, namesrv_addr)
    with failures_shown("broker", verbose, log):
        raise_descriptor_limit()
        sections = broker_sections("broker", conf, options, settings or [])
        if print_settings:
            typer.echo(sections.text(), nl=False)
            return
        plans = with_own_logs(plan_brokers(sections[BrokerConfig], brokers, conf, settings or [], verbose=verbose), log)
        if len(plans) > 1:
            run(_serve_several(plans, sections, is_child=stop_with_stdin))
        else:
            run(_serve(sections, is_child=stop_with_stdin))


def broker_sections(
    command: str,
    conf: Path | None,
    options: Mapping[str, str],
    single: Sequence[str],
    defaults: Mapping[str, str] | None = None,
) -> Sections:
    """All that a broker can be told; `defaults` are those of the program."""
    pairs = read_pairs(
        command,
        BROKER_SECTIONS,
        BROKER_KEYS,
        conf=conf,
        prefix="SKYROCKET_BROKER_",
        options=options,
        single=single,
        # As RocketMQ: changes go where settings came from.
        assumed={"brokerConfigPath": str(conf.absolute())} if conf is not None else None,
    )
    said = {*options, *parse_properties("\n".join(single))}
    pairs |= {key: value for key, value in _changed_at_run_time(pairs, conf).items() if key not in said}
    if "NAMESRV_ADDR" in os.environ:
        pairs.setdefault("namesrvAddr", os.environ["NAMESRV_ADDR"])  # as RocketMQ
    _check_log_path(pairs)
    refuse_unkept_promises(pairs)
    for warning in ignored_promises(pairs):
        typer.echo(f"skyrocket {command}: {warning}", err=True)
    return sections_from(with_tls_file(pairs), BROKER_SECTIONS, defaults)


def _changed_at_run_time(pairs: Mapping[str, str], conf: Path | None) -> dict[str, str]:
    """What operators changed while the broker ran, unless that is kept in the .conf file itself."""
    root = in_home(pairs.get("storePathRootDir", BrokerConfig().store_root))
    kept = Path(pairs.get("brokerConfigPath") or root / "config" / "broker.properties").expanduser()
    is_read_already = conf is not None and kept == conf.absolute()
    return read_conf(kept) if kept.exists() and not is_read_already else {}


def _check_log_path(pairs: Mapping[str, str]) -> None:
    """RocketMQ can keep the log apart from the rest; whoever does must not find an empty broker here."""
    root = in_home(pairs.get("storePathRootDir", BrokerConfig().store_root))
    log = pairs.get("storePathCommitLog")
    if log is not None and Path(log).expanduser() != root / "commitlog":
        raise ConfigError(f"storePathCommitLog={log} is not served: the log must be {root / 'commitlog'}")


def build_broker(sections: Sections) -> "Broker | FailoverBroker":
    """A broker from its sections."""
    # Here, because a name server does not need their memory.
    from skyrocket.broker.broker import Broker
    from skyrocket.broker.failover.failover_broker import FailoverBroker

    kind = FailoverBroker if sections[BrokerConfig].controller_mode else Broker
    return kind(sections[BrokerConfig], sections[StoreConfig], tls=sections[TlsConfig])


def warn_of_address(command: str, config: BrokerConfig) -> None:
    """Say so when clients elsewhere will hardly reach the address that they are told."""
    from skyrocket.broker.core.advertised_address import advertised_host, doubt_about, is_in_container

    host = advertised_host(config.broker_ip, config.bind_address)
    doubt = doubt_about(
        host, is_chosen=bool(config.broker_ip), bind_address=config.bind_address, in_container=is_in_container()
    )
    if doubt is not None:
        typer.echo(f"skyrocket {command}: warning: {doubt}", err=True)


def _stop_on_signals_or_with_parent(config: BrokerConfig, *, is_child: bool) -> asyncio.Event:
    stopping = stop_on_signals()
    if is_child:
        stop_with_parent()
    else:
        warn_of_address("broker", config)  # a parent has said it once for all
    return stopping


async def _serve(sections: Sections, *, is_child: bool) -> None:
    config = sections[BrokerConfig]
    stopping = _stop_on_signals_or_with_parent(config, is_child=is_child)
    async with build_broker(sections) as server:
        address = await server.start()
        # RocketMQ's words: scripts wait for them.
        names = f" and name server is {config.name_servers}" if config.name_servers else ""
        typer.echo(f"The broker[{config.broker_name}, {address}] boot success. serializeType=JSON{names}")
        await until_stopped(stopping, server.failed())
    typer.echo("The broker has stopped.")


async def _serve_several(plans: Sequence[BrokerPlan], sections: Sections, *, is_child: bool) -> None:
    config = sections[BrokerConfig]
    stopping = _stop_on_signals_or_with_parent(config, is_child=is_child)
    tls = client_tls(sections[TlsConfig])
    async with serve_brokers(plans, Places(config.name_servers), config.bind_address, stopping, tls) as serving:
        if serving is not None:
            names = f" namesrv={config.name_servers}" if config.name_servers else ""
            typer.echo(f"Skyrocket is ready.{names} broker={','.join(serving.addresses)}")
            await until_stopped(stopping, serving.failed())
    typer.echo("Skyrocket has stopped.")
