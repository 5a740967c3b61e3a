"""Who the broker processes of `--brokers N` and `--replicas N` are: names, ports, stores, the command line of each."""

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from skyrocket.config.home import in_home
from skyrocket.config.sections import BrokerConfig
from skyrocket.errors import ConfigError
from skyrocket.format import store_names as names

PORT_DISTANCE: Final = 10  # each broker also takes listenPort - 2 (VIP) and listenPort + 1 (replication)
_FOLDER: Final = "broker-"
_SMALLEST_SAFE_SET: Final = 3  # one may die, and a message is still on two
# The user's own settings count more: they come behind these.
_MASTER_SETTINGS: Final = ("brokerRole=SYNC_MASTER", "slaveReadEnable=true")
_FAILOVER_SETTINGS: Final = ("enableControllerMode=true", "allAckInSyncStateSet=true", "slaveReadEnable=true")


@dataclass(frozen=True, slots=True)
class Places:
    """Where the broker processes find the others."""

    name_servers: str
    controllers: str = ""  # that choose the masters, if any do

    @property
    def arguments(self) -> tuple[str, ...]:
        """For `skyrocket broker`."""
        known = ("--namesrv-addr", self.name_servers) if self.name_servers else ()
        return known + (("--set", f"controllerAddr={self.controllers}") if self.controllers else ())


@dataclass(frozen=True, slots=True)
class BrokerPlan:
    """One broker process."""

    name: str
    listen_port: int  # 0: a free one
    store: Path
    arguments: tuple[str, ...]  # of `skyrocket broker`
    broker_id: int = 0  # others than 0 are slaves of the broker with that name; with fail-over only a number
    has_failover: bool = False

    @property
    def label(self) -> str:
        """How its lines are marked."""
        if self.has_failover:
            return f"{self.name} replica {self.broker_id + 1}"
        return f"{self.name} slave {self.broker_id}" if self.broker_id else self.name


def plan_brokers(
    config: BrokerConfig,
    count: int,
    conf: Path | None,
    single: Sequence[str],
    *,
    replicas: int = 1,
    failover: bool = False,
    verbose: bool = False,
) -> list[BrokerPlan]:
    """As many brokers as asked for, masters first, each with its slaves when there are several replicas of a log.

    With `failover` a controller says which replica is master. Raises ConfigError when the store directory was used for
    another number of them.
    """
    if failover and replicas == 1:
        raise ConfigError("--failover needs replicas that can take over: add --replicas 3")
    root = in_home(config.store_root)
    processes = count * replicas
    _check_layout(root, count, replicas)
    if not failover:
        _check_without_controller(root, replicas)
    if processes == 1:
        return [BrokerPlan(config.broker_name, config.listen_port, root, ())]
    last_port = config.listen_port and config.listen_port + PORT_DISTANCE * (processes - 1)
    if last_port > 65535:
        raise ConfigError(
            f"{processes} broker processes: the last one would need port {last_port}; choose a lower --listen-port"
        )
    shared = [*(("-c", str(conf)) if conf is not None else ()), *(("-v",) if verbose else ())]
    for text in (*_settings_of_all(replicas, failover=failover), *single):
        shared += ["--set", text]
    if config.broker_ip:
        shared += ["--broker-ip", config.broker_ip]
    return [
        _plan(config, number, broker_id, PORT_DISTANCE * (broker_id * count + number), shared, failover=failover)
        for broker_id in range(replicas)
        for number in range(count)
    ]


def _settings_of_all(replicas: int, *, failover: bool) -> tuple[str, ...]:
    if not failover:
        return _MASTER_SETTINGS if replicas > 1 else ()
    return (*_FAILOVER_SETTINGS, f"minInSyncReplicas={2 if replicas >= _SMALLEST_SAFE_SET else 1}")


def _plan(
    config: BrokerConfig, number: int, broker_id: int, distance: int, shared: Sequence[str], *, failover: bool
) -> BrokerPlan:
    folder = f"{_FOLDER}{number}-s{broker_id}" if broker_id else f"{_FOLDER}{number}"
    store = in_home(config.store_root) / folder
    name = broker_name(config.broker_name, number)
    port = config.listen_port and config.listen_port + distance
    own = ["--set", f"brokerName={name}", "--listen-port", str(port), "--store", str(store)]
    if broker_id and not failover:
        own += ["--set", f"brokerId={broker_id}", "--set", "brokerRole=SLAVE"]
    # The .conf file is everyone's: what is changed in one broker at run time is kept beside its store.
    own += ["--set", f"brokerConfigPath={store / 'config' / 'broker.properties'}"]
    own += ["--set", f"metricsPromExporterPort={config.metrics_port and config.metrics_port + distance}"]
    return BrokerPlan(name, port, store, (*shared, *own), broker_id, failover)


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


def _check_without_controller(root: Path, replicas: int) -> None:
    """Under a controller anybody may have been the last master: the first one may lack what was acknowledged."""
    if any(root.glob(f"{_FOLDER}*/{names.IDENTITY}")):
        raise ConfigError(
            f"{root} holds sets whose masters a controller chose. Start with --replicas {max(replicas, 2)} --failover, "
            "or choose another --store"
        )
