"""Who the broker processes of `--brokers N` are: names, ports, stores, and the command line of each."""

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from skyrocket.config.sections import BrokerConfig
from skyrocket.errors import ConfigError

PORT_DISTANCE: Final = 10  # each broker also takes listenPort - 2 (VIP) and listenPort + 1 (replication)
_FOLDER: Final = "broker-"


@dataclass(frozen=True, slots=True)
class BrokerPlan:
    """One broker process."""

    name: str
    listen_port: int  # 0: a free one
    store: Path
    arguments: tuple[str, ...]  # of `skyrocket broker`


def plan_brokers(
    config: BrokerConfig, count: int, conf: Path | None, single: Sequence[str], *, verbose: bool = False
) -> list[BrokerPlan]:
    """As many brokers as asked for; raises ConfigError when the store directory was used for another number of them."""
    root = Path(config.store_root).expanduser()
    _check_layout(root, count)
    if count == 1:
        return [BrokerPlan(config.broker_name, config.listen_port, root, ())]
    last_port = config.listen_port and config.listen_port + PORT_DISTANCE * (count - 1)
    if last_port > 65535:
        raise ConfigError(f"--brokers {count}: the last one would need port {last_port}; choose a lower --listen-port")
    shared = [*(("-c", str(conf)) if conf is not None else ()), *(("-v",) if verbose else ())]
    for text in single:
        shared += ["--set", text]
    if config.broker_ip:
        shared += ["--broker-ip", config.broker_ip]
    return [_plan(config, number, root / f"{_FOLDER}{number}", shared) for number in range(count)]


def _plan(config: BrokerConfig, number: int, store: Path, shared: Sequence[str]) -> BrokerPlan:
    name = broker_name(config.broker_name, number)
    port = config.listen_port and config.listen_port + PORT_DISTANCE * number
    own = ("--set", f"brokerName={name}", "--listen-port", str(port), "--store", str(store))
    # The .conf file is everyone's: what is changed in one broker at run time is kept beside its store.
    kept = ("--set", f"brokerConfigPath={store / 'config' / 'broker.properties'}")
    metrics = config.metrics_port and config.metrics_port + PORT_DISTANCE * number
    return BrokerPlan(name, port, store, (*shared, *own, *kept, "--set", f"metricsPromExporterPort={metrics}"))


def broker_name(first: str, number: int) -> str:
    """broker-a, broker-b, …; a name without such an ending gets one."""
    return f"{first.removesuffix('-a')}-{chr(ord('a') + number)}"


def _check_layout(root: Path, count: int) -> None:
    """Messages of an earlier start must not be left behind unseen."""
    found = sorted(
        int(number)
        for path in root.glob(f"{_FOLDER}*/commitlog")
        if (number := path.parent.name.removeprefix(_FOLDER)).isdecimal()
    )
    if count > 1 and (root / "commitlog").exists():
        raise ConfigError(
            f"{root} is the store of one broker; with --brokers {count} its messages would not be served. Choose "
            f"another --store, or move what it holds to {root / (_FOLDER + '0')}"
        )
    if found and (count == 1 or found[-1] >= count):
        raise ConfigError(
            f"{root} holds the stores of {found[-1] + 1} brokers; with --brokers {count} not all would be served. "
            f"Start with --brokers {found[-1] + 1}, or choose another --store"
        )
