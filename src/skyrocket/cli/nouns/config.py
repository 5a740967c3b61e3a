"""`skyrocket config`: settings of running brokers."""

from fnmatch import fnmatchcase
from typing import Annotated, Final

import typer

from skyrocket.cli.nouns.operator import BrokerOption, ClusterNameOption, Operator, operator_command, pairs_of, verbs
from skyrocket.cli.output.changes import Change
from skyrocket.cli.output.rows import Column
from skyrocket.errors import ConfigError

config = verbs("Settings of running brokers.")

SETTINGS: Final = (Column("broker"), Column("key"), Column("value"))


@config.command()
@operator_command("config get")
def get(
    operator: Operator,
    keys: Annotated[list[str] | None, typer.Argument(metavar="[KEY]...", help="With * and ?.  [default: all]")] = None,
    cluster: ClusterNameOption = None,
    broker: BrokerOption = None,
) -> None:
    """Settings as brokers have them now, slaves included."""
    found = operator.ask(lambda admin: admin.broker_settings(cluster=cluster, broker=broker))
    rows = [
        {"broker": str(place), "key": key, "value": value}
        for place, settings in found.items()
        for key, value in sorted(settings.items())
        if not keys or any(fnmatchcase(key, pattern) for pattern in keys)
    ]
    operator.show(SETTINGS, rows, empty="no such setting")
    if not rows:
        operator.nothing_found()


@config.command()
@operator_command("config diff")
def diff(operator: Operator, cluster: ClusterNameOption = None) -> None:
    """Settings in which brokers differ, without those that must."""
    found = operator.ask(lambda admin: admin.broker_settings(cluster=cluster))
    keys = sorted({key for settings in found.values() for key in settings} - _MUST_DIFFER)
    rows = [
        {"broker": str(place), "key": key, "value": settings.get(key)}
        for key in keys
        if len({settings.get(key) for settings in found.values()}) > 1
        for place, settings in found.items()
    ]
    operator.show((Column("key"), Column("broker"), Column("value")), rows, empty="brokers have the same settings")


_MUST_DIFFER: Final = frozenset(
    "brokerName brokerId brokerRole brokerIP1 brokerIP2 listenPort haListenPort storePathRootDir storePathCommitLog "
    "storePathConsumeQueue storePathIndex metricsPort brokerConfigPath metricsPromExporterPort".split()
)


@config.command("set")
@operator_command("config set", writes=True)
def set_config(
    operator: Operator,
    pairs: Annotated[list[str], typer.Argument(metavar="KEY=VALUE...", help="Settings.")],
    cluster: ClusterNameOption = None,
    broker: BrokerOption = None,
    with_slaves: Annotated[bool, typer.Option("--with-slaves", help="Of slaves too.")] = False,
    everywhere: Annotated[bool, typer.Option("--all", help="Of all brokers.")] = False,
) -> None:
    """Change settings while brokers run; shows the difference first. Brokers keep them."""
    wanted = pairs_of(pairs, "argument")
    if cluster is None and broker is None and not everywhere:
        raise ConfigError("say where: --broker, --cluster or --all")
    changes = operator.ask(
        lambda admin: admin.setting_changes(wanted, cluster=cluster, broker=broker, with_slaves=with_slaves)
    )
    unknown = sorted({change.key for change in changes if change.before is None})
    shown = [Change("settings", str(each.place), each.key, each.before, each.after) for each in changes]
    question = (
        f"Brokers do not show {', '.join(unknown)} among their settings. Set it all the same?" if unknown else None
    )
    operator.carry_out(shown, lambda admin: admin.apply_setting_changes(changes), question=question)
