"""Who the broker processes of `--brokers N` and `--replicas N` are: names, ports, stores, the command line of each."""

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from skyrocket.config.sections import BrokerConfig
from skyrocket.errors import ConfigError

PORT_DISTANCE: Final = 10  # each broker also takes listenPort - 2 (VIP) and listenPort + 1 (replication)
_FOLDER: Final = "broker-"
# The user's own settings count more: they come behind these.
_MASTER_SETTINGS: Final = ("--set", "brokerRole=SYNC_MASTER", "--set", "slaveReadEnable=true")


@dataclass(frozen=True, slots=True)
class BrokerPlan:
    """One broker process."""

    name: str
    listen_port: int  # 0: a free one
    store: Path
    arguments: tuple[str, ...]  # of `skyrocket broker`
    broker_id: int = 0  # others than 0 are slaves of the broker with that name

    @property
    def label(self) -> str:
        """How its lines are marked."""
        return f"{self.name} slave {self.broker_id}" if self.broker_id else self.name


def plan_brokers(
    config: BrokerConfig,
    count: int,
    conf: Path | None,
    single: Sequence[str],
    *,
    replicas: int = 1,
    verbose: bool = False,
) -> list[BrokerPlan]:
    """As many brokers as asked for, masters first, each with its slaves when there are several replicas of a log.

    Raises ConfigError when the store directory was used for another number of them.
    """
    root = Path(config.store_root).expanduser()
    processes = count * replicas
    _check_layout(root, count, replicas)
    if processes == 1:
        return [BrokerPlan(config.broker_name, config.listen_port, root, ())]
    last_port = config.listen_port and config.listen_port + PORT_DISTANCE * (processes - 1)
    if last_port > 65535:
        raise ConfigError(
            f"{processes} broker processes: the last one would need port {last_port}; choose a lower --listen-port"
        )
    shared = [*(("-c", str(conf)) if conf is not None else ()), *(("-v",) if verbose else ())]
    shared += _MASTER_SETTINGS if replicas > 1 else ()
    for text in single:
        shared += ["--set", text]
    if config.broker_ip:
        shared += ["--broker-ip", config.broker_ip]
    return [
        _plan(config, number, broker_id, PORT_DISTANCE * (broker_id * count + number), shared)
        for broker_id in range(replicas)
        for number in range(count)
    ]


def _plan(config: BrokerConfig, number: int, broker_id: int, distance: int, shared: Sequence[str]) -> BrokerPlan:
    folder = f"{_FOLDER}{number}-s{broker_id}" if broker_id else f"{_FOLDER}{number}"
    store = Path(config.store_root).expanduser() / folder
    name = broker_name(config.broker_name, number)
    port = config.listen_port and config.listen_port + distance
    own = ["--set", f"brokerName={name}", "--listen-port", str(port), "--store", str(store)]
    if broker_id:
        own += ["--set", f"brokerId={broker_id}", "--set", "brokerRole=SLAVE"]
    # The .conf file is everyone's: what is changed in one broker at run time is kept beside its store.
    own += ["--set", f"brokerConfigPath={store / 'config' / 'broker.properties'}"]
    own += ["--set", f"metricsPromExporterPort={config.metrics_port and config.metrics_port + distance}"]
    return BrokerPlan(name, port, store, (*shared, *own), broker_id)


def broker_name(first: str, number: int) -> str:
    """broker-a, broker-b, …; a name without such an ending gets one."""
    return f"{first.removesuffix('-a')}-{chr(ord('a') + number)}"


def _check_layout(root: Path, count: int, replicas: int) -> None:
    """Messages of an earlier start must not be left behind unseen."""
    found = sorted(
        int(number)
        for path in root.glob(f"{_FOLDER}*/commitlog")
        if (number := path.parent.name.removeprefix(_FOLDER)).isdecimal()
    )
    if count * replicas > 1 and (root / "commitlog").exists():
        option = f"--brokers {count}" if count > 1 else f"--replicas {replicas}"
        raise ConfigError(
            f"{root} is the store of one broker; with {option} its messages would not be served. Choose "
            f"another --store, or move what it holds to {root / (_FOLDER + '0')}"
        )
    if found and count == replicas == 1 and len(found) == 1:
        raise ConfigError(
            f"{root} holds the store of a broker with slaves. Start with --replicas 2, or choose another --store"
        )
    if found and (count * replicas == 1 or found[-1] >= count):
        raise ConfigError(
            f"{root} holds the stores of {found[-1] + 1} brokers; with --brokers {count} not all would be served. "
            f"Start with --brokers {found[-1] + 1}, or choose another --store"
        )
