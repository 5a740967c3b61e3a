"""The brokers of a local cluster by name: who of each set is master now, and who follows.

Without fail-over the first one is always the master; with it a controller says who is.
"""

import itertools
from collections.abc import Iterator
from pathlib import Path
from typing import Final

from skyrocket.broker.broker import Broker
from skyrocket.broker.replication.feature import ReplicationFeature
from skyrocket.config.sections import ControllerConfig
from skyrocket.controller.controller import Controller
from skyrocket.controller.engine_choice import engine_of
from skyrocket.store.config_file import ConfigFile
from skyrocket.store.disk import Disk
from skyrocket.testing.broker_host import BrokerHost

_SMALLEST_SAFE_SET: Final = 3  # one may die, and a message is still on two
_SCAN_MS: Final = 200
_REPLICATED: Final = {"brokerRole": "SYNC_MASTER", "slaveReadEnable": "true"}
_FAILOVER: Final = {
    "slaveReadEnable": "true",
    "allAckInSyncStateSet": "true",
    "brokerHeartbeatInterval": "100",
    "controllerHeartBeatTimeoutMills": "60000",  # a killed broker is noticed at once; a slow machine kills nobody
    "syncBrokerMetadataPeriod": "500",
    "checkSyncStateSetPeriod": "500",
}


def settings_of(replicas: int, *, failover: bool) -> dict[str, str]:
    """What a set is told unless the user says otherwise."""
    if failover:
        return {**_FAILOVER, "minInSyncReplicas": "2" if replicas >= _SMALLEST_SAFE_SET else "1"}
    return dict(_REPLICATED) if replicas > 1 else {}


def controller_in(directory: Path) -> Controller:
    """One that keeps its decisions in the cluster's directory, not started."""
    config = ControllerConfig(
        bind_address="127.0.0.1",
        peers="n0-127.0.0.1:0",
        store=f"file:{directory / 'replica-sets'}",
        scan_interval_ms=_SCAN_MS,
        master_scan_interval_ms=_SCAN_MS,
        config_store_path=str(directory / "controller.properties"),
    )
    return Controller(config, engine_of(config, Disk()), ConfigFile(Disk(), config.config_store_path, bytes, bytes))


class BrokerSets:
    """All brokers, each set in the order of its start."""

    def __init__(self) -> None:
        self.hosts: dict[str, list[BrokerHost]] = {}

    def add(self, host: BrokerHost) -> None:
        self.hosts.setdefault(host.name, []).append(host)

    def master(self, name: str) -> BrokerHost:
        """Who is master; while nobody is, who was started first."""
        hosts = self.hosts[name]
        return next((host for host in hosts if host.is_master), hosts[0])

    def has_master(self, name: str) -> bool:
        return any(host.is_master for host in self.hosts[name])

    def running(self, name: str) -> list[BrokerHost]:
        """Those of a set that run, the master first."""
        return sorted((host for host in self.hosts[name] if host.is_running), key=lambda host: not host.is_master)

    def masters(self) -> list[Broker]:
        return [host.broker for hosts in self.hosts.values() for host in hosts if host.is_master]

    def speakers(self) -> list[Broker]:
        """One broker of each name: the master, or the slave that stands in for it."""
        running = [self.running(name) for name in self.hosts]
        return [hosts[0].broker for hosts in running if hosts]

    def followers(self) -> Iterator[Broker]:
        """All that run as slaves."""
        for host in itertools.chain.from_iterable(self.hosts.values()):
            if host.is_running and not host.is_master:
                yield host.broker

    def is_followed(self, name: str) -> bool:
        """Whether all slaves that run copy from the master, and are in sync with it where that is decided."""
        host = self.master(name)
        if not host.is_master:
            return False
        others = len(self.running(name)) - 1
        if host.failover is not None:
            side = host.failover.master
            return side is not None and len(side.sync_set.members) > others
        plain = host.broker.feature(ReplicationFeature).master
        return plain is not None and plain.replicas.connected >= others
