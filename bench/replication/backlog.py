"""What a consumer of an old backlog costs the senders: with reads from the slave, and without them."""

import contextlib
import json
import os
import subprocess
import sys
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from bench.load.measure import Figures, LoadFailed, Timing, measure
from bench.peers.processes import folder
from bench.replication.costs import sends
from bench.replication.following import fill
from bench.replication.servers import ASYNC, LOWEST_PRIORITY, Broker, brokers, name_server, wait_for

_ROOT: Final = Path(__file__).parent.parent.parent
_READER_SECONDS: Final = 60.0
_OLD_PERCENT: Final = 1  # of memory behind the log's end: 40, the default, would need a log of gigabytes
GIVES_WAY: Final = "sent to the slave, both with the lowest priority"
STAYS: Final = "it stays at the master"


@dataclass(frozen=True)
class Reading:
    """Sends with and without a reader."""

    name: str
    before: Figures
    during: Figures
    given_by_master: int  # messages
    given_by_slave: int

    @property
    def kept(self) -> float:
        return self.during.rate / self.before.rate


@contextlib.contextmanager
def _reader(master: Broker, slave: Broker, given: list[int], priority: int) -> Iterator[None]:
    """A process of its own; when it has ended, `given` is what each broker gave it."""
    command = ["nice", "-n", str(priority), sys.executable, "-m", "bench.replication.reader"]
    command += [master.address, slave.address, "Large"]
    running = subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True, cwd=_ROOT)
    try:
        assert running.stdout is not None
        if running.stdout.readline().strip() != "ready":
            raise LoadFailed("the reader of the backlog did not start")
        yield
        out, _ = running.communicate(timeout=_READER_SECONDS)
        given += json.loads(out)["given"]
    finally:
        running.kill()
        running.wait()


def backlogs(work: Path, timing: Timing, log_bytes: int) -> list[Reading]:
    """The rate of sends before, and while a consumer reads from the beginning of the log."""
    found: list[Reading] = []
    with _pair(work, log_bytes, slave_reads=True) as (master, slave):
        found.append(_reading("sent to the slave", master, slave, timing))
        slave.give_way()
        found.append(_reading(GIVES_WAY, master, slave, timing, LOWEST_PRIORITY))
    with _pair(work, log_bytes, slave_reads=False) as (master, slave):
        found.append(_reading(STAYS, master, slave, timing))
    return found


@contextlib.contextmanager
def _pair(work: Path, log_bytes: int, *, slave_reads: bool) -> Iterator[list[Broker]]:
    """Both have a log of which all but the end is old."""
    memory = os.sysconf("SC_PHYS_PAGES") * os.sysconf("SC_PAGE_SIZE")
    settings = {"accessMessageInMemoryMaxRatio": _OLD_PERCENT, "slaveReadEnable": str(slave_reads).lower()}
    with folder(work, "backlog-") as place, name_server(place) as names, brokers(names, ASYNC, None, settings) as pair:
        fill(pair[0], max(log_bytes, memory * _OLD_PERCENT // 100 * 2))
        wait_for(lambda: pair[1].copied() >= pair[0].status().master_max_offset, "the slave has followed")
        yield pair


def _reading(name: str, master: Broker, slave: Broker, timing: Timing, priority: int = 0) -> Reading:
    print(f"a consumer reads an old backlog: {name} …", file=sys.stderr, flush=True)
    scenario = sends(master, "Young")
    measure(scenario, Timing(0, timing.warm_up), 1, [master.pid])
    before = measure(scenario, Timing(0, timing.measured), 1, [master.pid])
    given: list[int] = []
    with _reader(master, slave, given, priority):
        during = measure(scenario, Timing(timing.warm_up, timing.measured), 1, [master.pid])
    return Reading(name, before, during, given[0], given[1])
