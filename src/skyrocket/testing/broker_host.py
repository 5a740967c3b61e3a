"""One broker of a local cluster: started, stopped, killed and started again on the same port and store."""

import contextlib
import os
import random
import shutil
import socket
from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from typing import Final

from skyrocket.broker.broker import Broker, CannotStart
from skyrocket.broker.failover.failover_broker import FailoverBroker
from skyrocket.broker.replication.master import HaPortTaken
from skyrocket.clock import SystemClock
from skyrocket.config.rocketmq_keys import BROKER_KEYS
from skyrocket.config.sections import BrokerConfig, BrokerRole, StoreConfig
from skyrocket.config.sections.setting import section_from
from skyrocket.config.sources import text_of, unknown_settings
from skyrocket.config.unkept_promises import refuse_unkept_promises
from skyrocket.errors import ConfigError, SkyrocketError
from skyrocket.remoting.addresses import VIP_PORT_DISTANCE, Address
from skyrocket.testing.movable_clock import MovableClock, MovedDisk

_HOST: Final = "127.0.0.1"
# Below the ports that systems give to outgoing connections: nobody takes one while its broker is down.
_PORTS: Final = range(15_000, 32_000)
_PORT_ATTEMPTS: Final = 50

# Small files: a store that lives for a test must not write gigabytes of zeros.
SMALL: Final = {
    "mappedFileSizeCommitLog": str(16 << 20),
    "mappedFileSizeConsumeQueue": str(20_000),
    "mapperFileSizeBatchConsumeQueue": str(46_000),
    "commitLogAllocateAhead": str(1 << 16),
    "maxHashSlotNum": "1000",
    "maxIndexNum": "4000",
    "mappedFileSizeTimerLog": str(1 << 20),
    "deleteCommitLogFilesInterval": "0",
    "deleteConsumeQueueFilesInterval": "0",
    "registerNameServerPeriod": "10000",
}
_OURS: Final = (
    "brokerName",
    "listenPort",
    "bindAddress",
    "brokerIP1",
    "namesrvAddr",
    "storePathRootDir",
    "brokerId",
    "haListenPort",
    "haMasterAddress",
    "enableControllerMode",
    "controllerAddr",
)


class BrokerDown(SkyrocketError):
    """What was asked for needs a running broker."""


def configs(settings: Mapping[str, object]) -> tuple[BrokerConfig, StoreConfig]:
    """Both sections from RocketMQ's keys; raises ConfigError."""
    given = {key: text_of(value) for key, value in settings.items()}
    for key in _OURS:
        if key in given:
            raise ConfigError(f"setting {key!r} is chosen by the cluster itself: leave it out")
    for warning in unknown_settings(given, (BrokerConfig, StoreConfig), BROKER_KEYS):
        raise ConfigError(warning)
    refuse_unkept_promises(given)
    pairs = {**SMALL, **given}
    return section_from(BrokerConfig, pairs, allow_unknown=True), section_from(StoreConfig, pairs, allow_unknown=True)


class BrokerHost:
    """Keeps name, port and directory of a broker while brokers come and go."""

    def __init__(
        self,
        name: str,
        directory: Path,
        name_servers: str,
        config: BrokerConfig,
        store: StoreConfig,
        clock: MovableClock,
        *,
        broker_id: int = 0,
    ) -> None:
        """The broker with id 0 is the master of its name, others are its slaves."""
        self.name = name
        self.directory = directory
        if broker_id:
            store = replace(store, broker_role=BrokerRole.SLAVE)
        self._config = replace(
            config,
            broker_name=name,
            broker_id=broker_id,
            bind_address=_HOST,
            broker_ip=_HOST,
            name_servers=name_servers,
            store_root=str(directory),
        )
        self._store = store
        self._clock = clock
        self._port = 0
        self._broker: Broker | FailoverBroker | None = None

    @property
    def is_running(self) -> bool:
        return self._broker is not None

    @property
    def is_master(self) -> bool:
        """Whether it runs, and takes messages."""
        if isinstance(self._broker, FailoverBroker):
            return self._broker.master is not None
        return self._broker is not None and not self._config.broker_id

    @property
    def failover(self) -> FailoverBroker | None:
        """Where a controller decides: the broker with its lives."""
        return self._broker if isinstance(self._broker, FailoverBroker) else None

    @property
    def broker(self) -> Broker:
        """What it is now; raises BrokerDown."""
        if self._broker is None:
            raise BrokerDown(f"broker {self.name} does not run: start it with start_broker({self.name!r})")
        return self._broker.life if isinstance(self._broker, FailoverBroker) else self._broker

    @property
    def address(self) -> str:
        """For clients; the same for as long as the cluster lives."""
        return str(Address(_HOST, self._port))

    async def start(self) -> None:
        """On the port that it had, else on a free one. Raises CannotStart."""
        if self._broker is not None:
            raise BrokerDown(f"broker {self.name} runs already: stop it first with stop_broker({self.name!r})")
        if self._port:
            self._broker = await self._started(self._port)
            return
        for attempt in range(_PORT_ATTEMPTS):
            port = _free_port()
            try:
                self._broker = await self._started(port)
            except (CannotStart, HaPortTaken):  # somebody was faster
                if attempt == _PORT_ATTEMPTS - 1:
                    raise
            else:
                self._port = port
                return

    async def _started(self, port: int) -> Broker | FailoverBroker:
        kind = FailoverBroker if self._config.controller_mode else Broker
        broker = kind(
            replace(self._config, listen_port=port),
            self._store,
            self._clock,
            peer_clock=SystemClock(),  # clients and name servers live in real time
            disk=MovedDisk(self._clock),
        )
        await broker.start()
        return broker

    async def stop(self) -> None:
        """In order: nothing is lost. Without effect when it does not run."""
        broker, self._broker = self._broker, None
        if broker is not None:
            await broker.stop()

    async def kill(self) -> None:
        """As `kill -9` does: connections break, and the store is left as it is at that moment."""
        broker, self._broker = self._broker, None
        if broker is None:
            raise BrokerDown(f"broker {self.name} does not run: start it with start_broker({self.name!r})")
        remains = self.directory.with_name(self.directory.name + ".remains")
        try:
            await broker.break_off()
            copy_store(self.directory, remains)
        finally:
            await broker.stop()
        shutil.rmtree(self.directory)
        remains.rename(self.directory)


def copy_store(directory: Path, target: Path) -> None:
    """Files that vouch for others first: a thread of the store may still write, and they must not say too much."""
    target.mkdir()
    for entry in sorted(os.scandir(directory), key=lambda entry: entry.is_dir()):
        if entry.is_dir():
            shutil.copytree(entry.path, target / entry.name, copy_function=_copy_if_there)
        else:
            _copy_if_there(entry.path, target / entry.name)


def _copy_if_there(source: str, target: str | Path) -> None:
    """A table that is being saved has a second file, which is renamed at the end."""
    with contextlib.suppress(FileNotFoundError):
        shutil.copy2(source, target)


def _free_port() -> int:
    """One whose neighbours for the VIP channel and for slaves are free too."""
    for _ in range(_PORT_ATTEMPTS):
        port = random.choice(_PORTS)
        if all(map(_is_free, (port, port - VIP_PORT_DISTANCE, port + 1))):
            return port
    raise SkyrocketError(f"no free port found between {_PORTS.start} and {_PORTS.stop} in {_PORT_ATTEMPTS} attempts")


def _is_free(port: int) -> bool:
    with socket.socket() as probe:
        probe.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        try:
            probe.bind((_HOST, port))
        except OSError:
            return False
        return True
