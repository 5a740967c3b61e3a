"""What a consumer of an old backlog costs the senders: sent to the slave, and left at the master.

With as many sends as the master takes the reader competes with it for the processor, wherever it reads: cores share
caches and memory, and what else runs on the machine goes where there is room. So each round also measures what a
program costs that has nothing to do with the broker, and the reader is measured while senders ask for half of the most:
then there is room for all, and what is lost is lost to waiting for each other.
"""

import asyncio
import contextlib
import json
import os
import subprocess
import sys
import time
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from enum import Enum
from pathlib import Path
from typing import Final

from bench.load.measure import LoadFailed, Timing
from bench.peers.processes import folder
from bench.replication.cores import Cores, apart, children_on, move, shared
from bench.replication.costs import Cost, cost, median_rate
from bench.replication.following import fill
from bench.replication.servers import Broker, broker, name_server, wait_for
from skyrocket.protocol.requests.admin_broker import UpdateBrokerConfig
from skyrocket.remoting.client import RemotingClient

_ROOT: Final = Path(__file__).parent.parent.parent
_READER_SECONDS: Final = 60.0
_OLD_PERCENT: Final = 1  # of memory behind the log's end: 40, the default, would need a log of gigabytes
_OTHER_PROGRAM: Final = "while True: sum(range(100_000))"  # takes a core, and nothing of the broker
_PART_OF_MOST: Final = 0.5
TWO_MACHINES: Final = "two machines"
ONE_MACHINE: Final = "one machine"
HALF_LOAD: Final = "one machine, half load"
_OLD, _YOUNG = "Large", "Young"  # topics: what is read, and what is sent meanwhile


@dataclass
class Read:
    """What a reader got while sends were measured, by the broker's id: the master's, the slave's."""

    pulls: list[int] = field(default_factory=lambda: [0, 0])
    read_bytes: list[int] = field(default_factory=lambda: [0, 0])
    seconds: float = 0.0


class Meanwhile(Enum):
    """What happens beside the sends."""

    AT_SLAVE = "an old backlog is read at the slave"
    AT_MASTER = "an old backlog is read at the master"


@dataclass(frozen=True)
class Setting:
    """Where everybody runs, and how many sends are asked for."""

    name: str
    cores: Cores
    rate: float | None = None  # None: as many as the master takes


@dataclass(frozen=True)
class Reading:
    """Sends with and without a reader, in rounds."""

    setting: Setting
    meanwhile: Meanwhile
    before: list[Cost]
    beside_other: list[Cost]  # with a program instead of the reader that takes a core; empty where it has no sense
    during: list[Cost]
    read: Read
    lag_bytes: int  # the most that the slave lacked in the middle of a round


@dataclass(frozen=True)
class Backlogs:
    alone: list[Cost]  # on the master's own cores, before it has a slave; empty where there is one core
    readings: list[Reading]


def backlogs(work: Path, timing: Timing, rounds: int, log_bytes: int) -> Backlogs:
    """The rate of sends before, and while a consumer reads from the beginning of the log."""
    memory = os.sysconf("SC_PHYS_PAGES") * os.sysconf("SC_PAGE_SIZE")
    settings: dict[str, object] = {"accessMessageInMemoryMaxRatio": _OLD_PERCENT}
    own = apart()
    with (
        folder(work, "backlog-") as place,
        name_server(place) as names,
        broker(names, "master", "ASYNC_MASTER", None, settings) as master,
    ):
        fill(master, max(log_bytes, memory * _OLD_PERCENT // 100 * 2))
        alone = _alone(master, own, timing) if own is not None else []
        with broker(names, "slave", "SLAVE", None, settings) as slave:
            return Backlogs(alone, list(_Pair(master, slave, timing).readings(own, rounds)))


def _alone(master: Broker, cores: Cores, timing: Timing) -> list[Cost]:
    print(f"{TWO_MACHINES}: the master alone …", file=sys.stderr, flush=True)
    move(master.pid, cores.master)
    with children_on(cores.master):
        return [cost([master], timing, _YOUNG)]


@dataclass(frozen=True)
class _Pair:
    """Both have a log of which all but the end is old."""

    master: Broker
    slave: Broker
    timing: Timing

    def readings(self, own: Cores | None, rounds: int) -> Iterator[Reading]:
        """What is judged in all rounds, and what it is to be compared with in one."""
        self.wait_for_slave()
        one = Setting(ONE_MACHINE, shared())
        if own is not None:
            two = Setting(TWO_MACHINES, own)
            yield self.reading(two, Meanwhile.AT_SLAVE, rounds)
            yield self.reading(two, Meanwhile.AT_MASTER, 1)
        saturated = self.reading(one, Meanwhile.AT_SLAVE, 1)
        yield saturated
        if own is None:
            yield self.reading(one, Meanwhile.AT_MASTER, 1)
        half = Setting(HALF_LOAD, one.cores, median_rate(saturated.before) * _PART_OF_MOST)
        yield self.reading(half, Meanwhile.AT_SLAVE, rounds)
        yield self.reading(half, Meanwhile.AT_MASTER, 1)

    def reading(self, setting: Setting, meanwhile: Meanwhile, rounds: int) -> Reading:
        print(f"{setting.name}: {meanwhile.value} …", file=sys.stderr, flush=True)
        cores = setting.cores
        self._let_slave_be_read(meanwhile is Meanwhile.AT_SLAVE)
        move(self.master.pid, cores.master)
        move(self.slave.pid, cores.slave)
        before: list[Cost] = []
        beside_other: list[Cost] = []
        during: list[Cost] = []
        read, lags = Read(), [0]
        for _ in range(rounds):
            before.append(self._sends(setting))
            if cores.are_apart:
                with self._other_program(cores):
                    beside_other.append(self._sends(setting))
            with self._reader(cores, read), ThreadPoolExecutor(1) as looking:
                lag = looking.submit(self._lag_in_the_middle)
                during.append(self._sends(setting))
                lags.append(lag.result())
            self.wait_for_slave()
        return Reading(setting, meanwhile, before, beside_other, during, read, max(lags))

    def _sends(self, setting: Setting) -> Cost:
        with children_on(setting.cores.master):
            return cost([self.master, self.slave], self.timing, _YOUNG, setting.rate)

    def _lag_in_the_middle(self) -> int:
        """In bytes."""
        time.sleep(self.timing.warm_up + self.timing.measured / 2)
        return max(each.lag_bytes for each in self.master.status().connections)

    def wait_for_slave(self) -> None:
        wait_for(lambda: self.slave.copied() >= self.master.status().master_max_offset, "the slave has followed")

    def _let_slave_be_read(self, is_read: bool) -> None:
        async def tell() -> None:
            async with RemotingClient() as client:
                body = f"slaveReadEnable={str(is_read).lower()}\n".encode()
                await client.call(self.master.address, UpdateBrokerConfig(), body)

        asyncio.run(tell())

    @contextlib.contextmanager
    def _other_program(self, cores: Cores) -> Iterator[None]:
        with children_on(cores.slave):
            running = subprocess.Popen([sys.executable, "-c", _OTHER_PROGRAM])
        try:
            yield
        finally:
            running.kill()
            running.wait()

    @contextlib.contextmanager
    def _reader(self, cores: Cores, read: Read) -> Iterator[None]:
        """A process of its own, which reads while the context lasts; what it got is added to `read`."""
        command = [sys.executable, "-m", "bench.replication.reader", self.master.address, self.slave.address, _OLD]
        with children_on(cores.slave):
            running = subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True, cwd=_ROOT)
        try:
            assert running.stdout is not None
            if running.stdout.readline().strip() != "ready":
                raise LoadFailed("the reader of the backlog did not start")
            yield
            out, _ = running.communicate(timeout=_READER_SECONDS)
            said = json.loads(out)
            for broker_id in (0, 1):
                read.pulls[broker_id] += said["pulls"][broker_id]
                read.read_bytes[broker_id] += said["bytes"][broker_id]
            read.seconds += said["seconds"]
        finally:
            running.kill()
            running.wait()
