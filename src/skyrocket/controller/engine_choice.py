"""The engine that an operator has chosen. Libraries of engines are loaded when theirs is wanted: they are extras."""

from skyrocket.config.home import in_home
from skyrocket.config.sections import ControllerConfig
from skyrocket.controller.engines.engine import Engine
from skyrocket.controller.engines.file import FileDisk, FileEngine
from skyrocket.controller.engines.place import ETCD, FILE, Place, parse_place
from skyrocket.controller.peers import parse_peers
from skyrocket.errors import ConfigError


def engine_of(config: ControllerConfig, disk: FileDisk) -> Engine:
    """Raises ConfigError for a place that is none, or whose library is missing."""
    place = parse_place(config.store)
    if place.kind == FILE:
        _check_alone(config)
        return FileEngine(disk, str(in_home(place.path)))
    try:
        return _etcd(place, config) if place.kind == ETCD else _zookeeper(place, config)
    except ModuleNotFoundError as error:
        raise ConfigError(
            f"controllerStore={config.store} needs the library {error.name}: pip install 'skyrocket[{place.kind}]'"
        ) from error


def _check_alone(config: ControllerConfig) -> None:
    """Several controllers with a file each would each believe to lead: two masters."""
    if len(parse_peers(config.peers)) > 1:
        raise ConfigError(
            f"controllerDLegerPeers names several controllers, but {config.store} serves only one: keep their "
            "decisions in ZooKeeper or etcd (controllerStore=zookeeper://… or etcd://…), or name this one alone"
        )


def _zookeeper(place: Place, config: ControllerConfig) -> Engine:
    from skyrocket.controller.engines.zookeeper import ZooKeeperEngine

    return ZooKeeperEngine(place, config)


def _etcd(place: Place, config: ControllerConfig) -> Engine:
    from skyrocket.controller.engines.etcd import EtcdEngine

    return EtcdEngine(place, config)
