"""How fast a slave follows its master, and how fast an empty one catches up."""

import sys
import time
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path

from bench.load.measure import Timing, measure
from bench.peers.processes import folder
from bench.replication.costs import sends
from bench.replication.servers import ALONE, ASYNC, Broker, Place, broker, brokers, name_server, wait_for

BODY = 32 << 10
ASKED_MB = 110.0  # per second, a little more than what is wanted
_MIB = 1 << 20


@dataclass(frozen=True)
class Following:
    """MB are 10^6 bytes."""

    followed_mb_s: float  # what the slave had of the load when it ended
    lag_mb: float  # and what it lacked then
    caught_up_mb_s: float
    caught_up_mb: float
    cpu_ms_per_mb: tuple[float, float]  # of master and slave, while the slave caught up


def following(work: Path, seconds: float, log_bytes: int) -> Following:
    """Large messages at a given rate with a slave that follows; then an empty slave and all of the log."""
    with folder(work, "following-") as place, name_server(place) as names:
        with brokers(names, ASYNC) as (master, _):
            rate, lag = _followed(master, seconds)
        with brokers(names, ALONE) as (master,):
            fill(master, log_bytes)
            return Following(rate, lag, *_caught_up(master, names))


def _followed(master: Broker, seconds: float) -> tuple[float, float]:
    """MB/s that the slave got while the load ran, and what it lacked at the end of it."""
    print(f"{ASKED_MB:.0f} MB/s of large messages, and a slave that follows …", file=sys.stderr, flush=True)
    large = sends(master, "Large", body=BODY, rate=ASKED_MB * 1e6 / BODY)
    start = master.status().master_max_offset
    with ThreadPoolExecutor(1) as pool:
        load = pool.submit(measure, large, Timing(1.0, seconds), 1, [master.pid])
        wait_for(lambda: master.status().master_max_offset > start, "the load has begun")
        first, _ = _copied_by_slave(master)
        began = time.monotonic()
        time.sleep(seconds)
        last, lag = _copied_by_slave(master)
        took = time.monotonic() - began
        load.result()
    return (last - first) / took / 1e6, lag / 1e6


def _copied_by_slave(master: Broker) -> tuple[int, int]:
    """Up to where the slave has the log, as it told its master, and what it lacks."""
    status = master.status()
    lag = max(each.lag_bytes for each in status.connections)
    return status.master_max_offset - lag, lag


def fill(master: Broker, log_bytes: int) -> None:
    """Until the log has so many bytes."""
    while master.status().master_max_offset < log_bytes:
        measure(sends(master, "Large", body=BODY), Timing(0, 2.0), 1, [master.pid])


def _caught_up(master: Broker, names: Place) -> tuple[float, float, tuple[float, float]]:
    size = master.status().master_max_offset
    print(f"an empty slave catches up with {size / _MIB:.0f} MiB …", file=sys.stderr, flush=True)
    with broker(names, "empty", "SLAVE") as slave:
        wait_for(lambda: slave.copied() > 0, "the slave has begun")
        copied, began, spent = slave.copied(), time.monotonic(), (master.cpu_seconds(), slave.cpu_seconds())
        wait_for(lambda: slave.copied() >= size, "the slave has caught up")
        took, megabytes = time.monotonic() - began, (size - copied) / 1e6
        cpu = [now - then for now, then in zip((master.cpu_seconds(), slave.cpu_seconds()), spent, strict=True)]
        per_mb = (cpu[0] / megabytes * 1e3, cpu[1] / megabytes * 1e3)
        return megabytes / took, megabytes, per_mb
