"""What a slave costs the senders: the same raw load on a master alone, with an asynchronous and a synchronous slave."""

import statistics
import sys
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from tests.interop.apache import Apache

from bench.load.measure import Figures, LoadFailed, Timing, measure
from bench.load.scenario import SEND, Scenario
from bench.peers.processes import folder
from bench.replication.servers import SETUPS, Broker, brokers, name_server

IN_FLIGHT = 64


@dataclass(frozen=True)
class Cost:
    """One set-up in one round."""

    sends: Figures
    slave_cpu_us: float | None  # per message; None without a slave


def sends(master: Broker, topic: str, *, body: int = 128, rate: float | None = None) -> Scenario:
    """One message per request, 64 in flight, each on a connection of its own."""
    return Scenario(
        kind=SEND,
        address=("127.0.0.1", master.port),
        topic=topic,
        connections=IN_FLIGHT,
        window=1,
        rate=rate,
        body_size=body,
    )


def costs(work: Path, timing: Timing, rounds: int, apache: Apache | None = None) -> dict[str, list[Cost]]:
    """Each set-up in turn, round by round; every one begins with empty stores."""
    found: dict[str, list[Cost]] = {setup: [] for setup in SETUPS}
    maker = "Skyrocket" if apache is None else f"Apache RocketMQ {apache.version}"
    for number in range(rounds):
        for setup in SETUPS:
            print(f"{maker}, round {number + 1} of {rounds}: {setup} …", file=sys.stderr, flush=True)
            with (
                folder(work, "costs-") as place,
                name_server(place) as names,
                brokers(names, setup, apache) as started,
            ):
                found[setup].append(cost(started, timing))
    return found


def cost(started: Sequence[Broker], timing: Timing, topic: str = "Cost", rate: float | None = None) -> Cost:
    """Of sends to a master, the first of the brokers; the others are its slaves. Without a rate as many as it takes."""
    master, slaves = started[0], started[1:]
    scenario = sends(master, topic, rate=rate)
    if timing.warm_up:
        measure(scenario, Timing(0, timing.warm_up), 1, [master.pid])
    before = sum(slave.cpu_seconds() for slave in slaves)
    figures = measure(scenario, Timing(0, timing.measured), 1, [master.pid])
    if figures.errors:
        raise LoadFailed(f"not everything was taken: {figures.errors}")
    spent = sum(slave.cpu_seconds() for slave in slaves) - before
    return Cost(figures, spent / max(figures.acknowledged, 1) * 1e6 if slaves else None)


def kept(these: Sequence[Cost], of: Sequence[Cost]) -> float:
    """The rate of one set-up in that of another: the median of the rounds' ratios."""
    return statistics.median(one.sends.rate / other.sends.rate for one, other in zip(these, of, strict=True))


def median_rate(of: Sequence[Cost]) -> float:
    return statistics.median(each.sends.rate for each in of)
